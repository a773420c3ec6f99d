//! Where this kernel keeps its fields, from its own description of its types (BTF).
//!
//! Names change between kernels, and a program is not adapted by its loader, so offsets are looked up
//! here and given to the programs as constants. The format is that of the kernel's
//! `Documentation/bpf/btf.rst`; any bytes give an answer or a fault.

use std::str::from_utf8;

/// The file in which the kernel describes its types.
pub(super) const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u32 = 0xEB9F;
/// Bytes of a type before what its kind adds.
const HEAD: usize = 12;
/// Longest chain of names for one type, and deepest struct without a name.
const DEPTH_MAX: u32 = 32;

/// Why a name could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BtfFault {
    /// Not BTF, or cut off.
    #[error("{VMLINUX} is not what kernels describe their types with")]
    Malformed,
    /// The kernel has no such name.
    #[error("this kernel has no {0}")]
    Absent(String),
}

/// The types of a kernel.
#[derive(Debug)]
pub(super) struct Btf<'b> {
    /// Where each type begins, by its number; number 0 is no type.
    types: Vec<usize>,
    section: &'b [u8],
    names: &'b [u8],
}

/// One type.
#[derive(Debug, Clone, Copy)]
struct Type<'b> {
    name: u32,
    kind: Kind,
    /// How many members, values or parameters follow.
    count: usize,
    /// Whether the offset of a member also holds its width in bits.
    has_widths: bool,
    /// Size of the type, or number of the type it stands for.
    link: u32,
    /// From its head on.
    bytes: &'b [u8],
}

/// Kinds of types that are looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pointer,
    Struct,
    Enum,
    /// Another name, or a qualifier, of one type.
    Alias,
    Typedef,
    Prototype,
    Other,
}

impl<'b> Btf<'b> {
    /// Finds where each type begins.
    pub(super) fn parse(bytes: &'b [u8]) -> Result<Self, BtfFault> {
        let head = |place| word(bytes, place).ok_or(BtfFault::Malformed);
        if head(0)? & 0xFFFF != MAGIC {
            return Err(BtfFault::Malformed);
        }
        let body = at(bytes, head(4)?).ok_or(BtfFault::Malformed)?;
        let section = part(body, head(8)?, head(12)?).ok_or(BtfFault::Malformed)?;
        let names = part(body, head(16)?, head(20)?).ok_or(BtfFault::Malformed)?;
        let mut btf = Self {
            types: vec![0],
            section,
            names,
        };
        let mut place = 0;
        while place < section.len() {
            btf.types.push(place);
            place = length(section, place)
                .and_then(|length| place.checked_add(length))
                .ok_or(BtfFault::Malformed)?;
        }
        Ok(btf)
    }

    /// Offset in bytes of a field of a struct; `path` may go on into structs that are part of it.
    pub(super) fn offset(&self, name: &str, path: &str) -> Result<u32, BtfFault> {
        let absent = || BtfFault::Absent(format!("{name}.{path}"));
        let mut found = self.named(Kind::Struct, name).ok_or_else(absent)?;
        let mut offset = 0_u32;
        for field in path.split('.') {
            let (at, link) = self.member(found, field, DEPTH_MAX).ok_or_else(absent)?;
            offset = offset.checked_add(at).ok_or_else(absent)?;
            found = self.resolved(link).ok_or_else(absent)?;
        }
        Ok(offset)
    }

    /// Number of a value of an enum.
    pub(super) fn value(&self, name: &str, value: &str) -> Result<u32, BtfFault> {
        let absent = || BtfFault::Absent(format!("{name}::{value}"));
        let found = self.named(Kind::Enum, name).ok_or_else(absent)?;
        let mut values = (0..found.count).filter_map(|index| entry::<2>(found, index));
        values
            .find(|[text, _number]| self.text(*text) == Some(value))
            .map(|[_text, number]| number)
            .ok_or_else(absent)
    }

