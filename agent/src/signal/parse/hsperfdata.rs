//! `hsperfdata`: the counters that a `HotSpot` JVM keeps in a file which it maps, format version 2.
//!
//! A header of 32 bytes (magic `cafec0c0`, byte order, version, a flag "ready", where the entries begin
//! and how many there are), then entries: length, offset of the name, length of the vector, type,
//! flags, unit, variability, offset of the value, each relative to the entry.

use super::super::jvm::Collectors;
use crate::procfs::NoValue;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 20;
/// Type letters of the JVM: a 64-bit number, and bytes of text.
const LONG: u8 = b'J';
const TEXT: u8 = b'B';
/// What the names of collectors' counters begin with.
const COLLECTOR: &[u8] = b"sun.gc.collector.";

/// What the signals need of it. Each is `None` where this JVM has no such counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JvmCounters {
    /// Full collections since the JVM began: those that stop it for the whole heap.
    pub(crate) full_gcs: Result<u64, NoValue>,
    /// Time in collections that stop the JVM, in ticks of `ticks_per_s`.
    pub(crate) gc_ticks: Result<u64, NoValue>,
    /// Ticks in a second.
    pub(crate) ticks_per_s: Option<u64>,
    /// Heap in use, bytes.
    pub(crate) heap_used: Option<u64>,
    /// Most heap that it may use, bytes.
    pub(crate) heap_max: Option<u64>,
}

/// Reads the counters. The JVM writes while we read: each number is whole, but two need not be of the
/// same moment.
///
/// # Errors
/// [`NoValue::Malformed`] for what is not such a file, or one that the JVM has not made ready yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<JvmCounters, NoValue> {
    let file = File::new(bytes)?;
    let mut collectors = Collectors::default();
    let (mut ticks_per_s, mut heap_used) = (None, None);
    let mut generations = [0_u64; 2];
    let mut is_shared_heap = false;
    file.each_entry(|entry| {
        let number = entry.number();
        match entry.name {
            b"sun.os.hrt.frequency" => ticks_per_s = number,
            b"sun.gc.generation.0.maxCapacity" => generations[0] = number.unwrap_or(0),
            b"sun.gc.generation.1.maxCapacity" => generations[1] = number.unwrap_or(0),
            b"sun.gc.policy.name" => is_shared_heap |= entry.text().starts_with(b"GarbageFirst"),
            name if is_heap_space_used(name) => add(&mut heap_used, number),
            name => {
                if let Some(name) = name.strip_prefix(COLLECTOR) {
                    collectors.take(name, number, entry.text());
                    is_shared_heap |= entry.text().starts_with(b"ZGC ");
                }
            }
        }
    });
    let [young, old] = generations;
    // Each generation of G1 and of ZGC may become the whole heap; those of other collectors share it.
    let max = if is_shared_heap {
        young.max(old)
    } else {
        young.saturating_add(old)
    };
    Ok(JvmCounters {
        full_gcs: collectors.full(),
        gc_ticks: collectors.ticks(),
        ticks_per_s,
        heap_used,
        heap_max: (max > 0).then_some(max),
    })
}

fn add(sum: &mut Option<u64>, number: Option<u64>) {
    if let Some(number) = number {
        *sum = Some(sum.unwrap_or(0).saturating_add(number));
    }
}

/// `sun.gc.generation.G.space.S.used`, for the two generations of the heap.
fn is_heap_space_used(name: &[u8]) -> bool {
    let rest = name
        .strip_prefix(b"sun.gc.generation.")
        .and_then(|rest| rest.strip_suffix(b".used"));
    matches!(
        rest,
        Some([b'0' | b'1', b'.', b's', b'p', b'a', b'c', b'e', b'.', ..])
    )
}

/// A file whose header was found right.
struct File<'a> {
    bytes: &'a [u8],
    is_little: bool,
    first_entry: usize,
    entries: u32,
}

struct Entry<'a> {
    name: &'a [u8],
    kind: u8,
    is_little: bool,
    /// From the value to the end of the entry.
    value: &'a [u8],
}

impl<'a> File<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, NoValue> {
        let header = bytes
            .get(..HEADER_BYTES)
            .ok_or(NoValue::NoField("header"))?;
        let (magic, rest) = header
            .split_at_checked(4)
            .ok_or(NoValue::NoField("header"))?;
        let [order, 2, _minor, ready, ..] = *rest else {
            return Err(NoValue::Malformed("the version"));
        };
        if magic != MAGIC {
            return Err(NoValue::Malformed("the magic number"));
        }
        if ready != 1 {
            return Err(NoValue::Malformed("the flag of a JVM that is up"));
        }
        let is_little = order == 1;
        let first_entry = u32_at(header, 24, is_little).and_then(|at| usize::try_from(at).ok());
        Ok(Self {
            bytes,
            is_little,
            first_entry: first_entry.ok_or(NoValue::Malformed("the offset of the entries"))?,
            entries: u32_at(header, 28, is_little).ok_or(NoValue::NoField("entries"))?,
        })
    }

    /// Visits entries until one does not lie within the file.
    fn each_entry(&self, mut visit: impl FnMut(&Entry<'a>)) {
        let mut at = self.first_entry;
        for _entry in 0..self.entries {
            let Some((entry, length)) = self.entry(at) else {
                return;
            };
            visit(&entry);
            at = at.saturating_add(length);
        }
    }

    fn entry(&self, at: usize) -> Option<(Entry<'a>, usize)> {
        let rest = self.bytes.get(at..)?;
        let field = |offset| usize::try_from(u32_at(rest, offset, self.is_little)?).ok();
        let length = field(0).filter(|length| *length >= ENTRY_BYTES)?;
        let entry = rest.get(..length)?;
        let name = until_zero(entry.get(field(4)?..)?);
        let value = entry.get(field(16)?..)?;
        Some((
            Entry {
                name,
                kind: *entry.get(12)?,
                is_little: self.is_little,
                value,
            },
            length,
        ))
    }
}

