//! A signal of a scope, as status and doctor tell it.

use serde::{Deserialize, Serialize};
use tidegate_abi::signal::SignalId;

use super::ListedWord;
use crate::signal::Reading;

/// A number, or why there is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SignalReport {
    /// It was measured.
    Measured {
        /// In `unit`.
        value: f64,
        /// Word for the unit.
        unit: ListedWord,
    },
    /// It was not.
    Missing {
        /// The source, and what is wrong with it.
        not_measured: String,
        /// What would make it available.
        #[serde(default)]
        remedy: ListedWord,
    },
}

impl SignalReport {
    /// The reading of a signal, in words.
    pub fn of(id: SignalId, reading: Reading) -> Self {
        match reading.get() {
            Ok(value) => Self::Measured {
                value,
                unit: id.unit().name().into(),
            },
            Err(missing) => Self::Missing {
                not_measured: missing.to_string(),
                remedy: missing.remedy(id).into(),
            },
        }
    }
}
