//! What one caller over HTTP can take, and what it hears then.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::exchange::Served;
use super::tests::{Answer, Door};
use crate::host::bounds::{ANSWERS_BYTES, BODY_BYTES, HEAD_BYTES, PERMITS};
use crate::host::tests::agent_that_waits;
use crate::places::Holder;

const DEADLINE: Duration = Duration::from_secs(10);

/// Everything that comes until the agent ends the connection.
async fn rest(stream: &mut UnixStream) -> String {
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    let _bytes = tokio::time::timeout(DEADLINE, read).await.unwrap().unwrap();
    text
}

/// Sends a head, waits until the agent has had time to answer it, then sends a body of so many bytes.
async fn sent_in_two(door: &Door, head: &str, bytes: usize) -> Answer {
    let mut stream = door.connect().await;
    let head =
        format!("{head}host: tidegate\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // Others are served meanwhile: the agent has seen the head.
    for _turn in 0..20 {
        assert_eq!(door.get("/healthz").await.status, 200);
    }
    stream.write_all(&vec![b' '; bytes]).await.unwrap();
    Answer::of(&rest(&mut stream).await)
}

#[tokio::test]
async fn field_b10_an_early_answer_reaches_who_still_sends_its_body() {
    let door = Door::plain();
    for (head, bytes, status) in [
        ("POST /v1/enterr HTTP/1.1\r\n", 40, 404),
        ("POST /v1/enterr HTTP/1.1\r\n", BODY_BYTES, 404),
        ("POST /v1/enterr HTTP/1.1\r\n", 4 * BODY_BYTES, 413),
        ("POST /v1/enter HTTP/1.1\r\n", BODY_BYTES + 1, 413),
        ("POST /v1/status HTTP/1.1\r\n", 40, 405),
        ("PUT /v1/rules HTTP/1.1\r\n", 40, 405),
        ("GET /v1/status HTTP/1.1\r\n", 40, 200),
        ("POST /v1/exit HTTP/1.1\r\n", 40, 400),
    ] {
        let answer = sent_in_two(&door, head, bytes).await;
        assert_eq!(answer.status, status, "{head}{bytes}: {}", answer.body);
    }
}

#[tokio::test]
async fn field_b10_a_body_in_pieces_of_unknown_length_is_bounded_too() {
    let door = Door::plain();
    let mut stream = door.connect().await;
    let head = "POST /v1/enter HTTP/1.1\r\nhost: tidegate\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    for _piece in 0..=BODY_BYTES / 0x1000 {
        stream.write_all(piece.as_bytes()).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(Answer::of(&rest(&mut stream).await).status, 413);
}

#[tokio::test]
async fn who_asks_before_it_sends_a_body_that_is_too_long_sends_none() {
    let door = Door::plain();
    let mut stream = door.connect().await;
    let head = format!(
        "POST /v1/enter HTTP/1.1\r\nhost: tidegate\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        BODY_BYTES + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(Answer::of(&rest(&mut stream).await).status, 413);
}

#[tokio::test]
async fn field_b4_a_head_is_read_up_to_its_bound() {
    let door = Door::plain();
    let mut stream = door.connect().await;
    let line = format!("x-long: {}\r\n", "y".repeat(1000));
    let mut sent = b"GET /healthz HTTP/1.1\r\nhost: tidegate\r\n".to_vec();
    while sent.len() <= HEAD_BYTES {
        sent.extend_from_slice(line.as_bytes());
    }
    stream.write_all(&sent).await.unwrap();
    assert_eq!(Answer::of(&rest(&mut stream).await).status, 431);
}

#[tokio::test]
async fn field_b11_the_agent_is_ready_after_its_first_tick() {
    let door = Door::plain();
    let answer = door.get("/readyz").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(
        answer.body.contains("the first tick has not come yet"),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn field_b3_permits_over_one_connection_leave_some_to_other_users() {
    let door = Door::plain();
    let body = r#"{"resource":"a"}"#;
    let question = format!(
        "POST /v1/enter HTTP/1.1\r\nhost: tidegate\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let stream = door.connect().await;
    let (mut reads, mut writes) = stream.into_split();
    let asked = PERMITS / 2 + 1;
    let asking = tokio::spawn(async move {
        for _question in 0..asked {
            writes.write_all(question.as_bytes()).await.unwrap();
        }
        writes
    });
    let mut text = Vec::new();
    let is_full = |text: &[u8]| {
        let end = text.len().saturating_sub(4096);
        String::from_utf8_lossy(&text[end..]).contains("and has no more left")
    };
    while !is_full(&text) {
        let mut more = vec![0; 65_536];
        let bytes = tokio::time::timeout(DEADLINE, reads.read(&mut more)).await;
        let bytes = bytes.unwrap().unwrap();
        text.extend_from_slice(&more[..bytes]);
    }
    let given = String::from_utf8_lossy(&text)
        .matches("\"admitted\":true")
        .count();
    assert_eq!(given, PERMITS / 2, "a process has half");
    let permits = &door.context.bounds.permits;
    let counts: Vec<u64> = permits.turned_away().map(|(_full, count)| count).collect();
    assert_eq!(counts, [0, 0, 1]);
    let other = Holder { uid: 7, pid: 7 };
    permits.take(other).unwrap();
    let _writes = asking.await.unwrap();
}

#[tokio::test]
async fn field_b3_who_waits_for_reports_is_bounded_and_keeps_no_question_waiting() {
    let door = Door::plain();
    let own = Holder {
        uid: rustix::process::geteuid().as_raw(),
        pid: std::process::id(),
    };
    let reports = &door.context.bounds.reports;
    let waiting: Vec<_> = std::iter::from_fn(|| reports.take(own).ok()).collect();
    for path in [
        "/v1/status",
        "/v1/resources",
        "/v1/rules",
        "/v1/scopes",
        "/metrics",
    ] {
        let answer = door.get(path).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.body);
        let why = "reports that wait for their turn: process";
        assert!(answer.body.contains(why), "{}", answer.body);
    }
    assert_eq!(door.get("/v1/explain?resource=a").await.status, 503);
    assert_eq!(door.enter(r#"{"resource":"a"}"#).await.status, 200);
    drop(waiting);
    for path in ["/v1/explain?resource=a", "/v1/status", "/metrics"] {
        assert_eq!(door.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn field_b3_answers_that_nobody_reads_are_bounded() {
    let door = Door::plain();
    let served = Served {
        routes: axum::Router::new(),
        bounds: std::sync::Arc::clone(&door.context.bounds),
        holder: Holder { uid: 7, pid: 7 },
        caller: None,
    };
    let answer = |bytes: usize| served.counted(Response::new(Body::from(vec![b'x'; bytes])));
    let small = answer(4096).await;
    let long = answer(2 * ANSWERS_BYTES).await;
    assert_eq!(long.status(), 200, "one of any length is sent");
    let over = answer(5000).await;
    assert_eq!(over.status(), 503, "until it is read");
    drop(long);
    assert_eq!(answer(5000).await.status(), 200);
    drop(small);
}

#[tokio::test]
async fn nobody_waits_over_http_for_longer_than_max_wait() {
    let door = Door::of(agent_that_waits(Duration::from_secs(2)), |_settings| {});
    door.rules(
        "[[flow]]\nresource = \"a\"\ncount = 0.1\nbehavior = \"pace\"\nmax_queueing_time = \"1h\"",
    );
    assert_eq!(door.enter(r#"{"resource":"a"}"#).await.status, 200);
    // The next one's turn is 10 s away.
    for answer in [
        door.enter(r#"{"resource":"a"}"#).await,
        door.get("/v1/admit?resource=a").await,
    ] {
        assert_eq!(answer.status, 429, "{}", answer.body);
        assert_eq!(answer.json()["reason"], "queue", "{}", answer.body);
    }
}
