//! How a rule is now, in a sentence.

use serde_json::{Map, Value};

use crate::rule::degrade::tripped;
use crate::words::{many, ms, number, percent};

/// The figures of a rule as the agent tells them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now<'n>(pub &'n Map<String, Value>);

impl Now<'_> {
    /// The sentence; whatever an agent of another version tells is told as it is.
    pub(super) fn text(self) -> String {
        self.breaker()
            .or_else(|| self.queue())
            .or_else(|| self.each())
            .or_else(|| self.warm_up())
            .or_else(|| self.strict())
            .or_else(|| self.listed())
            .or_else(|| self.inbound())
            .or_else(|| self.plain())
            .unwrap_or_else(|| self.raw())
    }

    /// Whether its refusals are measured in ms.
    pub(super) fn is_queue(self) -> bool {
        self.0.contains_key("queued_ms")
    }

    fn number(self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    fn whole(self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn word(self, name: &str) -> Option<&'static str> {
        // The words that are compared with.
        let known = [
            "open",
            "half_open",
            "closed",
            "origin",
            "value",
            "inflight",
            "allow",
            "deny",
        ];
        let word = self.0.get(name)?.as_str()?;
        known.into_iter().find(|known| *known == word)
    }

    fn breaker(self) -> Option<String> {
        let state = self.word("breaker")?;
        let (calls, bad) = (self.whole("calls")?, self.whole("bad")?);
        let left = ms(self.whole("left_ms").unwrap_or_default());
        let opened = self.whole("opened_total").unwrap_or_default();
        let told = match state {
            "open" => format!("open after {}; the next probe is in {left}", self.tripped()),
            "half_open" => format!("half open: a probe is under way, for {left} at most"),
            _ => format!("closed; {bad} of {calls} calls were bad in this interval"),
        };
        Some(match opened {
            0 => told,
            times => format!("{told}; opened {} so far", many(times, "time")),
        })
    }

    /// What opened it, such as `3 errors, threshold 2`.
    fn tripped(self) -> String {
        let by = self.number("opened_by").unwrap_or_default();
        let grade = self.0.get("grade").and_then(Value::as_str);
        match (grade, self.number("threshold")) {
            (Some(grade), Some(threshold)) => tripped((grade, threshold), by),
            _ => number(by),
        }
    }

    fn queue(self) -> Option<String> {
        let (queued, most) = (self.whole("queued_ms")?, self.whole("limit_ms")?);
        let rate = number(self.number("rate")?);
        Some(format!(
            "paced to {rate} a second; the wait is {}, at most {}",
            ms(queued),
            ms(most)
        ))
    }

    fn each(self) -> Option<String> {
        let each = self.word("each")?;
        let limit = number(self.number("limit")?);
        let what = match self.word("counts") {
            Some("inflight") => " in flight",
            _ => "",
        };
        let told = format!("at most {limit}{what} for each {each}");
        Some(match self.whole("items") {
            Some(items) if items > 0 => {
                format!("{told}; {} with a limit of its own", many(items, each))
            }
            _ => told,
        })
    }

    fn warm_up(self) -> Option<String> {
        let warm = number(self.number("warm_limit")?);
        let limit = number(self.number("limit")?);
        Some(format!(
            "{} passed in the last second; at most {limit} a second now, {warm} when warm",
            self.whole("passed").unwrap_or_default()
        ))
    }

    fn strict(self) -> Option<String> {
        let fits = self.0.get("next_fits_in_ms")?;
        let limit = number(self.number("limit")?);
        let window = ms(self.whole("window_ms")?);
        let when = match fits.as_u64() {
            Some(0) => "the next one fits now".to_owned(),
            Some(wait) => format!("the next one fits in {}", ms(wait)),
            None => "none fits".to_owned(),
        };
        Some(format!("{when}; at most {limit} in any {window}"))
    }

    fn listed(self) -> Option<String> {
        let list = self.word("list")?;
        let origins = self.0.get("origins")?.as_array()?.iter();
        let origins: Vec<_> = origins.filter_map(Value::as_str).collect();
        let origins = origins.join(", ");
        Some(match list {
            "allow" => format!("only from {origins}; a caller that names no origin is admitted"),
            _ => format!("not from {origins}"),
        })
    }

    fn inbound(self) -> Option<String> {
        let mean = self.0.get("average_rt_ms")?.as_f64();
        let figure =
            |name: &str, value: Option<String>| value.map(|value| format!(", {name} {value}"));
        let figures = [
            figure("mean time", mean.map(|mean| format!("{} ms", number(mean)))),
            figure("load", self.number("load").map(number)),
            figure("cpu", self.number("cpu").map(percent)),
        ];
        Some(format!(
            "all inbound work: {} passed in the last second, {} in flight{}",
            self.whole("passed").unwrap_or_default(),
            self.whole("inflight").unwrap_or_default(),
            figures.into_iter().flatten().collect::<String>()
        ))
    }

    fn plain(self) -> Option<String> {
        let limit = number(self.number("limit")?);
        if let Some(inflight) = self.whole("inflight") {
            return Some(format!("{inflight} of {limit} in flight"));
        }
        let window = self
            .whole("window_ms")
            .map_or_else(|| "second".to_owned(), ms);
        let passed = self.whole("passed")?;
        Some(format!("{passed} of {limit} passed in the last {window}"))
    }

    fn raw(self) -> String {
        let parts = self.0.iter();
        let parts = parts.map(|(name, value)| format!("{} {value}", name.replace('_', " ")));
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_o11_every_form_is_a_sentence() {
        for (now, told) in [
            (
                json!({"bad": 3, "breaker": "open", "calls": 3, "closed_total": 0, "left_ms": 4951, "opened_by": 3.0,
                    "opened_total": 1, "grade": "error_count", "threshold": 2.0}),
                "open after 3 errors, threshold 2; the next probe is in 5 s; opened 1 time so far",
            ),
            (
                json!({"bad": 1, "breaker": "closed", "calls": 10, "left_ms": 0, "opened_by": 0.0, "opened_total": 0,
                    "grade": "slow_ratio", "threshold": 0.5}),
                "closed; 1 of 10 calls were bad in this interval",
            ),
            (
                json!({"queued_ms": 389, "limit_ms": 500, "rate": 5.0}),
                "paced to 5 a second; the wait is 389 ms, at most 500 ms",
            ),
            (
                json!({"passed": 3, "limit": 33.333_333_333_333_34, "warm_limit": 100.0}),
                "3 passed in the last second; at most 33.3 a second now, 100 when warm",
            ),
            (
                json!({"passed": 3, "limit": 5.0}),
                "3 of 5 passed in the last second",
            ),
            (
                json!({"passed": 3, "limit": 5, "window_ms": 60_000}),
                "3 of 5 passed in the last 1 min",
            ),
            (json!({"inflight": 2, "limit": 2}), "2 of 2 in flight"),
            (
                json!({"next_fits_in_ms": 109, "limit": 5, "window_ms": 1000}),
                "the next one fits in 109 ms; at most 5 in any 1 s",
            ),
            (
                json!({"each": "value", "counts": "passed", "limit": 3, "items": 2}),
                "at most 3 for each value; 2 values with a limit of its own",
            ),
            (
                json!({"list": "allow", "origins": ["console"]}),
                "only from console; a caller that names no origin is admitted",
            ),
            (
                json!({"passed": 9, "inflight": 1, "average_rt_ms": 2.5, "load": 1.25, "cpu": 0.4}),
                "all inbound work: 9 passed in the last second, 1 in flight, mean time 2.5 ms, load 1.25, cpu 40 %",
            ),
        ] {
            let now = serde_json::from_value(now).unwrap();
            assert_eq!(Now(&now).text(), told);
        }
    }
}
