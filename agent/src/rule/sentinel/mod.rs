//! Rule files in Sentinel's form: a JSON array, fields and defaults as in Sentinel 1.8.9.
//!
//! Each kind has a table of Sentinel's fields and turns it into our options; the checks are ours.
//! Fields that neither Sentinel nor its dashboard has are refused, since a mistyped limit would not hold.

mod authority;
mod cluster;
mod code;
mod degrade;
mod entity;
mod flow;
mod go;
pub mod kind;
mod origins;
mod param;
mod system;

use std::sync::LazyLock;

use tidegate_abi::decision::RefusalKind;

use entity::{Spelling, unwrapped};
use kind::SentinelForm;

use super::effect::Idle;
use super::{Effects, Rule, RuleOptions};
use crate::schema::fault::Sink;
use crate::schema::settings::{OptionTable, Section};
use crate::schema::{FileNode, Value, json};

/// Fields that Sentinel's dashboard stores with a rule, and such that it writes with rules of kinds or versions
/// that do not use them. They mean nothing here.
const KNOWN_FIELDS: [&str; 11] = [
    "app",
    "ip",
    "port",
    "gmtCreate",
    "gmtModified",
    "type",
    "regex",
    "limitApp",
    "rtSlowRequestAmount",
    "passCount",
    "cut",
];

/// The fields of a kind of rule in Sentinel's form.
trait Foreign: OptionTable + Effects {
    /// Our form.
    type Ours: RuleOptions;
    /// Pairs of our key and Sentinel's field.
    const NAMES: &'static [(&'static str, &'static str)];
    /// Turns it into our form.
    fn ours(&self, section: &mut Section<'_, '_>) -> Self::Ours;
}

/// Reads the rules of the sink's file: a list, or one rule alone. `hint` is what the file's name tells, if it does.
pub fn read(sink: &mut Sink<'_>, hint: Option<SentinelForm>) -> Vec<Rule> {
    sink.set_of_sentinel();
    let (mut root, path) = entity::answered(json::parse(sink));
    spelling().settle(&mut root);
    let items = match root.value {
        Value::List(items) => (0_usize..)
            .zip(items)
            .map(|(index, item)| (format!("{path}[{index}]"), item))
            .collect(),
        Value::Table(_) => vec![("[0]".to_owned(), root)],
        Value::Flag(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Text(_)
        | Value::Null
        | Value::Other(_) => {
            let allowed = "a JSON array of rules";
            sink.refuse(&root.span, "file", allowed, "write […] around the rules");
            return Vec::new();
        }
    };
    let rules = items.into_iter().filter_map(|(path, item)| {
        let (item, path) = unwrapped(item, &path, sink);
        rule(&item, &path, hint, sink)
    });
    rules.collect()
}

/// The fields of every kind, once.
fn spelling() -> &'static Spelling {
    static SPELLING: LazyLock<Spelling> = LazyLock::new(|| {
        let own = [
            flow::FlowFields::default().rows(),
            degrade::DegradeFields::default().rows(),
            param::ParamFields::default().rows(),
            param::ItemFields::default().rows(),
            system::SystemFields::default().rows(),
            authority::AuthorityFields::default().rows(),
            cluster::ClusterFields::default().rows(),
            go::rows(),
        ];
        let own = own.into_iter().flatten().map(|row| row.key);
        Spelling::of(own.chain(KNOWN_FIELDS).chain(["rule"]))
    });
    &SPELLING
}

fn rule(
    item: &FileNode,
    path: &str,
    hint: Option<SentinelForm>,
    sink: &mut Sink<'_>,
) -> Option<Rule> {
    let members = item.value.members();
    let form = members.and_then(|members| kind::of_rule(members, hint));
    if let Some(contradiction) = members.and_then(|members| kind::contradiction(members, hint)) {
        warn_of(&contradiction, path, sink);
    }
    if let Some(class) = members.and_then(|members| members.iter().find(|one| one.key == CLASS)) {
        let hint = "a class of Java, as fastjson writes it; nothing here makes objects of classes: take the field out. \
                    The fields or the file's name say what kind of rule it is";
        let path = format!("{path}.{CLASS}");
        sink.refuse(&class.node.span, path, "rules without it", hint);
        return None;
    }
    match form {
        Some(SentinelForm::Rule(kind)) => own(kind, item, path, sink),
        Some(SentinelForm::Go(kind)) => go::rule(kind, item, path, sink),
        Some(SentinelForm::Gateway) => {
            let hint = "this is of Sentinel's gateway adapter, which limits routes by parts of HTTP requests; nothing \
                        here sees those. Write a flow rule for the name of the route";
            sink.refuse(&item.span, path, "a rule for a resource", hint);
            None
        }
        None => {
            let allowed = "an object with the fields of one kind of rule";
            let hint = "name the file after the kind of its rules";
            sink.refuse(&item.span, path, allowed, hint);
            None
        }
    }
}

