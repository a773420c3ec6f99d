//! `/proc/PID/task/TID/stat`: name and state of a thread.

use crate::procfs::NoValue;
use crate::procfs::parse::{number, words};

/// What a thread is doing, as far as the signals tell states apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// Runs or waits for a CPU (`R`).
    Runnable,
    /// In uninterruptible sleep (`D`).
    Blocked,
    /// Anything else that lives.
    Sleeping,
    /// Ended and not yet collected (`Z`, `X`): not a live thread.
    Ended,
}

/// Name and state of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskStat<'a> {
    /// Up to 15 bytes, any of them but 0.
    pub(crate) name: &'a [u8],
    /// What it is doing.
    pub(crate) state: TaskState,
}

/// Reads both. A name may hold anything, `)` and newlines too, so it ends at the last `)`.
///
/// # Errors
/// [`NoValue::NoField`] for a file that was cut, as that of a thread that just ended is.
pub(crate) fn parse(bytes: &[u8]) -> Result<TaskStat<'_>, NoValue> {
    let open = bytes
        .iter()
        .position(|&byte| byte == b'(')
        .ok_or(NoValue::NoField("name"))?;
    let close = bytes
        .iter()
        .rposition(|&byte| byte == b')')
        .ok_or(NoValue::NoField("name"))?;
    let name = bytes
        .get(open.saturating_add(1)..close)
        .ok_or(NoValue::NoField("name"))?;
    let rest = bytes.get(close.saturating_add(1)..).unwrap_or_default();
    let state = match words(rest).next() {
        Some(b"R") => TaskState::Runnable,
        Some(b"D") => TaskState::Blocked,
        Some(b"Z" | b"X" | b"x") => TaskState::Ended,
        Some(word) if word.len() == 1 => TaskState::Sleeping,
        Some(_other) => return Err(NoValue::Malformed("state")),
        None => return Err(NoValue::NoField("state")),
    };
    Ok(TaskStat { name, state })
}

/// When the thread or process began, clock ticks since boot: field 22, the twentieth after the name.
///
/// # Errors
/// [`NoValue::NoField`] for a file that was cut.
pub(crate) fn began(bytes: &[u8]) -> Result<u64, NoValue> {
    let close = bytes.iter().rposition(|&byte| byte == b')');
    let rest = close.and_then(|close| bytes.get(close.saturating_add(1)..));
    let word = rest.and_then(|rest| words(rest).nth(19));
    word.and_then(number).ok_or(NoValue::NoField("starttime"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_ends_at_the_last_bracket_whatever_it_holds() {
        for name in ["cat", "a) R 1 (b", "a\nb", "((", "", ") S", "x y"] {
            let text = format!("19260 ({name}) D 19199 19199 4116 0 -1 4194304\n");
            let read = parse(text.as_bytes()).unwrap();
            assert_eq!(
                read,
                TaskStat {
                    name: name.as_bytes(),
                    state: TaskState::Blocked
                },
                "{name:?}"
            );
        }
    }

    #[test]
    fn the_twenty_second_field_is_when_it_began() {
        let text = b"7 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 5\n";
        assert_eq!(began(text), Ok(4711));
        assert_eq!(began(&text[..30]), Err(NoValue::NoField("starttime")));
        assert_eq!(began(b""), Err(NoValue::NoField("starttime")));
    }

    #[test]
    fn cut_at_every_byte_it_is_read_or_a_fault() {
        let text = b"7 (a) R 1 (b) S 1 2 3\n";
        for end in 0..text.len() {
            let _read = parse(&text[..end]);
        }
        assert_eq!(parse(b"7 (a)"), Err(NoValue::NoField("state")));
        assert_eq!(parse(b"7 (a) RR"), Err(NoValue::Malformed("state")));
        assert_eq!(parse(b"7 )a("), Err(NoValue::NoField("name")));
        assert_eq!(parse(b""), Err(NoValue::NoField("name")));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_name_or_a_fault(bytes: Vec<u8>) {
            let _read = parse(&bytes);
        }

        #[test]
        fn any_name_reads_back(name in "[^\\x00]{0,15}") {
            let text = format!("1 ({name}) R 0\n");
            prop_assert_eq!(parse(text.as_bytes()).unwrap().name, name.as_bytes());
        }
    }
}
