//! The ladder of programs in the kernel, as the doctor tells it.

use serde::Serialize;

use crate::ebpf::{self, ProgramReport, Rung};
use crate::procfs::Lack;
use crate::words::paragraph;

/// The step in use, and why it is not a better one.
#[derive(Debug, Serialize)]
pub(super) struct Kernel {
    rung: &'static str,
    missed: Vec<Missed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsampled: Option<String>,
    /// Share of one CPU that they take, ns of one run.
    overhead: f64,
    run_ns: f64,
    jvm_libraries: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    jvm_fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jvm_remedy: Option<&'static str>,
}

/// A better step that was missed.
#[derive(Debug, Serialize)]
struct Missed {
    why: String,
    remedy: &'static str,
}

impl Missed {
    fn of(missed: &ebpf::MissedRung) -> Self {
        Self {
            why: missed.to_string(),
            remedy: missed.lack.remedy(),
        }
    }
}

impl Kernel {
    /// What a report says of it.
    pub(super) fn of(report: &ProgramReport) -> Self {
        Self {
            rung: report.rung.name(),
            missed: report.missed.iter().map(Missed::of).collect(),
            unsampled: report.unsampled.clone(),
            overhead: report.overhead,
            run_ns: report.run_ns,
            jvm_libraries: report.jvm_libraries,
            jvm_fault: report.jvm_fault.clone(),
            jvm_remedy: report.probes_denied().map(Lack::remedy),
        }
    }

    /// Writes it in lines.
    pub(super) fn write(&self, text: &mut String) -> std::fmt::Result {
        let (name, rung) = ("kernel programs", self.rung);
        let percent = self.overhead * 100.0;
        let (head, below) = (format!("{name:<24}"), format!("{:<24}", ""));
        paragraph(
            text,
            &head,
            &format!("{}, {percent:.2} % of one CPU", rung_text(rung)),
        )?;
        for Missed { why, remedy } in &self.missed {
            paragraph(text, &below, why)?;
            paragraph(text, &below, &format!("to have it: {remedy}"))?;
        }
        for fault in self.unsampled.iter().chain(&self.jvm_fault) {
            paragraph(text, &below, fault)?;
        }
        match self.jvm_remedy {
            Some(remedy) => paragraph(text, &below, &format!("to have it: {remedy}")),
            None => Ok(()),
        }
    }
}

/// A step of the ladder in words, with the name that it has elsewhere.
pub(super) fn rung_text(rung: &str) -> String {
    let known = Rung::ALL.into_iter().find(|known| known.name() == rung);
    let words = known.map(Rung::words).unwrap_or_default();
    format!("{words} ({rung})")
}
