//! What each CPU did between two samples of `/proc/stat`.

use super::super::meter::to_f64;
use super::super::parse::cpu_set::CpuSet;
use super::super::parse::proc_stat::{self, CpuTimes};

/// One CPU.
#[derive(Debug)]
struct Cpu {
    number: u64,
    last: CpuTimes,
    /// Clock ticks since the sample before, and those of them that it was idle.
    total: u64,
    idle: u64,
}

/// Every CPU that is or was online.
#[derive(Debug, Default)]
pub(crate) struct PerCpu(Vec<Cpu>);

impl PerCpu {
    /// Takes a sample of the file. It allocates only when a CPU appears.
    pub(super) fn take(&mut self, stat: &[u8]) {
        for cpu in &mut self.0 {
            (cpu.total, cpu.idle) = (0, 0);
        }
        for (number, now) in proc_stat::each_cpu(stat) {
            match self.0.iter_mut().find(|cpu| cpu.number == number) {
                Some(cpu) => {
                    cpu.total = now.total.saturating_sub(cpu.last.total);
                    // The idle time of one CPU can go back by a little.
                    cpu.idle = now.idle.saturating_sub(cpu.last.idle).min(cpu.total);
                    cpu.last = now;
                }
                None => self.0.push(Cpu {
                    number,
                    last: now,
                    total: 0,
                    idle: 0,
                }),
            }
        }
    }

    /// The file could not be read.
    pub(super) fn miss(&mut self) {
        self.0.clear();
    }

    /// Busy share of some CPUs, whoever used them; `None` where no time of theirs is known.
    pub(crate) fn busy(&self, cpus: &CpuSet) -> Option<f64> {
        let among = self.0.iter().filter(|cpu| cpus.contains(cpu.number));
        let (total, idle) = among.fold((0_u64, 0_u64), |(total, idle), cpu| {
            (
                total.saturating_add(cpu.total),
                idle.saturating_add(cpu.idle),
            )
        });
        (total > 0).then(|| 1.0 - to_f64(idle) / to_f64(total))
    }
}