impl Entry<'_> {
    /// The value of a 64-bit counter; a negative one is none.
    fn number(&self) -> Option<u64> {
        let bytes = *self
            .value
            .first_chunk::<8>()
            .filter(|_| self.kind == LONG)?;
        let number = if self.is_little {
            i64::from_le_bytes(bytes)
        } else {
            i64::from_be_bytes(bytes)
        };
        u64::try_from(number).ok()
    }

    fn text(&self) -> &[u8] {
        if self.kind == TEXT {
            until_zero(self.value)
        } else {
            &[]
        }
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn u32_at(bytes: &[u8], at: usize, is_little: bool) -> Option<u32> {
    let bytes = *bytes.get(at..)?.first_chunk::<4>()?;
    Some(if is_little {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    })
}

/// A file as a JVM makes it, for tests.
#[cfg(test)]
pub(crate) fn made(counters: &[(&str, i64)], texts: &[(&str, &str)]) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut push = |name: &str, kind: u8, value: &[u8]| {
        let value_at = (ENTRY_BYTES + name.len() + 1).next_multiple_of(8);
        let length = (value_at + value.len()).next_multiple_of(8);
        let mut entry = Vec::new();
        for field in [length, ENTRY_BYTES, 0] {
            entry.extend(u32::try_from(field).unwrap().to_le_bytes());
        }
        entry.extend([kind, 1, 1, 3]);
        entry.extend(u32::try_from(value_at).unwrap().to_le_bytes());
        entry.extend(name.as_bytes());
        entry.resize(value_at, 0);
        entry.extend(value);
        entry.resize(length, 0);
        entries.extend(entry);
    };
    for (name, value) in counters {
        push(name, LONG, &value.to_le_bytes());
    }
    for (name, value) in texts {
        push(name, TEXT, value.as_bytes());
    }
    let count = u32::try_from(counters.len() + texts.len()).unwrap();
    let mut bytes = Vec::from(MAGIC);
    bytes.extend([1, 2, 0, 1]);
    bytes.resize(24, 0);
    bytes.extend(32_u32.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(entries);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parallel() -> Vec<u8> {
        made(
            &[
                ("sun.gc.collector.0.time", 5),
                ("sun.gc.collector.1.invocations", 3),
                ("sun.gc.collector.1.time", 7),
                ("sun.os.hrt.frequency", 1000),
                ("sun.gc.generation.0.maxCapacity", 100),
                ("sun.gc.generation.1.maxCapacity", 300),
                ("sun.gc.generation.0.space.0.used", 10),
                ("sun.gc.generation.1.space.0.used", 20),
                ("sun.gc.metaspace.used", 999),
            ],
            &[
                ("sun.gc.policy.name", "ParScav:MSC"),
                ("sun.gc.collector.0.name", "PSScavenge"),
                ("sun.gc.collector.1.name", "PSParallelCompact"),
            ],
        )
    }

    #[test]
    fn the_counters_of_a_jvm_are_read() {
        let wanted = JvmCounters {
            full_gcs: Ok(3),
            gc_ticks: Ok(12),
            ticks_per_s: Some(1000),
            heap_used: Some(30),
            heap_max: Some(400),
        };
        assert_eq!(parse(&parallel()), Ok(wanted));
    }

    #[test]
    fn the_heap_of_g1_is_one_and_zgc_stops_for_no_full_collection() {
        let heap = [
            ("sun.gc.generation.0.maxCapacity", 64),
            ("sun.gc.generation.1.maxCapacity", 64),
        ];
        let g1 = parse(&made(&heap, &[("sun.gc.policy.name", "GarbageFirst")])).unwrap();
        assert_eq!(g1.heap_max, Some(64));
        let major = [("sun.gc.collector.2.invocations", 9)];
        let name = [("sun.gc.collector.2.name", "ZGC major collection pauses")];
        let z = parse(&made(&[heap.as_slice(), &major].concat(), &name)).unwrap();
        assert_eq!((z.full_gcs, z.heap_max), (Err(NoValue::NoFullGc), Some(64)));
    }

    #[test]
    fn cut_at_every_byte_it_gives_true_counters_or_none() {
        let (bytes, whole) = (parallel(), parse(&parallel()).unwrap());
        for end in 0..bytes.len() {
            let Ok(cut) = parse(&bytes[..end]) else {
                continue;
            };
            assert!(cut.full_gcs.is_err() || cut.full_gcs == whole.full_gcs);
            assert!(cut.ticks_per_s.is_none() || cut.ticks_per_s == whole.ticks_per_s);
        }
    }

    #[test]
    fn other_files_and_a_jvm_that_is_not_up_are_faults() {
        for (at, fault) in [
            (0, "the magic number"),
            (5, "the version"),
            (7, "the flag of a JVM that is up"),
        ] {
            let mut bytes = parallel();
            bytes[at] = 0x55;
            assert_eq!(parse(&bytes), Err(NoValue::Malformed(fault)));
        }
        assert_eq!(parse(b""), Err(NoValue::NoField("header")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decided(noise: Vec<u8>, at in 0_usize..600) {
            let mut bytes = parallel();
            for (slot, byte) in bytes.iter_mut().skip(at).zip(&noise) {
                *slot = *byte;
            }
            let _read = (parse(&bytes), parse(&noise));
        }
    }
}