    /// How many values a tracepoint hands to a program.
    pub(super) fn arguments(&self, tracepoint: &str) -> Result<usize, BtfFault> {
        let name = tracepoint_name(tracepoint);
        let found = self
            .named(Kind::Typedef, &name)
            .and_then(|alias| self.resolved(alias.link))
            .filter(|pointer| pointer.kind == Kind::Pointer)
            .and_then(|pointer| self.resolved(pointer.link))
            .filter(|prototype| prototype.kind == Kind::Prototype);
        // The first parameter is the tracepoint's own.
        let arguments = found.and_then(|prototype| prototype.count.checked_sub(1));
        arguments.ok_or(BtfFault::Absent(name))
    }

    /// Number of the type by which a program names a tracepoint.
    pub(super) fn tracepoint(&self, tracepoint: &str) -> Result<u32, BtfFault> {
        let name = tracepoint_name(tracepoint);
        let found = self.numbered(Kind::Typedef, &name);
        let number = found.map(|(number, _typedef)| number);
        number.ok_or(BtfFault::Absent(name))
    }

    fn named(&self, kind: Kind, name: &str) -> Option<Type<'b>> {
        self.numbered(kind, name).map(|(_number, found)| found)
    }

    /// The first type of a kind and a name, with its number.
    fn numbered(&self, kind: Kind, name: &str) -> Option<(u32, Type<'b>)> {
        let numbers = 1..u32::try_from(self.types.len()).ok()?;
        let mut types = numbers.filter_map(|number| Some((number, self.get(number)?)));
        types.find(|(_number, found)| found.kind == kind && self.text(found.name) == Some(name))
    }

    fn get(&self, number: u32) -> Option<Type<'b>> {
        let place = *self.types.get(usize::try_from(number).ok()?)?;
        if number == 0 {
            return None;
        }
        let bytes = self.section.get(place..)?;
        let info = word(bytes, 4)?;
        Some(Type {
            name: word(bytes, 0)?,
            kind: Kind::of(info),
            count: count(info),
            has_widths: info >> 31 == 1,
            link: word(bytes, 8)?,
            bytes,
        })
    }

    /// The type of a number, through other names and qualifiers.
    fn resolved(&self, number: u32) -> Option<Type<'b>> {
        let mut found = self.get(number)?;
        for _step in 0..DEPTH_MAX {
            if !matches!(found.kind, Kind::Alias | Kind::Typedef) {
                return Some(found);
            }
            found = self.get(found.link)?;
        }
        None
    }

    /// Offset in bytes and type of a member, looked for in members without a name as well.
    fn member(&self, of: Type<'b>, name: &str, depth: u32) -> Option<(u32, u32)> {
        let depth = depth.checked_sub(1)?;
        if of.kind != Kind::Struct {
            return None;
        }
        for index in 0..of.count {
            let [text, link, place] = entry::<3>(of, index)?;
            let bits = if of.has_widths {
                place & 0xFF_FFFF
            } else {
                place
            };
            match self.text(text)? {
                found if found == name => return Some((bits / 8, link)),
                "" => {
                    let inner = self.resolved(link);
                    let inner = inner.and_then(|inner| self.member(inner, name, depth));
                    if let Some((further, link)) = inner {
                        return Some(((bits / 8).checked_add(further)?, link));
                    }
                }
                _other => {}
            }
        }
        None
    }

    fn text(&self, place: u32) -> Option<&'b str> {
        let rest = at(self.names, place)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        from_utf8(rest.get(..end)?).ok()
    }
}

impl Kind {
    fn of(info: u32) -> Self {
        match (info >> 24) & 0x1F {
            2 => Self::Pointer,
            4 | 5 => Self::Struct,
            6 => Self::Enum,
            8 => Self::Typedef,
            // volatile, const, restrict, type tag
            9..=11 | 18 => Self::Alias,
            13 => Self::Prototype,
            _other => Self::Other,
        }
    }
}

/// What the kernel calls the type of a tracepoint.
pub(super) fn tracepoint_name(tracepoint: &str) -> String {
    format!("btf_trace_{tracepoint}")
}

