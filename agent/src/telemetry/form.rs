//! The two forms of a scrape: Prometheus' text format, and `OpenMetrics` for who asks for it.
//!
//! The library writes the first one. `OpenMetrics` has the same samples; what differs is put right family by family.

use prometheus::TEXT_FORMAT;

use super::metric::{MetricId, MetricKind, MetricRow};

/// Content type of `OpenMetrics`.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How a scrape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScrapeForm {
    /// Prometheus' text format, version 0.0.4.
    Text,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl ScrapeForm {
    /// The form that a header `Accept` asks for. Text for who does not ask, or asks for what there is not.
    pub fn wanted_by(accept: &str) -> Self {
        let weight = |wanted: &str| {
            let of_kind = accept
                .split(',')
                .filter_map(|range| weight_of(range, wanted));
            of_kind.fold(0.0, f32::max)
        };
        let open = weight("application/openmetrics-text");
        if open > 0.0 && open >= weight("text/plain") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// Content type of a scrape in this form.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => TEXT_FORMAT,
            Self::OpenMetrics => OPEN_METRICS,
        }
    }

    /// What a scrape ends with.
    pub(super) const fn end(self) -> &'static str {
        match self {
            Self::Text => "",
            Self::OpenMetrics => "# EOF\n",
        }
    }

    /// Adds lines of a family, as the library writes them. `began_s` is when the agent began, Unix time.
    pub(super) fn add(self, id: MetricId, lines: &str, began_s: f64, text: &mut String) {
        match self {
            Self::Text => text.push_str(lines),
            Self::OpenMetrics => {
                let began = id.counts_since_start().then_some(began_s);
                for line in lines.lines() {
                    add_open(id.row(), line, began, text);
                }
            }
        }
    }
}

/// Weight of a range of an `Accept` header, if it is of the kind that is looked for.
fn weight_of(range: &str, wanted: &str) -> Option<f32> {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next()?;
    if !kind.eq_ignore_ascii_case(wanted) {
        return None;
    }
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    // A weight that is no number is one that nobody can mean.
    Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

fn add_open(row: MetricRow, line: &str, began: Option<f64>, text: &mut String) {
    if let Some(head) = line.strip_prefix("# ") {
        add_head(row, head, text);
    } else if row.kind == MetricKind::Histogram {
        add_bucket(line, text);
    } else {
        text.push_str(line);
    }
    text.push('\n');
    if let Some(began) = began {
        add_created(row, line, began, text);
    }
}

/// A family of counters has the name without `_total` there, which its samples keep; quotes in a help are escaped.
fn add_head(row: MetricRow, head: &str, text: &mut String) {
    let family = family(row);
    let (what, rest) = head.split_once(' ').unwrap_or((head, ""));
    let said = rest.strip_prefix(row.name).unwrap_or(rest);
    text.extend(["# ", what, " ", family]);
    text.push_str(&said.replace('"', "\\\""));
}

fn family(row: MetricRow) -> &'static str {
    row.name.strip_suffix("_total").unwrap_or(row.name)
}

/// A bound is always written as a number with a point.
fn add_bucket(line: &str, text: &mut String) {
    let bound = line.rsplit_once("le=\"").and_then(|(before, rest)| {
        let (bound, after) = rest.split_once('"')?;
        bound
            .parse::<u64>()
            .is_ok()
            .then_some((before, bound, after))
    });
    match bound {
        Some((before, bound, after)) => text.extend([before, "le=\"", bound, ".0\"", after]),
        None => text.push_str(line),
    }
}

/// Behind the last sample of a series: since when it counts.
fn add_created(row: MetricRow, line: &str, began: f64, text: &mut String) {
    let last = match row.kind {
        MetricKind::Counter => row.name.len(),
        MetricKind::Histogram | MetricKind::Summary => {
            row.name.len().saturating_add("_count".len())
        }
        MetricKind::Gauge => return,
    };
    let named = line.get(..last).filter(|name| {
        let suffix = name.strip_prefix(row.name);
        suffix.is_some_and(|suffix| matches!(suffix, "" | "_count"))
    });
    let after = named.and_then(|_name| line.get(last..));
    let labels = after.and_then(|after| after.rsplit_once(' '));
    if let Some((labels, _value)) = labels {
        let created = format!("_created{labels} {began:.3}\n");
        text.extend([family(row), &created]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_open_metrics_gets_it_and_nobody_else_does() {
        for (accept, form) in [
            ("", ScrapeForm::Text),
            ("*/*", ScrapeForm::Text),
            ("text/plain;version=0.0.4", ScrapeForm::Text),
            ("application/json", ScrapeForm::Text),
            ("application/openmetrics-text", ScrapeForm::OpenMetrics),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ScrapeForm::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0.1, text/plain",
                ScrapeForm::Text,
            ),
            ("application/openmetrics-text;q=0", ScrapeForm::Text),
            ("application/openmetrics-text;q=much", ScrapeForm::Text),
            (
                "Application/OpenMetrics-Text; charset=utf-8",
                ScrapeForm::OpenMetrics,
            ),
        ] {
            assert_eq!(ScrapeForm::wanted_by(accept), form, "{accept}");
        }
    }

    #[test]
    fn a_family_is_put_right_line_by_line() {
        let open = |id: MetricId, lines: &str| {
            let mut text = String::new();
            ScrapeForm::OpenMetrics.add(id, lines, 1.5, &mut text);
            text
        };
        assert_eq!(
            open(
                MetricId::Ticks,
                "# HELP tidegate_ticks_total Says \"tick\".\n# TYPE tidegate_ticks_total counter\ntidegate_ticks_total 7\n"
            ),
            "# HELP tidegate_ticks Says \\\"tick\\\".\n# TYPE tidegate_ticks counter\ntidegate_ticks_total 7\n\
             tidegate_ticks_created 1.500\n"
        );
        // It may have begun with a service, before the agent.
        let resource = "tidegate_resource_passed_total{resource=\"a b 1\"} 7\n";
        assert_eq!(open(MetricId::ResourcePassed, resource), resource);
        assert_eq!(
            open(
                MetricId::TickLate,
                "tidegate_tick_late_seconds_bucket{le=\"0.5\"} 1\ntidegate_tick_late_seconds_bucket{le=\"1\"} 1\n\
                 tidegate_tick_late_seconds_bucket{le=\"+Inf\"} 1\ntidegate_tick_late_seconds_count 1\n"
            ),
            "tidegate_tick_late_seconds_bucket{le=\"0.5\"} 1\ntidegate_tick_late_seconds_bucket{le=\"1.0\"} 1\n\
             tidegate_tick_late_seconds_bucket{le=\"+Inf\"} 1\ntidegate_tick_late_seconds_count 1\n\
             tidegate_tick_late_seconds_created 1.500\n"
        );
    }
}
