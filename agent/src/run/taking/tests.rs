use std::fs::File;
use std::os::fd::OwnedFd;

use super::*;
use crate::tenant::tests::tenant;

const NAME: &str = "shop";

fn small() -> Geometry {
    Geometry::new(16, 3, 2, 2).unwrap()
}

/// What waits for the pages that a tenant has recorded.
fn waiting(own: &Tenant) -> Taking {
    let directory = tempfile::tempdir().unwrap();
    own.record_in(directory.path(), NAME);
    let LastLifeFound::Usable(left) = LastLife::read(directory.path(), NAME, small()) else {
        panic!("it was written");
    };
    let name: Arc<str> = NAME.into();
    Taking {
        wanted: vec![Wanted::of(name, Vec::new(), Some(left))],
        ..Taking::default()
    }
}

fn copy(file: &OwnedFd) -> OwnedFd {
    file.try_clone().unwrap()
}

/// How a tenant begins whose service manager kept these files, each a board or a ledger.
fn begun(own: &Tenant, kept: Vec<(&str, OwnedFd)>) -> PagesOrigin {
    let hash = tidegate_abi::board::name_hash(NAME.as_bytes());
    let named = kept.into_iter().enumerate();
    let named =
        named.map(|(number, (kind, file))| (format!("{kind}-{hash:016x}-{number:x}"), file));
    let mut taking = waiting(own);
    taking.look_at_stored(&PageStore::of(named.collect()));
    assert!(
        taking.is_done(),
        "nobody lives who could hand anything back"
    );
    taking.take(NAME).1
}

#[test]
fn what_the_service_manager_kept_is_gone_on_with_if_it_is_that_of_the_record() {
    let [own, other] = [0; 2].map(|_tenant| tenant(small()));
    let [own_files, foreign] = [own.files(), other.files()];
    let board = || ("board", copy(&own_files.board));
    let ledger = || ("ledger", copy(&own_files.ledger));
    assert_eq!(begun(&own, vec![board(), ledger()]), PagesOrigin::TakenUp);
    // Surplus ones beside them.
    let more = vec![
        ("ledger", copy(&foreign.ledger)),
        ("board", copy(&foreign.board)),
        ledger(),
        board(),
        board(),
    ];
    assert_eq!(begun(&own, more), PagesOrigin::TakenUp);
    assert_eq!(begun(&own, Vec::new()), PagesOrigin::New);
}

#[test]
fn what_is_not_that_of_the_record_is_begun_anew() {
    let [own, other] = [0; 2].map(|_tenant| tenant(small()));
    let [own_files, foreign] = [own.files(), other.files()];
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let (board, ledger) = (&own_files.board, &own_files.ledger);
    for kept in [
        vec![("board", copy(board))],
        vec![("ledger", copy(ledger))],
        vec![("board", copy(ledger)), ("ledger", copy(board))],
        vec![("board", copy(board)), ("ledger", copy(&foreign.ledger))],
        vec![("board", copy(&foreign.board)), ("ledger", copy(ledger))],
        vec![("board", null()), ("ledger", null())],
    ] {
        assert_eq!(begun(&own, kept), PagesOrigin::Anew);
    }
    // A name of another kind, or of another tenant, is nobody's.
    let foreign = |name: &str| PageStore::of(vec![(name.to_owned(), null())]).has(NAME);
    for name in [
        "",
        "board",
        "board-x-1",
        "board-1-",
        "pages-1-1",
        "board-1-1",
    ] {
        assert!(!foreign(name), "{name}");
    }
}
