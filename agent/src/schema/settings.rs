//! A table of options as a typed struct.

use super::effect::asks;
use super::fault::{Fault, InFile, Sink, Spot};
use super::kind::{OptionKind, ShownValue};
use super::source::shown;
use super::{FileMember, FileNode, Value};

/// A group of options that `settings!` made.
pub trait OptionTable: Clone + Default {
    /// Takes its options out of a section; what is absent or at fault is as in `base`.
    fn read(section: &mut Section<'_, '_>, base: &Self) -> Self;
    /// Checks what no option can check alone.
    fn check(&self, _section: &mut Section<'_, '_>) {}
    /// Its options with their present values, for the shipped file.
    fn rows(&self) -> Vec<OptionRow>;

    /// Keys of the options that hold what they hold by default.
    fn unset(&self) -> Vec<&'static str> {
        let defaults = Self::default().rows();
        let rows = self.rows().into_iter().zip(defaults);
        // What must be given shows an example whatever it holds.
        let holds = |row: &OptionRow| !matches!(row.shown, ShownValue::Unset(_));
        rows.filter(|(row, default)| holds(row) && row.shown == default.shown)
            .map(|(row, _default)| row.key)
            .collect()
    }

    /// Reads and checks a whole table.
    fn take(node: &FileNode, base: &Self, path: &str, sink: &mut Sink<'_>) -> Option<Self> {
        let mut section = Section::open(node, path, sink)?;
        let settings = Self::read(&mut section, base);
        section.close();
        // The shipped file holds every default: who leaves one as it is asks for nothing.
        section.take_for_unset(settings.unset());
        settings.check(&mut section);
        Some(settings)
    }
}

/// One option of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionRow {
    /// Its key.
    pub key: &'static str,
    /// Its description, line by line.
    pub docs: &'static [&'static str],
    /// What it may hold.
    pub allowed: String,
    /// What it holds.
    pub shown: ShownValue,
    /// What each table of a list `[[key]]` holds.
    pub items: Vec<Vec<OptionRow>>,
    /// Whether the file must give it.
    pub required: bool,
    /// What it may hold, as a JSON Schema.
    pub json_schema: serde_json::Value,
}

impl OptionRow {
    /// Adds the row of an option to those of its group.
    pub(crate) fn add<K: OptionKind>(
        rows: &mut Vec<Self>,
        key: &'static str,
        docs: &'static [&'static str],
        kind: &K,
        value: &K::Output,
    ) {
        rows.push(Self {
            key,
            docs,
            allowed: kind.allowed(),
            shown: kind.shown(value),
            items: kind.items(value),
            required: kind.required(),
            json_schema: kind.json_schema(),
        });
    }
}

/// A table of a file while it is taken apart.
#[derive(Debug)]
pub struct Section<'n, 's> {
    path: &'n str,
    node: &'n FileNode,
    members: &'n [FileMember],
    known: Vec<&'static str>,
    ignored: Vec<&'static str>,
    names: &'static [(&'static str, &'static str)],
    /// Keys of the file whose values are those that it has without them.
    unset: Vec<&'static str>,
    sink: &'n mut Sink<'s>,
}

impl<'n, 's> Section<'n, 's> {
    /// Opens a table; anything else is a fault.
    pub fn open(node: &'n FileNode, path: &'n str, sink: &'n mut Sink<'s>) -> Option<Self> {
        let Value::Table(members) = &node.value else {
            sink.refuse(&node.span, path, "a table of options", "");
            return None;
        };
        Some(Self {
            path,
            node,
            members,
            known: Vec::new(),
            ignored: Vec::new(),
            names: &[],
            unset: Vec::new(),
            sink,
        })
    }

    /// Takes an option; `base` where it is absent or at fault.
    pub fn take<K: OptionKind>(
        &mut self,
        key: &'static str,
        kind: &K,
        base: &K::Output,
    ) -> K::Output
    where
        K::Output: Clone,
    {
        self.known.push(key);
        let Some(member) = self.member(key) else {
            if kind.required() {
                let path = self.path_of(key);
                let hint = format!("add `{key}`");
                self.sink.lack(&self.node.span, path, kind.allowed(), hint);
            }
            return base.clone();
        };
        let path = self.path_of(key);
        let read = kind.read(&member.node, base, &path, self.sink);
        read.unwrap_or_else(|| base.clone())
    }

