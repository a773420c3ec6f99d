#![cfg(test)]

use proptest::prelude::*;
use serde_json::json;

use super::{read, scan::Broken};
use crate::schema::{FileNode, Value};

/// The tree without places, as the other library has it.
fn plain(node: &FileNode) -> serde_json::Value {
    match &node.value {
        Value::Flag(flag) => (*flag).into(),
        Value::Integer(number) => (*number).into(),
        Value::Number(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Table(members) => {
            let pairs = members.iter();
            let pairs = pairs.map(|member| (member.key.clone(), plain(&member.node)));
            serde_json::Value::Object(pairs.collect())
        }
        Value::Null => serde_json::Value::Null,
        Value::Other(what) => panic!("{what}"),
    }
}

fn why(text: &str) -> (usize, &'static str) {
    let Broken { at, why } = read(text).unwrap_err();
    (at, why)
}

#[test]
fn field_r1_what_fastjson_takes_is_taken() {
    let text = "/** who */ [ , {a: 1, 'b': 'x\\'y', \"c\": 2L,, \"d-e\": 1.5E+2F, // why\n} {f: undefined}, ]";
    let tree = json!([{"a": 1, "b": "x'y", "c": 2, "d-e": 150.0}, {"f": null}]);
    assert_eq!(plain(&read(text).unwrap()), tree);
    let text = r#"["\u4e2d\ud83d\ude00\x41\0\v", -0.5, 1., 18446744073709551616]"#;
    let tree = json!(["中😀A\0\u{b}", -0.5, 1.0, 2_f64.powi(64)]);
    assert_eq!(plain(&read(text).unwrap()), tree);
}

#[test]
fn every_node_stands_on_its_text() {
    let text = "[ {'käse' : 'ü', n: 10L} ]";
    let Value::List(items) = read(text).unwrap().value else {
        panic!("a list")
    };
    let Value::Table(members) = &items[0].value else {
        panic!("an object")
    };
    let spans = members.iter();
    let spans = spans.map(|one| [&one.key_span, &one.node.span].map(|span| text.get(span.clone())));
    let texts = [["käse", "'ü'"], ["n", "10L"]].map(|pair| pair.map(Some));
    assert_eq!(spans.collect::<Vec<_>>(), texts);
}

#[test]
fn what_is_broken_is_said_where_it_is() {
    for (empty, end) in [("", 0), (" \n", 2), ("// x", 4)] {
        assert_eq!(
            why(empty),
            (end, "the file is empty; write [] for no rules")
        );
    }
    assert_eq!(
        why("{\"a\":"),
        (5, "the text ends where a value is expected")
    );
    assert_eq!(why("[1 2]"), (3, "a comma or ] is expected"));
    assert_eq!(why("{\"a\": 1 \"b\": 2}"), (8, "a comma or } is expected"));
    assert_eq!(why("[{]"), (2, "the name of a field is expected"));
    assert_eq!(why("{a 1}").0, 3);
    assert_eq!(why("[] x"), (3, "the text goes on after its end"));
    assert_eq!(why("[/* x"), (1, "a comment has no end"));
    assert_eq!(why("['x"), (1, "a text has no closing quote"));
    assert_eq!(why("[\"\\q\"]"), (3, "no such escape in a text"));
    assert_eq!(why("[\"\\ud800\"]"), (3, "no character has this number"));
    assert_eq!(why("[NaN]").0, 1);
    let deep = "[".repeat(1 << 20);
    assert_eq!(why(&deep), (16, "nested deeper than 16 levels"));
}

#[test]
fn a_number_that_is_none_is_said_where_it_is() {
    for number in ["-", "1e", "1x", "1.2.3", "0x10", "1e5LL"] {
        assert_eq!(why(&format!("[{number}]")), (1, "no number is written so"));
    }
}

fn tree() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e9..1e9).prop_map(|number: f64| number.into()),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[a-zé\"\\\\]{1,6}", inner, 0..6)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_means_what_another_library_says(tree in tree(), pretty: bool) {
        let text = if pretty { format!("{tree:#}") } else { tree.to_string() };
        prop_assert_eq!(plain(&read(&text).unwrap()), tree);
    }

    #[test]
    fn no_text_is_read_past_its_end(text in "[\\[\\]{}:,'\"\\\\/*0-9a-zé.\n -]{0,40}") {
        if let Err(Broken { at, .. }) = read(&text) {
            prop_assert!(text.is_char_boundary(at));
        }
    }
}
