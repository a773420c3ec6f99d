//! Room for the state of rules in the ledger: lines, and sets of values.
//!
//! State belongs to a rule on a resource. On a reload a rule that says the same keeps its state, and so
//! does one whose count alone changed ([`super::carry`]); the room of the others is given out again, after it was zeroed,
//! when one more set was published: until then decisions that began on the old set may write there.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_segment::board::{PoolSpan, RuleFault, Runs};
use tidegate_segment::ledger::Ledger;

use super::carry::Carry;
use super::inherit::{Inherited, RuleForm};
use super::shapes;
use crate::rule::param::ParamGrade;
use crate::rule::{Body, Fate, QuirksOption, RuleSet};

/// Most sets of a hot-parameter rule: room for 4096 values.
const SETS: u32 = 512;
/// Where there is no more room, a rule takes fewer sets, but not fewer than this.
const SETS_MIN: u32 = 8;
/// Room is short when less than one part in this many is left.
const SHORT_SHARE: usize = 4;
/// Items whose words fit into a line.
pub const ITEMS_OF_LINE: usize = 8;

/// What a rule needs.
#[derive(Debug, Clone, Copy)]
pub struct StateDemand {
    lines: u32,
    sets: u32,
}

impl StateDemand {
    /// What the state of a rule takes.
    pub fn of(body: &Body) -> Self {
        let Body::Param(param) = body else {
            return Self { lines: 1, sets: 0 };
        };
        let of_items = param.items.len().div_ceil(ITEMS_OF_LINE);
        Self {
            lines: u32::try_from(of_items)
                .unwrap_or(u32::MAX)
                .saturating_add(1),
            sets: SETS,
        }
    }
}

/// What a rule has.
#[derive(Debug, Clone, Copy)]
pub struct StateAllotment {
    /// Its lines.
    pub lines: PoolSpan,
    /// Its sets.
    pub sets: PoolSpan,
}

/// A rule on a resource.
type Owner = (usize, Arc<str>);

/// A rule that takes over the state of a rule of the set before.
#[derive(Debug, Clone)]
struct Heir {
    before: usize,
    carry: Option<Carry>,
}

/// Who has which room.
#[derive(Debug, Clone)]
pub struct Room {
    ledger: Ledger,
    lines: Runs,
    sets: Runs,
    held: HashMap<Owner, StateAllotment>,
    /// What the last set had and the present one has not taken over.
    before: HashMap<Owner, StateAllotment>,
    /// For each rule of the present set, what it takes over of the last one.
    heirs: Vec<Option<Heir>>,
    /// State of the last set that is to be brought over to another count.
    carries: Vec<(StateAllotment, Carry)>,
    /// What rules of the life before have left, until the first set is in force.
    pub(super) inherited: Inherited,
    /// Room that nobody has since the last publish.
    resting: Vec<StateAllotment>,
    /// Most sets of one rule on one resource.
    share: u32,
}

impl Room {
    /// All the room of a ledger.
    pub fn new(ledger: Ledger) -> Self {
        let geometry = ledger.geometry();
        Self {
            ledger,
            lines: Runs::of(geometry.rules()),
            sets: Runs::of(geometry.value_sets()),
            held: HashMap::new(),
            before: HashMap::new(),
            heirs: Vec::new(),
            carries: Vec::new(),
            inherited: Inherited::new(),
            resting: Vec::new(),
            share: SETS,
        }
    }

    /// Begins with a new set of rules in the place of an old one. So many times a hot-parameter rule of it stands
    /// on a resource; each gets the same part of what is left at most, and as much stays for those that come later.
    /// What a rule has it keeps.
    pub fn begin(&mut self, old: &RuleSet, new: &RuleSet, params: usize) {
        let rested = std::mem::take(&mut self.resting);
        self.give_back(&rested);
        self.share = self.share_of(params);
        self.before = std::mem::take(&mut self.held);
        self.carries.clear();
        let rebuilt = rebuilds(old, new);
        let fates = new.diff(old).fates;
        let heir = |(fate, rule): (&Fate, &crate::rule::Rule)| match *fate {
            _ if rebuilt && shapes(&rule.body) => None,
            Fate::Unchanged(before) => Some(Heir {
                before,
                carry: None,
            }),
            Fate::Retuned(before) if keeps_state(&rule.body, new.quirks()) => {
                let was = old.rules().get(before);
                let carry = was.and_then(|was| Carry::of(&was.body, &rule.body));
                Some(Heir { before, carry })
            }
            Fate::Retuned(_) | Fate::New => None,
        };
        self.heirs = fates.iter().zip(new.rules()).map(heir).collect();
    }

    /// Sets for each of so many rules. Half of all is kept for the set after this one: while its rules take their
    /// room, those that they replace still have theirs.
    fn share_of(&self, params: usize) -> u32 {
        let sets = self.ledger.geometry().value_sets();
        let twice = params.saturating_mul(2).saturating_add(1);
        let of_all = u32::try_from(sets.checked_div(twice).unwrap_or(sets)).unwrap_or(SETS);
        let heads = u32::try_from(params.saturating_add(1)).unwrap_or(u32::MAX);
        let of_free = self.sets.left().checked_div(heads).unwrap_or(0);
        of_all.min(of_free).clamp(SETS_MIN, SETS)
    }

    /// Ends with the new set: what nobody took over is free after the next one.
    pub fn end(&mut self) {
        self.resting
            .extend(std::mem::take(&mut self.before).into_values());
        let inherited = std::mem::take(&mut self.inherited).into_values();
        self.resting
            .extend(inherited.flatten().map(|(_form, held)| held));
    }

