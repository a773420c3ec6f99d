//! Rules that relate to each other in a circle: each resource would be held back for the next one, and so, at the
//! end, for itself.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::flow::Strategy;
use super::set::fault_at;
use super::{Rule, RuleResource};
use crate::schema::fault::Fault;

/// Relations of a circle that a message names; a longer one is cut.
const TOLD_MAX: usize = 8;

/// A fault for each rule that closes a circle; it tells where the other rules of the circle are.
pub(super) fn faults(rules: &[Rule]) -> Vec<Fault> {
    let circles = Relations::of(rules).circles();
    circles.iter().map(Circle::fault).collect()
}

/// A relation: requests of one resource are refused while another one is busy.
#[derive(Debug, Clone, Copy)]
struct Relation<'r> {
    rule: &'r Rule,
    from: &'r str,
    to: usize,
    to_name: &'r str,
}

/// Relations of which each leads to the next, and the last one to the first.
struct Circle<'r> {
    closing: Relation<'r>,
    /// The relations after it, as many as are told.
    others: Vec<Relation<'r>>,
    untold: usize,
}

/// The relations of each resource that one leads to. No other resource can be in a circle.
struct Relations<'r>(Vec<Vec<Relation<'r>>>);

impl<'r> Relations<'r> {
    fn of(rules: &'r [Rule]) -> Self {
        let related = || rules.iter().filter_map(related);
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut names = Vec::new();
        for (_rule, _resource, to_name) in related() {
            numbers.entry(to_name).or_insert_with(|| {
                names.push(to_name);
                names.len().saturating_sub(1)
            });
        }
        let mut all: Vec<Vec<Relation<'r>>> = vec![Vec::new(); names.len()];
        for (rule, resource, to_name) in related() {
            let to = numbers.get(to_name).copied().unwrap_or_default();
            let mut add = |number: usize| {
                let (from, relations) = (names.get(number), all.get_mut(number));
                // On itself a rule is as good as a direct one.
                if let (Some(&from), Some(relations)) = (from, relations)
                    && number != to
                {
                    relations.push(Relation {
                        rule,
                        from,
                        to,
                        to_name,
                    });
                }
            };
            match resource {
                RuleResource::Name(name) => numbers.get(name.as_str()).copied().map_or((), add),
                RuleResource::Pattern(pattern) => {
                    let names = (0..).zip(&names);
                    let matching = names.filter(|(_number, name)| pattern.matches(name));
                    matching.for_each(|(number, _name)| add(number));
                }
            }
        }
        Self(all)
    }

    /// Circles. Without the relations that close them none is left.
    fn circles(&self) -> Vec<Circle<'r>> {
        let mut search = Search {
            relations: &self.0,
            seen: vec![Seen::Not; self.0.len()],
            way: Vec::new(),
            found: Vec::new(),
        };
        for start in 0..self.0.len() {
            search.from(start);
        }
        search.found
    }
}

fn related(rule: &Rule) -> Option<(&Rule, &RuleResource, &str)> {
    let flow = rule.body.flow()?;
    let Strategy::Relate(to) = &flow.strategy else {
        return None;
    };
    Some((rule, &flow.resource, to))
}

/// What is known of a resource.
#[derive(Debug, Clone, Copy)]
enum Seen {
    Not,
    /// It is so far along the way.
    OnTheWay(usize),
    /// All that it leads to was looked at.
    Done,
}

/// A search in depth. It keeps its way itself, since the circles of a file may be deeper than a stack.
struct Search<'s, 'r> {
    relations: &'s [Vec<Relation<'r>>],
    seen: Vec<Seen>,
    /// Resources, each with how many of its relations were gone along.
    way: Vec<(usize, usize)>,
    found: Vec<Circle<'r>>,
}

