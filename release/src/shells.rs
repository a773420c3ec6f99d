//! Completions of commands and options for shells.

use clap_complete::{Shell, generate};
use tidegate_agent::command::program;

use crate::PackagedFile;

/// One file for each shell, under the name by which the shell looks for it.
pub(crate) fn completions() -> Vec<PackagedFile> {
    [
        (Shell::Bash, "tidegate"),
        (Shell::Zsh, "_tidegate"),
        (Shell::Fish, "tidegate.fish"),
    ]
    .into_iter()
    .map(|(shell, name)| {
        let mut content = Vec::new();
        generate(shell, &mut program(), "tidegate", &mut content);
        PackagedFile {
            path: format!("completions/{shell}/{name}"),
            content,
        }
    })
    .collect()
}
