//! Loads the programs of a rung, attaches them, and hands out their maps.

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::path::Path;

use aya::maps::{Array, Map, MapData, RingBuf};
use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::uprobe::{UProbeAttachLocation, UProbeScope};
use aya::programs::{BtfTracePoint, PerfEvent, Program, ProgramInfo, TracePoint, UProbe};
use aya::util::{nr_cpus, online_cpus};
use aya::{Ebpf, EbpfLoader, Endianness};
use aya_log::EbpfLogger;
use tidegate_abi::kernel::runqueue::SAMPLE_HZ;
use tidegate_abi::kernel::task;
use tidegate_segment::os::heap::give_back;

use super::btf::{Btf, BtfFault, VMLINUX};
use super::host;
use super::offsets::{self, Constant};
use super::outline::outline;
use super::room;
use super::rung::{MissedRung, Rung};
use super::view::{Extent, Maps, View};
use crate::procfs::Lack;

/// The object as `ebpf/build` makes it from `ebpf/src`.
#[cfg(target_arch = "x86_64")]
const OBJECT: &[u8] = aya::include_bytes_aligned!("../../../ebpf/prebuilt/tidegate.x86_64.bpf.o");
#[cfg(target_arch = "aarch64")]
const OBJECT: &[u8] = aya::include_bytes_aligned!("../../../ebpf/prebuilt/tidegate.aarch64.bpf.o");

/// Programs of the typed rungs with their tracepoints.
const TYPED: &[(&str, &str)] = &[
    ("sched_process_exit", "sched_process_exit"),
    ("sched_switch", "sched_switch"),
    ("sched_wakeup", "sched_wakeup"),
    ("sched_wakeup_new", "sched_wakeup_new"),
];
const SCHED_INFO: &[(&str, &str)] = &[("sched_switch_info", "sched_switch")];
const PLAIN: &[(&str, &str)] = &[
    ("plain_switch", "sched_switch"),
    ("plain_wakeup", "sched_wakeup"),
    ("plain_wakeup_new", "sched_wakeup_new"),
];
/// What does nothing, so that others can be compared with it.
const EMPTY: (&str, &str) = ("sched_switch_empty", "sched_switch");
const SAMPLE: &str = "runqueue_sample";

/// Constants of the plain tracepoints: name, tracepoint, field.
const EVENT_FIELDS: &[(&str, &str, &str)] = &[
    ("EVENT_WAKEUP_PID", "sched_wakeup", "pid"),
    ("EVENT_SWITCH_PREV_PID", "sched_switch", "prev_pid"),
    ("EVENT_SWITCH_PREV_STATE", "sched_switch", "prev_state"),
    ("EVENT_SWITCH_NEXT_PID", "sched_switch", "next_pid"),
];

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The step of the ladder.
    pub(super) rung: Rung,
    /// Slots that the maps are made for.
    pub(super) slots: u32,
    /// Whether the cpu controller has a hierarchy of its own.
    pub(super) by_cpu_controller: bool,
}

/// Programs that run, and their maps. They end when this is dropped.
pub(super) struct Programs {
    object: Ebpf,
    pub(super) view: View,
    /// Which slot counts for which group.
    pub(super) groups: Array<MapData, u64>,
    /// Which slot counts for which task, on the rung that needs it.
    pub(super) task_slots: Array<MapData, u64>,
    /// Records of pauses.
    pub(super) pauses: RingBuf<MapData>,
    /// What run-queue samples lack, if they could not be had.
    pub(super) unsampled: Option<String>,
    log: Option<Log>,
}

/// Hands what the programs said to the log of this process.
type Log = Box<dyn FnMut()>;

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = &self.view;
        f.debug_struct("Programs")
            .field("view", view)
            .finish_non_exhaustive()
    }
}

/// Why programs do not run.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) lack: Lack,
    pub(super) detail: String,
}

impl Refused {
    pub(super) fn missed(self, rung: Rung) -> MissedRung {
        let Self { lack, detail } = self;
        MissedRung { rung, lack, detail }
    }

    fn plainly(lack: Lack) -> Self {
        Self {
            lack,
            detail: String::new(),
        }
    }

