//! What one `GET /metrics` answers, built from the table of metrics.
//!
//! A scrape is made anew each time from the figures of the moment, so a scope or resource that is
//! gone leaves no series behind. Only the histogram of the ticks lives between scrapes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector as _;
use prometheus::proto::{
    Bucket, Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType, Summary,
};
use prometheus::{Histogram, HistogramOpts, TextEncoder};
use rustix::time::{ClockId, clock_gettime};
use tidegate_abi::board::name_hash;
use tidegate_abi::ledger::times::BUCKETS;
use tidegate_segment::ledger::NodeTimes;
use tidegate_segment::sync::{Ordering, Word};

use super::form::ScrapeForm;
use super::metric::{Label, MetricId, MetricKind, MetricRow};
use super::turned::TurnedAwayCounts;
use crate::plain::plain;

/// Most resources with series of their own; the others are summed up in [`OTHER`].
pub const RESOURCES_MAX: usize = 1000;

/// Most resources whose response times are sorted into buckets; of the others there is the sum.
pub const HISTOGRAMS_MAX: usize = 200;

/// Most rules with series of their own; the others are summed up in [`OTHER`].
pub const RULES_MAX: usize = 1000;

/// Name of the resources over [`RESOURCES_MAX`] taken together, and of the rules over [`RULES_MAX`].
pub const OTHER: &str = "__other__";

/// Upper bounds of the buckets of tick lateness, seconds. The promise is 0.1.
const LATE_BUCKETS: [f64; 9] = [0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0];

/// The metrics that live between scrapes.
#[derive(Debug)]
pub struct Metrics {
    tick_late: Histogram,
    began_s: f64,
    /// Unix time.
    reloaded_s: Word,
    turned: TurnedAwayCounts,
}

impl Metrics {
    /// Metrics without any observation.
    ///
    /// # Errors
    /// If the library refuses a name of the table.
    pub fn new() -> Result<Self, prometheus::Error> {
        let row = MetricId::TickLate.row();
        let opts = HistogramOpts::new(row.name, row.help).buckets(LATE_BUCKETS.to_vec());
        let metrics = Self {
            tick_late: Histogram::with_opts(opts)?,
            began_s: now_s(),
            reloaded_s: Word::new(0),
            turned: TurnedAwayCounts::new(),
        };
        metrics.note_reload();
        Ok(metrics)
    }

    /// Takes down how late a tick began. Does not allocate.
    pub fn observe_tick_late(&self, late: Duration) {
        self.tick_late.observe(late.as_secs_f64());
    }

    /// Takes down that configuration and rules are taken over now.
    pub fn note_reload(&self) {
        let now = clock_gettime(ClockId::Realtime);
        // Relaxed: a figure for people.
        self.reloaded_s
            .store(u64::try_from(now.tv_sec).unwrap_or(0), Ordering::Relaxed);
    }

    /// What the port of the metrics turned away.
    pub const fn turned(&self) -> &TurnedAwayCounts {
        &self.turned
    }

    /// Begins a scrape.
    pub fn scrape(&self) -> Scrape {
        let mut scrape = Scrape {
            tick_late: self.tick_late.collect(),
            began_s: self.began_s,
            ..Scrape::default()
        };
        let reloaded_s = self.reloaded_s.load(Ordering::Relaxed);
        scrape.set_count(MetricId::ConfigReloadTime, &[], reloaded_s);
        for (why, count) in self.turned.all() {
            scrape.set_count(MetricId::PortTurnedAway, &[why.name()], count);
        }
        scrape
    }
}

/// Unix time, seconds.
fn now_s() -> f64 {
    let now = clock_gettime(ClockId::Realtime);
    Duration::try_from(now).map_or(0.0, |now| now.as_secs_f64())
}

/// Most labels of a row.
const LABELS_MAX: usize = 4;

/// Series that are held as the library has them, some 500 bytes each, before they are text.
const ENCODED_AT_A_TIME: usize = 128;

