//! The breaker against a plain model with an enum, a list of completions and a set of permits.

use std::num::NonZeroU64;

use proptest::prelude::*;
use tidegate_limits::breaker::tally::{BreakerTally, COUNT_MAX, REQUESTS_MAX};
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::breaker::{Breaker, BreakerAnswer, BreakerChange, BreakerState, Completion};
use tidegate_limits::quirks::Quirks;

const MS: u64 = 1_000_000;
const INTERVAL: NonZeroU64 = NonZeroU64::new(1_000 * MS).expect("a second is not zero");

fn rule(trip: BreakerTrip, quirks: Quirks) -> Breaker {
    Breaker {
        trip,
        min_requests: 2,
        recovery_ns: 3_000 * MS,
        lease_ns: Breaker::default_lease_ns(3_000 * MS),
        quirks,
    }
}

/// A breaker with its two words and a clock in ms.
struct Subject {
    rule: Breaker,
    state: u64,
    tally: u64,
}

impl Subject {
    fn new(trip: BreakerTrip, quirks: Quirks) -> Self {
        Self {
            rule: rule(trip, quirks),
            state: 0,
            tally: 0,
        }
    }

    /// The generation, if admitted.
    fn enter(&mut self, at_ms: u64) -> Option<u16> {
        let (admission, next) = self.rule.enter(self.state, at_ms * MS);
        self.state = next;
        match admission {
            BreakerAnswer::Pass { generation } | BreakerAnswer::Probe { generation } => {
                Some(generation)
            }
            BreakerAnswer::Refuse { .. } => None,
        }
    }

    fn exit(&mut self, at_ms: u64, is_bad: bool, generation: Option<u16>) -> BreakerChange {
        let tally = BreakerTally::at(self.tally, at_ms * MS, INTERVAL).add(is_bad);
        let call = Completion { is_bad, generation };
        let (change, next) = self.rule.complete(self.state, tally, call, at_ms * MS);
        self.state = next;
        self.tally = if change == BreakerChange::Closed {
            tally.cleared().word()
        } else {
            tally.word()
        };
        change
    }

    fn state(&self, at_ms: u64) -> BreakerState {
        self.rule.state(self.state, at_ms * MS)
    }

    /// Trips at `at_ms`; gives the generation of a call that was admitted before.
    fn trip(&mut self, at_ms: u64) -> Option<u16> {
        let before = self.enter(at_ms);
        for _bad in 0..2 {
            self.exit(at_ms, true, before);
        }
        assert_eq!(self.state(at_ms), BreakerState::Open);
        before
    }
}

fn half_failed(quirks: Quirks) -> Subject {
    Subject::new(BreakerTrip::ErrorRatio(0.5), quirks)
}

#[test]
fn it_opens_above_the_threshold_and_probes_at_the_instant() {
    let mut breaker = half_failed(Quirks::None);
    let call = breaker.enter(10);
    assert_eq!(
        breaker.exit(20, true, call),
        BreakerChange::None,
        "below the least number"
    );
    assert_eq!(
        breaker.exit(30, false, call),
        BreakerChange::None,
        "equal to the ratio"
    );
    assert_eq!(
        breaker.exit(40, true, call),
        BreakerChange::Opened { value: 2.0 / 3.0 }
    );
    assert_eq!(breaker.enter(3_039), None);
    let probe = breaker.enter(3_040);
    assert!(probe.is_some());
    assert_eq!(breaker.enter(3_040), None, "one probe at a time");
    assert_eq!(breaker.exit(3_050, false, probe), BreakerChange::Closed);
    assert_eq!(breaker.state(3_050), BreakerState::Closed);
    assert_eq!(
        BreakerTally::at(breaker.tally, 3_050 * MS, INTERVAL).all(),
        0
    );
}

#[test]
fn a_bad_probe_opens_it_for_a_fresh_time() {
    let mut breaker = half_failed(Quirks::None);
    breaker.trip(0);
    let probe = breaker.enter(3_500);
    assert_eq!(
        breaker.exit(3_600, true, probe),
        BreakerChange::Opened { value: 1.0 }
    );
    assert_eq!(breaker.enter(6_599), None);
    assert!(breaker.enter(6_600).is_some());
}

#[test]
fn a_call_from_before_the_trip_decides_only_in_sentinel() {
    for (quirks, state) in [
        (Quirks::None, BreakerState::HalfOpen),
        (Quirks::Sentinel, BreakerState::Closed),
    ] {
        let mut breaker = half_failed(quirks);
        let before = breaker.trip(0);
        assert!(breaker.enter(3_000).is_some());
        breaker.exit(3_100, false, before);
        assert_eq!(breaker.state(3_100), state);
    }
    let mut breaker = half_failed(Quirks::None);
    let before = breaker.trip(0);
    let probe = breaker.enter(3_000);
    breaker.exit(3_100, false, probe);
    for _late in 0..5 {
        assert_eq!(breaker.exit(3_200, true, before), BreakerChange::None);
    }
    assert_eq!(breaker.exit(3_200, true, None), BreakerChange::None);
    assert!(matches!(
        breaker.exit(3_300, true, probe),
        BreakerChange::Opened { .. }
    ));
}

