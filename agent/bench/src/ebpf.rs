//! What programs in the kernel cost: two threads that hand one byte to and fro on one CPU, so that
//! each round trip is two switches and two wake-ups and nothing else.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::time::Instant;

use crate::cpus;
use crate::figure::{Figure, NoFigure};
use crate::service::{self, Work};
use crate::timing::quantile;
use tidegate_agent::ebpf::{Measuring, ProgramStats, Rung};

/// Round trips of one run: at 5 µs each, a tenth of a second.
const TRIPS: u32 = 20_000;
/// Runs with programs and without, in turn, so that both meet the same noise.
const ROUNDS: u32 = 7;
/// Runs of a service with programs and without.
const PAIRS: u32 = 15;

/// Measures all of it; needs root.
pub(crate) fn figures() -> Vec<Figure> {
    let mut figures = storm_figures();
    figures.extend(service_figures());
    figures
}

/// A service under a normal load with programs and without, in turn.
fn service_figures() -> Vec<Figure> {
    let (p50, p99, cpu) = match service_ratios() {
        Ok([p50, p99, cpu]) => (Ok(p50), Ok(p99), Ok(cpu)),
        Err(error) => {
            let why = error.to_string();
            let again = || Err(NoFigure::Wrong(why.clone()));
            (again(), again(), again())
        }
    };
    let figure = |name, how, value| Figure { name, how, value };
    vec![
        figure(
            "ebpf_service_p50_ratio",
            "median response of a service at 30 % of a CPU, with programs to without, median of 15 pairs",
            p50,
        ),
        figure("ebpf_service_p99_ratio", "its p99, likewise", p99),
        figure(
            "ebpf_service_cpu_ratio",
            "its CPU time for a request, likewise",
            cpu,
        ),
    ]
}

fn service_ratios() -> Result<[f64; 3], NoFigure> {
    let work = Work::measured();
    let mut ratios = [const { Vec::new() }; 3];
    for _pair in 0..PAIRS {
        let without = service::run(work)?;
        let programs = begin(Rung::Typed)?;
        let with = service::run(work)?;
        drop(programs);
        let of = [
            with.p50 / without.p50,
            with.p99 / without.p99,
            with.cpu / without.cpu,
        ];
        for (ratios, ratio) in ratios.iter_mut().zip(of) {
            ratios.push(ratio);
        }
    }
    Ok(ratios.map(|mut ratios| quantile(&mut ratios, 0.5)))
}

fn storm_figures() -> Vec<Figure> {
    let figure = |name, how, value| Figure { name, how, value };
    let cost = match measure() {
        Ok(cost) => cost,
        Err(error) => {
            let how = "programs on the scheduler's events";
            return vec![figure("ebpf_switch_ns", how, Err(error))];
        }
    };
    vec![
        figure(
            "ebpf_wakeup_ns",
            "one run of the program on a wake-up, by the kernel's own account, median of 7 storms",
            cost.wakeup_ns,
        ),
        figure(
            "ebpf_switch_ns",
            "one run of the program on a switch, likewise",
            cost.switch_ns,
        ),
        figure(
            "ebpf_event_ns",
            "the mean over all runs of both programs, likewise",
            cost.event_ns,
        ),
        figure(
            "ebpf_empty_ns",
            "one run of a program that does nothing, likewise, in the same storms",
            cost.empty_ns,
        ),
        figure(
            "ebpf_self_timed_ns",
            "one run of either, as the programs time themselves for max_overhead",
            cost.self_timed_ns,
        ),
        figure(
            "ebpf_sched_info_ns",
            "one run of the cheaper program, by the kernel's own account",
            cost.sched_info_ns,
        ),
        figure(
            "pipe_round_trip_ns",
            "a byte to another thread of the same CPU and back, without programs",
            Ok(cost.trip_ns),
        ),
        figure(
            "ebpf_round_trip_ratio",
            "the same with programs, median of 7 pairs: 1.15 is 15 % slower",
            Ok(cost.ratio),
        ),
    ]
}

/// What the kernel tells of each program, at several times.
type Looks = Vec<Vec<ProgramStats>>;

struct Cost {
    wakeup_ns: Result<f64, NoFigure>,
    switch_ns: Result<f64, NoFigure>,
    event_ns: Result<f64, NoFigure>,
    empty_ns: Result<f64, NoFigure>,
    self_timed_ns: Result<f64, NoFigure>,
    sched_info_ns: Result<f64, NoFigure>,
    trip_ns: f64,
    ratio: f64,
}

