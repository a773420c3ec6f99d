//! What the service manager is told, where there is one (`NOTIFY_SOCKET`).

use std::time::Duration;

use sd_notify::NotifyState;

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(event = "service_manager_failed", %error, "systemd could not be told {states:?}");
    }
}

/// The doors answer.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Configuration and rules are being read again; [`ready`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => {
            tracing::warn!(event = "service_manager_failed", %error, "systemd could not be told of the reload");
        }
    }
}

/// How the agent is, for people.
pub(super) fn state(line: &str) {
    tell(&[NotifyState::Status(line)]);
}

/// The agent ends.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The agent ticks.
pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often [`alive`] must be said; `None` where nobody waits for it.
pub(super) fn watchdog() -> Option<Duration> {
    // Half the time: one late turn does not end the service.
    sd_notify::watchdog_enabled().map(|time| time / 2)
}
