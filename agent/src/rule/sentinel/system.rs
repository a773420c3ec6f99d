//! System rules in Sentinel's form.

use tidegate_abi::decision::Mode;

use super::code::{ANY, Id, Mark, UpTo, id, millis};
use super::{Foreign, no_callers};
use crate::rule::Amount;
use crate::rule::effect::{Effects, Idle, OptionEffect};
use crate::rule::system::SystemOptions;
use crate::schema::kind::{Maybe, OneOf};
use crate::schema::settings::{Section, settings};

settings! {
    /// The fields of a system rule; negative is not set.
    pub(super) struct SystemFields {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Not used.
        resource: Option<String> = None, Maybe(Id, "");
        /// Not used.
        limit_app as "limitApp": Option<String> = None, Maybe(Id, "");
        /// One-minute load average.
        highest_system_load as "highestSystemLoad": f64 = -1.0, Mark;
        /// Share of the CPUs in use.
        highest_cpu_usage as "highestCpuUsage": f64 = -1.0, Mark;
        /// Passes a second.
        qps: f64 = -1.0, Mark;
        /// Average response time, ms.
        avg_rt as "avgRt": i64 = -1, UpTo(3_600_000);
        /// Requests in flight.
        max_thread as "maxThread": i64 = -1, ANY;
    }
}

/// Those that our form has answer there.
impl Effects for SystemFields {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::new("resource", |_system| {
            let hint = "a system rule is for all inbound work";
            Some(Idle::new("no resource", hint))
        }),
        OptionEffect::new("limitApp", |system| {
            system.limit_app.as_deref().and_then(no_callers)
        }),
    ];
}

impl Foreign for SystemFields {
    type Ours = SystemOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[
        ("load", "highestSystemLoad"),
        ("cpu", "highestCpuUsage"),
        ("avg_rt", "avgRt"),
        ("concurrency", "maxThread"),
    ];
    fn ours(&self, section: &mut Section<'_, '_>) -> SystemOptions {
        let share = self.highest_cpu_usage <= 1.0;
        if !share {
            section.warn(
                "cpu",
                "a number from 0 to 1",
                "over 1 it is not set, as in Sentinel",
            );
        }
        let not_negative = |field: i64| (field >= 0).then_some(field);
        let saturating = |field: i64| u32::try_from(field).unwrap_or(u32::MAX);
        SystemOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            expires: None,
            load: Amount::new(self.highest_system_load),
            cpu: Amount::new(self.highest_cpu_usage).filter(|_| share),
            avg_rt: not_negative(self.avg_rt).map(millis),
            concurrency: not_negative(self.max_thread).map(saturating),
            qps: Amount::new(self.qps),
        }
    }
}
