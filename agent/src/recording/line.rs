//! The lines of a recording.

use serde::{Deserialize, Deserializer, Serialize};
use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::Sample;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A file begins.
    Start(Start),
    /// Text for people.
    About(String),
    /// The configuration from here on, as TOML.
    Config(String),
    /// What stands in a place from here on.
    Scope(ScopeLine),
    /// A tick of a scope.
    Tick(Box<TickLine>),
    /// Ticks, again and again.
    Repeat(Repeat),
    /// So many ticks were measured and not recorded.
    Lost(u64),
    /// What a replay must have come to here.
    Expect(Box<Expect>),
}

/// The beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Version of the format.
    pub version: u32,
    /// Number of the file within one life of the agent. With 0 all that was learned is forgotten.
    pub part: u64,
    /// Seconds since 1970, for people.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unix_s: u64,
}

/// A scope in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeLine {
    /// Its number in the lines of ticks.
    pub place: u32,
    /// Its name.
    pub name: String,
    /// Path of its group below the mount of the cpu controller; null is the host.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Whether nothing is known of it yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub new: bool,
}

/// Ticks that are repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often.
    pub times: u64,
    /// What, in this order.
    pub ticks: Vec<TickLine>,
}

/// What a tick measured of a scope. What is absent is zero, or not measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TickLine {
    /// Place of the scope; 0 is the host.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub scope: u32,
    /// So many such ticks in a row.
    #[serde(skip_serializing_if = "is_one")]
    pub times: u64,
    /// State that the agent published after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<StateName>,
    /// Length of the tick, ns. This and what follows is a [`Sample`].
    pub tick_ns: u64,
    /// Effective CPUs.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub cpus: Option<f32>,
    /// Requests in flight.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub inflight: u32,
    /// Those of them whose resource a bulkhead holds.
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub capped: u32,
    /// Connections in accept queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_queue: Option<u32>,
    /// Requests that ended well.
    #[serde(skip_serializing_if = "is_zero")]
    pub successes: u64,
    /// Sum of their response times, ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub rt_ns: u64,
    /// Requests admitted.
    #[serde(skip_serializing_if = "is_zero")]
    pub passed: u64,
    /// Those of them without a permit.
    #[serde(skip_serializing_if = "is_zero")]
    pub one_shot: u64,
    /// Requests refused because of a scope.
    #[serde(skip_serializing_if = "is_zero")]
    pub shed: u64,
    /// Busy share of the CPUs.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub busy: Option<f32>,
    /// Own share of the CPUs.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub own: Option<f32>,
    /// Tasks that wait for a CPU.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub waiters: Option<f32>,
    /// Share of the periods that were throttled.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub throttle: Option<f32>,
    /// Share of the time that was throttled.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub throttled_time: Option<f32>,
    /// Share of the time in which a task waited.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub psi_cpu: Option<f32>,
    /// Share that the hypervisor took.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub steal: Option<f32>,
    /// Share of the tick in garbage collection.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub gc_share: Option<f32>,
    /// Full collections in 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_gc: Option<u32>,
    /// Share of the heap in use.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub heap_used: Option<f32>,
    /// Live threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Load for each CPU.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub load_per_cpu: Option<f32>,
}

/// A state of a scope by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// See [`ScopeState::Healthy`].
    Healthy,
    /// See [`ScopeState::Cold`].
    Cold,
    /// See [`ScopeState::Overload`].
    Overload,
    /// See [`ScopeState::Reject`].
    Reject,
}

impl From<ScopeState> for StateName {
    fn from(state: ScopeState) -> Self {
        match state {
            ScopeState::Healthy => Self::Healthy,
            ScopeState::Cold => Self::Cold,
            ScopeState::Overload => Self::Overload,
            ScopeState::Reject => Self::Reject,
        }
    }
}

/// Both ends of a range, included.
pub type Range = [f64; 2];

/// What a replay must have come to. What is absent is not looked at.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Place of the scope.
    pub scope: u32,
    /// State after the last tick.
    pub state: Option<StateName>,
    /// Cause after the last tick, by its name.
    pub cause: Option<String>,
    /// Whether shedding was found to be ineffective.
    pub ineffective: Option<bool>,
    /// Entry limit, requests.
    pub entry: Option<Range>,
    /// Tight limit, requests.
    pub tight: Option<Range>,
    /// Allowed QPS.
    pub allowed_qps: Option<Range>,
    /// Capacity, requests per second.
    pub capacity_qps: Option<Range>,
    /// Response time at rest, ms.
    pub base_rt_ms: Option<Range>,
    /// Healthy ticks in a row that end an overload.
    pub healthy_needed: Option<Range>,
    /// Changes of state since the last line that looked at them.
    pub changes: Option<Range>,
    /// Share of the offered requests that would have been refused, since the last line that looked at it.
    pub refused_ratio: Option<Range>,
}

