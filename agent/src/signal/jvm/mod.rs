//! The JVMs of a group, seen from outside: nothing is attached, nothing is mapped, a file is read.

mod collector;
pub(super) mod find;
mod full_gc;
mod own;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use tidegate_abi::signal::SignalId;

pub(in crate::signal) use self::collector::Collectors;
use self::full_gc::FullGcWindow;
use self::own::Owned;
use super::meter::{Meter, to_f64};
use super::parse::hsperfdata::{self, JvmCounters};
use super::processes::Scan;
use super::reading::Readings;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::{Missing, NamedSource as _, NoValue};

/// Time between two readings of a JVM's counters.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;
const SOURCE: &str = "hsperfdata";
/// System calls to read the counters of one JVM.
const READ_CALLS: u32 = 8;

/// The JVMs of one group.
#[derive(Debug, Default)]
pub(crate) struct Jvms {
    readers: Vec<JvmReader>,
    next_ns: u64,
}

impl Jvms {
    /// Reads the counters of the JVMs with these pids, once a second. Of several JVMs the worst share
    /// and the sum of full collections are told; one that does not tell leaves that to the others. Where
    /// there is none and some process could not be looked at (`unseen`), that is the cause: it may be one.
    pub(crate) fn sample(
        &mut self,
        (pids, unseen): (&[u32], Option<Missing>),
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
        out: &mut Readings,
    ) {
        if scan.now_ns() < self.next_ns {
            return;
        }
        self.next_ns = scan.now_ns().saturating_add(SAMPLE_EVERY_NS);
        self.readers.retain(|reader| pids.contains(&reader.pid));
        for pid in pids {
            if !self.readers.iter().any(|reader| reader.pid == *pid) {
                self.readers.push(JvmReader::new(*pid));
            }
        }
        let unseen = unseen.filter(|_missing| pids.is_empty());
        let source = unseen.map_or(SOURCE, |missing| missing.source);
        let mut told = JvmSample::missing(unseen.map_or(NoValue::NoJvm, |missing| missing.fault));
        for reader in &mut self.readers {
            told = told.and(reader.sample(scan, buffer));
        }
        out.set(SignalId::GcShare, told.gc_share.named(source));
        out.set(SignalId::FullGc, told.full_gcs.map(to_f64).named(source));
        out.set(SignalId::HeapUsed, told.heap_used.named(source));
    }
}

/// What one or several JVMs tell.
#[derive(Debug, Clone, Copy)]
struct JvmSample {
    gc_share: Result<f64, NoValue>,
    full_gcs: Result<u64, NoValue>,
    heap_used: Result<f64, NoValue>,
}

impl JvmSample {
    fn missing(fault: NoValue) -> Self {
        Self {
            gc_share: Err(fault),
            full_gcs: Err(fault),
            heap_used: Err(fault),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            gc_share: joined(self.gc_share, other.gc_share, f64::max),
            full_gcs: joined(self.full_gcs, other.full_gcs, u64::saturating_add),
            heap_used: joined(self.heap_used, other.heap_used, f64::max),
        }
    }
}

/// The value of both, or of the one that has one; of two faults the later, which is a JVM's own.
fn joined<T>(
    one: Result<T, NoValue>,
    other: Result<T, NoValue>,
    join: impl Fn(T, T) -> T,
) -> Result<T, NoValue> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(join(one, other)),
        (Ok(value), Err(_)) | (Err(_), Ok(value)) => Ok(value),
        (Err(_), Err(fault)) => Err(fault),
    }
}

#[derive(Debug)]
struct JvmReader {
    pid: u32,
    /// The file below the root of the process, once it is found and proved to be its own.
    file: Option<(PathBuf, Owned)>,
    collecting: Meter,
    full: FullGcWindow,
}

impl JvmReader {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            file: None,
            collecting: Meter::default(),
            full: FullGcWindow::new(),
        }
    }

    fn sample(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer) -> JvmSample {
        match self.read(scan, buffer) {
            Ok(counters) => self.told(scan.now_ns(), counters),
            Err(fault) => {
                self.file = None;
                JvmSample::missing(fault)
            }
        }
    }

    fn read(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer) -> Result<JvmCounters, NoValue> {
        scan.spend(READ_CALLS);
        let root = find::root(self.pid, scan)?;
        let pid = self.pid;
        let (below, owned) = match self.file.take() {
            Some(known) => known,
            None => find::each_file(pid, &root, scan, buffer, &mut |file, scan, buffer| {
                own::prove(pid, file, None, scan, buffer)
            })?,
        };
        let file = root.open_file(&below)?;
        let owned = own::prove(pid, &file, Some(owned), scan, buffer)?;
        self.file = Some((below, owned));
        buffer.read_file(&file).and_then(hsperfdata::parse)
    }

    fn told(&mut self, now_ns: u64, counters: JvmCounters) -> JvmSample {
        let missing = |name| NoValue::NoField(name);
        let gc_ns = collecting_ns(counters);
        let full = counters.full_gcs;
        JvmSample {
            gc_share: gc_ns.and_then(|ns| Ok(self.collecting.step(now_ns, ns)?.rate().min(1.0))),
            full_gcs: full.and_then(|count| self.full.take(now_ns, count)),
            heap_used: heap_used(counters).ok_or(missing("sun.gc.generation.0.maxCapacity")),
        }
    }
}

/// Time in collections in ns; exact where the JVM counts ns, as it does on Linux.
fn collecting_ns(counters: JvmCounters) -> Result<u64, NoValue> {
    let ns = u128::from(counters.gc_ticks?) * u128::from(NS_PER_S);
    let per_s = counters.ticks_per_s.map(u128::from);
    let ns = per_s.and_then(|per_s| ns.checked_div(per_s));
    let ns = ns.and_then(|ns| u64::try_from(ns).ok());
    ns.ok_or(NoValue::NoField("sun.os.hrt.frequency"))
}

fn heap_used(counters: JvmCounters) -> Option<f64> {
    Some(to_f64(counters.heap_used?) / to_f64(counters.heap_max?))
}
