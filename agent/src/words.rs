//! Numbers and times as a person writes them.

use std::fmt::Write as _;

use tidegate_limits::number::double;

/// A number with three digits that say something, without zeros behind the point: `33.3`, `5`, `1200`.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        small if small >= 1.0 || small == 0.0 => 2,
        tiny if tiny >= 0.1 => 3,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A share in percent.
pub fn percent(ratio: f64) -> String {
    format!("{} %", number((ratio * 1e3).round() / 10.0))
}

/// A time of day's length or less, in its largest units: `41 s`, `3 min 20 s`, `2 h 5 min`, `3 days 4 h`.
pub fn span(seconds: f64) -> String {
    let whole = format!("{:.0}", seconds.max(0.0));
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    let [minutes, hours, days] = [60, 3_600, 86_400].map(|unit| whole / unit);
    let two = |large: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    };
    if days > 0 {
        let days_word = if days == 1 { "day" } else { "days" };
        return two(days, days_word, hours % 24, "h");
    }
    if hours > 0 {
        return two(hours, "h", minutes % 60, "min");
    }
    if minutes > 0 {
        return two(minutes, "min", whole % 60, "s");
    }
    format!("{whole} s")
}

/// A short time in the unit that fits it: `39 µs`, `1.2 ms`, `3 s`.
pub fn short_time(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => (0.0, "s"),
        tiny if tiny < 1e-3 => (seconds * 1e6, "µs"),
        small if small < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", number(value))
}

/// A time in milliseconds in the unit that fits it.
pub fn ms(milliseconds: u64) -> String {
    let seconds = double(milliseconds) / 1e3;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{} s", number((seconds * 10.0).round() / 10.0)),
        _ => span(seconds),
    }
}

/// So many of something: `1 permit`, `2 permits`.
pub fn many(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    }
}

/// The value of a signal with its unit.
pub fn signal(value: f64, unit: &str) -> String {
    match unit {
        "ratio" => percent(value),
        "seconds" => short_time(value),
        "per_second" => format!("{}/s", number(value)),
        _ => number(value),
    }
}

/// Columns of the terminal that everybody has.
pub const WIDTH: usize = 80;

/// A sentence over as many lines as it takes. The first begins with `head`, the others are indented as deep.
///
/// # Errors
/// None: a string takes all.
pub fn paragraph(text: &mut String, head: &str, sentence: &str) -> std::fmt::Result {
    let indent = head.chars().count();
    let (mut head, mut line) = (head.to_owned(), String::new());
    for word in sentence.split_whitespace() {
        let length = line.chars().count().saturating_add(word.chars().count());
        if !line.is_empty() && length.saturating_add(indent) >= WIDTH {
            writeln!(text, "{head}{line}")?;
            head = " ".repeat(indent);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(text, "{head}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_o11_numbers_are_written_as_a_person_writes_them() {
        let numbers = [
            0.0,
            5.0,
            128.0,
            33.333_333_333,
            0.5,
            0.000_039,
            1234.5,
            4.649,
        ];
        assert_eq!(
            numbers.map(number),
            ["0", "5", "128", "33.3", "0.5", "0.000039", "1234", "4.65"]
        );
        assert_eq!(
            [0.0, 0.975, 1.0, 0.0004].map(percent),
            ["0 %", "97.5 %", "100 %", "0 %"]
        );
        let spans = [0.4, 41.0, 60.0, 200.0, 7500.0, 90_000.0, 190_000.0].map(span);
        assert_eq!(
            spans,
            [
                "0 s",
                "41 s",
                "1 min",
                "3 min 20 s",
                "2 h 5 min",
                "1 day 1 h",
                "2 days 4 h"
            ]
        );
        let times = [0.0, 0.000_039, 0.0012, 3.0].map(short_time);
        assert_eq!(times, ["0 s", "39 µs", "1.2 ms", "3 s"]);
        assert_eq!(
            [109, 4_951, 41_000, 90_000].map(ms),
            ["109 ms", "5 s", "41 s", "1 min 30 s"]
        );
        assert_eq!(signal(128.0, "count"), "128");
        assert_eq!(signal(1530.4, "per_second"), "1530/s");
    }
}
