//! Files beside the configuration that say something over it: `conf.d/*.toml`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::schema::fault::{Fault, InFile};
use crate::schema::source::Source;

/// The directory of the files, beside the configuration.
const DIRECTORY: &str = "conf.d";

/// The files, in the order of their names.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) files: Vec<Source>,
    /// What lies there and is not read.
    pub(super) warnings: Vec<Fault>,
}

/// Reads the files beside a configuration; there are none where the directory is not.
///
/// # Errors
/// A fault for each file, or the directory, that cannot be read.
pub(super) fn beside(configuration: &Path) -> Result<Layers, Vec<Fault>> {
    let directory = configuration.with_file_name(DIRECTORY);
    let mut paths = match listed(&directory) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Layers::default()),
        Err(error) => {
            let name = directory.display().to_string();
            let allowed = "a directory that the agent's user may read";
            return Err(vec![Fault::of_directory(
                &name,
                error.to_string(),
                allowed,
                "",
            )]);
        }
    };
    paths.sort();
    let mut layers = Layers::default();
    let mut faults = Vec::new();
    for path in paths {
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            match Source::read_found(&path) {
                Ok((source, _owner)) => layers.files.push(source),
                Err(fault) => faults.push(*fault),
            }
        } else {
            layers.warnings.push(not_read(&path));
        }
    }
    if faults.is_empty() {
        Ok(layers)
    } else {
        Err(faults)
    }
}

fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect()
}

fn not_read(path: &Path) -> Fault {
    let place = InFile::whole(path.display().to_string());
    Fault::at(place, "file", "not read", "files NAME.toml", "")
}
