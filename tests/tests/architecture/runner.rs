//! The tests that the runner knows: who names a test as a guard names one that is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tidegate_tests::skip::skip;

use crate::source::root;

/// File with the answer of `cargo nextest list`; `tests/run` makes it.
const LIST: &str = "TIDEGATE_TEST_LIST";

/// A program of tests.
#[derive(Debug)]
struct Suite {
    /// Folder of its sources.
    sources: PathBuf,
    /// Paths of its tests, such as `flow::a_limit_holds`.
    tests: Vec<String>,
}

/// All tests that are run.
#[derive(Debug)]
pub(crate) struct Runner {
    suites: Vec<Suite>,
}

/// The runner's list; `None`, after saying so, where nobody has made it: that builds every test of the workspace.
pub(crate) fn runner() -> Option<&'static Runner> {
    static RUNNER: OnceLock<Option<Runner>> = OnceLock::new();
    let runner = RUNNER.get_or_init(|| {
        let file = std::env::var_os(LIST)?;
        let list = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        Some(Runner::of(&list))
    });
    if runner.is_none() {
        skip(&format!(
            "{LIST} names no list of tests; tests/run makes it, by `cargo nextest list --workspace --message-format json`"
        ));
    }
    runner.as_ref()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    let found = value.get(key).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("the runner's list has no {key}"))
}

impl Runner {
    fn of(list: &str) -> Self {
        let list: BTreeMap<String, Value> = serde_json::from_str(list).expect("it is JSON");
        let suites = list.get("rust-suites").and_then(Value::as_object);
        let suites = suites.expect("the list has suites").values();
        let suites: Vec<Suite> = suites.map(Suite::of).collect();
        let tests: usize = suites.iter().map(|suite| suite.tests.len()).sum();
        assert!(tests > 500, "the runner lists {tests} tests");
        Self { suites }
    }

    /// Whether `path/file.rs::test_name` is run, or for `path/file.rs` any test of that file.
    pub(crate) fn runs(&self, guard: &str) -> bool {
        let (path, test) = guard.split_once("::").unwrap_or((guard, ""));
        let path = fs::canonicalize(root().join(path));
        let Ok(path) = path else {
            return false;
        };
        let suites = self.suites.iter();
        suites
            .filter_map(|suite| Some((suite, suite.module(&path)?)))
            .any(|(suite, module)| {
                suite.tests.iter().any(|name| {
                    let below = match module.as_str() {
                        "" => Some(name.as_str()),
                        module => name
                            .strip_prefix(module)
                            .and_then(|rest| rest.strip_prefix("::")),
                    };
                    below.is_some_and(|below| {
                        test.is_empty() || below.rsplit("::").next() == Some(test)
                    })
                })
            })
    }
}

impl Suite {
    fn of(suite: &Value) -> Self {
        let package = Path::new(text(suite, "cwd"));
        let sources = match text(suite, "kind") {
            "test" => package.join("tests").join(text(suite, "binary-name")),
            "example" => package.join("examples"),
            _ => package.join("src"),
        };
        let cases = suite.get("testcases").and_then(Value::as_object);
        let is_run = |case: &Value| case.get("ignored") == Some(&Value::Bool(false));
        let cases = cases.into_iter().flatten();
        let tests = cases.filter(|(_, case)| is_run(case));
        Self {
            sources,
            tests: tests.map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Module of a file; `None` where the file is not of this program.
    fn module(&self, file: &Path) -> Option<String> {
        let file = file.with_extension("");
        let below = file.strip_prefix(&self.sources).ok()?;
        let parts = below.iter().map(|part| part.to_string_lossy());
        let mut parts: Vec<_> = parts.collect();
        if let [.., last] = parts.as_slice()
            && ["mod", "main", "lib"].contains(&&**last)
        {
            parts.pop();
        }
        Some(parts.join("::"))
    }
}

#[test]
fn a_guard_is_a_test_that_the_runner_runs() {
    let list = r#"{"rust-suites":{
        "a":{"kind":"lib","cwd":"ROOT/agent","binary-name":"tidegate_agent","testcases":{
            "places::tests::one":{"ignored":false},"places::tests::other":{"ignored":true}}},
        "t":{"kind":"test","cwd":"ROOT/tests","binary-name":"exactness","testcases":{
            "flow::exact":{"ignored":false}}},
        "u":{"kind":"test","cwd":"ROOT/tests","binary-name":"unit","testcases":{"starts":{"ignored":false}}}}}"#;
    let root = fs::canonicalize(root()).expect("it is there");
    let list: BTreeMap<String, Value> =
        serde_json::from_str(&list.replace("ROOT", &root.to_string_lossy())).expect("it is JSON");
    let suites = list.get("rust-suites").and_then(Value::as_object);
    let suites = suites.expect("it has suites").values();
    let runner = Runner {
        suites: suites.map(Suite::of).collect(),
    };
    for guard in [
        "agent/src/places.rs::one",
        "agent/src/places.rs",
        "tests/tests/exactness/flow.rs::exact",
        "tests/tests/exactness/main.rs",
        "tests/tests/unit.rs::starts",
    ] {
        assert!(runner.runs(guard), "{guard}");
    }
    for guard in [
        "agent/src/places.rs::other",
        "agent/src/places.rs::tests",
        "agent/src/plain.rs",
        "tests/tests/exactness/flow.rs::starts",
        "tests/tests/unit.rs::exact",
        "agent/src/nowhere.rs::one",
    ] {
        assert!(!runner.runs(guard), "{guard}");
    }
}
