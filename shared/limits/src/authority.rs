//! Who may call, by the caller's origin.

/// What a list of origins is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginListMode {
    /// Only those on it may call ("white").
    Allow,
    /// Those on it may not call ("black").
    Deny,
}

impl OriginListMode {
    /// Whether a caller may go on; an empty origin always may.
    #[inline]
    pub const fn admits(self, origin_is_empty: bool, on_list: bool) -> bool {
        origin_is_empty
            || match self {
                Self::Allow => on_list,
                Self::Deny => !on_list,
            }
    }

    /// As [`OriginListMode::admits`], for a comma-separated list; no part is trimmed, case counts.
    pub fn admits_origin(self, origins: &str, origin: &str) -> bool {
        let on_list = origins.split(',').any(|listed| listed == origin);
        self.admits(origin.is_empty(), on_list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_match_a_whole_part_exactly() {
        let admits = |origin| OriginListMode::Allow.admits_origin("app,shop , Cart", origin);
        assert!(admits("app") && admits("shop ") && admits(""));
        assert!(!admits("shop") && !admits("ap") && !admits("cart") && !admits("app,shop "));
        assert!(!OriginListMode::Deny.admits_origin("app", "app"));
        assert!(
            OriginListMode::Deny.admits_origin("app", "")
                && OriginListMode::Deny.admits_origin("app", "b")
        );
    }
}
