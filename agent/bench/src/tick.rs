//! What a tick costs: 200 processes in 20 groups of their own, on pages of the usual size.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::{Geometry, SizeFault};
use tidegate_segment::clock::monotonic_ns;

use crate::crowd::SleepingProcesses;
use crate::figure::{Allocations, Figure, NoFigure};
use tidegate_agent::config::Config;
use tidegate_agent::control::{DeclaredGroup, Driver, Plan, TenantPages};
use tidegate_agent::procfs::Roots;
use tidegate_agent::signal::Sampler;
use tidegate_agent::tenant::{Tenant, TenantSettings};

const TICK: Duration = Duration::from_millis(100);
/// The first looks at all threads open their files, the next grow what keeps them: as much as the test of allocations
/// waits for.
const WARM_UP: u32 = 100;
const TICKS: u32 = 50;
const NS_PER_S: i64 = 1_000_000_000;

/// Measures the tick and its allocations.
pub(crate) fn figures(allocations: Allocations) -> [Figure; 2] {
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
    let refused = NoFigure::kernel("cannot make groups; root and a cpu controller are needed");
    let crowd = SleepingProcesses::start("bench").map_err(refused)?;
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

fn driver(crowd: &SleepingProcesses) -> Result<Box<Driver>, NoFigure> {
    let sampler = Sampler::new(Roots::default());
    let (driver, _handle) = Driver::new(sampler, vec![pages()?], plan(crowd));
    Ok(driver)
}

fn pages() -> Result<TenantPages, NoFigure> {
    let geometry = geometry();
    let settings = TenantSettings {
        geometry: geometry.map_err(|fault| NoFigure::Wrong(format!("{fault:?}")))?,
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let created = Tenant::create(&settings);
    let (tenant, writer) = created.map_err(|error| NoFigure::Wrong(error.to_string()))?;
    Ok(TenantPages {
        writer,
        ledger: *tenant.ledger(),
    })
}

/// A whole configuration is too large to stand on the stack beside a tenant.
#[inline(never)]
fn geometry() -> Result<Geometry, SizeFault> {
    Config::default().pages.geometry()
}

fn plan(crowd: &SleepingProcesses) -> Plan {
    Plan {
        declared: vec![DeclaredGroup {
            name: "bench".into(),
            cgroup: crowd.pattern().into(),
            cpus: None,
            settings: Arc::default(),
        }],
        ..Plan::default()
    }
}
