//! Threads of groups in fixture trees.

use tidegate_abi::signal::SignalId;

use super::super::fixture::{SECOND_NS, Tree, close, missing, value};
use crate::procfs::NoValue;

const GROUP: &str = "cgroup/app/cgroup.procs";

fn task(tid: u32, name: &str, state: &str, sched: &str) -> [(String, String); 2] {
    let pid = tid / 10 * 10;
    let dir = format!("proc/{pid}/task/{tid}");
    [
        (
            format!("{dir}/stat"),
            format!("{tid} ({name}) {state} 1 1 1 0 -1 4194304\n"),
        ),
        (format!("{dir}/schedstat"), sched.to_owned()),
    ]
}

fn write(tree: &Tree, tasks: &[[(String, String); 2]]) {
    for (name, content) in tasks.iter().flatten() {
        tree.write(&[(name, content)]);
    }
}

fn jvm() -> Tree {
    let tree = Tree::new(&[
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        (GROUP, "10\n20\n0\n"),
    ]);
    write(
        &tree,
        &[
            task(10, "java", "S", "0 0 0\n"),
            task(11, "GC Thread#0", "R", "1000000000 0 5\n"),
            task(12, "http-nio-8080-e", "D", "0 1000000000 5\n"),
            task(20, "a) R 1 (b\n", "S", "0 0 0\n"),
            task(21, "ended", "Z", "0 0 0\n"),
        ],
    );
    tree
}

#[test]
fn states_waits_and_collectors_are_told_of_a_group() {
    let tree = jvm();
    let (mut sampler, key) = tree.watching("/app");
    close(value(&sampler, key, SignalId::Threads), 4.0);
    close(value(&sampler, key, SignalId::Runnable), 1.0);
    close(value(&sampler, key, SignalId::Blocked), 1.0);
    assert_eq!(
        missing(&sampler, key, SignalId::RunqueueWait).fault,
        NoValue::FirstSample
    );
    write(
        &tree,
        &[
            task(11, "GC Thread#0", "R", "1900000000 50000000 15\n"),
            task(12, "http-nio-8080-e", "R", "100000000 1850000000 105\n"),
        ],
    );
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::RunqueueWait), 0.9);
    close(value(&sampler, key, SignalId::ContextSwitches), 110.0);
    close(value(&sampler, key, SignalId::GcCpu), 0.9);
    close(value(&sampler, key, SignalId::Runnable), 2.0);
    let groups = sampler.group(key).unwrap().thread_groups();
    let gc = groups
        .iter()
        .find(|group| group.name() == "GC Thread#")
        .unwrap();
    assert!(gc.is_gc);
    close(gc.used_cpus, 0.9);
}

#[test]
fn threads_of_groups_below_belong_to_the_group() {
    let tree = jvm();
    tree.write(&[("cgroup/app/inner/deep/cgroup.procs", "30\n")]);
    write(&tree, &[task(30, "worker-1", "S", "0 0 0\n")]);
    let (mut sampler, key) = tree.watching("/app");
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::Threads), 5.0);
}

#[test]
fn a_thread_that_ends_while_it_is_looked_at_is_gone_and_no_more() {
    for content in ["", "11 (GC Thr", "11 (GC Thread#0) "] {
        let tree = jvm();
        tree.write(&[("proc/10/task/11/stat", content)]);
        let (sampler, key) = tree.watching("/app");
        close(value(&sampler, key, SignalId::Threads), 3.0);
    }
}

#[test]
fn an_empty_group_has_no_threads_and_a_hidden_one_is_not_called_empty() {
    let tree = jvm();
    tree.write(&[(GROUP, "")]);
    let (sampler, key) = tree.watching("/app");
    close(value(&sampler, key, SignalId::Threads), 0.0);
    tree.write(&[(GROUP, "4711\n")]);
    let (sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::Threads).source,
        "/proc/PID/task"
    );
    std::fs::remove_file(tree.path(GROUP)).unwrap();
    let (sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::Threads).source,
        "cgroup.procs"
    );
}

#[test]
fn without_schedstat_the_states_are_told_and_the_waits_are_not() {
    let tree = jvm();
    let (mut sampler, key) = tree.watching("/app");
    std::fs::remove_file(tree.path("proc/10/task/12/schedstat")).unwrap();
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::Threads), 4.0);
    assert!(
        missing(&sampler, key, SignalId::RunqueueWait)
            .fault
            .is_absent()
    );
}

#[test]
fn more_threads_than_a_tick_looks_at_are_spread_over_ticks() {
    let tree = jvm();
    let many: Vec<_> = (0..200)
        .map(|number| task(100 + number, "busy", "R", "0 0 0\n"))
        .collect();
    write(&tree, &many);
    let pids: String = (10..30).fold(String::new(), |pids, pid| pids + &format!("{}\n", pid * 10));
    tree.write(&[(GROUP, &pids)]);
    let (mut sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::Threads).fault,
        NoValue::NotSampled
    );
    for tick in 2..25 {
        sampler.sample(tick * SECOND_NS);
    }
    close(value(&sampler, key, SignalId::Threads), 200.0);
}

