//! What a request costs the service, and what can happen to that while it is loaded.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What lasts from one request to the next.
#[derive(Debug)]
pub(super) struct Toil {
    usual: Duration,
    /// Every so many requests one takes so long instead.
    long: Option<(usize, Duration)>,
    asked: AtomicUsize,
    /// Whether a new version is deployed, in which all takes twice the time.
    heavier: AtomicBool,
    /// Whether what the service asks downstream does not answer.
    downstream_is_dead: AtomicBool,
}

/// What happens to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A version that takes twice the time, for good.
    Deploy,
    /// What it asks downstream answers no more.
    DownstreamDies,
    DownstreamLives,
}

impl Event {
    /// The path by which the service hears of it.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Deploy => "/deploy",
            Self::DownstreamDies => "/downstream-dies",
            Self::DownstreamLives => "/downstream-lives",
        }
    }

    /// What a path tells.
    pub(super) fn of(path: &str) -> Option<Self> {
        let all = [Self::Deploy, Self::DownstreamDies, Self::DownstreamLives];
        all.into_iter().find(|event| event.path() == path)
    }
}

impl Toil {
    /// So long for a request; every so many requests one takes so long.
    pub(super) const fn new(usual: Duration, long: Option<(usize, Duration)>) -> Self {
        Self {
            usual,
            long,
            asked: AtomicUsize::new(0),
            heavier: AtomicBool::new(false),
            downstream_is_dead: AtomicBool::new(false),
        }
    }

    /// Something happens.
    pub(super) fn meet(&self, event: Event) {
        // Relaxed, here and below: each stands for itself.
        match event {
            Event::Deploy => self.heavier.store(true, Ordering::Relaxed),
            Event::DownstreamDies => self.downstream_is_dead.store(true, Ordering::Relaxed),
            Event::DownstreamLives => self.downstream_is_dead.store(false, Ordering::Relaxed),
        }
    }

    /// CPU time of the next request.
    pub(super) fn next(&self) -> Duration {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_long =
            |(each, _long): &(usize, Duration)| number.wrapping_add(1).is_multiple_of(*each);
        let time = self
            .long
            .filter(is_long)
            .map_or(self.usual, |(_each, long)| long);
        if self.heavier.load(Ordering::Relaxed) {
            time.saturating_mul(2)
        } else {
            time
        }
    }

    /// Whether what the service asks downstream does not answer.
    pub(super) fn is_downstream_dead(&self) -> bool {
        self.downstream_is_dead.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_of_so_many_is_long_and_a_deploy_doubles_all() {
        let ms = Duration::from_millis;
        let toil = Toil::new(ms(1), Some((4, ms(500))));
        let mut times = (0..4).map(|_request| toil.next()).collect::<Vec<_>>();
        toil.meet(Event::Deploy);
        times.push(toil.next());
        assert_eq!(times, [ms(1), ms(1), ms(1), ms(500), ms(2)]);
    }

    #[test]
    fn each_event_has_a_path_and_the_downstream_comes_back() {
        let toil = Toil::new(Duration::ZERO, None);
        for (event, dead) in [
            (Event::DownstreamDies, true),
            (Event::DownstreamLives, false),
        ] {
            assert_eq!(Event::of(event.path()), Some(event));
            toil.meet(event);
            assert_eq!(toil.is_downstream_dead(), dead);
        }
        assert_eq!(Event::of("/work"), None);
    }
}
