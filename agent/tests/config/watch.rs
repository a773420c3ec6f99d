//! A watched directory says when its rules are to be read again.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_agent::rule::Quirks;
use tidegate_agent::rule_source::{DirectorySource, DirectoryWatch, RuleSource as _};

const DEADLINE: Duration = Duration::from_secs(10);

const RULE: &str = "[[flow]]\nresource = \"a\"\ncount = 1\n";

fn wait(watch: &mut DirectoryWatch) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let changed = async { tokio::time::timeout(DEADLINE, watch.changed()).await };
    runtime.block_on(changed).unwrap().unwrap();
}

fn rules(directory: &Path) -> usize {
    let source = DirectorySource::new(directory, Quirks::None);
    source.load().unwrap().rules().len()
}

#[test]
fn a_file_written_moved_or_removed_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let mut watch = DirectoryWatch::new(directory.path()).unwrap();
    assert!(!watch.drain().unwrap());

    let file = directory.path().join("a.toml");
    fs::write(&file, RULE).unwrap();
    wait(&mut watch);
    assert_eq!(rules(directory.path()), 1);

    fs::rename(&file, directory.path().join("a.off")).unwrap();
    wait(&mut watch);
    assert_eq!(rules(directory.path()), 0);

    fs::remove_file(directory.path().join("a.off")).unwrap();
    wait(&mut watch);
    assert!(!watch.drain().unwrap());
}

#[test]
fn a_file_that_is_being_written_is_no_change_yet() {
    use std::io::Write as _;
    let directory = tempfile::tempdir().unwrap();
    let mut watch = DirectoryWatch::new(directory.path()).unwrap();
    let mut file = fs::File::create(directory.path().join("a.toml")).unwrap();
    file.write_all(RULE.as_bytes()).unwrap();
    assert!(!watch.drain().unwrap());
    drop(file);
    wait(&mut watch);
}

#[test]
fn a_link_is_a_change_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("a.toml");
    fs::write(&target, RULE).unwrap();
    let mut watch = DirectoryWatch::new(directory.path()).unwrap();
    std::os::unix::fs::symlink(&target, directory.path().join("a.toml")).unwrap();
    wait(&mut watch);
    assert_eq!(rules(directory.path()), 1);
}

#[test]
fn a_directory_may_come_later_and_be_replaced() {
    let above = tempfile::tempdir().unwrap();
    let directory = above.path().join("etc/rules.d");
    let mut watch = DirectoryWatch::new(&directory).unwrap();
    assert_eq!(rules(&directory), 0);

    fs::create_dir(above.path().join("etc")).unwrap();
    wait(&mut watch);
    fs::create_dir(&directory).unwrap();
    wait(&mut watch);
    fs::write(directory.join("a.toml"), RULE).unwrap();
    wait(&mut watch);
    assert_eq!(rules(&directory), 1);

    fs::rename(&directory, above.path().join("etc/old.d")).unwrap();
    wait(&mut watch);
    fs::create_dir(&directory).unwrap();
    wait(&mut watch);
    fs::write(directory.join("b.toml"), RULE).unwrap();
    wait(&mut watch);
    assert_eq!(rules(&directory), 1);
}
