//! What real kernels wrote for a unit with a fifth of a CPU and a busy loop in it.

use tidegate_abi::signal::SignalId;

use super::super::fixture::{SECOND_NS, Tree, close, missing, value};
use crate::procfs::NoValue;

const STAT: (&str, &str) = ("proc/stat", "cpu  1 0 0 9\ncpu0 1 0 0 9\ncpu1 1 0 0 9\n");

/// A file of `fixtures/` with its kernel: a comment, `cpu.max`, `cpu.stat` with `cpu.stat.local`, and
/// `cpu.pressure`.
struct Capture {
    kernel: &'static str,
    text: &'static str,
}

const CAPTURES: [Capture; 4] = [
    Capture {
        kernel: "5.10",
        text: include_str!("fixtures/v2-kernel-5.10.txt"),
    },
    Capture {
        kernel: "6.1",
        text: include_str!("fixtures/v2-kernel-6.1.txt"),
    },
    Capture {
        kernel: "6.12",
        text: include_str!("fixtures/v2-kernel-6.12.txt"),
    },
    Capture {
        kernel: "7.3",
        text: include_str!("fixtures/v2-kernel-7.3.txt"),
    },
];

impl Capture {
    fn lines(&self, wanted: impl Fn(&str) -> bool) -> String {
        let lines = self.text.lines().filter(|line| wanted(line));
        lines.fold(String::new(), |text, line| text + line + "\n")
    }

    fn max(&self) -> String {
        self.lines(|line| line.starts_with("cpu.max: "))
            .replace("cpu.max: ", "")
    }

    fn pressure(&self) -> String {
        self.lines(|line| line.contains("avg10="))
    }

    fn stat(&self) -> String {
        self.lines(|line| !line.starts_with(['#', 'c']) && !line.contains("avg10="))
    }

    /// The same file before anything ran.
    fn at_start(text: &str) -> String {
        let zeroed = |line: &str| match line.rsplit_once(['=', ' ']) {
            Some((head, count)) => format!("{}0\n", line.strip_suffix(count).unwrap_or(head)),
            None => String::new(),
        };
        text.lines().map(zeroed).collect()
    }
}

#[test]
fn every_kernel_tells_use_and_throttling_of_the_same_load() {
    for capture in CAPTURES {
        let (stat, pressure) = (capture.stat(), capture.pressure());
        let tree = Tree::new(&[
            STAT,
            ("cgroup/cpu.max", &capture.max()),
            ("cgroup/cpu.stat", &Capture::at_start(&stat)),
            ("cgroup/cpu.pressure", &Capture::at_start(&pressure)),
        ]);
        let (mut sampler, key) = tree.watching("/");
        tree.write(&[
            ("cgroup/cpu.stat", &stat),
            ("cgroup/cpu.pressure", &pressure),
        ]);
        // The captures were taken after 43 to 45 periods.
        sampler.sample(SECOND_NS + 4_400_000_000);
        let told = |id| value(&sampler, key, id);
        let kernel = capture.kernel;
        close(told(SignalId::EffectiveCpus), 0.2);
        assert!(
            (0.95..1.05).contains(&told(SignalId::Cpu)),
            "{kernel}: {}",
            told(SignalId::Cpu)
        );
        assert!((0.95..=1.0).contains(&told(SignalId::Throttle)), "{kernel}");
        assert!(
            (0.7..0.9).contains(&told(SignalId::ThrottledTime)),
            "{kernel}"
        );
        assert!((0.5..0.9).contains(&told(SignalId::PsiCpu)), "{kernel}");
        if kernel == "5.10" {
            assert_eq!(
                missing(&sampler, key, SignalId::PsiCpuFull).fault,
                NoValue::NoField("full")
            );
            assert_eq!(
                missing(&sampler, key, SignalId::Burst).fault,
                NoValue::NoField("nr_bursts")
            );
        } else {
            assert!((0.5..0.9).contains(&told(SignalId::PsiCpuFull)), "{kernel}");
            close(told(SignalId::Burst), 0.0);
        }
    }
}
