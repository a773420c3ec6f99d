//! How many of the offered requests the replayed limits would have refused.
//!
//! In a tick there is room for `limit − in flight before + ended in the tick` requests; callers
//! without a permit have the allowed QPS. In flight and ended are those of the recording. While a mark rejects,
//! nobody has room, whatever ended.

use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::{FAR_OVER, PublishedLimits, Sample};
use tidegate_limits::number::whole;

/// Sums over the ticks of a scope.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    /// Requests that were offered.
    pub offered: u64,
    /// Those that were refused when it was recorded.
    pub recorded: u64,
    /// Those that would have been refused.
    pub refused: u64,
    inflight: u32,
}

impl Tally {
    /// Takes a tick during which `published` was in force.
    pub(super) fn take(&mut self, sample: &Sample, published: &PublishedLimits) {
        let offered = sample.passed.saturating_add(sample.shed);
        self.offered = self.offered.saturating_add(offered);
        self.recorded = self.recorded.saturating_add(sample.shed);
        self.refused = self
            .refused
            .saturating_add(self.refused_of(sample, published));
        self.inflight = sample.inflight;
    }

    /// Takes a tick that is in no figure.
    pub(super) fn follow(&mut self, sample: &Sample) {
        self.inflight = sample.inflight;
    }

    fn refused_of(&self, sample: &Sample, published: &PublishedLimits) -> u64 {
        if matches!(published.word().state, ScopeState::Reject) {
            return sample.passed.saturating_add(sample.shed);
        }
        let Some(limit) = limit(sample, published) else {
            return 0;
        };
        let held = sample.passed.saturating_sub(sample.one_shot);
        // Whoever was refused held a permit or would have, unless nobody did.
        let (held, one_shot) = if held > 0 || sample.one_shot == 0 {
            (held.saturating_add(sample.shed), sample.one_shot)
        } else {
            (0, sample.one_shot.saturating_add(sample.shed))
        };
        let ended = u64::from(self.inflight)
            .saturating_add(sample.passed)
            .saturating_sub(sample.one_shot)
            .saturating_sub(sample.inflight.into());
        let free = limit.saturating_sub(self.inflight);
        let room = u64::from(free).saturating_add(ended);
        let seconds = super::run::seconds(sample.tick_ns);
        let rate = published
            .allowed_qps
            .map_or(u64::MAX, |qps| whole((qps * seconds).ceil()));
        held.saturating_sub(room)
            .saturating_add(one_shot.saturating_sub(rate))
    }
}

/// The limit that held during a tick, as the gate reads the published word; `None` is none.
fn limit(sample: &Sample, published: &PublishedLimits) -> Option<u32> {
    let word = published.word();
    match word.state {
        ScopeState::Overload => Some(word.tight),
        ScopeState::Reject => Some(0),
        ScopeState::Healthy | ScopeState::Cold => {
            let held = sample
                .inflight
                .saturating_add(sample.accept_queue.unwrap_or(0));
            let far = held >= word.entry.saturating_mul(FAR_OVER);
            let over = held >= word.entry && (word.short || far);
            over.then_some(word.tight)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_overload_there_is_room_for_what_ended_and_for_the_free_places() {
        let published = PublishedLimits {
            state: ScopeState::Overload,
            tight: 10,
            entry: 40,
            ..PublishedLimits::START
        };
        let mut tally = Tally::default();
        let tick = |inflight, passed, shed| Sample {
            tick_ns: 100_000_000,
            inflight,
            passed,
            shed,
            ..Sample::default()
        };
        tally.take(&tick(10, 10, 0), &published);
        assert_eq!(tally.refused, 0);
        // 20 ended and 20 came in their places; 30 more were offered.
        tally.take(&tick(10, 20, 30), &published);
        assert_eq!((tally.offered, tally.refused, tally.recorded), (60, 30, 30));
        tally.take(&tick(10, 20, 30), &PublishedLimits::START);
        assert_eq!(tally.refused, 30, "open");
    }

    #[test]
    fn a_mark_that_rejects_refuses_all_although_the_recorded_requests_ended() {
        let published = PublishedLimits {
            state: ScopeState::Reject,
            ..PublishedLimits::START
        };
        let mut tally = Tally::default();
        let sample = Sample {
            tick_ns: 100_000_000,
            inflight: 1,
            passed: 10,
            one_shot: 4,
            shed: 3,
            ..Sample::default()
        };
        tally.take(&sample, &published);
        assert_eq!((tally.offered, tally.refused), (13, 13));
    }
}
