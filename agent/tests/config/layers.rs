//! Files in `conf.d` say something over the configuration beside them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tidegate_agent::config::{Config, ConfigRequest};
use tidegate_agent::rule_source::check::check;

/// A directory with a configuration and files beside it.
struct Directory(TempDir);

impl Directory {
    fn of(main: &str, layers: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("conf.d")).unwrap();
        fs::write(directory.path().join("tidegate.toml"), main).unwrap();
        for (name, text) in layers {
            fs::write(directory.path().join("conf.d").join(name), text).unwrap();
        }
        Self(directory)
    }

    fn main(&self) -> PathBuf {
        self.0.path().join("tidegate.toml")
    }

    /// What a load says of each fault or warning, without the directory before it.
    fn said(&self) -> Vec<String> {
        let faults = match Config::load(Some(&self.main())) {
            Ok(loaded) => loaded.warnings,
            Err(faults) => faults,
        };
        let before = format!("{}/", self.0.path().display());
        let short =
            |fault: &tidegate_agent::schema::fault::Fault| fault.to_string().replace(&before, "");
        faults.iter().map(short).collect()
    }
}

#[test]
fn a_later_file_says_over_an_earlier_one_and_tables_of_lists_are_added() {
    let directory = Directory::of(
        "tick = \"200ms\"\n[cpu]\nenter = 0.8\nleave = 0.5\n[[scope]]\nname = \"a\"\ncgroup = \"/a\"\n",
        &[
            (
                "20-more.toml",
                "[cpu]\nenter = 0.9\n[[scope]]\nname = \"b\"\ncgroup = \"/b\"",
            ),
            ("10-first.toml", "tick = \"50ms\"\n[cpu]\nenter = 0.7"),
        ],
    );
    let loaded = Config::load(Some(&directory.main())).unwrap();
    let config = &loaded.config;
    assert_eq!(config.tick, Duration::from_millis(50));
    let marks = (config.cpu.enter, config.cpu.leave);
    assert!((marks.0 - 0.9).abs() < 1e-9 && (marks.1 - 0.5).abs() < 1e-9);
    // A scope of the first file begins with what all files say together.
    let scopes: Vec<_> = config
        .scopes
        .iter()
        .map(|scope| (scope.name.as_str(), scope.cpu.enter))
        .collect();
    assert_eq!(scopes, [("a", 0.9), ("b", 0.9)]);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn faults_name_the_file_and_the_line_of_it() {
    let directory = Directory::of(
        "tick = \"100ms\"\n",
        &[
            ("10.toml", "# a line\n[cpu]\nenter = 7\n"),
            ("20.toml", "\n\nentre = 1"),
        ],
    );
    let said = directory.said();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("conf.d/10.toml:3:9: "), "{said:?}");
    assert!(said[1].starts_with("conf.d/20.toml:3:"), "{said:?}");
    let broken = Directory::of("tick = \n", &[("10.toml", "[cpu\n")]);
    let said = broken.said();
    assert!(
        said.iter().any(|one| one.starts_with("tidegate.toml:1:")),
        "{said:?}"
    );
    assert!(
        said.iter().any(|one| one.starts_with("conf.d/10.toml:1:")),
        "{said:?}"
    );
}

#[test]
fn what_lies_in_the_directory_and_is_not_read_is_said() {
    let directory = Directory::of("", &[("10.toml.bak", "tick = 1"), ("readme", "")]);
    let said = directory.said();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("conf.d/10.toml.bak: not read; allowed: files NAME.toml"));
}

#[test]
fn every_option_in_force_stands_with_the_file_and_line_that_set_it() {
    let directory = Directory::of(
        "[cpu]\nenter = 0.8\n",
        &[(
            "10.toml",
            "[cpu]\nleave = 0.5\n[[scope]]\nname = \"a\"\ncgroup = \"/a\"\n",
        )],
    );
    let loaded = Config::load(Some(&directory.main())).unwrap();
    let text = loaded.config.with_origins(Some(&directory.main())).unwrap();
    let line = |begin: &str| {
        let found = text.lines().find(|line| line.starts_with(begin));
        found
            .unwrap_or_default()
            .split(" # ")
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(line("tick = "), "default");
    assert!(
        line("enter = 0.8").ends_with("/tidegate.toml:2:9"),
        "{text}"
    );
    assert!(
        line("leave = 0.5").ends_with("/conf.d/10.toml:2:9"),
        "{text}"
    );
    assert!(
        line("name = \"a\"").ends_with("/conf.d/10.toml:4:8"),
        "{text}"
    );
    // What is printed is a configuration, and the same one.
    let source = tidegate_agent::schema::source::Source::new("shown", text);
    assert_eq!(
        Config::parse(&source).unwrap().config.scopes,
        loaded.config.scopes
    );
}

#[test]
fn what_the_command_line_says_is_told_as_such_and_not_as_the_files() {
    let directory = Directory::of("[rules]\ndir = \"here\"\n", &[]);
    let given = ConfigRequest {
        rules_dir: Some("/elsewhere".into()),
        ..ConfigRequest::of(Some(directory.main()))
    };
    let config = given.load().unwrap().config;
    let text = config.with_origins(Some(&directory.main())).unwrap();
    let line = text.lines().find(|line| line.starts_with("dir = "));
    let line = line.unwrap_or_default();
    assert!(
        line.contains("/elsewhere") && line.contains("command line"),
        "{line}"
    );
}

#[test]
fn a_group_that_is_none_is_told_where_it_stands() {
    let directory = Directory::of("", &[("10.toml", "[socket]\ngroup = \"no-such-group\"\n")]);
    let report = check(Some(&directory.main()));
    let said = report.to_string();
    assert!(said.contains("/conf.d/10.toml:2:9: socket.group"), "{said}");
}
