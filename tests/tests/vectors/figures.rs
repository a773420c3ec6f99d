//! What a script asks about a node: rates and counts of the last second and minute.
//!
//! Passes by window and second come from the node's words where it keeps them; blocks, successes and
//! errors are free-running counts on the pages, sampled at the edges of the buckets, as an agent does
//! it. Response times by bucket are kept on the node of all inbound requests alone; for the others they
//! are those of the passes that were given back.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use tidegate_agent::rule::QuirksOption;
use tidegate_agent::tenant::rule_index::Part;
use tidegate_limits::statistics::max_success_qps;
use tidegate_segment::board::Slot;
use tidegate_segment::ledger::{Node as PageNode, NodeCounts};

use crate::world::World;

/// Sentinel's name of the node of all inbound calls.
pub(crate) const TOTAL: &str = "__total_inbound_traffic__";

const HALF: u64 = 500_000_000;
const SECOND: u64 = 2 * HALF;
/// Sentinel's least response time of a bucket without any, ms.
const RT_MAX_MS: u64 = 5_000;

/// A resource, and an origin or nothing.
pub(crate) type Node = (String, String);

/// What the agent's counters say of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    pass: u64,
    block: u64,
    success: u64,
    exception: u64,
}

/// Response times of half a second.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    sum_ms: u64,
    least_ms: Option<u64>,
}

/// Samples of the pages, and what is not on them.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Whether every node keeps its passes in words.
    words: bool,
    slots: HashMap<Node, Slot>,
    /// Counts before an edge, by the number of the edge.
    samples: HashMap<Node, BTreeMap<u64, Counts>>,
    /// Passes by whole seconds.
    seconds: HashMap<Node, BTreeMap<u64, u64>>,
    times: HashMap<Node, BTreeMap<u64, Times>>,
    /// Inbound calls: the pages count them as calls, and Sentinel with their count.
    inbound: Counts,
    /// Passes in the present bucket of their node, and its number.
    inbound_bucket: (u64, u32),
    sampled_ns: Option<u64>,
}

impl Figures {
    pub(crate) fn new(quirks: QuirksOption) -> Self {
        Self {
            words: quirks == QuirksOption::Sentinel189,
            slots: HashMap::new(),
            samples: HashMap::new(),
            seconds: HashMap::new(),
            times: HashMap::new(),
            inbound: Counts::default(),
            inbound_bucket: (0, 0),
            sampled_ns: None,
        }
    }

    /// Makes a node known; it is sampled from then on.
    pub(crate) fn know(&mut self, node: Node, slot: Slot) {
        self.slots.insert(node, slot);
    }

    /// Looks at the pages before the clock moves on.
    pub(crate) fn sample(&mut self, world: &World, now_ns: u64) {
        let Some(before_ns) = self.sampled_ns.replace(now_ns) else {
            return;
        };
        for (node, slot) in &self.slots {
            if let Some(words) = world.gate.ledger().node(slot.index) {
                let passed = words.previous_second(before_ns + SECOND);
                let seconds = self.seconds.entry(node.clone()).or_default();
                seconds.insert(before_ns / SECOND, u64::from(passed));
            }
        }
        if before_ns / HALF == now_ns / HALF {
            return;
        }
        for node in self.slots.keys() {
            let counts = self.counts(world, node);
            let samples = self.samples.entry(node.clone()).or_default();
            samples.insert(before_ns / HALF + 1, counts);
        }
    }

    fn counts(&self, world: &World, node: &Node) -> Counts {
        if node.0 == TOTAL {
            return self.inbound;
        }
        let Some(slot) = self.slots.get(node) else {
            return Counts::default();
        };
        let NodeCounts {
            passed,
            success,
            error,
            refused,
            ..
        } = world.gate.ledger().node_counts(world.gate.board(), *slot);
        Counts {
            pass: passed,
            block: refused.iter().sum(),
            success: success + error,
            exception: error,
        }
    }

    /// An inbound pass is counted where the node of all of them counted it: with quirks a borrowed one is not.
    pub(crate) fn passed(&mut self, world: &World, now_ns: u64, inbound: bool, count: u32) {
        if !inbound {
            return;
        }
        let counted = if self.words {
            let node = world.gate.ledger().node(Slot::INBOUND.index);
            let current = node.map_or(0, |node| node.window(now_ns).current());
            let (half, before) = self.inbound_bucket;
            self.inbound_bucket = (now_ns / HALF, current);
            let before = if half == now_ns / HALF { before } else { 0 };
            current.saturating_sub(before)
        } else {
            count
        };
        self.inbound.pass += u64::from(counted);
    }

    pub(crate) fn refused(&mut self, inbound: bool, count: u32) {
        if inbound {
            self.inbound.block += u64::from(count);
        }
    }

    pub(crate) fn ended(&mut self, nodes: Vec<Node>, now_ns: u64, call: (u32, u64, bool)) {
        let (count, rt_ms, error) = call;
        for node in nodes {
            if node.0 == TOTAL {
                self.inbound.success += u64::from(count);
                self.inbound.exception += if error { u64::from(count) } else { 0 };
            }
            let times = self.times.entry(node).or_default();
            let times = times.entry(now_ns / HALF).or_default();
            times.sum_ms += rt_ms;
            times.least_ms = Some(times.least_ms.map_or(rt_ms, |least| least.min(rt_ms)));
        }
    }