/// The field in which fastjson writes the class of an object.
const CLASS: &str = "@type";

fn warn_of(contradiction: &kind::Contradiction<'_>, path: &str, sink: &mut Sink<'_>) {
    let kind::Contradiction {
        member,
        told,
        named,
    } = contradiction;
    let (told, named) = (told.name(), named.name());
    let allowed = format!("the fields of {named} rules, as the file is called");
    let hint = format!(
        "it makes this one a {told} rule; where that is meant, move it to a file that is named after {told} rules, or \
         add \"type\": \"{told}\""
    );
    let path = format!("{path}.{}", member.key);
    sink.warn(&member.node.span, path, allowed, hint);
}

fn own(kind: RefusalKind, item: &FileNode, path: &str, sink: &mut Sink<'_>) -> Option<Rule> {
    match kind {
        RefusalKind::Authority => foreign::<authority::AuthorityFields>(item, path, sink),
        RefusalKind::System => foreign::<system::SystemFields>(item, path, sink),
        RefusalKind::Param => foreign::<param::ParamFields>(item, path, sink),
        RefusalKind::Flow => foreign::<flow::FlowFields>(item, path, sink),
        RefusalKind::Degrade => foreign::<degrade::DegradeFields>(item, path, sink),
    }
}

/// The fields of a kind of rule, or of a part of one.
#[cfg(test)]
pub(super) fn fields_of(kind: &str) -> Vec<crate::schema::settings::OptionRow> {
    match kind {
        "flow" => flow::FlowFields::default().rows(),
        "degrade" => degrade::DegradeFields::default().rows(),
        "param" => param::ParamFields::default().rows(),
        "system" => system::SystemFields::default().rows(),
        "authority" => authority::AuthorityFields::default().rows(),
        "cluster" => cluster::ClusterFields::default().rows(),
        "items" => param::ItemFields::default().rows(),
        other => panic!("no kind: {other}"),
    }
}

/// Callers that a kind of rule does not look at; `default` says nobody in particular.
fn no_callers(limit_app: &str) -> Option<Idle> {
    let named = !matches!(limit_app.trim(), "" | "default");
    Idle::when(
        named,
        "default",
        "this kind of rule does not look at callers: it holds all of them",
    )
}

/// The part of a rule that other hosts share, where the rule is not shared.
fn own_cluster(mode: bool, config: Option<&cluster::ClusterFields>) -> Option<Idle> {
    let idle = !mode && config.is_some_and(|config| config.flow_id > 0);
    Idle::when(
        idle,
        "with clusterMode true",
        "the rule is of this host alone",
    )
}

/// Of each kind its fields, those that answer for themselves, and how ours are called.
#[cfg(test)]
pub(super) fn answers() -> Vec<Answers> {
    fn of<F: Foreign>(kind: &'static str) -> Answers {
        let fields = F::default().rows().iter().map(|row| row.key).collect();
        let answered = F::EFFECTS.iter().map(|effect| effect.key).collect();
        (kind, fields, answered, F::NAMES)
    }
    vec![
        of::<flow::FlowFields>("flow"),
        of::<degrade::DegradeFields>("degrade"),
        of::<param::ParamFields>("param"),
        of::<system::SystemFields>("system"),
        of::<authority::AuthorityFields>("authority"),
    ]
}

#[cfg(test)]
type Answers = (
    &'static str,
    Vec<&'static str>,
    Vec<&'static str>,
    &'static [(&'static str, &'static str)],
);

fn foreign<F: Foreign>(item: &FileNode, path: &str, sink: &mut Sink<'_>) -> Option<Rule> {
    let mut section = Section::open(item, path, sink)?;
    let before = section.fault_count();
    let fields = F::read(&mut section, &F::default());
    section.ignore(&KNOWN_FIELDS);
    section.close();
    section.take_for_unset(fields.unset());
    section.warn_of_ignored(
        "regex",
        "this kind of rule takes no pattern: the name is compared literally",
    );
    let own = section.fault_count();
    if own == before {
        fields.warn(&mut section);
    }
    section.rename(F::NAMES);
    fields.ours(&mut section).rule(&mut section, before)
}

#[cfg(test)]
mod handbook_tests;
