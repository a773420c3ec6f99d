//! What a collector of a JVM counts, by the name that it gives to its counters.
//!
//! The number in a counter's name says little: what is collector 1 of one kind of heap stops the JVM for a full
//! collection, of another it counts each concurrent cycle. The names are those of JDK 8 to 25. A name that is not
//! among them is not guessed at.

use crate::procfs::NoValue;

/// Collectors of one JVM: young, old, and what runs beside the program.
const COLLECTORS: usize = 3;

/// What a collector's invocations and time are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Stops, none of them for the whole heap.
    Pauses,
    /// Stops for a full collection.
    FullPauses,
    /// Stops of both kinds.
    AnyPauses,
    /// Work that stops nobody as well.
    Anything,
}

const NAMES: [(&str, Counts); 25] = [
    // Serial.
    ("Copy", Counts::Pauses),
    ("MSC", Counts::FullPauses),
    ("Serial young collection pauses", Counts::Pauses),
    ("Serial full collection pauses", Counts::FullPauses),
    // Parallel.
    ("PSScavenge", Counts::Pauses),
    ("PSMarkSweep", Counts::FullPauses),
    ("PSParallelCompact", Counts::FullPauses),
    ("Parallel young collection pauses", Counts::Pauses),
    ("Parallel full collection pauses", Counts::FullPauses),
    // Concurrent mark and sweep: the older of its counters has its short stops too.
    ("PCopy", Counts::Pauses),
    ("CMS", Counts::AnyPauses),
    ("CMS young collection pauses", Counts::Pauses),
    ("CMS full collection pauses", Counts::FullPauses),
    ("CMS stop-the-world phases", Counts::Pauses),
    // G1.
    ("G1 incremental collections", Counts::Pauses),
    ("G1 young collection pauses", Counts::Pauses),
    ("G1 stop-the-world full collections", Counts::FullPauses),
    ("G1 full collection pauses", Counts::FullPauses),
    ("G1 concurrent cycle pauses", Counts::Pauses),
    // Z, of one generation and of two.
    ("stop-the-world", Counts::Pauses),
    ("Z concurrent cycle pauses", Counts::Pauses),
    ("ZGC minor collection pauses", Counts::Pauses),
    ("ZGC major collection pauses", Counts::Pauses),
    // Shenandoah counts each concurrent cycle, and never uses the first of its counters.
    ("Shenandoah partial", Counts::Anything),
    ("Shenandoah full", Counts::Anything),
];

/// Counters of one collector, as far as the JVM has them.
#[derive(Debug, Clone, Copy, Default)]
struct Collector {
    counts: Option<Counts>,
    invocations: Option<u64>,
    ticks: Option<u64>,
}

/// The collectors of a JVM.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::signal) struct Collectors([Option<Collector>; COLLECTORS]);

impl Collectors {
    /// Takes the counter of this name, without the `sun.gc.collector.` that it begins with.
    pub(in crate::signal) fn take(&mut self, name: &[u8], number: Option<u64>, text: &[u8]) {
        let Some((digit, field)) = name.split_first() else {
            return;
        };
        let place = usize::from(digit.wrapping_sub(b'0'));
        let Some(slot) = self.0.get_mut(place) else {
            return;
        };
        let collector = slot.get_or_insert_default();
        match field {
            b".name" => {
                let known = NAMES.iter().find(|(known, _)| known.as_bytes() == text);
                collector.counts = known.map(|(_name, counts)| *counts);
            }
            b".invocations" => collector.invocations = number,
            b".time" => collector.ticks = number,
            _ => {}
        }
    }

    /// Full collections that stopped the JVM, since it began.
    ///
    /// # Errors
    /// Why these counters do not tell it.
    pub(in crate::signal) fn full(&self) -> Result<u64, NoValue> {
        let mut full = Err(NoValue::NoFullGc);
        self.each(|collector, counts| match counts {
            Counts::Pauses => Ok(()),
            Counts::FullPauses => {
                let more = collector
                    .invocations
                    .ok_or(NoValue::NoField("invocations"))?;
                full = Ok(full.unwrap_or(0_u64).saturating_add(more));
                Ok(())
            }
            Counts::AnyPauses | Counts::Anything => Err(NoValue::CountsConcurrent),
        })?;
        full
    }

