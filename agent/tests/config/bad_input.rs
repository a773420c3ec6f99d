//! Every bad input of configuration and rules has the message that `bad/faults.golden` shows.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tidegate_agent::config::Config;
use tidegate_agent::rule::{QuirksOption, RuleSet};
use tidegate_agent::rule_source::check::{CheckReport, check};
use tidegate_agent::rule_source::form;
use tidegate_agent::schema::fault::Fault;
use tidegate_agent::schema::source::{SIZE_MAX, Source};

fn bad() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/bad")
}

/// The files of a directory of cases, under their bare names.
fn cases(directory: &str) -> Vec<Source> {
    let entries = std::fs::read_dir(bad().join(directory)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let source = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap();
        Source::new(name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(source).collect()
}

fn report(faults: Vec<Fault>, warnings: Vec<Fault>) -> CheckReport {
    CheckReport {
        ok: faults.is_empty(),
        faults,
        warnings,
    }
}

fn config_report(source: &Source) -> CheckReport {
    match Config::parse(source) {
        Ok(loaded) => report(Vec::new(), loaded.warnings),
        Err(faults) => report(faults, Vec::new()),
    }
}

fn rules_report(source: &Source) -> CheckReport {
    let read = form::read(Path::new(&**source.name()), source);
    let mut found = report(read.faults, read.warnings);
    match RuleSet::build(read.rules, QuirksOption::None) {
        Ok(set) => found.warnings.extend(set.warnings().iter().cloned()),
        Err(faults) => found.faults.extend(faults),
    }
    found.ok = found.faults.is_empty();
    found
}

#[test]
fn every_fault_has_its_place_and_its_message() {
    let mut text = String::new();
    for source in cases("config") {
        writeln!(text, "== {}\n{}", source.name(), config_report(&source)).unwrap();
    }
    for source in cases("rules") {
        writeln!(text, "== {}\n{}", source.name(), rules_report(&source)).unwrap();
    }
    crate::golden::compare(&bad().join("faults.golden"), &text);
}

#[test]
fn field_o11_slips_of_a_first_file_are_told_with_what_to_write() {
    let told: String = ["slips", "twice"]
        .map(|case| {
            let path = bad().join(format!("config/{case}.toml"));
            config_report(&Source::new(case, std::fs::read_to_string(path).unwrap())).to_string()
        })
        .concat();
    for part in [
        "cpu.enter = 85; allowed: a number from 0 to 1; a share of 1: write 0.85\n",
        "cpu.leave = \"75%\"; allowed: a number from 0 to 1; a share of 1: write 0.75\n",
        "\"32MiB\"; allowed: a whole number from 1 to 65536; write the number alone, without quotes and unit: 32\n",
        "uid = \"web\"; allowed: a whole number from 0 to 4294967294; write a number, without quotes\n",
        "unknown option \"flow\" here; rules go into a file of their own in the rules directory (rules.dir)",
        "twice:4:1: enter stands twice, first in line 2 (not valid TOML)\n",
        "[cpu] stands twice, first in line 1 (not valid TOML)\n",
    ] {
        assert!(told.contains(part), "{part:?} is missing in\n{told}");
    }
}

#[test]
fn no_case_is_taken_in_silence() {
    let silent = |report: &CheckReport| report.faults.is_empty() && report.warnings.is_empty();
    for source in cases("config") {
        assert!(!silent(&config_report(&source)), "{}", source.name());
    }
    for source in cases("rules") {
        assert!(!silent(&rules_report(&source)), "{}", source.name());
    }
}

#[test]
fn what_sentinel_cannot_pace_is_a_fault_with_its_quirks_alone() {
    let text = "[[flow]]\nresource = \"a\"\nbehavior = \"pace\"\ncount = 0.4\n";
    let built = |quirks| RuleSet::build(crate::given::rules("a.toml", text), quirks);
    assert_eq!(built(QuirksOption::None).unwrap().rules().len(), 1);
    let faults = built(QuirksOption::Sentinel189).unwrap_err();
    assert_eq!(
        faults.iter().map(Fault::to_string).collect::<Vec<_>>(),
        ["a.toml:4:9: flow[0].count = 0.4; allowed: 0, or at least 0.5 with these quirks"]
    );
}

#[test]
fn a_pattern_that_backtracking_engines_choke_on_takes_no_time() {
    let text = "[[flow]]\nresource = '(a+)+(a|aa)*b'\nregex = true\ncount = 1\n";
    let [body] = &crate::given::bodies("a.toml", text)[..] else {
        panic!("one rule");
    };
    // Such an engine would try 2^250 ways to read it.
    let name = "a".repeat(255);
    assert!(!body.flow().unwrap().resource.matches(&name));
    assert!(body.flow().unwrap().resource.matches("aab"));
}

/// The only line of a check of this path, without the directory.
fn file_fault(path: &Path) -> String {
    let report = check(Some(path));
    assert_eq!(report.exit_code(), 2);
    let directory = format!("{}/", path.parent().unwrap().display());
    report.to_string().trim_end().replace(&directory, "")
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let expected = "; allowed: a UTF-8 text file of at most 1 MiB; ";

    let missing = file_fault(&path("missing.toml"));
    let hint = "create the file or give another path";
    assert_eq!(
        missing,
        format!("error: missing.toml: no such file; {hint}")
    );

    std::fs::create_dir(path("directory.toml")).unwrap();
    let hint = "name a file in it";
    assert_eq!(
        file_fault(&path("directory.toml")),
        format!("error: directory.toml: is a directory{expected}{hint}")
    );

    std::fs::write(path("bytes.toml"), b"# caf\xc3\xa9\ntick = \"\xff\"").unwrap();
    let hint = "save the file as UTF-8";
    assert_eq!(
        file_fault(&path("bytes.toml")),
        format!("error: bytes.toml:2:9: file = not UTF-8{expected}{hint}")
    );

    let large = "#".repeat(usize::try_from(SIZE_MAX).unwrap() + 1);
    std::fs::write(path("large.toml"), large).unwrap();
    let hint = "split the file";
    assert_eq!(
        file_fault(&path("large.toml")),
        format!("error: large.toml: larger than 1 MiB{expected}{hint}")
    );

    let rules = path("rules.d");
    std::fs::write(&rules, "").unwrap();
    std::fs::write(path("tidegate.toml"), "[rules]\ndir = \"rules.d\"\n").unwrap();
    let hint = "let the agent's user read and enter it";
    assert_eq!(
        file_fault(&path("tidegate.toml")),
        format!(
            "error: rules.d: Not a directory (os error 20); allowed: a readable directory; {hint}"
        )
    );

    let socket = std::os::unix::net::UnixListener::bind(path("socket.toml")).unwrap();
    let hint = "give another path";
    assert_eq!(
        file_fault(&path("socket.toml")),
        format!("error: socket.toml: not a regular file{expected}{hint}")
    );
    drop(socket);
}

#[test]
fn the_faults_of_the_rules_are_in_the_check_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tidegate.toml");
    std::fs::write(&config, "[rules]\ndir = \"rules\"\n").unwrap();
    let rules = directory.path().join("rules");
    std::fs::create_dir(&rules).unwrap();
    std::fs::write(
        rules.join("a.toml"),
        "[[flow]]\nresource = \"a\"\ncount = -1\n",
    )
    .unwrap();
    std::fs::write(
        rules.join("b.json"),
        "[{\"resource\": \"b\", \"count\": -1}]",
    )
    .unwrap();
    std::fs::write(rules.join(".b.toml"), "not for us").unwrap();
    std::fs::create_dir(rules.join("c.toml")).unwrap();
    let report = check(Some(&config));
    let places: Vec<String> = report
        .faults
        .iter()
        .map(|fault| {
            let place = fault.place.to_string();
            format!("{} {}", place.rsplit('/').next().unwrap(), fault.option)
        })
        .collect();
    assert_eq!(
        places,
        [
            "a.toml:3:9 flow[0].count",
            "b.json:1:29 [0].count",
            "c.toml file"
        ]
    );
    assert!(
        report.faults[2]
            .hint
            .contains("take it out of the directory")
    );
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["faults"][0]["line"], 3);
    assert_eq!(json["faults"][0]["column"], 9);
    assert_eq!(json["faults"][0]["value"], "-1");
    assert_eq!(json["faults"][0]["option"], "flow[0].count");
}
