//! What a refusal says, for each kind of rule, in each mode, at each door; and that `explain` says the same.

#![cfg(test)]

use serde_json::{Value, json};
use tidegate_client::argument::{ArgumentKind, text_hash};
use tidegate_client::{Arg, Client, Permit, Refused, Transport};
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM, ONE_SEAT};
use tidegate_tests::until::{self, SOON};

/// A kind of rule, and what comes of calls at once.
#[derive(Debug)]
struct Case {
    name: &'static str,
    /// The table and what it says beside id, resource and mode.
    table: &'static str,
    says: &'static str,
    /// Whether calls stay in flight; else they end at once, as errors.
    stays: bool,
    /// Calls that pass first.
    passes: usize,
    kind: &'static str,
    reason: &'static str,
    /// Value and limit; `None` where the value is a time.
    figures: Option<[u32; 2]>,
}

const CASES: [Case; 8] = [
    Case {
        name: "qps",
        table: "flow",
        says: "count = 2\nwindow = \"60s\"",
        stays: false,
        passes: 2,
        kind: "flow",
        reason: "qps",
        figures: Some([2, 2]),
    },
    Case {
        name: "strict",
        table: "flow",
        says: "count = 2\nwindow = \"60s\"\nstrict = true",
        stays: false,
        passes: 2,
        kind: "flow",
        reason: "qps",
        figures: Some([2, 2]),
    },
    Case {
        name: "concurrency",
        table: "flow",
        says: "grade = \"concurrency\"\ncount = 3",
        stays: true,
        passes: 3,
        kind: "flow",
        reason: "concurrency",
        figures: Some([3, 3]),
    },
    Case {
        name: "pace",
        table: "flow",
        says: "count = 0.01\nbehavior = \"pace\"\nmax_queueing_time = \"1ms\"",
        stays: false,
        passes: 1,
        kind: "flow",
        reason: "queue",
        figures: None,
    },
    Case {
        name: "values",
        table: "param",
        says: "index = 0\ncount = 2\nwindow = \"60s\"",
        stays: false,
        passes: 2,
        kind: "param",
        reason: "qps",
        figures: Some([2, 2]),
    },
    Case {
        name: "values-at-once",
        table: "param",
        says: "index = 0\ngrade = \"concurrency\"\ncount = 1",
        stays: true,
        passes: 1,
        kind: "param",
        reason: "concurrency",
        figures: Some([1, 1]),
    },
    Case {
        name: "breaker",
        table: "degrade",
        says: "grade = \"error_count\"\nthreshold = 1\nmin_requests = 1\nrecovery_timeout = \"60s\"",
        stays: false,
        passes: 2,
        kind: "degrade",
        reason: "breaker_open",
        figures: Some([2, 1]),
    },
    Case {
        name: "origins",
        table: "authority",
        says: "strategy = \"deny\"\norigins = [\"batch\"]",
        stays: false,
        passes: 0,
        kind: "authority",
        reason: "origin",
        figures: Some([0, 0]),
    },
];

const MODES: [&str; 3] = ["enforce", "observe", "off"];

/// Calls where nothing is refused.
const FREE: usize = 5;

/// What every call brings: the second origin is on no list.
const ORIGIN: &str = "batch";
const USER: &str = "somebody";

fn rules() -> String {
    let one = |case: &Case, mode: &str| {
        let Case {
            name, table, says, ..
        } = case;
        format!(
            "[[{table}]]\nid = \"the {name} {mode}\"\nresource = \"{name}-{mode}\"\nmode = \"{mode}\"\n{says}\n"
        )
    };
    let all = CASES
        .iter()
        .flat_map(|case| MODES.map(|mode| one(case, mode)));
    all.collect()
}

/// What a refused caller is told.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    kind: String,
    reason: String,
    /// Id of the rule.
    rule: Option<String>,
    value: u32,
    limit: u32,
}

/// How calls come to the agent.
#[derive(Debug)]
enum Way {
    Client(Client),
    Http,
}

/// A call in flight.
#[derive(Debug)]
enum Held {
    Permit(Permit),
    Token(Value),
}

/// What came of a call.
#[derive(Debug)]
enum Answer {
    Admitted(Held),
    Refused(Told),
}

impl Way {
    fn enter(&self, agent: &Agent, resource: &str) -> Answer {
        match self {
            Self::Client(client) => {
                let args = [Arg::One(text_hash(ArgumentKind::Text, USER))];
                let resource = client.resource(resource).expect("it is a name");
                match resource.ask().origin(ORIGIN).args(&args).enter() {
                    Ok(permit) => Answer::Admitted(Held::Permit(permit)),
                    Err(refused) => Answer::Refused(Told::to_client(client, &refused)),
                }
            }
            Self::Http => {
                let asked = json!({ "resource": resource, "origin": ORIGIN, "args": [USER] });
                let answer = agent.ask_http("POST", "/v1/enter", &asked.to_string());
                let body: Value = serde_json::from_str(&answer.body).expect("it is JSON");
                match answer.status {
                    200 => Answer::Admitted(Held::Token(body["permit"].clone())),
                    429 | 503 => Answer::Refused(Told::over_http(&body)),
                    _ => panic!("{answer:?}"),
                }
            }
        }
    }
}

impl Told {
    fn to_client(client: &Client, refused: &Refused) -> Self {
        let id = refused.rule.and_then(|rule| client.rule_id(rule));
        Self {
            kind: refused.kind.name().to_owned(),
            reason: refused.reason.name().to_owned(),
            rule: id.as_deref().map(str::to_owned),
            value: refused.value,
            limit: refused.limit,
        }
    }

