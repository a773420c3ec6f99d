//! Where the control group hierarchies are mounted, and where a group stands in each.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::missing::{Missing, NamedSource as _, NoValue};
use super::parse::innermost_pid::innermost_pid;
use super::parse::membership::{self, Membership};
use super::parse::mount_info::{self, CgroupMount};
use super::roots::Roots;
use super::view::{Own, View};

/// The generation of control groups that tells a controller's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// One hierarchy for each controller or joint set of controllers.
    V1,
    /// The unified hierarchy.
    V2,
}

/// The hierarchies in sight.
#[derive(Debug)]
pub(crate) struct Layout {
    roots: Roots,
    views: Vec<View>,
}

/// One group in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which generation of files it has.
    pub(crate) version: Version,
    /// Where the hierarchy is mounted.
    pub(crate) point: PathBuf,
    /// The group below the mount; empty for the top.
    pub(crate) below: PathBuf,
    /// Whether names of files lack that of their controller.
    pub(crate) has_no_prefix: bool,
    /// Whether nothing is above the mount.
    pub(crate) is_whole: bool,
}

impl Place {
    /// The group's directory.
    pub(crate) fn dir(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() {
            self.point.clone()
        } else {
            self.point.join(&self.below)
        }
    }

    /// The group and every group above it up to the mount, the group itself first.
    pub(crate) fn chain(&self) -> impl Iterator<Item = Self> + '_ {
        self.below.ancestors().map(|below| Self {
            below: below.to_path_buf(),
            ..self.clone()
        })
    }
}

/// One group in every hierarchy that tells something of it, or why a hierarchy does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Quota and throttling.
    pub(crate) cpu: Result<Place, Missing>,
    /// CPU time used.
    pub(crate) cpuacct: Result<Place, Missing>,
    /// Allowed CPUs.
    pub(crate) cpuset: Result<Place, Missing>,
    /// Pressure.
    pub(crate) unified: Result<Place, Missing>,
}

impl Places {
    /// Whether each hierarchy that is mounted has a group for it.
    pub(crate) fn all_found(&self) -> bool {
        let out_of_sight = |place: &Result<Place, Missing>| {
            place
                .as_ref()
                .is_err_and(|missing| missing.fault == NoValue::OutOfSight)
        };
        ![&self.cpuacct, &self.cpuset].into_iter().any(out_of_sight)
    }
}

impl Layout {
    /// Finds the mounts in mountinfo, or, where that tells none (a fixture, a hidden `/proc`), by the
    /// usual directories below the tree that stands for `/sys/fs/cgroup`.
    pub(crate) fn discover(roots: Roots) -> Self {
        let told = fs::read(roots.proc_file("self/mountinfo")).unwrap_or_default();
        let own = membership_of(&roots, "self");
        let in_sight = |mount: CgroupMount| {
            Some(CgroupMount {
                point: roots.mount_point(&mount.point)?,
                ..mount
            })
        };
        let mut mounts: Vec<_> = mount_info::parse(&told)
            .into_iter()
            .filter_map(in_sight)
            .collect();
        mounts.retain(|mount| mount.point.is_dir());
        if mounts.is_empty() {
            mounts = usual_mounts(&roots.cgroup);
        }
        let pid = own_pid(&roots);
        let view = |mount: CgroupMount| {
            let path = own.as_ref().ok().and_then(|own| own.in_mount(&mount));
            View::new(mount, &Own { pid, path })
        };
        Self {
            views: mounts.into_iter().map(view).collect(),
            roots,
        }
    }

    /// Directory of the group at the top of the cpu hierarchy.
    pub(crate) fn top(&self) -> Option<&Path> {
        Some(&self.view_of("cpu")?.mount.point)
    }

    /// Tops of the hierarchies that have no cpu controller.
    pub(crate) fn other_tops(&self) -> impl Iterator<Item = &Path> {
        let points = self.views.iter().map(|view| view.mount.point.as_path());
        points.filter(|point| Some(*point) != self.top())
    }

