//! What the service manager hands over at the start: sockets that listen, by `LISTEN_FDS` and `LISTEN_FDNAMES`.

use std::os::fd::OwnedFd;

use tidegate_segment::os::inherited;

/// Takes it, with the name of each. To be called once.
pub(super) fn take() -> Vec<(String, OwnedFd)> {
    let named = match sd_notify::listen_fds_with_names() {
        Ok(named) => named,
        Err(error) => {
            tracing::warn!(
                event = "handed_over_refused",
                %error,
                "LISTEN_FDS or LISTEN_FDNAMES are not as systemd sets them; what was handed over is left alone"
            );
            return Vec::new();
        }
    };
    let taken = inherited::take(named).into_iter();
    taken.map(|(descriptor, name)| (name, descriptor)).collect()
}