/// A scrape that is being filled. A thousand resources have tens of thousands of series, so each of them is small: the
/// texts of its labels are kept once for all.
#[derive(Debug, Default)]
pub struct Scrape {
    tick_late: Vec<MetricFamily>,
    /// When the agent began, Unix time.
    began_s: f64,
    families: BTreeMap<MetricId, BTreeMap<Key, Value>>,
    texts: Texts,
    /// Numbers of the resources that have series of their own.
    resources: HashSet<u32>,
    /// Hashes of the names of the others.
    other_resources: HashSet<u64>,
    rules: usize,
    histograms: usize,
}

/// The labels of a series, by the numbers of their texts; 0 behind the last one.
type Key = [u32; LABELS_MAX];

/// Texts of labels, each once.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let text: Arc<str> = Arc::from(text);
        self.numbers.insert(Arc::clone(&text), number);
        self.texts.push(text);
        number
    }

    fn text(&self, number: u32) -> &str {
        let place = usize::try_from(number).ok();
        let text = place.and_then(|place| self.texts.get(place));
        text.map_or("", |text| text)
    }
}

#[derive(Debug, Default)]
struct Value {
    sum: f64,
    count: u64,
    /// How many of `count` are under each bound; few series have that.
    under: Option<Box<Under>>,
}

/// How many were under each bound of [`NodeTimes::bounds_ns`].
type Under = [u64; BUCKETS];

impl Scrape {
    /// Sets a counter or a gauge. `labels` are the values of the row's labels, in their order.
    pub fn set(&mut self, id: MetricId, labels: &[&str], value: f64) {
        self.add(
            id,
            labels,
            Value {
                sum: value,
                ..Value::default()
            },
        );
    }

