#![cfg(test)]

use crate::rule::Pattern;

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::of_java(pattern).unwrap().matches(name)
}

#[test]
fn field_r6_javas_classes_are_of_ascii() {
    assert!(matches(r"/v\d+/x", "/v1/x"));
    assert!(!matches(r"/v\d+/x", "/v١/x"));
    assert!(!matches(r"\w+", "é") && matches(r"[\w-]+", "a-b_1"));
    assert!(!matches(r"a\sb", "a\u{a0}b") && matches(r"a\sb", "a b"));
    assert!(!matches(r"\p{Alpha}+", "é") && matches(r"\p{L}+", "é"));
    assert!(matches(r"[^\d/]+", "١") && !matches(r"[\D]", "1"));
}

#[test]
fn field_r6_ordinary_repetitions_compile() {
    let pattern = r"/api/v\d+/users/\w{1,32}/orders";
    assert!(matches(pattern, "/api/v2/users/bob/orders"));
    assert!(!matches(pattern, "/api/v2/users//orders"));
    Pattern::new(r"/users/\w{1,64}").unwrap();
}

#[test]
fn field_r6_quoted_texts_are_texts() {
    assert!(matches(r"\Qa.b*(\E\d", "a.b*(1"));
    assert!(!matches(r"\Qa.b\E", "axb"));
    assert!(matches(r"a\Q.+", "a.+"));
    assert!(matches(r"[\Q^-]\E]+", "^]-"));
}

#[test]
fn field_r6_possessive_quantifiers_are_taken_where_they_mean_the_same() {
    assert!(matches(r"/v\d++/x", "/v12/x"));
    assert!(matches(r"/[^/]++/\w{1,3}+", "/ab/cd"));
    assert!(!matches(r"/[^/]*+/x", "//y"));
    // Java never matches this: nothing is left for the last character.
    for pattern in [
        r"\d++1",
        r"a?+a",
        r"(ab)++c",
        r"\w*+[a-z]",
        r"\d++/?1",
        r"(a++)b",
    ] {
        let why = Pattern::of_java(pattern).unwrap_err();
        assert!(
            why.starts_with("a possessive quantifier"),
            "{pattern}: {why}"
        );
    }
}

#[test]
fn field_r6_what_backtracks_is_refused_by_its_name() {
    let named = [
        (r"(a)\1", "a back reference"),
        (r"(?<x>a)\k<x>", "a back reference"),
        ("a(?=b)", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        ("(?>a)", "an atomic group"),
        (r"a\Z", "\\Z"),
        ("(?x)a", "the flag x"),
    ];
    for (pattern, name) in named {
        let why = Pattern::of_java(pattern).unwrap_err();
        assert!(
            why.starts_with(&format!("{name} of Java")),
            "{pattern}: {why}"
        );
    }
}

#[test]
fn what_our_engine_alone_takes_for_operators_is_plain() {
    assert!(matches("[a~~b]", "~") && matches("[+--]", "-") && matches("[a&b]", "&"));
    assert!(matches("[a-z&&[^bc]]", "a") && !matches("[a-z&&[^bc]]", "b"));
    assert!(matches("a#b", "a#b") && matches("(?i)AB", "ab"));
}
