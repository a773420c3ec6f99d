//! What stands around a rule, and how its fields are spelt.

use std::collections::HashMap;

use super::kind::squashed;
use crate::schema::fault::{Fault, Sink};
use crate::schema::{FileMember, FileNode, Value};

/// What Sentinel's dashboard stores around a rule.
const AROUND: [&str; 7] = [
    "id",
    "app",
    "ip",
    "port",
    "gmtCreate",
    "gmtModified",
    "rule",
];

/// The rule in what a dashboard stores of a kind with the rule as a field, with the outer id; anything else as it is.
pub(super) fn unwrapped(item: FileNode, path: &str, sink: &mut Sink<'_>) -> (FileNode, String) {
    let Value::Table(outer) = &item.value else {
        return (item, path.to_owned());
    };
    let found = outer.iter().find(|member| member.key == "rule");
    let Some((rule, Value::Table(inner))) = found.map(|found| (&found.node, &found.node.value))
    else {
        return (item, path.to_owned());
    };
    for member in outer {
        // Some versions repeat the fields of the rule beside it.
        let repeats = |own: &FileMember| own.key == member.key && same(&own.node, &member.node);
        if !AROUND.contains(&member.key.as_str()) && !inner.iter().any(repeats) {
            let place = sink.source().place(member.key_span.start);
            let value = sink.source().excerpt(&member.node.span);
            let option = format!("{path}.{}", member.key);
            let hint = "the fields of a rule stand in `rule`";
            sink.push(Fault::at(place, option, value, AROUND.join(", "), hint));
        }
    }
    let mut inner = inner.clone();
    let has_id = inner
        .iter()
        .any(|member| member.key == "id" && member.node.value != Value::Null);
    if !has_id {
        inner.retain(|member| member.key != "id");
        inner.extend(outer.iter().find(|member| member.key == "id").cloned());
    }
    let rule = FileNode {
        span: rule.span.clone(),
        value: Value::Table(inner),
    };
    (rule, format!("{path}.rule"))
}

/// Fields of what the dashboard answers to a question for rules.
const ANSWER: [&str; 4] = ["success", "code", "msg", "data"];

/// The list of rules in an answer of the dashboard that somebody saved as a file, and its path; anything else as it is.
pub(super) fn answered(root: FileNode) -> (FileNode, &'static str) {
    let Value::Table(members) = &root.value else {
        return (root, "");
    };
    let is_answer = members
        .iter()
        .all(|member| ANSWER.contains(&member.key.as_str()));
    let data = members.iter().find(|member| member.key == "data");
    match data.filter(|_data| is_answer) {
        Some(data) if matches!(data.node.value, Value::List(_)) => (data.node.clone(), "data"),
        _ => (root, ""),
    }
}

/// Whether two nodes say the same, wherever they stand.
fn same(one: &FileNode, other: &FileNode) -> bool {
    match (&one.value, &other.value) {
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Table(one), Value::Table(other)) => {
            let alike = |(one, other): (&FileMember, &FileMember)| {
                one.key == other.key && same(&one.node, &other.node)
            };
            one.len() == other.len() && one.iter().zip(other).all(alike)
        }
        (one, other) => one == other,
    }
}

/// Fields whose values are tables of fields again.
const NESTED: [&str; 3] = ["rule", "clusterConfig", "paramFlowItemList"];

/// The fields of all kinds, by their names in lower case without `_` and `-`: fastjson takes them so.
#[derive(Debug)]
pub(super) struct Spelling(HashMap<String, &'static str>);

impl Spelling {
    pub(super) fn of(fields: impl Iterator<Item = &'static str>) -> Self {
        Self(fields.map(|field| (squashed(field), field)).collect())
    }

    /// Writes the names of fields as the tables of fields have them.
    pub(super) fn settle(&self, node: &mut FileNode) {
        match &mut node.value {
            Value::List(items) => items.iter_mut().for_each(|item| self.settle(item)),
            Value::Table(members) => self.settle_members(members),
            Value::Flag(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Null
            | Value::Other(_) => {}
        }
    }

    fn settle_members(&self, members: &mut [FileMember]) {
        for index in 0..members.len() {
            let key = members.get(index).map_or("", |member| member.key.as_str());
            let field = self.0.get(&squashed(key)).copied();
            let field = field.filter(|field| !members.iter().any(|other| other.key == *field));
            let Some(member) = members.get_mut(index) else {
                return;
            };
            if let Some(field) = field {
                field.clone_into(&mut member.key);
            }
            if NESTED.contains(&member.key.as_str()) {
                self.settle(&mut member.node);
            }
        }
    }
}