    fn over_http(body: &Value) -> Self {
        let text = |field: &str| body[field].as_str().map(str::to_owned);
        let number = |field: &str| {
            let number = body[field].as_u64().expect("a number");
            u32::try_from(number).expect("a small one")
        };
        Self {
            kind: text("kind").expect("a kind"),
            reason: text("reason").expect("a reason"),
            rule: text("rule"),
            value: number("value"),
            limit: number("limit"),
        }
    }
}

impl Held {
    fn fail(self, agent: &Agent) {
        match self {
            Self::Permit(permit) => permit.error(),
            Self::Token(permit) => {
                let ended = json!({ "permit": permit, "outcome": "error" });
                let answer = agent.ask_http("POST", "/v1/exit", &ended.to_string());
                assert_eq!(answer.status, 200, "{answer:?}");
            }
        }
    }
}

/// Calls until one is refused, or `FREE` more than pass; how many passed, and the refusal.
fn call(way: &Way, agent: &Agent, case: &Case, resource: &str) -> (usize, Option<Told>) {
    let mut held = Vec::new();
    for passed in 0..case.passes + FREE {
        match way.enter(agent, resource) {
            Answer::Admitted(permit) if case.stays => held.push(permit),
            Answer::Admitted(permit) => permit.fail(agent),
            Answer::Refused(told) => return (passed, Some(told)),
        }
    }
    (case.passes + FREE, None)
}

/// What `explain` says of the only rule of a resource: what it refused and would have, and the last figures.
fn explained(agent: &Agent, resource: &str) -> [Option<u64>; 4] {
    let told = agent.get(&format!("/v1/explain?resource={resource}"));
    let paths = [
        "refused_total",
        "observed_total",
        "last/value",
        "last/limit",
    ];
    paths.map(|path| {
        told.pointer(&format!("/rules/0/{path}"))
            .and_then(Value::as_u64)
    })
}

fn check(way: &Way, agent: &Agent) {
    for case in &CASES {
        let Case { name, .. } = case;
        let enforced = format!("{name}-enforce");
        let (passed, refusal) = call(way, agent, case, &enforced);
        assert_eq!(passed, case.passes, "{way:?}: {name}");
        let told = refusal.expect("it is refused");
        assert_eq!(
            (told.kind.as_str(), told.reason.as_str()),
            (case.kind, case.reason),
            "{way:?}: {name}"
        );
        let Told {
            rule, value, limit, ..
        } = told;
        assert_eq!(rule, Some(format!("the {name} enforce")), "{way:?}");
        match case.figures {
            Some(figures) => assert_eq!([value, limit], figures, "{way:?}: {name}"),
            // ms to wait, over the longest that is allowed.
            None => assert!(
                value > 1 && limit == 1,
                "{way:?}: {name}: {value} of {limit}"
            ),
        }
        let [refused, would, last_value, last_limit] = explained(agent, &enforced);
        assert_eq!((refused, would), (Some(1), Some(0)), "{way:?}: {name}");
        let last = (last_value, last_limit);
        assert_eq!(
            last,
            (Some(value.into()), Some(limit.into())),
            "{way:?}: {name}"
        );
        for mode in ["observe", "off"] {
            let resource = format!("{name}-{mode}");
            let (passed, refusal) = call(way, agent, case, &resource);
            assert_eq!(
                (passed, refusal),
                (case.passes + FREE, None),
                "{way:?}: {name} {mode}"
            );
        }
        let [refused, would, ..] = explained(agent, &format!("{name}-observe"));
        assert_eq!(refused, Some(0), "{way:?}: {name}");
        assert!(would >= Some(1), "{way:?}: {name}: {would:?}");
    }
}

fn connect(agent: &Agent, door: Transport) -> Way {
    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let client = client.expect("the agent serves");
    assert_eq!(client.status().door, Some(door));
    Way::Client(client)
}

#[test]
fn a_service_on_the_pages_hears_which_rule_refused_what() {
    let agent = Agent::start(&rules(), CALM);
    check(&connect(&agent, Transport::Shm), &agent);
}

#[test]
fn a_service_at_the_socket_hears_which_rule_refused_what() {
    let agent = Agent::start(&rules(), &format!("{CALM}{ONE_SEAT}"));
    let _seated = Actor::start(&agent.runtime_dir());
    check(&connect(&agent, Transport::Socket), &agent);
}

#[test]
fn a_service_that_asks_over_http_hears_which_rule_refused_what() {
    let agent = Agent::start(&rules(), CALM);
    check(&Way::Http, &agent);
}

#[test]
fn a_rule_for_all_inbound_work_is_told_at_each_door() {
    let system =
        |mode| format!("[[system]]\nid = \"all of it\"\nmode = \"{mode}\"\nconcurrency = 2\n");
    let stays = Case {
        stays: true,
        passes: 3,
        ..CASES[0]
    };
    for door in [Some(Transport::Shm), Some(Transport::Socket), None] {
        let config = match door {
            Some(Transport::Socket) => format!("{CALM}{ONE_SEAT}"),
            _ => CALM.to_owned(),
        };
        let agent = Agent::start(&system("enforce"), &config);
        let _seated = (door == Some(Transport::Socket)).then(|| Actor::start(&agent.runtime_dir()));
        let way = door.map_or(Way::Http, |door| connect(&agent, door));
        let (passed, told) = call(&way, &agent, &stays, "any");
        let told = told.expect("it is refused");
        let expected = Told {
            kind: "system".to_owned(),
            reason: "concurrency".to_owned(),
            rule: Some("all of it".to_owned()),
            // So many and one more, as Sentinel has it.
            value: 3,
            limit: 2,
        };
        assert_eq!((passed, told), (3, expected), "{way:?}");
        agent.write_rules(&system("observe"));
        agent.reload();
        until::holds("the rule observes", SOON, || {
            call(&way, &agent, &stays, "any").1.is_none()
        });
    }
}
