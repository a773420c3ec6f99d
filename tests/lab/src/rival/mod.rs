//! Other laws, each written from its public formula, behind one trait. They live in the lab alone.

pub(crate) mod aegis;
pub(crate) mod gozero;
pub(crate) mod gradient2;
pub(crate) mod none;
pub(crate) mod sentinel;
pub(crate) mod vegas;
mod window;

use std::fmt::Debug;

/// What a law hears of the machine every 100 ms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Busy share of the service's CPU.
    pub busy: f64,
}

/// A law that decides in the service.
pub(crate) trait Rival: Send + Debug {
    /// Whether a request may go on; `inflight` is without it.
    fn admits(&mut self, now_s: f64, inflight: u32) -> bool;

    /// A request was answered after `rt_s`; `inflight` is without it.
    fn ended(&mut self, now_s: f64, rt_s: f64, inflight: u32);

    /// 100 ms have passed.
    fn tick(&mut self, measured: Measured);
}
