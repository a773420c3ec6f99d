//! What a caller hears of a question that is wrong: the field, its value, what is allowed.

use serde_json::json;

use super::tests::{Answer, Door};
use crate::host::bounds::BODY_BYTES;

/// The text of an error with this status.
fn error(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.body);
    let body = answer.json();
    let text = body["error"].as_str().unwrap().to_owned();
    assert_eq!(body, json!({"error": text}));
    text
}

/// Bodies of `enter`, and how the message about them begins.
const BAD_BODIES: &[(&str, &str)] = &[
    (
        "",
        "the body is no JSON (EOF while parsing a value at line 1 column 0); allowed is a JSON object such as \
         {\"resource\":\"order-create\"}",
    ),
    (
        "7",
        "the body is no object (invalid type: integer `7`, expected an object at line 1 column 1); allowed is a \
         JSON object such as {\"resource\":\"order-create\"}",
    ),
    (
        "[]",
        "the body is no object (invalid type: sequence, expected an object",
    ),
    (
        "{}",
        "resource is missing; allowed is a text of 1 to 255 bytes without control characters, as in \
         {\"resource\":\"order-create\"}",
    ),
    (
        r#"{"resource":null}"#,
        "resource is missing; allowed is a text of 1 to 255 bytes",
    ),
    (
        r#"{"resource":"a"} x"#,
        "the body is no JSON (trailing characters at line 1 column 18)",
    ),
    (
        r#"{"resource":"a""#,
        "the body is no JSON (EOF while parsing an object at line 1 column 15)",
    ),
    (
        r#"{"resource":"a","colour":1}"#,
        "colour: no such field; allowed are resource, count, origin, context, args, class, direction, prioritized",
    ),
    (
        r#"{"ressource":"a"}"#,
        "ressource: no such field; did you mean `resource`?; allowed are resource, count,",
    ),
    (
        r#"{"resource":"a","resource":"b"}"#,
        "resource is given twice; give it once",
    ),
    (
        r#"{"resource":7}"#,
        "resource = 7; allowed is a text of 1 to 255 bytes without control characters",
    ),
    (
        r#"{"resource":"a","count":"1"}"#,
        "count = \"1\"; allowed is a whole number from 1 to 16777215",
    ),
    (
        r#"{"resource":"a","count":-1}"#,
        "count = -1; allowed is a whole number from 1 to 16777215",
    ),
    (
        r#"{"resource":"a","count":0}"#,
        "count = 0; allowed is a whole number from 1 to 16777215",
    ),
    (
        r#"{"resource":"a","count":16777216}"#,
        "count = 16777216; allowed is a whole number from 1 to 16777215",
    ),
    (
        r#"{"resource":""}"#,
        "resource = \"\" is empty; a name has 1 to 255 bytes",
    ),
    (
        r#"{"resource":"a\u0007"}"#,
        "resource = \"a\\u{7}\" holds a control character; a name is printable UTF-8 text",
    ),
    (
        r#"{"resource":"a","origin":""}"#,
        "origin = \"\" is empty; a name has 1 to 255 bytes",
    ),
    (
        r#"{"resource":"a","context":1}"#,
        "context = 1; allowed is a text of 1 to 255 bytes",
    ),
    (
        r#"{"resource":"a","class":"vip"}"#,
        "class = \"vip\"; allowed is one of critical, normal, sheddable, probe",
    ),
    (
        r#"{"resource":"a","direction":["in"]}"#,
        "direction = [\"in\"]; allowed is one of in, out",
    ),
    (
        r#"{"resource":"a","prioritized":"yes"}"#,
        "prioritized = \"yes\"; allowed is true or false",
    ),
    (
        r#"{"resource":"a","args":"x"}"#,
        "args = \"x\"; allowed is a list of at most 16 arguments",
    ),
    (
        r#"{"resource":"a","args":[{"id":1}]}"#,
        "args[0] = {\"id\":1}; allowed is a text, a number, true, false, null, or a list",
    ),
];

