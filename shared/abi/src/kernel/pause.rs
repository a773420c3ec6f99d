//! What a JVM's probes tell: a record of the ring.
//!
//! ```text
//! word 0: [ process, 32 bits | kind, 32 bits ]
//! word 1: ns since boot, monotonic
//! ```

use crate::list::wire_enum;

wire_enum! {
    /// Which probe of a JVM was passed.
    PauseKind {
        /// Garbage collection has stopped the JVM.
        GcBegin = 1, "gc_begin";
        /// It goes on.
        GcEnd = 2, "gc_end";
        /// The JVM begins to stop its threads, for whatever reason.
        SafepointBegin = 3, "safepoint_begin";
        /// They go on.
        SafepointEnd = 4, "safepoint_end";
    }
}

/// Words of a record.
pub const WORDS: usize = 2;

/// A record taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeRecord {
    /// Which probe.
    pub kind: PauseKind,
    /// The process, as the first pid namespace counts.
    pub process: u32,
    /// When, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeFault {
    /// Not [`WORDS`] words long.
    Length(usize),
    /// A kind that no probe has.
    Kind(u32),
}

impl ProbeRecord {
    /// The words of a record.
    #[inline(always)]
    pub const fn words(kind: PauseKind, process: u32, at_ns: u64) -> [u64; WORDS] {
        [(process as u64) << 32 | kind as u64, at_ns]
    }

    /// Takes the bytes of a record apart.
    ///
    /// # Errors
    /// Bytes of another length, or of no kind.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProbeFault> {
        let length = ProbeFault::Length(bytes.len());
        let (head, rest) = bytes.split_first_chunk::<8>().ok_or(length)?;
        let time: &[u8; 8] = rest.try_into().map_err(|_length| length)?;
        let head = u64::from_le_bytes(*head);
        let (process, kind) = ((head >> 32) as u32, (head & 0xFFFF_FFFF) as u32);
        let known = u8::try_from(kind).ok().and_then(PauseKind::from_u8);
        Ok(Self {
            kind: known.ok_or(ProbeFault::Kind(kind))?,
            process,
            at_ns: u64::from_le_bytes(*time),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: [u64; WORDS]) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (head, time) = bytes.split_at_mut(8);
        head.copy_from_slice(&words[0].to_le_bytes());
        time.copy_from_slice(&words[1].to_le_bytes());
        bytes
    }

    #[test]
    fn a_record_comes_back_as_it_was_put_in() {
        for kind in PauseKind::ALL {
            let words = ProbeRecord::words(*kind, u32::MAX, 7);
            let record = ProbeRecord::decode(&bytes(words)).unwrap();
            assert_eq!(
                (record.kind, record.process, record.at_ns),
                (*kind, u32::MAX, 7)
            );
        }
    }

    #[test]
    fn other_lengths_and_kinds_are_faults() {
        for length in [0, 8, 15] {
            let decoded = ProbeRecord::decode(&[0; 16][..length]);
            assert_eq!(decoded, Err(ProbeFault::Length(length)));
        }
        assert_eq!(ProbeRecord::decode(&[0; 17]), Err(ProbeFault::Length(17)));
        for kind in [0, 5, 256, u64::from(u32::MAX)] {
            let fault = ProbeFault::Kind(u32::try_from(kind).unwrap());
            assert_eq!(ProbeRecord::decode(&bytes([kind, 0])), Err(fault));
        }
    }
}
