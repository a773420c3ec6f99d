//! `/proc/loadavg`.

use std::str;

use crate::procfs::NoValue;
use crate::procfs::parse::{number, words};

/// The three averages of running, waiting and blocked tasks, and how many tasks there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadAverage {
    /// Over one, five and fifteen minutes.
    pub(crate) minutes: [f64; 3],
    /// Tasks of the host.
    pub(crate) threads: Result<u64, NoValue>,
}

/// Reads the three averages.
///
/// # Errors
/// The name of the average that is missing or malformed; [`NoValue::NotTold`] for a machine without any task, as sandboxes
/// show it.
pub(crate) fn parse(bytes: &[u8]) -> Result<LoadAverage, NoValue> {
    let mut words = words(bytes);
    let mut minutes = [0.0; 3];
    for (value, name) in minutes.iter_mut().zip(["load1", "load5", "load15"]) {
        let word = words.next().ok_or(NoValue::NoField(name))?;
        *value = decimal(word).ok_or(NoValue::Malformed(name))?;
    }
    let threads = threads(words.next());
    if threads == Ok(0) {
        return Err(NoValue::NotTold);
    }
    Ok(LoadAverage { minutes, threads })
}

/// The second half of a word such as `1/87`.
fn threads(word: Option<&[u8]>) -> Result<u64, NoValue> {
    let word = word.ok_or(NoValue::NoField("tasks"))?;
    let after = word
        .iter()
        .position(|&byte| byte == b'/')
        .map_or(0, |at| at.saturating_add(1));
    word.get(after..)
        .filter(|_| after > 0)
        .and_then(number)
        .ok_or(NoValue::Malformed("tasks"))
}

/// A number such as `12.34`: digits and one point, so that `nan`, `inf` and `1e9` are not numbers.
fn decimal(word: &[u8]) -> Option<f64> {
    if !word
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    {
        return None;
    }
    str::from_utf8(word)
        .ok()?
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_averages_are_read() {
        let read = parse(b"0.72 10.29 0.13 1/87 6277\n").unwrap();
        let hundredths = read.minutes.map(|value| (value * 100.0).round());
        assert_eq!(format!("{hundredths:?}"), "[72.0, 1029.0, 13.0]");
        assert_eq!(read.threads, Ok(87));
        assert_eq!(
            parse(b"0 0 0 87 1").unwrap().threads,
            Err(NoValue::Malformed("tasks"))
        );
        assert_eq!(
            parse(b"0 0 0").unwrap().threads,
            Err(NoValue::NoField("tasks"))
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert_eq!(parse(b""), Err(NoValue::NoField("load1")));
        assert_eq!(parse(b"0.1 0.2"), Err(NoValue::NoField("load15")));
        assert_eq!(parse(b"nan 0 0"), Err(NoValue::Malformed("load1")));
        assert_eq!(parse(b"0 inf 0"), Err(NoValue::Malformed("load5")));
        assert_eq!(parse(b"0 0 -1"), Err(NoValue::Malformed("load15")));
        assert_eq!(parse(b". 0 0"), Err(NoValue::Malformed("load1")));
    }

    proptest! {
        #[test]
        fn any_bytes_give_averages_or_a_fault(bytes: Vec<u8>) {
            if let Ok(read) = parse(&bytes) {
                prop_assert!(read.minutes.iter().all(|value| value.is_finite()));
            }
        }
    }
}
