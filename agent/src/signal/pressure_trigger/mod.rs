//! Triggers of the host's pressure files: the kernel says at once that tasks begin to wait.
//!
//! A trigger is armed by writing `some STALL WINDOW` (µs, ended by NUL) to a pressure file. While it is open, poll
//! answers `POLLPRI` once for each window in which tasks waited for more than the stall. Windows of less than
//! 2 s take `CAP_SYS_RESOURCE`; without it some kernels allow multiples of 2 s, others nothing.
//! Source: the kernel's Documentation/accounting/psi.rst.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use tidegate_segment::clock::monotonic_ns;

use crate::procfs::Roots;
use crate::procfs::kept_file::is_of_the_kernel;

const SECOND_NS: u64 = 1_000_000_000;

/// What tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// A CPU.
    Cpu,
    /// Memory.
    Memory,
    /// Input and output.
    Io,
}

impl Pressure {
    /// Every one, in the order of [`FiredTriggers`] and [`TriggerStates`].
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Io];

    /// The word used in metrics and messages; the name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }
}

/// How often an armed trigger looks. Both fire when tasks waited for a tenth of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerForm {
    /// Windows of 1 s, for whoever has `CAP_SYS_RESOURCE`.
    Second,
    /// Windows of 2 s.
    TwoSeconds,
}

impl TriggerForm {
    /// The word used in status and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "1 s windows",
            Self::TwoSeconds => "2 s windows",
        }
    }

    /// What would give better triggers.
    pub const fn better(self) -> Option<&'static str> {
        match self {
            Self::Second => None,
            Self::TwoSeconds => Some("run the agent with CAP_SYS_RESOURCE, for windows of 1 s"),
        }
    }

    /// What arms it. The NUL at its end is a part of it: the kernel cuts off the last byte.
    const fn words(self) -> &'static [u8] {
        match self {
            Self::Second => b"some 100000 1000000\0",
            Self::TwoSeconds => b"some 200000 2000000\0",
        }
    }
}

/// Why there is no trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerRefusal {
    /// The configuration wants none.
    Off,
    /// The file is not the kernel's; nothing is written to it.
    NotOfTheKernel,
    /// Nobody may write to the file: triggers are for root, on this kernel.
    NotWritable,
    /// The kernel refused, with its errno.
    Os(i32),
}

impl TriggerRefusal {
    /// What would make triggers available.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Off => "set psi_triggers = true in [signals]",
            Self::NotOfTheKernel => "run the agent where /proc is the kernel's own",
            Self::Os(libc::ENOENT | libc::ENOTDIR) => "a kernel with CONFIG_PSI",
            Self::Os(libc::EOPNOTSUPP) => "boot the kernel with psi=1",
            Self::NotWritable => "run the agent as root, or on a kernel from 5.13 on",
            Self::Os(libc::EPERM | libc::EINVAL) => {
                "run the agent with CAP_SYS_RESOURCE, or on a kernel that gives others windows of 2 s"
            }
            Self::Os(_) => "see the reason; the kernel refused the file",
        }
    }

    fn of(error: &io::Error) -> Self {
        Self::Os(error.raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for TriggerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("switched off"),
            Self::NotWritable => {
                f.write_str("the pressure file may not be written, whatever the capabilities")
            }
            Self::NotOfTheKernel => f.write_str("the pressure file is not the kernel's"),
            Self::Os(errno) => write!(f, "{}", io::Error::from_raw_os_error(*errno)),
        }
    }
}

/// For each of [`Pressure::ALL`]: the form of its trigger, or why it has none.
pub type TriggerStates = [Result<TriggerForm, TriggerRefusal>; 3];

/// Which of [`Pressure::ALL`] fired.
pub type FiredTriggers = [bool; 3];

/// The triggers of the host. They are disarmed when this is dropped.
#[derive(Debug)]
pub struct PressureTriggers {
    armed: Vec<Armed>,
    states: TriggerStates,
}

#[derive(Debug)]
struct Armed {
    place: usize,
    file: File,
}

impl PressureTriggers {
    /// None at all.
    pub fn off() -> Self {
        Self {
            armed: Vec::new(),
            states: [Err(TriggerRefusal::Off); 3],
        }
    }

