//! The search for the groups of patterns: which there are, and why a pattern has none.

use std::fmt;
use std::path::PathBuf;

use super::groups::{Groups, PatternKey};
use crate::procfs::{GroupPattern, Layout};

/// Time between two searches.
const EVERY_NS: u64 = 1_000_000_000;
/// Room for the path of a group, so that a search need not allocate.
const PATH_BYTES: usize = 4096;

/// Why no group fits a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoGroup {
    /// No hierarchy has one.
    Nowhere,
    /// Another hierarchy has it, and that of the cpu controller has not.
    NotOfCpu,
    /// It is there below the slice that its own is in.
    SliceNotNested,
    /// The hierarchy of the cpu controller is not in sight.
    OutOfSight,
}

impl NoGroup {
    /// What to do to have one.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Nowhere => {
                "start what it stands for, or put the path right: `systemctl show -P ControlGroup UNIT` tells that of a unit"
            }
            Self::NotOfCpu => {
                "systemd made the group without the cpu controller: set CPUAccounting=yes or CPUQuota= in the unit"
            }
            Self::SliceNotNested => {
                "systemd keeps a-b.slice in a.slice: write /a.slice/a-b.slice, as `systemctl show -P ControlGroup UNIT` tells it"
            }
            Self::OutOfSight => "mount the hierarchy of the cpu controller where the agent sees it",
        }
    }
}

/// As the end of "no group at …".
impl fmt::Display for NoGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.remedy())
    }
}

/// How many groups fit a pattern; none has a reason.
pub type GroupMatches = Result<u32, NoGroup>;

/// A pattern that is searched for.
#[derive(Debug)]
struct Sought {
    pattern: GroupPattern,
    /// The same with each slice in those that its name begins with, where it was written otherwise.
    nested: Option<GroupPattern>,
    found: Option<GroupMatches>,
}

/// All patterns, and scratch for the search.
#[derive(Debug)]
pub(super) struct Search {
    sought: Vec<Sought>,
    next_ns: u64,
    path: PathBuf,
    new: Vec<(PathBuf, PatternKey)>,
    left_out: usize,
}

impl Search {
    pub(super) fn new() -> Self {
        Self {
            sought: Vec::new(),
            next_ns: 0,
            path: PathBuf::with_capacity(PATH_BYTES),
            new: Vec::new(),
            left_out: 0,
        }
    }

    /// Searches for this pattern too, from now on.
    pub(super) fn add(&mut self, pattern: GroupPattern) -> PatternKey {
        self.sought.push(Sought {
            nested: pattern.nested(),
            pattern,
            found: None,
        });
        self.hurry();
        PatternKey(self.sought.len().saturating_sub(1))
    }

    /// Lets the next tick search.
    pub(super) fn hurry(&mut self) {
        self.next_ns = 0;
    }

    /// Groups that fit a pattern and are not watched.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// What the last search came to; `None` before it.
    pub(super) fn found(&self, key: PatternKey) -> Option<GroupMatches> {
        self.sought.get(key.0)?.found
    }

    /// Searches if it is time, and lets new groups be watched.
    pub(super) fn run(&mut self, now_ns: u64, layout: &Layout, groups: &mut Groups) {
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns.saturating_add(EVERY_NS);
        self.left_out = 0;
        self.look(layout, groups);
        let Some(top) = layout.top() else { return };
        for (dir, pattern) in self.new.drain(..) {
            let below = dir.strip_prefix(top).unwrap_or(&dir);
            match groups.watch(layout.places_of_path(below)) {
                Ok(_key) => {
                    let _first = groups.fits(&dir, pattern);
                }
                Err(_unwatched) => self.left_out = self.left_out.saturating_add(1),
            }
        }
    }

    /// Looks which groups there are, and which are new.
    fn look(&mut self, layout: &Layout, groups: &mut Groups) {
        let is_full = groups.is_full();
        let Self {
            sought,
            path,
            new,
            left_out,
            ..
        } = self;
        for (index, one) in sought.iter_mut().enumerate() {
            let Some(top) = layout.top() else {
                one.found = Some(Err(NoGroup::OutOfSight));
                continue;
            };
            let (key, mut count) = (PatternKey(index), 0_u32);
            one.pattern.find(top, path, &mut |dir| {
                count = count.saturating_add(1);
                if groups.fits(dir, key) {
                } else if is_full {
                    *left_out = left_out.saturating_add(1);
                } else {
                    new.push((dir.to_path_buf(), key));
                }
            });
            one.found = Some(match count {
                0 => Err(one.why_none(layout, path)),
                count => Ok(count),
            });
        }
    }
}

impl Sought {
    fn why_none(&self, layout: &Layout, path: &mut PathBuf) -> NoGroup {
        let mut is_at = |pattern: &GroupPattern, top| {
            let mut is_found = false;
            pattern.find(top, path, &mut |_dir| is_found = true);
            is_found
        };
        if layout.other_tops().any(|top| is_at(&self.pattern, top)) {
            return NoGroup::NotOfCpu;
        }
        let mut tops = layout.top().into_iter().chain(layout.other_tops());
        let nested = self.nested.as_ref();
        if nested.is_some_and(|nested| tops.any(|top| is_at(nested, top))) {
            return NoGroup::SliceNotNested;
        }
        NoGroup::Nowhere
    }
}
