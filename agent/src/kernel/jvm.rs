//! Finds the JVMs of this host: which processes, and which libraries have the probes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::program::Programs;
use super::rung::Lack;
use super::usdt;
use crate::signal::open_below;

/// Probes of a JVM and the programs for them.
const PROBES: &[(&str, &str)] = &[
    ("gc__begin", "gc_begin"),
    ("gc__end", "gc_end"),
    ("safepoint__begin", "safepoint_begin"),
    ("safepoint__end", "safepoint_end"),
];
/// Who declares them in a JVM: safepoints are its own affair.
const PROVIDERS: [&str; 2] = ["hotspot", "hs_private"];
const LIBRARY: &str = "/libjvm.so";

/// Most different libraries that are probed.
const LIBRARIES_MAX: usize = 16;
/// Most processes that are remembered as looked at.
const PROCESSES_MAX: usize = 65_536;

/// Where distributions install JVMs: what other users' processes map cannot be seen without
/// `CAP_SYS_PTRACE`, but one library is shared by all that map it.
const INSTALLED: &[&str] = &["/usr/lib/jvm", "/usr/lib64/jvm", "/opt"];

/// The JVM libraries of the host.
#[derive(Debug, Default)]
pub(super) struct Libraries {
    /// By device and number of the file: those that are probed, and those that cannot be.
    known: BTreeSet<(u64, u64)>,
    /// How many are probed.
    pub(super) probed: usize,
    /// Why one cannot be, the last one.
    pub(super) fault: Option<String>,
    /// Whether one cannot be because probes are not permitted.
    is_denied: bool,
    /// How often each process was looked at.
    looks: BTreeMap<u32, u8>,
    searched: bool,
}

/// Looks at a process: it may begin as a launcher and map its library later.
const LOOKS: u8 = 3;

impl Libraries {
    /// Looks at processes that are new, and probes the libraries that are. To be called once a second.
    pub(super) fn look(&mut self, proc: &Path, programs: &mut Programs) {
        if !self.searched {
            self.searched = true;
            for library in INSTALLED.iter().flat_map(|top| installed(Path::new(top))) {
                self.probe(File::open(&library).ok(), &library, programs);
            }
        }
        let present = pids(proc);
        self.looks.retain(|pid, _looks| present.contains(pid));
        for pid in present {
            if self.looks.len() >= PROCESSES_MAX && !self.looks.contains_key(&pid) {
                continue;
            }
            let looks = self.looks.entry(pid).or_default();
            if *looks < LOOKS {
                *looks = looks.saturating_add(1);
                self.look_at(proc, pid, programs);
            }
        }
    }

    /// Whether there are JVMs to probe and none may be.
    pub(super) fn is_denied(&self) -> bool {
        self.is_denied && self.probed == 0
    }

    /// Looks at every process again, for those that have become a JVM since.
    pub(super) fn look_again(&mut self) {
        self.looks.clear();
    }

    fn look_at(&mut self, proc: &Path, pid: u32, programs: &mut Programs) {
        let process = proc.join(pid.to_string());
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        let libraries: BTreeSet<&str> = libraries(&maps).collect();
        for library in libraries {
            // The owner of a container may have put anything there.
            let file = open_below(&process.join("root"), Path::new(library)).ok();
            self.probe(file, &process.join("root").join(library), programs);
        }
    }

    fn probe(&mut self, file: Option<File>, name: &Path, programs: &mut Programs) {
        let Some((file, found)) = file.and_then(|file| {
            let found = file.metadata().ok()?;
            Some((file, found))
        }) else {
            return;
        };
        let is_known = self.known.contains(&(found.dev(), found.ino()));
        if is_known || self.known.len() >= LIBRARIES_MAX {
            return;
        }
        self.known.insert((found.dev(), found.ino()));
        match attach(&file, programs) {
            Ok(()) => self.probed = self.probed.saturating_add(1),
            Err(Unprobed { lack, why }) => {
                let is_denied = lack == Some(Lack::Capability);
                self.is_denied |= is_denied;
                let name = name.display();
                let fault = if is_denied {
                    format!("{name}: {} ({why})", Lack::NoProbes)
                } else {
                    format!("{name}: {why}")
                };
                tracing::info!(fault, "pauses of a JVM are not seen");
                self.fault = Some(fault);
            }
        }
    }
}

/// Why a library is not probed.
#[derive(Debug)]
struct Unprobed {
    /// The kernel's reason in one word, if it refused.
    lack: Option<Lack>,
    why: String,
}

impl Unprobed {
    fn by(why: &(impl ToString + ?Sized)) -> Self {
        Self {
            lack: None,
            why: why.to_string(),
        }
    }
}

fn attach(library: &File, programs: &mut Programs) -> Result<(), Unprobed> {
    let file = library.try_clone().map_err(|error| Unprobed::by(&error))?;
    let probes = usdt::of_file(file).map_err(|error| Unprobed::by(&error))?;
    // By its descriptor, so that it is the file that was looked into.
    let path = format!("/proc/self/fd/{}", library.as_raw_fd());
    let mut attached = 0_usize;
    for (name, program) in PROBES {
        let named = |probe: &&usdt::Probe| {
            probe.name == *name && PROVIDERS.contains(&probe.provider.as_str())
        };
        for probe in probes.iter().filter(named) {
            programs
                .attach_probe(program, Path::new(&path), probe.place)
                .map_err(|refused| Unprobed {
                    lack: Some(refused.lack),
                    why: refused.detail,
                })?;
            attached = attached.saturating_add(1);
        }
    }
    if attached == 0 {
        return Err(Unprobed::by(
            "it has probes, but not those of a JVM's pauses",
        ));
    }
    Ok(())
}

/// Libraries of JVMs that are installed below a directory.
fn installed(top: &Path) -> Vec<PathBuf> {
    let homes = fs::read_dir(top).into_iter().flatten().flatten();
    homes
        .map(|home| home.path().join("lib/server/libjvm.so"))
        .filter(|library| library.is_file())
        .collect()
}

fn pids(proc: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// Paths of JVM libraries in a `maps` file, without their leading `/`.
fn libraries(maps: &str) -> impl Iterator<Item = &str> {
    maps.lines().filter_map(|line| {
        let path = line.get(line.find('/')?..)?;
        path.ends_with(LIBRARY)
            .then(|| path.trim_start_matches('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jvm_is_known_by_the_library_it_maps() {
        let maps = "\
7f00-7f01 r-xp 00000000 08:01 77 /usr/lib/jvm/java 17/lib/server/libjvm.so
7f01-7f02 rw-p 00000000 00:00 0
7f02-7f03 r--p 00000000 08:01 78 /tmp/libjvm.so (deleted)
7f03-7f04 r--p 00000000 08:01 79 /usr/lib/libc.so.6
";
        let found: Vec<_> = libraries(maps).collect();
        assert_eq!(found, ["usr/lib/jvm/java 17/lib/server/libjvm.so"]);
    }
}
