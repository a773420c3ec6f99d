use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_segment::clock::monotonic_ns;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::*;
use crate::door::kind::Door as _;
use crate::door::tests::settings;
use crate::host::tests::agent;
use crate::tenant::rule_index::tests::rule_index;

/// The HTTP door in a directory of its own.
pub(super) struct Door {
    _directory: tempfile::TempDir,
    path: PathBuf,
    metrics: Option<SocketAddr>,
    pub(super) context: Arc<AgentState>,
}

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Door {
    /// A connection of its own.
    pub(super) async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).await.unwrap()
    }

    fn open(change: impl FnOnce(&mut DoorSettings)) -> Self {
        Self::of(agent(), change)
    }

    /// A door to this agent.
    pub(super) fn of(context: Arc<AgentState>, change: impl FnOnce(&mut DoorSettings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        change(&mut settings);
        let door = Listeners::open(&settings).unwrap();
        let metrics = door.metrics_address();
        tokio::spawn(Box::new(door).serve(Arc::clone(&context)));
        Self {
            path: directory.path().join(FILE_NAME),
            _directory: directory,
            metrics,
            context,
        }
    }

    pub(super) fn plain() -> Self {
        Self::open(|_settings| {})
    }

    fn with_rules(toml: &str) -> Self {
        let door = Self::plain();
        door.rules(toml);
        door
    }

    pub(super) fn rules(&self, toml: &str) {
        let directory = self.context.default_tenant().directory();
        directory.publish(rule_index(toml), monotonic_ns()).unwrap();
    }

    pub(super) async fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        ask(&self.path, method, path, body).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "").await
    }

    pub(super) async fn enter(&self, body: &str) -> Answer {
        self.ask("POST", "/v1/enter", body).await
    }
}

impl Answer {
    pub(super) fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            status,
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn ask(socket: &Path, method: &str, path: &str, body: &str) -> Answer {
    let stream = UnixStream::connect(socket).await.unwrap();
    exchange(stream, method, path, body).await
}

pub(super) async fn exchange<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    mut stream: S,
    method: &str,
    path: &str,
    body: &str,
) -> Answer {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    tokio::time::timeout(Duration::from_secs(5), read)
        .await
        .unwrap()
        .unwrap();
    Answer::of(&text)
}