impl<'r> Search<'_, 'r> {
    fn from(&mut self, start: usize) {
        self.meet(start);
        while let Some((resource, tried)) = self.way.last_mut() {
            let (resource, next) = (*resource, *tried);
            *tried = tried.saturating_add(1);
            if let Some(relation) = self.relation(resource, next) {
                self.meet(relation.to);
            } else {
                self.way.pop();
                self.mark(resource, Seen::Done);
            }
        }
    }

    fn meet(&mut self, resource: usize) {
        match self.seen.get(resource) {
            Some(Seen::Not) => {
                self.mark(resource, Seen::OnTheWay(self.way.len()));
                self.way.push((resource, 0));
            }
            Some(Seen::OnTheWay(depth)) => {
                let since = self.way.get(*depth..).unwrap_or_default();
                self.found.extend(self.circle(since));
            }
            Some(Seen::Done) | None => {}
        }
    }

    /// The circle of the last relation of the way and those before it.
    fn circle(&self, way: &[(usize, usize)]) -> Option<Circle<'r>> {
        let gone =
            |(resource, tried): &(usize, usize)| self.relation(*resource, tried.saturating_sub(1));
        let (last, others) = way.split_last()?;
        Some(Circle {
            closing: gone(last)?,
            others: others.iter().take(TOLD_MAX).filter_map(gone).collect(),
            untold: others.len().saturating_sub(TOLD_MAX),
        })
    }

    fn relation(&self, resource: usize, number: usize) -> Option<Relation<'r>> {
        self.relations.get(resource)?.get(number).copied()
    }

    fn mark(&mut self, resource: usize, seen: Seen) {
        if let Some(place) = self.seen.get_mut(resource) {
            *place = seen;
        }
    }
}

impl Circle<'_> {
    fn fault(&self) -> Fault {
        let Relation { rule, from, .. } = self.closing;
        let mut hint = String::from("a circle:");
        for (index, relation) in self.others.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let Relation { from, to_name, .. } = relation;
            let place = &relation.rule.reference_spot.place;
            // Writing to text cannot fail.
            write!(hint, "{comma} {place} relates \"{from}\" to \"{to_name}\"").unwrap_or_default();
        }
        if self.untold > 0 {
            write!(hint, ", and {} more", self.untold).unwrap_or_default();
        }
        let allowed = format!("a resource from which no rules lead back to \"{from}\"");
        let value = format!("\"{}\"", self.closing.to_name);
        fault_at(rule, &rule.reference_spot, value, allowed, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Body;
    use crate::rule_source::form::read;
    use crate::schema::source::Source;

    /// Rules of which each relates one resource to another.
    fn relating(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Rule> {
        let text =
            "[[flow]]\nresource = \"a\"\ncount = 1\nstrategy = \"relate\"\nreference = \"b\"\n";
        let read = read("rules.toml".as_ref(), &Source::new("rules.toml", text));
        let [rule] = &read.rules[..] else {
            panic!("one rule: {:?}", read.faults);
        };
        let name = |number: usize| format!("r{number}");
        let related = |(from, to)| {
            let mut rule = rule.clone();
            if let Body::Flow(flow) = &mut rule.body {
                flow.resource = RuleResource::Name(name(from));
                flow.strategy = Strategy::Relate(name(to));
            }
            rule
        };
        pairs.map(related).collect()
    }

    #[test]
    fn a_circle_deeper_than_a_stack_is_found_and_told_in_short() {
        let deep = 100_000;
        let rules = relating((0..deep).map(|number| (number, (number + 1) % deep)));
        let [fault] = &faults(&rules)[..] else {
            panic!("one circle");
        };
        assert!(fault.hint.ends_with(", and 99991 more"), "{}", fault.hint);
    }

    #[test]
    fn without_the_rules_at_fault_no_circle_is_left_and_ways_that_meet_again_are_none() {
        let many = 40;
        let all = (0..many).flat_map(|from| (0..many).map(move |to| (from, to)));
        let rules = relating(all);
        let closing = faults(&rules).len();
        // Each pair stands for one way round and its opposite: half of them must go.
        assert_eq!(closing, many * (many - 1) / 2);
        let upwards = (0..many).flat_map(|from| (from..many).map(move |to| (from, to)));
        assert_eq!(faults(&relating(upwards)), []);
    }
}
