//! The warnings of a status for people.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::words::paragraph;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Warnings {
    list: Vec<Warning>,
    left_out: usize,
}

#[derive(Debug, Deserialize)]
struct Warning {
    text: String,
}

/// One line for each; nothing where there are none.
pub(super) fn write(text: &mut String, warnings: &Warnings) -> std::fmt::Result {
    let Warnings { list, left_out } = warnings;
    if list.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nwarnings")?;
    for Warning { text: warning } in list {
        paragraph(text, "  ", warning)?;
    }
    if *left_out > 0 {
        writeln!(text, "  and {left_out} more; `tidegate check` lists all")?;
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
        write(&mut text, &serde_json::from_str(warnings).unwrap()).unwrap();
        assert_eq!(
            text,
            "\nwarnings\n  a.toml:1:1 flow[0].mode \"off\"\n  and 2 more; `tidegate check` lists all\n"
        );
        let mut none = String::new();
        write(&mut none, &Warnings::default()).unwrap();
        assert_eq!(none, "");
    }
}
