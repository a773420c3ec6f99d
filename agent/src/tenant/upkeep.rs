//! Memory of the ledger: what takes it, and what is given back.
//!
//! A ledger is a sparse file that every service of the tenant may write all of. What somebody writes outside of the rows,
//! slots and rules that are in use means nothing to anybody, and would stay when its writer is gone. So now and then the
//! agent looks at how much the file takes; where that is more than what is in use explains, it gives the rest back.

use tidegate_segment::ledger::extent::{InUse, explained_bytes};
use tidegate_segment::os::memfd;
use tidegate_segment::sync::{Ordering, Word};

use super::Tenant;

/// What a ledger takes, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerMemory {
    /// Bytes that it took at the last look.
    pub bytes: u64,
    /// Most bytes that seats, slots and rules in use explain.
    pub explained_bytes: u64,
    /// Bytes that were given back in all.
    pub given_back_bytes: u64,
}

/// The last look.
#[derive(Debug)]
pub(super) struct Upkeep {
    bytes: Word,
    explained: Word,
    given_back: Word,
}

impl Default for Upkeep {
    fn default() -> Self {
        let [bytes, explained, given_back] = [0; 3].map(Word::new);
        Self {
            bytes,
            explained,
            given_back,
        }
    }
}

impl Tenant {
    /// Looks at the memory of the ledger, and gives back what nothing explains. It may take a while: not for the tick.
    pub fn tend_ledger(&self) {
        let file = &self.files().ledger;
        let Ok(bytes) = memfd::resident_bytes(file) else {
            return;
        };
        let explained =
            self.directory()
                .give_back_unused(self.seats(), file, |in_use: InUse<'_>| {
                    let explained = explained_bytes(self.ledger().geometry(), in_use);
                    (explained, bytes > explained)
                });
        let left = memfd::resident_bytes(file).unwrap_or(bytes);
        let given_back = bytes.saturating_sub(left);
        // Relaxed: figures for people.
        self.upkeep.bytes.store(left, Ordering::Relaxed);
        self.upkeep.explained.store(explained, Ordering::Relaxed);
        self.upkeep.given_back.count(given_back);
        if given_back > 0 {
            tracing::warn!(
                event = "memory_given_back",
                given_back_bytes = given_back,
                taken_bytes = bytes,
                explained_bytes = explained,
                "something wrote to the ledger where no seat, slot or rule of the tenant is: the memory there was freed"
            );
        }
    }

    /// What the ledger took at the last look.
    pub fn ledger_memory(&self) -> LedgerMemory {
        let read = |word: &Word| word.load(Ordering::Relaxed);
        LedgerMemory {
            bytes: read(&self.upkeep.bytes),
            explained_bytes: read(&self.upkeep.explained),
            given_back_bytes: read(&self.upkeep.given_back),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Outcome;
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::gate::{GateVerdict, Request};

    use super::*;
    use crate::tenant::callers::Caller;
    use crate::tenant::decide::Waits;
    use crate::tenant::rule_index::tests::rule_index;
    use crate::tenant::tests::tenant;

    const RULES: &str = r#"
        [[flow]]
        resource = "a"
        grade = "concurrency"
        count = 3
        [[flow]]
        resource = "b"
        count = 5
        window = "1h"
    "#;

    #[tokio::test]
    async fn field_b6_a_ledger_that_was_written_all_over_is_given_back_and_what_counts_stays() {
        let tenant = tenant(Geometry::new(4096, 32, 4, 2).unwrap());
        tenant.directory().publish(rule_index(RULES), 0).unwrap();
        let [a, b] = ["a", "b"].map(|name| tenant.directory().resolve(name).slot);
        let host = Caller::HOST.into();
        let enter = |slot| tenant.enter(&host, slot, Request::default(), Waits::HELD);
        let GateVerdict::Admitted(held) = enter(a).await else {
            panic!("admitted");
        };
        for _pass in 0..5 {
            assert!(matches!(enter(b).await, GateVerdict::Admitted(_)));
        }
        tenant.tend_ledger();
        assert_eq!(tenant.ledger_memory().given_back_bytes, 0, "nothing is odd");
        let words = tenant.ledger().geometry().ledger().words;
        let page = memfd::open(memfd::MemoryKind::Ledger, &tenant.files().ledger, words).unwrap();
        for word in page.words() {
            let seen = word.load(Ordering::Relaxed);
            word.store(seen, Ordering::Relaxed);
        }
        let all = memfd::resident_bytes(&tenant.files().ledger).unwrap();
        assert!(all > 30 << 20, "{all}");
        tenant.tend_ledger();
        let memory = tenant.ledger_memory();
        assert!(memory.bytes <= memory.explained_bytes, "{memory:?}");
        assert!(memory.explained_bytes < 1 << 20, "{memory:?}");
        assert_eq!(memory.given_back_bytes, all - memory.bytes);
        assert_eq!(tenant.seats().node_counts(a).inflight, 1);
        assert!(matches!(enter(b).await, GateVerdict::Refused(_)));
        tenant.exit(held, Outcome::Ok);
        assert_eq!(tenant.seats().node_counts(a).inflight, 0);
    }
}
