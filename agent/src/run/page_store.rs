//! The service manager keeps the pages of each tenant while the agent is away (`FileDescriptorStoreMax=`): their memory
//! lives on where no service maps them, and a start need not wait for one that does.
//!
//! What comes back is believed as little as what services hand back, and is proved by the same code
//! ([`crate::tenant::left::Left::prove`]).

use std::os::fd::{AsFd as _, OwnedFd};

use sd_notify::NotifyState;
use tidegate_abi::board::name_hash;

use crate::host::tenants::{NamedTenant, Tenants};

/// What a name of a descriptor begins with, by what it is of.
const BOARD: &str = "board-";
const LEDGER: &str = "ledger-";

/// What was kept over the last life, and under which names.
#[derive(Debug, Default)]
pub(super) struct PageStore {
    names: Vec<String>,
    boards: Vec<(u64, OwnedFd)>,
    ledgers: Vec<(u64, OwnedFd)>,
}

impl PageStore {
    /// Takes what was handed over at the start. What has no name that the agent gives is closed, and told.
    pub(super) fn of(handed_over: Vec<(String, OwnedFd)>) -> Self {
        let mut store = Self::default();
        for (name, file) in handed_over {
            if let Some(tenant) = tenant_in(&name, BOARD) {
                store.boards.push((tenant, file));
            } else if let Some(tenant) = tenant_in(&name, LEDGER) {
                store.ledgers.push((tenant, file));
            } else {
                tracing::warn!(
                    event = "handed_over_foreign",
                    name,
                    "a descriptor that the agent does not know was handed over; it is closed"
                );
            }
            store.names.push(name);
        }
        store
    }

    /// Whether something was kept of a tenant.
    pub(super) fn has(&self, tenant: &str) -> bool {
        let hash = name_hash(tenant.as_bytes());
        let mut all = self.boards.iter().chain(&self.ledgers);
        all.any(|(of, _file)| *of == hash)
    }

    /// Every board of a tenant with every ledger of it: one of each, unless the agent was ended while it stored its own.
    pub(super) fn pairs(&self, tenant: &str) -> impl Iterator<Item = (&OwnedFd, &OwnedFd)> {
        let hash = name_hash(tenant.as_bytes());
        let of = move |(tenant, _file): &&(u64, OwnedFd)| *tenant == hash;
        let boards = self.boards.iter().filter(of);
        boards.flat_map(move |(_tenant, board)| {
            let ledgers = self.ledgers.iter().filter(of);
            ledgers.map(move |(_tenant, ledger)| (board, ledger))
        })
    }

    /// Lets the service manager keep the pages of this life, and then no longer those before.
    pub(super) fn keep(self, tenants: &Tenants) {
        let mut kept = Vec::new();
        for NamedTenant { name, tenant } in tenants.iter() {
            let (files, names) = (tenant.files(), tenant.names());
            let Some(board) = names.boards.first() else {
                continue;
            };
            let hash = name_hash(name.as_bytes());
            // A file that is kept already keeps the name that it has, so a ledger has the same one in each life.
            let board = format!("{BOARD}{hash:016x}-{:016x}", board.generation);
            let ledger = format!("{LEDGER}{hash:016x}-{:016x}", names.ledger.inode);
            for (called, file) in [(board, &files.board), (ledger, &files.ledger)] {
                let states = [
                    NotifyState::FdStore,
                    NotifyState::FdName(&called),
                    // Memory files have no end that could be waited for.
                    NotifyState::Custom("FDPOLL=0"),
                ];
                if let Err(error) = sd_notify::notify_with_fds(&states, &[file.as_fd()]) {
                    tracing::warn!(event = "pages_not_stored", tenant = &**name, %error, "the service manager does not keep the pages: a restart takes them from services alone");
                }
                kept.push(called);
            }
        }
        self.names
            .iter()
            .filter(|name| !kept.contains(name))
            .for_each(|name| forget(name));
    }
}

/// Lets the service manager close what it keeps under a name.
fn forget(name: &str) {
    let states = [NotifyState::FdStoreRemove, NotifyState::FdName(name)];
    if let Err(error) = sd_notify::notify(&states) {
        tracing::warn!(event = "service_manager_failed", %error, "systemd could not be told {states:?}");
    }
}

/// The hash of the tenant in a name of this kind.
fn tenant_in(name: &str, kind: &str) -> Option<u64> {
    let (tenant, number) = name.strip_prefix(kind)?.split_once('-')?;
    u64::from_str_radix(number, 16).ok()?;
    u64::from_str_radix(tenant, 16).ok()
}
