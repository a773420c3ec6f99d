//! Which tenant a process belongs to.
//!
//! A process belongs to the first configured tenant whose conditions it meets, all of them, and to the
//! default one if it meets none. Each tenant has pages of its own: a process is sent those of its own
//! tenant and cannot name another's, so it can neither see nor touch what others do.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::peer::Peer;
use crate::config::{self, DEFAULT_TENANT};
use crate::procfs::{GroupFinder, GroupPattern, PatternFault, Roots};
use crate::tenant::{Tenant, seat_life};

/// Who belongs to a tenant: all that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// User.
    pub uid: Option<u32>,
    /// Primary group.
    pub gid: Option<u32>,
    /// Control group: one that fits, or one below it.
    pub group: Option<GroupPattern>,
}

impl Conditions {
    /// The conditions of a tenant of the configuration.
    ///
    /// # Errors
    /// Its cgroup is no path; the checks of the options let none through.
    pub fn of(tenant: &config::TenantOptions) -> Result<Self, PatternFault> {
        let group = tenant.cgroup.as_deref().map(GroupPattern::new);
        Ok(Self {
            uid: tenant.uid,
            gid: tenant.gid,
            group: group.transpose()?,
        })
    }

    fn hold(&self, peer: Peer, group: Option<&Path>) -> bool {
        self.uid.is_none_or(|uid| uid == peer.uid)
            && self.gid.is_none_or(|gid| gid == peer.gid)
            && self
                .group
                .as_ref()
                .is_none_or(|own| group.is_some_and(|group| own.holds(group)))
    }
}

/// A tenant and what it is called.
#[derive(Debug, Clone)]
pub struct NamedTenant {
    /// Its name in status and metrics.
    pub name: Arc<str>,
    /// Its pages and all around them.
    pub tenant: Arc<Tenant>,
}

impl NamedTenant {
    /// A tenant under a name.
    pub fn new(name: &str, tenant: Arc<Tenant>) -> Self {
        Self {
            name: name.into(),
            tenant,
        }
    }

    /// Whether it is the one of all who belong to no other.
    pub fn is_default(&self) -> bool {
        &*self.name == DEFAULT_TENANT
    }
}

/// All tenants.
#[derive(Debug)]
pub struct Tenants {
    /// The default one first.
    all: Vec<NamedTenant>,
    /// Those of the others, in their order.
    conditions: Vec<Conditions>,
    /// Set only where a tenant asks for a control group.
    groups: Option<GroupFinder>,
    /// The agent's own user.
    own_uid: u32,
}

impl Tenants {
    /// The default tenant alone.
    pub fn one(tenant: Arc<Tenant>) -> Self {
        Self {
            all: vec![NamedTenant::new(DEFAULT_TENANT, tenant)],
            conditions: Vec::new(),
            groups: None,
            own_uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// Adds a tenant behind those that are there. `roots` is where control groups are looked for.
    pub fn add(&mut self, named: NamedTenant, conditions: Conditions, roots: &Roots) {
        if conditions.group.is_some() && self.groups.is_none() {
            self.groups = Some(GroupFinder::new(roots.clone()));
        }
        self.all.push(named);
        self.conditions.push(conditions);
    }

    /// The tenant of all who belong to no other.
    ///
    /// # Panics
    /// Never: the first tenant is put in when this is made.
    #[expect(
        clippy::expect_used,
        reason = "`one` puts it in, and nothing is taken out"
    )]
    pub fn default_one(&self) -> &NamedTenant {
        self.all.first().expect("the default tenant is there")
    }

    /// All of them, the default one first.
    pub fn iter(&self) -> impl Iterator<Item = &NamedTenant> {
        self.all.iter()
    }

    /// The tenant of a process that connected. `pidfd` is the peer's as the socket knows it, where the
    /// kernel tells.
    pub fn of(&self, peer: Peer, pidfd: Option<&OwnedFd>) -> &NamedTenant {
        let group = self.groups.as_ref();
        let group = group.and_then(|groups| group_of(groups, peer, pidfd));
        let others = self.all.iter().skip(1).zip(&self.conditions);
        let mut fitting = others.filter(|(_named, own)| own.hold(peer, group.as_deref()));
        fitting
            .next()
            .map_or_else(|| self.default_one(), |(named, _own)| named)
    }

