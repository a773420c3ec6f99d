//! Manual pages of the commands: the agent itself in section 8, the other commands in section 1.

use std::io;

use clap::Command;
use clap_mangen::Man;
use tidegate_agent::command::program;

use crate::PackagedFile;

/// The command that is a daemon.
const DAEMON: &str = "run";

/// The page of the program, and one for each of its commands.
///
/// # Errors
/// The buffer in memory takes no more.
pub(crate) fn pages() -> io::Result<Vec<PackagedFile>> {
    let mut program = program().disable_help_subcommand(true);
    program.build();
    let commands = program.get_subcommands().filter(|one| !one.is_hide_set());
    let pages = commands.map(|command| {
        let section = if command.get_name() == DAEMON {
            "8"
        } else {
            "1"
        };
        page(command, section)
    });
    std::iter::once(page(&program, "1")).chain(pages).collect()
}

fn page(command: &Command, section: &'static str) -> io::Result<PackagedFile> {
    let mut content = Vec::new();
    let man = Man::new(command.clone())
        .section(section)
        .manual("Tidegate");
    man.render(&mut content)?;
    Ok(PackagedFile {
        path: format!("man/{}", man.get_filename()),
        content,
    })
}
