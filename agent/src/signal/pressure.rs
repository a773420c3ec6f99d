//! Pressure of one resource (cpu, memory, io): which share of the time tasks waited for it.

use std::path::PathBuf;

use tidegate_abi::signal::SignalId;

use super::meter::Meter;
use super::parse::pressure;
use super::reading::Readings;
use crate::procfs::kept_file::{KeptFile, ReadBuffer};
use crate::procfs::{Missing, NamedSource as _, NoValue};

const NS_PER_US: u64 = 1000;

/// The three pressure files of the host or of one group.
#[derive(Debug)]
pub(crate) struct PressureSignals {
    resources: [PressureFile; 3],
}

/// One file with its two counters and the signals that they fill.
#[derive(Debug)]
struct PressureFile {
    source: &'static str,
    file: KeptFile,
    some: (SignalId, Meter),
    full: (SignalId, Meter),
}

/// The signals of each resource, for those waiting in part and those waiting all at once.
const RESOURCES: [(SignalId, SignalId); 3] = [
    (SignalId::PsiCpu, SignalId::PsiCpuFull),
    (SignalId::PsiMemory, SignalId::PsiMemoryFull),
    (SignalId::PsiIo, SignalId::PsiIoFull),
];

impl PressureSignals {
    /// Pressure told by three files for cpu, memory and io, each with the name used in reasons.
    pub(crate) fn new(files: [(&'static str, PathBuf); 3]) -> Self {
        let mut signals = RESOURCES.into_iter();
        let resources = files.map(|(source, path)| {
            let (some, full) = signals
                .next()
                .unwrap_or((SignalId::PsiCpu, SignalId::PsiCpuFull));
            PressureFile {
                source,
                file: KeptFile::new(path),
                some: (some, Meter::default()),
                full: (full, Meter::default()),
            }
        });
        Self { resources }
    }

    /// Reads the three files; one that is missing leaves the others alone.
    pub(crate) fn sample(&mut self, now_ns: u64, buffer: &mut ReadBuffer, out: &mut Readings) {
        for resource in &mut self.resources {
            resource.sample(now_ns, buffer, out);
        }
    }
}

impl PressureFile {
    fn sample(&mut self, now_ns: u64, buffer: &mut ReadBuffer, out: &mut Readings) {
        let (some, full) = match self.file.read(buffer).map(pressure::parse) {
            Ok(read) => (read.some_us, read.full_us),
            Err(fault) => (Err(fault), Err(fault)),
        };
        for ((id, meter), total_us) in [(&mut self.some, some), (&mut self.full, full)] {
            out.set(*id, share(meter, now_ns, total_us).named(self.source));
        }
    }
}

/// Growth of the stall time over the time that passed. The kernel brings the total up to date at
/// each read, so this is the share of the last tick and not of the last ten seconds.
fn share(meter: &mut Meter, now_ns: u64, stalled_us: Result<u64, NoValue>) -> Result<f64, NoValue> {
    let total_ns = stalled_us?
        .checked_mul(NS_PER_US)
        .ok_or(NoValue::Malformed("total"))?;
    // The read comes a little after `now_ns`, hence a share can come out just above the whole.
    Ok(meter.step(now_ns, total_ns)?.rate().min(1.0))
}

/// Says of all pressure signals why they are missing.
pub(crate) fn all_missing(missing: Missing, out: &mut Readings) {
    for (some, full) in RESOURCES {
        out.set(some, Err(missing));
        out.set(full, Err(missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(contents: [&str; 2]) -> Readings {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let files = [
            ("cpu", path("cpu")),
            ("memory", path("memory")),
            ("io", path("io")),
        ];
        let mut signals = PressureSignals::new(files);
        let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
        for (second, content) in contents.iter().enumerate() {
            std::fs::write(path("cpu"), content).unwrap();
            signals.sample(1_000_000_000 * (second as u64 + 1), &mut buffer, &mut out);
        }
        out
    }

    #[test]
    fn the_share_is_that_of_the_last_tick() {
        let out = sampled([
            "some avg10=9.00 avg60=9.00 avg300=9.00 total=500\nfull avg10=0 total=10\n",
            "some avg10=9.00 avg60=9.00 avg300=9.00 total=250500\nfull avg10=0 total=100010\n",
        ]);
        assert_eq!(out.value(SignalId::PsiCpu), Some(0.25));
        assert_eq!(out.value(SignalId::PsiCpuFull), Some(0.1));
        let io = out.get(SignalId::PsiIo).get().unwrap_err();
        assert_eq!((io.source, io.fault.is_absent()), ("io", true));
    }

    #[test]
    fn a_file_without_the_full_line_tells_the_other() {
        let out = sampled(["some total=0\n", "some total=2000000\n"]);
        assert_eq!(out.value(SignalId::PsiCpu), Some(1.0));
        let full = out.get(SignalId::PsiCpuFull).get().unwrap_err();
        assert_eq!(full.to_string(), "cpu: has no field full");
    }

    #[test]
    fn a_total_at_the_end_of_its_range_is_a_fault() {
        let text = format!("some total={}\n", u64::MAX);
        let out = sampled([&text, &text]);
        assert_eq!(out.value(SignalId::PsiCpu), None);
    }
}
