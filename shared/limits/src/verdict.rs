//! What a step answers.

/// The answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on after that time, ns; mostly at once.
    Admit {
        /// How long to wait first.
        wait_ns: u64,
    },
    /// It may not.
    Refuse {
        /// How long until the same request would be admitted if nobody else came, ns; `None` if
        /// waiting does not help.
        retry_after_ns: Option<u64>,
    },
}

impl Verdict {
    /// Admitted without a wait.
    pub const ADMIT: Self = Self::Admit { wait_ns: 0 };
    /// Refused however long the caller waits.
    pub const NEVER: Self = Self::Refuse {
        retry_after_ns: None,
    };

    /// Whether the request may go on.
    pub const fn admits(self) -> bool {
        matches!(self, Self::Admit { .. })
    }
}