    /// The figures of a node.
    pub(crate) fn of(&self, world: &World, node: &Node, now_ns: u64) -> Value {
        let Some(slot) = self.slots.get(node) else {
            return json!({ "absent": true });
        };
        // Without quirks a node of an origin that no rule wants is not kept: there is nothing to ask.
        let (resource, origin) = node;
        let limits = world.directory.rule_index();
        if !self.words && !origin.is_empty() && !limits.wants_part(resource, Part::Origin, origin) {
            return Value::Null;
        }
        let words = world.gate.ledger().node(slot.index).expect("a node");
        if self.words {
            words.use_bucket(now_ns);
        }
        let (half, second) = (now_ns / HALF, now_ns / SECOND);
        let now = self.counts(world, node);
        let since = |edge: u64| now.less(self.before(node, edge));
        let minute = since(second.saturating_sub(59) * 2);
        let window = since(half.saturating_sub(1));
        let previous = self
            .before(node, second * 2)
            .less(self.before(node, second.saturating_sub(1) * 2));
        let bucket = since(half).success;
        let largest = bucket.max(window.success - bucket);
        let (average_rt, least_rt) = self.response_times(node, half, window.success);
        let pass = self.passes(node, words, now_ns);
        json!({
            "pass_qps": pass.map_or(window.pass, |(window, _, _)| window),
            "block_qps": window.block,
            "success_qps": window.success,
            "exception_qps": window.exception,
            // Sentinel's figure stays 0.
            "occupied_pass_qps": 0,
            "avg_rt": average_rt,
            "min_rt": least_rt,
            "max_success_qps": largest.max(1) * 2,
            "threads": Self::threads(world, node, *slot),
            "prev_second_pass": pass.map_or(previous.pass, |(_, previous, _)| previous),
            "prev_second_block": previous.block,
            "minute_pass": pass.map_or(minute.pass, |(_, _, minute)| minute),
            "minute_block": minute.block,
            "minute_success": minute.success,
            "minute_exception": minute.exception,
        })
    }

    /// Counts before an edge.
    fn before(&self, node: &Node, edge: u64) -> Counts {
        let samples = self.samples.get(node);
        let sample = samples.and_then(|samples| samples.range(..=edge).next_back());
        sample.map_or_else(Counts::default, |(_edge, counts)| *counts)
    }

    /// Passes of the window, the second before and the minute, from the node's words.
    fn passes(&self, node: &Node, words: PageNode, now_ns: u64) -> Option<(u64, u64, u64)> {
        if !self.words || node.0 == TOTAL {
            return None;
        }
        let window = words.window(now_ns).sum() + words.arrived(now_ns);
        let second = now_ns / SECOND;
        let seconds = self.seconds.get(node).into_iter();
        let before: u64 = seconds
            .flat_map(|seconds| seconds.range(second.saturating_sub(59)..second))
            .map(|(_second, passed)| *passed)
            .sum();
        let present = u64::from(words.previous_second(now_ns + SECOND));
        let previous = u64::from(words.previous_second(now_ns));
        Some((u64::from(window), previous, before + present))
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 ms")]
    fn response_times(&self, node: &Node, half: u64, success: u64) -> (f64, u64) {
        let times = self.times.get(node).into_iter();
        let times = times.flat_map(|times| times.range(half.saturating_sub(1)..=half));
        let (sum, least) = times.fold((0, RT_MAX_MS), |(sum, least), (_half, times)| {
            let own = times.least_ms.unwrap_or(RT_MAX_MS);
            (sum + times.sum_ms, least.min(own))
        });
        let average = if success == 0 {
            0.0
        } else {
            sum as f64 / success as f64
        };
        (average, least.max(1))
    }

    fn threads(world: &World, node: &Node, slot: Slot) -> u64 {
        let (ledger, board) = (world.gate.ledger(), world.gate.board());
        if node.0 == TOTAL {
            return u64::from(ledger.scope_inflight(board, 0));
        }
        u64::from(ledger.node_inflight(board, slot))
    }

    /// What the words of the node of all inbound calls say, where it is not what was seen.
    pub(crate) fn unlike_inbound(world: &World, now_ns: u64, given: &Value) -> Option<Value> {
        world.gate.board().view().system()?;
        let words = world.gate.ledger().node(Slot::INBOUND.index)?;
        let now_ns = tidegate_limits::number::whole_ms(now_ns);
        let said = json!({
            "pass_qps": words.window(now_ns).sum(),
            "avg_rt": words.average_rt_ms(now_ns),
            "min_rt": words.least_rt_ms(now_ns),
            "max_success_qps": max_success_qps(words.successes(now_ns)),
        });
        let unlike = said.as_object()?.iter().any(|(key, said)| {
            given
                .get(key)
                .is_some_and(|given| said.as_f64() != given.as_f64())
        });
        unlike.then(|| json!({ "words_of_inbound_calls": said, "seen": given }))
    }
}

impl Counts {
    fn less(self, earlier: Self) -> Self {
        Self {
            pass: self.pass.saturating_sub(earlier.pass),
            block: self.block.saturating_sub(earlier.block),
            success: self.success.saturating_sub(earlier.success),
            exception: self.exception.saturating_sub(earlier.exception),
        }
    }
}
