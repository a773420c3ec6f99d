//! Golden files of what commands print: `UPDATE_GOLDEN=1` writes them anew.

use std::path::Path;

/// Compares a screen with a file, and holds it to 80 columns but for what has no space to break at.
pub(super) fn compare(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        text,
        golden,
        "{} differs; UPDATE_GOLDEN=1 writes it anew",
        path.display()
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "over 80 columns: {line}");
    }
}
