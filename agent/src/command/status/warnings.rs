//! The warnings of a status for people.

use std::fmt::Write as _;

use crate::report::warnings::{WarningReport, WarningsReport};
use crate::words::paragraph;

/// So many are shown to who does not ask for all: the scopes, which come after them, are what one looks for.
const BRIEF: usize = 3;

/// One line for each; nothing where there are none.
pub(super) fn write(
    text: &mut String,
    warnings: &WarningsReport,
    verbose: bool,
) -> std::fmt::Result {
    let WarningsReport { list, left_out } = warnings;
    if list.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nwarnings")?;
    let most = if verbose { list.len() } else { BRIEF };
    for WarningReport { text: warning, .. } in list.iter().take(most) {
        paragraph(text, "  ", warning)?;
    }
    let more = list.len().saturating_sub(most).saturating_add(*left_out);
    if more > 0 {
        writeln!(text, "  and {more} more; `tidegate check` lists all")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_r8_each_warning_is_a_line() {
        let warnings = r#"{"list":[{"tenant":"","file":"a.toml","text":"a.toml:1:1 flow[0].mode \"off\""}],"left_out":2}"#;
        let mut text = String::new();
        write(&mut text, &serde_json::from_str(warnings).unwrap(), false).unwrap();
        assert_eq!(
            text,
            "\nwarnings\n  a.toml:1:1 flow[0].mode \"off\"\n  and 2 more; `tidegate check` lists all\n"
        );
        let mut none = String::new();
        write(&mut none, &WarningsReport::default(), true).unwrap();
        assert_eq!(none, "");
    }

    #[test]
    fn field_o11_many_warnings_do_not_push_the_scopes_out_of_sight() {
        let of = |one: usize| WarningReport {
            text: format!("a.toml:{one}"),
            ..WarningReport::default()
        };
        let warnings = WarningsReport {
            list: (0..40).map(of).collect(),
            left_out: 2,
        };
        let shown = |verbose| {
            let mut text = String::new();
            write(&mut text, &warnings, verbose).unwrap();
            text
        };
        let brief = shown(false);
        assert!(brief.contains("  a.toml:2\n  and 39 more;"), "{brief}");
        let all = shown(true);
        assert!(all.contains("  a.toml:39\n  and 2 more;"), "{all}");
    }
}