impl Default for TickLine {
    fn default() -> Self {
        Self {
            tick_ns: 100_000_000,
            ..Self::of(&Sample::default())
        }
    }
}

/// The nearest number that a line holds.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding is what is wanted"
)]
fn narrow(value: Option<f64>) -> Option<f32> {
    value.map(|value| value as f32)
}

impl TickLine {
    /// A line of the host with this sample.
    pub fn of(sample: &Sample) -> Self {
        let Sample {
            tick_ns,
            cpus,
            inflight,
            capped,
            accept_queue,
            successes,
            rt_ns,
            passed,
            one_shot,
            shed,
            busy,
            own,
            waiters,
            throttle,
            throttled_time,
            psi_cpu,
            steal,
            gc_share,
            full_gc,
            heap_used,
            threads,
            load_per_cpu,
        } = *sample;
        Self {
            scope: 0,
            times: 1,
            was: None,
            tick_ns,
            cpus: narrow(cpus),
            inflight,
            capped,
            accept_queue,
            successes,
            rt_ns,
            passed,
            one_shot,
            shed,
            busy: narrow(busy),
            own: narrow(own),
            waiters: narrow(waiters),
            throttle: narrow(throttle),
            throttled_time: narrow(throttled_time),
            psi_cpu: narrow(psi_cpu),
            steal: narrow(steal),
            gc_share: narrow(gc_share),
            full_gc,
            heap_used: narrow(heap_used),
            threads,
            load_per_cpu: narrow(load_per_cpu),
        }
    }

    /// The sample that a line holds.
    pub fn sample(&self) -> Sample {
        let wide = |value: Option<f32>| value.map(f64::from);
        Sample {
            tick_ns: self.tick_ns,
            cpus: wide(self.cpus),
            inflight: self.inflight,
            capped: self.capped,
            accept_queue: self.accept_queue,
            successes: self.successes,
            rt_ns: self.rt_ns,
            passed: self.passed,
            one_shot: self.one_shot,
            shed: self.shed,
            busy: wide(self.busy),
            own: wide(self.own),
            waiters: wide(self.waiters),
            throttle: wide(self.throttle),
            throttled_time: wide(self.throttled_time),
            psi_cpu: wide(self.psi_cpu),
            steal: wide(self.steal),
            gc_share: wide(self.gc_share),
            full_gc: self.full_gc,
            heap_used: wide(self.heap_used),
            threads: self.threads,
            load_per_cpu: wide(self.load_per_cpu),
        }
    }
}

/// The sample as a recording holds it. The law is given this one, so that a replay decides on the
/// same numbers.
pub fn as_recorded(sample: &Sample) -> Sample {
    TickLine::of(sample).sample()
}

/// A number, null, or one of the words that JSON has no number for: `"nan"`, `"inf"`, `"-inf"`.
fn number<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f32),
        Word(String),
    }
    Ok(match Option::<Written>::deserialize(input)? {
        None => None,
        Some(Written::Number(number)) => Some(number),
        Some(Written::Word(word)) => Some(word.parse().map_err(serde::de::Error::custom)?),
    })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
const fn is_zero_u32(number: &u32) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
const fn is_one(number: &u64) -> bool {
    *number == 1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_short_and_reads_as_it_was_written() {
        let sample = as_recorded(&Sample {
            tick_ns: 100_012_345,
            cpus: Some(1.5),
            busy: Some(0.123_456_789_012),
            passed: 7,
            ..Sample::default()
        });
        let line = Line::Tick(Box::new(TickLine::of(&sample)));
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"tick":{"tick_ns":100012345,"cpus":1.5,"passed":7,"busy":0.12345679}}"#
        );
        let Line::Tick(read) = serde_json::from_str(&text).unwrap() else {
            panic!("a tick");
        };
        assert_eq!(read.sample(), sample);
    }

    #[test]
    fn words_stand_for_what_json_has_no_number_for_and_typing_errors_are_told() {
        let tick: TickLine = serde_json::from_str(r#"{"busy":"nan","cpus":"inf"}"#).unwrap();
        assert!(tick.sample().busy.unwrap().is_nan());
        assert_eq!(tick.sample().measured().cpus, None);
        assert_eq!((tick.tick_ns, tick.times), (100_000_000, 1));
        let odd = serde_json::from_str::<Line>(r#"{"tick":{"buzy":1}}"#).unwrap_err();
        assert!(odd.to_string().contains("buzy"), "{odd}");
    }
}