    /// The hierarchy of a controller: its own one, else the unified one.
    fn view_of(&self, controller: &str) -> Option<&View> {
        let mut views = self.views.iter();
        let v1 = views.find(|view| view.mount.has_v1(controller));
        v1.or_else(|| self.views.iter().find(|view| view.mount.is_v2()))
    }

    /// The group that stands for the reader's own where the path of that is hidden: the top of what is mounted, unless
    /// that is above the reader's namespace.
    ///
    /// # Errors
    /// No hierarchy is mounted, or its top is not the reader's.
    pub(crate) fn own_by_mount(&self) -> Result<Places, Missing> {
        let view = self.view_of("cpu").ok_or(NoValue::NotMounted);
        let own = view.and_then(|view| {
            let is_own = view.begins_with_own();
            is_own.then_some(()).ok_or(NoValue::OutOfSight)
        });
        own.named("cpu")?;
        Ok(self.places_of_path(Path::new("/")))
    }

    /// Whether the cpu controller has a hierarchy of its own, beside the unified one.
    pub(crate) fn has_cpu_hierarchy(&self) -> bool {
        self.views.iter().any(|view| view.mount.has_v1("cpu"))
    }

    /// Directory of the group of a process in the cpu hierarchy.
    pub(crate) fn dir_of_process(&self, pid: u32) -> Option<PathBuf> {
        let places = self.places_of_process(Some(pid)).ok()?;
        Some(places.cpu.ok()?.dir())
    }

    /// The places of the group of a process; `None` is this process itself.
    ///
    /// # Errors
    /// Its `cgroup` file cannot be read.
    pub(crate) fn places_of_process(&self, pid: Option<u32>) -> Result<Places, Missing> {
        let owner = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        let membership = membership_of(&self.roots, &owner).named("/proc/PID/cgroup")?;
        Ok(Self::places(&|controller| {
            self.place_of_member(controller, &membership)
        }))
    }

    /// The places of the group at `path` below the mount of the cpu controller. Where the
    /// hierarchies differ, a process of the group tells the others.
    pub(crate) fn places_of_path(&self, path: &Path) -> Places {
        let below = path.strip_prefix("/").unwrap_or(path);
        let places = Self::places(&|controller| self.place_of_path(controller, below));
        let member = places
            .cpu
            .as_ref()
            .ok()
            .and_then(|cpu| first_process(&cpu.dir()));
        match member.map(|pid| self.places_of_process(Some(pid))) {
            Some(Ok(told)) if told.cpu == places.cpu => told,
            _ => places,
        }
    }

