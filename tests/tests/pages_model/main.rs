//! Random requests of several processes on one pair of pages, some of them killed at any instruction, while
//! rules are published and slots of resources and of the nodes of origins and contexts go and come, against counts in memory.
//!
//! Time stands still while the processes work and goes on by half a second between two rounds. When
//! all are still, the pages must say what the processes wrote down (`diary`): exactly where it is about
//! the living, and within the one step that each of the dead may have been in the middle of. A slot that was
//! taken back and zeroed must hold nothing, and what is counted after it was given again is of its new time alone.
//!
//! `TIDEGATE_MODEL_SECONDS` makes it go on for longer, `TIDEGATE_MODEL_SEED` repeats a run's choices.

#![cfg(test)]

mod diary;
mod host;
mod random;
mod resource;
mod stage;
mod worker;

use std::time::{Duration, Instant};

use tidegate_segment::clock::monotonic_ns;

use crate::host::Host;
use crate::random::Random;

/// How long it goes on unless the environment says otherwise.
const SECONDS: u64 = 4;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: not a whole number")),
    )
}

/// Into the test's output, which is shown where it fails.
#[expect(clippy::print_stdout, reason = "this is the test's report")]
fn say(line: &str) {
    println!("{line}");
}

#[test]
fn alone_pages_say_what_their_processes_did_wherever_some_were_killed() {
    let seed = number("TIDEGATE_MODEL_SEED").unwrap_or_else(monotonic_ns);
    let span = Duration::from_secs(number("TIDEGATE_MODEL_SECONDS").unwrap_or(SECONDS));
    say(&format!("TIDEGATE_MODEL_SEED={seed}"));
    let mut host = Host::new(Random::new(seed));
    let begin = Instant::now();
    while begin.elapsed() < span {
        host.round();
    }
    say(&host.story());
    assert!(host.has_seen_all(), "{}", host.story());
}
