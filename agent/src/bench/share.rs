//! Two processes that decide on one resource at the same time.

use std::time::{Duration, Instant};

use tidegate_segment::board::Slot;
use tidegate_segment::gate::Gate;

use super::child::{Line, Part, Role};
use super::decision::pass;
use super::pages::Pages;
use super::timing::{Clocks, quantile};
use super::{Figure, NoFigure, cpus};

const ROUNDS: u32 = 5;
const ROUND: Duration = Duration::from_millis(200);

/// Lanes of the pages that two threads share: enough for one each beside those of earlier threads.
const THREAD_LANES: u32 = 16;

/// Decisions between two looks at the time.
const BATCH: u64 = 1000;

/// Measures how many passes two processes, and two threads, get on one resource.
pub(super) fn figures(clocks: &Clocks) -> Vec<Figure> {
    vec![
        Figure {
            name: "shm_2_processes_mops",
            how: "million enter and exit a second on one resource with one flow rule, two processes",
            value: mops(clocks),
        },
        Figure {
            name: "threads_2_mops",
            how: "the same, two threads of one process",
            value: threads_mops(clocks),
        },
    ]
}

fn threads_mops(clocks: &Clocks) -> Result<f64, NoFigure> {
    let mut pages = Pages::with_lanes(4, THREAD_LANES, clocks.best)?;
    let slot = pages.resource("shared", u32::MAX)?;
    let gate = pages.gate(1)?;
    let mut rates = Vec::new();
    for _round in 0..ROUNDS {
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _pinned = cpus::pin(1);
                rate(&gate, slot)
            });
            let _pinned = cpus::pin(0);
            let ours = rate(&gate, slot);
            other.join().map(|theirs| ours + theirs)
        });
        let both = both.map_err(|_panic| NoFigure::Wrong("a thread ended early".to_owned()))?;
        rates.push(both);
    }
    Ok(quantile(&mut rates, 0.5) / 1e6)
}

fn mops(clocks: &Clocks) -> Result<f64, NoFigure> {
    let part = Part::start(Role::Decide)?;
    let mut pages = Pages::new(4, clocks.best)?;
    // A limit that large stands for none, but each pass is counted all the same.
    let slot = pages.resource("shared", u32::MAX)?;
    let gate = pages.gate(1)?;
    let theirs = pages.gate(2)?;
    part.line.send_pages(&pages)?;
    let seat = pages.writers.seats.board().seat(theirs.seat());
    part.line.send_numbers(&[
        u64::from(theirs.seat()),
        u64::from(seat.generation),
        u64::from(slot.index),
        u64::from(slot.generation),
    ])?;
    let [_ready] = part.line.receive_exactly()?;
    let _pinned = cpus::pin(0);
    let mut rates = Vec::new();
    for _round in 0..ROUNDS {
        part.line.send_numbers(&[1])?;
        let ours = rate(&gate, slot);
        let [theirs] = part.line.receive_exactly()?;
        rates.push(ours + f64::from_bits(theirs));
    }
    Ok(quantile(&mut rates, 0.5) / 1e6)
}

/// The second process: decides for a round each time it is told to.
pub(super) fn decide(line: &Line) -> Result<(), NoFigure> {
    let view = line.receive_pages()?;
    let [seat, seat_generation, index, generation] = line.receive_exactly()?;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let gate = Gate::new(view.board, view.ledger, small(seat), small(seat_generation));
    let slot = Slot {
        index: small(index),
        generation: u16::try_from(generation).unwrap_or(0),
    };
    let _pinned = cpus::pin(1);
    line.send_numbers(&[1])?;
    while line.receive_numbers()?.is_some() {
        line.send_numbers(&[rate(&gate, slot).to_bits()])?;
    }
    Ok(())
}

/// Passes a second over one round.
fn rate(gate: &Gate, slot: Slot) -> f64 {
    let start = Instant::now();
    let mut passes = 0.0;
    while start.elapsed() < ROUND {
        for _call in 0..BATCH {
            passes += f64::from(u8::from(pass(gate, slot)));
        }
    }
    passes / start.elapsed().as_secs_f64()
}
