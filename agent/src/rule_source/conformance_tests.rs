//! What every source of rules must do. A new one is a guest here.

use std::path::PathBuf;
use std::time::Duration;

use super::{DirectorySource, RuleSource, SetStream, SourceSet, SourceState};
use crate::rule::QuirksOption;

/// Longest wait for a change to be seen.
const DEADLINE: Duration = Duration::from_secs(20);

const ONE: &str = "[[flow]]\nresource = \"a\"\ncount = 1\n";
const TWO: &str = "[[flow]]\nresource = \"a\"\ncount = 1\n[[flow]]\nresource = \"b\"\ncount = 1\n";
const BAD: &str = "[[flow]]\nresource = \"a\"\ncount = \"many\"\n";

/// A source with what a test does to what is behind it.
trait Guest {
    fn source(&self) -> Box<dyn RuleSource>;
    /// Puts this text in the place of all that there is.
    fn put(&self, text: &str);
    /// Takes all away, also the place itself.
    fn take_away(&self);
}

/// A directory with one file.
struct Directory {
    _above: tempfile::TempDir,
    path: PathBuf,
}

impl Directory {
    fn new() -> Self {
        let above = tempfile::tempdir().unwrap();
        Self {
            path: above.path().join("rules.d"),
            _above: above,
        }
    }
}

impl Guest for Directory {
    fn source(&self) -> Box<dyn RuleSource> {
        Box::new(DirectorySource::new(&self.path))
    }

    fn put(&self, text: &str) {
        std::fs::create_dir_all(&self.path).unwrap();
        let new = self.path.join(".new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path.join("a.toml")).unwrap();
    }

    fn take_away(&self) {
        std::fs::remove_dir_all(&self.path).unwrap();
    }
}

/// One of each source there is.
fn guests() -> Vec<Box<dyn Guest>> {
    vec![Box::new(Directory::new())]
}

fn rules(set: &SourceSet) -> usize {
    set.clone().build(QuirksOption::None).unwrap().rules().len()
}

fn run(task: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(task);
}

/// Waits for the set that is as wanted. One before it is a state in between, which a source may give or leave out.
async fn until(stream: &mut dyn SetStream, wanted: impl Fn(&SourceSet) -> bool) -> SourceSet {
    let sets = async {
        loop {
            let set = stream.next().await;
            if wanted(&set) {
                return set;
            }
        }
    };
    tokio::time::timeout(DEADLINE, sets).await.unwrap()
}

#[test]
fn a_source_gives_whole_sets_with_their_origin() {
    for guest in guests() {
        let source = guest.source();
        guest.put(TWO);
        let set = source.read();
        assert_eq!(
            (set.origin.as_str(), set.kind),
            (&*source.name(), source.kind())
        );
        assert_eq!(rules(&set), 2);
        guest.put(ONE);
        assert_eq!(rules(&source.read()), 1, "a set is all that there is");
        let is_word = source.kind().bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(is_word, "{}", source.kind());
    }
}

#[test]
fn the_version_of_a_set_is_that_of_its_texts() {
    for guest in guests() {
        let source = guest.source();
        guest.put(ONE);
        let first = source.read();
        guest.put(TWO);
        let second = source.read();
        guest.put(ONE);
        assert_ne!(first.version, second.version);
        assert_eq!(first.version, source.read().version);
    }
}

#[test]
fn the_first_set_comes_at_once_and_each_change_in_a_later_one() {
    for guest in guests() {
        let source = guest.source();
        guest.put(ONE);
        run(async {
            let mut stream = source.follow();
            let first = until(&mut *stream, |_any| true).await;
            assert_eq!(rules(&first), 1);
            for (text, count) in [(TWO, 2), (ONE, 1), ("", 0)] {
                guest.put(text);
                until(&mut *stream, |set| rules(set) == count).await;
            }
        });
    }
}

#[test]
fn a_wait_that_is_dropped_loses_no_change() {
    for guest in guests() {
        let source = guest.source();
        guest.put(ONE);
        run(async {
            let mut stream = source.follow();
            until(&mut *stream, |_any| true).await;
            for (text, count) in [(TWO, 2), (ONE, 1)] {
                let dropped = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
                drop(dropped);
                guest.put(text);
                let dropped = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
                let seen = dropped.is_ok_and(|set| rules(&set) == count);
                if !seen {
                    until(&mut *stream, |set| rules(set) == count).await;
                }
            }
        });
    }
}

#[test]
fn what_is_wrong_is_in_the_set_and_a_sound_one_follows() {
    for guest in guests() {
        let source = guest.source();
        guest.put(BAD);
        let faults = source.read().build(QuirksOption::None).unwrap_err();
        assert!(
            faults.iter().any(|fault| fault.option.contains("count")),
            "{faults:?}"
        );
        run(async {
            let mut stream = source.follow();
            let first = until(&mut *stream, |_any| true).await;
            assert!(!first.read.faults.is_empty());
            guest.put(ONE);
            until(&mut *stream, |set| set.read.faults.is_empty()).await;
        });
    }
}

#[test]
fn a_source_that_is_gone_says_so_and_may_come_back() {
    for guest in guests() {
        let source = guest.source();
        assert_eq!(source.state(), SourceState::Missing);
        assert_eq!(rules(&source.read()), 0);
        run(async {
            let mut stream = source.follow();
            until(&mut *stream, |set| rules(set) == 0).await;
            guest.put(ONE);
            until(&mut *stream, |set| rules(set) == 1).await;
            assert_eq!(source.state(), SourceState::Present);
            guest.take_away();
            until(&mut *stream, |set| rules(set) == 0).await;
            assert_eq!(source.state(), SourceState::Missing);
        });
    }
}

#[test]
fn the_texts_of_a_set_give_the_same_rules_again() {
    for guest in guests() {
        let source = guest.source();
        guest.put(TWO);
        let set = source.read();
        let again = SourceSet::of_documents(set.kind, set.documents.clone());
        assert_eq!(again.read.rules, set.read.rules);
        assert_eq!(again.version, set.version);
    }
}
