//! The part of a JVM's heap that garbage collection does not win back.
//!
//! What is in use rises until a collection and falls with it, so a heap is full where even the least of some time is
//! near the most. The least of the last 5 to 10 s is kept as that of two spans of 5 s; before one span is whole nothing
//! is said.

use super::sample::Sample;

/// Length of a span, ns.
const SPAN_NS: u64 = 5_000_000_000;

/// The least share of the heap in use.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct HeapFloor {
    /// Of the span before; `None` before the first was whole.
    before: Option<f64>,
    /// Of this span.
    least: Option<f64>,
    /// How long this span is by now, ns.
    span_ns: u64,
}

impl HeapFloor {
    /// Takes a tick's sample; the least in use, `None` while it is not known. Where the heap is not measured it is
    /// forgotten: the JVM may be another one afterwards.
    pub(super) fn step(&mut self, sample: &Sample) -> Option<f64> {
        let Some(used) = sample.heap_used else {
            *self = Self::default();
            return None;
        };
        self.least = Some(self.least.map_or(used, |least| least.min(used)));
        self.span_ns = self.span_ns.saturating_add(sample.tick_ns);
        if self.span_ns >= SPAN_NS {
            self.before = self.least.take();
            self.span_ns = 0;
        }
        let before = self.before?;
        Some(self.least.map_or(before, |least| least.min(before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(heap_used: Option<f64>) -> Sample {
        Sample {
            tick_ns: 1_000_000_000,
            heap_used,
            ..Sample::default()
        }
    }

    #[test]
    fn field_r13_a_heap_is_as_full_as_collections_leave_it() {
        let mut heap = HeapFloor::default();
        let mut step = |used| heap.step(&second(Some(used)));
        // Filled and won back again and again.
        for used in [0.5, 0.8, 0.99, 0.4] {
            assert_eq!(step(used), None, "too early to tell");
        }
        assert_eq!(step(0.99), Some(0.4));
        let floors: Vec<_> = [0.97; 10].map(&mut step).to_vec();
        assert_eq!(
            floors[4..9],
            [Some(0.97); 5],
            "of the last five to ten seconds"
        );
        assert_eq!(step(0.6), Some(0.6), "a collection shows at once");
    }

    #[test]
    fn a_heap_that_is_not_measured_is_forgotten() {
        let mut heap = HeapFloor::default();
        for _second in 0..6 {
            heap.step(&second(Some(0.99)));
        }
        assert_eq!(heap.step(&second(None)), None);
        assert_eq!(heap.step(&second(Some(0.99))), None);
    }
}