#[test]
fn a_group_of_many_threads_does_not_keep_another_waiting() {
    let tree = jvm();
    let many: Vec<_> = (0..400)
        .map(|number| task(1000 + number, "busy", "R", "0 0 0\n"))
        .collect();
    write(&tree, &many);
    let pids = (100..140).fold(String::new(), |pids, pid| pids + &format!("{pid}0\n"));
    tree.write(&[
        ("cgroup/many/cpu.stat", "usage_usec 0\n"),
        ("cgroup/many/cgroup.procs", &pids),
    ]);
    let (mut sampler, app) = tree.watching("/app");
    let many = sampler.watch_path("/many".as_ref()).unwrap();
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, app, SignalId::Blocked), 1.0);
    write(&tree, &[task(12, "http-nio-8080-e", "R", "0 0 0\n")]);
    for tick in 3..6 {
        sampler.sample(tick * SECOND_NS);
    }
    close(value(&sampler, app, SignalId::Blocked), 0.0);
    let unfinished = missing(&sampler, many, SignalId::Threads).fault;
    assert_eq!(unfinished, NoValue::NotSampled);
    for tick in 6..80 {
        sampler.sample(tick * SECOND_NS);
    }
    close(value(&sampler, many, SignalId::Threads), 400.0);
}

#[test]
fn more_groups_below_than_are_looked_at_are_told_and_not_counted_in_part() {
    let tree = jvm();
    for number in 0..1100 {
        let below = format!("cgroup/app/below-{}/{number}", number % 10);
        std::fs::create_dir_all(tree.path(&below)).unwrap();
    }
    let (mut sampler, key) = tree.watching("/app");
    for tick in 2..200 {
        sampler.sample(tick * SECOND_NS / 10);
    }
    let told = missing(&sampler, key, SignalId::Threads);
    assert_eq!(
        (told.source, told.fault),
        ("cgroup.procs", NoValue::Crowded)
    );
}

const TICK_NS: u64 = 100_000_000;

#[test]
fn field_s6_three_thousand_threads_are_counted_within_two_seconds() {
    let tree = Tree::new(&[
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        (GROUP, ""),
        ("cgroup/app/cgroup.threads", ""),
    ]);
    let (mut sampler, key) = tree.watching("/app");
    close(value(&sampler, key, SignalId::Threads), 0.0);
    for tid in 10..3010 {
        let dir = format!("proc/10/task/{tid}");
        tree.write(&[
            (&format!("{dir}/stat"), &format!("{tid} (idle) S 1\n")),
            (&format!("{dir}/schedstat"), "0 0 0\n"),
        ]);
    }
    let tids = (10..3010).fold(String::new(), |tids, tid| tids + &format!("{tid}\n"));
    tree.write(&[("cgroup/app/cgroup.threads", &tids), (GROUP, "10\n")]);
    for tick in 1..=20 {
        sampler.sample(SECOND_NS + tick * TICK_NS);
    }
    close(value(&sampler, key, SignalId::Threads), 3000.0);
    // The single threads take longer: until then what was seen before is not told as if it were now.
    for tick in 21..=80 {
        sampler.sample(SECOND_NS + tick * TICK_NS);
    }
    close(value(&sampler, key, SignalId::Threads), 3000.0);
    for id in [SignalId::Runnable, SignalId::Blocked, SignalId::GcCpu] {
        assert_eq!(missing(&sampler, key, id).fault, NoValue::StillLooking);
    }
}

#[test]
fn field_s6_a_look_that_is_soon_over_counts_and_lists_are_left_alone() {
    let tree = jvm();
    tree.write(&[("cgroup/app/tasks", "10\n11\n12\n20\n30\n")]);
    let (mut sampler, key) = tree.watching("/app");
    close(value(&sampler, key, SignalId::Threads), 5.0);
    // Whatever it says now, the look of each tick has seen all threads.
    for tick in 1..=30 {
        sampler.sample(SECOND_NS + tick * TICK_NS);
    }
    close(value(&sampler, key, SignalId::Threads), 4.0);
}

#[test]
fn field_s6_the_count_of_the_kernel_is_taken_where_there_is_one_and_lists_of_v1_elsewhere() {
    let tree = jvm();
    tree.write(&[
        ("cgroup/app/tasks", "10\n11\n12\n20\n"),
        ("cgroup/app/below/tasks", "30\n"),
        ("cgroup/app/below/cgroup.procs", "30\n"),
    ]);
    let (mut sampler, key) = tree.watching("/app");
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::Threads), 5.0);
    tree.write(&[("cgroup/app/pids.current", "5101\n")]);
    sampler.sample(12 * SECOND_NS);
    close(value(&sampler, key, SignalId::Threads), 5101.0);
}

#[test]
fn field_s9_hidden_processes_are_told_by_what_hides_them() {
    let tree = Tree::new(&[
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        (GROUP, "10\n20\n"),
    ]);
    let (sampler, key) = tree.watching("/app");
    let hidden = missing(&sampler, key, SignalId::Runnable);
    assert_eq!(hidden.fault, NoValue::HiddenProcesses);
    assert!(hidden.to_string().contains("hidepid"), "{hidden}");
    let remedy = hidden.remedy(SignalId::Runnable);
    assert!(
        remedy.contains("hidepid") && remedy.contains("root"),
        "{remedy}"
    );
}
