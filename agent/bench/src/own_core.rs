//! Whether this thread has its core to itself.
//!
//! Two virtual processors can be one core, and on a shared machine the other one is often another's. While
//! something runs there, this one has half of the places in which a core holds instructions that are not done yet, and
//! no counter of the guest tells. Short chains of reads that do: each chain takes a while, so that it depends on
//! those places how many of them go on at once.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::cpus::{self, Pinned};

/// Chains of one probe, which takes less than a microsecond.
const CHAINS: usize = 60;

/// Reads of a chain, each of a place that the one before told.
const READS: usize = 24;

/// Places that are read; they stay in the nearest cache.
const PLACES: usize = 64;

/// How much slower than the quickest probe one may be on a core of its own. Beside a neighbour it takes 1.2 to 2 times
/// as long.
const OWN_AT_MOST: f64 = 1.1;

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
pub(crate) struct Probe(f64);

impl Probe {
    /// Probes the core that the thread is on. One piece of code wherever it is called: a copy may be quicker.
    #[inline(never)]
    pub(crate) fn take() -> Self {
        let next: [usize; PLACES] =
            black_box(std::array::from_fn(|place| (place * 29 + 7) % PLACES));
        let start = Instant::now();
        let ends = (0..CHAINS).map(|first| {
            let read = |place: usize, _read| next.get(place % PLACES).copied().unwrap_or(0);
            (0..READS).fold(first, read)
        });
        black_box(ends.fold(0, |all, end| all ^ end));
        let time_ns = start.elapsed().as_secs_f64() * 1e9;
        QUICKEST.set(QUICKEST.get().min(time_ns));
        Self(time_ns)
    }

    /// The slower of two.
    pub(crate) const fn or_slower(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// Whether nothing else used the core meanwhile, as far as the quickest probe so far tells.
    pub(crate) fn own(self) -> bool {
        self.0 <= QUICKEST.get() * OWN_AT_MOST
    }
}

/// Probes every CPU in turn for some seconds, to know how quick a probe can be before anything is measured.
pub(crate) fn look_around() {
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

/// Measures, and once more where a probe was so much quicker meanwhile that what was measured before was not on
/// a core of its own.
pub(crate) fn twice_if_mistaken<T>(measure: impl Fn() -> T) -> T {
    let known = QUICKEST.get();
    let measured = measure();
    if known > QUICKEST.get() * OWN_AT_MOST {
        return measure();
    }
    measured
}

/// The CPU that a figure is measured on; dropped, the thread is where it was.
#[derive(Debug)]
pub(crate) struct Place {
    nth: usize,
    pinned: Option<Pinned>,
}

impl Place {
    /// The first CPU that is allowed.
    pub(crate) fn first() -> Self {
        let pinned = Some(cpus::pin(0));
        Self { nth: 0, pinned }
    }

    /// Waits until the core is this thread's own, here or on another CPU; `false` = not until `end`.
    pub(crate) fn own_core(&mut self, end: Instant) -> bool {
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
