//! Finds the JVMs of this host: which processes, and which libraries have the probes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::program::Programs;
use super::usdt;
use crate::procfs::Lack;
use crate::procfs::{names_jvm, open_below};

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

/// Where distributions install JVMs: the roots of other users' processes are closed without
/// `CAP_SYS_PTRACE`, but one library is shared by all that map it.
const INSTALLED: &[&str] = &["/usr/lib/jvm", "/usr/lib64/jvm", "/opt"];

/// Threads of a process that are looked at for a name that tells a JVM. It has that thread early.
const THREADS_MAX: usize = 64;

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
}

/// Looks at a process: it may begin as a launcher and map its library later.
const LOOKS: u8 = 3;

/// A library that was found, and what it is called.
#[derive(Debug)]
struct Found {
    file: File,
    name: PathBuf,
}

impl Libraries {
    /// Looks at processes that are new, and probes the libraries that are. To be called once a second.
    ///
    /// Without a JVM nothing is probed: the kernel takes a tenth of a second to take a probe away.
    pub(super) fn look(&mut self, proc: &Path, programs: &mut Programs) {
        for found in self.find(proc, INSTALLED) {
            self.probe(&found, programs);
        }
    }

    /// Libraries that are not known yet, of processes that are looked at now.
    fn find(&mut self, proc: &Path, installed: &[&str]) -> Vec<Found> {
        let present = pids(proc);
        self.looks.retain(|pid, _looks| present.contains(pid));
        let mut found = Vec::new();
        for pid in present {
            if self.looks.len() >= PROCESSES_MAX && !self.looks.contains_key(&pid) {
                continue;
            }
            let looks = self.looks.entry(pid).or_default();
            if *looks < LOOKS {
                *looks = looks.saturating_add(1);
                let candidates = of_process(&proc.join(pid.to_string()), installed);
                found.extend(candidates.into_iter().filter(|found| self.is_new(found)));
            }
        }
        found
    }

    /// Whether a library was not met before; it has been from now on.
    fn is_new(&mut self, found: &Found) -> bool {
        let Ok(meta) = found.file.metadata() else {
            return false;
        };
        self.known.len() < LIBRARIES_MAX && self.known.insert((meta.dev(), meta.ino()))
    }

    /// Whether there are JVMs to probe and none may be.
    pub(super) fn is_denied(&self) -> bool {
        self.is_denied && self.probed == 0
    }

    /// Looks at every process again, for those that have become a JVM since.
    pub(super) fn look_again(&mut self) {
        self.looks.clear();
    }

    fn probe(&mut self, found: &Found, programs: &mut Programs) {
        match attach(&found.file, programs) {
            Ok(()) => self.probed = self.probed.saturating_add(1),
            Err(Unprobed { lack, why }) => {
                let is_denied = matches!(lack, Some(Lack::Capability | Lack::LockedMemory));
                self.is_denied |= is_denied;
                let name = found.name.display();
                let fault = if is_denied {
                    format!("{name}: {} ({why})", Lack::NoProbes)
                } else {
                    format!("{name}: {why}")
                };
                tracing::info!(
                    event = "jvm_probe_failed",
                    fault,
                    "pauses of a JVM cannot be measured"
                );
                self.fault = Some(fault);
            }
        }
    }
}

/// The JVM libraries that a process maps. Where they cannot be seen or opened, all that are installed.
fn of_process(process: &Path, installed: &[&str]) -> Vec<Found> {
    let opened = match fs::read_to_string(process.join("maps")) {
        Ok(maps) => mapped(&maps, &process.join("root")),
        Err(_hidden) => (!is_jvm(process)).then(Vec::new),
    };
    opened.unwrap_or_else(|| {
        let tops = installed.iter().map(Path::new);
        let names = tops.flat_map(libraries_below);
        let found = names.filter_map(|name| {
            let file = File::open(&name).ok()?;
            Some(Found { file, name })
        });
        found.collect()
    })
}

/// The JVM libraries in a `maps` file; `None` if one cannot be opened below the root of its process. To read
/// what a process maps, a kernel may ask for less than to go into its root.
fn mapped(maps: &str, root: &Path) -> Option<Vec<Found>> {
    // Each is mapped in several pieces.
    let names: BTreeSet<&str> = libraries(maps).collect();
    let found = names.into_iter().map(|library| {
        // The owner of a container may have put anything there.
        let file = open_below(root, Path::new(library)).ok()?;
        let name = root.join(library);
        Some(Found { file, name })
    });
    found.collect()
}

/// Whether a process is a JVM by the names of its threads, which everybody may read.
fn is_jvm(process: &Path) -> bool {
    let threads = fs::read_dir(process.join("task"));
    let mut threads = threads.into_iter().flatten().flatten().take(THREADS_MAX);
    threads.any(|thread| {
        let name = fs::read(thread.path().join("comm")).unwrap_or_default();
        let is_first = Some(thread.file_name().as_os_str()) == process.file_name();
        names_jvm(is_first, name.trim_ascii_end())
    })
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
fn libraries_below(top: &Path) -> Vec<PathBuf> {
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

    const MAPS_OF_A_JVM: &str = "7f00-7f01 r-xp 00000000 08:01 7 /lib/libjvm.so\n";

    /// A process whose maps cannot be read, with threads of these names.
    fn hidden(proc: &Path, pid: u32, threads: &[&str]) {
        let process = proc.join(pid.to_string());
        fs::create_dir_all(process.join("maps")).unwrap();
        for (thread, tid) in threads.iter().zip(pid..) {
            let task = process.join("task").join(tid.to_string());
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("{thread}\n")).unwrap();
        }
    }

    #[test]
    fn installed_libraries_are_looked_for_when_a_jvm_runs_that_hides_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (proc, jvms) = (folder.path().join("proc"), folder.path().join("jvm"));
        let home = jvms.join("java-17/lib/server");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("libjvm.so"), "").unwrap();
        let installed = [jvms.to_str().unwrap()];
        let mut libraries = Libraries::default();
        let mut found = |pid, threads: &[&str]| {
            hidden(&proc, pid, threads);
            libraries.find(&proc, &installed).len()
        };
        assert_eq!(found(10, &["bash"]), 0);
        assert_eq!(found(20, &["server", "java", "worker"]), 0);
        assert_eq!(found(30, &["launcher", "launcher", "VM Thread"]), 1);
        assert_eq!(found(40, &["java"]), 0, "it is known");

        // One that shows its maps, but not its root.
        let process = proc.join("50");
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("maps"), MAPS_OF_A_JVM).unwrap();
        assert_eq!(of_process(&process, &installed).len(), 1);
    }

    #[test]
    fn a_launcher_is_looked_at_again_until_it_is_a_jvm() {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("proc/7");
        fs::create_dir_all(process.join("root/lib")).unwrap();
        fs::write(process.join("root/lib/libjvm.so"), "").unwrap();
        fs::write(process.join("maps"), "").unwrap();
        let mut libraries = Libraries::default();
        let mut found = || {
            let found = libraries.find(&folder.path().join("proc"), &[]);
            found
                .into_iter()
                .map(|found| found.name)
                .collect::<Vec<_>>()
        };
        assert!(found().is_empty());
        fs::write(
            process.join("maps"),
            "7f00-7f01 r-xp 0 08:01 7 /lib/libjvm.so\n",
        )
        .unwrap();
        assert_eq!(found(), [process.join("root/lib/libjvm.so")]);
        assert!(found().is_empty());
    }
}
