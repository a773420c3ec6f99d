//! Arguments of a request, as hot-parameter rules compare them: by type and value.
//!
//! Every caller hashes an argument with [`hash`], so that a value counts together whichever door its
//! requests come through.

/// An argument, by the hash of its type and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg<'a> {
    /// Nothing: passes.
    None,
    /// One value.
    One(u64),
    /// Each of these in turn.
    Many(&'a [u64]),
}

/// Type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ArgumentKind {
    /// Text, in UTF-8.
    Text = 1,
    /// A whole number of 32 bits.
    Int = 2,
    /// A whole number of 64 bits.
    Long = 3,
    /// A number of 64 bits.
    Double = 4,
    /// A number of 32 bits.
    Float = 5,
    /// A whole number of 8 bits.
    Byte = 6,
    /// A whole number of 16 bits.
    Short = 7,
    /// True or false.
    Boolean = 8,
    /// One character, in UTF-8.
    Char = 9,
}

/// The hash of a text or a character.
pub const fn text_hash(kind: ArgumentKind, text: &str) -> u64 {
    hash(kind, text.as_bytes())
}

/// The hash of a whole number of any width.
pub const fn integer_hash(kind: ArgumentKind, value: i64) -> u64 {
    hash(kind, &value.to_le_bytes())
}

/// The whole number as it counts where nobody names its type: an int if it fits, else a long.
pub const fn natural_hash(value: i64) -> u64 {
    let int = value >= i32::MIN as i64 && value <= i32::MAX as i64;
    let kind = if int {
        ArgumentKind::Int
    } else {
        ArgumentKind::Long
    };
    integer_hash(kind, value)
}

/// The hash of a number; a negative zero counts as zero.
pub const fn float_hash(kind: ArgumentKind, value: f64) -> u64 {
    hash(kind, &(value + 0.0).to_bits().to_le_bytes())
}

/// The hash of true or false.
pub const fn boolean_hash(value: bool) -> u64 {
    hash(ArgumentKind::Boolean, &[value as u8])
}

/// 64-bit FNV-1a of the type's number and the bytes of the value, then mixed by
/// `h ^= h >> 33; h *= 0xff51afd7ed558ccd; h ^= h >> 33`, since the table of values uses both ends.
pub const fn hash(kind: ArgumentKind, bytes: &[u8]) -> u64 {
    let hash = crate::board::fnv(
        crate::board::fnv(crate::board::FNV_START, &[kind as u8]),
        bytes,
    );
    let mixed = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_value_count() {
        assert_ne!(
            integer_hash(ArgumentKind::Int, 7),
            integer_hash(ArgumentKind::Long, 7)
        );
        assert_ne!(text_hash(ArgumentKind::Text, "7"), natural_hash(7));
        assert_eq!(natural_hash(7), integer_hash(ArgumentKind::Int, 7));
        let wide = i64::from(i32::MAX) + 1;
        assert_eq!(natural_hash(wide), integer_hash(ArgumentKind::Long, wide));
        let zero = float_hash(ArgumentKind::Double, 0.0);
        assert_eq!(float_hash(ArgumentKind::Double, -0.0), zero);
        assert_ne!(boolean_hash(true), boolean_hash(false));
    }
}
