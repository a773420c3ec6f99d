//! How long a publish takes until a process on another core sees it.

use tidegate_segment::board::Board;
use tidegate_segment::clock::Clock as _;

use crate::child::{Line, Part, Role};
use crate::cpus;
use crate::figure::{Figure, NoFigure};
use crate::pages::{Pages, healthy};
use crate::timing::{Clocks, quantile};

const ROUNDS: u32 = 15;

/// Publishes in a round.
const PUBLISHES: u32 = 2000;

/// Time between publishes, ns: the reader is back at its loop long before the next.
const INTERVAL_NS: u64 = 20_000;

/// A side whose loop stood still for that long was off its CPU, ns.
const OFF_CPU_NS: u64 = 10_000;

/// Stands for a time that says nothing.
const UNKNOWN: u64 = 0;

/// Least number of publishes of a round in which both sides ran.
const ENOUGH: usize = 200;

/// The entry limit published before a round; publish number n has n more.
const BASE: u32 = 1000;

/// Measures median and 99th percentile.
pub(crate) fn figures(clocks: &Clocks) -> [Figure; 2] {
    let (p50, p99) = match rounds(clocks) {
        Ok((p50, p99)) => (Ok(p50), Ok(p99)),
        Err(error) => {
            let again = NoFigure::Wrong(error.to_string());
            (Err(error), Err(again))
        }
    };
    [
        Figure {
            name: "publish_to_seen_p50_ns",
            how: "from before a publish until a running process on another core has it, median",
            value: p50,
        },
        Figure {
            name: "publish_to_seen_p99_ns",
            how: "the same, 99th percentile",
            value: p99,
        },
    ]
}

fn rounds(clocks: &Clocks) -> Result<(f64, f64), NoFigure> {
    if cpus::allowed().len() < 2 {
        return Err(NoFigure::Wrong("only one CPU may be used".to_owned()));
    }
    let part = Part::start(Role::Watch)?;
    let mut pages = Pages::new(4, clocks.best)?;
    part.line.send_pages(&pages)?;
    let _pinned = cpus::pin(0);
    let (mut p50s, mut p99s) = (Vec::new(), Vec::new());
    for _round in 0..ROUNDS {
        let mut delays = round(&part.line, &mut pages)?;
        if delays.len() >= ENOUGH {
            p50s.push(quantile(&mut delays, 0.5));
            p99s.push(quantile(&mut delays, 0.99));
        }
    }
    if p50s.is_empty() {
        return Err(NoFigure::Wrong(
            "the machine is too busy: two processes hardly ever ran at the same time".to_owned(),
        ));
    }
    Ok((quantile(&mut p50s, 0.5), quantile(&mut p99s, 0.5)))
}

/// Publishes a number of times and returns how long each took to be seen, ns, where both sides ran.
fn round(line: &Line, pages: &mut Pages) -> Result<Vec<f64>, NoFigure> {
    let tick = &mut pages.writers.tick;
    let board = tick.board();
    tick.publish_scope(0, &healthy(BASE));
    line.send_numbers(&[1])?;
    let [_ready] = line.receive_exactly()?;
    let mut published_ns = Vec::new();
    for number in 1..=PUBLISHES {
        let begin_ns = wait(&board);
        tick.publish_scope(0, &healthy(BASE.saturating_add(number)));
        let ran = board.now_ns().saturating_sub(begin_ns) < OFF_CPU_NS;
        published_ns.push(if ran { begin_ns } else { UNKNOWN });
    }
    let seen_ns = line.receive_numbers()?.unwrap_or_default();
    let known = seen_ns.into_iter().zip(published_ns);
    let known = known.filter(|(seen, published)| *seen != UNKNOWN && *published != UNKNOWN);
    Ok(known
        .map(|(seen, published)| seen.saturating_sub(published))
        .map(|delay_ns| u32::try_from(delay_ns).map_or(f64::INFINITY, f64::from))
        .collect())
}

/// Lets the interval go by and returns the time.
fn wait(board: &Board) -> u64 {
    let begin_ns = board.now_ns();
    loop {
        let now_ns = board.now_ns();
        if now_ns.saturating_sub(begin_ns) >= INTERVAL_NS {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

/// The second process: says when it saw each publish of a round.
pub(crate) fn watch(line: &Line) -> Result<(), NoFigure> {
    let board = line.receive_pages()?.board;
    let _pinned = cpus::pin(1);
    while line.receive_numbers()?.is_some() {
        line.send_numbers(&[1])?;
        line.send_numbers(&watch_round(&board))?;
    }
    Ok(())
}

fn watch_round(board: &Board) -> Vec<u64> {
    let all = usize::try_from(PUBLISHES).unwrap_or(0);
    let mut seen_ns = Vec::with_capacity(all);
    let mut last_ns = board.now_ns();
    while seen_ns.len() < all {
        let number = board.scope(0).entry.saturating_sub(BASE);
        let number = usize::try_from(number).unwrap_or(0);
        let now_ns = board.now_ns();
        // Off its CPU this process sees nothing; the promise is about one that runs.
        let ran = now_ns.saturating_sub(last_ns) < OFF_CPU_NS;
        last_ns = now_ns;
        while seen_ns.len() < number {
            let newest = seen_ns.len().saturating_add(1) == number;
            seen_ns.push(if ran && newest { now_ns } else { UNKNOWN });
        }
    }
    seen_ns
}
