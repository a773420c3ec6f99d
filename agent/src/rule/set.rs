//! The rules of a tenant as one set, and what changes from one set to the next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use tidegate_abi::decision::RefusalKind;
use tidegate_segment::gate::{BREAKERS, VALUES};

use super::degrade::GuardedResources;
use super::flow::{Behavior, Grade};
use super::meant::as_meant;
use super::param::ParamGrade;
use super::{Body, QuirksOption, Rule, circle, default_id, shadow};
use crate::schema::fault::{Fault, Spot};

/// All rules of a tenant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    warnings: Vec<Fault>,
    quirks: QuirksOption,
    /// Whether the counts for a strained machine are in place.
    strained: bool,
}

/// What became of a rule of a new set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It says what the rule with this index of the old set says. All state stays.
    Unchanged(usize),
    /// It is the rule with this index of the old set with other limits. Windows stay.
    Retuned(usize),
    /// The old set has none like it.
    New,
}

/// What changes from one set to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// For each rule of the new set, in its order.
    pub fates: Vec<Fate>,
    /// Indices of the rules of the old set that have no successor.
    pub gone: Vec<usize>,
}

impl Diff {
    /// Whether nothing changed but ids and places.
    pub fn is_empty(&self) -> bool {
        let unchanged = |fate: &Fate| matches!(fate, Fate::Unchanged(_));
        self.gone.is_empty() && self.fates.iter().all(unchanged)
    }
}