    /// Time for which collections stopped the JVM, in its ticks.
    ///
    /// # Errors
    /// Why these counters do not tell it.
    pub(in crate::signal) fn ticks(&self) -> Result<u64, NoValue> {
        let mut sum = 0_u64;
        self.each(|collector, counts| match counts {
            Counts::Pauses | Counts::FullPauses | Counts::AnyPauses => {
                sum = sum.saturating_add(collector.ticks.ok_or(NoValue::NoField("time"))?);
                Ok(())
            }
            Counts::Anything => Err(NoValue::CountsConcurrent),
        })?;
        Ok(sum)
    }

    fn each(
        &self,
        mut visit: impl FnMut(&Collector, Counts) -> Result<(), NoValue>,
    ) -> Result<(), NoValue> {
        if self.0.iter().flatten().next().is_none() {
            return Err(NoValue::NoField("sun.gc.collector.0.name"));
        }
        for collector in self.0.iter().flatten() {
            visit(
                collector,
                collector.counts.ok_or(NoValue::UnknownCollector)?,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(collectors: &[(u8, &str, u64, u64)]) -> [Result<u64, NoValue>; 2] {
        let mut told = Collectors::default();
        for (place, name, invocations, ticks) in collectors {
            let field = |field: &str| format!("{place}.{field}");
            told.take(field("name").as_bytes(), None, name.as_bytes());
            told.take(field("invocations").as_bytes(), Some(*invocations), b"");
            told.take(field("time").as_bytes(), Some(*ticks), b"");
        }
        [told.full(), told.ticks()]
    }

    #[test]
    fn field_s2_collectors_are_known_by_name_and_what_each_counts() {
        let concurrent = Err(NoValue::CountsConcurrent);
        for (collectors, full, ticks) in [
            // As JDK 17 and 25 write them.
            (
                vec![
                    (0, "Serial young collection pauses", 12, 25),
                    (1, "Serial full collection pauses", 2, 4),
                ],
                Ok(2),
                Ok(29),
            ),
            (
                vec![
                    (0, "G1 young collection pauses", 26, 141),
                    (1, "G1 full collection pauses", 1, 10),
                    (2, "G1 concurrent cycle pauses", 8, 3),
                ],
                Ok(1),
                Ok(154),
            ),
            (
                vec![
                    (0, "Shenandoah partial", 0, 0),
                    (1, "Shenandoah full", 1356, 643),
                ],
                concurrent,
                concurrent,
            ),
            (
                vec![(2, "Z concurrent cycle pauses", 75, 5)],
                Err(NoValue::NoFullGc),
                Ok(5),
            ),
            (
                vec![
                    (0, "ZGC minor collection pauses", 97, 4),
                    (2, "ZGC major collection pauses", 45, 3),
                ],
                Err(NoValue::NoFullGc),
                Ok(7),
            ),
        ] {
            assert_eq!(told(&collectors), [full, ticks], "{collectors:?}");
        }
    }

    #[test]
    fn field_s2_collectors_of_jdk_8_are_known_as_well() {
        let concurrent = Err(NoValue::CountsConcurrent);
        for (collectors, full, ticks) in [
            (
                vec![(0, "PCopy", 9, 9), (1, "CMS", 6, 2)],
                concurrent,
                Ok(11),
            ),
            (
                vec![(0, "PSScavenge", 9, 9), (1, "PSMarkSweep", 6, 2)],
                Ok(6),
                Ok(11),
            ),
            (
                vec![
                    (0, "G1 incremental collections", 9, 9),
                    (1, "G1 stop-the-world full collections", 6, 2),
                ],
                Ok(6),
                Ok(11),
            ),
        ] {
            assert_eq!(told(&collectors), [full, ticks], "{collectors:?}");
        }
    }

    #[test]
    fn field_s2_an_unknown_name_is_not_guessed_at() {
        let unknown = Err(NoValue::UnknownCollector);
        for name in [
            "",
            "Serial",
            "G1 full collection pauses ",
            "Quantum full pauses",
        ] {
            let collectors = [(0, "Copy", 3, 3), (1, name, 5, 5)];
            assert_eq!(told(&collectors), [unknown, unknown], "{name}");
        }
        let none = Err(NoValue::NoField("sun.gc.collector.0.name"));
        assert_eq!(told(&[]), [none, none]);
    }
}
