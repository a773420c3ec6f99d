//! The thread that ticks.

use std::time::{Duration, Instant};

use tidegate_agent::control::{Driver, Plan, start};
use tidegate_agent::procfs::Roots;
use tidegate_agent::signal::{PressureTriggers, Sampler};
use tidegate_segment::board::AgentLife;
use tidegate_segment::clock::monotonic_ns;

use crate::bench::tenant;

#[test]
fn the_sampler_thread_ticks_on_time_and_stops_when_told() {
    let (tenant, board, ..) = tenant();
    let sampler = Sampler::new(Roots::default());
    let (driver, handle) = Driver::new(sampler, vec![tenant], Plan::default());
    let (told, lates) = std::sync::mpsc::sync_channel(64);
    let started = Instant::now();
    let on_late = move |late| {
        // The test takes the first five and leaves.
        let _full: Result<(), _> = told.try_send(late);
    };
    let triggers = PressureTriggers::arm(false, &Roots::default());
    let tick = Duration::from_millis(20);
    let ticking = start(driver, triggers, tick, on_late).expect("it starts");
    for _tick in 0..5 {
        lates
            .recv_timeout(Duration::from_secs(10))
            .expect("a tick within the deadline");
    }
    assert!(started.elapsed() >= Duration::from_millis(100));
    ticking.stop();
    assert!(board.tick() >= 5);
    assert_eq!(board.agent_life(monotonic_ns()), AgentLife::Present);
    let snapshot = handle.snapshot();
    assert!(snapshot.ticks >= 5);
    assert!(snapshot.late_p99 >= snapshot.late || snapshot.late > Duration::ZERO);
}
