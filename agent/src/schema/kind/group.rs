//! Kinds made of other kinds.

use std::marker::PhantomData;

use serde_json::{Value as Json, json};

use super::{OptionKind, Scalar, ShownValue, read_scalar};
use crate::schema::editor;
use crate::schema::fault::Sink;
use crate::schema::settings::{OptionRow, OptionTable};
use crate::schema::{FileNode, Value};

/// An option that the file must give, with an example of its value as TOML.
#[derive(Debug, Clone, Copy)]
pub struct RequiredOption<K>(pub K, pub &'static str);

impl<K: Scalar> OptionKind for RequiredOption<K> {
    type Output = K::Output;
    fn allowed(&self) -> String {
        self.0.allowed()
    }
    fn read(
        &self,
        node: &FileNode,
        base: &K::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<K::Output> {
        self.0.read(node, base, path, sink)
    }
    fn shown(&self, _value: &K::Output) -> ShownValue {
        ShownValue::Unset(self.1.to_owned())
    }
    fn json_schema(&self) -> Json {
        self.0.json_schema()
    }
    fn required(&self) -> bool {
        true
    }
}

/// An option that need not be set, with an example of its value as TOML.
#[derive(Debug, Clone, Copy)]
pub struct Maybe<K>(pub K, pub &'static str);

impl<K: Scalar> OptionKind for Maybe<K> {
    type Output = Option<K::Output>;
    fn allowed(&self) -> String {
        self.0.allowed()
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Self::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Self::Output> {
        read_scalar(&self.0, node, path, sink).map(Some)
    }
    fn shown(&self, value: &Self::Output) -> ShownValue {
        value.as_ref().map_or_else(
            || ShownValue::Unset(self.1.to_owned()),
            |value| ShownValue::Value(self.0.written(value)),
        )
    }
    fn json_schema(&self) -> Json {
        self.0.json_schema()
    }
}

/// A list of values of one kind.
#[derive(Debug, Clone, Copy)]
pub struct ListOf<K>(pub K);

impl<K: Scalar> OptionKind for ListOf<K> {
    type Output = Vec<K::Output>;
    fn allowed(&self) -> String {
        format!("a list, each {}", self.0.allowed())
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Self::Output,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Self::Output> {
        let Value::List(items) = &node.value else {
            sink.refuse(
                &node.span,
                path,
                OptionKind::allowed(self),
                "write [\"…\", \"…\"]",
            );
            return None;
        };
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            values.extend(read_scalar(
                &self.0,
                item,
                &format!("{path}[{index}]"),
                sink,
            ));
        }
        (values.len() == items.len()).then_some(values)
    }
    fn shown(&self, value: &Self::Output) -> ShownValue {
        let written: Vec<String> = value.iter().map(|one| self.0.written(one)).collect();
        ShownValue::Value(format!("[{}]", written.join(", ")))
    }
    fn json_schema(&self) -> Json {
        json!({"type": "array", "items": self.0.json_schema()})
    }
}

/// A table of options `[key]`.
#[derive(Debug, Clone, Copy)]
pub struct TableOf<S>(PhantomData<S>);

impl<S> TableOf<S> {
    /// The one of this type.
    pub const OF: Self = Self(PhantomData);
}

impl<S: OptionTable> OptionKind for TableOf<S> {
    type Output = S;
    fn allowed(&self) -> String {
        "a table of options".to_owned()
    }
    fn read(&self, node: &FileNode, base: &S, path: &str, sink: &mut Sink<'_>) -> Option<S> {
        S::take(node, base, path, sink)
    }
    fn shown(&self, value: &S) -> ShownValue {
        ShownValue::Table(value.rows())
    }
    fn json_schema(&self) -> Json {
        editor::table(&S::default().rows())
    }
}

/// Any number of tables `[[key]]`; each begins as the template.
#[derive(Debug, Clone, Copy)]
pub struct Groups<S> {
    /// What one holds that gives no option.
    pub template: S,
}

impl<S: OptionTable> OptionKind for Groups<S> {
    type Output = Vec<S>;
    fn allowed(&self) -> String {
        "a list of tables".to_owned()
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Vec<S>,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Vec<S>> {
        let Value::List(items) = &node.value else {
            sink.refuse(&node.span, path, "a list of tables", "write [[…]] above it");
            return None;
        };
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            // The template holds the place of one at fault, so that indices stay right.
            let group = S::take(item, &self.template, &path, sink);
            read.push(group.unwrap_or_else(|| self.template.clone()));
        }
        Some(read)
    }
    fn shown(&self, _value: &Vec<S>) -> ShownValue {
        ShownValue::Tables(self.template.rows())
    }
    fn items(&self, value: &Vec<S>) -> Vec<Vec<OptionRow>> {
        value.iter().map(OptionTable::rows).collect()
    }
    fn json_schema(&self) -> Json {
        editor::tables(&self.template.rows())
    }
}

/// A table `[key]` that need not be there.
#[derive(Debug, Clone, Copy)]
pub struct MaybeGroup<S>(PhantomData<S>);

impl<S> MaybeGroup<S> {
    /// The one of this type.
    pub const OF: Self = Self(PhantomData);
}

impl<S: OptionTable> OptionKind for MaybeGroup<S> {
    type Output = Option<S>;
    fn allowed(&self) -> String {
        "a table of options".to_owned()
    }
    fn read(
        &self,
        node: &FileNode,
        _base: &Option<S>,
        path: &str,
        sink: &mut Sink<'_>,
    ) -> Option<Option<S>> {
        S::take(node, &S::default(), path, sink).map(Some)
    }
    fn shown(&self, value: &Option<S>) -> ShownValue {
        ShownValue::Tables(value.clone().unwrap_or_default().rows())
    }
    fn json_schema(&self) -> Json {
        editor::table(&S::default().rows())
    }
}
