//! Limits that several hosts share. Parsed and kept; without a server the fallback is in force.

use std::time::Duration;

use crate::schema::kind::{DurationRange, Flag, Maybe, OneOf, RequiredOption, Whole, words};
use crate::schema::settings::{Section, settings};

words! {
    /// What the count of a cluster rule is for.
    pub enum ClusterThreshold {
        /// For each connected client.
        AverageLocal = "average_local",
        /// For all of them together.
        Global = "global",
    }
}

settings! {
    /// The cluster part of a rule.
    #[derive(Eq, Hash)]
    pub struct Cluster {
        /// Number of the rule on the server.
        flow_id: u64 = 0, RequiredOption(Whole { min: 1, max: i64::MAX.unsigned_abs() }, "17");
        /// What the count is for.
        threshold: ClusterThreshold = ClusterThreshold::AverageLocal, OneOf::<ClusterThreshold>::ANY;
        /// Whether the rule acts on this host alone while no server answers; else it passes all.
        /// Not set: yes for flow rules, no for hot-parameter rules, as in Sentinel.
        fallback_to_local: Option<bool> = None, Maybe(Flag, "true");
        /// Buckets of the server's window.
        sample_count: u32 = 10, Whole { min: 1, max: 1_000 };
        /// Length of the server's window.
        window: Duration = Duration::from_secs(1), DurationRange::ms(1, 3_600_000);
        /// How long the server waits for a resource before it takes a token back.
        resource_timeout: Duration = Duration::from_secs(2), DurationRange::ms(0, 3_600_000);
        /// How long the server keeps the tokens of a client that is gone.
        client_offline_time: Duration = Duration::from_secs(2), DurationRange::ms(0, 3_600_000);
    }
    check check_cluster;
}

fn check_cluster(cluster: &Cluster, section: &mut Section<'_, '_>) {
    check_window(cluster, section, ["window", "sample_count"]);
}

/// The buckets of a window are equal. `keys` are the options of window and number of buckets.
pub(super) fn check_window(cluster: &Cluster, section: &mut Section<'_, '_>, keys: [&str; 2]) {
    let window_ms = cluster.window.as_millis();
    let divides = window_ms.checked_rem(u128::from(cluster.sample_count)) == Some(0);
    if !divides {
        section.refuse(
            &keys,
            "a window of a whole number of milliseconds for each bucket",
            format!("{window_ms} ms in {} buckets", cluster.sample_count),
        );
    }
}
