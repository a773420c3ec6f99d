//! When requests are due: at random (a Poisson process), at a rate that changes from phase to phase.

use std::io;

/// Most requests of a load: more is a typing error, and would need more memory than the lab takes.
const ARRIVALS_MAX: f64 = 2e6;

/// A time with a constant rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Phase {
    pub seconds: f64,
    /// Requests per second.
    pub qps: f64,
}

/// A request that will be due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    pub due_s: f64,
    pub stream: usize,
    pub slow: bool,
}

/// Length of some phases, seconds.
pub(crate) fn length_s(phases: &[Phase]) -> f64 {
    phases.iter().map(|phase| phase.seconds).sum()
}

/// The requests of all streams in the order in which they are due. The same seed gives the same ones.
///
/// # Errors
/// They are too many.
pub(super) fn arrivals(streams: &[super::Stream], seed: u64) -> io::Result<Vec<Arrival>> {
    let phases = streams.iter().flat_map(|stream| &stream.phases);
    let expected: f64 = phases.map(|phase| phase.seconds * phase.qps).sum();
    if expected > ARRIVALS_MAX {
        return Err(io::Error::other(format!(
            "{expected:.0} requests in one load; at most {ARRIVALS_MAX:.0}: take fewer seconds or more --work-ms"
        )));
    }
    let mut arrivals = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
        let mut begin_s = 0.0;
        for phase in &stream.phases {
            let mut due_s = begin_s + exponential(&mut random, phase.qps);
            while due_s < begin_s + phase.seconds {
                arrivals.push(Arrival {
                    due_s,
                    stream: number,
                    slow: random.f64() < stream.slow.share,
                });
                due_s += exponential(&mut random, phase.qps);
            }
            begin_s += phase.seconds;
        }
    }
    arrivals.sort_by(|a, b| a.due_s.total_cmp(&b.due_s));
    Ok(arrivals)
}

fn exponential(random: &mut fastrand::Rng, qps: f64) -> f64 {
    -(1.0 - random.f64()).ln() / qps
}

#[cfg(test)]
mod tests {
    use super::super::{Slow, Stream};
    use super::*;

    fn stream(phases: &[(f64, f64)]) -> Stream {
        let phases = phases.iter().map(|&(seconds, qps)| Phase { seconds, qps });
        Stream {
            address: "127.0.0.1:1".parse().unwrap(),
            keep_alive: true,
            path: "/work",
            slow: Slow {
                share: 0.25,
                ..Slow::NONE
            },
            phases: phases.collect(),
            retry: None,
        }
    }

    #[test]
    fn each_phase_has_about_its_rate_and_a_seed_repeats_itself() {
        let streams = [stream(&[(10.0, 100.0), (5.0, 1000.0), (1.0, 0.0)])];
        let due = arrivals(&streams, 3).unwrap();
        assert_eq!(due, arrivals(&streams, 3).unwrap());
        assert_ne!(due, arrivals(&streams, 4).unwrap());
        let first = due.iter().filter(|one| one.due_s < 10.0).count();
        assert!((900..1100).contains(&first), "{first}");
        assert!((5700..6300).contains(&due.len()), "{}", due.len());
        let slow = due.iter().filter(|one| one.slow).count();
        assert!((1350..1650).contains(&slow), "{slow}");
        assert!(due.is_sorted_by(|a, b| a.due_s <= b.due_s));
    }

    #[test]
    fn an_absurd_load_is_refused_with_what_to_do() {
        let error = arrivals(&[stream(&[(100.0, 1e6)])], 1).unwrap_err();
        assert!(error.to_string().contains("--work-ms"), "{error}");
    }
}
