//! Files of settings and of rules: each is taken, or refused with faults that can be shown.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidegate_agent::config::Config;
use tidegate_agent::rule::{QuirksOption, RuleSet};
use tidegate_agent::rule_source::form;
use tidegate_agent::schema::source::Source;

const NAMES: [&str; 7] = [
    "a.toml",
    "flow.json",
    "param.json",
    "degrade.json",
    "system.json",
    "authority.json",
    "x.json",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, content)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(content).into_owned();
    let which = usize::from(which) % (NAMES.len() + 1);
    let Some(name) = NAMES.get(which) else {
        show(
            &Config::parse(&Source::new("tidegate.toml", text))
                .err()
                .unwrap_or_default(),
        );
        return;
    };
    let read = form::read(Path::new(name), &Source::new(*name, text));
    show(&read.faults);
    show(&read.warnings);
    let built = RuleSet::build(read.rules, QuirksOption::None);
    show(&built.err().unwrap_or_default());
});

/// Faults go to terminals and logs.
fn show(faults: &[impl std::fmt::Display]) {
    for fault in faults {
        assert!(!fault.to_string().contains(char::is_control));
    }
}
