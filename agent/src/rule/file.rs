//! Rule files in our own form: TOML with a table for each rule.

use std::marker::PhantomData;

use serde_json::Value as Json;

use super::authority::AuthorityOptions;
use super::degrade::DegradeOptions;
use super::flow::FlowOptions;
use super::param::ParamOptions;
use super::system::SystemOptions;
use super::{Rule, RuleOptions};
use crate::schema::editor;
use crate::schema::fault::Sink;
use crate::schema::kind::{OptionKind, ShownValue};
use crate::schema::settings::{OptionTable as _, Section, settings};
use crate::schema::{FileNode, Value, toml};

settings! {
    /// A rule file.
    pub struct RuleFile {
        /// Which origins may call a resource. The first rule of a resource counts.
        authority: Vec<Rule> = Vec::new(), Rules::<AuthorityOptions>::OF;
        /// Marks for all inbound work. The least mark of each is in force.
        system: Vec<Rule> = Vec::new(), Rules::<SystemOptions>::OF;
        /// A limit for each value of an argument.
        param: Vec<Rule> = Vec::new(), Rules::<ParamOptions>::OF;
        /// How much of a resource may run.
        flow: Vec<Rule> = Vec::new(), Rules::<FlowOptions>::OF;
        /// Circuit breakers.
        degrade: Vec<Rule> = Vec::new(), Rules::<DegradeOptions>::OF;
    }
}

/// The schema of a rule file, for editors: the text of `config/schema/rules.schema.json`.
pub fn schema_text() -> String {
    editor::file("Rules of Tidegate", &RuleFile::default().rows())
}

/// Reads the rules of the sink's file.
pub fn read(sink: &mut Sink<'_>) -> Vec<Rule> {
    let file = toml::read(sink, |root, sink| {
        RuleFile::take(root, &RuleFile::default(), "", sink).unwrap_or_default()
    });
    let RuleFile {
        authority,
        system,
        param,
        flow,
        degrade,
    } = file;
    [authority, system, param, flow, degrade].concat()
}

/// The tables of one kind of rule.
#[derive(Debug, Clone, Copy)]
struct Rules<O>(PhantomData<O>);

impl<O> Rules<O> {
    const OF: Self = Self(PhantomData);
}

impl<O: RuleOptions> OptionKind for Rules<O> {
    type Output = Vec<Rule>;
    fn allowed(&self) -> String {
        "a list of tables".to_owned()
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Vec<Rule>,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Vec<Rule>> {
        let Value::List(items) = &node.value else {
            sink.refuse(
                &node.span,
                path,
                "a list of tables",
                format!("write [[{path}]]"),
            );
            return None;
        };
        let mut rules = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if let Some(mut section) = Section::open(item, &path, sink) {
                let before = section.fault_count();
                let options = O::read(&mut section, &O::default());
                section.close();
                options.check(&mut section);
                rules.extend(options.rule(&mut section, before));
            }
        }
        Some(rules)
    }
    fn shown(&self, _value: &Vec<Rule>) -> ShownValue {
        ShownValue::Tables(O::default().rows())
    }
    fn json_schema(&self) -> Json {
        editor::tables(&O::default().rows())
    }
}
