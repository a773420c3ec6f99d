//! What a service can do without a law, and what a refusal costs it.

use std::io;
use std::time::Duration;

use crate::figures::{Figures, Judged, Span};
use crate::lab::{Guarded, Lab, Shape};
use crate::law::Law;
use crate::load::{self, Phase, Slow, Stream, closed};
use crate::machine::group::Group;

/// Loads, as shares of the capacity, of which the best is the peak.
const NEAR: [f64; 3] = [0.85, 0.92, 0.97];
/// Seconds of a load before its answers count.
const WARM_S: f64 = 1.0;
const SEED: u64 = 5;

/// The yardstick of all runs with one shape of service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Yardstick {
    /// Requests per second that a closed loop gets done (C).
    pub capacity_qps: f64,
    /// CPU time of a refusal ÷ CPU time of a request (r).
    pub refusal_cost_ratio: f64,
    /// Best rate of answers within the deadline, without a law.
    pub peak_qps: f64,
    /// 99th percentile there, ms.
    pub peak_p99_ms: f64,
}

impl Yardstick {
    /// Measures a shape of service; each load takes so long.
    ///
    /// # Errors
    /// A part does not start, or the lab was told to end.
    pub(crate) fn measure(lab: &Lab, shape: &Shape, length: Duration) -> io::Result<Self> {
        let capacity_qps = capacity_qps(lab, shape, length)?;
        let refusal_s = refusal_cost_s(lab, shape, length / 2)?;
        let mut best: Option<Figures> = None;
        for share in NEAR {
            let figures = near_capacity(lab, shape, share * capacity_qps, length)?;
            if best.is_none_or(|best| figures.goodput_qps > best.goodput_qps) {
                best = Some(figures);
            }
        }
        let best = best.ok_or_else(|| io::Error::other("no load near the capacity"))?;
        Ok(Self {
            capacity_qps,
            refusal_cost_ratio: refusal_s / shape.work(lab.work).as_secs_f64(),
            peak_qps: best.goodput_qps,
            peak_p99_ms: best.p99_ms.unwrap_or(f64::NAN),
        })
    }

    /// The most that a law can get done of so many requests per second, ÷ peak: what is offered, what
    /// the service can do at its best, and what is left of its CPU when the rest is refused.
    pub(crate) fn bound(&self, offered_qps: f64) -> f64 {
        let times = offered_qps / self.capacity_qps;
        let cost = self.refusal_cost_ratio;
        let left = if times > 1.0 {
            self.capacity_qps * ((1.0 - times * cost) / (1.0 - cost)).max(0.0)
        } else {
            self.capacity_qps
        };
        left.min(self.peak_qps).min(offered_qps) / self.peak_qps
    }
}

fn unguarded(group: Option<&Group>) -> Guarded<'_> {
    Guarded {
        law: Law::None,
        group,
        agent: None,
    }
}

fn capacity_qps(lab: &Lab, shape: &Shape, length: Duration) -> io::Result<f64> {
    let group = lab.group("service", shape.quota)?;
    let service = lab.service(shape, "lab", &unguarded(group.as_ref()))?;
    let keep_alive = shape.keeps_alive();
    let answers = closed::flood(service.address, "/work", keep_alive, length, &lab.interrupt)?;
    Ok(f64::from(answers.count) / answers.seconds)
}

/// CPU time of a refusal by a rule of the real agent, seconds.
fn refusal_cost_s(lab: &Lab, shape: &Shape, length: Duration) -> io::Result<f64> {
    let rules = "[[flow]]\nresource = \"lab-refuse\"\ngrade = \"qps\"\ncount = 0\n";
    let agent = lab.agent(rules)?;
    // What a refusal costs is asked without a quota: it is CPU time.
    let group = lab.group("service", None)?;
    let guarded = Guarded {
        law: Law::Adaptive,
        group: group.as_ref(),
        agent: Some(&agent),
    };
    let service = lab.service(shape, "lab", &guarded)?;
    let before = service.stats()?;
    let keep_alive = shape.keeps_alive();
    closed::flood(
        service.address,
        "/refuse",
        keep_alive,
        length,
        &lab.interrupt,
    )?;
    let after = service.stats()?;
    let refused = after.refused.saturating_sub(before.refused);
    let refused = u32::try_from(refused).unwrap_or(u32::MAX);
    if refused == 0 {
        return Err(io::Error::other("the rule with count 0 refused nothing"));
    }
    Ok((after.cpu_s - before.cpu_s) / f64::from(refused))
}

fn near_capacity(lab: &Lab, shape: &Shape, qps: f64, length: Duration) -> io::Result<Figures> {
    let group = lab.group("service", shape.quota)?;
    let service = lab.service(shape, "lab", &unguarded(group.as_ref()))?;
    let seconds = WARM_S + length.as_secs_f64();
    let stream = Stream {
        address: service.address,
        keep_alive: shape.keeps_alive(),
        path: "/work",
        slow: Slow::NONE,
        phases: vec![Phase { seconds, qps }],
        retry: None,
    };
    let records = load::generate(&[stream], SEED, &lab.interrupt, |_began| {})?;
    let span = Span {
        from_s: WARM_S,
        until_s: seconds,
    };
    let judged = Judged {
        stream: 0,
        with_slow: true,
    };
    let figures = Figures::of(&records, judged, span, lab.deadline.as_secs_f64());
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_what_is_offered_then_the_peak_then_what_refusals_leave() {
        let yardstick = Yardstick {
            capacity_qps: 200.0,
            refusal_cost_ratio: 0.02,
            peak_qps: 190.0,
            peak_p99_ms: 30.0,
        };
        assert!((yardstick.bound(95.0) - 0.5).abs() < 1e-9);
        assert!((yardstick.bound(200.0) - 1.0).abs() < 1e-9);
        let at_10 = 200.0 * (0.8 / 0.98) / 190.0;
        assert!((yardstick.bound(2000.0) - at_10).abs() < 1e-9);
        assert!(yardstick.bound(20_000.0).abs() < 1e-9);
    }
}
