//! Configuration in the documents is valid: `tidegate check` says so.

use std::fs;

use tidegate_tests::program::Program;

use crate::pages::all;

/// First line of a sample that is a `tidegate.toml`; all others are files of rules.
const SETTINGS: &str = "# tidegate.toml";

#[test]
fn every_sample_of_rules_and_settings_is_valid() {
    let mut checked = 0;
    for page in all() {
        let samples = page.fences().into_iter();
        for sample in samples.filter(|sample| sample.language == "toml") {
            let folder = tempfile::tempdir().expect("there is room for a directory");
            let rules = folder.path().join("rules.d");
            fs::create_dir(&rules).expect("the directory is ours");
            let settings = folder.path().join("tidegate.toml");
            if sample.code.starts_with(SETTINGS) {
                fs::write(&settings, &sample.code).expect("the directory is ours");
            } else {
                fs::write(&settings, "").expect("the directory is ours");
                fs::write(rules.join("sample.toml"), &sample.code).expect("the directory is ours");
            }
            let mut check = Program::Tidegate.command();
            check
                .arg("check")
                .arg(&settings)
                .arg("--rules-dir")
                .arg(&rules);
            let said = check.output().expect("it runs");
            assert!(
                said.status.success(),
                "{}: {}\n{}",
                page.path,
                String::from_utf8_lossy(&said.stderr),
                sample.code
            );
            checked += 1;
        }
    }
    assert!(checked >= 7, "{checked} samples");
}
