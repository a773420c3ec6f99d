//! Nodes of a resource for origins and contexts, as this process knows them.
//!
//! A bounded table that decisions read without a lock. What finds no place in it is served by the
//! resource's own node, which is stricter and never looser.

use tidegate_abi::message::Part;
use tidegate_segment::board::{Board, Slot};
use tidegate_segment::sync::{Ordering, Word};

use crate::slot_word::{SessionNumber, pack, unpack};

/// Places of the table: most origins and contexts of one resource with nodes of their own here.
const PLACES: u64 = 1024;

/// Places that a name may have, one after the other.
const REACH: u64 = 16;

/// Ticks of the agent after which it is asked again for a node that it had no room for.
const ASK_AGAIN_TICKS: u32 = 100;

/// An origin or context in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartKey(u64);

impl PartKey {
    /// The key of a name by its hash.
    #[inline]
    pub(crate) const fn of(part: Part, hash: u64) -> Self {
        let key = match part {
            Part::Origin => hash,
            Part::Context => !hash,
        };
        // 0 is nobody's.
        Self(if key == 0 { 1 } else { key })
    }
}

/// What the table says of an origin or context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has this node.
    Node(Slot),
    /// The resource's own node serves for now.
    Own,
    /// The agent may be asked.
    Unknown,
    /// There is no place for it now: the own node serves.
    NoPlace,
}

/// A name and its slot word. No place of 0 names is ever read as anybody's.
#[derive(Debug)]
struct Place {
    name: Word,
    slot: Word,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Parts {
    places: Box<[Place]>,
}

impl Default for Parts {
    fn default() -> Self {
        let place = |_place| Place {
            name: Word::new(0),
            slot: Word::new(0),
        };
        Self {
            places: (0..PLACES).map(place).collect(),
        }
    }
}

impl Parts {
    /// What is known of a part on the board of a session.
    #[inline]
    pub(crate) fn look(&self, board: &Board, number: SessionNumber, key: PartKey) -> Known {
        let mut room = false;
        for place in self.near(key) {
            match place.of(key) {
                Some(word) => {
                    return unpack(number, word).map_or(Known::Unknown, |slot| known(board, slot));
                }
                None => room = room || place.is_free(board, number),
            }
        }
        if room { Known::Unknown } else { Known::NoPlace }
    }

    /// Puts the agent's answer into the table: a node, or that there is none. One writer at a time.
    pub(crate) fn put(
        &self,
        board: &Board,
        number: SessionNumber,
        key: PartKey,
        node: Option<Slot>,
    ) {
        let slot = node.unwrap_or_else(|| none_until(board));
        let own = self.near(key).find(|place| place.of(key).is_some());
        let free = || self.near(key).find(|place| place.is_free(board, number));
        if let Some(place) = own.or_else(free) {
            place.put(key, pack(number, slot));
        }
    }

    fn near(&self, key: PartKey) -> impl Iterator<Item = &Place> {
        let places = (0..REACH).map(move |step| key.0.wrapping_add(step) % PLACES);
        places.filter_map(|place| self.places.get(usize::try_from(place).ok()?))
    }
}

impl Place {
    /// The slot word, if the place is a name's.
    #[inline]
    fn of(&self, key: PartKey) -> Option<u64> {
        // Acquire: pairs with the Release stores in `put`. The word that was read before the name and
        // is still there after it was there with the name.
        let word = self.slot.load(Ordering::Acquire);
        let is_mine = self.name.load(Ordering::Acquire) == key.0;
        (is_mine && self.slot.load(Ordering::Relaxed) == word).then_some(word)
    }

    fn put(&self, key: PartKey, word: u64) {
        // Release: pairs with the Acquire loads in `of`.
        self.slot.store(0, Ordering::Release);
        self.name.store(key.0, Ordering::Release);
        self.slot.store(word, Ordering::Release);
    }

