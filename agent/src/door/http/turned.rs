//! What the TCP port of the metrics turned away: counted, and told now and then.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::door::accept::Failures;
use crate::telemetry::scrape::Metrics;
pub(super) use crate::telemetry::turned::Why;

/// Counts what is turned away.
#[derive(Debug)]
pub(super) struct Turned {
    metrics: Arc<Metrics>,
    told: Mutex<Vec<(Why, Failures)>>,
}

impl Turned {
    pub(super) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        let told = Why::ALL.iter().map(|why| (*why, Failures::new(why.name())));
        Arc::new(Self {
            told: Mutex::new(told.collect()),
            metrics,
        })
    }

    pub(super) fn count(&self, why: Why) {
        self.metrics.turned().count(why);
        let mut told = self.told.lock();
        let own = told.iter_mut().find(|(known, _told)| *known == why);
        if let Some(times) = own.and_then(|(_why, failures)| failures.count_now()) {
            tracing::warn!(
                event = "scraper_turned_away",
                cause = why.name(),
                times,
                "turned away at http.metrics_listen: {}",
                why.remedy()
            );
        }
    }
}
