//! No law: everything is admitted.

use super::{Measured, Rival};

/// Admits everything.
#[derive(Debug)]
pub(crate) struct Open;

impl Rival for Open {
    fn admits(&mut self, _now_s: f64, _inflight: u32) -> bool {
        true
    }

    fn ended(&mut self, _now_s: f64, _rt_s: f64, _inflight: u32) {}

    fn tick(&mut self, _measured: Measured) {}
}
