//! Takes back the pages of the agent's last life from the services that still map them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::Process;

use crate::door::Doors;
use crate::door::offer::Offer;
use crate::tenant::kept::KEPT_FOR;
use crate::tenant::left::{Left, NotTaken, Proved};
use crate::tenant::seat_life;
use crate::tenant::take_up::LivingSeat;
use crate::tenant::{CreateError, Settings, TakenUp, Tenant};

/// How long services of the last life are waited for, whatever they do. One that finds nobody listening tries again
/// after 400 ms at most.
const GATHER_WITHIN: Duration = Duration::from_millis(1500);

/// The pages of all tenants that may be handed back.
#[derive(Debug, Default)]
pub(super) struct Taking {
    wanted: Vec<Wanted>,
}

/// The pages of one tenant.
#[derive(Debug)]
struct Wanted {
    tenant: Arc<str>,
    left: Left,
    /// Processes that live and had a seat, once for each seat, and have not come yet.
    awaited: Vec<Process>,
    /// The newest pages that were handed back.
    found: Option<Proved>,
}

impl Taking {
    /// Waits for the pages of those tenants whose services live.
    pub(super) async fn back(
        doors: &mut Doors,
        directory: &Path,
        tenants: impl Iterator<Item = Arc<str>>,
        geometry: Geometry,
    ) -> Self {
        let wanted = tenants.filter_map(|tenant| Wanted::of(directory, tenant, geometry));
        let mut taking = Self {
            wanted: wanted.collect(),
        };
        if !taking.is_done() {
            doors
                .gather(GATHER_WITHIN, |offer| {
                    taking.look(&offer);
                    taking.is_done()
                })
                .await;
        }
        taking
    }

    fn is_done(&self) -> bool {
        self.wanted.iter().all(Wanted::is_done)
    }

    /// Looks at what a service hands back, if it does.
    fn look(&mut self, offer: &Offer) {
        let pid = offer.peer.pid;
        let Some(files) = &offer.files else {
            self.wanted.iter_mut().for_each(|wanted| wanted.came(pid));
            return;
        };
        let [board, ledger] = &**files;
        let mut why = NotTaken::Foreign;
        for wanted in &mut self.wanted {
            match wanted.left.prove(board, ledger) {
                Ok(proved) => {
                    wanted.came(pid);
                    wanted.find(proved);
                    return;
                }
                Err(NotTaken::Foreign) => {}
                Err(other) => why = other,
            }
        }
        tracing::warn!(event = "pages_refused", pid, uid = offer.peer.uid, why = %why, "pages that were handed back are not taken");
    }

    /// The pages of a tenant, with what its last life has left.
    pub(super) fn take(&mut self, tenant: &str) -> Option<(Left, Proved)> {
        let place = self
            .wanted
            .iter()
            .position(|wanted| &*wanted.tenant == tenant)?;
        let Wanted {
            left,
            found,
            awaited,
            ..
        } = self.wanted.swap_remove(place);
        if found.is_none() && !awaited.is_empty() {
            tracing::warn!(
                event = "pages_begun_anew",
                tenant,
                services = awaited.len(),
                "no service handed the pages of the last run back: windows and breakers begin at zero, and what its \
                 services have in flight does not count"
            );
        }
        found.map(|proved| (left, proved))
    }
}

impl Wanted {
    fn of(directory: &Path, tenant: Arc<str>, geometry: Geometry) -> Option<Self> {
        let left = Left::read(directory, &tenant, geometry)?;
        let seats = left.seats.iter().filter(|seat| seat.word.live);
        let own = std::process::id();
        let others = seats.filter(|seat| seat.index != crate::tenant::AGENT_SEAT);
        let living = others
            .filter(|seat| seat.process.pid != own && seat_life::alive(&seat.process).is_some());
        Some(Self {
            tenant,
            awaited: living.map(|seat| seat.process).collect(),
            left,
            found: None,
        })
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

    fn find(&mut self, proved: Proved) {
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
    settings: &Settings,
    back: Option<(Left, Proved)>,
) -> Result<Box<TakenUp>, CreateError> {
    if let Some((left, proved)) = back {
        match Tenant::take_up(settings, &left, &proved) {
            Ok(taken) => {
                tracing::info!(
                    event = "pages_taken_up",
                    tenant,
                    services = taken.living.len(),
                    "the pages of the last run are taken up: windows, breakers and requests in flight go on"
                );
                return Ok(taken);
            }
            Err(error) => tracing::warn!(
                event = "pages_begun_anew",
                tenant,
                %error,
                "the pages of the last run cannot be taken up: windows, breakers and requests in flight begin at zero"
            ),
        }
    }
    TakenUp::new(settings)
}

/// Keeps the seats of those who live until they come for them, for a while.
pub(super) fn keep(tenant: &Arc<Tenant>, living: Vec<LivingSeat>) {
    if living.is_empty() {
        return;
    }
    for ((seat, process), pidfd) in living {
        if let Err(error) = seat_life::keep(tenant, (seat, process), pidfd) {
            tracing::warn!(event = "seat_ended", pid = process.pid, %error, "a service of the last run cannot be watched: its seat ends");
            tenant.seats().revoke(seat);
        }
    }
    let tenant = Arc::clone(tenant);
    tokio::spawn(async move {
        tokio::time::sleep(KEPT_FOR).await;
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
