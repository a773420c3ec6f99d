//! From records to the figures of a run.

use tidegate_limits::number::{double, whole};

use crate::load::{Outcome, Record};

/// A part of a load, seconds from its beginning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub from_s: f64,
    pub until_s: f64,
}

impl Span {
    pub(crate) fn length_s(&self) -> f64 {
        self.until_s - self.from_s
    }

    /// What is before a moment.
    fn until(self, at_s: f64) -> Self {
        Self {
            until_s: self.until_s.min(at_s),
            ..self
        }
    }

    /// What is after it.
    fn from(self, at_s: f64) -> Self {
        Self {
            from_s: self.from_s.max(at_s),
            ..self
        }
    }

    fn holds(&self, at_s: f64) -> bool {
        (self.from_s..self.until_s).contains(&at_s)
    }
}

/// What the callers of one stream saw in a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    /// Requests that were due, per second.
    pub offered_qps: f64,
    /// Answers within the deadline, per second.
    pub goodput_qps: f64,
    /// Times of the answers that were not refusals, ms; `None` where there are none.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Of the first second of the span, and of the rest of it.
    pub first: Part,
    pub rest: Part,
    /// Share of the requests that were refused.
    pub refused_ratio: f64,
    /// From the beginning of the span to the first refusal, ms.
    pub first_shed_ms: Option<f64>,
    /// From its end to the last refusal after it, ms; 0 where there is none.
    pub last_shed_ms: f64,
}

/// What the callers saw in a part of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    /// 99th percentile of the answers that were not refusals, ms; `None` where there are none.
    pub p99_ms: Option<f64>,
    /// Requests that were neither refused nor answered within the deadline.
    pub late: f64,
}

impl Part {
    fn of(records: &[&Record], span: Span, deadline_s: f64) -> Self {
        let within = records.iter().filter(|record| span.holds(record.due_s));
        let within: Vec<&&Record> = within.collect();
        let is_late = |record: &&&&Record| match record.outcome {
            Outcome::Refused => false,
            Outcome::Answered => record.latency_s > deadline_s,
            Outcome::Failed | Outcome::Unanswered | Outcome::NoConnection => true,
        };
        let answered = within.iter().filter(|one| one.outcome == Outcome::Answered);
        let mut times_s: Vec<f64> = answered.map(|record| record.latency_s).collect();
        times_s.sort_by(f64::total_cmp);
        Self {
            p99_ms: quantile(&times_s, 0.99).map(|s| s * 1e3),
            late: count(within.iter().filter(is_late).count()),
        }
    }
}

/// The step to the offered load is over after so long, seconds.
const STEP_S: f64 = 1.0;

/// Which records count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judged {
    pub stream: usize,
    /// Whether requests for `/slow` count too.
    pub with_slow: bool,
}

impl Figures {
    /// The figures of the judged records in a span. A request counts where it was due.
    pub(crate) fn of(records: &[Record], judged: Judged, span: Span, deadline_s: f64) -> Self {
        let judged =
            |record: &&Record| record.stream == judged.stream && (judged.with_slow || !record.slow);
        let within: Vec<&Record> = records
            .iter()
            .filter(judged)
            .filter(|record| span.holds(record.due_s))
            .collect();
        let answered = within.iter().filter(|one| one.outcome == Outcome::Answered);
        let mut times_s: Vec<f64> = answered.map(|record| record.latency_s).collect();
        times_s.sort_by(f64::total_cmp);
        let in_time = times_s
            .iter()
            .filter(|time_s| **time_s <= deadline_s)
            .count();
        let refused = within
            .iter()
            .filter(|one| one.outcome == Outcome::Refused)
            .count();
        let shed_s = || {
            let refused = records.iter().filter(|one| one.outcome == Outcome::Refused);
            refused.map(|record| record.due_s + record.latency_s)
        };
        let first_s = shed_s().filter(|at_s| span.holds(*at_s)).reduce(f64::min);
        let last_s = shed_s()
            .filter(|at_s| *at_s >= span.until_s)
            .reduce(f64::max);
        Self {
            offered_qps: count(within.len()) / span.length_s(),
            goodput_qps: count(in_time) / span.length_s(),
            p50_ms: quantile(&times_s, 0.5).map(|s| s * 1e3),
            p99_ms: quantile(&times_s, 0.99).map(|s| s * 1e3),
            first: Part::of(&within, span.until(span.from_s + STEP_S), deadline_s),
            rest: Part::of(&within, span.from(span.from_s + STEP_S), deadline_s),
            refused_ratio: count(refused) / count(within.len()).max(1.0),
            first_shed_ms: first_s.map(|at_s| (at_s - span.from_s) * 1e3),
            last_shed_ms: last_s.map_or(0.0, |at_s| (at_s - span.until_s) * 1e3),
        }
    }
}

