//! Whether a group uses more CPUs than it is read to have: then it is read wrongly.

use super::super::meter::to_f64;

/// Time over which use is compared.
const SPAN_NS: u64 = 1_000_000_000;
/// Use ÷ CPUs from which the number of CPUs is doubted. A second can meet eleven periods of 100 ms.
const SHARE_MAX: f64 = 1.1;
/// Use beyond that which the kernel's own steps explain, CPUs: it takes back later what a small quota was exceeded by.
const STEPS: f64 = 0.01;

/// Compares use and CPUs, a second at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Doubt {
    last_ns: Option<u64>,
    time_ns: u64,
    used_ns: f64,
    /// The most CPUs in this second: a limit may have been lowered in it.
    cpus: f64,
    is_exceeded: bool,
}

impl Doubt {
    /// Takes a sample; tells whether the last whole second had more use than CPUs.
    pub(super) fn take(&mut self, now_ns: u64, used: f64, cpus: f64) -> bool {
        let last_ns = self.last_ns.replace(now_ns);
        let elapsed_ns = last_ns.map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        self.time_ns = self.time_ns.saturating_add(elapsed_ns);
        self.used_ns += used * to_f64(elapsed_ns);
        self.cpus = self.cpus.max(cpus);
        if self.time_ns >= SPAN_NS {
            let used = self.used_ns / to_f64(self.time_ns);
            self.is_exceeded = used > self.cpus * SHARE_MAX + STEPS;
            (self.time_ns, self.used_ns, self.cpus) = (0, 0.0, 0.0);
        }
        self.is_exceeded
    }

    /// Use or CPUs are not known: nothing is doubted.
    pub(super) fn miss(&mut self, now_ns: u64) {
        *self = Self {
            last_ns: Some(now_ns),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 100_000_000;

    fn doubted(used: impl Fn(u64) -> f64, cpus: impl Fn(u64) -> f64) -> Option<u64> {
        let mut doubt = Doubt::default();
        (1..=50).find(|tick| doubt.take(tick * TICK_NS, used(*tick), cpus(*tick)))
    }

    #[test]
    fn field_s4_more_use_than_cpus_over_a_second_is_doubted() {
        assert_eq!(doubted(|_| 2.3, |_| 2.0), Some(11));
        assert_eq!(doubted(|_| 1.9, |_| 2.0), None);
        assert_eq!(doubted(|_| 2.15, |_| 2.0), None);
        assert_eq!(
            doubted(|tick| if tick == 7 { 8.0 } else { 1.0 }, |_| 2.0),
            None
        );
    }

    #[test]
    fn a_limit_that_is_lowered_is_no_reason_to_doubt() {
        let lowered = |tick| if tick < 15 { 4.0 } else { 1.0 };
        assert_eq!(doubted(lowered, lowered), None);
    }

    #[test]
    fn it_is_believed_again_after_a_second() {
        let mut doubt = Doubt::default();
        let told: Vec<_> = (1..=32)
            .map(|tick| doubt.take(tick * TICK_NS, if tick <= 11 { 3.0 } else { 1.0 }, 2.0))
            .collect();
        assert!(told[10] && told[19] && !told[21]);
    }
}