fn measure() -> Result<Cost, NoFigure> {
    let mut trips = Vec::new();
    let mut ratios = Vec::new();
    for _round in 0..ROUNDS {
        let without_ns = trip_ns()?;
        let programs = begin(Rung::Typed)?;
        ratios.push(trip_ns()? / without_ns);
        trips.push(without_ns);
        drop(programs);
    }
    let timed = timed(Rung::Typed)?;
    let info = timed_programs(Rung::SchedInfo);
    Ok(Cost {
        wakeup_ns: median_ns(&timed.0, &["sched_wakeup"]),
        switch_ns: median_ns(&timed.0, &["sched_switch"]),
        event_ns: median_ns(&timed.0, &["sched_wakeup", "sched_switch"]),
        empty_ns: median_ns(&timed.0, &["sched_switch_empty"]),
        self_timed_ns: timed.1,
        sched_info_ns: info.and_then(|programs| median_ns(&programs, &["sched_switch_info"])),
        trip_ns: quantile(&mut trips, 0.5),
        ratio: quantile(&mut ratios, 0.5),
    })
}

fn begin(rung: Rung) -> Result<Measuring, NoFigure> {
    Measuring::begin(rung).map_err(|missed| NoFigure::Wrong(missed.to_string()))
}

fn timed_programs(rung: Rung) -> Result<Looks, NoFigure> {
    timed(rung).map(|(programs, _self_timed)| programs)
}

/// The programs before storms of switches and after each, and what they think that one run took.
fn timed(rung: Rung) -> Result<(Looks, Result<f64, NoFigure>), NoFigure> {
    let mut programs = begin(rung)?;
    let empty = programs.attach_empty();
    empty.map_err(|missed| NoFigure::Wrong(missed.to_string()))?;
    programs.take_time().map_err(NoFigure::Wrong)?;
    let mut looks = vec![programs.programs()];
    for _round in 0..ROUNDS {
        trip_ns()?;
        looks.push(programs.programs());
    }
    let counters = programs.counters();
    let self_timed = ratio(counters.timed_ns, counters.timed).ok_or_else(|| never("self-timed"));
    Ok((looks, self_timed))
}

/// Mean time of one run of some programs in the median storm.
fn median_ns(looks: &[Vec<ProgramStats>], names: &[&str]) -> Result<f64, NoFigure> {
    let sums: Vec<(u64, u64)> = looks.iter().map(|look| sums(look, names)).collect();
    let storms = sums.iter().zip(sums.iter().skip(1));
    let mut means: Vec<f64> = storms
        .filter_map(|(before, after)| {
            let time_ns = after.0.checked_sub(before.0)?;
            ratio(time_ns, after.1.checked_sub(before.1)?)
        })
        .collect();
    if means.is_empty() {
        return Err(never(&names.join(", ")));
    }
    Ok(quantile(&mut means, 0.5))
}

/// Time and runs of some programs until now.
fn sums(look: &[ProgramStats], names: &[&str]) -> (u64, u64) {
    let wanted = look
        .iter()
        .filter(|program| names.contains(&&*program.name));
    wanted.fold((0, 0), |(time_ns, runs), program| {
        (
            time_ns.saturating_add(program.time_ns),
            runs.saturating_add(program.runs),
        )
    })
}

fn never(name: &str) -> NoFigure {
    NoFigure::Wrong(format!("{name} never ran"))
}

#[expect(clippy::cast_precision_loss, reason = "a mean of some hundred ns")]
fn ratio(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// Time of one round trip between two threads of one CPU, ns.
fn trip_ns() -> Result<f64, NoFigure> {
    let refused = NoFigure::kernel("a pipe between two threads");
    let (there, back) = (pipe().map_err(&refused)?, pipe().map_err(&refused)?);
    let (mut here, mut to) = (back.0, there.1);
    let echo = std::thread::spawn(move || echo(there.0, back.1));
    let _pinned = cpus::pin(0);
    let mut byte = [7];
    let begin = Instant::now();
    for _trip in 0..TRIPS {
        let handed = to
            .write_all(&byte)
            .and_then(|()| here.read_exact(&mut byte));
        handed.map_err(&refused)?;
    }
    let spent = begin.elapsed();
    drop(to);
    match echo.join() {
        Ok(()) => Ok(spent.as_secs_f64() * 1e9 / f64::from(TRIPS)),
        Err(_panicked) => Err(NoFigure::Wrong("the other thread panicked".to_owned())),
    }
}

/// Hands each byte back until there are no more.
fn echo(mut from: PipeReader, mut to: PipeWriter) {
    let _pinned = cpus::pin(0);
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
}