fn count(number: usize) -> f64 {
    double(number as u64)
}

/// A quantile of sorted values.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = usize::try_from(whole(count(last) * share)).ok()?;
    sorted.get(place).copied()
}

/// The median; `None` of nothing.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Judged = Judged {
        stream: 0,
        with_slow: true,
    };
    const SPAN: Span = Span {
        from_s: 1.0,
        until_s: 3.0,
    };

    fn record(due_s: f64, latency_s: f64, outcome: Outcome) -> Record {
        Record {
            stream: 0,
            due_s,
            latency_s,
            outcome,
            slow: false,
        }
    }

    #[test]
    fn late_answers_are_no_goodput_and_refusals_are_timed_from_both_ends() {
        let records = [
            record(0.5, 0.01, Outcome::Answered),
            record(1.0, 0.01, Outcome::Answered),
            record(1.5, 0.40, Outcome::Answered),
            record(2.0, 0.05, Outcome::Refused),
            record(2.5, f64::INFINITY, Outcome::Unanswered),
            record(3.0, 0.02, Outcome::Refused),
        ];
        let figures = Figures::of(&records, ALL, SPAN, 0.25);
        assert_eq!((figures.offered_qps, figures.goodput_qps), (2.0, 0.5));
        assert_eq!((figures.p50_ms, figures.p99_ms), (Some(10.0), Some(10.0)));
        assert!((figures.refused_ratio - 0.25).abs() < 1e-9);
        assert!((figures.first_shed_ms.unwrap() - 1050.0).abs() < 1e-6);
        assert!((figures.last_shed_ms - 20.0).abs() < 1e-6);
    }

    #[test]
    fn the_first_second_and_the_rest_are_told_apart() {
        let records = [
            record(1.0, 0.20, Outcome::Answered),
            record(1.9, 0.30, Outcome::Answered),
            record(2.0, 0.04, Outcome::Answered),
            record(2.1, 0.05, Outcome::Refused),
            record(2.2, 1.00, Outcome::Failed),
            record(2.9, f64::INFINITY, Outcome::Unanswered),
        ];
        let figures = Figures::of(&records, ALL, SPAN, 0.25);
        let ms = |part: Part| part.p99_ms.map(f64::round);
        assert_eq!((ms(figures.first), figures.first.late), (Some(200.0), 1.0));
        assert_eq!((ms(figures.rest), figures.rest.late), (Some(40.0), 2.0));
    }

    #[test]
    fn other_streams_and_slow_requests_count_where_they_are_asked_for() {
        let mut records = [record(1.0, 2.0, Outcome::Answered); 3];
        records[1].slow = true;
        records[2].stream = 1;
        let judged = Judged {
            with_slow: false,
            ..ALL
        };
        let offered_qps = |judged| Figures::of(&records, judged, SPAN, 0.25).offered_qps;
        assert!((offered_qps(ALL) - 1.0).abs() < 1e-9);
        assert!((offered_qps(judged) - 0.5).abs() < 1e-9);
        let nothing = Figures::of(&[], ALL, SPAN, 0.25);
        assert_eq!((nothing.p99_ms, nothing.first_shed_ms), (None, None));
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([].into_iter()), None);
    }
}
