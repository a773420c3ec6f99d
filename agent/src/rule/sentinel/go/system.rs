//! System rules: one mark each.

use tidegate_abi::decision::Mode;

use super::refuse_unless;
use crate::rule::Amount;
use crate::rule::effect::{Effects, OptionEffect};
use crate::rule::sentinel::Foreign;
use crate::rule::sentinel::code::{Id, id};
use crate::rule::system::SystemOptions;
use crate::schema::kind::{Maybe, Number, OneOf, RequiredOption, Whole};
use crate::schema::settings::{Section, settings};

const MARKS: Number = Number {
    min: 0.0,
    max: 4_294_967_295.0,
};

settings! {
    /// The fields of a system rule.
    pub(super) struct GoSystem {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Load, average time in ms, requests in flight, passes a second, or share of the CPUs.
        metric_type as "metricType": i64 = 0, RequiredOption(Whole { min: 0, max: 4 }, "0");
        /// The mark.
        trigger_count as "triggerCount": f64 = 0.0, RequiredOption(MARKS, "8.0");
        /// -1 looks at the mark alone, 0 at the throughput as well.
        strategy: i64 = 0, Whole { min: -1, max: 0 };
    }
}

impl Effects for GoSystem {
    const EFFECTS: &'static [OptionEffect<Self>] = &[];
}

impl Foreign for GoSystem {
    type Ours = SystemOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[];
    fn ours(&self, section: &mut Section<'_, '_>) -> SystemOptions {
        let of_load = (
            "0 (BBR)",
            "the mark of the load looks at the throughput as well here",
        );
        refuse_unless(
            self.metric_type != 0 || self.strategy == 0,
            "strategy",
            of_load,
            section,
        );
        let of_cpu = ("-1 (none)", "the mark of the CPUs is looked at alone here");
        refuse_unless(
            self.metric_type != 4 || self.strategy == -1,
            "strategy",
            of_cpu,
            section,
        );
        let share = self.metric_type != 4 || self.trigger_count <= 1.0;
        refuse_unless(
            share,
            "triggerCount",
            ("a number from 0 to 1", "it is a share"),
            section,
        );
        let mark = |metric: i64| {
            let set = self.metric_type == metric;
            Amount::new(self.trigger_count).filter(|_| set)
        };
        SystemOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            load: mark(0),
            avg_rt: mark(1)
                .and_then(|ms| std::time::Duration::try_from_secs_f64(ms.get() / 1_000.0).ok()),
            concurrency: mark(2).map(Amount::whole),
            qps: mark(3),
            cpu: mark(4),
            expires: None,
        }
    }
}