#[tokio::test]
async fn bad_input_names_the_field_the_value_and_what_is_allowed() {
    let door = Door::plain();
    for (body, begin) in BAD_BODIES {
        let text = error(&door.enter(body).await, 400);
        assert!(text.starts_with(begin), "{body}: {text}");
    }
    let long = format!(r#"{{"resource":"{}"}}"#, "x".repeat(256));
    assert_eq!(
        error(&door.enter(&long).await, 400),
        format!(
            "resource = \"{}…\" is longer than 255 bytes; a name has 1 to 255 bytes",
            "x".repeat(60)
        )
    );
}

#[tokio::test]
async fn exits_and_queries_are_checked_too() {
    let door = Door::plain();
    for (body, wrong) in [
        (
            r#"{"outcome":"ok"}"#,
            "permit is missing; allowed is the 32 hexadecimal digits that /v1/enter gave, as in \
             {\"permit\":\"...\",\"outcome\":\"ok\"}",
        ),
        (
            r#"{"permit":"+0000000000000000000000000000000","outcome":"ok"}"#,
            "permit = \"+0000000000000000000000000000000\"; allowed is the 32 hexadecimal digits that \
             /v1/enter gave",
        ),
        (
            r#"{"permit":"00000000000000000000000000000000"}"#,
            "outcome is missing; allowed is one of ok, error, ignore, as in \
             {\"permit\":\"...\",\"outcome\":\"ok\"}",
        ),
        (
            r#"{"permit":"00000000000000000000000000000000","outcome":"fine"}"#,
            "outcome = \"fine\"; allowed is one of ok, error, ignore",
        ),
    ] {
        let answer = door.ask("POST", "/v1/exit", body).await;
        assert_eq!(error(&answer, 400), wrong);
    }
    let not_utf8 = "the query is not UTF-8; allowed are names in UTF-8, their bytes as %XX";
    let missing = "resource is missing; allowed is a text of 1 to 255 bytes without control characters, as in \
                   ?resource=order-create";
    for (path, wrong) in [
        ("/v1/admit?resource=%ff", not_utf8),
        ("/v1/explain?resource=a%ed%a0%80", not_utf8),
        ("/v1/admit", missing),
        ("/v1/explain?", missing),
        (
            "/v1/admit?resource=a&count=x",
            "count = \"x\"; allowed is a whole number from 1 to 16777215",
        ),
        (
            "/v1/admit?resource=a&prioritized=1",
            "prioritized = \"1\"; allowed is true or false",
        ),
        (
            "/v1/admit?resource=a&resource=b",
            "resource is given twice; give it once",
        ),
        (
            "/v1/admit?resource=a&args=1",
            "args: no such field; allowed are resource, count, origin, context, class, direction, prioritized",
        ),
        (
            "/v1/explain?name=a",
            "name: no such field; allowed are resource, tenant",
        ),
    ] {
        assert_eq!(error(&door.get(path).await, 400), wrong, "{path}");
    }
}

#[tokio::test]
async fn other_paths_methods_and_sizes_are_refused() {
    let door = Door::plain();
    assert_eq!(
        error(&door.get("/v2").await, 404),
        "there is no /v2; allowed are POST /v1/enter, POST /v1/exit, GET /v1/admit, GET /v1/status, \
         GET /v1/scopes, GET /v1/resources, GET /v1/explain, GET /v1/rules, GET /v1/events, GET /metrics, \
         GET /healthz, GET /readyz"
    );
    let answer = door.get("/v1/enter").await;
    assert_eq!(
        error(&answer, 405),
        "/v1/enter does not take GET; allowed is POST"
    );
    assert!(answer.head.contains("allow: post"), "{}", answer.head);
    let answer = door.enter(&" ".repeat(BODY_BYTES + 1)).await;
    assert_eq!(
        error(&answer, 413),
        "the body is too long; allowed are 65536 bytes"
    );
}
