//! Which events there are.

use self::EventReach::{All, Operator};

/// Who may read of an event that is of no tenant. One of a tenant is for that tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventReach {
    /// All who may ask the agent: it tells of the host and its scopes, as the status does.
    All,
    /// Root and the agent's user: it may name files, rules or callers of others.
    Operator,
}

/// Each event by its name in the log, in the order of the names. A test holds them to the lines of the log.
const KINDS: &[(&str, EventReach)] = &[
    ("accept_failed", Operator),
    ("breaker_state", Operator),
    ("bulkhead_begun", Operator),
    ("bulkhead_ended", Operator),
    ("bulkhead_untold", Operator),
    ("client_came", Operator),
    ("client_gone", Operator),
    ("client_group_unseen", Operator),
    ("client_without_seat", Operator),
    ("config_fault", Operator),
    ("ebpf_group_left_out", Operator),
    ("ebpf_off", All),
    ("ebpf_source", All),
    ("ebpf_step_down", All),
    ("ended", All),
    ("escalation", All),
    ("handed_over_foreign", Operator),
    ("handed_over_refused", Operator),
    ("handed_socket_access", Operator),
    ("handed_socket_refused", Operator),
    ("jvm_probe_failed", Operator),
    ("last_good_not_kept", Operator),
    ("last_good_refused", Operator),
    ("log_level_invalid", Operator),
    ("memory_given_back", Operator),
    ("memory_not_given_back", Operator),
    ("memory_readable", Operator),
    ("open_files_limited", Operator),
    ("open_files_raised", Operator),
    ("pages_begun_anew", Operator),
    ("pages_counted", Operator),
    ("pages_not_recorded", Operator),
    ("pages_not_stored", Operator),
    ("pages_refused", Operator),
    ("pages_taken_up", Operator),
    ("permits_expired", Operator),
    ("permits_set_aside", Operator),
    ("recording_begun_anew", All),
    ("recording_failed", All),
    ("recording_lost", All),
    ("recording_off", All),
    ("reload_refused", All),
    ("rule_ended", Operator),
    ("rule_warning", Operator),
    ("rule_without_slot", Operator),
    ("rules_changed", Operator),
    ("rules_in_force", All),
    ("rules_not_watched", All),
    ("rules_strained", All),
    ("scope_cpus_declared", All),
    ("scope_cpus_doubted", All),
    ("scope_group_found", All),
    ("scope_state", All),
    ("scope_without_group", All),
    ("scraper_turned_away", Operator),
    ("seat_ended", Operator),
    ("seats_ended", Operator),
    ("seats_kept", Operator),
    ("seats_not_recorded", Operator),
    ("service_manager_failed", Operator),
    ("setting_needs_restart", Operator),
    ("settings_refused", Operator),
    ("shedding_ineffective", All),
    ("signals_measured", All),
    ("socket_left", Operator),
    ("socket_lost", All),
    ("socket_replaced", All),
    ("started", All),
    ("stored_pages_refused", Operator),
    ("thread_left_behind", Operator),
    ("verdict", All),
];

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKind(usize);

impl EventKind {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..KINDS.len()).map(Self)
    }

    /// The kind of this name; `None` for a line of the log that is no event.
    pub fn of(name: &str) -> Option<Self> {
        let found = KINDS.binary_search_by_key(&name, |(name, _reach)| name);
        found.ok().map(Self)
    }

    /// Its place in [`Self::all`].
    pub(super) const fn place(self) -> usize {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        KINDS.get(self.0).map_or("", |(name, _reach)| name)
    }

    /// Who may read of it.
    pub fn reach(self) -> EventReach {
        KINDS.get(self.0).map_or(Operator, |(_name, reach)| *reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        assert!(KINDS.is_sorted_by_key(|(name, _reach)| *name));
        for kind in EventKind::all() {
            assert_eq!(EventKind::of(kind.name()), Some(kind), "{}", kind.name());
        }
        assert_eq!(EventKind::of("nothing"), None);
    }
}
