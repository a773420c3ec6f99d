//! The types of a kernel, reduced to the numbers of some tracepoints.
//!
//! The loader wants all types of the kernel as values of its own, some 20 MiB of memory for a moment, to find the
//! number of a tracepoint. It gets this outline instead: the tracepoints under their own numbers, and nothing else.

use super::btf::{Btf, BtfFault, tracepoint_name};

/// Magic number and version.
const BEGIN: u32 = 0x1_EB9F;
/// Bytes of the head.
const HEAD: u32 = 24;
/// Bytes of a type to which its kind adds nothing.
const TYPE: u32 = 12;
/// A type that is declared elsewhere: holds the place of all that is left out.
const FORWARD: u32 = 7 << 24;
const TYPEDEF: u32 = 8 << 24;

/// What `btf` tells of some tracepoints, in the same format.
pub(super) fn outline(btf: &Btf<'_>, tracepoints: &[&str]) -> Result<Vec<u8>, BtfFault> {
    let mut names = vec![0];
    let mut found = Vec::new();
    for tracepoint in tracepoints {
        found.push((btf.tracepoint(tracepoint)?, narrow(names.len())?));
        names.extend(tracepoint_name(tracepoint).into_bytes());
        names.push(0);
    }
    found.sort_unstable();
    let last = found.last().map_or(0, |(number, _name)| *number);
    let length = last.checked_mul(TYPE).ok_or(BtfFault::Malformed)?;
    let head = [BEGIN, HEAD, 0, length, length, narrow(names.len())?];
    let mut bytes: Vec<u8> = head.into_iter().flat_map(u32::to_le_bytes).collect();
    let mut found = found.into_iter().peekable();
    for number in 1..=last {
        let name = found.next_if(|(typedef, _name)| *typedef == number);
        let [name, kind] = name.map_or([0, FORWARD], |(_number, name)| [name, TYPEDEF]);
        bytes.extend([name, kind, 0].into_iter().flat_map(u32::to_le_bytes));
    }
    bytes.extend(names);
    Ok(bytes)
}

fn narrow(length: usize) -> Result<u32, BtfFault> {
    u32::try_from(length).map_err(|_too_long| BtfFault::Malformed)
}

#[cfg(test)]
mod tests {
    use super::super::btf::VMLINUX;
    use super::*;

    #[test]
    fn tracepoints_keep_their_numbers_and_all_else_is_left_out() {
        let Ok(bytes) = std::fs::read(VMLINUX) else {
            return;
        };
        let whole = Btf::parse(&bytes).unwrap();
        let tracepoints = ["sched_switch", "sched_wakeup", "sched_process_exit"];
        let bytes = outline(&whole, &tracepoints).unwrap();
        let outlined = Btf::parse(&bytes).unwrap();
        for tracepoint in tracepoints {
            assert_eq!(
                outlined.tracepoint(tracepoint),
                whole.tracepoint(tracepoint)
            );
        }
        outlined.tracepoint("sched_waking").unwrap_err();
        outline(&whole, &["no_such_tracepoint"]).unwrap_err();
    }
}
