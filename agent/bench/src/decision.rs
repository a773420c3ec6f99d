//! One thread's decisions through shared memory.

use std::hint::black_box;

use tidegate_abi::geometry::LINE;
use tidegate_segment::board::{ClockSource, FlowLimit};
use tidegate_segment::clock::Clock as _;

use crate::figure::{Allocations, Figure, NoFigure};
use crate::pages::Pages;
use crate::pass::{CALLS, NEVER_REACHED, ROUNDS, expect_none, pass};
use crate::rules;
use crate::timing::{Clocks, Spread, per_call_ns};

/// Passes and refusals whose allocations are counted.
const COUNTED: u32 = 400_000;

/// Resources of the cold figure.
const COLD_RESOURCES: u32 = 100_000;
const COLD_ROUNDS: u32 = 2800;

/// Cache lines that the records, nodes and cells of those resources take.
const COLD_LINES: usize = 4 * 100_000;

/// Measures passes, refusals and cold passes.
pub(crate) fn figures(clocks: &Clocks, allocations: Allocations) -> Vec<Figure> {
    let mut figures = vec![Figure {
        name: "clock_read_ns",
        how: "one reading of that clock; a pass reads it twice, a refusal once",
        value: clock_read_ns(clocks.best),
    }];
    let by_best = both(clocks.best);
    figures.push(Figure {
        name: "own_core_share",
        how: "share of the next figure's rounds in which this thread had its core to itself; each figure of one thread is \
              the median of such rounds",
        value: match &by_best {
            Ok(spread) => Ok(spread.own_share),
            Err(why) => Err(NoFigure::Wrong(why.to_string())),
        },
    });
    figures.extend(with_shared(
        "shm_enter_exit_ns",
        "enter and exit of one resource with one flow rule and one breaker, hot, one thread",
        "shm_enter_exit_shared_ns",
        &by_best,
    ));
    figures.extend(with_shared(
        "shm_enter_exit_monotonic_ns",
        "the same, reading CLOCK_MONOTONIC",
        "shm_enter_exit_monotonic_shared_ns",
        &both(ClockSource::Monotonic),
    ));
    figures.extend([
        Figure {
            name: "shm_flow_ns",
            how: "enter and exit of one resource with one flow rule, hot, one thread",
            value: enter_exit_ns(clocks.best),
        },
        Figure {
            name: "shm_flow_monotonic_ns",
            how: "the same, reading CLOCK_MONOTONIC",
            value: enter_exit_ns(ClockSource::Monotonic),
        },
        Figure {
            name: "shm_refuse_ns",
            how: "a refusal by a flow rule, hot, one thread",
            value: refuse_ns(clocks.best),
        },
        Figure {
            name: "shm_cold_100k_ns",
            how: "enter and exit of 100,000 resources with a flow rule each, in random order",
            value: cold_ns(clocks.best),
        },
        Figure {
            name: "memory_read_ns",
            how: "one read from a random place of as much memory, which the read before it told; no cold pass takes less",
            value: Ok(memory_read_ns()),
        },
        Figure {
            name: "shm_allocations",
            how: "allocations in 400,000 passes and as many refusals",
            value: count_allocations(clocks.best, allocations),
        },
    ]);
    figures
}

/// A figure on a core of its own, and what it is where something else uses the core too.
fn with_shared(
    name: &'static str,
    how: &'static str,
    shared_name: &'static str,
    spread: &Result<Spread, NoFigure>,
) -> [Figure; 2] {
    let unshared = || NoFigure::Wrong("nothing else used the core".to_owned());
    let again = |why: &NoFigure| NoFigure::Wrong(why.to_string());
    let part = |part: fn(&Spread) -> Option<f64>| match spread {
        Ok(spread) => part(spread).ok_or_else(unshared),
        Err(why) => Err(again(why)),
    };
    [
        Figure {
            name,
            how,
            value: part(|spread| Some(spread.own)),
        },
        Figure {
            name: shared_name,
            how: "the same in the rounds in which something else ran on the core's other hardware thread",
            value: part(|spread| spread.shared),
        },
    ]
}

