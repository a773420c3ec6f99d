//! Groups by pattern: paths below the mount of the cpu controller, with `*` and `?`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::directory;

/// A path such as `/system.slice/orders-*.service`; `*` and `?` stand for anything but `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPattern {
    parts: Vec<String>,
}

/// Why a text is not a pattern of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternFault {
    /// It does not begin with `/`.
    NotFromTheTop,
    /// A part between two `/` is empty, `.` or `..`.
    OddPart,
    /// It holds a byte 0 or a newline, which no group's name can.
    OddByte,
}

impl fmt::Display for PatternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFromTheTop => "does not begin with /; write the path below the mount",
            Self::OddPart => "has a part that is empty, . or ..; leave it out",
            Self::OddByte => "holds a byte 0 or a newline; no group's name can",
        })
    }
}

impl std::error::Error for PatternFault {}

impl GroupPattern {
    /// Checks a text from the configuration. `/` alone is the group at the top.
    ///
    /// # Errors
    /// What is wrong with it and what to write instead.
    pub fn new(text: &str) -> Result<Self, PatternFault> {
        let below = text.strip_prefix('/').ok_or(PatternFault::NotFromTheTop)?;
        if below.contains(['\0', '\n']) {
            return Err(PatternFault::OddByte);
        }
        let below = below.strip_suffix('/').unwrap_or(below);
        let parts: Vec<String> = match below {
            "" => Vec::new(),
            below => below.split('/').map(str::to_owned).collect(),
        };
        if parts
            .iter()
            .any(|part| matches!(part.as_str(), "" | "." | ".."))
        {
            return Err(PatternFault::OddPart);
        }
        Ok(Self { parts })
    }

    /// Whether a group's path fits.
    pub fn fits(&self, path: &Path) -> bool {
        let below = path.strip_prefix("/").unwrap_or(path);
        self.parts.len() == below.iter().count() && self.holds(path)
    }

    /// Whether a group fits, or one above it does; `group` is its path below the mount, with or without
    /// a leading `/`.
    pub fn holds(&self, group: &Path) -> bool {
        let below = group.strip_prefix("/").unwrap_or(group);
        let mut names = below.iter();
        self.parts.iter().all(|part| {
            let name = names.next();
            name.is_some_and(|name| matches(part.as_bytes(), name.as_bytes()))
        })
    }

    /// The same with each slice in those that its name begins with, as systemd keeps them: `/a-b.slice` is in
    /// `/a.slice`. `None` where that changes nothing.
    pub(crate) fn nested(&self) -> Option<Self> {
        let mut parts: Vec<String> = Vec::new();
        for part in &self.parts {
            let stem = part.strip_suffix(".slice").unwrap_or_default();
            for (at, _dash) in stem.match_indices('-') {
                let above = stem.get(..at).map(|stem| format!("{stem}.slice"));
                parts.extend(above.filter(|above| at > 0 && !parts.contains(above)));
            }
            parts.push(part.clone());
        }
        (parts != self.parts).then_some(Self { parts })
    }

    /// Calls `found` with the directory of each group below `top` that is there now. Allocates
    /// nothing while `path`, which is scratch, has room for the longest.
    pub(crate) fn find(&self, top: &Path, path: &mut PathBuf, found: &mut dyn FnMut(&Path)) {
        path.clear();
        path.push(top);
        walk(&self.parts, path, found);
    }
}

fn walk(parts: &[String], path: &mut PathBuf, found: &mut dyn FnMut(&Path)) {
    let Some((part, rest)) = parts.split_first() else {
        if path.is_dir() {
            found(path);
        }
        return;
    };
    if !part.contains(['*', '?']) {
        path.push(part);
        walk(rest, path, found);
        path.pop();
        return;
    }
    let Ok(parent) = directory::open(path) else {
        return;
    };
    // A directory that goes away while it is searched has no groups any more.
    let _gone = directory::each_name(&parent, &mut |name| {
        if matches(part.as_bytes(), name) {
            path.push(OsStr::from_bytes(name));
            walk(rest, path, found);
            path.pop();
        }
    });
}

