//! The automatic bulkhead: which resource fills a scope whose CPU is idle, and how many of its requests may stay.
//!
//! Where a service waits for something slow, its requests pile up while the CPU has nothing to do. One limit for all
//! of them refuses those that have nothing to do with it. Two things tell them apart:
//!
//! * *Time*. All requests wait equally long for a worker; those that wait for something else take longer by just that.
//!   What a resource's answers take longer than the others', times its answers a second, is what it *keeps busy*.
//! * Where nothing is answered any more, the *order of events*: the one that waits grows first, and the others grow
//!   after it, when it has taken all workers. While the others are within their usual, the *suspect* is the resource
//!   that holds twice what they do, and more.
//!
//! Requests *pile up* in overload without a short CPU, or while the scope holds its entry limit and the others more
//! than their usual. After [`BulkheadSettings::after_ns`] of that the one to blame is held to a share of what it keeps busy,
//! or had in flight when the others were last well ([`BulkheadSettings::share`]). Nobody is held where the others are hardly
//! asked for: there is nobody to protect.
//!
//! * It is let go when it has needed less than half of that for `QUIET_NS`, or when the others are no better after
//!   `HELP_NS`; then none is held in the scope for `REST_NS`.
//!
//! Where requests that wait and requests that do not are one resource, or all wait for the same, there is nothing to
//! see, and only the caller can tell them apart.

use crate::number::double;

/// Resources of a scope that are held at once.
pub const HELD_MAX: usize = 4;

/// Time in which a mean follows what is in flight, ns.
const MEAN_NS: f64 = 10e9;
/// Requests in flight that are still usual, as times of the mean, and beside it.
const USUAL_TIMES: f64 = 3.0;
const USUAL_MORE: f64 = 4.0;
/// A suspect holds twice what the others do, and this.
const LEAST_HELD: u32 = 4;
/// Looks that must say so: two resources that begin to wait at once are not told apart by one.
const LOOKS: u32 = 3;
/// Time in which the mean response time follows, ns.
const LATELY_NS: f64 = 4e9;
/// Times the others' response time that is longer, and requests that it must keep busy with that.
const LONGER: f64 = 1.15;
const LEAST_BUSY: f64 = 2.0;
/// Looks in a row with answers of both that must say so: when all begin to wait, means differ for a while.
const SURE_LOOKS: u32 = 4;
/// Answers of which a mean is believed.
const LEAST_DONE: f64 = 2.0;
/// The others are somebody to protect from this share of the suspect's passes on.
const OTHERS_SHARE: f64 = 0.1;
/// How long a held resource needs less than half of its limit before it is let go, ns.
const QUIET_NS: u64 = 10_000_000_000;
/// How long after it has come down to its limit the others may stay as they are, ns.
const HELP_NS: u64 = 10_000_000_000;
/// How long nobody is held after it was of no use, ns.
const REST_NS: u64 = 300_000_000_000;

/// Settings of the bulkheads of a scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BulkheadSettings {
    /// Share of what a resource keeps busy, or had in flight when the others were last well, that it is held to.
    pub share: f64,
    /// How long requests must pile up without a short CPU, ns.
    pub after_ns: u64,
}

impl Default for BulkheadSettings {
    fn default() -> Self {
        Self {
            share: 0.5,
            after_ns: 500_000_000,
        }
    }
}

/// What is usual of a resource in a scope: a slow mean of what it has in flight, and of its passes in a look.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsualUse {
    held: f64,
    passed: f64,
}

impl UsualUse {
    /// Takes a look at a scope that is not in overload, `span_ns` after the last one. What is far over the usual
    /// teaches no more than what is just over it, so an incident moves it slowly.
    pub fn learn(&mut self, held: u32, passed: u64, span_ns: u64) {
        let weight = (double(span_ns) / MEAN_NS).min(1.0);
        let held = f64::from(held).min(self.most());
        self.held += weight * (held - self.held);
        self.passed += weight * (double(passed) - self.passed);
    }

