//! Rules that never refuse because another one of the set always refuses before.

use std::collections::HashMap;

use tidegate_abi::decision::Mode;

use super::flow::{Behavior, Grade, LimitOrigin, Strategy};
use super::{Amount, Body, Flow, Rule, System};
use crate::schema::fault::Fault;

/// A warning for each rule that another one leaves nothing to do.
pub(super) fn warnings(rules: &[Rule]) -> Vec<Fault> {
    let flows = shadowed_flows(rules);
    let marks = shadowed_marks(rules);
    flows.into_iter().chain(marks).collect()
}

/// What a plain limit is on, and of which mode: of several the least is reached first.
fn plain(rule: &Rule) -> Option<((&str, bool, Grade), Amount)> {
    let flow = rule.body.flow()?;
    let Flow {
        resource,
        limit_origin: LimitOrigin::Default,
        strategy: Strategy::Direct,
        cluster: None,
        strained: None,
        grade,
        count,
    } = flow
    else {
        return None;
    };
    let counts = match grade {
        Grade::Concurrency => true,
        Grade::Qps { behavior, .. } => *behavior == Behavior::Reject,
    };
    let stays = rule.mode == Mode::Enforce && rule.end.is_none();
    let is_name = matches!(resource, super::RuleResource::Name(_));
    (counts && stays).then_some(((resource.text(), is_name, *grade), *count))
}

fn shadowed_flows(rules: &[Rule]) -> Vec<Fault> {
    let mut least: HashMap<_, (Amount, &Rule)> = HashMap::new();
    for rule in rules {
        if let Some((key, count)) = plain(rule) {
            let kept = least.entry(key).or_insert((count, rule));
            if count.get() < kept.0.get() {
                *kept = (count, rule);
            }
        }
    }
    let idle = rules.iter().filter_map(|rule| {
        let (key, count) = plain(rule)?;
        let (smaller, by) = least.get(&key).filter(|kept| kept.0.get() < count.get())?;
        let hint = format!("it never refuses: {} refuses from {smaller} on", by.id);
        let allowed = "one limit of a kind for a resource";
        let place = rule.count_spot.place.clone();
        let option = format!("{}.{}", rule.path, rule.count_spot.name);
        Some(Fault::at(place, option, count.to_string(), allowed, hint))
    });
    idle.collect()
}

/// Of system rules the least mark of each is in force.
fn shadowed_marks(rules: &[Rule]) -> Vec<Fault> {
    let systems = || {
        rules.iter().filter_map(|rule| match &rule.body {
            Body::System(system) if rule.mode == Mode::Enforce && rule.end.is_none() => {
                Some((rule, system))
            }
            Body::System(_)
            | Body::Authority(_)
            | Body::Param(_)
            | Body::Flow(_)
            | Body::Degrade(_) => None,
        })
    };
    let mut least = System::default();
    for (_rule, system) in systems() {
        least = least.least_with(system);
    }
    let idle = systems().filter(|(_rule, system)| system.shares_no_mark_with(&least));
    idle.map(|(rule, system)| {
        let (allowed, hint) = if system.is_empty() {
            ("at least one mark", "a rule without a mark does nothing")
        } else {
            (
                "at least one mark under those of the others",
                "other system rules have smaller ones, which are in force instead",
            )
        };
        Fault::at(
            rule.place.clone(),
            rule.path.clone(),
            "no mark",
            allowed,
            hint,
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::rule::{QuirksOption, RuleSet};
    use crate::rule_source::form::read;
    use crate::schema::fault::Fault;
    use crate::schema::source::Source;

    fn warnings(file: &str, text: &str) -> Vec<Fault> {
        let read = read(file.as_ref(), &Source::new(file, text));
        assert_eq!(read.faults, []);
        let set = RuleSet::build(read.rules, QuirksOption::None).unwrap();
        set.warnings().to_vec()
    }

    fn warned(text: &str) -> Vec<String> {
        let warnings = warnings("a.toml", text).into_iter();
        warnings.map(|warning| warning.option).collect()
    }

    fn flow(more: &str) -> String {
        format!("[[flow]]\nresource = \"a\"\n{more}\n")
    }

    #[test]
    fn field_r8_the_larger_of_two_plain_limits_never_acts() {
        let two = |first: &str, second: &str| warned(&(flow(first) + &flow(second)));
        assert_eq!(two("count = 100", "count = 50"), ["flow[0].count"]);
        assert_eq!(two("count = 50", "count = 100"), ["flow[1].count"]);
        for apart in [
            "count = 50\ngrade = \"concurrency\"",
            "count = 50\nmode = \"observe\"",
            "count = 50\nlimit_origin = \"shop\"",
            "count = 50\nwindow = \"2s\"",
            "count = 50\nexpires = \"30s\"",
            "count = 50\nstrict = true",
        ] {
            assert_eq!(two("count = 100", apart), Vec::<String>::new(), "{apart}");
        }
    }

    #[test]
    fn field_r8_a_system_rule_whose_marks_are_all_over_those_of_others_never_acts() {
        let text = "[[system]]\nqps = 100\ncpu = 0.9\n[[system]]\nqps = 50\n[[system]]\nqps = 70\n";
        assert_eq!(warned(text), ["system[2]"]);
    }

    #[test]
    fn field_r8_a_system_rule_without_a_mark_is_not_said_to_have_larger_ones() {
        let text = r#"[{"highestCpuUsage": -1, "highestSystemLoad": -1, "qps": -1}]"#;
        let hints = warnings("system.json", text).into_iter();
        let hints: Vec<_> = hints.map(|warning| warning.hint).collect();
        assert_eq!(hints, ["a rule without a mark does nothing"]);
    }
}
