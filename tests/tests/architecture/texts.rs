//! What alerts, runbooks, README and the shipped unit name is there: commands and their options, metrics and the values
//! of their labels, settings, properties of the unit.

use std::collections::BTreeSet;
use std::fs;

use tidegate_abi::decision::{RefusalKind, ScopeState};
use tidegate_abi::signal::SignalId;
use tidegate_agent::telemetry::metric::{MetricId, MetricKind};
use tidegate_agent::telemetry::turned::Why;

use crate::source::{root, rust_files};

/// Texts that an operator follows, beside the handbook.
const TEXTS: &[&str] = &[
    "README.md",
    "config/prometheus/tidegate.rules.yml",
    "systemd/tidegate.service",
];

/// Pages of the handbook.
fn handbook() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("the handbook is there");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let pages = names.filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()));
    pages.map(|name| format!("docs/{name}.md")).collect()
}

/// All texts that an operator follows.
fn texts() -> Vec<String> {
    let own = TEXTS.iter().map(|path| (*path).to_owned());
    own.chain(handbook()).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Names that a scrape may show for a row.
fn series() -> BTreeSet<String> {
    let rows = MetricId::ALL.iter().map(|id| id.row());
    rows.flat_map(|row| {
        let parts: &[&str] = match row.kind {
            MetricKind::Counter | MetricKind::Gauge => &[""],
            MetricKind::Summary => &["", "_sum", "_count"],
            MetricKind::Histogram => &["", "_sum", "_count", "_bucket"],
        };
        parts.iter().map(move |part| format!("{}{part}", row.name))
    })
    .collect()
}

#[test]
fn field_o6_texts_name_metrics_that_exist() {
    let series = series();
    for path in &texts() {
        let text = read(path);
        for name in text.split(|letter| !is_word(letter)) {
            // Packages and files of the project begin alike and are no metrics.
            let is_metric = name.starts_with("tidegate_")
                && ![
                    "tidegate_client",
                    "tidegate_rules",
                    "tidegate_abi",
                    "tidegate_agent",
                ]
                .contains(&name);
            assert!(
                !is_metric || name.ends_with('_') || series.contains(name),
                "{path} names the metric {name}, which is not in agent/src/telemetry/metric.rs"
            );
        }
    }
}

/// The values of a label that are words of an enum; `None` for names from outside.
fn values(label: &str) -> Option<Vec<String>> {
    let words = |words: &mut dyn Iterator<Item = &'static str>| {
        Some(words.map(str::to_owned).collect::<Vec<_>>())
    };
    match label {
        "reason" | "kind" => words(&mut RefusalKind::ALL.iter().map(|kind| kind.name())),
        "state" => words(
            &mut ScopeState::ALL.iter().map(|state| state.name()).chain([
                "closed",
                "open",
                "half-open",
            ]),
        ),
        "signal" => words(&mut SignalId::ALL.iter().map(|id| id.name())),
        "what" => words(&mut ["wait", "pause", "unpaired"].into_iter()),
        "ladder" => words(
            &mut [
                "sampler",
                "clock",
                "trigger cpu",
                "trigger memory",
                "trigger io",
            ]
            .into_iter(),
        ),
        "cause" | "rung" => Some(words_of_code(label)),
        _ => None,
    }
}

/// Words in strings of the files that name causes or steps.
fn words_of_code(label: &str) -> Vec<String> {
    let folders: &[&str] = &[
        "agent/src/procfs",
        "agent/src/signal",
        "agent/src/ebpf",
        "agent/src/telemetry",
    ];
    let files = rust_files(folders);
    let arrow = |line: &str| Some(line.split_once("=> \"")?.1.split('"').next()?.to_owned());
    let mut words: Vec<_> = files
        .iter()
        .flat_map(|file| file.text.lines().filter_map(arrow))
        .collect();
    if label == "cause" {
        words.extend(Why::ALL.iter().map(|why| why.name().to_owned()));
    }
    words
}