    /// The most in flight that is still usual.
    fn most(&self) -> f64 {
        USUAL_TIMES * self.held + USUAL_MORE
    }
}

/// What the answers of a resource took lately: sums that fade.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lately {
    done: f64,
    rt_s: f64,
    /// The same of the last look alone.
    last: (f64, f64),
}

impl Lately {
    /// Takes the answers of a look, `span_ns` after the last one.
    pub fn take(&mut self, done: u64, rt_ns: u64, span_ns: u64) {
        let left = (1.0 - double(span_ns) / LATELY_NS).max(0.0);
        self.last = (double(done), double(rt_ns) / 1e9);
        self.done = self.done * left + self.last.0;
        self.rt_s = self.rt_s * left + self.last.1;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            rt_s: self.rt_s + other.rt_s,
            last: (self.last.0 + other.last.0, self.last.1 + other.last.1),
        }
    }

    /// Mean response time, seconds; `None` while next to nothing is answered.
    fn mean_s(self) -> Option<f64> {
        (self.done >= LEAST_DONE).then(|| self.rt_s / self.done)
    }

    /// Whether its answers of the last look took longer than those of others; `None` if one of them has none.
    fn longer_at_last(self, others: Self) -> Option<bool> {
        let mean_s = |(done, rt_s): (f64, f64)| (done > 0.0).then(|| rt_s / done);
        Some(mean_s(self.last)? >= LONGER * mean_s(others.last)?)
    }

    /// Requests that it keeps busy by taking longer than others, whose mean is `others_s`.
    fn busy(self, others_s: f64) -> f64 {
        (self.rt_s - self.done * others_s) / (LATELY_NS / 1e9)
    }
}

/// A resource of a scope in a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BulkheadResource {
    /// Tells it from the others.
    pub key: u64,
    /// Its requests in flight in the scope.
    pub held: u32,
    /// What is usual of it.
    pub usual: UsualUse,
    /// What its answers took.
    pub lately: Lately,
    /// Whether it may be held: nobody has given it a limit in flight, and it is asked for in this scope alone.
    pub free: bool,
}

/// How the scope is in a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeLook {
    /// Monotonic, ns.
    pub ns: u64,
    /// Whether it is in overload by requests that wait, see [`crate::law::PublishedLimits::waits`].
    pub waits: bool,
    /// Whether as much is in flight as its entry limit allows, or more.
    pub full: bool,
    /// Whether the CPU is short in this very look.
    pub short: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkheadChange {
    /// This resource may have so many requests in flight from now on.
    Hold {
        /// Its key.
        key: u64,
        /// Requests.
        limit: u32,
    },
    /// This resource needs no limit any more.
    LetGo {
        /// Its key.
        key: u64,
        /// Whether it did not help the others.
        useless: bool,
    },
}

/// A resource that is held.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HeldResource {
    key: u64,
    limit: u32,
    /// Mean of what it has in flight.
    mean: f64,
    /// Since when it has needed less than half of its limit.
    quiet_since_ns: Option<u64>,
    /// Since when it has been within its limit and the others not within their usual.
    useless_since_ns: Option<u64>,
}

/// The resource that held most when the others were last well, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Suspect {
    key: u64,
    held: u32,
    /// How many looks have said so.
    looks: u32,
}

/// The bulkheads of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bulkheads {
    last_ns: Option<u64>,
    suspect: Option<Suspect>,
    /// The resource whose answers take longer, and how many looks in a row have said so.
    longest: Option<(u64, u32)>,
    held: [Option<HeldResource>; HELD_MAX],
    /// Since when requests pile up in the scope without a short CPU.
    since_ns: Option<u64>,
    rests_until_ns: u64,
}

