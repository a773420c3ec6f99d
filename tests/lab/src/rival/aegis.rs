//! The BBR limiter of aegis: while the smoothed CPU is over 80 %, and a second beyond, at most
//! `max pass of a bucket × buckets a second × least mean response time` are in flight.

use super::window::Window;
use super::{Measured, Rival};

/// Smoothed CPU from which it sheds.
const MARK: f64 = 0.8;
/// What a sample of the CPU leaves of the smoothed one.
const DECAY: f64 = 0.95;
/// Ticks in a sample of the CPU.
const TICKS: u32 = 5;
/// Buckets of a second.
const BUCKETS: f64 = 10.0;
/// How long the last drop is remembered, seconds.
const REMEMBERED_S: f64 = 1.0;

/// The limiter.
#[derive(Debug)]
pub(crate) struct Bbr {
    window: Window,
    cpu: f64,
    sum: f64,
    ticks: u32,
    dropped_s: Option<f64>,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            window: Window::new(1.0 / BUCKETS, 100),
            cpu: 0.0,
            sum: 0.0,
            ticks: 0,
            dropped_s: None,
        }
    }
}

impl Bbr {
    fn is_over(&mut self, now_s: f64, inflight: u32) -> bool {
        let most = self.window.most(now_s).unwrap_or(1.0);
        // Milliseconds, rounded up; one where nothing is known.
        let least_ms = self
            .window
            .least_mean_s(now_s)
            .map_or(1.0, |s| (s * 1e3).ceil());
        let limit = (most * least_ms * BUCKETS / 1e3 + 0.5).floor();
        inflight > 1 && f64::from(inflight) > limit
    }
}

impl Rival for Bbr {
    fn admits(&mut self, now_s: f64, inflight: u32) -> bool {
        if self.cpu < MARK {
            let Some(dropped_s) = self.dropped_s else {
                return true;
            };
            if now_s - dropped_s <= REMEMBERED_S {
                return !self.is_over(now_s, inflight);
            }
            self.dropped_s = None;
            return true;
        }
        let over = self.is_over(now_s, inflight);
        if over && self.dropped_s.is_none() {
            self.dropped_s = Some(now_s);
        }
        !over
    }

    fn ended(&mut self, now_s: f64, rt_s: f64, _inflight: u32) {
        self.window.add(now_s, rt_s);
    }

    fn tick(&mut self, measured: Measured) {
        self.sum += measured.busy;
        self.ticks += 1;
        if self.ticks == TICKS {
            self.cpu = self.cpu * DECAY + self.sum / f64::from(TICKS) * (1.0 - DECAY);
            (self.sum, self.ticks) = (0.0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_cpu_limits_to_what_the_best_bucket_had_in_flight() {
        let mut bbr = Bbr::default();
        // 20 requests of 50 ms in a bucket: 200 a second, 10 in flight.
        (0..20).for_each(|_| bbr.ended(0.05, 0.05, 0));
        assert!(bbr.admits(0.2, 500), "the CPU is cold");
        bbr.cpu = 0.9;
        assert!(bbr.admits(0.2, 10));
        assert!(!bbr.admits(0.2, 11));
        bbr.cpu = 0.1;
        assert!(!bbr.admits(1.1, 11), "a drop is remembered for a second");
        assert!(bbr.admits(1.3, 500));
    }

    #[test]
    fn a_full_cpu_is_over_the_mark_only_after_many_samples() {
        let mut bbr = Bbr::default();
        let full = Measured { busy: 1.0 };
        (0..31 * TICKS).for_each(|_| bbr.tick(full));
        assert!(bbr.cpu < MARK);
        (0..TICKS).for_each(|_| bbr.tick(full));
        assert!(bbr.cpu >= MARK);
    }
}
