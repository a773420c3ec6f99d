//! A breaker: its tally and its state are two words, and a probe is one request in all processes.

use std::num::NonZeroU64;

use loom::thread;
use tidegate_abi::decision::Outcome;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::breaker::{Breaker, BreakerState};
use tidegate_limits::quirks::Quirks;

use super::{At, NOW, Pages, enter, pages};
use crate::board::{RuleKind, Slot};
use crate::gate::{Gate, Pass};
use crate::lane::Lane;
use crate::sync::Ordering;

const MS: u64 = 1_000_000;
/// The interval of the completions is a second, and so the trip and the probe are in one.
const INTERVAL: NonZeroU64 = NonZeroU64::new(1_000 * MS).unwrap();

const BREAKER: Breaker = Breaker {
    trip: BreakerTrip::ErrorRatio(0.4),
    min_requests: 2,
    recovery_ns: 100 * MS,
    lease_ns: 200 * MS,
    quirks: Quirks::None,
};

/// When a breaker that opened now is probed.
const PROBED: At = At(NOW.0 + 100 * MS);

fn guarded(pages: &mut Pages) -> Slot {
    pages.ruled(RuleKind::Degrade {
        breaker: BREAKER,
        interval_ns: INTERVAL,
    })
}

fn word(pages: &Pages) -> u64 {
    pages.ledger.state(0).unwrap().word().load(Ordering::SeqCst)
}

fn state(pages: &Pages, at: At) -> BreakerState {
    BREAKER.state(word(pages), at.0)
}

fn exit(gate: &Gate, at: At, pass: Option<Pass>, outcome: Outcome) {
    gate.exit(&at, Lane::SHARED, pass.unwrap(), outcome);
}

/// Two failures at once: the breaker is open.
fn trip(gate: &Gate, slot: Slot) {
    let calls = [(); 2].map(|()| enter(gate, NOW, 0, slot));
    for call in calls {
        exit(gate, NOW, call, Outcome::Error);
    }
}

#[test]
fn loom_completions_at_one_moment_trip_a_breaker_once() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let slot = guarded(&mut pages);
        let threads = [1, 2].map(|seat| {
            let gate = pages.gate(seat);
            let call = enter(&gate, NOW, 0, slot);
            thread::spawn(move || exit(&gate, NOW, call, Outcome::Error))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(state(&pages, NOW), BreakerState::Open);
        assert_eq!(word(&pages) >> 48 & 0x3fff, 1, "the generation of one trip");
    });
}

#[test]
fn loom_one_of_two_callers_becomes_the_probe() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let slot = guarded(&mut pages);
        let gates = [pages.gate(1), pages.gate(2)];
        trip(&gates[0], slot);
        let threads =
            gates.map(|gate| thread::spawn(move || enter(&gate, PROBED, 0, slot).is_some()));
        let probes = threads.map(|thread| u32::from(thread.join().unwrap()));
        assert_eq!(probes.iter().sum::<u32>(), 1);
        assert_eq!(state(&pages, PROBED), BreakerState::HalfOpen);
    });
}

#[test]
fn loom_a_probe_and_the_end_of_its_lease_leave_one_state() {
    loom::model(|| {
        let late = At(PROBED.0 + BREAKER.lease_ns + BREAKER.recovery_ns);
        let mut pages = pages(3, 1);
        let slot = guarded(&mut pages);
        let (prober, other) = (pages.gate(1), pages.gate(2));
        trip(&prober, slot);
        let probe = enter(&prober, PROBED, 0, slot);
        // The probe ends in time by its own clock, another caller finds its lease run out.
        let thread = thread::spawn(move || exit(&prober, PROBED, probe, Outcome::Ok));
        let second = enter(&other, late, 0, slot);
        thread.join().unwrap();
        match state(&pages, late) {
            BreakerState::Closed | BreakerState::HalfOpen => assert!(second.is_some()),
            BreakerState::Open => assert!(second.is_none()),
        }
    });
}

#[test]
fn loom_the_failures_of_a_trip_do_not_count_after_the_probe() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let slot = guarded(&mut pages);
        let (prober, other) = (pages.gate(1), pages.gate(2));
        trip(&prober, slot);
        let probe = enter(&prober, PROBED, 0, slot);
        let threads = [
            thread::spawn(move || exit(&prober, PROBED, probe, Outcome::Ok)),
            thread::spawn(move || {
                if let Some(call) = enter(&other, PROBED, 0, slot) {
                    other.exit(&PROBED, Lane::SHARED, call, Outcome::Ok);
                }
            }),
        ];
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(state(&pages, PROBED), BreakerState::Closed);
    });
}