    /// Sets a counter or a gauge of things; over 2^53 the last digits are lost.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the text format has floating point only"
    )]
    pub fn set_count(&mut self, id: MetricId, labels: &[&str], count: u64) {
        self.set(id, labels, count as f64);
    }

    /// Sets a flag: 1 or 0.
    pub fn set_flag(&mut self, id: MetricId, labels: &[&str], flag: bool) {
        self.set(id, labels, f64::from(u8::from(flag)));
    }

    /// Sets a summary: how many durations there were and their sum.
    pub fn set_summary(&mut self, id: MetricId, labels: &[&str], count: u64, sum: Duration) {
        let sum = sum.as_secs_f64();
        let value = Value {
            sum,
            count,
            under: None,
        };
        self.add(id, labels, value);
    }

    /// Sets a histogram of response times: those that ended well, the sum of their times, and those of them that
    /// took long.
    pub fn set_times(
        &mut self,
        id: MetricId,
        labels: &[&str],
        (count, sum): (u64, Duration),
        times: &NodeTimes,
    ) {
        self.histograms = self.histograms.saturating_add(1);
        let value = Value {
            sum: sum.as_secs_f64(),
            count,
            under: (self.histograms <= HISTOGRAMS_MAX).then(|| Box::new(under(count, times))),
        };
        self.add(id, labels, value);
    }

    /// Sets what a rule did.
    pub fn set_rule(&mut self, id: MetricId, labels: [&str; 4], count: u64) {
        self.rules = self.rules.saturating_add(1);
        let [_rule, _kind, _resource, tenant] = labels;
        if self.rules <= RULES_MAX {
            self.set_count(id, &labels, count);
        } else {
            self.set_count(id, &[OTHER, "", "", tenant], count);
        }
    }

    /// The answer in a form. `length` is what it is likely to have, bytes.
    ///
    /// Families are written one by one and let go, so that little is held beside the text.
    ///
    /// # Errors
    /// If the library refuses a family, which would be a fault in the table.
    pub fn text(mut self, form: ScrapeForm, length: usize) -> Result<String, prometheus::Error> {
        let others = u64::try_from(self.other_resources.len()).unwrap_or(u64::MAX);
        self.set_count(MetricId::OtherResources, &[], others);
        let mut text = String::with_capacity(length);
        while let Some((id, series)) = self.families.pop_first() {
            self.write(form, id, series, &mut text)?;
        }
        let mut last = String::new();
        TextEncoder::new().encode_utf8(&self.tick_late, &mut last)?;
        form.add(MetricId::TickLate, &last, self.began_s, &mut text);
        text.push_str(form.end());
        Ok(text)
    }

    /// Writes a family, some series at a time.
    fn write(
        &self,
        form: ScrapeForm,
        id: MetricId,
        mut series: BTreeMap<Key, Value>,
        text: &mut String,
    ) -> Result<(), prometheus::Error> {
        let row = id.row();
        let encoder = TextEncoder::new();
        let mut part = String::new();
        let mut head = 0;
        while !series.is_empty() {
            let some = std::iter::from_fn(|| series.pop_first()).take(ENCODED_AT_A_TIME);
            let some = some.map(|(key, value)| self.metric(row, key, value));
            part.clear();
            encoder.encode_utf8(&[family(row, some.collect())], &mut part)?;
            // Help and type are said once.
            let lines = part.get(head..).unwrap_or(&part);
            form.add(id, lines, self.began_s, text);
            head = head_of(&part);
        }
        Ok(())
    }

    fn add(&mut self, id: MetricId, labels: &[&str], value: Value) {
        let row = id.row();
        debug_assert_eq!(
            labels.len(),
            row.labels.len(),
            "{} has other labels",
            row.name
        );
        let mut key = Key::default();
        for (number, (label, value)) in key.iter_mut().zip(row.labels.iter().zip(labels)) {
            *number = self.bounded(*label, value);
        }
        let series = self.families.entry(id).or_default().entry(key).or_default();
        series.sum += value.sum;
        series.count = series.count.saturating_add(value.count);
        if let Some(under) = value.under {
            let sums = series.under.get_or_insert_default();
            for (sum, more) in sums.iter_mut().zip(*under) {
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// The number of a label's text, or that of [`OTHER`] for a resource over the bound.
    fn bounded(&mut self, label: Label, value: &str) -> u32 {
        if label != Label::Resource {
            return self.texts.number(value);
        }
        let known = self.texts.numbers.get(value).copied();
        if let Some(number) = known.filter(|number| self.resources.contains(number)) {
            return number;
        }
        if self.resources.len() < RESOURCES_MAX {
            let number = self.texts.number(value);
            self.resources.insert(number);
            return number;
        }
        self.other_resources.insert(name_hash(value.as_bytes()));
        self.texts.number(OTHER)
    }

    fn metric(&self, row: MetricRow, key: Key, value: Value) -> Metric {
        let texts = key.map(|number| self.texts.text(number));
        let pairs = row.labels.iter().zip(texts);
        // A label without a value is no label.
        let pairs = pairs.filter(|(_label, text)| !text.is_empty());
        let pairs = pairs.map(|(label, text)| pair(*label, text)).collect();
        metric(row.kind, pairs, value)
    }
}

/// Bytes of the lines with which a family begins: its help and its type.
fn head_of(text: &str) -> usize {
    let lines = text.split_inclusive('\n');
    let heads = lines.take_while(|line| line.starts_with('#'));
    heads.map(str::len).fold(0, usize::saturating_add)
}

fn family(row: MetricRow, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(row.name.to_owned());
    family.set_help(row.help.to_owned());
    family.set_field_type(match row.kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Gauge => MetricType::GAUGE,
        MetricKind::Summary => MetricType::SUMMARY,
        MetricKind::Histogram => MetricType::HISTOGRAM,
    });
    family.set_metric(metrics);
    family
}

fn metric(kind: MetricKind, labels: Vec<LabelPair>, value: Value) -> Metric {
    let mut metric = Metric::from_label(labels);
    match kind {
        MetricKind::Counter => {
            let mut counter = Counter::default();
            counter.set_value(value.sum);
            metric.set_counter(counter);
        }
        MetricKind::Summary => {
            let mut summary = Summary::default();
            summary.set_sample_sum(value.sum);
            summary.set_sample_count(value.count);
            metric.set_summary(summary);
        }
        MetricKind::Histogram => metric.set_histogram(histogram(value)),
        MetricKind::Gauge => {
            let mut gauge = Gauge::default();
            gauge.set_value(value.sum);
            metric.set_gauge(gauge);
        }
    }
    metric
}

/// How many of `count` requests were under each bound. Those that no bucket has were under all of them.
fn under(count: u64, times: &NodeTimes) -> Under {
    let long = times
        .took
        .iter()
        .fold(0_u64, |sum, more| sum.saturating_add(*more));
    let mut seen = count.saturating_sub(long);
    times.took.map(|more| {
        let under = seen;
        seen = seen.saturating_add(more);
        under
    })
}

fn histogram(value: Value) -> prometheus::proto::Histogram {
    let bounds = NodeTimes::bounds_ns().map(|bound| Duration::from_nanos(bound).as_secs_f64());
    let under = value.under.map(|under| *under);
    let buckets = under.into_iter().flatten().zip(bounds);
    let buckets = buckets.map(|(under, bound)| {
        let mut bucket = Bucket::default();
        // A count that was read later than the buckets, or comes from a page that lies, is over none of them.
        bucket.set_cumulative_count(under.min(value.count));
        bucket.set_upper_bound(bound);
        bucket
    });
    let mut histogram = prometheus::proto::Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_sum(value.sum);
    histogram.set_sample_count(value.count);
    histogram
}

fn pair(label: Label, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(label.name().to_owned());
    pair.set_value(plain(value).into_owned());
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape() -> Scrape {
        Metrics::new().expect("the table is sound").scrape()
    }

    #[test]
    fn shows_each_kind_with_help_and_type() {
        let metrics = Metrics::new().expect("the table is sound");
        metrics.observe_tick_late(Duration::from_millis(3));
        let mut scrape = metrics.scrape();
        scrape.set_count(MetricId::ResourceRefused, &["order-create", "flow", ""], 7);
        scrape.set_flag(MetricId::ScopeState, &["host", "overload"], true);
        scrape.set_count(MetricId::ResourcePassed, &["order-create", "shop"], 8);
        scrape.set(MetricId::Signal, &["host", "cpu"], 0.25);
        let mut times = NodeTimes::default();
        // From 4.2 to 8.4 ms.
        times.took[4] = 3;
        scrape.set_times(
            MetricId::ResourceRt,
            &["order-create", ""],
            (4, Duration::from_millis(500)),
            &times,
        );
        let text = scrape.text(ScrapeForm::Text, 0).expect("encodes");
        for line in [
            "# TYPE tidegate_resource_refused_total counter",
            "tidegate_resource_refused_total{resource=\"order-create\",reason=\"flow\"} 7",
            "tidegate_resource_passed_total{resource=\"order-create\",tenant=\"shop\"} 8",
            "tidegate_scope_state{scope=\"host\",state=\"overload\"} 1",
            "tidegate_signal{scope=\"host\",signal=\"cpu\"} 0.25",
            "# TYPE tidegate_resource_rt_seconds histogram",
            "tidegate_resource_rt_seconds_bucket{resource=\"order-create\",le=\"0.000262144\"} 1",
            "tidegate_resource_rt_seconds_bucket{resource=\"order-create\",le=\"0.004194304\"} 1",
            "tidegate_resource_rt_seconds_bucket{resource=\"order-create\",le=\"0.008388608\"} 4",
            "tidegate_resource_rt_seconds_bucket{resource=\"order-create\",le=\"+Inf\"} 4",
            "tidegate_resource_rt_seconds_sum{resource=\"order-create\"} 0.5",
            "tidegate_resource_rt_seconds_count{resource=\"order-create\"} 4",
            "# TYPE tidegate_tick_late_seconds histogram",
            "tidegate_tick_late_seconds_bucket{le=\"0.001\"} 0",
            "tidegate_tick_late_seconds_bucket{le=\"0.005\"} 1",
            "tidegate_tick_late_seconds_count 1",
        ] {
            assert!(
                text.lines().any(|shown| shown == line),
                "no {line:?} in:\n{text}"
            );
        }
    }

    #[test]
    fn resources_over_the_bound_are_summed_up() {
        let mut scrape = scrape();
        for number in 0..RESOURCES_MAX + 3 {
            let name = format!("r{number}");
            scrape.set_count(MetricId::ResourcePassed, &[&name, ""], 2);
            scrape.set_count(MetricId::ResourceInflight, &[&name, ""], 1);
        }
        let text = scrape.text(ScrapeForm::Text, 0).expect("encodes");
        assert!(text.contains("tidegate_resource_passed_total{resource=\"__other__\"} 6\n"));
        assert!(text.contains("tidegate_resource_inflight{resource=\"__other__\"} 3\n"));
        assert!(text.contains("tidegate_other_resources 3\n"));
        let own = text.matches("tidegate_resource_passed_total{").count();
        assert_eq!(own, RESOURCES_MAX + 1);
    }

    #[test]
    fn field_o9_rules_and_histograms_over_the_bound_make_no_more_series() {
        let mut scrape = scrape();
        for number in 0..RULES_MAX + 3 {
            let name = format!("r{number}");
            scrape.set_rule(MetricId::RuleRefused, [&name, "flow", &name, ""], 2);
            scrape.set_times(
                MetricId::ResourceRt,
                &[&name, ""],
                (5, Duration::from_secs(1)),
                &NodeTimes::default(),
            );
        }
        let text = scrape.text(ScrapeForm::Text, 0).expect("encodes");
        assert!(text.contains("tidegate_rule_refused_total{rule=\"__other__\"} 6\n"));
        let rules = text.matches("tidegate_rule_refused_total{").count();
        assert_eq!(rules, RULES_MAX + 1);
        let finite = text.matches("tidegate_resource_rt_seconds_bucket{").count();
        assert_eq!(finite, HISTOGRAMS_MAX * BUCKETS + RESOURCES_MAX + 1);
        assert!(text.contains("tidegate_resource_rt_seconds_count{resource=\"__other__\"} 15\n"));
    }

    #[test]
    fn a_long_family_says_its_help_and_type_once_and_has_each_series_once() {
        let mut scrape = scrape();
        let names = (0..3 * ENCODED_AT_A_TIME).map(|number| format!("# {number}"));
        let names: Vec<String> = names.collect();
        for name in &names {
            scrape.set_count(MetricId::ResourcePassed, &[name, ""], 1);
        }
        let text = scrape.text(ScrapeForm::Text, 0).expect("encodes");
        let family = MetricId::ResourcePassed.row().name;
        for head in ["HELP", "TYPE"] {
            let heads = text.matches(&format!("# {head} {family} ")).count();
            assert_eq!(heads, 1, "{head}");
        }
        for name in names {
            let line = format!("{family}{{resource=\"{name}\"}} 1\n");
            assert_eq!(text.matches(&line).count(), 1, "{line}");
        }
    }

    #[test]
    fn every_row_has_room_for_its_labels() {
        let most = MetricId::ALL.iter().map(|id| id.row().labels.len()).max();
        assert_eq!(most, Some(LABELS_MAX));
    }

    #[test]
    fn label_values_are_escaped() {
        let mut scrape = scrape();
        scrape.set_count(MetricId::ResourcePassed, &["a\"b\\c", ""], 1);
        let text = scrape.text(ScrapeForm::Text, 0).expect("encodes");
        assert!(text.contains(r#"{resource="a\"b\\c"} 1"#), "{text}");
    }
}
