//! What an operator should look at: the first lines of a status.

use super::before::Before;
use crate::report::status::{CourseReport, ScopeReport, StatusReport};
use crate::words::span;

/// Each in a sentence, the most urgent first. A scope whose mark is passed and that refuses nobody is none.
pub(super) fn findings(status: &StatusReport, before: &Before<'_>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(missing_socket(status));
    found.extend(rules(status));
    found.extend(late(status));
    for scope in &status.scopes {
        let sheds = before.rate_of_scope(scope, |scope| scope.shed_total);
        let is_shedding = sheds.is_some_and(|rate| rate > 0.0);
        if scope.refuses || is_shedding {
            let why = scope.why.as_deref().unwrap_or(&scope.state);
            found.push(format!("{} refuses: {why}", scope.name));
        }
        if let Some(declared) = &scope.declared_cpus
            && declared.conflict
        {
            found.push(format!("{}: {}", scope.name, declared.text));
        }
        found.extend(
            scope
                .course
                .iter()
                .flat_map(|course| of_course(&scope.name, course)),
        );
    }
    // Any number of groups may fit a pattern, and none too.
    let absent = status.scopes_without_group.iter();
    for scope in absent.filter(|scope| scope.one_group) {
        found.push(format!("scope {}: {}", scope.name, scope.text));
    }
    found.extend(status.scopes.iter().filter_map(incident));
    for resource in &status.resources {
        if let Some(limit) = resource.bulkhead {
            found.push(format!(
                "{} fills its scope while the CPU is idle: a bulkhead holds it to {limit} in flight, so that the others \
                 pass",
                resource.name
            ));
        }
        for breaker in resource.breakers.iter().filter(|one| one.state == "open") {
            found.push(format!(
                "breaker {} of {} is open, the next probe is in {}",
                breaker.rule,
                resource.name,
                crate::words::ms(breaker.left_ms)
            ));
        }
    }
    found
}

fn of_course(scope: &str, course: &CourseReport) -> Vec<String> {
    let mut found = Vec::new();
    if course.ineffective {
        found.push(format!(
            "{scope}: refusing does not lower the pressure, so only its entry limit holds"
        ));
    }
    if let Some(why) = withheld(course) {
        found.push(format!("{scope}: {why}"));
    }
    found
}

/// Why a change of state is withheld, and for how long; `None` where none is.
pub(super) fn withheld(course: &CourseReport) -> Option<String> {
    let left = Some(course.withheld_s).filter(|left| *left > 0.0)?;
    let what = if course.resting {
        "the overload has ended and stays, with the entry limit,"
    } else {
        "its mark is passed and rests"
    };
    let left = span(left);
    Some(format!(
        "this hour has had all its changes of state (hysteresis.changes_per_hour_max): {what} for {left} more"
    ))
}

fn missing_socket(status: &StatusReport) -> Option<String> {
    let socket = status.agent.missing_socket.as_ref()?;
    Some(format!(
        "{socket} is missing in {}: nobody new can connect there, the log says why",
        status.agent.directory
    ))
}

/// An incident of which the scope learns nothing.
fn incident(scope: &ScopeReport) -> Option<String> {
    let course = scope.course.as_ref()?;
    let since = span(course.incident_s?);
    let frozen = course.base_rt_ms.map_or_else(String::new, |base_rt_ms| {
        format!(": base response time frozen at {base_rt_ms:.1} ms")
    });
    Some(format!(
        "{}: an incident for {since}, answers take over ten times as long as at rest{frozen}",
        scope.name
    ))
}

fn rules(status: &StatusReport) -> Option<String> {
    if let Some(refused) = &status.agent.reload_refused {
        return Some(format!("{refused}; `tidegate check` tells why"));
    }
    // An older agent does not tell more.
    let rules = status.agent.rules.as_ref()?;
    if !rules.reload_ok {
        let age = rules.read_s.map_or_else(String::new, |age| {
            format!(", those read {} ago are in force", span(age))
        });
        return Some(format!(
            "the last reload was refused{age}: `tidegate check` tells why"
        ));
    }
    None
}

fn late(status: &StatusReport) -> Option<String> {
    let agent = &status.agent;
    let late = agent
        .tick_late_p99_ms
        .filter(|late| *late >= agent.tick_ms)?;
    Some(format!(
        "the agent's ticks come {late:.0} ms late (99 of 100 come earlier): give it real-time \
         scheduling (LimitRTPRIO in its unit)"
    ))
}