    fn places(find: &dyn Fn(&'static str) -> Result<Place, Missing>) -> Places {
        let cpu = find("cpu");
        // The unified hierarchy tells of this group only if it sets the same group apart; with a v1
        // cpu controller all processes may be at its top.
        let apart = |place: Place| match &cpu {
            Ok(cpu) if cpu.below == place.below => Ok(place),
            _ => Err(Missing {
                source: "cgroup2",
                fault: NoValue::NotSetApart,
            }),
        };
        let cpuacct = find("cpuacct").and_then(|place| match place.version {
            Version::V1 => Ok(place),
            Version::V2 => apart(place),
        });
        let unified = find(UNIFIED).and_then(apart);
        Places {
            cpuacct,
            cpuset: find("cpuset"),
            unified,
            cpu,
        }
    }

    /// The group of a process in the hierarchy of a controller: v1 if the process is listed there by
    /// the exact name, else the unified one.
    fn place_of_member(
        &self,
        controller: &'static str,
        membership: &Membership,
    ) -> Result<Place, Missing> {
        let v1 = membership.v1(controller);
        let path = v1
            .or(membership.v2())
            .ok_or(NoValue::NotMounted)
            .named(controller)?;
        let mut fault = NoValue::NotMounted;
        for view in &self.views {
            if !(if v1.is_some() {
                view.mount.has_v1(controller)
            } else {
                view.mount.is_v2()
            }) {
                continue;
            }
            match view.below(path) {
                Some(below) => return Ok(place(view, below)),
                None => fault = NoValue::OutOfSight,
            }
        }
        Err(Missing {
            source: controller,
            fault,
        })
    }

    /// The group at a path in the hierarchy of a controller. A CPU set binds all groups below it, so
    /// the nearest group that is there will do; for anything else it must be the group itself.
    fn place_of_path(&self, controller: &'static str, below: &Path) -> Result<Place, Missing> {
        let view = self.view_of(controller);
        let view = view.ok_or(NoValue::NotMounted).named(controller)?;
        let found = place(view, below.to_path_buf());
        if controller == "cpu" || found.dir().is_dir() {
            return Ok(found);
        }
        let mut above = found.chain().filter(|place| place.dir().is_dir());
        match above.next() {
            Some(nearest) if controller == "cpuset" => Ok(nearest),
            _ => Err(Missing {
                source: controller,
                fault: NoValue::OutOfSight,
            }),
        }
    }
}

/// Stands for "no v1 controller of that name", so that the unified hierarchy is taken.
const UNIFIED: &str = "cgroup2";

fn place(view: &View, below: PathBuf) -> Place {
    let mount = &view.mount;
    let version = if mount.is_v2() {
        Version::V2
    } else {
        Version::V1
    };
    Place {
        version,
        point: mount.point.clone(),
        below,
        has_no_prefix: mount.has_no_prefix(),
        is_whole: view.is_whole,
    }
}

fn membership_of(roots: &Roots, owner: &str) -> Result<Membership, NoValue> {
    let path = roots.proc.join(owner).join("cgroup");
    let bytes = fs::read(path).map_err(|error| NoValue::of(&error))?;
    membership::parse(&bytes)
}

/// The pid by which lists of the kernel call this process. A `/proc` of an outer pid namespace calls it otherwise.
fn own_pid(roots: &Roots) -> u32 {
    let status = fs::read(roots.proc_file("self/status")).unwrap_or_default();
    let told = innermost_pid(&status).and_then(|pid| u32::try_from(pid).ok());
    told.unwrap_or_else(std::process::id)
}

/// A path for people and labels. What is no UTF-8 or no character to print is written as `\xNN`, so that two groups
/// are never called alike and none of them writes on a terminal what it likes.
pub(crate) fn readable(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() {
                let mut bytes = [0; 4];
                escape(letter.encode_utf8(&mut bytes).as_bytes(), &mut text);
            } else {
                text.push(letter);
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _written = write!(text, "\\x{byte:02x}");
    }
}

fn first_process(dir: &Path) -> Option<u32> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).ok()?;
    text.lines().next()?.parse().ok().filter(|pid| *pid != 0)
}

/// Hierarchies by their usual places: the unified one at the top or, beside others, in `unified`; the
/// others in directories named after their controllers.
fn usual_mounts(root: &Path) -> Vec<CgroupMount> {
    let mount = |point: PathBuf, controllers| CgroupMount {
        root: "/".into(),
        point,
        controllers,
    };
    let at_top = mount(root.to_path_buf(), None);
    if root.join("cgroup.controllers").exists() {
        return vec![at_top];
    }
    // An empty directory is there on every system, whether anything is mounted or not.
    let is_empty = fs::read_dir(root).is_ok_and(|mut names| names.next().is_none());
    if is_empty {
        return Vec::new();
    }
    let there = |name: &str| Some(root.join(name)).filter(|point| point.is_dir());
    let mut found: Vec<CgroupMount> = ["cpu,cpuacct", "cpu", "cpuacct", "cpuset"]
        .iter()
        .filter_map(|name| Some((there(name)?, name)))
        .map(|(point, name)| mount(point, Some(name.split(',').map(str::to_owned).collect())))
        .collect();
    found.extend(there("unified").map(|point| mount(point, None)));
    if found.is_empty() {
        vec![at_top]
    } else {
        found
    }
}