    /// Whether the file gives an option.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// An option as it is written in the file, with its quotes.
    pub fn written(&self, key: &str) -> Option<&str> {
        let span = self.find(key)?.span.clone();
        self.sink.source().text().get(span)
    }

    /// Whether the file gives an option and asks for something with it.
    pub fn gives(&self, key: &str) -> bool {
        let unset = self.unset.contains(&self.name_of(key));
        !unset && self.find(key).is_some_and(|node| asks(&node.value))
    }

    /// Takes these keys of the file for not given: some programs write every field, also those that say nothing.
    pub fn take_for_unset(&mut self, keys: impl IntoIterator<Item = &'static str>) {
        self.unset.extend(keys);
    }

    /// Adds a fault about options that do not go together: at the first of them that the file
    /// gives, else at the table. Says nothing when one of them has a fault of its own, since what
    /// stands in for it is not in the file.
    pub fn refuse(&mut self, keys: &[&str], allowed: impl Into<String>, hint: impl Into<String>) {
        if keys
            .iter()
            .any(|key| self.sink.has_fault(&self.path_of(key)))
        {
            return;
        }
        if let Some((key, node)) = keys.iter().find_map(|key| Some((key, self.find(key)?))) {
            let path = self.path_of(key);
            self.sink.refuse(&node.span, path, allowed, hint);
        } else {
            let path = self.path_of(keys.first().copied().unwrap_or_default());
            self.sink.lack(&self.node.span, path, allowed, hint);
        }
    }

    /// Whether an option has no fault by now.
    pub fn is_sound(&self, key: &str) -> bool {
        !self.sink.has_fault(&self.path_of(key))
    }

    /// Faults of the whole file by now.
    pub fn fault_count(&self) -> usize {
        self.sink.fault_count()
    }

    /// Adds a warning at an option, else at the table.
    pub fn warn(&mut self, key: &str, allowed: impl Into<String>, hint: impl Into<String>) {
        let span = self.find(key).map_or(&self.node.span, |node| &node.span);
        let path = self.path_of(key);
        self.sink.warn(span, path, allowed, hint);
    }

    /// Keys that no option has: faults, or kept apart where the sink is lenient.
    pub fn close(&mut self) {
        for (member, allowed, hint) in self.unknown() {
            let source = self.sink.source();
            let place = source.place(member.key_span.start);
            let value = source.excerpt(&member.node.span);
            let fault = Fault::at(
                place,
                shown(&self.path_of(&member.key)),
                value,
                allowed,
                hint,
            );
            self.sink.push_stray(fault);
        }
    }

    /// Whether the file is in Sentinel's form.
    pub fn is_of_sentinel(&self) -> bool {
        self.sink.is_of_sentinel()
    }

    /// Lets these keys be there without a meaning.
    pub fn ignore(&mut self, keys: &[&'static str]) {
        self.ignored.extend_from_slice(keys);
    }

    /// Warns of a key without a meaning that asks for something.
    pub fn warn_of_ignored(&mut self, key: &'static str, hint: &str) {
        if !self.known.contains(&key) && self.gives(key) {
            self.warn(key, "false", hint);
        }
    }

    /// From now on, options are looked up and reported under the names that this file has for
    /// them: pairs of our key and the file's.
    pub fn rename(&mut self, names: &'static [(&'static str, &'static str)]) {
        self.names = names;
    }

    /// Where the table stands.
    pub fn place(&self) -> InFile {
        self.sink.source().place(self.node.span.start)
    }

    /// Where an option stands, or the table where it is absent.
    fn place_of(&self, key: &str) -> InFile {
        let node = self.find(key).unwrap_or(self.node);
        self.sink.source().place(node.span.start)
    }

    /// An option under the name that this file has for it, and where it stands.
    pub fn spot(&self, key: &'static str) -> Spot {
        Spot {
            name: self.name_of(key),
            place: self.place_of(key),
        }
    }

    /// Path of the table.
    pub fn path(&self) -> &str {
        self.path
    }

    /// Each stray key with what is allowed and a hint.
    fn unknown(&self) -> Vec<(&'n FileMember, String, String)> {
        let mut seen: Vec<&FileMember> = Vec::new();
        let mut stray = Vec::new();
        for member in self.members {
            let key = member.key.as_str();
            let is_known = self.known.contains(&key);
            let first = seen.iter().find(|first| is_known && first.key == key);
            if let Some(first) = first {
                let first = self.sink.source().place(first.key_span.start).point;
                let line = first.map_or(0, |point| point.line);
                let hint = format!("it is given twice, first in line {line}");
                stray.push((member, "each option once".to_owned(), hint));
                continue;
            }
            let hint = if is_known || self.ignored.contains(&key) {
                seen.push(member);
                continue;
            } else if self.path.is_empty() && RULE_TABLES.contains(&key) {
                RULES_HINT.to_owned()
            } else {
                nearest("option", key, &self.known)
            };
            stray.push((member, self.known.join(", "), hint));
        }
        stray
    }

    fn member(&self, key: &str) -> Option<&'n FileMember> {
        let found = self.members.iter().find(|member| member.key == key);
        found.filter(|member| member.node.value != Value::Null)
    }