#[test]
fn a_probe_without_an_end_opens_it_again_except_in_sentinel() {
    let mut breaker = half_failed(Quirks::None);
    breaker.trip(0);
    let probe = breaker.enter(3_000);
    assert_eq!(breaker.state(5_999), BreakerState::HalfOpen);
    assert_eq!(
        breaker.state(6_000),
        BreakerState::Open,
        "the lease of 3 s is over"
    );
    assert_eq!(breaker.enter(8_999), None);
    assert_eq!(
        breaker.exit(9_000, false, probe),
        BreakerChange::None,
        "the late probe"
    );
    let second = breaker.enter(9_000);
    assert!(second.is_some() && second != probe);
    let mut stuck = half_failed(Quirks::Sentinel);
    stuck.trip(0);
    assert!(stuck.enter(3_000).is_some());
    assert_eq!(stuck.enter(3_000_000), None);
    assert_eq!(Breaker::default_lease_ns(1), 1_000 * MS);
}

#[test]
fn a_probe_that_is_put_back_frees_its_place() {
    for quirks in [Quirks::None, Quirks::Sentinel] {
        let mut breaker = half_failed(quirks);
        breaker.trip(0);
        let probe = breaker.enter(3_000).unwrap();
        breaker.state = breaker.rule.put_back(breaker.state, probe, 3_001 * MS);
        assert_eq!(breaker.state(3_001), BreakerState::Open);
        assert!(breaker.enter(3_001).is_some());
        let other = probe.wrapping_add(1);
        breaker.state = breaker.rule.put_back(breaker.state, other, 3_002 * MS);
        assert_eq!(breaker.state(3_002), BreakerState::HalfOpen);
    }
}

#[test]
fn a_ratio_of_one_trips_when_all_are_bad() {
    let slow = BreakerTrip::SlowRatio {
        max_rt_ns: 50 * MS,
        ratio: 1.0,
    };
    let cases = [
        (slow, Quirks::None, BreakerState::Open),
        (slow, Quirks::Sentinel, BreakerState::Open),
        (
            BreakerTrip::ErrorRatio(1.0),
            Quirks::None,
            BreakerState::Open,
        ),
        (
            BreakerTrip::ErrorRatio(1.0),
            Quirks::Sentinel,
            BreakerState::Closed,
        ),
        (
            BreakerTrip::ErrorCount(2.0),
            Quirks::None,
            BreakerState::Closed,
        ),
    ];
    for (trip, quirks, state) in cases {
        let mut breaker = Subject::new(trip, quirks);
        let call = breaker.enter(0);
        breaker.exit(1, true, call);
        breaker.exit(2, true, call);
        assert_eq!(breaker.state(2), state, "{trip:?} {quirks:?}");
    }
    assert!(!slow.is_bad(50 * MS, true) && slow.is_bad(50 * MS + 1, false));
    assert!(
        BreakerTrip::ErrorCount(1.0).is_bad(0, true)
            && !BreakerTrip::ErrorCount(1.0).is_bad(u64::MAX, false)
    );
}

/// The same rules, written plainly for whole ms.
struct Model {
    trip: BreakerTrip,
    min_requests: usize,
    sentinel: bool,
    state: BreakerState,
    retry_ms: u64,
    lease_ms: u64,
    /// Number of the present permit era and the completions of the interval.
    era: u32,
    completions: Vec<(u64, bool)>,
}

impl Model {
    fn settle(&mut self, at_ms: u64) {
        if self.state == BreakerState::HalfOpen && !self.sentinel && at_ms >= self.lease_ms {
            self.open(self.lease_ms);
        }
    }

    fn open(&mut self, at_ms: u64) {
        self.state = BreakerState::Open;
        self.retry_ms = at_ms + 3_000;
        self.era += 1;
    }

    fn enter(&mut self, at_ms: u64) -> Option<u32> {
        self.settle(at_ms);
        match self.state {
            BreakerState::Closed => Some(self.era),
            BreakerState::Open if at_ms >= self.retry_ms => {
                self.state = BreakerState::HalfOpen;
                self.lease_ms = at_ms + 3_000;
                Some(self.era)
            }
            BreakerState::Open | BreakerState::HalfOpen => None,
        }
    }

    fn put_back(&mut self, at_ms: u64, era: u32) {
        self.settle(at_ms);
        if self.state == BreakerState::HalfOpen && era == self.era {
            self.state = BreakerState::Open;
            self.retry_ms = 0;
        }
    }

