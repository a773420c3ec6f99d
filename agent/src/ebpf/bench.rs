//! The programs of one rung by themselves, for the bench and for tests of the verifier's work.

use std::os::fd::OwnedFd;

use aya::sys::{Stats, enable_stats};

use super::program::{Programs, Wanted};
use super::rung::{MissedRung, Rung};
use super::view::Counters;
use crate::procfs::{Layout, Roots};

/// Slots that the maps are made for, as an agent has them by default.
const SLOTS: u32 = 64;

/// Programs that run until this is dropped.
#[derive(Debug)]
pub struct Measuring {
    programs: Programs,
    /// While it is open the kernel takes the time of every program of the host.
    stats: Option<OwnedFd>,
}

/// What the kernel tells of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStats {
    /// Its name in `ebpf/src`.
    pub name: String,
    /// Runs while the kernel took the time.
    pub runs: u64,
    /// Time that those took, ns.
    pub time_ns: u64,
    /// Instructions that the verifier went through; `None` before kernel 5.16.
    pub verified: Option<u32>,
}

impl Measuring {
    /// Loads and attaches the programs of a rung.
    ///
    /// # Errors
    /// Why they cannot be.
    pub fn begin(rung: Rung) -> Result<Self, MissedRung> {
        let layout = Layout::discover(Roots::default());
        let wanted = Wanted {
            rung,
            slots: SLOTS,
            by_cpu_controller: layout.has_cpu_hierarchy(),
        };
        let programs = Programs::load(wanted).map_err(|refused| refused.missed(rung))?;
        Ok(Self {
            programs,
            stats: None,
        })
    }

    /// Attaches besides a program that does nothing, so that the others can be compared with it.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn attach_empty(&mut self) -> Result<(), MissedRung> {
        let attached = self.programs.attach_empty();
        attached.map_err(|refused| refused.missed(Rung::Typed))
    }

    /// From now on the kernel takes the time of every program of the host.
    ///
    /// # Errors
    /// What the kernel says; `CAP_SYS_ADMIN` is needed.
    pub fn take_time(&mut self) -> Result<(), String> {
        let stats = enable_stats(Stats::RunTime).map_err(|error| error.to_string())?;
        self.stats = Some(stats);
        Ok(())
    }

    /// What the kernel tells of each program that is loaded.
    pub fn programs(&self) -> Vec<ProgramStats> {
        let infos = self.programs.infos();
        infos
            .map(|(name, info)| ProgramStats {
                name: name.to_owned(),
                runs: info.run_count(),
                time_ns: u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX),
                verified: info.verified_instruction_count(),
            })
            .collect()
    }

    /// What the programs count of themselves.
    pub fn counters(&self) -> Counters {
        self.programs.view.counters()
    }
}
