//! Every option of the configuration has an answer to "when does it have no effect?".

use super::law::BulkheadOptions;
use super::{
    Config, CpuOptions, EbpfOptions, EscalationOptions, HttpOptions, HysteresisOptions, LawOptions,
    LoadOptions, RecordingOptions, ScopeOptions, ThreadsOptions,
};
use crate::schema::effect::Effects;
use crate::schema::kind::ShownValue;
use crate::schema::settings::{OptionRow, OptionTable};
use crate::schema::source::Source;

/// Tables in which every option acts whatever the others are, or in which it is refused else, and how many they have.
/// Who adds one says here that it does, or moves the table to those with answers of their own.
const ACT: &[(&str, usize)] = &[
    ("", 18),
    ("socket", 2),
    ("rules", 2),
    ("agent_loss", 3),
    ("pages", 5),
    ("signals", 1),
    ("law.entry", 3),
    ("law.tight", 11),
    ("law.cold", 3),
    ("law.estimate", 6),
    ("law.evidence", 11),
    ("law.release", 3),
    ("law.rate", 3),
    ("law.effect", 3),
    ("service", 2),
    ("tenant", 6),
];

fn answered<O: OptionTable + Effects>() -> Vec<&'static str> {
    let mut keys: Vec<_> = O::default().rows().iter().map(|row| row.key).collect();
    let mut answered: Vec<_> = O::EFFECTS.iter().map(|effect| effect.key).collect();
    keys.sort_unstable();
    answered.sort_unstable();
    assert_eq!(answered, keys);
    keys
}

/// Each table with its path and the number of its options; not those in a `[[scope]]`, which are as for all.
fn tables(path: &str, rows: &[OptionRow], out: &mut Vec<(String, usize)>) {
    out.push((path.to_owned(), rows.len()));
    for row in rows {
        let path = if path.is_empty() {
            row.key.to_owned()
        } else {
            format!("{path}.{}", row.key)
        };
        match &row.shown {
            ShownValue::Table(rows) => tables(&path, rows, out),
            ShownValue::Tables(rows) => out.push((path, rows.len())),
            ShownValue::Value(_) | ShownValue::Unset(_) => {}
        }
    }
}

#[test]
fn field_r8_every_option_of_the_configuration_has_an_answer() {
    let mut answers = vec![
        ("cpu", answered::<CpuOptions>().len()),
        ("load", answered::<LoadOptions>().len()),
        ("threads", answered::<ThreadsOptions>().len()),
        ("law", answered::<LawOptions>().len()),
        ("law.bulkhead", answered::<BulkheadOptions>().len()),
        ("hysteresis", answered::<HysteresisOptions>().len()),
        ("escalation", answered::<EscalationOptions>().len()),
        ("ebpf", answered::<EbpfOptions>().len()),
        ("http", answered::<HttpOptions>().len()),
        ("recording", answered::<RecordingOptions>().len()),
        ("scope", answered::<ScopeOptions>().len()),
    ];
    answers.extend(ACT);
    answers.sort_unstable();
    let mut found = Vec::new();
    tables("", &Config::default().rows(), &mut found);
    found.sort_unstable();
    let found: Vec<_> = found
        .iter()
        .map(|(path, count)| (path.as_str(), *count))
        .collect();
    assert_eq!(found, answers);
}

#[test]
fn field_r8_options_without_an_effect_are_warned_of() {
    for (text, options) in [
        (
            "[cpu]\nenabled = false\nenter = 0.8\nleave = 0.7",
            vec!["cpu.enter", "cpu.leave"],
        ),
        (
            "[load]\nenabled = false\nenter_per_cpu = 2.0",
            vec!["load.enter_per_cpu"],
        ),
        ("[threads]\nhold = \"10s\"", vec!["threads.hold"]),
        ("[threads]\nwatermark = 5\nhold = \"10s\"", vec![]),
        (
            "[ebpf]\nenabled = false\nmax_overhead = \"1%\"",
            vec!["ebpf.max_overhead"],
        ),
        (
            "[http]\nmetrics_enabled = false\nmetrics_listen = \"127.0.0.1:1\"",
            vec!["http.metrics_listen"],
        ),
        (
            "[recording]\nenabled = false\nsize_mib = 5",
            vec!["recording.size_mib"],
        ),
        (
            "[hysteresis]\nhealthy_for = \"5s\"\nhealthy_samples = 4",
            vec!["hysteresis.healthy_samples"],
        ),
        (
            "[hysteresis]\nhealthy_for_max = \"5s\"",
            vec!["hysteresis.healthy_for_max"],
        ),
        (
            "[escalation]\nenabled = false\nafter = \"5m\"",
            vec!["escalation.after"],
        ),
        (
            "[law.bulkhead]\nenabled = false\nshare_ratio = 0.2",
            vec!["law.bulkhead.share_ratio"],
        ),
        (
            "[law]\nkind = \"sentinel\"\n[law.tight]\ndelay = \"30ms\"",
            vec!["law.tight"],
        ),
        (
            "[[scope]]\nname = \"a\"\ncgroup = \"/a\"\ncpu = { enabled = false, enter = 0.8 }",
            vec!["scope[0].cpu.enter"],
        ),
    ] {
        let loaded = Config::parse(&Source::new("a.toml", text)).unwrap();
        let warned: Vec<_> = loaded
            .warnings
            .iter()
            .map(|warning| warning.option.as_str())
            .collect();
        assert_eq!(warned, options, "{text}");
    }
}
