//! The shipped files are what the code says.

use std::path::{Path, PathBuf};

use tidegate_agent::config::{Config, shipped};
use tidegate_agent::rule::file;
use tidegate_agent::rule_source::check::check;
use tidegate_agent::schema::source::Source;
use tidegate_limits::{bulkhead, law, threshold};

fn shipped_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config")
}

#[test]
fn the_shipped_file_is_the_defaults() {
    let path = shipped_directory().join("tidegate.toml");
    crate::golden::compare(&path, &shipped::text());
    let source = Source::new("tidegate.toml", shipped::text());
    let loaded = Config::parse(&source).expect("the shipped file has no fault");
    assert_eq!(*loaded.config, Config::default());
    assert_eq!(loaded.warnings, []);
}

/// The schemas as editors take them.
fn schemas() -> [(&'static str, String); 2] {
    [
        ("tidegate.schema.json", shipped::schema_text()),
        ("rules.schema.json", file::schema_text()),
    ]
}

#[test]
fn the_committed_schemas_are_those_of_the_tables() {
    let directory = shipped_directory().join("schema");
    for (name, text) in schemas() {
        crate::golden::compare(&directory.join(name), &text);
    }
}

/// Whether a TOML text passes a schema, by a validator that is not ours.
fn passes(schema: &str, text: &str) -> bool {
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let value: serde_json::Value = toml::from_str(text).unwrap();
    let mut compiler = boon::Compiler::new();
    let mut all = boon::Schemas::new();
    compiler.add_resource("tidegate.json", schema).unwrap();
    let index = compiler.compile("tidegate.json", &mut all).unwrap();
    all.validate(&value, index).is_ok()
}

#[test]
fn what_is_shipped_passes_the_schemas_and_a_slip_of_the_pen_does_not() {
    let [(_, configuration), (_, rules)] = schemas();
    let example = std::fs::read_to_string(shipped_directory().join("rules.d/example.toml"));
    assert!(passes(&configuration, &shipped::text()));
    assert!(passes(&rules, &example.expect("the example is there")));
    for wrong in ["tick = 100", "[cpu]\nentr = 0.5", "[law]\nmode = \"of\""] {
        assert!(!passes(&configuration, wrong), "{wrong}");
    }
    for wrong in [
        "[[flow]]\nresource = \"a\"\ncount = \"5\"",
        "[[flow]]\ncuont = 5",
    ] {
        assert!(!passes(&rules, wrong), "{wrong}");
    }
}

#[test]
fn the_shipped_file_with_every_example_switched_on_is_valid() {
    let text = shipped::text();
    let switched_on: Vec<&str> = text
        .lines()
        .map(|line| {
            // Options and headers behind a comment sign; prose has no ` = ` and no bracket.
            let option = line.strip_prefix("# ").filter(|rest| {
                rest.starts_with('[') || (rest.contains(" = ") && !rest.contains(". "))
            });
            option.unwrap_or(line)
        })
        .collect();
    let switched_on = switched_on.join("\n");
    let loaded = Config::parse(&Source::new("tidegate.toml", switched_on)).expect("no fault");
    assert_eq!(
        (loaded.config.scopes.len(), loaded.config.tenants.len()),
        (1, 1)
    );
}

#[test]
fn the_sample_rules_are_valid() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("tidegate.toml");
    let rules = shipped_directory()
        .join("rules.d")
        .canonicalize()
        .expect("the samples");
    let text = format!("[rules]\ndir = {:?}\n", rules.display().to_string());
    std::fs::write(&config, text).expect("a file");
    let report = check(Some(&config));
    assert!(report.ok, "{report}");
}

#[test]
fn the_defaults_are_those_of_the_law() {
    let config = Config::default();
    // The agent holds resources beside the law.
    let bulkhead = Some(bulkhead::BulkheadSettings::default());
    let usual = law::LawSettings {
        bulkhead,
        ..law::LawSettings::default()
    };
    assert_eq!(config.host_settings(), usual);
    let other = config.scope_settings();
    assert_eq!(other.marks.load, None);
}

#[test]
fn a_scope_has_the_settings_of_all_where_it_sets_none() {
    let text = r#"
        [[scope]]
        name = "orders"
        cgroup = "/orders"
        [scope.cpu]
        enter = 0.6
        leave = 0.55
        [cpu]
        enter = 0.9
        leave = 0.5
        action = "reject"
        [law.entry]
        delay = "400ms"
    "#;
    let loaded = Config::parse(&Source::new("tidegate.toml", text)).expect("no fault");
    let [scope] = loaded.config.scopes.as_slice() else {
        panic!("one scope")
    };
    let settings = scope.law_settings(loaded.config.tick);
    let cpu = settings.marks.cpu.expect("the marks count");
    assert_eq!(
        cpu,
        threshold::ThresholdSettings {
            enter: 0.6,
            leave: 0.55,
            ..threshold::ThresholdSettings::cpu()
        }
    );
    assert_eq!(settings.marks.action, law::ThresholdAction::Reject);
    assert_eq!(settings.entry.delay_s.to_bits(), 0.4_f64.to_bits());
}

#[test]
fn field_l8_messages_name_the_option_to_change_and_times_are_times() {
    let faults = |text: &str| {
        let faults =
            Config::parse(&Source::new("tidegate.toml", text)).expect_err("it is at fault");
        let texts = faults.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>().join("\n")
    };
    let told = faults("tick = \"1s\"\n");
    assert!(
        told.contains("`agent_loss.time_to_live` at least two ticks, \"2s\""),
        "{told}"
    );
    let told = faults("[hysteresis]\nhealthy_samples = 50\n");
    assert!(
        told.contains("`healthy_samples_max` at least `healthy_samples`, 50"),
        "{told}"
    );
    let told = faults("[hysteresis]\nhealthy_for = \"5s\"\nhealthy_for_max = \"1s\"\n");
    assert!(
        told.contains("`healthy_for_max` at least `healthy_for`, \"5s\""),
        "{told}"
    );
    for tick in ["100ms", "500ms"] {
        let text = format!("tick = \"{tick}\"\n[hysteresis]\nhealthy_for = \"5s\"\n");
        let loaded = Config::parse(&Source::new("tidegate.toml", text)).expect("no fault");
        let run = loaded.config.host_settings().release.healthy;
        assert_eq!((run.for_ns, run.most_ns), (5_000_000_000, 20_000_000_000));
    }
    let usual = Config::default().host_settings().release.healthy;
    assert_eq!((usual.samples, usual.for_ns), (5, 0), "five ticks");
}