impl RuleSet {
    /// Puts rules together, in their order.
    ///
    /// Of equal rules the first stays, with a warning; with Sentinel's quirks equal breakers stay
    /// apart. A rule of Sentinel's form (with its quirks any rule) with the id of an earlier one goes by its place. Of the authority rules of a resource
    /// the first stays, with a warning.
    ///
    /// # Errors
    /// More rules of a kind on a resource than a request can hold. Without quirks: rules of our form and of a kind with the same id,
    /// and such that relate to each other's resources in a circle. With them: a paced rule that Sentinel cannot load.
    #[expect(
        clippy::mutable_key_type,
        reason = "a pattern is compared and hashed by its text"
    )]
    pub fn build(mut rules: Vec<Rule>, quirks: QuirksOption) -> Result<Self, Vec<Fault>> {
        if quirks == QuirksOption::None {
            rules = rules.into_iter().flat_map(as_meant).collect();
        }
        give_own_ids(&mut rules, quirks);
        tell_sources_apart(&mut rules);
        let mut faults = over_bounds(&rules);
        match quirks {
            QuirksOption::None => {
                faults.extend(repeated_ids(&rules));
                faults.extend(circle::faults(&rules));
            }
            QuirksOption::Sentinel189 => faults.extend(rules.iter().filter_map(unpaceable)),
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut set = Self {
            quirks,
            ..Self::default()
        };
        let mut seen: HashMap<Body, String> = HashMap::new();
        let mut listed: HashMap<String, String> = HashMap::new();
        for rule in rules {
            let shadowed = match &rule.body {
                Body::Authority(authority) => first(&mut listed, &authority.resource, &rule),
                Body::Degrade(_) | Body::System(_) if quirks == QuirksOption::Sentinel189 => None,
                Body::System(_) | Body::Param(_) | Body::Flow(_) | Body::Degrade(_) => {
                    first(&mut seen, &rule.body, &rule)
                }
            };
            match shadowed {
                Some(by) => {
                    let hint = if matches!(rule.body, Body::Authority(_)) {
                        format!(
                            "it is ignored: a resource has one list of origins, and {by} has it; add these there"
                        )
                    } else {
                        format!("repeats {by} and is ignored")
                    };
                    let (place, path) = (rule.place, rule.path);
                    let warning = Fault::at(place, path, rule.id, "", hint);
                    set.warnings.push(warning);
                }
                None => set.rules.push(rule),
            }
        }
        set.warnings.extend(shadow::warnings(&set.rules));
        Ok(set)
    }

    /// The rules, in the order of the files.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether the counts for a strained machine are in place.
    pub const fn is_strained(&self) -> bool {
        self.strained
    }

    pub(super) const fn set_strained(&mut self, strained: bool) {
        self.strained = strained;
    }

    /// Puts these rules in the place of those that `out` takes out.
    pub(super) fn replace(
        &mut self,
        out: impl Fn(&Rule) -> bool,
        with: impl IntoIterator<Item = Rule>,
    ) {
        self.rules.retain(|rule| !out(rule));
        self.rules.extend(with);
    }

    pub(super) fn rules_mut(&mut self) -> &mut [Rule] {
        &mut self.rules
    }

    /// What is odd about one of its rules.
    pub fn warnings_of<'s>(&'s self, rule: &'s Rule) -> impl Iterator<Item = &'s Fault> {
        // The rule for one origin of a list has that origin behind its path: `[2]:shop`.
        let (table, _origin) = rule
            .path
            .split_once(':')
            .unwrap_or((rule.path.as_str(), ""));
        self.warnings.iter().filter(move |warning| {
            let of = |path: &str| {
                let rest = warning.option.strip_prefix(path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            (of(&rule.path) || of(table)) && warning.place.file == rule.place.file
        })
    }

    /// Whose verdicts it gives where Sentinel has a known defect.
    pub const fn quirks(&self) -> QuirksOption {
        self.quirks
    }

    /// Odd, but taken.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// Adds what was odd about the files.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<Fault>) -> Self {
        self.warnings.splice(0..0, warnings);
        self
    }

    /// What changes when this set takes the place of `old`.
    pub fn diff(&self, old: &Self) -> Diff {
        let mut pairing = Pairing {
            new: &self.rules,
            old: &old.rules,
            open: vec![true; old.rules.len()],
            fates: vec![Fate::New; self.rules.len()],
        };
        // Two rounds: a rule that says the same comes before one with other limits.
        pairing.round(|rule| (rule.body.clone(), rule.mode), Fate::Unchanged);
        pairing.round(|rule| rule.body.key(), Fate::Retuned);
        let still_open = (0..).zip(&pairing.open).filter(|(_, open)| **open);
        Diff {
            gone: still_open.map(|(index, _)| index).collect(),
            fates: pairing.fates,
        }
    }
}

/// Finds the old rule of each new one.
struct Pairing<'r> {
    new: &'r [Rule],
    old: &'r [Rule],
    /// Which old rules have no successor yet.
    open: Vec<bool>,
    fates: Vec<Fate>,
}

impl Pairing<'_> {
    /// Pairs the rules that are left and have the same key, in their order.
    fn round<K: Eq + Hash>(&mut self, key: impl Fn(&Rule) -> K, fate: impl Fn(usize) -> Fate) {
        let mut waiting: HashMap<K, VecDeque<(usize, &mut bool)>> = HashMap::new();
        for ((index, rule), open) in self.old.iter().enumerate().zip(&mut self.open) {
            if *open {
                waiting
                    .entry(key(rule))
                    .or_default()
                    .push_back((index, open));
            }
        }
        let unpaired = self.new.iter().zip(&mut self.fates);
        for (rule, place) in unpaired.filter(|(_, place)| **place == Fate::New) {
            let next = waiting.get_mut(&key(rule)).and_then(VecDeque::pop_front);
            if let Some((index, open)) = next {
                *open = false;
                *place = fate(index);
            }
        }
    }
}

/// Remembers the first rule with a key; names it when there was one before.
fn first<K: Clone + Eq + Hash>(
    seen: &mut HashMap<K, String>,
    key: &K,
    rule: &Rule,
) -> Option<String> {
    if let Some(by) = seen.get(key) {
        return Some(by.clone());
    }
    seen.insert(key.clone(), rule.id.clone());
    None
}

