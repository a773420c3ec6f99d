//! What the kernel's text files have in common, and those that say where files are: pure functions over bytes.
//!
//! All of them skip lines they do not know, never panic, and say [`NoValue`] instead of guessing. A
//! number that does not fit 64 bits is malformed.

pub(crate) mod innermost_pid;
pub(crate) mod membership;
pub(crate) mod mount_info;

use super::NoValue;

/// The lines of a file that hold anything.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// A decimal number without a sign that fits 64 bits.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The number after `key` in a file of `key number` lines, such as `cpu.stat`.
///
/// # Errors
/// [`NoValue::NoField`] without such a line, [`NoValue::Malformed`] without a number on it.
pub(crate) fn field(bytes: &[u8], key: &'static str) -> Result<u64, NoValue> {
    let mut found = lines(bytes).map(words).filter_map(|mut words| {
        let first = words.next()?;
        (first == key.as_bytes()).then(|| words.next().and_then(number))
    });
    found
        .next()
        .ok_or(NoValue::NoField(key))?
        .ok_or(NoValue::Malformed(key))
}

/// The number that is all a file holds, such as `cpuacct.usage`.
///
/// # Errors
/// [`NoValue::Empty`] or [`NoValue::Malformed`].
pub(crate) fn sole_number(bytes: &[u8], name: &'static str) -> Result<u64, NoValue> {
    match bytes.trim_ascii() {
        [] => Err(NoValue::Empty),
        word => number(word).ok_or(NoValue::Malformed(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let stat = b"usage_usec 7\nnr_periods 3\nfuture_field x y z\n\nnr_periods_more 9\n";
        assert_eq!(field(stat, "nr_periods"), Ok(3));
        assert_eq!(field(stat, "usage"), Err(NoValue::NoField("usage")));
        assert_eq!(
            field(stat, "future_field"),
            Err(NoValue::Malformed("future_field"))
        );
        assert_eq!(
            field(b"usage_usec", "usage_usec"),
            Err(NoValue::Malformed("usage_usec"))
        );
        assert_eq!(field(b"usage_usec 7", "usage_usec"), Ok(7));
    }

    #[test]
    fn numbers_end_at_64_bits() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for word in ["18446744073709551616", "-1", "+1", "1.5", "", "0x10", "nan"] {
            assert_eq!(number(word.as_bytes()), None, "{word}");
        }
        assert_eq!(sole_number(b" 12\n", "n"), Ok(12));
        assert_eq!(sole_number(b" \n", "n"), Err(NoValue::Empty));
        assert_eq!(sole_number(b"1 2\n", "n"), Err(NoValue::Malformed("n")));
    }

    proptest! {
        #[test]
        fn a_number_reads_back(value: u64) {
            prop_assert_eq!(number(value.to_string().as_bytes()), Some(value));
        }

        #[test]
        fn any_bytes_give_a_number_or_a_fault(bytes: Vec<u8>) {
            let _read = (field(&bytes, "nr_periods"), sole_number(&bytes, "n"));
        }
    }
}
