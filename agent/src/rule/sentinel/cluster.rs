//! The cluster part of a rule in Sentinel's form.

use super::code::{ANY, Code, UpTo, millis};
use crate::rule::cluster::{Cluster, ClusterThreshold, check_window};
use crate::schema::kind::{Flag, Maybe, Whole};
use crate::schema::settings::{Section, settings};

const THRESHOLDS: Code<ClusterThreshold> = Code {
    codes: &[
        (0, ClusterThreshold::AverageLocal),
        (1, ClusterThreshold::Global),
    ],
    other: None,
};

settings! {
    /// The fields of `clusterConfig`.
    pub(super) struct ClusterFields {
        /// Number of the rule on the server.
        flow_id as "flowId": i64 = 0, ANY;
        /// What the count is for.
        threshold_type as "thresholdType": ClusterThreshold = ClusterThreshold::AverageLocal, THRESHOLDS;
        /// Whether the rule acts alone while no server answers.
        fallback as "fallbackToLocalWhenFail": Option<bool> = None, Maybe(Flag, "true");
        /// Not used by the server.
        strategy: i64 = 0, ANY;
        /// Buckets of the server's window.
        sample_count as "sampleCount": u32 = 10, Whole { min: 1, max: 1_000 };
        /// Length of the server's window.
        window_interval_ms as "windowIntervalMs": i64 = 1_000, Whole { min: 1, max: 3_600_000 };
        /// How long the server waits for a resource.
        resource_timeout as "resourceTimeout": i64 = 2_000, UpTo(3_600_000);
        /// Not used by the client.
        resource_timeout_strategy as "resourceTimeoutStrategy": i64 = 0, ANY;
        /// Not used by the client.
        acquire_refuse_strategy as "acquireRefuseStrategy": i64 = 0, ANY;
        /// How long the server keeps the tokens of a client that is gone.
        client_offline_time as "clientOfflineTime": i64 = 2_000, UpTo(3_600_000);
    }
}

impl ClusterFields {
    /// The cluster part in our form; none where `clusterMode` is off.
    pub(super) fn ours(
        mode: bool,
        config: Option<&Self>,
        section: &mut Section<'_, '_>,
    ) -> Option<Cluster> {
        if !mode {
            return None;
        }
        let fields = config.cloned().unwrap_or_default();
        let flow_id = u64::try_from(fields.flow_id).ok().filter(|id| *id > 0);
        let Some(flow_id) = flow_id else {
            let keys = ["clusterConfig.flowId", "clusterConfig", "clusterMode"];
            section.refuse(&keys, "a `flowId` over 0", "clusterMode is on");
            return None;
        };
        let cluster = Cluster {
            flow_id,
            threshold: fields.threshold_type,
            fallback_to_local: fields.fallback,
            sample_count: fields.sample_count,
            window: millis(fields.window_interval_ms),
            resource_timeout: millis(fields.resource_timeout),
            client_offline_time: millis(fields.client_offline_time),
        };
        let keys = [
            "clusterConfig.windowIntervalMs",
            "clusterConfig.sampleCount",
        ];
        check_window(&cluster, section, keys);
        Some(cluster)
    }
}