    /// Brings state over to other counts, as far as that comes before the new set is in force.
    pub fn carry_before(&self) {
        for (held, carry) in &self.carries {
            carry.before(self.ledger, *held);
        }
    }

    /// The same, as far as that comes afterwards.
    pub fn carry_after(&mut self) {
        for (held, carry) in self.carries.drain(..) {
            carry.after(self.ledger, held);
        }
    }

    /// The room of a rule on a resource: what it had, or new room, zeroed.
    ///
    /// # Errors
    /// There is none left.
    pub fn take(
        &mut self,
        owner: (usize, &str),
        wanted: StateDemand,
        form: impl FnOnce() -> RuleForm,
    ) -> Result<StateAllotment, RuleFault> {
        let (index, name) = owner;
        let name: Arc<str> = Arc::from(name);
        let heir = self.heirs.get(index).and_then(Option::as_ref);
        let before = heir.and_then(|heir| self.before.remove(&(heir.before, Arc::clone(&name))));
        let held = match before {
            Some(held) if held.lines.length == wanted.lines => {
                let carry = heir.and_then(|heir| heir.carry.clone());
                self.carries.extend(carry.map(|carry| (held, carry)));
                held
            }
            outgrown => {
                self.resting.extend(outgrown);
                match self.left_to(&name, wanted, form) {
                    Some(left) => left,
                    None => self.allot(wanted)?,
                }
            }
        };
        self.held.insert((index, name), held);
        Ok(held)
    }

    /// What a rule of the life before has left to one that says the same on the same resource.
    fn left_to(
        &mut self,
        name: &Arc<str>,
        wanted: StateDemand,
        form: impl FnOnce() -> RuleForm,
    ) -> Option<StateAllotment> {
        let of_name = self.inherited.get_mut(name)?;
        let form = form();
        let place = of_name
            .iter()
            .position(|(left, held)| *left == form && held.lines.length == wanted.lines)?;
        Some(of_name.remove(place).1)
    }

    /// Takes just that room; `false` if others have some of it.
    pub(super) fn take_at(&mut self, held: StateAllotment) -> bool {
        if !self.lines.take_at(held.lines) {
            return false;
        }
        let taken = self.sets.take_at(held.sets);
        if !taken {
            self.lines.give_back(held.lines);
        }
        taken
    }

    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Lines and sets that nobody has.
    pub fn free(&self) -> (&[PoolSpan], &[PoolSpan]) {
        (self.lines.free(), self.sets.free())
    }

    /// Takes the room of a resource out of the account, for these rules; whoever takes it gives it back with
    /// [`Room::give_back`] when nobody can be writing there any more.
    pub fn leave(&mut self, name: &str, rules: impl Iterator<Item = usize>) -> Vec<StateAllotment> {
        let name: Arc<str> = Arc::from(name);
        let owners = rules.map(|index| (index, Arc::clone(&name)));
        owners
            .filter_map(|owner| self.held.remove(&owner))
            .collect()
    }

    /// Room that rested long enough.
    pub fn give_back(&mut self, rested: &[StateAllotment]) {
        for held in rested {
            self.lines.give_back(held.lines);
            self.sets.give_back(held.sets);
        }
    }

    /// Whether less than a quarter of the lines or of the sets is left.
    pub fn is_short(&self) -> bool {
        let geometry = self.ledger.geometry();
        let short = |runs: &Runs, all: usize| {
            usize::try_from(runs.left()).is_ok_and(|left| left < all / SHORT_SHARE)
        };
        short(&self.lines, geometry.rules()) || short(&self.sets, geometry.value_sets())
    }

    fn allot(&mut self, wanted: StateDemand) -> Result<StateAllotment, RuleFault> {
        let geometry = self.ledger.geometry();
        let full = RuleFault::RulesFull(geometry.rules());
        let lines = self.lines.take(wanted.lines).ok_or(full)?;
        let no_values = RuleFault::ValuesFull(geometry.value_sets());
        let mut length = wanted.sets.min(self.share);
        let sets = loop {
            match self.sets.take(length) {
                Some(sets) => break sets,
                None if length > SETS_MIN => length /= 2,
                None => {
                    self.lines.give_back(lines);
                    return Err(no_values);
                }
            }
        };
        let end = lines.start.saturating_add(lines.length);
        (lines.start..end).for_each(|line| self.ledger.clear_state(line));
        self.ledger.clear_sets(sets);
        Ok(StateAllotment { lines, sets })
    }
}

/// Sentinel builds all shaping state anew with a list of flow rules that is not equal to the one before.
fn rebuilds(old: &RuleSet, new: &RuleSet) -> bool {
    let flows = |set: &RuleSet| -> Vec<Body> {
        let bodies = set.rules().iter().map(|rule| rule.body.clone());
        bodies
            .filter(|body| matches!(body, Body::Flow(_)))
            .collect()
    };
    new.quirks() == QuirksOption::Sentinel189 && flows(old) != flows(new)
}

/// Whether a rule of this kind keeps its state when its limits change. A breaker whose marks changed
/// begins closed; in Sentinel a hot-parameter rule begins anew, but calls of a value in flight are counted
/// whatever the rules say.
fn keeps_state(body: &Body, quirks: QuirksOption) -> bool {
    match body {
        Body::Flow(_) | Body::System(_) | Body::Authority(_) => true,
        Body::Param(param) => {
            quirks == QuirksOption::None || param.grade == ParamGrade::Concurrency
        }
        Body::Degrade(_) => false,
    }
}