/// Whether a name fits a pattern of `*`, `?` and plain bytes. Goes back to the last `*` only, so the
/// time is at most pattern × name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0_usize, 0_usize);
    let mut last_star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(read) {
        match (pattern.get(at), last_star) {
            (Some(b'*'), _) => {
                last_star = Some((at, read));
                at += 1;
            }
            (Some(wanted), _) if wanted == byte || *wanted == b'?' => {
                at += 1;
                read += 1;
            }
            (_, Some((star, swallowed))) => {
                last_star = Some((star, swallowed + 1));
                at = star + 1;
                read = swallowed + 1;
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_question_marks_stand_for_anything_in_a_name() {
        let fits = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [
            ("orders-*.service", "orders-7.service"),
            ("*", "a"),
            ("a*b*c", "aXbYbZc"),
            ("?b", "ab"),
            ("**x", "x"),
            ("plain", "plain"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a*b", "abc"),
            ("?", ""),
            ("?", "ab"),
            ("a", "b"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_text_that_is_no_path_is_refused_with_what_to_write() {
        assert_eq!(
            GroupPattern::new("system.slice"),
            Err(PatternFault::NotFromTheTop)
        );
        assert_eq!(GroupPattern::new("/a//b"), Err(PatternFault::OddPart));
        assert_eq!(GroupPattern::new("/a/../b"), Err(PatternFault::OddPart));
        assert_eq!(GroupPattern::new("/a\n"), Err(PatternFault::OddByte));
        assert_eq!(
            GroupPattern::new("/a/").unwrap(),
            GroupPattern::new("/a").unwrap()
        );
        assert!(GroupPattern::new("/").unwrap().parts.is_empty());
    }

    #[test]
    fn only_directories_that_fit_part_by_part_are_found() {
        let top = tempfile::tempdir().unwrap();
        for dir in ["s/orders-1", "s/orders-2/deep", "s/users", "t/orders-3"] {
            std::fs::create_dir_all(top.path().join(dir)).unwrap();
        }
        std::fs::write(top.path().join("s/orders-file"), "").unwrap();
        let found = |text: &str| {
            let (mut path, mut names) = (PathBuf::new(), Vec::new());
            let mut take =
                |dir: &Path| names.push(dir.strip_prefix(top.path()).unwrap().to_owned());
            GroupPattern::new(text)
                .unwrap()
                .find(top.path(), &mut path, &mut take);
            names.sort();
            names
        };
        assert_eq!(
            found("/s/orders-*"),
            [Path::new("s/orders-1"), Path::new("s/orders-2")]
        );
        assert_eq!(found("/*/orders-?/d*"), [Path::new("s/orders-2/deep")]);
        assert_eq!(found("/s/users"), [Path::new("s/users")]);
        let fits = |path: &str| {
            GroupPattern::new("/s/orders-*")
                .unwrap()
                .fits(path.as_ref())
        };
        assert!(fits("/s/orders-1") && !fits("/s/orders-1/deep") && !fits("/s") && !fits("/"));
        assert!(found("/none/*").is_empty());
        assert_eq!(found("/").len(), 1);
    }

    #[test]
    fn field_s12_slices_are_nested_as_systemd_nests_them() {
        let nested = |text: &str| GroupPattern::new(text).unwrap().nested();
        for (written, meant) in [
            ("/a-b.slice/x.service", "/a.slice/a-b.slice/x.service"),
            ("/a-b-c.slice", "/a.slice/a-b.slice/a-b-c.slice"),
            ("/a.slice/a-b-c.slice", "/a.slice/a-b.slice/a-b-c.slice"),
        ] {
            assert_eq!(nested(written), GroupPattern::new(meant).ok(), "{written}");
        }
        for right in [
            "/a.slice/a-b.slice",
            "/a-b.service",
            "/-.slice",
            "/system.slice/a-b.service",
        ] {
            assert_eq!(nested(right), None, "{right}");
        }
    }

    proptest! {
        #[test]
        fn a_name_fits_itself_and_itself_with_a_star_anywhere(name in "[a-z.]{0,12}", at in 0_usize..12) {
            let at = at.min(name.len());
            let starred = format!("{}*{}", &name.get(..at).unwrap(), &name.get(at..).unwrap());
            prop_assert!(matches(name.as_bytes(), name.as_bytes()));
            prop_assert!(matches(starred.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn any_bytes_are_decided(pattern: Vec<u8>, name: Vec<u8>) {
            let _fits = matches(&pattern, &name);
        }
    }
}
