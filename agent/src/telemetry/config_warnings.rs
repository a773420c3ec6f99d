//! What is odd about the configuration in force, but taken.

use std::sync::{Mutex, PoisonError};

use crate::schema::fault::Fault;

/// Those of the configuration in force.
#[derive(Debug, Default)]
pub struct ConfigWarnings(Mutex<Vec<Fault>>);

impl ConfigWarnings {
    /// Takes those of the configuration that comes into force.
    pub fn set(&self, warnings: Vec<Fault>) {
        // What a panic left behind is a whole list.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
    }

    /// Those in force.
    pub fn get(&self) -> Vec<Fault> {
        let warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.clone()
    }
}
