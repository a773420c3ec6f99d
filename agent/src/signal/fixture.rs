//! Trees of plain files that stand for `/proc` and `/sys/fs/cgroup` in tests.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_abi::signal::SignalId;

use super::groups::GroupKey;
use super::reading::Readings;
use super::sampler::Sampler;
use crate::procfs::Missing;
use crate::procfs::Roots;

/// One second, the step of the scripted clock.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A temporary directory with `proc` and `cgroup` in it.
pub(crate) struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    /// A tree with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(tree.path("proc")).unwrap();
        fs::create_dir(tree.path("cgroup")).unwrap();
        tree.write(files);
        tree
    }

    /// Where a file of the tree is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes files, with the directories that they need.
    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    /// A sampler that reads this tree.
    pub(crate) fn sampler(&self) -> Sampler {
        Sampler::new(Roots {
            proc: self.path("proc"),
            cgroup: self.path("cgroup"),
        })
    }

    /// A sampler, and the group at a path, sampled once at the first second.
    pub(crate) fn watching(&self, path: &str) -> (Sampler, GroupKey) {
        let mut sampler = self.sampler();
        let key = sampler.watch_path(Path::new(path)).unwrap();
        sampler.sample(SECOND_NS);
        (sampler, key)
    }
}

/// The value of a group's signal, which must be measured.
pub(crate) fn value(sampler: &Sampler, key: GroupKey, id: SignalId) -> f64 {
    match sampler.group(key).unwrap().readings().get(id).get() {
        Ok(value) => value,
        Err(missing) => panic!("{}: {missing}", id.name()),
    }
}

/// Why a group's signal is missing.
pub(crate) fn missing(sampler: &Sampler, key: GroupKey, id: SignalId) -> Missing {
    why(sampler.group(key).unwrap().readings(), id)
}

/// Why a signal is missing.
pub(crate) fn why(readings: &Readings, id: SignalId) -> Missing {
    readings.get(id).get().unwrap_err()
}

/// Checks a number that was computed in floating point.
#[track_caller]
pub(crate) fn close(found: f64, wanted: f64) {
    assert!(
        (found - wanted).abs() < 1e-6,
        "found {found}, wanted {wanted}"
    );
}
