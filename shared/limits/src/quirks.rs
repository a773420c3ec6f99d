//! Whose behaviour a rule set wants where Sentinel has a known defect.

/// The `quirks` of a rule set.
///
/// With [`Quirks::Sentinel`] the caller passes `now_ns` in whole milliseconds (see
/// [`crate::number::whole_ms`]) to every step but [`crate::pacing`], which knows by itself when
/// Sentinel looks at ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quirks {
    /// `"none"`: the right behaviour.
    #[default]
    None,
    /// `"sentinel-1.8.9"`: what Sentinel 1.8.9 answers, defects included.
    Sentinel,
}

impl Quirks {
    /// Whether Sentinel's defects are wanted.
    #[inline]
    pub const fn wanted(self) -> bool {
        matches!(self, Self::Sentinel)
    }
}
