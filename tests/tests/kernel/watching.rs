//! A sampler with the programs of the best rung, for the tests of what they see.

use std::time::Duration;

use tidegate_abi::signal::SignalId;
use tidegate_agent::ebpf::{self, EbpfSettings, Rung, Telemetry};
use tidegate_agent::procfs::Roots;
use tidegate_agent::signal::{GroupKey, Readings, Sampler};
use tidegate_segment::clock::monotonic_ns;
use tidegate_tests::skip;
use tidegate_tests::until::{self, SOON};

/// Programs and a sampler that reads their maps.
pub(crate) struct Watching {
    pub(crate) telemetry: Telemetry,
    pub(crate) sampler: Sampler,
}

impl Watching {
    /// `None`, after saying so, where this user or kernel has no typed programs.
    pub(crate) fn begin() -> Option<Self> {
        let roots = Roots::default();
        // Whatever else runs on this machine, the rung stays.
        let settings = EbpfSettings {
            max_overhead: 1.0,
            ..EbpfSettings::default()
        };
        let (telemetry, tick_end) = ebpf::start(settings, &roots).expect("a thread is left");
        let settled = || telemetry.report().settled.then(|| telemetry.report());
        let (report, _took) = until::found("programs", 3 * SOON, settled);
        if report.rung != Rung::Typed {
            skip::skip(&format!(
                "needs programs in the kernel: {}",
                report.reason()
            ));
            return None;
        }
        let mut sampler = Sampler::new(roots);
        sampler.take_kernel(tick_end);
        Some(Self { telemetry, sampler })
    }

    /// Watches the group of a process, and waits until the programs count for it.
    pub(crate) fn watch(&mut self, pid: u32) -> GroupKey {
        let before = self.telemetry.report().groups;
        let key = self.sampler.watch_process(pid).expect("the group is there");
        let (sampler, telemetry) = (&mut self.sampler, &self.telemetry);
        until::holds("a group with a slot", SOON, || {
            sampler.sample(monotonic_ns());
            telemetry.report().groups > before
        });
        key
    }

    pub(crate) fn readings(&self, key: GroupKey) -> &Readings {
        self.sampler
            .group(key)
            .expect("the group is there")
            .readings()
    }

    /// The value of a signal of a group, if it is measured.
    pub(crate) fn value(&self, key: GroupKey, id: SignalId) -> Option<f64> {
        self.readings(key).value(id)
    }

    /// Samples ten times a second for as long as `during`, or until `look` has seen enough.
    pub(crate) fn run(&mut self, during: Duration, mut look: impl FnMut(&Self) -> bool) -> bool {
        let begin = std::time::Instant::now();
        while begin.elapsed() < during {
            let next_ns = monotonic_ns() + 100_000_000;
            until::holds("the next tick", SOON, || monotonic_ns() >= next_ns);
            self.sampler.sample(monotonic_ns());
            if look(self) {
                return true;
            }
        }
        false
    }
}
