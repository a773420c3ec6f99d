//! Requests in flight on pages of an earlier life of the agent that this life does not go on with.
//!
//! Where nobody could hand the ledger back in time, or its sizes are other ones, windows and breakers begin anew on new
//! pages. What services have in flight does not: they give it back where they took it. So the agent maps the earlier
//! pages as well, once one of the services shows them, looks again and again at what each living process holds there,
//! and counts as much in its own seat. What it reads may have been written by anybody of the tenant. So a board is
//! believed only if the agent's own user made it, whoever shows it has to sit there, and counts, pages and looks are
//! bounded: who lies takes places from its own tenant, which it could anyway.

mod count;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use tidegate_segment::board::Process;
use tidegate_segment::os::memfd::{self, FileId};
use tidegate_segment::sync::{Ordering, Word};

use super::Tenant;
use super::seats::Seat;
use count::{CountedPages, MappedPages};

/// How long after a look the next one comes, at least.
const LOOK_AFTER: Duration = Duration::from_millis(100);
/// A look may take one part in this many of the time.
const LOOK_SHARE: u32 = 20;
/// Pages on which nothing was in flight for so long are looked at no more.
const EMPTY_FOR: Duration = Duration::from_mins(1);
/// Most ledgers that are counted at a time.
const LEDGERS_MAX: usize = 8;
/// Most of them in the life of an agent: their addresses are not given back.
const LEDGERS_EVER: usize = 64;

/// Why pages that were handed back are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCounted {
    /// The kernel does not say what they are.
    #[error("the kernel does not tell what was handed back: {0}")]
    Unknown(Errno),
    /// Somebody else made them.
    #[error("user {maker} made what was handed back, and not the agent's own")]
    Forged {
        /// Who.
        maker: u32,
    },
    /// They are not sealed, or their header is another one.
    #[error("what was handed back is no pair of pages")]
    NoPages,
    /// The process does not sit there.
    #[error("the process has no seat on the pages that it handed back")]
    Stranger,
    /// There are as many as may be.
    #[error(
        "{LEDGERS_MAX} ledgers of earlier lives are counted already, or {LEDGERS_EVER} have been"
    )]
    Many,
}

impl NotCounted {
    /// The words of all kinds in metrics, in their order.
    pub const NAMES: [&str; 5] = ["unknown", "forged", "no_pages", "stranger", "many"];

    const fn place(self) -> usize {
        match self {
            Self::Unknown(_) => 0,
            Self::Forged { .. } => 1,
            Self::NoPages => 2,
            Self::Stranger => 3,
            Self::Many => 4,
        }
    }
}

/// What is in flight on earlier pages, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InFlight {
    /// Living processes that have a seat there.
    pub services: usize,
    /// Requests.
    pub requests: u64,
}

/// The earlier pages of a tenant.
#[derive(Debug, Default)]
pub struct EarlierPages {
    pages: Mutex<Pages>,
    refused: [Count; NotCounted::NAMES.len()],
}

#[derive(Debug)]
struct Count(Word);

impl Default for Count {
    fn default() -> Self {
        Self(Word::new(0))
    }
}

#[derive(Debug, Default)]
struct Pages {
    counted: Vec<CountedPages>,
    ever: usize,
    is_watched: bool,
}

/// What a process hands back that sat on pages of an earlier life.
#[derive(Debug)]
pub struct HandedBack<'f> {
    /// Board and ledger.
    pub files: &'f [OwnedFd; 2],
    /// Who says so, as the kernel knows it.
    pub process: Process,
    /// The seat that it says it has; none where that is not known yet.
    pub seat: Option<Seat>,
}

impl EarlierPages {
    /// What is in flight there.
    pub fn in_flight(&self) -> InFlight {
        let pages = self.pages.lock();
        let add = |sum: InFlight, counted: &CountedPages| InFlight {
            services: sum.services.saturating_add(counted.services()),
            requests: sum.requests.saturating_add(counted.requests()),
        };
        pages.counted.iter().fold(InFlight::default(), add)
    }

    /// Pages that were handed back and are not counted, by why.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        // Relaxed: numbers for people.
        let counts = self
            .refused
            .iter()
            .map(|Count(count)| count.load(Ordering::Relaxed));
        NotCounted::NAMES.into_iter().zip(counts)
    }

    fn refuse(&self, why: NotCounted) {
        if let Some(Count(count)) = self.refused.get(why.place()) {
            count.count(1);
        }
    }
}