impl Bulkheads {
    /// Takes a look; at most one thing is to be done after it.
    pub fn look(
        &mut self,
        all: &[BulkheadResource],
        now: ScopeLook,
        settings: &BulkheadSettings,
    ) -> Option<BulkheadChange> {
        let span_ns = self.last_ns.map_or(0, |last| now.ns.saturating_sub(last));
        self.last_ns = Some(now.ns);
        let crowd = Crowd::of(all, |key| self.holds(key));
        let piles_up = now.waits || (now.full && !now.short && !crowd.others_are_well());
        self.since_ns = piles_up.then(|| self.since_ns.unwrap_or(now.ns));
        self.longest = self.longest(all).map(|(one, _keeps)| {
            let same = self.longest.filter(|(key, _looks)| *key == one.key);
            let looks = same.map_or(0, |(_key, looks)| looks);
            let looks = match one.lately.longer_at_last(self.others(all, one.key)) {
                Some(true) => looks.saturating_add(1),
                Some(false) => 0,
                None => looks,
            };
            (one.key, looks)
        });
        if crowd.others_are_well() {
            self.suspect = match (crowd.suspect(), self.suspect) {
                (Some(now), Some(before)) if now.key == before.key => Some(Suspect {
                    looks: before.looks.saturating_add(1),
                    ..now
                }),
                (Some(now), _) => Some(now),
                (None, before) => before.filter(|one| crowd.holds_much(one.key, all)),
            };
        }
        if let Some(change) = self.let_go(all, &crowd, now, span_ns) {
            return Some(change);
        }
        self.hold(all, &crowd, now, settings)
    }

    /// Whether a resource is held.
    pub fn holds(&self, key: u64) -> bool {
        self.held.iter().flatten().any(|held| held.key == key)
    }

    fn hold(
        &mut self,
        all: &[BulkheadResource],
        crowd: &Crowd,
        now: ScopeLook,
        settings: &BulkheadSettings,
    ) -> Option<BulkheadChange> {
        let since_ns = self.since_ns?;
        let early = now.ns.saturating_sub(since_ns) < settings.after_ns;
        if early || now.short || now.ns < self.rests_until_ns {
            return None;
        }
        let (resource, keeps) = self.blamed(all)?;
        let others = crowd.passed - resource.usual.passed;
        let protects = others > OTHERS_SHARE * resource.usual.passed && others > 0.0;
        if !protects || !resource.free {
            return None;
        }
        let place = self.held.iter_mut().find(|place| place.is_none())?;
        let limit = whole(settings.share * keeps).max(1);
        *place = Some(HeldResource {
            key: resource.key,
            limit,
            mean: f64::from(resource.held),
            quiet_since_ns: None,
            useless_since_ns: None,
        });
        self.suspect = None;
        self.since_ns = None;
        Some(BulkheadChange::Hold {
            key: resource.key,
            limit,
        })
    }