    /// A refusal of the kernel, in one line.
    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut said = Vec::new();
        let mut denied = false;
        let mut next = Some(error);
        while let Some(error) = next {
            let of_system = error.downcast_ref::<std::io::Error>();
            denied |= of_system.is_some_and(|error| error.kind() == ErrorKind::PermissionDenied);
            let text = error.to_string();
            tracing::debug!(
                event = "ebpf_refused",
                error = text,
                "the kernel refused a program"
            );
            if let Some(reason) = verifiers_reason(&text) {
                // The verifier says what is wrong with a program, by the same errno as for a permission.
                return Self {
                    lack: Lack::Refused,
                    detail: reason.to_owned(),
                };
            }
            said.push(text.lines().next().unwrap_or_default().to_owned());
            next = error.source();
        }
        Self {
            lack: if denied {
                host::lack_of_denied()
            } else {
                Lack::Refused
            },
            detail: said.join(": "),
        }
    }
}

/// The last words of the verifier, which are its reason; `None` where it said nothing.
fn verifiers_reason(text: &str) -> Option<&str> {
    let (_before, output) = text.split_once("Verifier output:")?;
    let mut lines = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    lines.rfind(|line| !line.starts_with("processed ") && !line.starts_with("verification time"))
}

impl Programs {
    /// Loads and attaches the programs of a rung. On [`Rung::Files`] none is attached to the
    /// scheduler; the probes of JVMs can still be.
    pub(super) fn load(wanted: Wanted) -> Result<Self, Refused> {
        Self::load_from(OBJECT, wanted)
    }

    /// The same from another object.
    pub(super) fn load_from(object: &[u8], wanted: Wanted) -> Result<Self, Refused> {
        if let Some(lack) = host::lack() {
            return Err(Refused::plainly(lack));
        }
        if let Some(detail) = room::lacking() {
            let lack = Lack::Memory;
            return Err(Refused { lack, detail });
        }
        let extent = extent(wanted.slots)?;
        let mut programs = load_object(object, wanted, extent)?;
        attach_scheduler(&mut programs, wanted.rung)?;
        let sampled = matches!(wanted.rung, Rung::Typed | Rung::SchedInfo);
        let unsampled = sampled.then(|| sample(&mut programs)).and_then(Result::err);
        let extent = Extent {
            // Some CPUs are as good as none: nobody knows of which the samples are.
            sampled_cpus: if unsampled.is_some() {
                0
            } else {
                extent.sampled_cpus
            },
            ..extent
        };
        let view = view(&programs, extent, wanted.rung)?;
        Ok(Self {
            view,
            groups: array(&mut programs, "GROUPS")?,
            task_slots: array(&mut programs, "TASK_SLOTS")?,
            pauses: RingBuf::try_from(take(&mut programs, "PAUSES")?)
                .map_err(|error| Refused::of(&error))?,
            unsampled: unsampled.map(|refused: Refused| refused.detail + &host::paranoia()),
            log: log_of(&mut programs),
            object: programs,
        })
    }

    /// Hands what the programs said to the log.
    pub(super) fn flush_log(&mut self) {
        if let Some(flush) = &mut self.log {
            flush();
        }
    }

    /// Attaches a probe program at a place in a file, for every process that maps the file.
    pub(super) fn attach_probe(
        &mut self,
        program: &str,
        file: &Path,
        place: u64,
    ) -> Result<(), Refused> {
        let probe: &mut UProbe = find(&mut self.object, program)?;
        if probe.fd().is_err() {
            probe.load().map_err(|error| Refused::of(&error))?;
        }
        let place = UProbeAttachLocation::AbsoluteOffset(place);
        let attached = probe.attach(place, file, UProbeScope::AllProcesses);
        attached
            .map(|_link| ())
            .map_err(|error| Refused::of(&error))
    }

    /// Attaches besides what does nothing.
    pub(super) fn attach_empty(&mut self) -> Result<(), Refused> {
        attach_typed(&mut self.object, &[EMPTY])
    }

    /// What the kernel tells of each program that is loaded, by name.
    pub(super) fn infos(&self) -> impl Iterator<Item = (&str, ProgramInfo)> {
        let programs = self.object.programs();
        programs.filter_map(|(name, program)| Some((name, program.info().ok()?)))
    }
}

