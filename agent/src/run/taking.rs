//! Takes back the pages of the agent's last life: from the service manager, or from the services that still map them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::Process;

use super::page_store::PageStore;
use crate::door::Doors;
use crate::door::offer::Offer;
use crate::host::tenants::Tenants;
use crate::tenant::kept::{KEPT_FOR, WAITED_FOR};
use crate::tenant::left::{LastLife, LastLifeFound, NotTaken, ProvedPages};
use crate::tenant::past_life::HandedBack;
use crate::tenant::seat_life;
use crate::tenant::take_up::LivingSeat;
use crate::tenant::{CreateError, HOST, PagesOrigin, TakenUp, Tenant, TenantSettings};

/// How long services of the last life are waited for, whatever they do. One that finds nobody listening tries again
/// after 400 ms at most.
const GATHER_WITHIN: Duration = Duration::from_millis(1500);

/// How long they are waited for where the last life left its sockets and nothing else, so that nobody knows who they
/// are: longer than the longest pause of those who hold pages.
const UNKNOWN_WITHIN: Duration = Duration::from_millis(600);

/// Most offers of pages that are kept to be counted.
const OTHERS_MAX: usize = 64;

/// What the last life left behind, beside its records.
#[derive(Debug)]
pub(super) struct LeftBehind {
    /// Whether it ended without taking its sockets away.
    pub(super) sockets: bool,
    /// Pages that the service manager kept.
    pub(super) store: PageStore,
}

/// The pages of all tenants that may be handed back.
#[derive(Debug, Default)]
pub(super) struct Taking {
    wanted: Vec<Wanted>,
    /// Tenants whose pages the service manager kept and that have no record of them.
    unrecorded: Vec<Arc<str>>,
    /// Whether a life before has left its sockets, and no record of its pages.
    is_unknown: bool,
    /// What was handed back and is not taken up.
    others: Vec<Offer>,
}

/// The pages of one tenant.
#[derive(Debug)]
struct Wanted {
    tenant: Arc<str>,
    /// What proves them; none where they have other sizes.
    left: Option<LastLife>,
    /// Processes that live and had a seat, once for each seat, and have not come yet.
    awaited: Vec<Process>,
    /// Whether there were any.
    lived: bool,
    /// The newest pages that were handed back.
    found: Option<ProvedPages>,
}

impl Taking {
    /// Takes what the service manager kept, and waits for the pages of the other tenants whose services live.
    pub(super) async fn back(
        doors: &mut Doors,
        (directory, left_behind): (&Path, &LeftBehind),
        tenants: impl Iterator<Item = Arc<str>>,
        geometry: Geometry,
    ) -> Self {
        let mut taking = Self::default();
        for tenant in tenants {
            match LastLife::read(directory, &tenant, geometry) {
                LastLifeFound::Usable(left) => {
                    let awaited = awaited(&left);
                    taking.wanted.push(Wanted::of(tenant, awaited, Some(left)));
                }
                LastLifeFound::OtherSizes(left) => {
                    let wanted = Wanted::of(tenant, awaited(&left), None);
                    taking.wanted.push(wanted);
                }
                LastLifeFound::Unknown if left_behind.store.has(&tenant) => {
                    tracing::warn!(
                        event = "pages_begun_anew",
                        tenant = &*tenant,
                        "the service manager kept pages of which there is no record: windows and breakers begin at zero"
                    );
                    taking.is_unknown = true;
                    taking.unrecorded.push(tenant);
                }
                LastLifeFound::Unknown => taking.is_unknown |= left_behind.sockets,
            }
        }
        taking.look_at_stored(&left_behind.store);
        if !taking.is_done() {
            let within = if taking.wanted.iter().all(Wanted::is_done) {
                UNKNOWN_WITHIN
            } else {
                GATHER_WITHIN
            };
            doors
                .gather(within, |offer| {
                    taking.look(offer);
                    taking.is_done()
                })
                .await;
        }
        taking
    }

