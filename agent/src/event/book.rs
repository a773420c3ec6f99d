//! The last events, and how many there were of each kind.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_segment::sync::{Ordering, Word};

use super::kind::EventKind;

/// Events that are kept.
pub const EVENTS_MAX: usize = 1000;

/// Within this time of the first one, the same again is counted with it, ms.
const REPEATS_WITHIN_MS: u64 = 60_000;

/// Longest text of an event, bytes.
const TEXT_MAX: usize = 600;

/// Longest text of a field, bytes.
const FIELD_MAX: usize = 255;

/// Most fields of an event.
const FIELDS_MAX: usize = 12;

/// Fields that say of whom an event is. Events of a kind that are of the same are repeats, whatever figures they tell.
const SUBJECTS: [&str; 10] = [
    "tenant", "scope", "resource", "rule", "from", "to", "cause", "uid", "socket", "thread",
];

/// What a field of an event holds.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// A whole number.
    Whole(u64),
    /// A number below zero, or with a fraction.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// Anything else.
    Text(Box<str>),
}

/// The fields of an event.
pub type EventFields = BTreeMap<&'static str, FieldValue>;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// What it is.
    pub kind: EventKind,
    /// `error`, `warn`, `info` or `debug`.
    pub level: &'static str,
    /// What it says.
    pub text: String,
    /// Of whom, and with which figures.
    pub fields: EventFields,
}

/// Something that happened, once or again and again within a minute.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptEvent {
    /// Grows from event to event. A repeat takes a new one, so that whoever asks for what came later sees its count.
    pub number: u64,
    /// When it happened first, since 1970.
    pub first: Duration,
    /// When it happened last.
    pub last: Duration,
    /// How often.
    pub count: u64,
    /// What was said last.
    pub event: NewEvent,
}

impl KeptEvent {
    fn is_repeated_by(&self, event: &NewEvent, now: Duration) -> bool {
        // A clock that was set back ends a row of repeats.
        let age = now.checked_sub(self.first);
        self.event.kind == event.kind
            && age.is_some_and(|age| age <= Duration::from_millis(REPEATS_WITHIN_MS))
            && same_subject(&self.event, event)
    }
}

fn same_subject(one: &NewEvent, other: &NewEvent) -> bool {
    let mut of_somebody = false;
    for name in SUBJECTS {
        let (one, other) = (one.fields.get(name), other.fields.get(name));
        of_somebody |= one.is_some();
        if one != other {
            return false;
        }
    }
    of_somebody || one.text == other.text
}

#[derive(Debug)]
struct Kept {
    /// By their numbers.
    events: VecDeque<KeptEvent>,
    /// Number of the last one.
    number: u64,
}

/// Keeps the last events and counts all.
#[derive(Debug)]
pub struct EventBook {
    /// In the order of the kinds.
    counts: Box<[Word]>,
    kept: Mutex<Kept>,
}

impl EventBook {
    /// An empty one. `now` is since 1970: numbers begin there, so that they go on growing over a restart of the agent.
    pub fn new(now: Duration) -> Self {
        Self {
            counts: EventKind::all().map(|_kind| Word::new(0)).collect(),
            kept: Mutex::new(Kept {
                events: VecDeque::new(),
                number: u64::try_from(now.as_millis()).unwrap_or(0),
            }),
        }
    }

    /// Takes an event down. `now` is since 1970.
    pub fn note(&self, mut event: NewEvent, now: Duration) {
        if let Some(count) = self.counts.get(event.kind.place()) {
            count.count(1);
        }
        cut(&mut event.text, TEXT_MAX);
        let mut kept = self.kept.lock();
        let Kept { events, number } = &mut *kept;
        *number = number.saturating_add(1);
        let before = events
            .iter()
            .rposition(|kept| kept.is_repeated_by(&event, now));
        let before = before.and_then(|place| events.remove(place));
        if events.len() >= EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(KeptEvent {
            number: *number,
            first: before.as_ref().map_or(now, |before| before.first),
            last: now,
            count: before.map_or(1, |before| before.count.saturating_add(1)),
            event,
        });
    }

    /// The events with higher numbers, oldest first, and the number of the last event there was. A number that is not
    /// reached yet is of a clock that has been set back since: then it is all of them.
    pub fn after(&self, number: u64) -> (Vec<KeptEvent>, u64) {
        let kept = self.kept.lock();
        let number = if number > kept.number { 0 } else { number };
        let begin = kept.events.partition_point(|event| event.number <= number);
        let events = kept.events.range(begin..).cloned().collect();
        (events, kept.number)
    }

