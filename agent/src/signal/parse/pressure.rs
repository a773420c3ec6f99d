//! Pressure stall information: `/proc/pressure/*` and `*.pressure` of a group.

use crate::procfs::NoValue;
use crate::procfs::parse::{lines, number, words};

/// Stall time since boot in µs; each line may be missing (`full` of cpu before kernel 5.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pressure {
    /// Some task waited.
    pub(crate) some_us: Result<u64, NoValue>,
    /// All tasks waited at once.
    pub(crate) full_us: Result<u64, NoValue>,
}

/// Reads both lines; lines of other kinds are skipped.
pub(crate) fn parse(bytes: &[u8]) -> Pressure {
    Pressure {
        some_us: total(bytes, "some"),
        full_us: total(bytes, "full"),
    }
}

fn total(bytes: &[u8], kind: &'static str) -> Result<u64, NoValue> {
    let line = lines(bytes).find(|line| words(line).next() == Some(kind.as_bytes()));
    let value = words(line.ok_or(NoValue::NoField(kind))?).find_map(|w| w.strip_prefix(b"total="));
    number(value.ok_or(NoValue::NoField("total"))?).ok_or(NoValue::Malformed("total"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: &[u8] = b"some avg10=3.54 avg60=18.75 avg300=33.97 total=1509279194\n\
        full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";

    #[test]
    fn both_lines_are_read() {
        assert_eq!(
            parse(BOTH),
            Pressure {
                some_us: Ok(1_509_279_194),
                full_us: Ok(17)
            }
        );
    }

    #[test]
    fn a_missing_line_is_missing_alone() {
        let some_only = parse(b"some avg10=25.58 avg60=4.98 avg300=1.05 total=3347407\n");
        assert_eq!(some_only.some_us, Ok(3_347_407));
        assert_eq!(some_only.full_us, Err(NoValue::NoField("full")));
        assert_eq!(parse(b"1\n").some_us, Err(NoValue::NoField("some")));
        assert_eq!(
            parse(b"some avg10=1").some_us,
            Err(NoValue::NoField("total"))
        );
        assert_eq!(
            parse(b"some total=").some_us,
            Err(NoValue::Malformed("total"))
        );
    }

    #[test]
    fn unknown_lines_are_skipped() {
        assert_eq!(
            parse(b"irq total=1\nsome new=1 total=2 more=3\n").some_us,
            Ok(2)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_numbers_or_faults(bytes: Vec<u8>) {
            let _read = parse(&bytes);
        }
    }
}
