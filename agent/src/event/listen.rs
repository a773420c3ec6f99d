//! Takes events from the log.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use tidegate_limits::number::double;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::book::{EventBook, EventFields, FieldValue, NewEvent, add_field};
use super::kind::EventKind;
use crate::calendar::unix_now;

/// Field of a line for the log at level `debug` that is an event all the same: of interest to who asks what happened, and
/// too frequent for a log that nobody has asked for more.
const KEPT: &str = "kept";

/// A layer that takes down in a book whatever is logged under the name of an event, whichever levels the log shows.
pub fn listener<S: Subscriber + for<'s> LookupSpan<'s>>(book: Arc<EventBook>) -> impl Layer<S> {
    let filter = FilterFn::new(is_kept).with_max_level_hint(LevelFilter::DEBUG);
    Listener(book).with_filter(filter)
}

fn is_kept(line: &Metadata<'_>) -> bool {
    let level = *line.level();
    line.is_event() && (level <= Level::INFO || line.fields().field(KEPT).is_some())
}

struct Listener(Arc<EventBook>);

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        if let Some(kind) = line.kind {
            let event = NewEvent {
                kind,
                level: level(*event.metadata().level()),
                text: line.text,
                fields: line.fields,
            };
            self.0.note(event, unix_now());
        }
    }
}

fn level(level: Level) -> &'static str {
    if level == Level::ERROR {
        "error"
    } else if level == Level::WARN {
        "warn"
    } else if level == Level::INFO {
        "info"
    } else {
        "debug"
    }
}

/// A line of the log, read.
#[derive(Debug, Default)]
struct Line {
    kind: Option<EventKind>,
    text: String,
    fields: EventFields,
}

impl Line {
    fn take(&mut self, field: &Field, value: FieldValue) {
        let name = field.name();
        if name != KEPT {
            add_field(&mut self.fields, name, value);
        }
    }
}

impl Visit for Line {
    #[expect(clippy::use_debug, reason = "the log's own formatting comes as Debug")]
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a string cannot fail.
            let _cannot: std::fmt::Result = write!(self.text, "{value:?}");
        } else {
            self.take(field, FieldValue::Text(format!("{value:?}").into()));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "event" => self.kind = EventKind::of(value),
            "message" => value.clone_into(&mut self.text),
            _ => self.take(field, FieldValue::Text(value.into())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, FieldValue::Whole(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        let value = match u64::try_from(value) {
            Ok(whole) => FieldValue::Whole(whole),
            Err(_negative) => FieldValue::Number(-double(value.unsigned_abs())),
        };
        self.take(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, FieldValue::Number(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, FieldValue::Flag(value));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn what_is_logged_by_a_name_is_an_event_whatever_the_log_shows() {
        let book = Arc::new(EventBook::new(Duration::ZERO));
        let silent = tracing_subscriber::fmt::layer().with_filter(LevelFilter::OFF);
        let log = tracing_subscriber::registry()
            .with(silent)
            .with(listener(Arc::clone(&book)));
        tracing::subscriber::with_default(log, || {
            let path = std::path::Path::new("/run/x");
            tracing::warn!(
                event = "scope_state",
                scope = "host",
                cause = "load",
                "host: {}",
                "busy"
            );
            tracing::info!(event = "rules_in_force", rules = 7_usize, strained = true, path = %path.display(), "in force");
            tracing::debug!(event = "client_gone", kept = true, uid = 7, "gone");
            tracing::debug!(event = "seat_ended", "of interest to nobody");
            tracing::info!(event = "no_such_event", "unknown");
            tracing::info!("without a name");
        });
        let (events, _last) = book.after(0);
        let events: Vec<_> = events.into_iter().map(|kept| kept.event).collect();
        let names: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
        assert_eq!(names, ["scope_state", "rules_in_force", "client_gone"]);
        assert_eq!((events[0].level, &*events[0].text), ("warn", "host: busy"));
        assert_eq!(events[0].fields["cause"], FieldValue::Text("load".into()));
        let fields = &events[1].fields;
        assert_eq!(fields["rules"], FieldValue::Whole(7));
        assert_eq!(fields["strained"], FieldValue::Flag(true));
        assert_eq!(fields["path"], FieldValue::Text("/run/x".into()));
        let fields: Vec<_> = events[2].fields.keys().copied().collect();
        assert_eq!(fields, ["uid"]);
    }
}
