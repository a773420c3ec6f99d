//! Values of hot parameters: claiming a word, evicting another's, counting calls that run.

use loom::thread;
use tidegate_abi::ledger::value;
use tidegate_limits::param::token_bucket::TokenBucket;

use super::pages;
use crate::board::PoolSpan;
use crate::ledger::{Ledger, ValueKey};

const MS: u64 = 1_000_000;
const NOW_NS: u64 = 50_000 * MS;
const SETS: PoolSpan = PoolSpan {
    start: 0,
    length: 1,
};

fn key(ledger: &Ledger, value: u64) -> ValueKey {
    ledger.value_key(SETS, value).unwrap()
}

/// Takes a token of a value.
fn take(ledger: &Ledger, bucket: TokenBucket, value: u64, now_ns: u64) -> bool {
    let left = |state| u64::from(bucket.tokens(Some(state), now_ns));
    let step = |state| bucket.step(state, now_ns, 1);
    let verdict = ledger.step_value(key(ledger, value), left, step);
    verdict.is_some_and(tidegate_limits::verdict::Verdict::admits)
}

#[test]
fn loom_a_value_seen_for_the_first_time_by_two_has_one_limit() {
    loom::model(|| {
        let ledger = pages(1, 1).ledger;
        let bucket = TokenBucket::new(1, 0, 1);
        let threads = [(); 2].map(|()| thread::spawn(move || take(&ledger, bucket, 1, NOW_NS)));
        let taken = threads.map(|thread| u32::from(thread.join().unwrap()));
        assert_eq!(taken.iter().sum::<u32>(), 1);
    });
}

#[test]
fn loom_two_newcomers_in_a_full_set_inherit_and_stay_two() {
    loom::model(|| {
        let ledger = pages(1, 1).ledger;
        let bucket = TokenBucket::new(2, 0, 1);
        // A full set, in which the values have one token left each.
        for value in 1..=value::WORDS as u64 {
            assert!(take(&ledger, bucket, value, NOW_NS));
        }
        let newcomers = [101, 102];
        let threads =
            newcomers.map(|value| thread::spawn(move || take(&ledger, bucket, value, NOW_NS)));
        let taken = threads.map(|thread| u32::from(thread.join().unwrap()));
        // Each inherits the one token, or the nothing that the other has left by then.
        assert!(taken.iter().sum::<u32>() >= 1);
        for value in newcomers {
            assert!(!take(&ledger, bucket, value, NOW_NS), "{value} has more");
        }
    });
}

#[test]
fn loom_a_newcomer_in_a_full_set_is_never_there_twice() {
    loom::model(|| {
        let ledger = pages(1, 1).ledger;
        let bucket = TokenBucket::new(3, 0, 1);
        // The value 5 has least left now and most a little later, when it is refilled: two callers
        // whose clocks differ choose two words to take.
        for value in 1..=value::WORDS as u64 {
            let early_ms = if value == 5 { 900 } else { 0 };
            let first = take(&ledger, bucket, value, NOW_NS - early_ms * MS);
            assert!(first && (value != 5 || take(&ledger, bucket, value, NOW_NS)));
        }
        let threads = [0, 200].map(|after_ms| {
            thread::spawn(move || take(&ledger, bucket, 101, NOW_NS + after_ms * MS))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let word = |word: &crate::sync::Word| word.load(crate::sync::Ordering::SeqCst) >> 48;
        let twins = ledger
            .value_words(0)
            .iter()
            .filter(|seen| word(seen) == 101);
        assert_eq!(twins.count(), 1);
    });
}

#[test]
fn loom_calls_of_a_value_are_never_more_than_its_limit_and_none_is_lost() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let gates = [pages.gate(1), pages.gate(2)];
        let (board, ledger) = (pages.board, pages.ledger);
        let calls = [(1, 7), (2, 7)];
        let threads = calls.map(|(seat, value)| {
            thread::spawn(move || ledger.begin_run(&board, (seat, 1), key(&ledger, value), 1))
        });
        let begun = threads.map(|thread| thread.join().unwrap());
        let count = begun.iter().filter(|begun| **begun).count() as u64;
        assert!(count <= 1, "{count} run of a limit of 1");
        assert_eq!(ledger.running(&board, key(&ledger, 7)), count);
        for (gate, begun) in gates.iter().zip(begun) {
            if begun {
                ledger.end_run((gate.seat(), 1), key(&ledger, 7));
            }
        }
        assert_eq!(ledger.running(&board, key(&ledger, 7)), 0);
    });
}

#[test]
fn loom_calls_of_two_values_that_want_one_word_both_count() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let _gates = [pages.gate(1), pages.gate(2)];
        let (board, ledger) = (pages.board, pages.ledger);
        let threads = [(1, 7), (2, 8)].map(|(seat, value)| {
            thread::spawn(move || {
                let key = key(&ledger, value);
                assert!(ledger.begin_run(&board, (seat, 1), key, 1));
                assert_eq!(ledger.running(&board, key), 1);
                ledger.end_run((seat, 1), key);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(ledger.running(&board, key(&ledger, 7)), 0);
        assert_eq!(ledger.running(&board, key(&ledger, 8)), 0);
    });
}

#[test]
fn loom_two_calls_of_one_seat_that_end_at_once_leave_nothing() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let _gate = pages.gate(1);
        let (board, ledger) = (pages.board, pages.ledger);
        let both = [(); 2].map(|()| {
            thread::spawn(move || {
                let key = key(&ledger, 7);
                assert!(ledger.begin_run(&board, (1, 1), key, 2));
                ledger.end_run((1, 1), key);
            })
        });
        for thread in both {
            thread.join().unwrap();
        }
        assert_eq!(ledger.running(&board, key(&ledger, 7)), 0);
    });
}
