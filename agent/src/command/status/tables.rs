//! The tables of a status: scopes, resources, clients.

use std::fmt::Write as _;

use tidegate_abi::decision::ScopeState;

use super::before::Before;
use crate::config::DEFAULT_TENANT;
use crate::report::status::{ClientReport, ResourceReport, ScopeReport, StatusReport};
use crate::report::why::BUSY;
use crate::words::{WIDTH, number, paragraph};

/// Rows of a table that are shown unless all are asked for.
const ROWS: usize = 20;

pub(super) fn scopes(
    text: &mut String,
    status: &StatusReport,
    before: &Before<'_>,
) -> std::fmt::Result {
    let absent = status.scopes_without_group.iter().map(|scope| &scope.name);
    let names = status.scopes.iter().map(|scope| &scope.name).chain(absent);
    let width = name_width(names, 24);
    writeln!(
        text,
        "\n{:<width$} {:<9} {:>9} {:>6} {:>9} {:>9}",
        "SCOPE", "STATE", "IN FLIGHT", "LIMIT", "PASSED/S", "REFUSED/S"
    )?;
    for scope in &status.scopes {
        scope_row(text, width, scope, before)?;
    }
    for scope in &status.scopes_without_group {
        writeln!(text, "{:<width$} no group", scope.name)?;
        // What is meant to be there is told above.
        if !scope.one_group {
            paragraph(text, "  ", &scope.text)?;
        }
    }
    Ok(())
}

fn scope_row(
    text: &mut String,
    width: usize,
    scope: &ScopeReport,
    before: &Before<'_>,
) -> std::fmt::Result {
    let limit = scope.limits.inflight.map(|limit| limit.to_string());
    let rate = |count| shown(before.rate_of_scope(scope, count));
    writeln!(
        text,
        "{:<width$} {:<9} {:>9} {:>6} {:>9} {:>9}",
        scope.name,
        state(scope),
        scope.inflight,
        limit.unwrap_or_else(|| "-".to_owned()),
        rate(|scope| scope.passed_total),
        rate(|scope| scope.refused_total),
    )?;
    match &scope.why {
        Some(why) => paragraph(text, "  ", why),
        None => Ok(()),
    }
}

/// A mark that is passed while nobody is refused is no overload to an operator.
fn state(scope: &ScopeReport) -> &str {
    let is_busy = &*scope.state == ScopeState::Overload.name() && !scope.refuses;
    if is_busy { BUSY } else { &scope.state }
}

pub(super) fn resources(
    text: &mut String,
    status: &StatusReport,
    before: &Before<'_>,
    all: bool,
) -> std::fmt::Result {
    let mut rows: Vec<_> = status.resources.iter().enumerate().collect();
    rows.retain(|(_at, resource)| all || is_of_interest(resource));
    if rows.is_empty() {
        return Ok(());
    }
    let refused_rate = |row| before.rate_of_resource(row, ResourceReport::refused);
    let passed_rate = |row| before.rate_of_resource(row, |one| one.passed_total);
    rows.sort_by(|a, b| {
        let key = |row| [refused_rate(row), passed_rate(row)].map(Option::unwrap_or_default);
        let ([refused_a, passed_a], [refused_b, passed_b]) = (key(*a), key(*b));
        let by_rate = refused_b.total_cmp(&refused_a);
        by_rate.then(passed_b.total_cmp(&passed_a))
    });
    let names = rows.iter().map(|(_at, one)| owned(&one.tenant, &one.name));
    let width = name_width(names, 20);
    writeln!(
        text,
        "\n{:<width$} {:>8} {:>6} {:>8} {:>6} {:>6} {:>6}  RULES",
        "RESOURCE", "PASSED", "/S", "REFUSED", "/S", "FLIGHT", "RT MS"
    )?;
    let shown_rows = if all { rows.len() } else { ROWS };
    for row in rows.iter().take(shown_rows) {
        let (_at, resource) = row;
        let mean = resource.rt_ms.map_or_else(|| "-".to_owned(), number);
        let line = format!(
            "{:<width$} {:>8} {:>6} {:>8} {:>6} {:>6} {mean:>6}  ",
            owned(&resource.tenant, &resource.name),
            resource.passed_total,
            shown(passed_rate(*row)),
            resource.refused(),
            shown(refused_rate(*row)),
            resource.inflight,
        );
        let room = WIDTH.saturating_sub(line.chars().count());
        let rules = first_of(&resource.rules, room);
        writeln!(text, "{}", format!("{line}{rules}").trim_end())?;
    }
    more(text, rows.len(), shown_rows)
}

