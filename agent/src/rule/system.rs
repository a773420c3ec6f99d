//! System rules: marks for all inbound work of a host.

use std::time::Duration;

use tidegate_abi::decision::Mode;
use tidegate_limits::window::COUNT_MAX;

use super::amount::{Amount, Count, Fraction};
use super::effect::{self, Effects, Idle, OptionEffect};
use super::expiry::{Ending, Expires};
use super::{Body, RuleOptions};
use crate::schema::kind::{DurationRange, Maybe, NameText, OneOf, Whole};
use crate::schema::settings::{Section, settings};

/// Marks for all inbound work. Of several rules the least mark of each is in force.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct System {
    /// One-minute load average.
    pub load: Option<Amount>,
    /// Share of the CPUs in use.
    pub cpu: Option<Amount>,
    /// Average response time.
    pub avg_rt: Option<Duration>,
    /// Requests in flight.
    pub concurrency: Option<u32>,
    /// Passes a second.
    pub qps: Option<Amount>,
}

impl System {
    /// Keeps which marks are set, not where they are.
    pub(super) fn clear_limits(&mut self) {
        self.load = self.load.map(|_| Amount::ZERO);
        self.cpu = self.cpu.map(|_| Amount::ZERO);
        self.avg_rt = self.avg_rt.map(|_| Duration::ZERO);
        self.concurrency = self.concurrency.map(|_| 0);
        self.qps = self.qps.map(|_| Amount::ZERO);
    }

    /// The least mark of each.
    pub(super) fn least_with(&self, other: &Self) -> Self {
        fn least<T: Copy>(a: Option<T>, b: Option<T>, under: impl Fn(T, T) -> bool) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if under(b, a) { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        let amount = |a: Amount, b: Amount| a.get() < b.get();
        Self {
            load: least(self.load, other.load, amount),
            cpu: least(self.cpu, other.cpu, amount),
            avg_rt: least(self.avg_rt, other.avg_rt, |a, b| a < b),
            concurrency: least(self.concurrency, other.concurrency, |a, b| a < b),
            qps: least(self.qps, other.qps, amount),
        }
    }

    /// Whether every mark that it sets is over that of `least`.
    pub(super) fn shares_no_mark_with(&self, least: &Self) -> bool {
        fn apart<T: PartialEq + Copy>(own: Option<T>, least: Option<T>) -> bool {
            own.is_none() || own != least
        }
        apart(self.load, least.load)
            && apart(self.cpu, least.cpu)
            && apart(self.avg_rt, least.avg_rt)
            && apart(self.concurrency, least.concurrency)
            && apart(self.qps, least.qps)
    }

    /// Whether it sets no mark at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

settings! {
    /// Marks for all inbound work.
    pub struct SystemOptions {
        /// Name in refusals, metrics and logs. Not set: file and place.
        id: Option<String> = None, Maybe(NameText, "\"host\"");
        /// `enforce` refuses; `observe` counts what it would have refused; `off` does nothing.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// When it ends by itself: after a time in force, or at a time. Not set: never. Reading the same
        /// text again does not begin anew; a restart of the agent does.
        expires: Option<Expires> = None, Maybe(Ending, "\"30s\"");
        /// Refuses while the one-minute load average is over this and requests queue.
        load: Option<Amount> = None, Maybe(Count, "8.0");
        /// Refuses while more than this share of the CPUs is in use.
        cpu: Option<Amount> = None, Maybe(Fraction, "0.9");
        /// Refuses while requests take longer than this on average.
        avg_rt: Option<Duration> = None, Maybe(DurationRange::ms(0, 3_600_000), "\"200ms\"");
        /// Maximum inbound requests in flight.
        concurrency: Option<u32> = None, Maybe(Whole { min: 0, max: u32::MAX }, "400");
        /// Maximum inbound passes a second.
        qps: Option<Amount> = None, Maybe(Count, "5000.0");
    }
    check check_marks;
}

impl RuleOptions for SystemOptions {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn mode(&self) -> Mode {
        self.mode
    }
    fn expires(&self) -> Option<Expires> {
        self.expires
    }
    fn body(&self, _section: &mut Section<'_, '_>) -> Option<Body> {
        Some(Body::System(System {
            load: self.load,
            cpu: self.cpu,
            avg_rt: self.avg_rt,
            concurrency: self.concurrency,
            qps: self.qps,
        }))
    }
}

impl Effects for SystemOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("id"),
        OptionEffect::new("expires", |rule| effect::ended(rule.expires)),
        OptionEffect::new("mode", |system| effect::off(system.mode)),
        OptionEffect::always("load"),
        OptionEffect::new("cpu", |system| {
            let never = system.cpu == Some(Amount::ONE);
            Idle::when(
                never,
                "a share under 1",
                "the CPUs are never used to more than all of them",
            )
        }),
        OptionEffect::always("avg_rt"),
        OptionEffect::new("concurrency", |system| {
            let never = system.concurrency == Some(u32::MAX);
            Idle::when(
                never,
                "a number that is reached",
                "there are never as many requests in flight",
            )
        }),
        OptionEffect::new("qps", |system| {
            let never = system.qps.is_some_and(|qps| qps.whole() >= COUNT_MAX);
            Idle::when(
                never,
                "a number that is reached",
                "a second counts no further, so this limits nobody",
            )
        }),
    ];
}

fn check_marks(_options: &SystemOptions, section: &mut Section<'_, '_>) {
    let keys = ["load", "cpu", "avg_rt", "concurrency", "qps"];
    if !keys.iter().any(|key| section.has(key)) {
        section.refuse(
            &keys,
            "at least one mark",
            "a rule without a mark does nothing",
        );
    }
}