impl Pages {
    /// Makes room for what was handed back; `false` if it is counted already.
    fn make_room(&mut self, files: [FileId; 2]) -> Result<bool, NotCounted> {
        if self.counted.iter().any(|counted| counted.files == files) {
            return Ok(false);
        }
        if self.counted.len() >= LEDGERS_MAX || self.ever >= LEDGERS_EVER {
            return Err(NotCounted::Many);
        }
        Ok(true)
    }

    /// Counts more pages. Of two boards on one ledger the later one knows who sits there.
    fn add(&mut self, tenant: &Tenant, mut more: CountedPages) {
        let [_board, ledger] = more.files;
        let same = |counted: &CountedPages| counted.files.last() == Some(&ledger);
        if let Some(place) = self.counted.iter().position(same) {
            let other = self.counted.swap_remove(place);
            let (kept, gone) = if other.is_later_than(&more) {
                (other, more)
            } else {
                (more, other)
            };
            gone.end(tenant);
            more = kept;
        } else {
            self.ever = self.ever.saturating_add(1);
        }
        more.look(tenant);
        self.counted.push(more);
    }

    /// Looks at all of them; `false` if none is left.
    fn look(&mut self, tenant: &Tenant) -> bool {
        for counted in &mut self.counted {
            counted.look(tenant);
        }
        let over =
            |counted: &mut CountedPages| counted.services() == 0 || counted.is_empty_for(EMPTY_FOR);
        for counted in self.counted.extract_if(.., over) {
            counted.end(tenant);
        }
        self.is_watched = !self.counted.is_empty();
        self.is_watched
    }
}

impl Tenant {
    /// Counts what living processes have in flight on pages of an earlier life, from now on until they have given it
    /// back or end. To be called within the runtime; `None` if the pages are those in force, or are counted already.
    ///
    /// # Errors
    /// Why they are not counted; that is counted itself, and told.
    pub fn count_earlier(
        self: &Arc<Self>,
        back: &HandedBack<'_>,
    ) -> Result<Option<InFlight>, NotCounted> {
        let counted = self.count_offered(back);
        if let Err(why) = counted {
            self.earlier().refuse(why);
            let Process { pid, uid, .. } = back.process;
            tracing::warn!(event = "pages_refused", pid, uid, %why, "pages that were handed back are not taken");
        }
        counted
    }

    /// The same before anybody is served, without a word of what is refused: whoever brought it is asked once more.
    ///
    /// # Errors
    /// Why they are not counted.
    pub fn count_offered(
        self: &Arc<Self>,
        back: &HandedBack<'_>,
    ) -> Result<Option<InFlight>, NotCounted> {
        let [board, ledger] = back.files.each_ref().map(memfd::identify);
        let files = [
            board.map_err(NotCounted::Unknown)?,
            ledger.map_err(NotCounted::Unknown)?,
        ];
        if files.last() == Some(&self.names().ledger) {
            return Ok(None);
        }
        let mut pages = self.earlier().pages.lock();
        if !pages.make_room(files)? {
            return Ok(None);
        }
        let mapped = MappedPages::prove(back)?;
        let counted = CountedPages::new(files, mapped, back.process.uid);
        pages.add(self, counted);
        let starts = !std::mem::replace(&mut pages.is_watched, true);
        drop(pages);
        if starts {
            tokio::spawn(watch(Arc::clone(self)));
        }
        let found = self.earlier().in_flight();
        tracing::warn!(
            event = "pages_counted",
            pid = back.process.pid,
            services = found.services,
            in_flight = found.requests,
            "pages of an earlier life, on which this one does not go on: what its services have in flight there counts \
             until they give it back or end; windows and breakers began at zero, so at most one window more is admitted"
        );
        Ok(Some(found))
    }
}

/// Looks until there is nothing more to look at.
async fn watch(tenant: Arc<Tenant>) {
    let mut pause = LOOK_AFTER;
    loop {
        tokio::time::sleep(pause).await;
        let own = Arc::clone(&tenant);
        let looked = tokio::task::spawn_blocking(move || {
            let begin = Instant::now();
            let goes_on = own.earlier().pages.lock().look(&own);
            (goes_on, begin.elapsed())
        });
        match looked.await {
            Ok((true, took)) => pause = LOOK_AFTER.max(took.saturating_mul(LOOK_SHARE)),
            Ok((false, _)) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests;