    /// Where it is not known who may come, nobody can be the last one.
    fn is_done(&self) -> bool {
        !self.is_unknown && self.wanted.iter().all(Wanted::is_done)
    }

    /// Looks at what the service manager kept; it is proved as what services hand back.
    fn look_at_stored(&mut self, store: &PageStore) {
        for wanted in &mut self.wanted {
            wanted.lived |= store.has(&wanted.tenant);
            let Some(left) = &wanted.left else { continue };
            let pairs = store.pairs(&wanted.tenant);
            let looked: Vec<_> = pairs
                .map(|(board, ledger)| left.prove(board, ledger))
                .collect();
            let (proved, refused): (Vec<_>, Vec<_>) = looked.into_iter().partition(Result::is_ok);
            proved
                .into_iter()
                .flatten()
                .for_each(|proved| wanted.find(proved));
            // One pair of several may be that of an earlier life.
            if wanted.found.is_none()
                && let Some(why) = refused.into_iter().find_map(Result::err)
            {
                tracing::warn!(event = "stored_pages_refused", tenant = &*wanted.tenant, %why, "the pages that the service manager kept are not taken");
            }
        }
    }

    /// Looks at what a service hands back, if it does.
    fn look(&mut self, offer: Offer) {
        let pid = offer.peer.pid;
        let Some(files) = &offer.files else {
            self.wanted.iter_mut().for_each(|wanted| wanted.came(pid));
            return;
        };
        let [board, ledger] = &**files;
        for wanted in &mut self.wanted {
            let Some(left) = &wanted.left else {
                wanted.came(pid);
                continue;
            };
            match left.prove(board, ledger) {
                Ok(proved) => {
                    wanted.came(pid);
                    wanted.find(proved);
                    return;
                }
                Err(NotTaken::Foreign) => {}
                Err(why) => {
                    tracing::debug!(event = "pages_refused", pid, %why, "what was handed back is not what it seems");
                }
            }
        }
        if self.others.len() < OTHERS_MAX {
            self.others.push(offer);
        }
    }

    /// The pages of a tenant, with what its last life has left, and how it begins.
    fn take(&mut self, tenant: &str) -> (Option<(LastLife, ProvedPages)>, PagesOrigin) {
        let place = self
            .wanted
            .iter()
            .position(|wanted| &*wanted.tenant == tenant);
        let Some(place) = place else {
            let was_kept = self.unrecorded.iter().any(|of| &**of == tenant);
            let anew = was_kept || (self.is_unknown && !self.others.is_empty());
            return (
                None,
                if anew {
                    PagesOrigin::Anew
                } else {
                    PagesOrigin::New
                },
            );
        };
        let Wanted {
            left,
            found,
            awaited,
            lived,
            ..
        } = self.wanted.swap_remove(place);
        match (left, found) {
            (Some(left), Some(proved)) => (Some((left, proved)), PagesOrigin::TakenUp),
            (left, _none) if lived => {
                if left.is_some() && !awaited.is_empty() {
                    tracing::warn!(
                        event = "pages_begun_anew",
                        tenant,
                        services = awaited.len(),
                        "no service handed the pages of the last run back in time: windows and breakers begin at zero, and \
                         what its services have in flight does not count before one of them comes"
                    );
                }
                (None, PagesOrigin::Anew)
            }
            _none => (None, PagesOrigin::New),
        }
    }

    /// Lets count what services have in flight on pages that were handed back and are not gone on with. To be called
    /// with the rules in force, before anybody is served.
    pub(super) fn count_others(self, tenants: &Tenants) {
        for Offer { peer, files } in self.others {
            let Some(files) = files else { continue };
            let tenant = &tenants.of(peer, None).tenant;
            let back = HandedBack {
                files: &files,
                process: Process {
                    pid: peer.pid,
                    start: seat_life::start_time(peer.pid).unwrap_or(0),
                    uid: peer.uid,
                    scope: HOST,
                },
                seat: None,
            };
            // What is refused is told when the one who brought it is served.
            let _refused: Result<_, _> = tenant.count_offered(&back);
        }
    }
}

