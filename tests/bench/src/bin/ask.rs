//! Asks a running agent through the client in a loop, for a tool that counts instructions, and tells the time of it, for a
//! machine that does other things too: `ask RUNTIME_DIR CASE CALLS`, with the cases of `tidegate_decisions::agent`.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_decisions::agent::{ask, client};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, case, calls] = arguments.as_slice() else {
        eprintln!("ask RUNTIME_DIR CASE CALLS");
        return ExitCode::from(2);
    };
    let calls: u32 = calls.parse().unwrap_or(0);
    let client = client(Path::new(dir));
    let resource = client.resource(case).expect("a name");
    // Lanes, cells and breakers are as they are after the first calls, and the agent says at its next ticks that a new
    // seat is calm. The time of that passes without instructions.
    for _tick in 0..3 {
        for _call in 0..64 {
            ask(black_box(&resource));
        }
        thread::park_timeout(TICK);
    }
    let mut admitted = 0_u32;
    let mut rounds = Vec::new();
    for round in (0..calls).step_by(ROUND as usize) {
        let begin = Instant::now();
        let asked = ROUND.min(calls - round);
        for _call in 0..asked {
            admitted += u32::from(ask(black_box(&resource)));
        }
        rounds.push(begin.elapsed().as_nanos() / u128::from(asked));
    }
    rounds.sort_unstable();
    let quick = rounds.get(rounds.len() / 10).copied().unwrap_or(0);
    println!("{admitted} of {calls} admitted; in the quickest tenth of rounds {quick} ns each");
    ExitCode::SUCCESS
}

/// A little more than the time of an agent's tick.
const TICK: Duration = Duration::from_millis(120);

/// Calls whose time is taken as one: so few that a neighbour on the core seldom comes and goes meanwhile.
const ROUND: u32 = 500;
