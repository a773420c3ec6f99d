//! Reports: texts that grow with the names, rules and clients there are.
//!
//! A long one costs milliseconds to make and megabytes to keep, and whoever may connect may ask for it, so it is bounded
//! before any work is done for it: a line of each user lets so many in, an answer has room before it is made, one text
//! is made at a time, on a thread that serves no socket, and a long text serves all who may read it for half a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

use super::answer::{JSON, Wrong, json_line};
use super::caller::{Caller, View};
use super::exchange::{Counted, busy, kept, room_for_answer};
use super::line::{Lines, WITHIN};
use crate::host::AgentState;
use crate::places::Holder;
use crate::report::status::{self, ResourceReport, ScopeReport, StatusReport};
use crate::report::{fill, rules};
use crate::telemetry::form::ScrapeForm;

/// For so long one text serves all who may read it.
const SERVES: Duration = WITHIN;

/// A text up to this length is made anew for each caller, bytes: that costs little, and it tells what the caller has
/// just done.
const SHORT: usize = 64 * 1024;

/// What there is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Report {
    Status,
    Scopes,
    Resources,
    Rules,
    Metrics(ScrapeForm),
}

impl Report {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Metrics(form) => form.content_type(),
            Self::Status | Self::Scopes | Self::Resources | Self::Rules => JSON,
        }
    }

    /// Makes the text. `length` is that of the last one.
    fn make(self, view: &View, context: &AgentState, length: usize) -> Result<Vec<u8>, Wrong> {
        let seen = &view.tenants(context);
        match self {
            Self::Status => json(&StatusReport::of(context, seen)),
            Self::Scopes => json(&Scopes {
                scopes: status::scopes(&context.control.snapshot()),
            }),
            Self::Resources => json(&Resources {
                resources: status::resources(seen),
            }),
            Self::Rules => json(&Rules {
                generation: view.own.tenant.board().rules_generation(),
                rules: rules::rules(seen),
            }),
            Self::Metrics(form) => {
                let made = fill::scrape(context, seen).text(form, length);
                made.map(String::into_bytes).map_err(|error| {
                    let text = format!("the metrics cannot be written: {error}");
                    Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, text)
                })
            }
        }
    }
}

#[derive(Serialize)]
struct Scopes {
    scopes: Vec<ScopeReport>,
}

#[derive(Serialize)]
struct Resources {
    resources: Vec<ResourceReport>,
}

#[derive(Serialize)]
struct Rules {
    /// That of the caller's own tenant.
    generation: u64,
    rules: Vec<rules::RuleReport>,
}

fn json(report: &impl Serialize) -> Result<Vec<u8>, Wrong> {
    json_line(report).map_err(|error| {
        let text = format!("the answer cannot be written: {error}");
        Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

/// The texts that were made last. Whoever has the lock around them makes one.
#[derive(Debug, Default)]
struct Texts(HashMap<Key, Text>);

/// A report, the own tenant of who asks, and whether it sees all.
type Key = (Report, Arc<str>, bool);

#[derive(Debug)]
struct Text {
    made: Instant,
    length: usize,
    /// Forgotten once it is too old, so that no more memory is held than is of use.
    bytes: Option<Bytes>,
}

impl Texts {
    /// Length of the last text; 0 before the first.
    fn length(&self, key: &Key) -> usize {
        self.0.get(key).map_or(0, |text| text.length)
    }

    /// A text that is no older than [`SERVES`].
    fn fresh(&self, key: &Key) -> Option<Bytes> {
        let text = self.0.get(key)?;
        let bytes = text.bytes.clone()?;
        (text.made.elapsed() < SERVES).then_some(bytes)
    }

    fn forget_old(&mut self) {
        for text in self.0.values_mut() {
            if text.made.elapsed() >= SERVES {
                text.bytes = None;
            }
        }
    }

    fn keep(&mut self, key: Key, bytes: &Bytes) {
        let text = Text {
            made: Instant::now(),
            length: bytes.len(),
            bytes: Some(bytes.clone()),
        };
        self.0.insert(key, text);
    }
}

/// All reports, of both HTTP doors.
#[derive(Debug)]
pub(super) struct Reports {
    context: Arc<AgentState>,
    lines: Lines,
    texts: Arc<Mutex<Texts>>,
}

impl Reports {
    pub(super) fn new(context: Arc<AgentState>) -> Arc<Self> {
        Arc::new(Self {
            context,
            lines: Lines::default(),
            texts: Arc::default(),
        })
    }

    /// A report for a caller, in its turn.
    pub(super) async fn tell(&self, report: Report, caller: &Caller) -> Result<Response, Wrong> {
        let texts = self.turn(caller.holder).await?;
        let key = key(report, &caller.view);
        let expected = texts.length(&key);
        let bounds = &self.context.bounds;
        let mut place = room_for_answer(bounds, caller.holder, expected)?;
        let text = match texts.fresh(&key).filter(|text| text.len() > SHORT) {
            Some(text) => text,
            None => self.make(texts, report, caller.view.clone()).await?,
        };
        if text.len() > expected {
            drop(place);
            place = room_for_answer(bounds, caller.holder, text.len())?;
        }
        Ok(answer(report, kept(text, place)))
    }

    /// The metrics for somebody unknown, whose turn has come. All who ask for a form have the same text.
    pub(super) async fn scrape(&self, form: ScrapeForm) -> Result<Response, Wrong> {
        let report = Report::Metrics(form);
        let view = View::of_all(&self.context);
        let texts = Arc::clone(&self.texts).lock_owned().await;
        let text = match texts.fresh(&key(report, &view)) {
            Some(text) => text,
            None => self.make(texts, report, view).await?,
        };
        Ok(answer(report, text))
    }

    /// Makes what no other caller asks for, in the caller's turn.
    pub(super) async fn once<T: Send + 'static>(
        &self,
        holder: Holder,
        make: impl FnOnce(&AgentState) -> T + Send + 'static,
    ) -> Result<T, Wrong> {
        let texts = self.turn(holder).await?;
        let context = Arc::clone(&self.context);
        aside(move || {
            let result = make(&context);
            drop(texts);
            result
        })
        .await
    }

    /// Waits until it is the caller's turn to have something made.
    async fn turn(&self, holder: Holder) -> Result<OwnedMutexGuard<Texts>, Wrong> {
        let waits = self.context.bounds.reports.take(holder);
        let _waits = waits.map_err(|no_place| busy(&no_place))?;
        self.lines.turn(holder.uid).await;
        Ok(Arc::clone(&self.texts).lock_owned().await)
    }

    /// Makes a text and keeps it. Even if who asked has gone, no other one is made meanwhile.
    async fn make(
        &self,
        mut texts: OwnedMutexGuard<Texts>,
        report: Report,
        view: View,
    ) -> Result<Bytes, Wrong> {
        let context = Arc::clone(&self.context);
        let made = aside(move || {
            texts.forget_old();
            let key = key(report, &view);
            let text = report.make(&view, &context, texts.length(&key))?;
            let text = Bytes::from(text.into_boxed_slice());
            texts.keep(key, &text);
            Ok(text)
        });
        made.await?
    }
}

fn key(report: Report, view: &View) -> Key {
    (report, Arc::clone(&view.own.name), view.sees_all)
}

fn answer(report: Report, text: Bytes) -> Response {
    let head = [(CONTENT_TYPE, report.content_type())];
    (head, Extension(Counted), text).into_response()
}

/// Works on a thread that serves no socket.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Wrong> {
    spawn_blocking(work).await.map_err(|error| {
        let text = format!("the answer cannot be made: {error}");
        Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

#[cfg(test)]
mod tests;
