//! An agent that dies in the middle of a publish harms nobody.
use std::cell::Cell;

use rustix::process::{WaitOptions, waitpid};
use tidegate_abi::board::Needs;
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;

use crate::board::{self, Board, BoardSettings, CompiledRules, ResourceRecord, Writers};
use crate::os::child;
use crate::os::memfd::{self, MemoryKind};

thread_local! {
    /// Stores left until the process is killed; `u64::MAX` = never.
    static STORES_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

pub(super) fn crash_point() {
    let left = STORES_LEFT.get();
    if left == 0 {
        let me = rustix::process::getpid();
        // An error would show as a store that was not meant to happen.
        let _killed = rustix::process::kill_process(me, rustix::process::Signal::KILL);
    }
    STORES_LEFT.set(left.saturating_sub(u64::from(left != u64::MAX)));
}

const RESOURCES: u32 = 3;

fn shared_board() -> (Board, Writers) {
    let geometry = Geometry::new(RESOURCES, 2, 1, 1).unwrap();
    let (page, _fd) = memfd::create(MemoryKind::Board, geometry.board().words).unwrap();
    let settings = BoardSettings {
        generation: 7,
        time_to_live_ns: 1,
        grace_ns: 1,
        loss_mode: LossMode::Open,
    };
    let (board, mut writers) = board::create(page, geometry, settings).unwrap();
    for name in ["a", "b", "c"] {
        writers.rules.add(name, &limited(1), &[]).unwrap();
    }
    (board, writers)
}

fn publish(writers: &mut Writers, limit: u32) {
    writers
        .rules
        .publish(CompiledRules::default(), |_slot| limited(limit))
        .unwrap();
}

fn limited(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::QPS),
        qps_limit: limit,
        qps_rule: limit,
        concurrency_limit: limit,
        ..ResourceRecord::default()
    }
}

/// The limit that every slot has; panics if any two words of the set in force differ.
fn limit_in_force(board: &Board) -> u32 {
    let limits: Vec<u32> = (0..RESOURCES)
        .flat_map(|slot| {
            let record = board.record(slot).unwrap();
            [record.qps_limit, record.qps_rule, record.concurrency_limit]
        })
        .collect();
    assert!(
        limits.windows(2).all(|pair| pair[0] == pair[1]),
        "a mix of two sets: {limits:?}"
    );
    limits[0]
}

/// Publishes `limit` in a child that is killed after `stores` stores; true if the child finished.
fn publish_in_child(writers: &mut Writers, limit: u32, stores: u64) -> bool {
    let child = child::fork(|| {
        STORES_LEFT.set(stores);
        publish(writers, limit);
        0
    });
    let waited = waitpid(child.ok(), WaitOptions::empty()).unwrap();
    waited.is_some_and(|(_pid, status)| status.exited())
}

#[test]
fn a_publisher_killed_at_any_store_leaves_the_set_before_in_force() {
    let (board, mut writers) = shared_board();
    publish(&mut writers, 1);
    let mut killed = 0_u32;
    for stores in 0.. {
        let before = limit_in_force(&board);
        let next = before + 1;
        let finished = publish_in_child(&mut writers, next, stores);
        assert_eq!(limit_in_force(&board), if finished { next } else { before });
        if finished {
            break;
        }
        killed += 1;
        // The next agent publishes over what the dead one left behind.
        publish(&mut writers, next);
        assert_eq!(limit_in_force(&board), next);
    }
    let records = RESOURCES * u32::try_from(tidegate_abi::board::record::WORDS).unwrap();
    let system = 8;
    assert_eq!(killed, records + system, "killed once at every store");
}
