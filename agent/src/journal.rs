//! Lines for the journal carry their priority: `<4>` in front of a warning, as syslog numbers it.

use std::fmt::Write as _;
use std::io::stderr;
use std::sync::OnceLock;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Something failed.
    Error = 3,
    /// Something is odd, or has changed that matters.
    Warning = 4,
    /// For the record.
    Info = 6,
    /// For who looks for a fault.
    Debug = 7,
}

impl Priority {
    const fn mark(self) -> &'static str {
        match self {
            Self::Error => "<3>",
            Self::Warning => "<4>",
            Self::Info => "<6>",
            Self::Debug => "<7>",
        }
    }
}

/// Whether standard error is the journal itself. Programs that a service starts inherit the variable, with other streams.
pub fn is_stderr() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        let stat = rustix::fs::fstat(stderr());
        stat.is_ok_and(|stat| named == format!("{}:{}", stat.st_dev, stat.st_ino))
    })
}

/// Marks each line of a text with its priority.
pub fn marked(text: &str, priority: Priority) -> String {
    let mut marked = String::new();
    for line in text.split_inclusive('\n') {
        // Writing to a string cannot fail.
        let _cannot: std::fmt::Result = write!(marked, "{}{line}", priority.mark());
    }
    marked
}

/// The same where standard error is the journal; elsewhere the text as it is.
pub fn for_stderr(text: String, priority: Priority) -> String {
    if is_stderr() {
        marked(&text, priority)
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_o8_each_line_has_its_priority_whatever_the_text_pretends() {
        assert_eq!(marked("a\n", Priority::Error), "<3>a\n");
        assert_eq!(marked("a\n<0>b", Priority::Warning), "<4>a\n<4><0>b");
    }
}
