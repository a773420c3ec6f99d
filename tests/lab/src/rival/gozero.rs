//! The adaptive shedder of go-zero: while the smoothed CPU is over 90 %, or was within the last
//! second of a drop, both the mean and the present number in flight must be under
//! `max pass × least mean response time`, times a factor that falls with the CPU.

use super::window::Window;
use super::{Measured, Rival};

/// Smoothed CPU from which it sheds.
const MARK: f64 = 0.9;
/// What a sample of the CPU leaves of the smoothed one.
const DECAY: f64 = 0.95;
/// Length of a bucket, seconds.
const BUCKET_S: f64 = 0.1;
/// Weight of the newest number in flight in its mean.
const NEWEST: f64 = 0.1;
/// How long a hot CPU is remembered, seconds.
const COOL_S: f64 = 1.0;
/// Response time where nothing is known, seconds.
const UNKNOWN_RT_S: f64 = 1.0;

/// The shedder.
#[derive(Debug)]
pub(crate) struct Shedder {
    window: Window,
    cpu: f64,
    ticks: u32,
    flying: f64,
    hot_s: Option<f64>,
    dropped: bool,
}

impl Default for Shedder {
    fn default() -> Self {
        Self {
            window: Window::new(BUCKET_S, 50),
            cpu: 0.0,
            ticks: 0,
            flying: 0.0,
            hot_s: None,
            dropped: false,
        }
    }
}

impl Shedder {
    fn is_hot(&mut self, now_s: f64) -> bool {
        if self.cpu >= MARK {
            self.hot_s = Some(now_s);
            return true;
        }
        let still = self.dropped && self.hot_s.is_some_and(|hot_s| now_s - hot_s < COOL_S);
        self.dropped = still;
        still
    }

    fn is_over(&mut self, now_s: f64, inflight: u32) -> bool {
        let most = self.window.most(now_s).unwrap_or(1.0).max(1.0);
        let least_s = self.window.least_mean_s(now_s).unwrap_or(UNKNOWN_RT_S);
        let factor = ((1.0 - self.cpu) / (1.0 - MARK)).clamp(0.1, 1.0);
        let limit = (most / BUCKET_S * least_s).max(1.0) * factor;
        self.flying > limit && f64::from(inflight) > limit
    }
}

impl Rival for Shedder {
    fn admits(&mut self, now_s: f64, inflight: u32) -> bool {
        let over = self.is_hot(now_s) && self.is_over(now_s, inflight);
        self.dropped |= over;
        !over
    }

    fn ended(&mut self, now_s: f64, rt_s: f64, inflight: u32) {
        self.flying = self.flying * (1.0 - NEWEST) + f64::from(inflight) * NEWEST;
        self.window.add(now_s, rt_s);
    }

    fn tick(&mut self, measured: Measured) {
        // A sample each 250 ms: at every second and third tick in turn.
        self.ticks = (self.ticks + 1) % 5;
        if self.ticks == 0 || self.ticks == 2 {
            self.cpu = self.cpu * DECAY + measured.busy * (1.0 - DECAY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_cpu_with_many_in_flight_sheds() {
        let mut shedder = Shedder::default();
        (0..20).for_each(|_| shedder.ended(0.05, 0.05, 40));
        shedder.cpu = 0.9;
        // 200 a second for 50 ms: 10.
        assert!(shedder.admits(0.2, 10));
        assert!(!shedder.admits(0.2, 11));
        shedder.cpu = 0.5;
        assert!(!shedder.admits(0.9, 11), "it was hot within a second");
        assert!(shedder.admits(1.3, 11));
    }
}
