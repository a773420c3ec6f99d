//! Scripted samples in, state and limits out: the cases that a simulated service does not show.

mod entry;
mod limits;
mod marks;
mod release;

use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::{Law, LawSettings, PublishedLimits, Sample};

const TICK_NS: u64 = 100_000_000;

/// A service on two CPUs that does 100 requests a second of 10 ms each, half busy.
fn half_load() -> Sample {
    Sample {
        tick_ns: TICK_NS,
        cpus: Some(2.0),
        inflight: 1,
        accept_queue: Some(0),
        successes: 10,
        rt_ns: 10 * 10_000_000,
        passed: 10,
        busy: Some(0.5),
        own: Some(0.5),
        waiters: Some(0.0),
        ..Sample::default()
    }
}

/// The same service with its CPUs full and 300 requests piled up.
fn full_load() -> Sample {
    Sample {
        inflight: 300,
        successes: 20,
        rt_ns: 20 * 100_000_000,
        passed: 40,
        busy: Some(1.0),
        own: Some(1.0),
        waiters: Some(50.0),
        ..half_load()
    }
}

fn replay(law: &mut Law, sample: &Sample, ticks: u32) -> PublishedLimits {
    replay_with(law, sample, ticks, &LawSettings::default())
}

fn replay_with(
    law: &mut Law,
    sample: &Sample,
    ticks: u32,
    settings: &LawSettings,
) -> PublishedLimits {
    for _ in 0..ticks {
        law.step(sample, settings);
    }
    *law.published()
}

fn warm() -> Box<Law> {
    let mut law = Box::<Law>::default();
    assert_eq!(
        replay(&mut law, &half_load(), 50).state,
        ScopeState::Healthy
    );
    law
}
