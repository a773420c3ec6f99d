//! Probes that a library declares: the notes of its section `.note.stapsdt`.
//!
//! A library may be anybody's: any bytes give probes or a fault, and little of it is read.

use std::fs::File;

use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef};

const NOTES: &str = ".note.stapsdt";
/// Section whose address the notes were written with; the difference is what a prelink moved.
const BASE: &str = ".stapsdt.base";
/// Largest section that is read. The 566 probes of a JVM take 53 KB.
const NOTES_MAX: u64 = 1 << 20;

/// Why a library's probes cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UsdtFault {
    /// Not ELF.
    #[error("it is no ELF file: {0}")]
    NotElf(String),
    /// It has no such section, or a monstrous one.
    #[error(
        "it declares no probes ({NOTES}); a JVM has them when it was built with DTrace support"
    )]
    None,
}

/// A probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) provider: String,
    pub(super) name: String,
    /// Where it is in the file.
    pub(super) place: u64,
}

/// The probes of a library.
pub(super) fn of_file(file: File) -> Result<Vec<Probe>, UsdtFault> {
    of(&ReadCache::new(file))
}

#[expect(single_use_lifetimes, reason = "`impl ReadRef<'_>` is not stable")]
fn of<'d>(data: impl ReadRef<'d>) -> Result<Vec<Probe>, UsdtFault> {
    let elf = object::File::parse(data).map_err(|error| UsdtFault::NotElf(error.to_string()))?;
    let section = elf.section_by_name(NOTES).ok_or(UsdtFault::None)?;
    if section.size() > NOTES_MAX {
        return Err(UsdtFault::None);
    }
    let base = elf.section_by_name(BASE).map(|section| section.address());
    let notes = section
        .data()
        .map_err(|error| UsdtFault::NotElf(error.to_string()))?;
    let placed = |note: Note| {
        let moved = base.map_or(0, |base| base.wrapping_sub(note.base));
        let place = file_place(&elf, note.address.wrapping_add(moved))?;
        Some(Probe {
            provider: note.provider,
            name: note.name,
            place,
        })
    };
    Ok(parse(notes).into_iter().filter_map(placed).collect())
}

/// Where an address is in the file.
fn file_place<'d>(elf: &object::File<'d, impl ReadRef<'d>>, address: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let inside = address.checked_sub(segment.address())?;
        let (begin, length) = segment.file_range();
        (inside < length).then(|| begin.checked_add(inside))?
    })
}

/// A note as it is written.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    address: u64,
    base: u64,
    provider: String,
    name: String,
}

/// Notes: sizes of name and description, type; name; description. Parts are padded to 4 bytes.
fn parse(mut bytes: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    while let Some((note, rest)) = first(bytes) {
        notes.extend(note);
        bytes = rest;
    }
    notes
}

/// The first note, if it is one of a probe, and what follows it.
fn first(bytes: &[u8]) -> Option<(Option<Note>, &[u8])> {
    let (sizes, rest) = bytes.split_first_chunk::<12>()?;
    let [name, description, _kind] = words::<3>(sizes)?;
    let (_owner, rest) = split_padded(rest, name)?;
    let (description, rest) = split_padded(rest, description)?;
    Some((probe(description), rest))
}

fn split_padded(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(length).ok()?;
    let (part, _rest) = bytes.split_at_checked(length)?;
    let padded = length.checked_next_multiple_of(4)?.min(bytes.len());
    Some((part, bytes.get(padded..)?))
}

/// Address, base, semaphore; then provider, name and arguments, each with its 0.
fn probe(description: &[u8]) -> Option<Note> {
    let (numbers, texts) = description.split_first_chunk::<24>()?;
    let (numbers, _rest) = numbers.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut texts = texts.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    Some(Note {
        address: numbers.next()?,
        base: numbers.next()?,
        provider: texts.next()?.into_owned(),
        name: texts.next()?.into_owned(),
    })
}

fn words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let (words, _rest) = bytes.as_chunks::<4>();
    let words: Vec<u32> = words
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(provider: &str, name: &str, address: u64) -> Vec<u8> {
        let texts = format!("{provider}\0{name}\0\0");
        let length = u32::try_from(24 + texts.len()).unwrap();
        let mut bytes: Vec<u8> = [8, length, 3]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        bytes.extend(b"stapsdt\0");
        bytes.extend([address, 9, 0].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(texts.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn notes_follow_each_other_and_name_their_probes() {
        let bytes = [
            note("hotspot", "gc__begin", 7),
            note("hotspot", "gc__end", 8),
        ]
        .concat();
        let notes = parse(&bytes);
        let told: Vec<_> = notes
            .iter()
            .map(|note| (&*note.name, note.address, note.base))
            .collect();
        assert_eq!(told, [("gc__begin", 7, 9), ("gc__end", 8, 9)]);
    }

    #[test]
    fn what_is_no_elf_or_has_no_probes_says_so() {
        assert!(matches!(of(&b"#!/bin/sh\n"[..]), Err(UsdtFault::NotElf(_))));
        let own = std::fs::read("/proc/self/exe").unwrap();
        // A test binary of Rust declares no probes of its own.
        assert_eq!(of(&own[..]), Err(UsdtFault::None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_notes_or_nothing(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200), lengths: [u32; 2]
        ) {
            for (place, length) in lengths.iter().enumerate() {
                if let Some(room) = bytes.get_mut(place * 4..place * 4 + 4) {
                    room.copy_from_slice(&(length % 64).to_le_bytes());
                }
            }
            let _notes = parse(&bytes);
            let _probes = of(&bytes[..]);
        }
    }
}