#[test]
fn field_o6_alerts_select_label_values_that_exist() {
    let text = read("config/prometheus/tidegate.rules.yml");
    let mut looked_up = 0;
    for (before, after) in text.match_indices('=').map(|(at, _)| text.split_at(at)) {
        let label = before
            .rsplit(|letter| !is_word(letter))
            .next()
            .unwrap_or_default();
        let selector = after.trim_start_matches(['=', '~', '!']);
        let Some(value) = selector
            .strip_prefix('"')
            .and_then(|rest| rest.split('"').next())
        else {
            continue;
        };
        let before_label = before.trim_end_matches(is_word).chars().last();
        let (Some(known), Some('{' | ',' | ' ')) = (values(label), before_label) else {
            continue;
        };
        for word in value.split('|') {
            assert!(
                known.iter().any(|own| own == word),
                "no series has {label}=\"{word}\"; there are {known:?}"
            );
            looked_up += 1;
        }
    }
    assert!(looked_up > 10, "{looked_up}");
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Keys of `tidegate.toml`, with and without their section.
fn settings() -> BTreeSet<String> {
    let mut section = String::new();
    let mut keys = BTreeSet::new();
    for line in read("config/tidegate.toml").lines() {
        let line = line.trim_start_matches(['#', ' ']);
        if let Some(name) = line.strip_prefix('[') {
            section = name
                .trim_start_matches('[')
                .split(']')
                .next()
                .unwrap_or_default()
                .to_owned();
            keys.insert(section.clone());
        } else if let Some((key, _value)) = line.split_once(" = ") {
            keys.insert(key.to_owned());
            keys.insert(format!("{section}.{key}"));
        }
    }
    keys
}

#[test]
fn field_o6_alerts_name_settings_that_exist() {
    let (settings, text) = (settings(), read("config/prometheus/tidegate.rules.yml"));
    for word in quoted(&text).filter(|word| word.contains('.') && !word.contains([' ', '/', '*'])) {
        let end = word.rsplit_once('.').map(|(_name, end)| end);
        let is_file = matches!(end, Some("toml" | "d"));
        assert!(
            is_file || settings.contains(word),
            "the alerts name the setting {word}, which config/tidegate.toml does not have"
        );
    }
}

#[test]
fn the_handbook_names_settings_that_exist() {
    let settings = settings();
    let sections: BTreeSet<&str> = settings
        .iter()
        .filter_map(|key| key.split_once('.').map(|(section, _)| section))
        .filter(|section| !section.is_empty())
        .collect();
    let mut looked_up = 0;
    for path in handbook() {
        let text = read(&path);
        for word in quoted(&text).filter(|word| !word.contains([' ', '/', '*', '(', '[', '<'])) {
            let Some((section, key)) = word.split_once('.') else {
                continue;
            };
            let is_file = ["sock", "d", "toml", "rs", "md"].contains(&key) || key.contains(".rs");
            if sections.contains(section) && !is_file {
                let word = word.split(" = ").next().unwrap_or(word);
                assert!(
                    settings.contains(word),
                    "{path}: there is no setting {word}"
                );
                looked_up += 1;
            }
        }
    }
    assert!(looked_up > 20, "{looked_up}");
}

#[test]
fn field_o7_runbooks_and_tuning_tell_the_dry_run_of_the_law_and_what_counts_in_it() {
    assert!(settings().contains("law.mode"));
    for path in ["config/prometheus/tidegate.rules.yml", "docs/tuning.md"] {
        let text = read(path);
        for told in ["law.mode = \"observe\"", "tidegate_scope_observed_total"] {
            assert!(text.contains(told), "{path} does not tell of {told}");
        }
    }
}

#[test]
fn field_o6_commands_in_texts_exist() {
    let modules = read("agent/src/command/mod.rs");
    for path in &texts() {
        let text = read(path);
        for command in quoted(&text).filter_map(|command| command.strip_prefix("tidegate ")) {
            let name = command.split_whitespace().next().unwrap_or_default();
            let is_there = modules.contains(&format!("mod {name};"));
            assert!(
                is_there
                    || name.starts_with('-')
                    || !name.starts_with(|letter: char| letter.is_ascii_lowercase()),
                "{path}: there is no command `tidegate {command}`"
            );
            if !is_there {
                continue;
            }
            let files = rust_files(&["agent/src/command"]);
            for option in command
                .split_whitespace()
                .filter_map(|word| word.strip_prefix("--"))
            {
                let option = option.split('=').next().unwrap_or_default();
                let field = format!("{}:", option.replace('-', "_"));
                assert!(
                    files.iter().any(|file| file.text.contains(&field)),
                    "{path}: `tidegate {command}`: there is no option --{option}"
                );
            }
        }
    }
}

#[test]
fn field_o6_properties_of_the_unit_that_alerts_name_are_set_there() {
    let unit = read("systemd/tidegate.service");
    let set: String = unit.lines().filter(|line| !line.starts_with('#')).collect();
    let text = read("config/prometheus/tidegate.rules.yml");
    for word in text.split(|letter| !is_word(letter)) {
        let is_property = word.starts_with("CAP_") || word.starts_with("Limit");
        assert!(
            !is_property || set.contains(word),
            "the alerts name {word}, which the unit does not set"
        );
    }
}
