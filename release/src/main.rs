//! Writes what a package holds beside the binary: manual pages, completions of shells and JSON Schemas, all from
//! the tables and texts of the agent itself.
//!
//! `tidegate-release DIR` writes `DIR/man/*`, `DIR/completions/*` and `DIR/schema/*`.

mod man;
mod options_page;
mod shells;

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Parser;
use tidegate_agent::config::shipped;
use tidegate_agent::rule;

/// Write manual pages, completions and JSON Schemas for a package of Tidegate
#[derive(Debug, Parser)]
struct Arguments {
    /// Directory to write to; what is there under the same names is replaced
    directory: PathBuf,
}

/// A file of the package: its place under the directory, and its bytes.
struct PackagedFile {
    path: String,
    content: Vec<u8>,
}

fn main() -> io::Result<()> {
    let Arguments { directory } = Arguments::parse();
    write_all(&directory)
}

fn write_all(directory: &Path) -> io::Result<()> {
    let files = [
        man::pages()?,
        options_page::pages(),
        shells::completions(),
        schemas(),
    ];
    for file in files.into_iter().flatten() {
        write(&directory.join(&file.path), &file.content)?;
    }
    Ok(())
}

/// The schemas are committed too, in `config/schema`; here they are as this build has them.
fn schemas() -> Vec<PackagedFile> {
    [
        ("tidegate.schema.json", shipped::schema_text()),
        ("rules.schema.json", rule::file::schema_text()),
    ]
    .into_iter()
    .map(|(name, text)| PackagedFile {
        path: format!("schema/{name}"),
        content: text.into_bytes(),
    })
    .collect()
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let place =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(place)?;
    }
    fs::write(path, content).map_err(place)
}
