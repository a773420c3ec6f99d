//! What is odd about the configuration and the rules in force, but taken. The same is said by `check`, in the log
//! when it is loaded, and here for as long as it is in force.

use serde::{Deserialize, Serialize};
use tidegate_abi::signal::SignalId;

use crate::control::Snapshot;
use crate::host::AgentState;
use crate::host::tenants::NamedTenant;
use crate::rule::{Body, Rule};
use crate::schema::fault::Fault;

/// Warnings that are listed; the rest is only counted.
const LISTED_MAX: usize = 100;

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WarningReport {
    /// Whose rules it is about; empty for the configuration.
    pub tenant: String,
    /// What is odd.
    #[serde(flatten)]
    pub fault: Fault,
    /// The same in words.
    pub text: String,
}

impl WarningReport {
    /// One about the rules of a tenant.
    pub fn of(named: &NamedTenant, fault: &Fault) -> Self {
        Self::new(&named.name, fault.clone())
    }

    fn new(tenant: &str, fault: Fault) -> Self {
        Self {
            tenant: tenant.to_owned(),
            text: fault.to_string(),
            fault,
        }
    }
}

/// All of them, up to a bound.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WarningsReport {
    /// The first ones.
    pub list: Vec<WarningReport>,
    /// Those over the bound.
    pub left_out: usize,
}

impl WarningsReport {
    /// Those of these tenants; of the configuration for who sees the default tenant.
    pub(super) fn of(context: &AgentState, tenants: &[NamedTenant], snapshot: &Snapshot) -> Self {
        let mut all = Self::default();
        let default = &context.tenants.default_one().tenant;
        if tenants
            .iter()
            .any(|named| std::sync::Arc::ptr_eq(&named.tenant, default))
        {
            for fault in context.warnings.get() {
                all.add(WarningReport::new("", fault));
            }
        }
        for named in tenants {
            let limits = named.tenant.directory().rule_index();
            let set = limits.rules();
            for fault in set.warnings() {
                all.add(WarningReport::of(named, fault));
            }
            for fault in set
                .rules()
                .iter()
                .flat_map(|rule| unmeasured(rule, snapshot))
            {
                all.add(WarningReport::of(named, &fault));
            }
        }
        all
    }

    fn add(&mut self, warning: WarningReport) {
        // Tenants that share a directory share what is odd about it.
        if self.list.iter().any(|known| known.text == warning.text) {
            return;
        }
        if self.list.len() < LISTED_MAX {
            self.list.push(warning);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }
}

/// Marks of a system rule that nothing can be held against, since the host does not tell the value.
fn unmeasured(rule: &Rule, snapshot: &Snapshot) -> Vec<Fault> {
    let (Body::System(system), None, Some(host)) =
        (&rule.body, rule.rest(), snapshot.scopes.first())
    else {
        return Vec::new();
    };
    let marks = [
        ("load", system.load.is_some(), SignalId::Load1),
        ("cpu", system.cpu.is_some(), SignalId::Cpu),
    ];
    let why = |signal| host.readings.get(signal).get().err();
    let set = marks.into_iter().filter(|(_name, set, _signal)| *set);
    set.filter_map(|(name, _set, signal)| {
        let hint = "the mark holds nobody while its value is not measured";
        let value = format!("not measured: {}", why(signal)?);
        let option = format!("{}.{name}", rule.path);
        Some(Fault::at(
            rule.place.clone(),
            option,
            value,
            "a value that the host tells",
            hint,
        ))
    })
    .collect()
}
