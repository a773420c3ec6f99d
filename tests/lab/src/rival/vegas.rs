//! Vegas of concurrency-limits: the queue is `limit × (1 − least response time / this one)`; the limit
//! grows while the queue is short and falls while it is long.

use super::{Measured, Rival};

const START: f64 = 20.0;
const MOST: f64 = 1000.0;
/// The least response time is forgotten after about so many limits of requests.
const PROBE: f64 = 30.0;

/// The limit.
#[derive(Debug)]
pub(crate) struct Vegas {
    limit: f64,
    least_s: Option<f64>,
    since_probe: f64,
    jitter: f64,
    random: fastrand::Rng,
}

impl Default for Vegas {
    fn default() -> Self {
        Self {
            limit: START,
            least_s: None,
            since_probe: 0.0,
            jitter: 0.75,
            random: fastrand::Rng::with_seed(7),
        }
    }
}

impl Rival for Vegas {
    fn admits(&mut self, _now_s: f64, inflight: u32) -> bool {
        f64::from(inflight) < self.limit.floor()
    }

    fn ended(&mut self, _now_s: f64, rt_s: f64, inflight: u32) {
        self.since_probe += 1.0;
        if self.since_probe >= self.jitter * PROBE * self.limit {
            self.since_probe = 0.0;
            self.jitter = 0.5 + 0.5 * self.random.f64();
            self.least_s = Some(rt_s);
            return;
        }
        let least_s = match self.least_s {
            Some(least_s) if rt_s >= least_s => least_s,
            _ => {
                self.least_s = Some(rt_s);
                return;
            }
        };
        if f64::from(inflight) * 2.0 < self.limit {
            return;
        }
        let step = self.limit.log10().floor().max(1.0);
        let queue = (self.limit * (1.0 - least_s / rt_s)).ceil();
        let limit = if queue <= step {
            self.limit + 6.0 * step
        } else if queue < 3.0 * step {
            self.limit + step
        } else if queue > 6.0 * step {
            self.limit - step
        } else {
            self.limit
        };
        self.limit = limit.clamp(1.0, MOST);
    }

    fn tick(&mut self, _measured: Measured) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_queue_grows_the_limit_and_a_long_one_shrinks_it() {
        let mut vegas = Vegas::default();
        vegas.ended(0.0, 0.010, 100);
        vegas.ended(0.0, 0.010, 100);
        assert!((vegas.limit - 26.0).abs() < 1e-9);
        vegas.ended(0.0, 0.100, 100);
        assert!((vegas.limit - 25.0).abs() < 1e-9);
        vegas.ended(0.0, 0.100, 3);
        assert!(
            (vegas.limit - 25.0).abs() < 1e-9,
            "few in flight say nothing"
        );
    }
}
