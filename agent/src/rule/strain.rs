//! Counts of flow rules while the machine is strained.
//!
//! The gate knows one count of a rule. While the machine is strained the agent publishes the same set with the other
//! count in its place; windows and places go on, as with any rule whose count alone changes.

use super::{Body, Rule, RuleSet};

impl Rule {
    /// Puts the count in place that holds now.
    fn strain(&mut self, strained: bool) {
        let Body::Flow(flow) = &mut self.body else {
            return;
        };
        match (strained, flow.strained, self.usual) {
            (true, Some(less), None) => {
                self.usual = Some(flow.count);
                flow.count = less;
            }
            (false, _, Some(usual)) => {
                self.usual = None;
                flow.count = usual;
            }
            _ => {}
        }
    }
}

impl RuleSet {
    /// Puts the counts in place that hold while the machine is strained, or the usual ones.
    pub fn strain(&mut self, strained: bool) {
        self.set_strained(strained);
        for rule in self.rules_mut() {
            rule.strain(strained);
        }
    }

    /// The same set with the other counts; `None` where they are in place, or no rule has any.
    pub fn strained(&self, strained: bool) -> Option<Self> {
        let has_counts =
            |rule: &Rule| matches!(&rule.body, Body::Flow(flow) if flow.strained.is_some());
        if self.is_strained() == strained || !self.rules().iter().any(has_counts) {
            return None;
        }
        let mut next = self.clone();
        next.strain(strained);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use crate::rule::{Fate, QuirksOption, RuleSet};
    use crate::rule_source::form::read;
    use crate::schema::source::Source;

    fn set() -> RuleSet {
        let text = "[[flow]]\nresource = \"a\"\ncount = 9\nstrained_count = 3\n\
                    [[flow]]\nresource = \"b\"\ncount = 5\n";
        let read = read("a.toml".as_ref(), &Source::new("a.toml", text));
        assert_eq!(read.faults, []);
        RuleSet::build(read.rules, QuirksOption::None).unwrap()
    }

    fn counts(set: &RuleSet) -> Vec<u32> {
        let flows = set.rules().iter().filter_map(|rule| rule.body.flow());
        flows.map(|flow| flow.count.whole()).collect()
    }

    #[test]
    fn field_r13_a_strained_machine_takes_the_other_count_and_gives_it_back() {
        let usual = set();
        assert!(usual.strained(false).is_none());
        let strained = usual.strained(true).unwrap();
        assert_eq!(counts(&strained), [3, 5]);
        assert!(strained.strained(true).is_none());
        let fates = strained.diff(&usual).fates;
        assert_eq!(fates, [Fate::Retuned(0), Fate::Unchanged(1)]);
        assert_eq!(strained.strained(false), Some(usual));
    }
}
