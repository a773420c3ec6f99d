//! Whether this thread has its core to itself.
//!
//! Two virtual processors can be one core, and on a shared machine the other one is often another's. What runs
//! there takes half of the places in which instructions begin, and no counter of the guest tells. A run of
//! instructions that do not wait for each other does: it takes as long as there are places for it, so that it
//! is slower beside a neighbour and at no other time.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use super::cpus::{self, Pinned};

/// Steps of one probe; about a microsecond.
const STEPS: u32 = 600;

/// Words that are turned side by side: more than any core begins at once.
const CHAINS: usize = 8;

/// How much slower than the quickest probe one may be on a core of its own. A neighbour makes it 1.3 to 2 times as
/// slow.
const OWN_AT_MOST: f64 = 1.15;

/// How long to stay on a CPU whose core is shared while looking for one that is not.
const STAY: Duration = Duration::from_millis(20);

/// How long to look at all CPUs before the first figure.
const LOOK: Duration = Duration::from_secs(3);

thread_local! {
    /// The thread's quickest probe so far, ns.
    static QUICKEST: Cell<f64> = const { Cell::new(f64::INFINITY) };
}

/// Time of a probe, ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe(f64);

impl Probe {
    /// Probes the core that the thread is on. One piece of code wherever it is called: a copy may be quicker.
    #[inline(never)]
    pub(super) fn take() -> Self {
        let mut chains: [u64; CHAINS] = black_box([3, 5, 7, 11, 13, 17, 19, 23]);
        let start = Instant::now();
        for _step in 0..STEPS {
            for chain in &mut chains {
                *chain = chain.rotate_left(7) ^ 0x55;
            }
        }
        let time_ns = start.elapsed().as_secs_f64() * 1e9;
        black_box(chains);
        QUICKEST.set(QUICKEST.get().min(time_ns));
        Self(time_ns)
    }

    /// The slower of two.
    pub(super) const fn or_slower(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Whether nothing else used the core meanwhile, as far as the quickest probe so far tells.
    pub(super) fn own(self) -> bool {
        self.0 <= QUICKEST.get() * OWN_AT_MOST
    }
}

/// Probes every CPU in turn for some seconds, to know how quick a probe can be before anything is measured.
pub(super) fn look_around() {
    let mut place = Place::first();
    let begun = Instant::now();
    while begun.elapsed() < LOOK {
        let here = Instant::now();
        while here.elapsed() < STAY {
            Probe::take();
        }
        place.move_on();
    }
}

/// The CPU that a figure is measured on; dropped, the thread is where it was.
#[derive(Debug)]
pub(super) struct Place {
    nth: usize,
    pinned: Option<Pinned>,
}

impl Place {
    /// The first CPU that is allowed.
    pub(super) fn first() -> Self {
        let pinned = Some(cpus::pin(0));
        Self { nth: 0, pinned }
    }

    /// Waits until the core is this thread's own, here or on another CPU; `false` = not until `end`.
    pub(super) fn own_core(&mut self, end: Instant) -> bool {
        let mut since = Instant::now();
        while !Probe::take().own() {
            let now = Instant::now();
            if now >= end {
                return false;
            }
            if now.duration_since(since) >= STAY {
                self.move_on();
                since = now;
            }
        }
        true
    }

    fn move_on(&mut self) {
        // First back to where it was: while it is pinned, one CPU is all it is allowed.
        self.pinned = None;
        self.nth = self.nth.saturating_add(1) % cpus::allowed().len().max(1);
        self.pinned = Some(cpus::pin(self.nth));
    }
}
