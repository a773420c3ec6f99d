use tidegate_abi::decision::LossMode;
use tidegate_segment::gate::{GateVerdict, Request};
use tidegate_segment::sync::Ordering;

use super::*;
use crate::tenant::callers::Caller;
use crate::tenant::decide::Waits;
use crate::tenant::rule_index::tests::rule_index;
use crate::tenant::tests::tenant;
use crate::tenant::{TakenUp, Tenant, TenantSettings};

const RULES: &str = "[[flow]]\nresource = \"a\"\ncount = 5\nwindow = \"1h\"";

fn small() -> Geometry {
    Geometry::new(16, 3, 2, 2).unwrap()
}

/// What a tenant leaves, by way of a file.
fn left(tenant: &Tenant) -> LastLife {
    let directory = tempfile::tempdir().unwrap();
    tenant.record_in(directory.path(), "some/one");
    let LastLifeFound::Usable(left) = LastLife::read(directory.path(), "some/one", small()) else {
        panic!("it was written");
    };
    left
}

fn take_up(left: &LastLife, from: &Tenant) -> Box<TakenUp> {
    let settings = TenantSettings {
        geometry: small(),
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let files = from.files();
    let proved = left.prove(&files.board, &files.ledger).unwrap();
    Tenant::take_up(&settings, left, &proved).unwrap()
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

#[test]
fn field_b13_nothing_but_the_pages_of_the_record_is_taken() {
    let [own, other] = [0; 2].map(|_tenant| tenant(small()));
    let left = left(&own);
    let [(board, ledger), (foreign_board, foreign_ledger)] =
        [&own, &other].map(|tenant| (&tenant.files().board, &tenant.files().ledger));
    assert_eq!(left.prove(board, ledger).unwrap().place, 0);
    for (board, ledger) in [
        (foreign_board, ledger),
        (board, foreign_ledger),
        (foreign_board, foreign_ledger),
        (ledger, board),
        (board, board),
    ] {
        let refused = left.prove(board, ledger).unwrap_err();
        assert!(matches!(refused, NotTaken::Foreign), "{refused}");
    }
    // The file of the record, but not what it was.
    let mut renamed = left.clone();
    renamed.names.boards[0].generation ^= 1;
    let refused = renamed.prove(board, ledger).unwrap_err();
    assert!(matches!(refused, NotTaken::OtherBoard), "{refused}");
    let larger = LastLife {
        geometry: Geometry::new(17, 3, 2, 2).unwrap(),
        ..left.clone()
    };
    let refused = larger.prove(board, ledger).unwrap_err();
    assert!(
        matches!(refused, NotTaken::File(FileError::Size { .. })),
        "{refused}"
    );
    // A ledger in the place of the board lacks the board's seal; a plain file has none.
    let plain = OwnedFd::from(tempfile::tempfile().unwrap());
    for board in [ledger, &plain] {
        let mut unsealed = left.clone();
        unsealed.names.boards[0].file = memfd::identify(board).unwrap();
        let refused = unsealed.prove(board, ledger).unwrap_err();
        assert!(matches!(refused, NotTaken::File(_)), "{refused}");
    }
}

#[tokio::test]
async fn field_b13_a_life_goes_on_from_the_board_that_was_handed_back_whichever_it_is() {
    let first = tenant(small());
    first.directory().publish(rule_index(RULES), 0).unwrap();
    assert_eq!(passes(&first, 3).await, 3);
    let second = take_up(&left(&first), &first);
    second
        .tenant
        .directory()
        .publish(rule_index(RULES), 0)
        .unwrap();
    assert_eq!(passes(&second.tenant, 1).await, 1);
    // Nobody had come to the second life yet.
    let third = take_up(&left(&second.tenant), &first);
    assert_eq!(third.tenant.names().boards.len(), 2);
    third
        .tenant
        .directory()
        .publish(rule_index(RULES), 0)
        .unwrap();
    assert_eq!(passes(&third.tenant, 3).await, 1, "five in all");
    let slot = third.tenant.directory().resolve("a").slot;
    assert_eq!(third.tenant.seats().node_counts(slot).inflight, 1);
}

#[tokio::test]
async fn field_b13_a_ledger_that_was_written_all_over_is_taken_up_and_every_decision_ends() {
    for pattern in [u64::MAX, 0, 0x0101_0101_0101_0101, 1 << 63 | 1 << 40] {
        let before = tenant(small());
        before.directory().publish(rule_index(RULES), 0).unwrap();
        let words = small().ledger().words;
        let page = memfd::open(MemoryKind::Ledger, &before.files().ledger, words).unwrap();
        for word in page.words() {
            word.store(pattern, Ordering::Relaxed);
        }
        let after = take_up(&left(&before), &before);
        after
            .tenant
            .directory()
            .publish(rule_index(RULES), 0)
            .unwrap();
        assert!(passes(&after.tenant, 9).await <= 9);
        let stated = tidegate_segment::ledger::Ledger::open(page, small());
        assert!(stated.is_ok(), "its header is right again");
        after.tenant.tend_ledger();
    }
}