    /// Arms what the kernel permits, if they are wanted.
    pub fn arm(are_wanted: bool, roots: &Roots) -> Self {
        if !are_wanted {
            return Self::off();
        }
        Self::arm_with(|pressure, form| {
            let path = roots.proc_file(&format!("pressure/{}", pressure.name()));
            arm_file(&path, form)
        })
    }

    /// Arms by `arm`, the better form first.
    fn arm_with(
        mut arm: impl FnMut(Pressure, TriggerForm) -> Result<File, TriggerRefusal>,
    ) -> Self {
        let mut triggers = Self::off();
        let states = triggers.states.iter_mut().enumerate();
        for ((place, state), pressure) in states.zip(Pressure::ALL) {
            let mut try_form = |form| arm(pressure, form).map(|file| (form, file));
            let armed = try_form(TriggerForm::Second);
            let armed = armed.or_else(|_refused| try_form(TriggerForm::TwoSeconds));
            *state = armed.map(|(form, file)| {
                triggers.armed.push(Armed { place, file });
                form
            });
        }
        triggers
    }

    /// The form of each, or why there is none.
    pub fn states(&self) -> &TriggerStates {
        &self.states
    }

    /// Waits until `due_ns` (monotonic), or until a trigger fires; `None` if none did. A trigger that fired
    /// since the last wait ends it at once. Does not allocate.
    pub(crate) fn wait_until(&mut self, due_ns: u64) -> Option<FiredTriggers> {
        while !self.armed.is_empty() {
            let left_ns = due_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return None;
            }
            match self.poll(&timespec(left_ns)) {
                Ok(answers) => {
                    if let Some(fired) = self.take(answers) {
                        return Some(fired);
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => self.give_up(|_place| true, errno),
            }
        }
        None
    }

    fn poll(&self, timeout: &Timespec) -> Result<[PollFlags; 3], Errno> {
        match self.armed.as_slice() {
            [] => Ok([PollFlags::empty(); 3]),
            [one] => poll_all([one], timeout),
            [one, two] => poll_all([one, two], timeout),
            [one, two, three, ..] => poll_all([one, two, three], timeout),
        }
    }

    /// Which fired; those that failed are given up.
    fn take(&mut self, answers: [PollFlags; 3]) -> Option<FiredTriggers> {
        let has = |flag| answers.map(|answer| answer.contains(flag));
        let failed = has(PollFlags::ERR);
        if failed.contains(&true) {
            let is_failed = |place: usize| failed.get(place) == Some(&true);
            self.give_up(is_failed, Errno::NODEV);
            return None;
        }
        let fired = has(PollFlags::PRI);
        fired.contains(&true).then_some(fired)
    }

    fn give_up(&mut self, which: impl Fn(usize) -> bool, errno: Errno) {
        self.armed.retain(|armed| !which(armed.place));
        for (place, state) in self.states.iter_mut().enumerate() {
            if state.is_ok() && which(place) {
                *state = Err(TriggerRefusal::Os(errno.raw_os_error()));
            }
        }
    }
}

fn poll_all<const N: usize>(
    armed: [&Armed; N],
    timeout: &Timespec,
) -> Result<[PollFlags; 3], Errno> {
    let mut polled = armed.map(|armed| PollFd::new(&armed.file, PollFlags::PRI));
    poll(&mut polled, Some(timeout))?;
    let mut answers = [PollFlags::empty(); 3];
    for (polled, armed) in polled.iter().zip(armed) {
        if let Some(answer) = answers.get_mut(armed.place) {
            *answer = polled.revents();
        }
    }
    Ok(answers)
}

fn arm_file(path: &Path, form: TriggerForm) -> Result<File, TriggerRefusal> {
    let refused = |error: io::Error| {
        let is_denied = error.raw_os_error() == Some(libc::EACCES);
        let mode = is_denied.then(|| path.metadata().ok()).flatten();
        match mode.map(|file| file.permissions().readonly()) {
            Some(true) => TriggerRefusal::NotWritable,
            _ => TriggerRefusal::of(&error),
        }
    };
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let mut file = opened.map_err(refused)?;
    if !is_of_the_kernel(&file) {
        return Err(TriggerRefusal::NotOfTheKernel);
    }
    file.write_all(form.words()).map_err(refused)?;
    Ok(file)
}

fn timespec(span_ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span_ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(span_ns % SECOND_NS).unwrap_or(0),
    }
}
