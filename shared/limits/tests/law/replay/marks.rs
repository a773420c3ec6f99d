//! The operator's own thresholds beside the law.

use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::law::settings::{CpuUse, ThreadsSettings};
use tidegate_limits::law::{LawChoice, LawSettings, Sample, ThresholdAction};
use tidegate_limits::threshold;

use super::{full_load, half_load, replay, replay_with, warm};

#[test]
fn cpu_alone_acts_after_two_seconds_and_lets_go_at_the_fifth_healthy_sample() {
    let busy = Sample {
        busy: Some(0.95),
        own: Some(0.95),
        ..half_load()
    };
    let light = Sample {
        busy: Some(0.2),
        own: Some(0.2),
        ..half_load()
    };
    for (action, state) in [
        (ThresholdAction::Shape, ScopeState::Overload),
        (ThresholdAction::Reject, ScopeState::Reject),
    ] {
        let mut settings = LawSettings::default();
        settings.marks.action = action;
        let mut law = warm();
        let before = replay_with(&mut law, &busy, 19, &settings);
        assert_eq!(before.state, ScopeState::Healthy);
        let after = replay_with(&mut law, &busy, 1, &settings);
        assert_eq!((after.state, after.cause), (state, Cause::Cpu));
        assert_eq!(after.tight, after.entry, "nobody queues: the wide limit");
        assert_eq!(replay_with(&mut law, &light, 4, &settings).state, state);
        let open = replay_with(&mut law, &light, 1, &settings);
        assert_eq!(open.state, ScopeState::Healthy);
    }
}

#[test]
fn full_collections_lower_the_cpu_mark_and_name_the_cause() {
    let collecting = Sample {
        busy: Some(0.78),
        full_gc: Some(3),
        ..half_load()
    };
    let mut law = warm();
    assert_eq!(law.published().cpu_mark, Some(0.85));
    let active = replay(&mut law, &collecting, 20);
    assert_eq!(
        (active.state, active.cause),
        (ScopeState::Overload, Cause::Gc)
    );
    assert!((active.cpu_mark.unwrap() - 0.70).abs() < 1e-9);
    let calm = Sample {
        busy: Some(0.74),
        full_gc: Some(2),
        ..half_load()
    };
    let healed = replay(&mut law, &calm, 5);
    assert_eq!(
        (healed.state, healed.cpu_mark),
        (ScopeState::Healthy, Some(0.85))
    );
    let mut law = warm();
    let piled = Sample {
        inflight: 100,
        ..collecting
    };
    assert_eq!(replay(&mut law, &piled, 2).cause, Cause::Gc);
}

#[test]
fn too_many_threads_halve_the_requests_in_flight_for_thirty_seconds() {
    let settings = LawSettings {
        threads: Some(ThreadsSettings::over(150)),
        ..LawSettings::default()
    };
    let crowded = Sample {
        inflight: 16,
        threads: Some(200),
        ..half_load()
    };
    let mut law = warm();
    let first = replay_with(&mut law, &crowded, 1, &settings);
    assert_eq!(
        (first.state, first.cause),
        (ScopeState::Overload, Cause::Threads)
    );
    assert_eq!(first.word().tight, 8);
    let last = replay_with(&mut law, &crowded, 299, &settings);
    assert_eq!((last.cause, last.tight), (Cause::Threads, 8));
    let expired = replay_with(&mut law, &crowded, 1, &settings);
    assert_eq!(
        (expired.state, expired.cause),
        (ScopeState::Healthy, Cause::None)
    );
}

#[test]
fn too_many_threads_lower_the_limit_of_an_overload_and_keep_its_cause() {
    let settings = LawSettings {
        threads: Some(ThreadsSettings::over(150)),
        ..LawSettings::default()
    };
    let mut law = warm();
    let before = replay_with(&mut law, &full_load(), 3, &settings);
    let crowded = Sample {
        inflight: 4,
        threads: Some(200),
        ..full_load()
    };
    let after = replay_with(&mut law, &crowded, 1, &settings);
    assert_eq!((after.state, after.cause), (before.state, before.cause));
    assert_eq!(after.tight, 2, "one for each CPU is left");
}

