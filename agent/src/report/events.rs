//! The shape of `GET /v1/events`.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ListedWord;
use crate::event::book::{EventBook, EventFields, FieldValue, KeptEvent};
use crate::event::kind::EventReach;

/// The last events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsReport {
    /// Number of the last event there was; `after` it is what comes later.
    pub last: u64,
    /// Oldest first.
    pub events: Vec<EventReport>,
}

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventReport {
    /// Grows from event to event, also over a restart of the agent. A repeat takes a new one.
    pub number: u64,
    /// Its name in the log.
    pub event: ListedWord,
    /// `error`, `warn`, `info` or `debug`.
    pub level: ListedWord,
    /// When it happened last, Unix time.
    pub at_unix_ms: u64,
    /// When it happened first, of those that are one event.
    pub first_unix_ms: u64,
    /// How often within a minute.
    pub count: u64,
    /// What is said of it.
    pub text: String,
    /// Of whom it is, and figures.
    pub fields: Map<String, Value>,
}

impl EventsReport {
    /// The events behind a number, as far as a tenant may read of them; all where none is named.
    pub fn of(book: &EventBook, after: u64, tenant: Option<&Arc<str>>) -> Self {
        let (events, last) = book.after(after);
        let events = events.iter();
        let events = events.filter(|kept| tenant.is_none_or(|tenant| is_for(kept, tenant)));
        Self {
            last,
            events: events.map(EventReport::of).collect(),
        }
    }
}

/// Whether a tenant may read of an event: one of its own, or one of nobody's that all may read.
fn is_for(kept: &KeptEvent, tenant: &Arc<str>) -> bool {
    match kept.event.fields.get("tenant") {
        Some(FieldValue::Text(name)) => **name == **tenant,
        Some(_other) => false,
        None => kept.event.kind.reach() == EventReach::All,
    }
}

impl EventReport {
    fn of(kept: &KeptEvent) -> Self {
        Self {
            number: kept.number,
            event: kept.event.kind.name().into(),
            level: kept.event.level.into(),
            at_unix_ms: ms(kept.last),
            first_unix_ms: ms(kept.first),
            count: kept.count,
            text: kept.event.text.clone(),
            fields: fields(&kept.event.fields),
        }
    }
}

fn fields(fields: &EventFields) -> Map<String, Value> {
    let json = |value: &FieldValue| match value {
        FieldValue::Whole(number) => (*number).into(),
        FieldValue::Number(number) => (*number).into(),
        FieldValue::Flag(flag) => (*flag).into(),
        FieldValue::Text(text) => text.to_string().into(),
    };
    let fields = fields.iter();
    fields
        .map(|(name, value)| ((*name).to_owned(), json(value)))
        .collect()
}

fn ms(since_1970: Duration) -> u64 {
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::book::NewEvent;
    use crate::event::kind::EventKind;

    fn note(book: &EventBook, name: &str, tenant: Option<&str>) {
        let tenant = tenant.map(|name| ("tenant", FieldValue::Text(name.into())));
        let event = NewEvent {
            kind: EventKind::of(name).unwrap(),
            level: "warn",
            text: format!("{name} of {tenant:?}"),
            fields: tenant.into_iter().collect(),
        };
        book.note(event, Duration::from_secs(7));
    }

    #[test]
    fn a_tenant_reads_of_itself_and_the_host_and_an_operator_of_all() {
        let book = EventBook::new(Duration::ZERO);
        note(&book, "breaker_state", Some("shop"));
        note(&book, "breaker_state", Some("bank"));
        note(&book, "scope_state", None);
        note(&book, "config_fault", None);
        let names = |tenant: Option<&str>| {
            let tenant = tenant.map(Arc::from);
            let report = EventsReport::of(&book, 0, tenant.as_ref());
            assert_eq!(report.last, 4);
            let numbers = report.events.iter().map(|event| event.number);
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(names(None), [1, 2, 3, 4]);
        assert_eq!(names(Some("shop")), [1, 3]);
        assert_eq!(names(Some("bank")), [2, 3]);
        let report = EventsReport::of(&book, 3, None);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["events"][0]["at_unix_ms"], 7000);
        assert_eq!(json["events"][0]["event"], "config_fault");
        assert_eq!(
            serde_json::from_value::<EventsReport>(json).unwrap(),
            report
        );
    }
}