/// As many of these as fit, and how many more there are.
fn first_of(rules: &[String], room: usize) -> String {
    let mut rules = rules.iter().map(|rule| {
        // The kind is what `explain` tells.
        rule.split_once(' ').map_or(rule.as_str(), |(_kind, id)| id)
    });
    let mut told = rules.next().unwrap_or_default().to_owned();
    let mut left = rules.len();
    for rule in rules {
        let more = format!(", {rule}");
        // Behind it there may be a number.
        let length = [&told, &more].map(|part| part.chars().count());
        if length.iter().sum::<usize>().saturating_add(4) > room {
            break;
        }
        told += &more;
        left = left.saturating_sub(1);
    }
    match left {
        0 => told,
        left => format!("{told} +{left}"),
    }
}

/// The agent's own resources, for names that got no slot, say something once they were used.
fn is_of_interest(resource: &ResourceReport) -> bool {
    let is_own = resource.name.starts_with("__");
    !is_own || resource.passed_total > 0 || resource.refused() > 0 || resource.inflight > 0
}

pub(super) fn clients(text: &mut String, clients: &[ClientReport], all: bool) -> std::fmt::Result {
    if clients.is_empty() {
        return Ok(());
    }
    let names = clients.iter().map(name_of);
    let width = name_width(names, 28);
    writeln!(
        text,
        "\n{:<width$} {:>8} {:>8} {:<6} {:>5}  SCOPE",
        "CLIENT", "PID", "UID", "DOOR", "HELD"
    )?;
    let shown_rows = if all { clients.len() } else { ROWS };
    for client in clients.iter().take(shown_rows) {
        let pid = match client.pid {
            0 => "-".to_owned(),
            pid => pid.to_string(),
        };
        let ClientReport {
            uid,
            door,
            scope,
            held,
            ..
        } = client;
        let name = name_of(client);
        writeln!(
            text,
            "{name:<width$} {pid:>8} {uid:>8} {door:<6} {held:>5}  {scope}"
        )?;
    }
    more(text, clients.len(), shown_rows)
}

fn name_of(client: &ClientReport) -> String {
    let name = match client.name.trim() {
        "" if client.pid == 0 => "(of another pid namespace)",
        "" => "(without a name)",
        name => name,
    };
    owned(&client.tenant, name)
}

fn more(text: &mut String, rows: usize, shown: usize) -> std::fmt::Result {
    match rows.saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(text, "... and {more} more; -v shows all"),
    }
}

/// Room for the longest name, as far as the line has it.
fn name_width(names: impl Iterator<Item = impl AsRef<str>>, most: usize) -> usize {
    let longest = names.map(|name| name.as_ref().chars().count()).max();
    longest.unwrap_or_default().clamp(8, most)
}

fn shown(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if rate >= 10.0 => format!("{rate:.0}"),
        Some(rate) => number((rate * 10.0).round() / 10.0),
    }
}

/// A name with its tenant, where that is not the one of all.
pub(super) fn owned(tenant: &str, name: &str) -> String {
    if tenant.is_empty() || tenant == DEFAULT_TENANT {
        name.to_owned()
    } else {
        format!("{tenant}: {name}")
    }
}