#[test]
fn field_l3_a_passed_cpu_mark_names_the_cause_that_the_evidence_names() {
    let busy = Sample {
        busy: Some(0.97),
        own: Some(0.97),
        ..half_load()
    };
    let others = Sample {
        own: Some(0.02),
        ..busy
    };
    let stolen = Sample {
        steal: Some(0.4),
        ..busy
    };
    let throttled = Sample {
        throttle: Some(1.0),
        throttled_time: Some(0.5),
        ..busy
    };
    for (sample, cause) in [
        (busy, Cause::Cpu),
        (others, Cause::Neighbour),
        (stolen, Cause::Steal),
        (throttled, Cause::Quota),
    ] {
        let passed = replay(&mut warm(), &sample, 30);
        assert_eq!(
            (passed.state, passed.cause),
            (ScopeState::Overload, cause),
            "{sample:?}"
        );
    }
}

#[test]
fn field_l5_what_a_lowered_mark_began_ends_when_the_mark_is_back() {
    let steady = Sample {
        busy: Some(0.78),
        own: Some(0.78),
        ..half_load()
    };
    let collecting = Sample {
        full_gc: Some(3),
        ..steady
    };
    let mut law = warm();
    assert_eq!(
        replay(&mut law, &collecting, 30).state,
        ScopeState::Overload
    );
    assert_eq!(replay(&mut law, &steady, 5).state, ScopeState::Healthy);
    // Over the usual mark too, it is the usual mark's: 0.78 is over the mark to leave it at.
    let mut law = warm();
    replay(&mut law, &collecting, 30);
    let over = Sample {
        busy: Some(0.9),
        ..collecting
    };
    replay(&mut law, &over, 1);
    assert_eq!(replay(&mut law, &steady, 600).state, ScopeState::Overload);
}

#[test]
fn field_l7_load_alone_is_no_overload_unless_an_operator_says_so() {
    let compiling = Sample {
        load_per_cpu: Some(2.3),
        ..half_load()
    };
    assert_eq!(
        replay(&mut warm(), &compiling, 3000).state,
        ScopeState::Healthy
    );
    let mut settings = LawSettings::default();
    settings.marks.load = Some(threshold::ThresholdSettings::load());
    let marked = replay_with(&mut warm(), &compiling, 30, &settings);
    assert_eq!(
        (marked.state, marked.cause),
        (ScopeState::Overload, Cause::Load)
    );
}

#[test]
fn field_r13_a_heap_that_collections_leave_full_lowers_the_cpu_mark() {
    let full = Sample {
        heap_used: Some(0.97),
        ..half_load()
    };
    let mut law = warm();
    let early = replay(&mut law, &full, 49);
    assert_eq!((early.cpu_mark, early.strain), (Some(0.85), None));
    let strained = replay(&mut law, &full, 1);
    assert!((strained.cpu_mark.unwrap() - 0.70).abs() < 1e-9);
    assert_eq!(strained.strain, Some(Cause::Gc));
    let won_back = Sample {
        heap_used: Some(0.4),
        ..half_load()
    };
    let healed = replay(&mut law, &won_back, 1);
    assert_eq!((healed.cpu_mark, healed.strain), (Some(0.85), None));
}

#[test]
fn field_r13_too_many_threads_lower_the_cpu_mark_while_they_hold_a_limit() {
    let threads = ThreadsSettings {
        cpu_shift: 0.25,
        ..ThreadsSettings::over(150)
    };
    let settings = LawSettings {
        threads: Some(threads),
        ..LawSettings::default()
    };
    let crowded = Sample {
        threads: Some(200),
        ..half_load()
    };
    let mut law = warm();
    let strained = replay_with(&mut law, &crowded, 2, &settings);
    assert_eq!(strained.strain, Some(Cause::Threads));
    assert!((strained.cpu_mark.unwrap() - 0.60).abs() < 1e-9);
    let expired = replay_with(&mut law, &crowded, 300, &settings);
    assert_eq!((expired.cpu_mark, expired.strain), (Some(0.85), None));
}

#[test]
fn field_l4_others_do_not_pass_the_mark_of_a_group_under_either_law() {
    for kind in [LawChoice::Adaptive, LawChoice::Sentinel] {
        let mut settings = LawSettings {
            kind,
            ..LawSettings::default()
        };
        settings.marks.action = ThresholdAction::Reject;
        settings.marks.cpu_use = CpuUse::Own;
        let state = |own| {
            let sample = Sample {
                busy: Some(1.0),
                own,
                ..half_load()
            };
            replay_with(&mut warm(), &sample, 40, &settings).state
        };
        for own in [None, Some(0.0), Some(0.5)] {
            assert_eq!(state(own), ScopeState::Healthy, "{kind:?} {own:?}");
        }
        assert_eq!(state(Some(0.9)), ScopeState::Reject, "{kind:?}");
    }
}