    /// The value of an option; `group.key` looks into a table in this one, `list[2].key` into an
    /// item of a list.
    fn find(&self, key: &str) -> Option<&'n FileNode> {
        let mut found = self.node;
        for part in self.name_of(key).split(['.', '[']) {
            found = match (&found.value, part.strip_suffix(']')) {
                (Value::List(items), Some(index)) => items.get(index.parse::<usize>().ok()?)?,
                (Value::Table(members), None) => {
                    &members.iter().find(|member| member.key == part)?.node
                }
                _ => return None,
            };
        }
        Some(found).filter(|node| node.value != Value::Null)
    }

    fn path_of(&self, key: &str) -> String {
        let key = self.name_of(key);
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn name_of<'k>(&self, key: &'k str) -> &'k str {
        let renamed = self.names.iter().find(|(ours, _)| *ours == key);
        renamed.map_or(key, |(_, theirs)| theirs)
    }
}

/// Tables of rules. A rule file knows them, so elsewhere they are in the wrong file.
const RULE_TABLES: [&str; 5] = ["flow", "degrade", "param", "system", "authority"];

const RULES_HINT: &str =
    "no such option here; rules go into a file of their own in the rules directory (rules.dir)";

/// A hint that names the known word most like this one.
pub(crate) fn nearest(what: &str, key: &str, known: &[&str]) -> String {
    let likeness = |one: &&str| strsim::normalized_damerau_levenshtein(key, one);
    let best = known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|one| likeness(one) >= 0.5);
    best.map_or_else(
        || format!("no such {what}"),
        |best| format!("no such {what}; did you mean `{best}`?"),
    )
}

/// Makes a struct of options: for each its description, key, type, default and kind.
///
/// `name: Type = default, kind;` is an option with the key `name`; `name as "key": …` gives another
/// key. A kind may use the options above it by their names. `check path;` names a function that
/// checks what no option can check alone.
macro_rules! settings {
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident $(as $key:literal)?: $type:ty = $default:expr, $kind:expr;
            )+
        }
        $(check $check:path;)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $($(#[doc = $doc])+ $vis $field: $type,)+
        }
        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
        impl $crate::schema::settings::OptionTable for $name {
            fn read(
                section: &mut $crate::schema::settings::Section<'_, '_>,
                base: &Self,
            ) -> Self {
                $(
                    let $field = section.take(
                        $crate::schema::settings::settings!(@key $field $($key)?),
                        &$kind,
                        &base.$field,
                    );
                )+
                Self { $($field,)+ }
            }
            $(
                fn check(&self, section: &mut $crate::schema::settings::Section<'_, '_>) {
                    $check(self, section);
                }
            )?
            fn rows(&self) -> Vec<$crate::schema::settings::OptionRow> {
                let Self { $($field,)+ } = self;
                let mut rows = Vec::new();
                $({
                    let kind = $kind;
                    let key = $crate::schema::settings::settings!(@key $field $($key)?);
                    $crate::schema::settings::OptionRow::add(&mut rows, key, &[$($doc,)+], &kind, $field);
                })+
                rows
            }
        }
    };
}
pub(crate) use settings;
