//! What may stand in which source file.

use crate::source::{self, SourceFile};

/// The only files that may hold `unsafe` code, each for the reason in its head.
const UNSAFE_FILES: &[&str] = &[
    "ebpf/src/account.rs",
    "ebpf/src/clock.rs",
    "ebpf/src/jvm.rs",
    "ebpf/src/main.rs",
    "ebpf/src/offset.rs",
    "ebpf/src/preempt.rs",
    "ebpf/src/record.rs",
    "ebpf/src/runqueue.rs",
    "ebpf/src/sample.rs",
    "ebpf/src/sched_info.rs",
    "ebpf/src/slot.rs",
    "ebpf/src/task.rs",
    "ebpf/src/tracepoint.rs",
    "shared/segment/src/clock.rs",
    "shared/segment/src/near.rs",
    "shared/segment/src/os/child.rs",
    "shared/segment/src/os/fork.rs",
    "shared/segment/src/os/heap.rs",
    "shared/segment/src/os/inherited.rs",
    "shared/segment/src/os/listener.rs",
    "shared/segment/src/os/map.rs",
    "shared/segment/src/os/sched.rs",
    "shared/segment/src/os/signals.rs",
    "shared/segment/src/published.rs",
];

/// Crates that a kernel side or a service without `std` can use.
const NO_STD_ROOTS: &[&str] = &["shared/abi/src/lib.rs", "shared/limits/src/lib.rs"];

/// Crates without any `unsafe` code.
const SAFE_ROOTS: &[&str] = &[
    "agent/bench/src/lib.rs",
    "agent/src/lib.rs",
    "shared/abi/src/lib.rs",
    "shared/client/src/lib.rs",
    "shared/limits/src/lib.rs",
];

/// Longest source file, in lines before its tests. About 300 is the aim; over this a file holds two
/// ideas.
const LINES_MAX: usize = 450;

/// Files that are longer still. Split them and take them out; put none in.
const TOO_LONG: &[&str] = &[];

/// Files that may know the wall clock: for a text that a person reads, for the end of a rule that a person gave as a
/// date, and for whether a file stands still. No decision or window looks at it, so a step of it changes none. Libraries read it for the time before a line of the log and
/// for the `Date` of an HTTP answer.
const WALL_CLOCK_FILES: &[&str] = &[
    "agent/src/calendar.rs",
    "agent/src/command/events.rs",
    "agent/src/command/since.rs",
    "agent/src/replay/report.rs",
    "agent/src/rule/expiry.rs",
    "agent/src/rule_source/look.rs",
    "agent/src/telemetry/scrape.rs",
];

/// Names of the wall clock in the standard library, in rustix, libc, libraries of dates and the helpers of kernel
/// programs, and of the times of files, which are read from it.
const WALL_CLOCK: &[&str] = &[
    "SystemTime",
    "UNIX_EPOCH",
    "Realtime",
    "RealtimeCoarse",
    "RealtimeAlarm",
    "Tai",
    "CLOCK_REALTIME",
    "CLOCK_REALTIME_COARSE",
    "CLOCK_TAI",
    "gettimeofday",
    "clock_settime",
    "bpf_ktime_get_tai_ns",
    "chrono",
    "OffsetDateTime",
    "Utc",
    "Zoned",
    "modified",
    "accessed",
    "mtime",
    "ctime",
    "st_mtime",
    "st_ctime",
];

const EVERYTHING: &[&str] = &["agent", "ebpf", "shared", "tests"];

fn file(path: &str) -> SourceFile {
    let text = std::fs::read_to_string(source::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    SourceFile {
        path: path.to_owned(),
        text,
    }
}

#[test]
fn unsafe_code_stands_only_in_the_listed_files() {
    let found: Vec<String> = source::rust_files(EVERYTHING)
        .into_iter()
        .filter(|file| file.code().names("unsafe"))
        .map(|file| file.path)
        .collect();
    for path in &found {
        assert!(
            ["shared/segment/src/", "ebpf/src/"]
                .iter()
                .any(|folder| path.starts_with(folder)),
            "{path} holds unsafe code: move it behind a safe function of shared/segment"
        );
        assert!(
            UNSAFE_FILES.contains(&path.as_str()),
            "{path} holds unsafe code: use a listed file, or add this one to UNSAFE_FILES"
        );
    }
    for path in UNSAFE_FILES {
        assert!(
            found.iter().any(|found| found == path),
            "{path} holds no unsafe code any more: take it out of UNSAFE_FILES"
        );
    }
}

#[test]
fn safe_crates_forbid_unsafe_code() {
    for path in SAFE_ROOTS {
        assert!(
            file(path).code().holds("#![forbid(unsafe_code)]"),
            "{path} must say #![forbid(unsafe_code)]"
        );
    }
}

#[test]
fn data_and_decisions_need_no_std() {
    for path in NO_STD_ROOTS {
        assert!(
            file(path).code().names("no_std"),
            "{path} must say #![no_std] or #![cfg_attr(not(test), no_std)]"
        );
    }
}

#[test]
fn decisions_know_no_atomics_and_no_clock() {
    for file in source::rust_files(&["shared/limits/src", "shared/abi/src"]) {
        for word in ["atomic", "Instant", "SystemTime"] {
            assert!(
                !file.code().names(word),
                "{} names {word}: a decision gets state and `now` as parameters",
                file.path
            );
        }
    }
}

#[test]
fn a_step_of_the_wall_clock_changes_nothing() {
    for file in source::rust_files(&["agent/src", "ebpf/src", "shared"]) {
        let is_named = |word: &&&str| file.text.contains(**word) && file.code().names(word);
        let named = WALL_CLOCK.iter().find(is_named);
        assert_eq!(
            named.is_some(),
            WALL_CLOCK_FILES.contains(&file.path.as_str()),
            "{} names the wall clock ({named:?}): take monotonic time; if it is for a person, put the file into WALL_CLOCK_FILES, and take it out when it no longer does",
            file.path
        );
    }
}

#[test]
fn lints_are_expected_with_a_reason_never_allowed() {
    for file in source::rust_files(EVERYTHING) {
        let code = file.code();
        assert!(
            !code.holds("#[allow(") && !code.holds("#![allow("),
            "{}: write #[expect(lint, reason = \"...\")] instead of #[allow(...)]",
            file.path
        );
    }
}

fn lines_before_tests(file: &SourceFile) -> usize {
    file.product_code().text().lines().count()
}

#[test]
fn files_are_short_enough_to_read() {
    for file in source::rust_files(&["agent/src", "agent/bench", "shared"]) {
        let lines = lines_before_tests(&file);
        let is_long = lines > LINES_MAX && !file.path.contains("/tests/");
        assert_eq!(
            is_long,
            TOO_LONG.contains(&file.path.as_str()),
            "{} has {lines} lines before its tests; over {LINES_MAX}: split it by idea; \
             no longer over: take it out of TOO_LONG",
            file.path
        );
    }
}

#[test]
fn tests_wait_for_events_and_do_not_sleep() {
    for file in source::rust_files(EVERYTHING) {
        for call in ["thread::sleep(", "time::sleep("] {
            assert!(
                !(file.path.starts_with("tests/") && file.code().holds(call)),
                "{} calls {call}): wait for an event with a deadline",
                file.path
            );
        }
    }
}

#[test]
fn no_test_is_ignored() {
    for file in source::rust_files(EVERYTHING) {
        assert!(
            !file.code().holds("#[ignore"),
            "{} ignores a test: let it run, or print \"SKIPPED: why\" where it cannot",
            file.path
        );
    }
}
