//! The CPUs that the processes of a group let themselves run on, all together.
//!
//! A process may bind itself to a few CPUs without any cpuset. What counts is where some process of the group
//! may run; the threads of a process are taken to be bound as its first one is.

use super::super::parse::affinity;
use super::super::parse::cpu_set::CpuSet;
use super::{Scan, is_ended};
use crate::procfs::kept_file::ReadBuffer;

/// Looks from one in which processes are asked to the next; they seldom change their minds.
const LOOKS: u64 = 8;

/// What the processes of a group allow.
#[derive(Debug)]
pub(super) struct Affinity {
    /// Whether this look asks.
    is_asked: bool,
    growing: CpuSet,
    /// Whether a process is there that does not tell.
    is_hidden: bool,
    told: CpuSet,
}

impl Affinity {
    /// Nothing is known yet.
    pub(super) fn unknown() -> Box<Self> {
        Box::new(Self {
            is_asked: false,
            growing: CpuSet::EMPTY,
            is_hidden: false,
            told: CpuSet::EMPTY,
        })
    }

    /// A look begins; it is the one with this number.
    pub(super) fn begin(&mut self, look: u64) {
        self.is_asked = look % LOOKS == 1;
        self.growing = CpuSet::EMPTY;
        self.is_hidden = false;
    }

    /// The look comes to a process.
    pub(super) fn take(&mut self, pid: u32, scan: &mut Scan, buffer: &mut ReadBuffer) {
        if !self.is_asked {
            return;
        }
        scan.spend(3);
        let status = buffer.read_once(scan.path(format_args!("/{pid}/status")));
        match status.and_then(affinity::parse) {
            Ok(cpus) => self.growing.add(&cpus),
            Err(fault) => self.is_hidden |= !is_ended(fault),
        }
    }

    /// The look has seen every process.
    pub(super) fn finish(&mut self) {
        if self.is_asked {
            self.told = if self.is_hidden {
                CpuSet::EMPTY
            } else {
                self.growing
            };
        }
    }

    /// CPUs that some process allows; empty = not known.
    pub(super) fn told(&self) -> &CpuSet {
        &self.told
    }
}
