//! `tidegate explain`.

mod now;

use std::fmt::Write as _;
use std::path::PathBuf;

use self::now::Now;
use super::output::{Failure, say, say_json};
use super::status::{read, told};
use crate::config::DEFAULT_TENANT;
use crate::report::explain::{ExplainReport, LastRefusalReport, RuleNowReport};
use crate::report::facts::HttpPermitsReport;
use crate::report::status::{ResourceReport, ScopeReport};
use crate::report::warnings::WarningReport;
use crate::words::{many, ms, paragraph, span};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate explain order-create
  tidegate explain order-create --json | jq '.rules[] | select(.refused_total > 0)'")]
pub(super) struct Options {
    /// Name of the resource
    resource: String,
    /// Tenant of the resource, for root and the agent's user [default: the caller's own]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let resource = encoded(&options.resource);
    let tenant = options.tenant.as_deref().map(encoded);
    let tenant = tenant.map_or_else(String::new, |tenant| format!("&tenant={tenant}"));
    let path = format!("/v1/explain?resource={resource}{tenant}");
    let body = told(options.runtime_dir.as_deref(), &path)?;
    if options.json {
        say_json(body.trim_end());
        return Ok(());
    }
    say(text(&read(&body)?).trim_end());
    Ok(())
}

/// A value of a query; all but letters and digits is written as hexadecimal bytes.
fn encoded(value: &str) -> String {
    let bytes = value.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02x}")
        }
    });
    bytes.collect()
}

fn text(explained: &ExplainReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write_all(&mut text, explained);
    text
}

fn write_all(text: &mut String, explained: &ExplainReport) -> std::fmt::Result {
    let ExplainReport {
        resource,
        tenant,
        counted_as,
        counts,
        http_permits,
        rules,
        scopes,
    } = explained;
    let of = if tenant.is_empty() || tenant == DEFAULT_TENANT {
        String::new()
    } else {
        format!(" of tenant {tenant}")
    };
    write!(text, "{resource}{of}")?;
    match counted_as {
        None => write!(text, ": nothing was asked of it yet")?,
        Some(name) if name != resource => {
            write!(
                text,
                ": has no slot of its own; the rules of {name} act on it"
            )?;
        }
        Some(_) => {}
    }
    if let Some(counts) = counts {
        write_counts(text, counts, rules)?;
    }
    writeln!(text)?;
    if let Some(HttpPermitsReport {
        held,
        oldest_s: Some(oldest),
        ..
    }) = http_permits
    {
        writeln!(
            text,
            "  {} by HTTP not given back, oldest {}",
            many(*held, "permit"),
            span(*oldest)
        )?;
    }
    writeln!(text)?;
    if rules.is_empty() {
        writeln!(text, "no rule acts on it")?;
    }
    for rule in rules {
        write_rule(text, rule)?;
    }
    writeln!(text)?;
    scopes.iter().try_for_each(|scope| write_scope(text, scope))
}

fn write_scope(text: &mut String, scope: &ScopeReport) -> std::fmt::Result {
    let ScopeReport {
        name,
        state,
        cause,
        why,
        ..
    } = scope;
    match (why, &**cause) {
        (Some(why), _) => paragraph(text, "", &format!("scope {name}: {why}")),
        (None, "none") => writeln!(text, "scope {name}: {state}"),
        (None, cause) => writeln!(text, "scope {name}: {state}, because of {cause}"),
    }
}

fn write_counts(
    text: &mut String,
    counts: &ResourceReport,
    rules: &[RuleNowReport],
) -> std::fmt::Result {
    let ResourceReport {
        passed_total,
        inflight,
        refused_total,
        ..
    } = counts;
    let refused = refused_total
        .values()
        .fold(0_u64, |sum, count| sum.saturating_add(*count));
    write!(
        text,
        ": {passed_total} passed, {refused} refused, {inflight} in flight"
    )?;
    for (kind, count) in refused_total {
        if *count == 0 {
            continue;
        }
        write!(text, "\n  {count} refused by {kind}")?;
        let of_kind = rules.iter().filter(|rule| rule.kind == *kind);
        let told = of_kind.fold(0_u64, |sum, rule| sum.saturating_add(rule.refused_total));
        let others = count.saturating_sub(told);
        if others > 0 && kind == "flow" {
            write!(
                text,
                ", {others} of them by no rule below: the caller waited no longer\n  \
                 (wait_at_most), or the rule was changed since"
            )?;
        }
    }
    Ok(())
}

