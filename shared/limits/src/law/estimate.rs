//! Capacity, base time, and the two limits that follow from them.
//!
//! * `C`, requests per second: while healthy Σ done ÷ Σ CPU time × CPUs (a ratio of sums, so an idle
//!   tick weighs nothing); in overload done per second over a short window, divided by the own CPU
//!   share unless the CPUs were full.
//! * `RT0`, seconds: the least mean response time of healthy ticks. It is frozen in overload, for
//!   queueing would raise it, and with it the limit, and with that the queueing.
//! * Before there are healthy ticks `RT0` is the CPU time of a request, running least; before there
//!   are successes at all the limits are a guess from the number of CPUs.

use super::history::{History, Sums};
use super::settings::Settings;

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
}

/// What is known of the scope's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Estimate {
    /// C.
    capacity: Option<f64>,
    /// C as it was when the scope was last healthy.
    healthy_capacity: f64,
    /// RT0 of healthy ticks.
    base_rt_s: Option<f64>,
    /// Running least CPU time of a request.
    cost_s: Option<f64>,
    /// Effective CPUs.
    cpus: f64,
}

impl Estimate {
    /// Takes the newest tick of `history` into account.
    pub(super) fn update(&mut self, history: &History, now: &Situation, settings: &Settings) {
        self.cpus = now.cpus;
        let overload = now.overload;
        let estimate = &settings.estimate;
        let window = if overload {
            estimate.overload_ticks
        } else {
            estimate.healthy_ticks
        };
        let sums = history.sums(window);
        let enough = if self.capacity.is_some() && overload {
            1.0
        } else {
            settings.cold.successes.max(1.0)
        };
        if sums.done < enough || sums.length_s <= 0.0 {
            return;
        }
        let share = sums.cpu_s / (sums.length_s * now.cpus);
        let full = overload && now.busy >= estimate.full;
        let divisor = if full {
            1.0
        } else {
            share.clamp(LEAST_SHARE, 1.0)
        };
        let capacity = sums.per_second(sums.done) / divisor;
        self.capacity = Some(capacity);
        if !overload {
            self.healthy_capacity = capacity;
            self.base_rt_s = history.least_mean_rt_s(estimate.bucket).or(self.base_rt_s);
        }
        if self.base_rt_s.is_none() {
            self.learn_cost(&history.sums(estimate.overload_ticks), settings);
        }
    }

    fn learn_cost(&mut self, sums: &Sums, settings: &Settings) {
        if sums.done >= settings.cold.successes.max(1.0) {
            let cost_s = sums.cpu_s / sums.done;
            self.cost_s = Some(self.cost_s.map_or(cost_s, |least| least.min(cost_s)));
        }
    }

    /// The limits now. `extra` is what slack feedback adds to the tight one.
    pub(super) fn limits(&self, now: &Situation, extra: f64, settings: &Settings) -> Limits {
        let cpus = now.cpus;
        let floor = f64::from(settings.tight.floor.max(1));
        let (entry, tight) = match (self.capacity, self.base_rt_s()) {
            (Some(capacity), Some(rt_s)) => (
                capacity * (rt_s + settings.entry.delay_s),
                self.tight(capacity, rt_s, now.overload, settings),
            ),
            _ => (
                cpus * settings.cold.entry_per_cpu,
                cpus * settings.cold.tight_per_cpu,
            ),
        };
        let entry = libm::ceil(entry.max(settings.entry.least)).max(floor);
        let tight = libm::ceil(tight.max(cpus) + extra).max(floor);
        if now.overload {
            let entry = entry.max(tight.min(entry * settings.tight.reach));
            Limits {
                entry,
                tight: tight.min(entry),
            }
        } else {
            Limits {
                entry,
                tight: tight.min(entry),
            }
        }
    }

    fn tight(&self, capacity: f64, rt_s: f64, overload: bool, settings: &Settings) -> f64 {
        let tight = &settings.tight;
        let limit = capacity * rt_s + self.queue_mark(settings);
        if overload {
            limit.max(tight.healthy_share * self.healthy_capacity * (rt_s + tight.delay_s))
        } else {
            limit
        }
    }

    /// Waiters that are still no queue: `max(C·B, slack)`, the slack at most 4 for each CPU.
    pub(super) fn queue_mark(&self, settings: &Settings) -> f64 {
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
        self.base_rt_s.or(self.cost_s)
    }

    /// Whether there is no base time of healthy ticks yet.
    pub(super) fn is_cold(&self) -> bool {
        self.base_rt_s.is_none()
    }
}
