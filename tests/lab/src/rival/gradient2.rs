//! Gradient2 of concurrency-limits: the limit follows the ratio of a long mean of the response time
//! to that of the last window.

use super::{Measured, Rival};

const LEAST: f64 = 20.0;
const MOST: f64 = 200.0;
/// Weight of the new limit.
const SMOOTHING: f64 = 0.2;
/// Requests that may queue.
const QUEUE: f64 = 4.0;
/// The response time may rise so many times before the limit falls.
const TOLERANCE: f64 = 1.5;
/// Windows in the long mean, and those that begin it.
const LONG: f64 = 600.0;
const WARM_UP: f64 = 10.0;
/// A window has this length and so many samples at least.
const WINDOW_S: f64 = 1.0;
const SAMPLES: f64 = 10.0;
/// Shorter response times are no samples, seconds.
const LEAST_RT_S: f64 = 1e-4;

/// The limit.
#[derive(Debug)]
pub(crate) struct Gradient {
    limit: f64,
    long_s: f64,
    windows: f64,
    began_s: f64,
    samples: f64,
    rt_s: f64,
    inflight: u32,
}

impl Default for Gradient {
    fn default() -> Self {
        Self {
            limit: LEAST,
            long_s: 0.0,
            windows: 0.0,
            began_s: 0.0,
            samples: 0.0,
            rt_s: 0.0,
            inflight: 0,
        }
    }
}

impl Gradient {
    /// Takes the mean response time of a window.
    fn window(&mut self, short_s: f64) {
        if self.windows < WARM_UP {
            self.windows += 1.0;
            self.long_s += (short_s - self.long_s) / self.windows;
        } else {
            let weight = 2.0 / (LONG + 1.0);
            self.long_s = self.long_s * (1.0 - weight) + short_s * weight;
        }
        // The load has gone: let the long mean come down sooner.
        if self.long_s / short_s > 2.0 {
            self.long_s *= 0.95;
        }
        if f64::from(self.inflight) < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * self.long_s / short_s).clamp(0.5, 1.0);
        let wanted = self.limit * gradient + QUEUE;
        let limit = self.limit * (1.0 - SMOOTHING) + wanted * SMOOTHING;
        self.limit = limit.clamp(LEAST, MOST);
    }
}

impl Rival for Gradient {
    fn admits(&mut self, _now_s: f64, inflight: u32) -> bool {
        f64::from(inflight) < self.limit.floor()
    }

    fn ended(&mut self, now_s: f64, rt_s: f64, inflight: u32) {
        if rt_s < LEAST_RT_S {
            return;
        }
        self.samples += 1.0;
        self.rt_s += rt_s;
        self.inflight = self.inflight.max(inflight.saturating_add(1));
        if now_s - self.began_s >= WINDOW_S && self.samples >= SAMPLES {
            self.window(self.rt_s / self.samples);
            (self.began_s, self.samples, self.rt_s, self.inflight) = (now_s, 0.0, 0.0, 0);
        }
    }

    fn tick(&mut self, _measured: Measured) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_grows_while_the_response_time_is_flat_and_falls_when_it_rises() {
        let mut gradient = Gradient {
            inflight: 1000,
            ..Gradient::default()
        };
        (0..50).for_each(|_| gradient.window(0.01));
        let grown = gradient.limit;
        assert!(grown > 50.0, "{grown}");
        (0..20).for_each(|_| gradient.window(0.1));
        assert!(gradient.limit < grown / 2.0, "{}", gradient.limit);
        assert!(gradient.admits(0.0, 19) && !gradient.admits(0.0, 200));
    }

    #[test]
    fn few_in_flight_leave_the_limit_alone() {
        let mut gradient = Gradient::default();
        (0..50).for_each(|_| gradient.window(0.01));
        assert!((gradient.limit - LEAST).abs() < 1e-9);
    }
}
