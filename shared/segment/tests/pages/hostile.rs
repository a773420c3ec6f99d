//! Whatever stands in a ledger, a decision ends, does not panic and stays inside the pages.

use crate::fixture::Fixture;
use proptest::prelude::*;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Outcome};
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{Board, Record};
use tidegate_segment::gate::{Gate, Request, Step, Verdict};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;
use tidegate_segment::sync::Ordering;

fn record() -> Record {
    Record {
        needs: Needs(Needs::QPS | Needs::CONCURRENCY | Needs::OBSERVED_QPS),
        qps_limit: 5,
        concurrency_limit: 5,
        observed_qps_limit: 2,
        ..Record::default()
    }
}

/// A ledger of the fixture's geometry whose words after the header are `words`, over and over.
fn ledger_of(geometry: Geometry, words: &[u64]) -> Ledger {
    let page = Page::private(geometry.ledger().words);
    let ledger = Ledger::create(page, geometry).unwrap();
    let header = geometry.ledger().scopes.start();
    for (word, value) in page.words().iter().skip(header).zip(words.iter().cycle()) {
        word.store(*value, Ordering::Relaxed);
    }
    ledger
}

proptest! {
    #[test]
    fn any_bits_in_the_ledger_are_survived(words in prop::collection::vec(any::<u64>(), 1..64)) {
        let mut fixture = Fixture::new(LossMode::Open);
        let slot = fixture.resource("r", record());
        let seated = fixture.gate(1, 0);
        let ledger = ledger_of(fixture.board.geometry(), &words);
        let gate = Gate::new(fixture.board, ledger, seated.seat(), 1);
        for lane in 0..4 {
            let lane = Lane::numbered(lane);
            if let Step::Done(Verdict::Admitted(pass)) = gate.enter(&fixture.clock, lane, slot, Request::default()) {
                gate.exit(&fixture.clock, lane, pass, Outcome::Ok);
            }
        }
        let _counts = ledger.node_counts(&fixture.board, slot);
        let _scopes = ledger.scope_counts(&fixture.board, 0);
        let _one_shot = gate.admit_one_shot(&fixture.clock, 0);
        ledger.clear_seat(1, fixture.board.resources_used());
    }

    #[test]
    fn any_page_is_taken_or_refused_with_a_reason(words in prop::collection::vec(any::<u64>(), 0..128)) {
        let page = Page::private(words.len());
        for (word, value) in page.words().iter().zip(&words) {
            word.store(*value, Ordering::Relaxed);
        }
        prop_assert!(Board::open(page).is_err());
    }
}

#[test]
fn a_board_says_why_it_is_not_taken() {
    let short = Page::private(4);
    let found = Board::open(short).unwrap_err().to_string();
    assert!(
        found.starts_with("the page begins with 0x0000000000000000"),
        "{found}"
    );

    let geometry = Geometry::new(8, 4, 3, 4).unwrap();
    let page = Page::private(geometry.board().words);
    let words = page.words();
    words[0].store(tidegate_abi::board::MAGIC, Ordering::Relaxed);
    words[1].store(99, Ordering::Relaxed);
    let found = Board::open(page).unwrap_err().to_string();
    assert_eq!(
        found,
        "layout version 99, this program has 1; upgrade the older of the two"
    );
    words[1].store(u64::from(tidegate_abi::VERSION), Ordering::Relaxed);
    let found = Board::open(page).unwrap_err().to_string();
    assert_eq!(found, "resources = 0 is not in 1..=1048576");
    words[2].store(u64::from(u32::MAX) >> 12, Ordering::Relaxed);
    assert!(
        Board::open(page).is_err(),
        "a page that is far too short for its header"
    );
}
