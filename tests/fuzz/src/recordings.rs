//! Recordings: what is no line is passed over, and whatever was measured, the law's limits are limits.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tidegate_agent::recording::Reader;
use tidegate_agent::recording::line::Line;
use tidegate_agent::replay::{Replay, ReplayMoment};

/// Most ticks that are replayed, so that an input takes milliseconds.
const TICKS_MAX: u64 = 2_000;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("recording-{}", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("a temporary file can be written");
    if ticks(&FILE) > TICKS_MAX {
        return;
    }
    // A report is text for people, however the replay went.
    let _text = match Replay::new(None).run(&FILE, &mut check) {
        Ok(report) => report.to_string(),
        Err(stopped) => stopped.to_string(),
    };
});

fn ticks(path: &Path) -> u64 {
    let mut reader = Reader::open(path).expect("it was just written");
    let mut ticks = 0_u64;
    // What is wrong with a file ends its replay as well.
    while let Ok(Some(line)) = reader.next_line() {
        ticks = ticks.saturating_add(match line {
            Line::Tick(tick) => tick.times.max(1),
            Line::Repeat(repeat) => {
                let sum = |sum: u64, times: u64| sum.saturating_add(times);
                let each = repeat.ticks.iter().map(|tick| tick.times.max(1));
                each.fold(0, sum).saturating_mul(repeat.times)
            }
            _ => 0,
        });
    }
    ticks
}

fn check(moment: &ReplayMoment<'_>) {
    let published = moment.published;
    assert!(published.tight <= published.entry, "{published:?}");
    let told = [
        published.allowed_qps,
        published.capacity_qps,
        published.base_rt_s,
    ];
    for number in told.into_iter().flatten() {
        assert!(number.is_finite() && number >= 0.0, "{published:?}");
    }
}
