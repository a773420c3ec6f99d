//! Programs in the kernel.

use crate::ebpf;
use crate::schema::effect::{Effects, Idle, OptionEffect};
use crate::schema::kind::{Flag, Percent};
use crate::schema::settings::{Section, settings};

settings! {
    /// Programs in the kernel that measure waits for a CPU and pauses of JVMs.
    pub struct EbpfOptions {
        /// Whether they are loaded. Without them files of /proc tell what they can.
        enabled: bool = true, Flag;
        /// Share of one CPU that they may take. Over it a cheaper one is taken, or none.
        max_overhead: f64 = 0.02, Percent { min: 0.1, max: 100.0 };
    }
    check check_ebpf;
}

impl Effects for EbpfOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("enabled"),
        OptionEffect::new("max_overhead", |ebpf| {
            let off = !ebpf.enabled;
            Idle::when(off, "with enabled = true", "no program is loaded")
        }),
    ];
}

fn check_ebpf(ebpf: &EbpfOptions, section: &mut Section<'_, '_>) {
    ebpf.warn(section);
}

impl EbpfOptions {
    /// The settings as the kernel's side takes them, with room for so many scopes.
    pub const fn settings(&self, scopes: u32) -> ebpf::EbpfSettings {
        ebpf::EbpfSettings {
            enabled: self.enabled,
            max_overhead: self.max_overhead,
            slots: scopes,
        }
    }
}