/// A fault of an option: its value, what is allowed and a hint.
pub(super) fn fault_at(
    rule: &Rule,
    spot: &Spot,
    value: String,
    allowed: impl Into<String>,
    hint: impl Into<String>,
) -> Fault {
    let option = format!("{}.{}", rule.path, spot.name);
    Fault::at(spot.place.clone(), option, value, allowed, hint)
}

fn repeated_ids(rules: &[Rule]) -> Vec<Fault> {
    let mut seen: HashMap<(RefusalKind, &str), &Rule> = HashMap::new();
    let mut faults = Vec::new();
    for rule in rules {
        let key = (rule.body.kind(), rule.id.as_str());
        if let Some(first) = seen.get(&key) {
            let allowed = "an id that no other rule of the kind has";
            let hint = format!("{} has it", first.id_spot.place);
            let value = format!("\"{}\"", rule.id);
            faults.push(fault_at(rule, &rule.id_spot, value, allowed, hint));
        } else {
            seen.insert(key, rule);
        }
    }
    faults
}

/// Sentinel only echoes the id, so several rules may have the same. The first is called by it, unless a rule of our
/// own form is; each other one by its file and place.
fn give_own_ids(rules: &mut [Rule], quirks: QuirksOption) {
    let key = |rule: &Rule| (rule.body.kind(), rule.id.clone());
    let is_label = |rule: &Rule| rule.of_sentinel || quirks == QuirksOption::Sentinel189;
    let fixed = rules.iter().filter(|rule| !is_label(rule));
    let mut seen: HashSet<_> = fixed.map(key).collect();
    for rule in rules.iter_mut().filter(|rule| is_label(rule)) {
        if !seen.insert(key(rule)) {
            rule.id = default_id(&rule.place, &rule.path);
        }
    }
}

/// An id that was not given is of the name of the file. Two sources may have files of one name: then the rules of the
/// later one go by its whole path.
fn tell_sources_apart(rules: &mut [Rule]) {
    let mut seen = HashSet::new();
    for rule in rules {
        let is_of_file = rule.id == default_id(&rule.place, &rule.path);
        if !seen.insert((rule.body.kind(), rule.id.clone())) && is_of_file {
            rule.id = format!("{}:{}", rule.place.file, rule.path);
        }
    }
}

/// A permit has places for so many breakers and values; the gate could not tell more of them how the
/// request ended.
fn over_bounds(rules: &[Rule]) -> Vec<Fault> {
    let mut held: HashMap<(RefusalKind, &str), usize> = HashMap::new();
    let over = rules.iter().filter_map(|rule| {
        let (resource, most, what) = match &rule.body {
            Body::Degrade(degrade) => {
                let name = match &degrade.resource {
                    GuardedResources::Name(name) => name.as_str(),
                    GuardedResources::Unguarded => "*",
                };
                (name, BREAKERS, "breakers")
            }
            Body::Param(param) if param.grade == ParamGrade::Concurrency => {
                (param.resource.text(), VALUES, "parameters in flight")
            }
            Body::Param(_) | Body::Authority(_) | Body::System(_) | Body::Flow(_) => return None,
        };
        let count = held.entry((rule.body.kind(), resource)).or_default();
        *count = count.saturating_add(1);
        (*count > most).then(|| {
            let allowed = format!("at most {most} rules for {what} of one resource");
            let value = format!("number {count} of \"{resource}\"");
            Fault::at(rule.place.clone(), rule.path.clone(), value, allowed, "")
        })
    });
    over.collect()
}

/// Sentinel divides by zero where it loads such a rule, and keeps the rules before.
fn unpaceable(rule: &Rule) -> Option<Fault> {
    let flow = rule.body.flow()?;
    let paces = matches!(
        flow.grade,
        Grade::Qps {
            behavior: Behavior::Pace { .. },
            ..
        }
    );
    let count = flow.count.get();
    (paces && count > 0.0 && count < 0.5).then(|| {
        let allowed = "0, or at least 0.5 with these quirks";
        fault_at(rule, &rule.count_spot, count.to_string(), allowed, "")
    })
}
