//! What a tick costs: 200 processes in 20 groups of their own, on pages of the usual size.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_abi::decision::LossMode;
use tidegate_segment::clock::monotonic_ns;

use super::{Allocations, Figure, NoFigure};
use crate::config::Config;
use crate::control::{Declared, Driver, Pages, Plan};
use crate::signal::{Roots, Sampler};
use crate::tenant::{Settings, Tenant};

const GROUPS: usize = 20;
const PROCESSES: usize = 10;
const TICK: Duration = Duration::from_millis(100);
/// Looks at threads are spread over a second, and the second look grows what keeps them.
const WARM_UP: u32 = 30;
const TICKS: u32 = 50;
const NS_PER_S: i64 = 1_000_000_000;

/// Measures the tick and its allocations.
pub(super) fn figures(allocations: Allocations) -> [Figure; 2] {
    let (time, made) = match measure(allocations) {
        Ok((time_us, made)) => (Ok(time_us), made),
        Err(error) => {
            let again = NoFigure::Wrong(error.to_string());
            (Err(error), Err(again))
        }
    };
    [
        Figure {
            name: "tick_us",
            how: "CPU time of a tick with 200 processes in 20 groups, mean of 50 ticks, 10 a second",
            value: time,
        },
        Figure {
            name: "tick_allocations",
            how: "allocations in those 50 ticks",
            value: made,
        },
    ]
}

type Made = Result<f64, NoFigure>;

fn measure(allocations: Allocations) -> Result<(f64, Made), NoFigure> {
    let crowd = Crowd::start()?;
    let mut driver = driver(&crowd)?;
    run(&mut driver, WARM_UP);
    let before = allocations();
    let begin_ns = cpu_time_ns();
    run(&mut driver, TICKS);
    let spent_ns = cpu_time_ns().saturating_sub(begin_ns);
    let made = before.zip(allocations());
    let made = made.map(|(before, after)| f64::from(narrow(after.saturating_sub(before))));
    let uncounted = || NoFigure::Wrong("this program does not count allocations".to_owned());
    let mean_us = f64::from(narrow(spent_ns / 1000)) / f64::from(TICKS);
    Ok((mean_us, made.ok_or_else(uncounted)))
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Ticks at the pace of an agent, so that caches are as cold as there.
fn run(driver: &mut Driver, ticks: u32) {
    for _tick in 0..ticks {
        std::thread::park_timeout(TICK);
        driver.tick(monotonic_ns(), Duration::ZERO);
    }
}

/// CPU time of this thread, ns.
fn cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let time_ns = time.tv_sec.saturating_mul(NS_PER_S);
    u64::try_from(time_ns.saturating_add(time.tv_nsec)).unwrap_or(0)
}

fn driver(crowd: &Crowd) -> Result<Box<Driver>, NoFigure> {
    let sampler = Sampler::new(Roots::default());
    let (driver, _handle) = Driver::new(sampler, vec![pages()?], plan(crowd));
    Ok(driver)
}

fn pages() -> Result<Pages, NoFigure> {
    let geometry = Config::default().pages.geometry();
    let settings = Settings {
        geometry: geometry.map_err(|fault| NoFigure::Wrong(format!("{fault:?}")))?,
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let created = Tenant::create(&settings);
    let (tenant, writer) = created.map_err(|error| NoFigure::Wrong(error.to_string()))?;
    Ok(Pages {
        writer,
        ledger: *tenant.ledger(),
    })
}

fn plan(crowd: &Crowd) -> Plan {
    Plan {
        declared: vec![Declared {
            name: "bench".into(),
            cgroup: format!("/{}/*", crowd.name).into(),
            cpus: None,
            settings: Arc::default(),
        }],
        ..Plan::default()
    }
}

/// Processes that sleep, in groups of their own; all are gone when dropped.
#[derive(Debug)]
struct Crowd {
    name: String,
    /// In the order in which they were made.
    directories: Vec<PathBuf>,
    children: Vec<Child>,
}

impl Crowd {
    fn start() -> Result<Self, NoFigure> {
        let mut crowd = Self {
            name: format!("tidegate-bench-{}", std::process::id()),
            directories: Vec::new(),
            children: Vec::new(),
        };
        let refused = NoFigure::kernel("cannot make groups; root and a cpu controller are needed");
        crowd.fill().map_err(refused)?;
        Ok(crowd)
    }

    fn fill(&mut self) -> std::io::Result<()> {
        let tops = tops().map(|top| top.join(&self.name));
        for top in &tops {
            self.make(top.clone())?;
        }
        for group in 0..GROUPS {
            let places = tops.clone().map(|top| top.join(group.to_string()));
            for place in &places {
                self.make(place.clone())?;
            }
            for _process in 0..PROCESSES {
                let child = Command::new("sleep")
                    .arg("600")
                    .stdin(Stdio::null())
                    .spawn()?;
                let pid = child.id().to_string();
                self.children.push(child);
                for place in &places {
                    fs::write(place.join("cgroup.procs"), &pid)?;
                }
            }
        }
        Ok(())
    }

    fn make(&mut self, directory: PathBuf) -> std::io::Result<()> {
        if !directory.is_dir() {
            fs::create_dir(&directory)?;
            self.directories.push(directory);
        }
        Ok(())
    }
}

/// The mounts that account for CPU; with cgroup v2 and joint controllers they are one.
fn tops() -> [PathBuf; 2] {
    let mount = Path::new("/sys/fs/cgroup");
    if mount.join("cgroup.controllers").exists() {
        return [mount.to_owned(), mount.to_owned()];
    }
    [mount.join("cpu"), mount.join("cpuacct")]
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended already is as good.
            let _ended = child.kill().and_then(|()| child.wait());
        }
        for directory in self.directories.iter().rev() {
            // A group left behind does no harm.
            let _gone: std::io::Result<()> = fs::remove_dir(directory);
        }
    }
}