fn clock_read_ns(clock: ClockSource) -> Result<f64, NoFigure> {
    let board = Pages::new(4, clock)?.board();
    Ok(per_call_ns(ROUNDS, CALLS, || {
        black_box(board.now_ns());
    }))
}

fn both(clock: ClockSource) -> Result<Spread, NoFigure> {
    let flow = rules::flow(FlowLimit::Qps(NEVER_REACHED));
    rules::ruled(clock, &[flow, rules::breaker()])
}

fn enter_exit_ns(clock: ClockSource) -> Result<f64, NoFigure> {
    let mut pages = Pages::new(4, clock)?;
    let slot = pages.resource("hot", NEVER_REACHED)?;
    let gate = pages.gate(1)?;
    let mut refused = 0;
    let time_ns = per_call_ns(ROUNDS, CALLS, || refused += u64::from(!pass(&gate, slot)));
    expect_none(refused, "passes were refused")?;
    Ok(time_ns)
}

fn refuse_ns(clock: ClockSource) -> Result<f64, NoFigure> {
    let mut pages = Pages::new(4, clock)?;
    let slot = pages.resource("closed", 0)?;
    let gate = pages.gate(1)?;
    let mut passed = 0;
    let time_ns = per_call_ns(ROUNDS, CALLS, || passed += u64::from(pass(&gate, slot)));
    expect_none(passed, "requests passed a limit of 0")?;
    Ok(time_ns)
}

fn cold_ns(clock: ClockSource) -> Result<f64, NoFigure> {
    let mut pages = Pages::new(COLD_RESOURCES, clock)?;
    let mut slots = Vec::new();
    for index in 0..COLD_RESOURCES {
        slots.push(pages.resource(&format!("resource-{index}"), NEVER_REACHED)?);
    }
    shuffle(&mut slots);
    let gate = pages.gate(1)?;
    let mut refused = 0;
    // The first time around the kernel hands out the memory.
    for slot in &slots {
        refused += u64::from(!pass(&gate, *slot));
    }
    let mut order = slots.iter().cycle();
    let time_ns = per_call_ns(COLD_ROUNDS, CALLS, || {
        if let Some(slot) = order.next() {
            refused += u64::from(!pass(&gate, *slot));
        }
    });
    expect_none(refused, "passes were refused")?;
    Ok(time_ns)
}

fn memory_read_ns() -> f64 {
    let mut order: Vec<usize> = (0..COLD_LINES).collect();
    shuffle(&mut order);
    let mut lines = vec![[0_usize; LINE]; COLD_LINES];
    let next = order.iter().cycle().skip(1);
    for (place, next) in order.iter().zip(next) {
        if let Some([first, ..]) = lines.get_mut(*place) {
            *first = *next;
        }
    }
    let mut place = 0;
    let time_ns = per_call_ns(COLD_ROUNDS, CALLS, || {
        place = lines.get(place).map_or(0, |[next, ..]| *next);
    });
    black_box(place);
    time_ns
}

fn count_allocations(clock: ClockSource, allocations: Allocations) -> Result<f64, NoFigure> {
    let uncounted = || NoFigure::Wrong("this program does not count allocations".to_owned());
    let mut pages = Pages::new(4, clock)?;
    let open = pages.resource("hot", NEVER_REACHED)?;
    let closed = pages.resource("closed", 0)?;
    let gate = pages.gate(1)?;
    let before = allocations().ok_or_else(uncounted)?;
    for _call in 0..COUNTED {
        black_box((pass(&gate, open), pass(&gate, closed)));
    }
    let after = allocations().ok_or_else(uncounted)?;
    let made = u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
    Ok(f64::from(made))
}

/// The same random order in each run.
fn shuffle<T>(items: &mut [T]) {
    fastrand::Rng::with_seed(1).shuffle(items);
}