    fn exit(&mut self, at_ms: u64, is_bad: bool, era: u32) {
        self.settle(at_ms);
        self.completions
            .retain(|(at, _)| at / 1_000 == at_ms / 1_000);
        self.completions.push((at_ms, is_bad));
        if !self.sentinel && era != self.era {
            return;
        }
        let share = |bad: bool| if bad { 1.0 } else { 0.0 };
        let (bad, all) = self
            .completions
            .iter()
            .fold((0.0, 0.0), |(bad, all), call| {
                (bad + share(call.1), all + 1.0)
            });
        let over = match self.trip {
            BreakerTrip::ErrorCount(count) => bad > count,
            BreakerTrip::SlowRatio { ratio, .. } => {
                bad / all > ratio || (ratio >= 1.0 && bad >= all)
            }
            BreakerTrip::ErrorRatio(ratio) => {
                bad / all > ratio || (ratio >= 1.0 && bad >= all && !self.sentinel)
            }
        };
        match self.state {
            BreakerState::Closed if self.completions.len() >= self.min_requests && over => {
                self.open(at_ms);
            }
            BreakerState::HalfOpen if is_bad => self.open(at_ms),
            BreakerState::HalfOpen => {
                self.state = BreakerState::Closed;
                self.completions.clear();
            }
            BreakerState::Closed | BreakerState::Open => {}
        }
    }
}

#[test]
fn no_number_of_good_calls_hides_a_number_of_bad_ones() {
    let full = BreakerTally::of(u64::from(COUNT_MAX) << 22 | 3);
    let by_number = BreakerTrip::ErrorCount(3.0).count(full, false);
    assert_eq!((by_number.all(), by_number.bad()), (COUNT_MAX, 3));
    assert_eq!(BreakerTrip::ErrorCount(3.0).count(by_number, true).bad(), 4);
    // A share stays what it is.
    let by_share = BreakerTrip::ErrorRatio(0.5).count(full, false);
    assert_eq!((by_share.all(), by_share.bad()), (REQUESTS_MAX, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equals_the_model(
        // Step in ms (long ones sometimes), which open call ends (if any), how.
        events in prop::collection::vec((0_u64..900, 0_usize..6, any::<bool>(), 0_u8..10), 1..400),
        share in prop_oneof![Just(0.0), Just(0.5), Just(1.0), 0.0_f64..0.99],
        kind in 0_u8..3,
        min_requests in 1_u32..6,
        sentinel: bool,
    ) {
        let quirks = if sentinel { Quirks::Sentinel } else { Quirks::None };
        // Which calls are slow or failed is said by the events.
        let trip = match kind {
            0 => BreakerTrip::ErrorRatio(share),
            1 => BreakerTrip::SlowRatio { max_rt_ns: 0, ratio: share },
            _ => BreakerTrip::ErrorCount(share * 4.0),
        };
        let mut subject = Subject::new(trip, quirks);
        subject.rule.min_requests = min_requests;
        let mut model = Model {
            trip,
            min_requests: min_requests as usize,
            sentinel,
            state: BreakerState::Closed,
            retry_ms: 0,
            lease_ms: 0,
            era: 0,
            completions: Vec::new(),
        };
        let (mut open, mut at_ms) = (Vec::new(), 10_000);
        for (step_ms, pick, is_bad, kind) in events {
            at_ms += if kind == 0 { step_ms * 5 } else { step_ms / 8 };
            if kind < 5 || open.is_empty() {
                let (got, want) = (subject.enter(at_ms), model.enter(at_ms));
                prop_assert_eq!(got.is_some(), want.is_some(), "at {}", at_ms);
                open.extend(got.zip(want));
            } else {
                let (generation, era) = open.swap_remove(pick % open.len());
                if kind == 9 {
                    subject.state = subject.rule.put_back(subject.state, generation, at_ms * MS);
                    model.put_back(at_ms, era);
                    continue;
                }
                subject.exit(at_ms, is_bad, Some(generation));
                model.exit(at_ms, is_bad, era);
            }
            prop_assert_eq!(subject.state(at_ms), model.state, "at {}", at_ms);
        }
    }

    #[test]
    fn any_word_is_taken(state: u64, tally: u64, now_ns: u64, recovery_ns: u64, quirky: bool) {
        let quirks = if quirky { Quirks::Sentinel } else { Quirks::None };
        let breaker = Breaker { recovery_ns, lease_ns: recovery_ns, ..rule(BreakerTrip::ErrorCount(0.0), quirks) };
        let (_, next) = breaker.enter(state, now_ns);
        let tally = BreakerTally::at(tally, now_ns, NonZeroU64::MIN).add(true);
        let call = Completion { is_bad: true, generation: Some(0) };
        let (_, next) = breaker.complete(next, tally, call, now_ns);
        let _word = breaker.put_back(next, 1, now_ns);
    }
}
