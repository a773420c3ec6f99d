use tidegate_abi::decision::Outcome;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::Slot;
use tidegate_segment::gate::{Gate, GateVerdict, Pass, Request, Step};
use tidegate_segment::lane::Lane;

use super::*;
use crate::tenant::callers::Caller;
use crate::tenant::decide::Waits;
use crate::tenant::rule_index::tests::rule_index;
use crate::tenant::seat_life;
use crate::tenant::tests::tenant;

const RULES: &str = "[[flow]]\nresource = \"a\"\ngrade = \"concurrency\"\ncount = 5";

fn me() -> Process {
    let pid = std::process::id();
    Process {
        pid,
        start: seat_life::start_time(pid).unwrap(),
        uid: 0,
        scope: 0,
    }
}

fn life(resources: u32) -> Arc<Tenant> {
    let tenant = tenant(Geometry::new(resources, 3, 2, 2).unwrap());
    tenant.directory().publish(rule_index(RULES), 0).unwrap();
    Arc::new(tenant)
}

/// A process of the life before that has so many in flight on a resource.
struct Before {
    tenant: Arc<Tenant>,
    seat: Seat,
    slot: Slot,
    held: Vec<Pass>,
}

impl Before {
    fn holds(many: usize) -> Self {
        let tenant = life(16);
        // Other slots than in the next life.
        tenant.directory().resolve("z");
        let seat = tenant.seats().take(me()).unwrap();
        let slot = tenant.directory().resolve("a").slot;
        let mut before = Self {
            tenant,
            seat,
            slot,
            held: Vec::new(),
        };
        before.held = (0..many).map(|_one| before.enter()).collect();
        before
    }

    fn gate(&self) -> Gate {
        let (board, ledger) = (*self.tenant.board(), *self.tenant.ledger());
        Gate::new(board, ledger, self.seat.index, self.seat.generation)
    }

    fn enter(&self) -> Pass {
        let request = Request::default();
        let entered = self
            .gate()
            .enter(self.tenant.board(), Lane::numbered(1), self.slot, request);
        let Step::Done(GateVerdict::Admitted(pass)) = entered else {
            panic!("{entered:?}");
        };
        pass
    }

    fn give_back_one(&mut self) {
        let pass = self.held.pop().unwrap();
        self.gate()
            .exit(self.tenant.board(), Lane::numbered(1), pass, Outcome::Ok);
    }

    fn files(&self) -> [OwnedFd; 2] {
        let files = self.tenant.files();
        [&files.board, &files.ledger].map(|file| file.try_clone().unwrap())
    }

    fn hand_back(
        &self,
        to: &Arc<Tenant>,
        seat: Option<Seat>,
    ) -> Result<Option<InFlight>, NotCounted> {
        to.count_earlier(&HandedBack {
            files: &self.files(),
            process: me(),
            seat,
        })
    }
}

async fn passes(tenant: &Tenant, tries: u32) -> u32 {
    let slot = tenant.directory().resolve("a").slot;
    let mut passed = 0;
    for _try in 0..tries {
        let verdict = tenant
            .enter(&Caller::HOST.into(), slot, Request::default(), Waits::HELD)
            .await;
        passed += u32::from(matches!(verdict, GateVerdict::Admitted(_)));
    }
    passed
}

fn look(tenant: &Tenant) -> bool {
    tenant.earlier().pages.lock().look(tenant)
}

#[tokio::test]
async fn field_b13_what_is_in_flight_on_earlier_pages_counts_until_it_is_given_back() {
    let mut before = Before::holds(4);
    let now = life(32);
    let found = before.hand_back(&now, Some(before.seat)).unwrap().unwrap();
    assert_eq!((found.services, found.requests), (1, 4));
    assert_eq!(passes(&now, 3).await, 1, "five in all");
    before.give_back_one();
    before.give_back_one();
    assert!(look(&now));
    assert_eq!(passes(&now, 3).await, 2);
    // What is taken there yet counts too.
    let late = before.enter();
    assert!(look(&now));
    assert_eq!(now.earlier().in_flight().requests, 3);
    before.held.push(late);
    (0..3).for_each(|_one| before.give_back_one());
    assert!(look(&now), "it is looked at for a while yet");
    assert_eq!(now.earlier().in_flight().requests, 0);
    assert_eq!(passes(&now, 3).await, 2);
    assert!(before.hand_back(&now, None).unwrap().is_none(), "once");
}

#[tokio::test]
async fn field_b13_pages_that_are_no_pages_or_of_somebody_else_count_for_nothing() {
    let before = Before::holds(4);
    let now = life(16);
    let other = Seat {
        generation: before.seat.generation + 1,
        ..before.seat
    };
    assert_eq!(
        before.hand_back(&now, Some(other)),
        Err(NotCounted::Stranger)
    );
    let mut stranger = me();
    stranger.start += 1;
    let [board, ledger] = before.files();
    let plain = OwnedFd::from(tempfile::tempfile().unwrap());
    for (files, process, why) in [
        ([&board, &ledger], stranger, NotCounted::Stranger),
        ([&plain, &ledger], me(), NotCounted::NoPages),
        ([&board, &plain], me(), NotCounted::NoPages),
        ([&ledger, &board], me(), NotCounted::NoPages),
    ] {
        let files = &files.map(|file| file.try_clone().unwrap());
        let back = HandedBack {
            files,
            process,
            seat: None,
        };
        assert_eq!(now.count_earlier(&back), Err(why));
    }
    assert_eq!(passes(&now, 6).await, 5);
    let refused: Vec<u64> = now.earlier().refused().map(|(_why, count)| count).collect();
    assert_eq!(refused, [0, 0, 3, 2, 0]);
    // The pages in force are none of an earlier life.
    let files = now.files();
    let files = [&files.board, &files.ledger].map(|file| file.try_clone().unwrap());
    let back = HandedBack {
        files: &files,
        process: me(),
        seat: None,
    };
    assert_eq!(now.count_earlier(&back), Ok(None));
}

#[tokio::test]
async fn field_b13_ledgers_that_lie_count_no_more_than_a_sum_can_hold_and_are_bounded() {
    let now = life(16);
    for number in 0..=LEDGERS_MAX {
        let before = Before::holds(1);
        let words = before.tenant.ledger().geometry().ledger().words;
        let page = memfd::open(memfd::MemoryKind::Ledger, &before.files()[1], words).unwrap();
        for word in page.words() {
            // The highest count that is not below zero on two lanes; whose it is stays.
            word.change(Ordering::Relaxed, |seen| {
                (seen & 0xff_ffff_ffff) | 0x3f_ffff << 40
            });
        }
        let counted = before.hand_back(&now, None);
        if number < LEDGERS_MAX {
            counted.unwrap();
            assert_eq!(passes(&now, 1).await, 0, "the limit is not lifted");
        } else {
            assert_eq!(counted, Err(NotCounted::Many));
        }
    }
}
