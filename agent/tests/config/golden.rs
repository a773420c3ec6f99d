//! Golden files: `UPDATE_GOLDEN=1` writes them anew.

use std::path::Path;

/// Compares a text with a file.
#[expect(
    clippy::expect_used,
    reason = "a test that cannot write its file fails"
)]
pub(crate) fn compare(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let line = golden.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        golden == text,
        "{} differs at line {}; UPDATE_GOLDEN=1 writes it anew",
        path.display(),
        line.map_or(golden.lines().count().min(text.lines().count()), |line| {
            line
        }) + 1,
    );
}