    /// Whether nobody needs what is here: it is of another session, its node was given back, or it says
    /// that there was none some time ago.
    fn is_free(&self, board: &Board, number: SessionNumber) -> bool {
        let slot = unpack(number, self.slot.load(Ordering::Relaxed));
        slot.is_none_or(|slot| known(board, slot) == Known::Unknown)
    }
}

/// "No node", as a slot of nobody's generation: until which tick of the agent, modulo 2^32.
fn none_until(board: &Board) -> Slot {
    Slot {
        index: low_half(board.tick()).wrapping_add(ASK_AGAIN_TICKS),
        generation: 0,
    }
}

#[inline]
fn known(board: &Board, slot: Slot) -> Known {
    if slot.generation == 0 {
        let left = slot.index.wrapping_sub(low_half(board.tick()));
        let holds = left != 0 && left <= ASK_AGAIN_TICKS;
        return if holds { Known::Own } else { Known::Unknown };
    }
    if board.is_held(slot) {
        Known::Node(slot)
    } else {
        Known::Unknown
    }
}

const fn low_half(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::LossMode;
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::board::{BoardSettings, ResourceRecord, Writers, create};
    use tidegate_segment::os::memfd::{self, MemoryKind};

    use super::*;

    const NUMBER: SessionNumber = SessionNumber::FIRST;

    /// A board with so many slots, all of them given out.
    fn board(slots: u32) -> (Board, Writers) {
        let geometry = Geometry::new(slots, 2, 1, 1).unwrap();
        let (page, _file) = memfd::create(MemoryKind::Board, geometry.board().words).unwrap();
        let settings = BoardSettings {
            generation: 1,
            time_to_live_ns: u64::MAX,
            grace_ns: 0,
            loss_mode: LossMode::Open,
        };
        let (board, mut writers) = create(page, geometry, settings).unwrap();
        for slot in 0..slots {
            let name = slot.to_string();
            writers
                .rules
                .add(&name, &ResourceRecord::default(), &[])
                .unwrap();
        }
        (board, writers)
    }

    fn key(number: u32) -> PartKey {
        let spread = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        PartKey::of(Part::Origin, spread)
    }

    const fn node(index: u32) -> Slot {
        Slot {
            index,
            generation: 1,
        }
    }

    #[test]
    fn names_over_the_bound_get_no_place_and_never_the_node_of_another() {
        let (board, _writers) = board(4000);
        let parts = Parts::default();
        let mut apart = 0;
        for number in 0..4000 {
            let before = parts.look(&board, NUMBER, key(number));
            parts.put(&board, NUMBER, key(number), Some(node(number)));
            let after = parts.look(&board, NUMBER, key(number));
            match before {
                Known::Unknown => {
                    assert_eq!(after, Known::Node(node(number)));
                    apart += 1;
                }
                Known::NoPlace => assert_eq!(after, Known::NoPlace),
                Known::Node(_) | Known::Own => panic!("{number}: {before:?}"),
            }
        }
        assert!((512..=1024).contains(&apart), "{apart}");
    }

    #[test]
    fn an_origin_and_a_context_of_one_name_have_nodes_of_their_own() {
        let (board, _writers) = board(4);
        let parts = Parts::default();
        let [origin, context] = [Part::Origin, Part::Context].map(|part| PartKey::of(part, 7));
        parts.put(&board, NUMBER, origin, Some(node(2)));
        assert_eq!(parts.look(&board, NUMBER, context), Known::Unknown);
        parts.put(&board, NUMBER, context, Some(node(3)));
        assert_eq!(parts.look(&board, NUMBER, origin), Known::Node(node(2)));
        assert_eq!(parts.look(&board, NUMBER, context), Known::Node(node(3)));
        let next = NUMBER.next();
        assert_eq!(parts.look(&board, next, origin), Known::Unknown);
    }

    #[test]
    fn an_agent_without_room_is_asked_again_after_a_hundred_ticks() {
        let (board, mut writers) = board(4);
        let parts = Parts::default();
        parts.put(&board, NUMBER, key(1), None);
        for _tick in 0..ASK_AGAIN_TICKS {
            assert_eq!(parts.look(&board, NUMBER, key(1)), Known::Own);
            writers.tick.beat(1);
        }
        assert_eq!(parts.look(&board, NUMBER, key(1)), Known::Unknown);
    }
}