fn log_of(programs: &mut Ebpf) -> Option<Log> {
    let log = EbpfLogger::init(programs);
    let told = log.inspect_err(
        |error| tracing::debug!(event = "ebpf_without_log", %error, "eBPF programs cannot log"),
    );
    let mut log = told.ok()?;
    Some(Box::new(move || log.flush()))
}

/// How large the maps must be here.
fn extent(slots: u32) -> Result<Extent, Refused> {
    let refused = |(file, error): (&str, std::io::Error)| Refused {
        lack: Lack::Refused,
        detail: format!("{file}: {error}"),
    };
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Extent {
        slots,
        cpus: narrow(nr_cpus().map_err(refused)?),
        sampled_cpus: narrow(online_cpus().map_err(refused)?.len()),
    })
}

fn load_object(object: &[u8], wanted: Wanted, extent: Extent) -> Result<Ebpf, Refused> {
    let mut constants = constants(wanted)?;
    constants.push(("CPUS", extent.cpus));
    constants.push(("SLOTS", extent.slots));
    let records = extent.slots.saturating_mul(extent.cpus);
    let tasks = match wanted.rung {
        Rung::Plain => task::PLACES,
        Rung::Typed | Rung::SchedInfo | Rung::Files => 1,
    };
    let mut loader = EbpfLoader::new();
    // It has read all types of the kernel, to adapt programs that are given theirs as constants here.
    loader.btf(None);
    give_back();
    for (name, value) in &constants {
        loader.override_global(name, value, true);
    }
    for (map, entries) in [
        ("RUNQUEUE", records),
        ("PREEMPTED", records.saturating_mul(extent.slots)),
        ("COUNTERS", extent.cpus),
        ("TASK_SLOTS", tasks),
    ] {
        loader.map_max_entries(map, entries);
    }
    loader.load(object).map_err(|error| Refused::of(&error))
}

fn constants(wanted: Wanted) -> Result<Vec<Constant>, Refused> {
    match wanted.rung {
        Rung::Files => Ok(Vec::new()),
        Rung::Plain => plain_constants(),
        Rung::Typed | Rung::SchedInfo => of_types(|btf| {
            let mut constants = offsets::typed(btf, wanted.by_cpu_controller)?;
            if wanted.rung == Rung::SchedInfo {
                constants.push(offsets::sched_info(btf)?);
            }
            Ok(constants)
        }),
    }
}

