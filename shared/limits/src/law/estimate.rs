//! Capacity, base time, and the two limits that follow from them.
//!
//! * `C`, requests per second: while healthy Σ done ÷ Σ CPU time × CPUs (a ratio of sums, so an idle
//!   tick weighs nothing); in overload done per second over a short window, divided by the own CPU
//!   share unless the CPUs were full.
//! * `RT0`, seconds: the least mean response time of healthy ticks. It is frozen in overload, for
//!   queueing would raise it, and with it the limit, and with that the queueing. It rises slowly, and an incident
//!   does not raise it, see `base_time`.
//! * Neither changes in a tick in which nothing is done. In overload with CPU to spare `C` is never over what it was
//!   when the scope was healthy, unless more is being done: an idle CPU tells nothing of those the service waits for.
//! * Before there are healthy ticks `RT0` is the CPU time of a request, running least; before there
//!   are successes at all the limits are a guess from the number of CPUs.

use super::base_time::BaseTime;
use super::history::{History, Sums, Tick};
use super::sample::Sample;
use super::settings::LawSettings;

/// A window under this share of its CPU time tells nothing of the cost of a request.
const LEAST_SHARE: f64 = 0.05;

/// Slack is never more than this for each CPU: a slow service on one CPU must not queue eight requests,
/// which is most of a second of work.
const SLACK_PER_CPU: f64 = 4.0;

/// The two limits, requests. `tight <= entry`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    pub entry: f64,
    pub tight: f64,
    /// The entry limit that holds once overload is over; in overload `entry` may have grown beyond it.
    pub calm_entry: f64,
}

/// What the estimates are read in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// Effective CPUs.
    pub cpus: f64,
    /// Busy share of them in the newest tick.
    pub busy: f64,
    /// Whether the scope is in overload.
    pub overload: bool,
    /// Whether far more is in flight than the limits allow.
    pub far_over: bool,
}

/// What is known of the scope's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Estimate {
    /// C.
    capacity: Option<f64>,
    /// C as it was when the scope was last healthy.
    healthy_capacity: f64,
    /// RT0 of healthy ticks.
    base: BaseTime,
    /// Running least CPU time of a request.
    cost_s: Option<f64>,
    /// Effective CPUs.
    cpus: f64,
}

impl Estimate {
    /// Whether the successes of a tick may teach anything.
    pub(super) fn judge(&mut self, sample: &Sample) -> bool {
        self.base.judge(sample)
    }

    /// Takes `sample`, the newest tick of `history`, into account.
    pub(super) fn update(
        &mut self,
        history: &History,
        sample: &Sample,
        now: &Situation,
        settings: &LawSettings,
    ) {
        self.cpus = now.cpus;
        if sample.done() <= 0.0 {
            return;
        }
        let estimate = &settings.estimate;
        let Some(capacity) = self.seen_capacity(history, now, settings) else {
            return;
        };
        self.capacity = Some(capacity);
        if !now.overload {
            self.healthy_capacity = capacity;
            let least_s = history.least_mean_rt_s(estimate.bucket);
            if let Some(least_s) = least_s.filter(|_least| sample.successes > 0) {
                self.base.follow(least_s, sample.tick_ns, !now.far_over);
            }
        }
        if self.is_cold() {
            self.learn_cost(&history.sums(estimate.overload_ticks), settings);
        }
    }

    /// C as the last ticks show it; `None` where too little was done.
    fn seen_capacity(
        &self,
        history: &History,
        now: &Situation,
        settings: &LawSettings,
    ) -> Option<f64> {
        let estimate = &settings.estimate;
        let sums = if now.overload {
            history.sums(estimate.overload_ticks)
        } else {
            history.sums_where(estimate.healthy_ticks, Tick::teaches)
        };
        let enough = if self.capacity.is_some() && now.overload {
            1.0
        } else {
            settings.cold.successes.max(1.0)
        };
        if sums.done < enough || sums.length_s <= 0.0 {
            return None;
        }
        let done_qps = sums.per_second(sums.done);
        if now.overload && now.busy >= estimate.full {
            return Some(done_qps);
        }
        let share = sums.cpu_s / (sums.length_s * now.cpus);
        let capacity = done_qps / share.clamp(LEAST_SHARE, 1.0);
        if now.overload && self.healthy_capacity > 0.0 {
            return Some(capacity.min(self.healthy_capacity.max(done_qps)));
        }
        Some(capacity)
    }

    fn learn_cost(&mut self, sums: &Sums, settings: &LawSettings) {
        if sums.done >= settings.cold.successes.max(1.0) {
            let cost_s = sums.cpu_s / sums.done;
            self.cost_s = Some(self.cost_s.map_or(cost_s, |least| least.min(cost_s)));
        }
    }

    /// The limits now. `extra` is what slack feedback adds to the tight one.
    pub(super) fn limits(&self, now: &Situation, extra: f64, settings: &LawSettings) -> Limits {
        let cpus = now.cpus;
        let floor = f64::from(settings.tight.floor.max(1));
        let (entry, tight) = match (self.capacity, self.base_rt_s()) {
            (Some(capacity), Some(rt_s)) => (
                capacity * (rt_s + settings.entry.delay_s),
                self.tight(capacity, rt_s, settings),
            ),
            _ => (
                cpus * settings.cold.entry_per_cpu,
                cpus * settings.cold.tight_per_cpu,
            ),
        };
        let entry = libm::ceil(entry.max(settings.entry.least)).max(floor);
        let tight = libm::ceil(tight.max(cpus) + extra).max(floor);
        let calm_entry = entry;
        let entry = if now.overload {
            entry.max(tight.min(entry * settings.tight.reach))
        } else {
            entry
        };
        Limits {
            entry,
            tight: tight.min(entry),
            calm_entry,
        }
    }

    fn tight(&self, capacity: f64, rt_s: f64, settings: &LawSettings) -> f64 {
        let tight = &settings.tight;
        let least = tight.healthy_share * self.healthy_capacity * (rt_s + tight.delay_s);
        least.max(capacity * rt_s + self.queue_mark(settings))
    }

    /// Waiters that are still no queue: `max(C·B, slack)`, the slack at most 4 for each CPU.
    pub(super) fn queue_mark(&self, settings: &LawSettings) -> f64 {
        let capacity = self.capacity.unwrap_or(0.0);
        (capacity * settings.tight.delay_s).max(settings.tight.slack.min(SLACK_PER_CPU * self.cpus))
    }

    /// C, requests per second.
    pub(super) fn capacity(&self) -> Option<f64> {
        self.capacity
    }

    /// C as it was when the scope was last healthy; 0 before that.
    pub(super) fn healthy_capacity(&self) -> f64 {
        self.healthy_capacity
    }

    /// RT0, seconds.
    pub(super) fn base_rt_s(&self) -> Option<f64> {
        self.base.rt_s().or(self.cost_s)
    }

    /// How long successes have been slow out of all proportion, ns; 0 while they are not.
    pub(super) fn incident_ns(&self) -> u64 {
        self.base.incident_ns()
    }

    /// Whether there is no base time of healthy ticks yet.
    pub(super) fn is_cold(&self) -> bool {
        self.base.rt_s().is_none()
    }
}
