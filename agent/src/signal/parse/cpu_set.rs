//! Lists of CPUs such as `0-1,4,7-9`, and sets of them.

use crate::procfs::NoValue;
use crate::procfs::parse::number;

/// Bits in one word of a set.
const WORD_BITS: usize = 64;
/// Words of a set: 8192 CPUs, the most that Linux is built for.
const WORDS: usize = 128;

/// A set of CPU numbers, of fixed size so that it can be copied without allocating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuSet {
    words: [u64; WORDS],
    /// Words up to the last that is not zero. A tick goes through the sets of each group several times, and most hosts
    /// have one word.
    used: usize,
}

impl CpuSet {
    /// The set without CPUs.
    pub(crate) const EMPTY: Self = Self {
        words: [0; WORDS],
        used: 0,
    };

    /// Puts one CPU in; a number beyond 8191 is refused with `None`.
    pub(crate) fn insert(&mut self, cpu: u64) -> Option<()> {
        let cpu = usize::try_from(cpu).ok()?;
        let place = cpu / WORD_BITS;
        *self.words.get_mut(place)? |= 1 << (cpu % WORD_BITS);
        self.used = self.used.max(place.saturating_add(1));
        Some(())
    }

    fn used(&self) -> &[u64] {
        self.words.get(..self.used).unwrap_or_default()
    }

    /// Whether a CPU is in it.
    pub(crate) fn contains(&self, cpu: u64) -> bool {
        let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
        let word = self.words.get(cpu / WORD_BITS);
        word.is_some_and(|word| word >> (cpu % WORD_BITS) & 1 != 0)
    }

    /// Adds all CPUs that are in `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(other.used()) {
            *word |= more;
        }
        self.used = self.used.max(other.used);
    }

    /// How many CPUs are in it.
    pub(crate) fn count(&self) -> u32 {
        self.used().iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no CPU is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Whether the two have a CPU in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let mut words = self.used().iter().zip(other.used());
        words.any(|(word, mask)| word & mask != 0)
    }

    /// Takes away all CPUs that are not in `other`.
    pub(crate) fn keep_only(&mut self, other: &Self) {
        let words = self.words.iter_mut().take(self.used);
        let mut used = 0;
        for ((place, word), mask) in (1..).zip(words).zip(&other.words) {
            *word &= mask;
            if *word != 0 {
                used = place;
            }
        }
        self.used = used;
    }
}

/// Reads a list of CPU numbers and ranges. A list without content is the empty set, which stands for
/// "as the parent" in the cpuset controller.
///
/// # Errors
/// [`NoValue::Malformed`] for anything that is not a list.
pub(crate) fn parse(bytes: &[u8]) -> Result<CpuSet, NoValue> {
    let mut set = CpuSet::EMPTY;
    let list = bytes.trim_ascii();
    if list.is_empty() {
        return Ok(set);
    }
    for part in list.split(|&byte| byte == b',') {
        insert_range(&mut set, part).ok_or(NoValue::Malformed("the list of CPUs"))?;
    }
    Ok(set)
}

fn insert_range(set: &mut CpuSet, part: &[u8]) -> Option<()> {
    let mut ends = part.splitn(2, |&byte| byte == b'-');
    let first = number(ends.next()?)?;
    let last = match ends.next() {
        Some(word) => number(word)?,
        None => first,
    };
    if last < first {
        return None;
    }
    (first..=last).try_for_each(|cpu| set.insert(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(list: &str) -> Result<u32, NoValue> {
        parse(list.as_bytes()).map(|set| set.count())
    }

    #[test]
    fn lists_and_overlapping_ranges_are_counted_once() {
        assert_eq!(count("0-1,4\n"), Ok(3));
        assert_eq!(count("0-3,2-5"), Ok(6));
        assert_eq!(count("0-1,4,7-9"), Ok(6));
        assert_eq!(count("8191"), Ok(1));
        assert_eq!(count("\n"), Ok(0));
    }

    #[test]
    fn what_is_not_a_list_is_a_fault() {
        for list in [
            "0-",
            "-1",
            "0,,1",
            "0-1,",
            "3-1",
            "a",
            "8192",
            "0-18446744073709551615",
        ] {
            assert!(count(list).is_err(), "{list}");
        }
    }

    #[test]
    fn sets_meet() {
        let (mut low, high) = (parse(b"0-3").unwrap(), parse(b"2-5").unwrap());
        assert!(low.meets(&high) && !low.meets(&parse(b"7").unwrap()));
        low.keep_only(&high);
        assert_eq!(low, parse(b"2-3").unwrap());
        let mut wide = parse(b"1,8000").unwrap();
        wide.keep_only(&parse(b"0-7999").unwrap());
        assert_eq!(wide, parse(b"1").unwrap());
        wide.add(&parse(b"70").unwrap());
        assert_eq!(wide, parse(b"1,70").unwrap());
        wide.keep_only(&CpuSet::EMPTY);
        assert!(wide.is_empty() && wide == CpuSet::EMPTY);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_set_or_a_fault(bytes: Vec<u8>) {
            let _read = parse(&bytes);
        }

        #[test]
        fn a_written_range_reads_back(first in 0_u32..8000, more in 0_u32..190) {
            prop_assert_eq!(count(&format!("{first}-{}\n", first + more)), Ok(more + 1));
        }
    }
}
