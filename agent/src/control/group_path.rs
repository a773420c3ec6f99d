//! How the paths of groups lie to each other.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Whether a group's path is below another's. By bytes, for there may be hundreds of both in a tick.
pub(super) fn is_below(path: &Path, above: &Path) -> bool {
    let (path, above) = (path.as_os_str().as_bytes(), above.as_os_str().as_bytes());
    let above = above.strip_suffix(b"/").unwrap_or(above);
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.len() > 1 && rest.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_those_that_its_parts_begin_with() {
        let below = |path: &str, above: &str| is_below(Path::new(path), Path::new(above));
        assert!(below("/a/b", "/a") && below("/a/b/c", "/a") && below("/a", "/"));
        assert!(
            !below("/a", "/a") && !below("/ab", "/a") && !below("/", "/") && !below("/a", "/a/b")
        );
    }
}
