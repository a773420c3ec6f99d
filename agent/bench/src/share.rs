//! Two processes that decide at the same time, on one resource or on one each.

use std::time::{Duration, Instant};

use tidegate_segment::board::Slot;
use tidegate_segment::gate::Gate;

use crate::child::{Line, Part, Role};
use crate::cpus;
use crate::figure::{Figure, NoFigure};
use crate::pages::Pages;
use crate::pass::pass;
use crate::timing::{Clocks, quantile};

const ROUNDS: u32 = 5;
const ROUND: Duration = Duration::from_millis(200);

/// Lanes of the pages that two threads share: enough for one each beside those of earlier threads.
const THREAD_LANES: u32 = 16;

/// Decisions between two looks at the time.
const BATCH: u64 = 1000;

/// Measures how many passes two processes get, and two threads.
pub(crate) fn figures(clocks: &Clocks) -> Vec<Figure> {
    let (both, of_alone) = match apart(clocks) {
        Ok((both, of_alone)) => (Ok(both), Ok(of_alone)),
        Err(why) => {
            let again = NoFigure::Wrong(why.to_string());
            (Err(why), Err(again))
        }
    };
    vec![
        Figure {
            name: "shm_2_processes_mops",
            how: "million enter and exit a second on one resource with one flow rule, two processes",
            value: together(clocks),
        },
        Figure {
            name: "shm_2_processes_apart_mops",
            how: "the same on a resource for each process",
            value: both,
        },
        Figure {
            name: "shm_2_processes_apart_ratio",
            how: "that ÷ the sum of what each gets while the other rests, turn by turn; 1 = linear",
            value: of_alone,
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

fn together(clocks: &Clocks) -> Result<f64, NoFigure> {
    let mut pages = Pages::new(4, clocks.best)?;
    let pair = Pair::start(&mut pages, true)?;
    let _pinned = cpus::pin(0);
    let mut rates = Vec::new();
    for _round in 0..ROUNDS {
        rates.push(pair.both()?);
    }
    Ok(quantile(&mut rates, 0.5) / 1e6)
}

/// Passes of both on resources of their own, million a second, and their ratio to those of each alone.
fn apart(clocks: &Clocks) -> Result<(f64, f64), NoFigure> {
    let mut pages = Pages::new(4, clocks.best)?;
    let pair = Pair::start(&mut pages, false)?;
    let _pinned = cpus::pin(0);
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    for _round in 0..ROUNDS {
        let alone = pair.ours() + pair.theirs()?;
        let both = pair.both()?;
        rates.push(both);
        ratios.push(both / alone);
    }
    Ok((quantile(&mut rates, 0.5) / 1e6, quantile(&mut ratios, 0.5)))
}

/// This process and a second one on the same pages.
#[derive(Debug)]
struct Pair {
    part: Part,
    gate: Gate,
    slot: Slot,
}

impl Pair {
    /// Starts the second process, on the same resource or on another one.
    fn start(pages: &mut Pages, same: bool) -> Result<Self, NoFigure> {
        let part = Part::start(Role::Decide)?;
        // A limit that large stands for none, but each pass is counted all the same.
        let slot = pages.resource("ours", u32::MAX)?;
        let their_slot = if same {
            slot
        } else {
            pages.resource("theirs", u32::MAX)?
        };
        let gate = pages.gate(1)?;
        let theirs = pages.gate(2)?;
        part.line.send_pages(pages)?;
        let seat = pages.writers.seats.board().seat(theirs.seat());
        part.line.send_numbers(&[
            u64::from(theirs.seat()),
            u64::from(seat.generation),
            u64::from(their_slot.index),
            u64::from(their_slot.generation),
        ])?;
        let [_ready] = part.line.receive_exactly()?;
        Ok(Self { part, gate, slot })
    }

    /// Passes a second of this process.
    fn ours(&self) -> f64 {
        rate(&self.gate, self.slot)
    }

    /// Passes a second of the other one.
    fn theirs(&self) -> Result<f64, NoFigure> {
        self.part.line.send_numbers(&[1])?;
        let [theirs] = self.part.line.receive_exactly()?;
        Ok(f64::from_bits(theirs))
    }

    /// Passes a second of both at once.
    fn both(&self) -> Result<f64, NoFigure> {
        self.part.line.send_numbers(&[1])?;
        let ours = self.ours();
        let [theirs] = self.part.line.receive_exactly()?;
        Ok(ours + f64::from_bits(theirs))
    }
}

/// The second process: decides for a round each time it is told to.
pub(crate) fn decide(line: &Line) -> Result<(), NoFigure> {
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