#[tokio::test]
async fn a_permit_is_given_and_taken_back() {
    let door = Door::plain();
    let entered = door
        .enter(r#"{"resource":"a","count":2,"origin":"web","args":["x",1],"class":"critical"}"#)
        .await;
    assert_eq!(entered.status, 200);
    let permit = entered.json()["permit"].as_str().unwrap().to_owned();
    assert_eq!(
        entered.body.trim_end(),
        format!(r#"{{"admitted":true,"permit":"{permit}","wait_ms":0}}"#)
    );
    assert_eq!(permit.len(), 32);
    let exit = json!({"permit": permit, "outcome": "ok"}).to_string();
    let ended = door.ask("POST", "/v1/exit", &exit).await;
    assert_eq!((ended.status, ended.body.trim_end()), (200, "{}"));
    let again = door.ask("POST", "/v1/exit", &exit).await;
    assert_eq!(
        (again.status, again.body.trim_end()),
        (
            404,
            r#"{"error":"permit: none of this user is held under it; it was given back already, has ended by the clock (http.permit_time_to_live), or is another user's: nothing is left to give back"}"#
        )
    );
}

#[tokio::test]
async fn a_refusal_says_who_why_and_when() {
    let rules = "[[flow]]\nid = \"few\"\nresource = \"a\"\ngrade = \"concurrency\"\ncount = 0";
    let door = Door::with_rules(rules);
    for answer in [
        door.enter(r#"{"resource":"a"}"#).await,
        door.get("/v1/admit?resource=a").await,
    ] {
        assert_eq!(answer.status, 429);
        let mut body = answer.json();
        let after_ms = body["retry_after_ms"].take().as_u64().unwrap();
        assert!((100..=125).contains(&after_ms), "{after_ms}");
        let rest = json!({"admitted": false, "kind": "flow", "rule": "few",
            "reason": "concurrency", "value": 0, "limit": 0, "retry": true, "retry_after_ms": null});
        assert_eq!(body, rest);
        assert!(
            answer.head.contains("retry-after: 1\r\n"),
            "{}",
            answer.head
        );
    }
    let once = door.get("/v1/admit?resource=b").await;
    assert_eq!(
        (once.status, once.body.trim_end()),
        (200, r#"{"admitted":true}"#)
    );
}

#[tokio::test]
async fn a_paced_answer_is_held_until_its_turn() {
    let rules =
        "[[flow]]\nresource = \"a\"\ncount = 20\nbehavior = \"pace\"\nmax_queueing_time = \"2s\"";
    let door = Door::with_rules(rules);
    let begin = std::time::Instant::now();
    let mut waits = Vec::new();
    for _turn in 0..4 {
        let answer = door.enter(r#"{"resource":"a"}"#).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        waits.push(answer.json()["wait_ms"].as_u64().unwrap());
    }
    // One each 50 ms: the last of four cannot be let in before 150 ms.
    assert!(begin.elapsed().as_millis() >= 150, "{waits:?}");
    assert_eq!(waits.first(), Some(&0));
    assert!(waits.iter().skip(1).all(|ms| *ms <= 50), "{waits:?}");
}

#[tokio::test]
async fn each_value_of_an_argument_has_its_own_limit_and_the_type_counts() {
    let rules = r#"
        [[param]]
        resource = "a"
        index = 0
        count = 1
        window = "1h"
        items = [{ value = "vip", count = 2 }, { value = "9", type = "long", count = 0 }]
    "#;
    let door = Door::with_rules(rules);
    let cases = [
        ("[7]", 200),
        ("[7]", 429),
        ("[\"7\"]", 200),
        ("[[8, 7]]", 429),
        ("[8]", 429),
        ("[\"vip\"]", 200),
        ("[\"vip\"]", 200),
        ("[\"vip\"]", 429),
        ("[9]", 429),
        ("[\"9\"]", 200),
        ("[null, 7]", 200),
        ("[]", 200),
    ];
    for (args, status) in cases {
        let body = format!(r#"{{"resource":"a","args":{args}}}"#);
        let answer = door.enter(&body).await;
        assert_eq!(answer.status, status, "{args}: {}", answer.body);
    }
}

#[tokio::test]
async fn outbound_work_is_not_held_against_the_system_rules() {
    let door = Door::with_rules("[[system]]\nid = \"none\"\nqps = 0");
    let answer = door.enter(r#"{"resource":"a"}"#).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    let body = answer.json();
    assert_eq!((&body["rule"], &body["limit"]), (&json!("none"), &json!(0)));
    let answer = door.enter(r#"{"resource":"a","direction":"out"}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test]
async fn permits_end_by_the_clock() {
    let door = Door::plain();
    assert_eq!(door.enter(r#"{"resource":"a"}"#).await.status, 200);
    let tenant = door.context.default_tenant();
    let slot = tenant.directory().resolve("a").slot;
    assert_eq!(tenant.seats().node_counts(slot).inflight, 1);
    let ended = tenant.timed_permits().lock().take_ended(monotonic_ns());
    assert!(ended.is_empty(), "{ended:?}");
    let later = monotonic_ns() + 61_000_000_000;
    let ended = tenant.timed_permits().lock().take_ended(later);
    assert_eq!(ended.len(), 1);
}

#[tokio::test]
async fn the_status_has_its_shape() {
    let door = Door::with_rules("[[flow]]\nid = \"few\"\nresource = \"a\"\ncount = 5");
    assert_eq!(door.enter(r#"{"resource":"a"}"#).await.status, 200);
    let status = door.get("/v1/status").await.json();
    let keys = |value: &Value| {
        let object = value.as_object().unwrap();
        object.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&status),
        [
            "agent",
            "clients",
            "resources",
            "scopes",
            "scopes_without_group",
            "verdict",
            "warnings"
        ]
    );
    assert_eq!(
        keys(&status["agent"]),
        [
            "clock",
            "config",
            "directory",
            "ebpf",
            "http_permits",
            "metrics_listen",
            "missing_socket",
            "pages",
            "pid",
            "psi_triggers",
            "reload_refused",
            "rules",
            "rules_generation",
            "scheduling",
            "tick_late_p99_ms",
            "tick_ms",
            "ticks",
            "turned_away",
            "uptime_s",
            "version"
        ]
    );
    assert_eq!(
        status["resources"][1],
        json!({"tenant": "default", "name": "a", "passed_total": 1, "inflight": 1, "bulkhead": null, "rt_ms": null, "breakers": [],
            "rules": ["flow few"], "refused_total": {"authority": 0, "degrade": 0, "flow": 0, "param": 0, "system": 0}})
    );
    let resources = door.get("/v1/resources").await.json();
    assert_eq!(resources["resources"], status["resources"]);
    assert_eq!(
        door.get("/v1/scopes").await.json()["scopes"],
        status["scopes"]
    );
    assert_eq!(
        door.get("/v1/rules").await.json(),
        json!({"generation": 1, "rules": [{"tenant": "default", "kind": "flow", "id": "few", "mode": "enforce",
            "resource": "a", "place": "rules.toml:1:1", "in_force": true, "not_in_force": null, "strained": false, "ends_in_s": null, "warnings": []}]})
    );
}

#[tokio::test]
async fn field_o4_permits_that_nobody_gives_back_are_told_everywhere() {
    let door = Door::with_rules(
        "[[flow]]\nresource = \"a\"\ngrade = \"concurrency\"\ncount = 2\n\
         [[authority]]\nresource = \"b\"\nstrategy = \"deny\"\norigins = [\"x\"]",
    );
    for _forgotten in 0..2 {
        assert_eq!(door.enter(r#"{"resource":"a"}"#).await.status, 200);
    }
    // They count as forgotten after a second.
    let refused = async {
        loop {
            let refused = door.enter(r#"{"resource":"a"}"#).await;
            assert_eq!(refused.status, 429, "{}", refused.body);
            if refused.json()["note"].is_string() {
                return refused;
            }
            tokio::task::yield_now().await;
        }
    };
    let deadline = Duration::from_secs(20);
    let refused = tokio::time::timeout(deadline, refused).await.unwrap();
    let note = refused.json()["note"].as_str().unwrap().to_owned();
    assert!(
        note.starts_with("2 permits by HTTP not given back, the oldest for "),
        "{note}"
    );
    assert!(refused.body.ends_with("}\n"), "the line ends");
    let explained = door.get("/v1/explain?resource=a").await.json();
    let permits = &explained["http_permits"];
    assert_eq!(permits["held"], 2);
    assert!(permits["oldest_s"].as_f64() >= Some(1.0), "{permits}");
    assert_eq!(
        door.get("/v1/status").await.json()["agent"]["http_permits"]["held"],
        2
    );

    let later = monotonic_ns() + 61_000_000_000;
    let tenant = door.context.default_tenant();
    assert_eq!(tenant.timed_permits().lock().take_ended(later).len(), 2);
    let metrics = door.get("/metrics").await.body;
    assert!(
        metrics.contains("tidegate_permits_expired_total 2\n"),
        "{metrics}"
    );

    // Where trying again never helps, nothing invites to it.
    let never = door.enter(r#"{"resource":"b","origin":"x"}"#).await;
    assert_eq!(
        (
            never.json()["retry"].clone(),
            never.json()["retry_after_ms"].clone()
        ),
        (json!(false), json!(0))
    );
    assert!(!never.head.contains("retry-after"), "{}", never.head);
}

#[tokio::test]
async fn metrics_are_told_on_tcp_and_nothing_else_is() {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let door = Door::open(|settings| settings.metrics_listen = Some(any_port));
    assert_eq!(door.enter(r#"{"resource":"a"}"#).await.status, 200);
    let on_unix = door.get("/metrics").await;
    let over_tcp = async |method: &str, path: &str| {
        let stream = tokio::net::TcpStream::connect(door.metrics.unwrap()).await;
        exchange(stream.unwrap(), method, path, "").await
    };
    let on_tcp = over_tcp("GET", "/metrics").await;
    for answer in [&on_unix, &on_tcp] {
        assert_eq!(answer.status, 200);
        let passed = "tidegate_resource_passed_total{resource=\"a\"} 1\n";
        assert!(answer.body.contains(passed), "{}", answer.body);
    }
    assert_eq!(over_tcp("GET", "/healthz").await.body, "ok\n");
    assert_eq!(over_tcp("GET", "/readyz").await.status, 503);
    assert_eq!(over_tcp("POST", "/v1/enter").await.status, 404);
    assert_eq!(over_tcp("GET", "/v1/status").await.status, 404);
}

#[tokio::test]
async fn metrics_are_not_told_to_other_machines() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path());
    settings.metrics_listen = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
    assert_eq!(
        Listeners::open(&settings).unwrap_err().to_string(),
        "http.metrics_listen = \"0.0.0.0:0\": is not a loopback address; other machines would read \
         the metrics: let a proxy that knows who asks serve them, or set http.metrics_enabled = false"
    );
}

#[tokio::test]
async fn field_r5_a_text_of_one_character_meets_the_value_of_type_char() {
    let rules = "[[param]]\nresource = \"a\"\nindex = 0\nwindow = \"1h\"\ncount = 100\n\
                 items = [{ value = \"x\", type = \"char\", count = 5 }]";
    let door = Door::with_rules(rules);
    let mut admitted = 0;
    for _call in 0..12 {
        let answer = door.enter(r#"{"resource":"a","args":["x"]}"#).await;
        admitted += u32::from(answer.status == 200);
    }
    assert_eq!(admitted, 5);
}

#[tokio::test]
async fn field_r5_a_number_without_a_type_meets_the_value_of_any_type() {
    for item in [
        "value = 1001",
        "value = \"1001\", type = \"long\"",
        "value = \"1001\", type = \"short\"",
    ] {
        let rules = format!(
            "[[param]]\nresource = \"a\"\nindex = 0\nwindow = \"1h\"\ncount = 100\nitems = [{{ {item}, count = 5 }}]"
        );
        let door = Door::with_rules(&rules);
        let mut admitted = 0;
        for _call in 0..12 {
            let answer = door.enter(r#"{"resource":"a","args":[1001]}"#).await;
            admitted += u32::from(answer.status == 200);
        }
        assert_eq!(admitted, 5, "{item}");
    }
}