/// Bytes of the type at a place.
fn length(section: &[u8], place: usize) -> Option<usize> {
    let info = word(section.get(place..)?, 4)?;
    let each = count(info);
    let more = match (info >> 24) & 0x1F {
        // int, variable, declaration tag
        1 | 14 | 17 => 4,
        // array
        3 => 12,
        // struct, union, section, enum of 64 bits
        4 | 5 | 15 | 19 => each.checked_mul(12)?,
        // enum, prototype
        6 | 13 => each.checked_mul(8)?,
        _other => 0,
    };
    HEAD.checked_add(more)
}

fn count(info: u32) -> usize {
    usize::try_from(info & 0xFFFF).unwrap_or(0)
}

/// Words of entry `index` of a type.
fn entry<const N: usize>(of: Type<'_>, index: usize) -> Option<[u32; N]> {
    let begin = index.checked_mul(N)?.checked_mul(4)?.checked_add(HEAD)?;
    let mut words = [0; N];
    for (index, found) in words.iter_mut().enumerate() {
        *found = word(of.bytes, begin.checked_add(index.checked_mul(4)?)?)?;
    }
    Some(words)
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    let bytes = bytes.get(place..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

fn at(bytes: &[u8], place: u32) -> Option<&[u8]> {
    bytes.get(usize::try_from(place).ok()?..)
}

fn part(bytes: &[u8], place: u32, length: u32) -> Option<&[u8]> {
    at(bytes, place)?.get(..usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `struct inner { int b @4 }; struct outer { struct inner @8 }; enum e { v = 7 };` and
    /// `typedef void (*btf_trace_t)(void *, int)`.
    fn small() -> Vec<u8> {
        let names = b"\0outer\0inner\0b\0e\0v\0btf_trace_t\0";
        let kind = |kind: u32, count: u32| (kind << 24) | count;
        let types: [u32; 37] = [
            0,
            kind(1, 0),
            4,
            32, // 1: int
            7,
            kind(4, 1),
            8,
            13,
            1,
            32, // 2: inner
            1,
            kind(4, 1),
            16,
            0,
            2,
            64, // 3: outer
            15,
            kind(6, 1),
            4,
            17,
            7, // 4: enum
            0,
            kind(13, 2),
            0,
            0,
            0,
            0,
            1, // 5: prototype
            0,
            kind(2, 0),
            5, // 6: pointer
            19,
            kind(8, 0),
            6, // 7: typedef
            0,
            kind(10, 0),
            3, // 8: const
        ];
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        let head = [
            0x1_EB9F,
            24,
            0,
            length(&types),
            length(&types),
            length(names),
        ];
        let mut bytes: Vec<u8> = head
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        bytes.extend(types);
        bytes.extend(names);
        bytes
    }

    #[test]
    fn fields_values_and_arguments_are_found() {
        let bytes = small();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.offset("inner", "b"), Ok(4));
        assert_eq!(
            btf.offset("outer", "b"),
            Ok(12),
            "through a struct without a name"
        );
        assert_eq!(btf.value("e", "v"), Ok(7));
        assert_eq!(btf.arguments("t"), Ok(1));
        assert_eq!(btf.tracepoint("t"), Ok(7));
        let absent = BtfFault::Absent("outer.c".to_owned());
        assert_eq!(btf.offset("outer", "c"), Err(absent));
        btf.offset("outer", "b.x").unwrap_err();
        btf.arguments("u").unwrap_err();
        btf.tracepoint("u").unwrap_err();
    }

    #[test]
    fn this_kernel_describes_its_tasks() {
        let Ok(bytes) = std::fs::read(VMLINUX) else {
            return;
        };
        let btf = Btf::parse(&bytes).unwrap();
        assert!(btf.offset("task_struct", "se.cfs_rq").unwrap() > 0);
        assert!(btf.value("cgroup_subsys_id", "cpu_cgrp_id").unwrap() < 32);
        assert!(btf.arguments("sched_switch").unwrap() >= 3);
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer_or_a_fault(at in 0_usize..260, byte: u8, cut in 0_usize..300) {
            let mut bytes = small();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            if let Ok(btf) = Btf::parse(&bytes) {
                let _told = (btf.offset("outer", "b"), btf.value("e", "v"), btf.arguments("t"));
            }
        }
    }
}