    /// Whether a user sees all tenants: root and the agent's own user, who could read the agent's files
    /// and memory anyway. Others see their own tenant.
    pub const fn shows_all_to(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own_uid
    }
}

/// The control group of a peer. None where it cannot be told for sure: its pid is out of sight, or
/// may be another's by now, since the process that connected has ended.
fn group_of(groups: &GroupFinder, peer: Peer, pidfd: Option<&OwnedFd>) -> Option<PathBuf> {
    if peer.pid == 0 {
        return None;
    }
    let group = groups.of_process(peer.pid)?;
    let same = match pidfd {
        Some(pidfd) => seat_life::lives(pidfd),
        // Before Linux 6.5: at least the user must be the same.
        None => groups.user_of(peer.pid) == Some(peer.uid),
    };
    same.then_some(group)
}

#[cfg(test)]
mod tests {
    use tidegate_abi::geometry::Geometry;

    use super::*;
    use crate::tenant::tests::tenant;

    fn pages() -> Arc<Tenant> {
        Arc::new(tenant(Geometry::new(8, 2, 2, 2).unwrap()))
    }

    fn tenants(conditions: &[(&str, Conditions)], roots: &Roots) -> Tenants {
        let mut tenants = Tenants::one(pages());
        for (name, own) in conditions {
            tenants.add(NamedTenant::new(name, pages()), own.clone(), roots);
        }
        tenants
    }

    fn peer(uid: u32, gid: u32) -> Peer {
        Peer { pid: 7, uid, gid }
    }

    #[test]
    fn a_process_belongs_to_the_first_tenant_whose_conditions_all_hold() {
        let both = Conditions {
            uid: Some(1),
            gid: Some(2),
            group: None,
        };
        let group = Conditions {
            gid: Some(2),
            ..Conditions::default()
        };
        let tenants = tenants(&[("both", both), ("group", group)], &Roots::default());
        for (uid, gid, name) in [
            (1, 2, "both"),
            (3, 2, "group"),
            (1, 3, DEFAULT_TENANT),
            (0, 0, DEFAULT_TENANT),
        ] {
            assert_eq!(&*tenants.of(peer(uid, gid), None).name, name, "{uid}:{gid}");
        }
        assert!(tenants.default_one().is_default());
        assert_eq!(tenants.iter().count(), 3);
    }

    #[test]
    fn a_control_group_counts_with_all_below_it_and_only_for_the_same_user() {
        let files = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: files.path().join("proc"),
            cgroup: files.path().join("cgroup"),
        };
        std::fs::create_dir_all(roots.cgroup.join("cpu/shop/1/deep")).unwrap();
        let own = roots.proc.join("7");
        std::fs::create_dir_all(&own).unwrap();
        let status = "Name:\tshop\nUid:\t1\t1000\t3\t4\n";
        let uid = 1000;
        let shop = Conditions {
            group: Some(GroupPattern::new("/shop/?").unwrap()),
            ..Conditions::default()
        };
        let tenants = tenants(&[("shop", shop)], &roots);
        for (group, uid, name) in [
            ("/shop/1", uid, "shop"),
            ("/shop/1/deep", uid, "shop"),
            ("/shop", uid, DEFAULT_TENANT),
            ("/shop/12", uid, DEFAULT_TENANT),
            ("/shop/1", uid + 1, DEFAULT_TENANT),
        ] {
            std::fs::write(own.join("cgroup"), format!("1:cpu:{group}\n")).unwrap();
            std::fs::write(own.join("status"), status).unwrap();
            assert_eq!(&*tenants.of(peer(uid, 0), None).name, name, "{group} {uid}");
        }
        let unseen = Peer {
            pid: 0,
            ..peer(uid, 0)
        };
        assert!(tenants.of(unseen, None).is_default());
    }

    #[test]
    fn the_group_of_a_process_that_has_ended_is_not_believed() {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        assert!(!seat_life::lives(&pidfd));
        let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap();
        assert!(seat_life::lives(&own));
    }

    #[test]
    fn root_and_the_agents_own_user_see_all() {
        let tenants = tenants(&[], &Roots::default());
        let own = rustix::process::geteuid().as_raw();
        assert!(tenants.shows_all_to(0) && tenants.shows_all_to(own));
        assert!(!tenants.shows_all_to(own + 1));
    }
}