/// Processes that live and had a seat, once for each seat.
fn awaited(left: &LastLife) -> Vec<Process> {
    let seats = left.seats.iter().filter(|seat| seat.word.live);
    let own = std::process::id();
    let others = seats.filter(|seat| seat.index != crate::tenant::AGENT_SEAT);
    let living =
        others.filter(|seat| seat.process.pid != own && seat_life::alive(&seat.process).is_some());
    living.map(|seat| seat.process).collect()
}

impl Wanted {
    fn of(tenant: Arc<str>, awaited: Vec<Process>, left: Option<LastLife>) -> Self {
        Self {
            tenant,
            left,
            lived: !awaited.is_empty(),
            awaited,
            found: None,
        }
    }

    fn is_done(&self) -> bool {
        let newest = self.found.as_ref().is_some_and(|found| found.place == 0);
        newest || self.awaited.is_empty()
    }

    /// A service has come, with its pages or without.
    fn came(&mut self, pid: u32) {
        let place = self.awaited.iter().position(|process| process.pid == pid);
        if let Some(place) = place {
            self.awaited.swap_remove(place);
        }
    }

    fn find(&mut self, proved: ProvedPages) {
        let older = match self.found.take() {
            Some(found) if found.place <= proved.place => {
                self.found = Some(found);
                Some(proved)
            }
            found => {
                self.found = Some(proved);
                found
            }
        };
        if let Some(older) = older {
            older.retire();
        }
    }
}

/// Makes the pages of a tenant: those that were handed back go on, otherwise they are new.
pub(super) fn begin(
    tenant: &str,
    settings: &TenantSettings,
    taking: &mut Taking,
) -> Result<Box<TakenUp>, CreateError> {
    let (back, mut begun) = taking.take(tenant);
    if let Some((left, proved)) = back {
        match Tenant::take_up(settings, &left, &proved) {
            Ok(taken) => {
                taken.tenant.has_begun(begun);
                tracing::info!(
                    event = "pages_taken_up",
                    tenant,
                    services = taken.living.len(),
                    "the pages of the last run are taken up: windows, breakers and requests in flight go on"
                );
                return Ok(taken);
            }
            Err(error) => {
                begun = PagesOrigin::Anew;
                tracing::warn!(
                    event = "pages_begun_anew",
                    tenant,
                    %error,
                    "the pages of the last run cannot be taken up: windows and breakers begin at zero"
                );
            }
        }
    }
    let taken = TakenUp::new(settings)?;
    taken.tenant.has_begun(begun);
    Ok(taken)
}

/// Keeps the seats of those who live until they come for them, for a while.
pub(super) fn keep(tenant: &Arc<Tenant>, living: Vec<LivingSeat>) {
    if living.is_empty() {
        return;
    }
    for ((seat, process), pidfd) in living {
        if let Err(error) = seat_life::keep(tenant, seat, process, pidfd) {
            tracing::warn!(event = "seat_ended", pid = process.pid, %error, "a service of the last run cannot be watched: its seat ends");
            tenant.seats().revoke(seat);
        }
    }
    let tenant = Arc::clone(tenant);
    tokio::spawn(async move {
        tokio::time::sleep(WAITED_FOR).await;
        let seats = tenant.kept().wait_no_longer();
        if seats > 0 {
            tracing::warn!(
                event = "seats_kept",
                seats,
                "services of the last run live and have not come back: what they have in flight counts for {} s more, \
                 or until they come or end",
                KEPT_FOR.saturating_sub(WAITED_FOR).as_secs()
            );
        }
        tokio::time::sleep(KEPT_FOR.saturating_sub(WAITED_FOR)).await;
        let seats = tenant.kept().give_up();
        if seats > 0 {
            tracing::warn!(
                event = "seats_ended",
                seats,
                "services of the last run are alive and have not come back: what they have in flight no longer counts"
            );
        }
    });
}

#[cfg(test)]
mod tests;