    /// How often each kind of event happened.
    pub fn counts(&self) -> impl Iterator<Item = (EventKind, u64)> {
        // Relaxed: figures for people.
        let counts = self
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        EventKind::all().zip(counts)
    }
}

/// Adds a field, if there is room for it and it is not too long.
pub(super) fn add_field(fields: &mut EventFields, name: &'static str, mut value: FieldValue) {
    if fields.len() >= FIELDS_MAX {
        return;
    }
    if let FieldValue::Text(text) = &mut value
        && text.len() > FIELD_MAX
    {
        let mut shorter = text.to_string();
        cut(&mut shorter, FIELD_MAX);
        *text = shorter.into_boxed_str();
    }
    fields.insert(name, value);
}

/// Cuts a text that is too long, and shows that it goes on.
fn cut(text: &mut String, most: usize) {
    const GOES_ON: &str = "...";
    if text.len() > most {
        let end = text.floor_char_boundary(most.saturating_sub(GOES_ON.len()));
        text.truncate(end);
        text.push_str(GOES_ON);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, text: &str, scope: Option<&str>) -> NewEvent {
        let mut fields = EventFields::new();
        if let Some(scope) = scope {
            add_field(&mut fields, "scope", FieldValue::Text(scope.into()));
        }
        NewEvent {
            kind: EventKind::of(name).unwrap(),
            level: "warn",
            text: text.to_owned(),
            fields,
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn told(book: &EventBook, after: u64) -> Vec<(u64, u64, String)> {
        let (events, _last) = book.after(after);
        let events = events.into_iter();
        events
            .map(|kept| (kept.number, kept.count, kept.event.text))
            .collect()
    }

    #[test]
    fn repeats_within_a_minute_are_one_event_that_tells_the_last_figures() {
        let book = EventBook::new(at(0));
        book.note(event("scope_state", "load 4", Some("host")), at(10));
        book.note(event("scope_state", "load 5", Some("orders")), at(11));
        book.note(event("scope_state", "load 6", Some("host")), at(70));
        assert_eq!(
            told(&book, 0),
            [(2, 1, "load 5".to_owned()), (3, 2, "load 6".to_owned())]
        );
        // The minute is that of the first.
        book.note(event("scope_state", "load 7", Some("host")), at(71));
        assert_eq!(told(&book, 2).len(), 2);
        let (events, last) = book.after(2);
        assert_eq!((events[0].first, events[0].last), (at(10), at(70)));
        assert_eq!(last, 4);
        assert_eq!(told(&book, 4), []);
        let kind = EventKind::of("scope_state").unwrap();
        assert!(book.counts().any(|count| count == (kind, 4)));
    }

    #[test]
    fn events_of_nobody_are_repeats_when_they_say_the_same() {
        let book = EventBook::new(at(0));
        for text in ["a", "b", "a"] {
            book.note(event("config_fault", text, None), at(5));
        }
        assert_eq!(
            told(&book, 0),
            [(2, 1, "b".to_owned()), (3, 2, "a".to_owned())]
        );
    }

    #[test]
    fn the_last_thousand_are_kept_and_each_is_bounded() {
        let book = EventBook::new(at(0));
        for number in 0..EVENTS_MAX + 5 {
            let text = format!("{number} {}", "\u{e4}".repeat(TEXT_MAX));
            book.note(event("config_fault", &text, None), at(1));
        }
        let events = told(&book, 0);
        assert_eq!((events.len(), events[0].0), (EVENTS_MAX, 6));
        assert!(events.iter().all(|event| event.2.len() <= TEXT_MAX));
        assert!(events[0].2.ends_with("..."));
        let mut fields = EventFields::new();
        add_field(
            &mut fields,
            "scope",
            FieldValue::Text("n".repeat(9999).into()),
        );
        assert!(matches!(&fields["scope"], FieldValue::Text(text) if text.len() == FIELD_MAX));
    }

    #[test]
    fn a_clock_that_is_set_back_hides_nothing() {
        let book = EventBook::new(at(100));
        book.note(event("scope_state", "a", Some("host")), at(100));
        book.note(event("scope_state", "b", Some("host")), at(50));
        assert_eq!(told(&book, 0).len(), 2);
        // Whoever asks on from a number of a run that began later sees all of this one.
        assert_eq!(told(&book, 200_000).len(), 2);
        let later = EventBook::new(at(200));
        later.note(event("scope_state", "c", Some("host")), at(200));
        assert_eq!(told(&later, 100_002).len(), 1);
    }
}