/// What is looked up in the types of this kernel, which take megabytes and are not kept.
fn of_types<T>(look_up: impl FnOnce(&Btf<'_>) -> Result<T, BtfFault>) -> Result<T, Refused> {
    let lacking = |detail| Refused {
        lack: Lack::NoTypes,
        detail,
    };
    let bytes = fs::read(VMLINUX).map_err(|error| lacking(format!("{VMLINUX}: {error}")))?;
    let found = Btf::parse(&bytes).and_then(|btf| look_up(&btf));
    found.map_err(|fault| lacking(fault.to_string()))
}

fn plain_constants() -> Result<Vec<Constant>, Refused> {
    let constant = |(name, tracepoint, field): &(&'static str, &str, &str)| {
        let format = host::format_of(tracepoint);
        let format = format.ok_or(Refused::plainly(Lack::NoTracefs))?;
        let place = offsets::plain(&format, field).ok_or_else(|| Refused {
            lack: Lack::Refused,
            detail: format!("the tracepoint {tracepoint} has no field {field}"),
        })?;
        Ok((*name, place))
    };
    EVENT_FIELDS.iter().map(constant).collect()
}

fn attach_scheduler(programs: &mut Ebpf, rung: Rung) -> Result<(), Refused> {
    let refused = |error| Refused::of(&error);
    match rung {
        Rung::Typed | Rung::SchedInfo => {
            let list = if rung == Rung::Typed {
                TYPED
            } else {
                SCHED_INFO
            };
            attach_typed(programs, list)?;
        }
        Rung::Plain => {
            for (program, tracepoint) in PLAIN {
                let program: &mut TracePoint = find(programs, program)?;
                program.load().map_err(refused)?;
                program.attach("sched", tracepoint).map_err(refused)?;
            }
        }
        Rung::Files => {}
    }
    Ok(())
}

fn attach_typed(programs: &mut Ebpf, list: &[(&str, &str)]) -> Result<(), Refused> {
    let refused = |error| Refused::of(&error);
    let tracepoints: Vec<&str> = list
        .iter()
        .map(|(_program, tracepoint)| *tracepoint)
        .collect();
    let outline = of_types(|btf| outline(btf, &tracepoints))?;
    let types = aya::Btf::parse(&outline, Endianness::default());
    drop(outline);
    let types = types.map_err(|error| Refused::of(&error))?;
    for (program, tracepoint) in list {
        let program: &mut BtfTracePoint = find(programs, program)?;
        program.load(tracepoint, &types).map_err(refused)?;
        program.attach().map_err(refused)?;
    }
    Ok(())
}

/// Samples the run queue of each CPU that is online.
fn sample(programs: &mut Ebpf) -> Result<(), Refused> {
    let program: &mut PerfEvent = find(programs, SAMPLE)?;
    program.load().map_err(|error| Refused::of(&error))?;
    for cpu in online_cpus().unwrap_or_default() {
        let clock = PerfEventConfig::Software(SoftwareEvent::CpuClock);
        let scope = PerfEventScope::AllProcessesOneCpu { cpu };
        let often = SamplePolicy::Frequency(SAMPLE_HZ);
        let attached = program.attach(clock, scope, often, false);
        attached.map_err(|error| Refused::of(&error))?;
    }
    Ok(())
}

fn view(programs: &Ebpf, extent: Extent, rung: Rung) -> Result<View, Refused> {
    let maps = Maps {
        runqueue: mapped(programs, "RUNQUEUE")?.fd().as_fd(),
        preempted: mapped(programs, "PREEMPTED")?.fd().as_fd(),
        counters: mapped(programs, "COUNTERS")?.fd().as_fd(),
    };
    View::map(&maps, extent, rung).map_err(|errno| Refused {
        lack: Lack::Refused,
        detail: format!("mmap of a map: {errno}"),
    })
}

fn mapped<'p>(programs: &'p Ebpf, name: &str) -> Result<&'p MapData, Refused> {
    match programs.map(name) {
        Some(Map::Array(data)) => Ok(data),
        _other => Err(without(name)),
    }
}

fn array(programs: &mut Ebpf, name: &str) -> Result<Array<MapData, u64>, Refused> {
    Array::try_from(take(programs, name)?).map_err(|error| Refused::of(&error))
}

fn take(programs: &mut Ebpf, name: &str) -> Result<Map, Refused> {
    programs.take_map(name).ok_or_else(|| without(name))
}

/// A program of a kind by its name.
fn find<'p, P>(programs: &'p mut Ebpf, name: &str) -> Result<P, Refused>
where
    P: TryFrom<&'p mut Program>,
{
    let program = programs.program_mut(name).ok_or_else(|| without(name))?;
    program.try_into().map_err(|_other_kind| without(name))
}

fn without(name: &str) -> Refused {
    Refused {
        lack: Lack::Refused,
        detail: format!("ebpf/prebuilt has no {name}: it is not that of this agent"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Said(&'static str, Option<std::io::Error>);

    impl std::fmt::Display for Said {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Said {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.1.as_ref()?)
        }
    }

    fn refused(text: &'static str) -> Refused {
        let denied = std::io::Error::from_raw_os_error(libc::EACCES);
        Refused::of(&Said(text, Some(denied)))
    }

    #[test]
    fn field_s14_what_the_verifier_says_is_the_reason_and_no_want_of_a_capability() {
        let said = "the BPF_PROG_LOAD syscall returned Permission denied (os error 13). Verifier output: 0: (bf) r6 = r1\n\
            41: (71) r2 = *(u8 *)(r1 +0)\nR1 invalid mem access 'inv'\nprocessed 42 insns (limit 1000000)\n";
        let refused_by_verifier = refused(said);
        assert_eq!(refused_by_verifier.lack, Lack::Refused);
        assert_eq!(refused_by_verifier.detail, "R1 invalid mem access 'inv'");
        let unpermitted = refused("the BPF_PROG_LOAD syscall failed. Verifier output: ");
        assert_eq!(unpermitted.lack, Lack::Capability);
        assert!(
            unpermitted
                .detail
                .ends_with("Permission denied (os error 13)")
        );
    }
}