    /// The resource that fills the scope, and how much it keeps busy.
    fn blamed<'a>(&self, all: &'a [BulkheadResource]) -> Option<(&'a BulkheadResource, f64)> {
        if let Some(found) = self.longest(all) {
            let sure = |(key, looks)| key == found.0.key && looks >= SURE_LOOKS;
            return Some(found).filter(|_| self.longest.is_some_and(sure));
        }
        let suspect = self.suspect.filter(|one| one.looks >= LOOKS)?;
        let resource = self.free(all).find(|one| one.key == suspect.key)?;
        let still = resource.held >= suspect.held / 2;
        // Answers that are no slower than the others' speak for it.
        let mean_s = resource.lately.mean_s();
        let unanswered = mean_s.is_none() || self.others(all, suspect.key).mean_s().is_none();
        (still && unanswered).then_some((resource, f64::from(suspect.held)))
    }

    /// The resource that keeps most busy by answers that take longer than the others', and how much.
    fn longest<'a>(&self, all: &'a [BulkheadResource]) -> Option<(&'a BulkheadResource, f64)> {
        let longer = self.free(all).filter_map(|one| {
            let others_s = self.others(all, one.key).mean_s()?;
            let keeps = one.lately.busy(others_s);
            let longer = one.lately.mean_s()? >= LONGER * others_s;
            (longer && keeps >= LEAST_BUSY).then_some((one, keeps))
        });
        longer.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// What the answers of the others took.
    fn others(&self, all: &[BulkheadResource], key: u64) -> Lately {
        let others = self.free(all).filter(|one| one.key != key);
        others.fold(Lately::default(), |sum, one| sum.plus(one.lately))
    }

    /// The resources that are not held.
    fn free<'a>(&self, all: &'a [BulkheadResource]) -> impl Iterator<Item = &'a BulkheadResource> {
        all.iter().filter(|one| !self.holds(one.key))
    }

    fn let_go(
        &mut self,
        all: &[BulkheadResource],
        crowd: &Crowd,
        now: ScopeLook,
        span_ns: u64,
    ) -> Option<BulkheadChange> {
        let well = crowd.others_are_well() && !now.waits;
        for place in &mut self.held {
            let Some(held) = place else { continue };
            let resource = all.iter().find(|one| one.key == held.key);
            let in_flight = resource.map_or(0, |one| one.held);
            let weight = (2.0 * double(span_ns) / MEAN_NS).min(1.0);
            held.mean += weight * (f64::from(in_flight) - held.mean);
            let quiet = held.mean < 0.5 * f64::from(held.limit);
            let within = in_flight <= held.limit;
            let useless = within && !well;
            let since = |before: &mut Option<u64>, holds: bool| {
                *before = holds.then(|| before.unwrap_or(now.ns));
                before.map_or(0, |since_ns| now.ns.saturating_sub(since_ns))
            };
            let quiet_ns = since(&mut held.quiet_since_ns, quiet);
            let useless_ns = since(&mut held.useless_since_ns, useless);
            let key = held.key;
            if quiet_ns >= QUIET_NS {
                *place = None;
                return Some(BulkheadChange::LetGo {
                    key,
                    useless: false,
                });
            }
            if useless_ns >= HELP_NS {
                *place = None;
                self.rests_until_ns = now.ns.saturating_add(REST_NS);
                return Some(BulkheadChange::LetGo { key, useless: true });
            }
        }
        None
    }
}

/// The resources that nobody holds: the largest, and the others.
#[derive(Debug, Clone, Copy)]
struct Crowd {
    largest: Option<BulkheadResource>,
    /// Requests in flight of the others, and the most that is usual.
    others: u32,
    usual: f64,
    /// Passes that are usual of all.
    passed: f64,
}

impl Crowd {
    fn of(all: &[BulkheadResource], is_held: impl Fn(u64) -> bool) -> Self {
        let free = || all.iter().filter(|one| !is_held(one.key));
        let largest = free().max_by_key(|one| one.held).copied();
        let key = largest.map(|one| one.key);
        let others = || free().filter(|one| Some(one.key) != key);
        let mean: f64 = others().map(|one| one.usual.held).sum();
        Self {
            largest,
            others: others().fold(0, |sum, one| sum.saturating_add(one.held)),
            usual: USUAL_TIMES * mean + USUAL_MORE,
            passed: free().map(|one| one.usual.passed).sum(),
        }
    }

    fn others_are_well(&self) -> bool {
        f64::from(self.others) <= self.usual
    }

    fn suspect(&self) -> Option<Suspect> {
        let BulkheadResource { key, held, .. } = self.largest?;
        let most = held >= self.others.saturating_mul(2).saturating_add(LEAST_HELD);
        most.then_some(Suspect {
            key,
            held,
            looks: 1,
        })
    }

    /// Whether a resource still holds what makes it worth a suspicion.
    fn holds_much(&self, key: u64, all: &[BulkheadResource]) -> bool {
        let mut found = all.iter().filter(|one| one.key == key);
        found.any(|one| one.held >= LEAST_HELD.max(self.others))
    }
}

/// The whole part of a number of requests.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn whole(requests: f64) -> u32 {
    requests as u32
}
