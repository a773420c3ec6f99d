//! Names for the resources that stand for those without a slot of their own.
//!
//! A name that finds no slot must be held to no less than it would be with one. Where it matches no pattern
//! that is [`NAME`], which breakers for all guard. Names that match a pattern share a resource of this pattern,
//! and those that match several one that is held to all of them: stricter than the rules, never looser. They are
//! made with the rule set, so there is always one.

use tidegate_abi::board::name_hash;

use super::RuleIndex;

/// Name of the resource that stands for all that got no slot of their own and match no pattern.
pub const NAME: &str = "__other__";

/// Longest pattern that is part of a name, in bytes.
const TEXT_MAX: usize = 200;

/// A resource for names without a slot that match some patterns.
#[derive(Debug)]
pub(super) struct Shared {
    name: String,
    /// The rules of these patterns.
    pub(super) rules: Vec<usize>,
}

impl RuleIndex {
    /// Finds the resources that names without a slot share, by the patterns of the rules.
    pub(super) fn share(&mut self) {
        let mut shared: Vec<(String, Vec<usize>)> = Vec::new();
        for index in &self.patterns {
            let rule = self.rules.rules().get(*index);
            let Some(pattern) = rule.and_then(super::pattern) else {
                continue;
            };
            match shared.iter_mut().find(|(text, _)| text == pattern.text()) {
                Some((_text, rules)) => rules.push(*index),
                None => shared.push((pattern.text().to_owned(), vec![*index])),
            }
        }
        let texts: Vec<&str> = shared.iter().map(|(text, _rules)| text.as_str()).collect();
        let several = (shared.len() > 1).then(|| Shared {
            name: of_several(&texts),
            rules: self.patterns.clone(),
        });
        let each = shared.into_iter().map(|(text, rules)| Shared {
            name: of_one(&text),
            rules,
        });
        self.shared = each.chain(several).collect();
    }

    /// The resource that a name shares with others where it finds no slot of its own.
    pub fn overflow(&self, name: &str) -> &str {
        let matching = self.matching(name);
        let all_in = |shared: &&Shared| matching.iter().all(|index| shared.rules.contains(index));
        if matching.is_empty() {
            return NAME;
        }
        let shared = self.shared.iter().find(all_in);
        shared.map_or(NAME, |shared| &shared.name)
    }

    /// Whether a name is that of a resource which others share in this set.
    pub fn is_overflow(&self, name: &str) -> bool {
        name == NAME || self.shared.iter().any(|shared| shared.name == name)
    }

    /// Names of the resources that others share by their patterns.
    pub fn overflows(&self) -> impl Iterator<Item = &str> {
        self.shared.iter().map(|shared| shared.name.as_str())
    }

    /// The rules whose pattern a name matches.
    pub(super) fn matching(&self, name: &str) -> Vec<usize> {
        if let Some(shared) = self.shared.iter().find(|shared| shared.name == name) {
            return shared.rules.clone();
        }
        let matches = |index: &&usize| {
            let rule = self.rules.rules().get(**index);
            let pattern = rule.and_then(super::pattern);
            pattern.is_some_and(|pattern| pattern.matches(name))
        };
        self.patterns.iter().filter(matches).copied().collect()
    }
}

/// A pattern stands in its resource's name, so that another pattern is another resource.
fn of_one(text: &str) -> String {
    if text.len() > TEXT_MAX {
        return format!("{NAME}:{:016x}", name_hash(text.as_bytes()));
    }
    format!("{NAME}:{text}")
}

fn of_several(texts: &[&str]) -> String {
    let hash = name_hash(texts.join("\n").as_bytes());
    format!("{NAME}:{} patterns:{hash:016x}", texts.len())
}

#[cfg(test)]
mod tests {
    use super::super::tests::rule_index;
    use super::*;

    #[test]
    fn names_without_a_slot_share_a_resource_with_every_pattern_that_they_match() {
        let flow = |id: &str, pattern: &str| {
            format!("[[flow]]\nid = \"{id}\"\nresource = \"{pattern}\"\nregex = true\ncount = 1\n")
        };
        let param =
            "[[param]]\nid = \"c\"\nresource = \"item/.*\"\nregex = true\nindex = 0\ncount = 1\n";
        let rules = [flow("a", "item/.*"), flow("b", ".*/7"), param.to_owned()];
        let limits = rule_index(&rules.concat());
        assert_eq!(limits.overflow("other"), NAME);
        assert_eq!(limits.overflow("item/5"), "__other__:item/.*");
        assert_eq!(limits.overflow("x/7"), "__other__:.*/7");
        let both = limits.overflow("item/7").to_owned();
        assert!(both.starts_with("__other__:2 patterns:"), "{both}");
        let ids = |name: &str| {
            let placed = limits.of_resource(name).into_iter();
            placed
                .map(|placed| placed.rule.id.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids("__other__:item/.*"), ["c", "a"]);
        assert_eq!(ids("__other__:.*/7"), ["b"]);
        assert_eq!(ids(&both), ["c", "a", "b"]);
        assert_eq!(ids(NAME), Vec::<String>::new());
        assert!(limits.is_overflow(&both) && !limits.is_overflow("item/7"));
    }
}