fn write_rule(text: &mut String, rule: &RuleNowReport) -> std::fmt::Result {
    let RuleNowReport {
        id,
        kind,
        mode,
        place,
        refused_total,
        observed_total,
        last,
        not_in_force,
        ends_in_s,
        strained,
        warnings,
        now,
    } = rule;
    writeln!(text, "{kind} rule {id} ({place})")?;
    let mut did = match (not_in_force, &**mode) {
        (Some(why), _) => why.to_string(),
        (None, "observe") => format!("only observes: would have refused {observed_total}"),
        (None, _) => format!("refused {refused_total}"),
    };
    let now = now.as_object().map(Now);
    if let Some(LastRefusalReport {
        value,
        limit,
        ago_ms,
    }) = last
    {
        let ago = ms(*ago_ms);
        let figures = if now.is_some_and(Now::is_queue) {
            format!(
                "a wait of {}, at most {}",
                ms((*value).into()),
                ms((*limit).into())
            )
        } else {
            format!("{value} of {limit}")
        };
        did = format!("{did}, the last {ago} ago with {figures}");
    }
    paragraph(text, "  ", &did)?;
    if let Some(now) = now.filter(|_| not_in_force.is_none()) {
        paragraph(text, "  now: ", &now.text())?;
    }
    if let Some(seconds) = ends_in_s.filter(|_| not_in_force.is_none()) {
        writeln!(text, "  ends in {}", span(seconds))?;
    }
    if *strained {
        writeln!(
            text,
            "  its strained_count is in force: threads, or garbage collection"
        )?;
    }
    for WarningReport { text: warning, .. } in warnings {
        paragraph(text, "  warning: ", warning)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn field_o11_an_answer_is_told_in_sentences() {
        let rule = |id: &str, kind: &str, refused: u64, now: Value| {
            json!({"id": id, "kind": kind, "mode": "enforce", "place": "a.toml:1:1", "refused_total": refused,
                "observed_total": 0, "last": null, "now": now})
        };
        let mut few = rule(
            "few",
            "flow",
            2,
            json!({"passed": 3, "limit": 33.333_333_333_333_34}),
        );
        few["last"] = json!({"value": 5, "limit": 5, "ago_ms": 12});
        let mut paced = rule(
            "in turn",
            "flow",
            1,
            json!({"queued_ms": 389, "limit_ms": 500, "rate": 5.0}),
        );
        paced["last"] = json!({"value": 1200, "limit": 500, "ago_ms": 90_000});
        let mut watching = rule("watching", "flow", 0, json!({"inflight": 1, "limit": 2}));
        watching["mode"] = json!("observe");
        watching["observed_total"] = json!(4);
        let breaker = json!({"bad": 3, "breaker": "open", "calls": 3, "left_ms": 4951, "opened_by": 3.0,
            "opened_total": 1, "grade": "error_count", "threshold": 2.0});
        let mut off = rule("old", "param", 0, Value::Null);
        off["not_in_force"] = json!("it is off");
        let explained = json!({
            "resource": "order-create", "tenant": "shop", "counted_as": "order-create",
            "counts": {"passed_total": 7, "refused_total": {"flow": 5, "param": 0}, "inflight": 59},
            "http_permits": {"held": 59, "oldest_s": 41.3, "expired_total": 0},
            "rules": [few, paced, watching, rule("pay-errors", "degrade", 2, breaker), off],
            "scopes": [{"name": "host", "state": "overload", "cause": "load",
                "why": "load is high (load1 4.6, mark 2); nobody is refused: 0 of 32 in flight"},
                {"name": "orders", "state": "healthy", "cause": "none", "why": null}],
        });
        let explained: ExplainReport = serde_json::from_value(explained).unwrap();
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/explain.txt");
        super::super::screens::compare(&path, &text(&explained));
    }

    #[test]
    fn a_name_goes_into_a_query_as_it_is() {
        assert_eq!(encoded("GET:/a b"), "GET%3a%2fa%20b");
    }
}
