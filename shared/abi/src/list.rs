//! Constants and enums that list themselves, so that `shared/PROTOCOL.md` is made from them.

/// A constant of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolConstant {
    /// Its name in this package.
    pub name: &'static str,
    /// Its value: a word number, or a mask.
    pub value: u64,
    /// What it means: the text of its doc comment.
    pub text: &'static str,
}

/// Defines constants of one type together with their list, [`ProtocolConstant`] each. To add one, add a line
/// here and run the protocol test with `UPDATE_GOLDEN=1`.
macro_rules! listed {
    ($list:ident: $type:ty; $($(#[doc = $text:literal])+ $name:ident = $value:expr;)+) => {
        $($(#[doc = $text])+ pub const $name: $type = $value;)+
        /// The constants above, in their order.
        pub const $list: &[crate::list::ProtocolConstant] = &[$(crate::list::ProtocolConstant {
            name: stringify!($name),
            value: { let value: $type = $value; value as u64 },
            text: concat!($($text),+),
        },)+];
    };
}
pub(crate) use listed;

/// Makes an enum whose numbers are part of the protocol, with a checked way back.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $number:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[doc = $doc])+ $variant = $number,)+ }
        impl $name {
            /// Every value, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The value of a number that came from outside, if it is one.
            pub const fn from_u8(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }
            /// The word used in JSON, metrics and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
            /// What the value means, for `shared/PROTOCOL.md`.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
            /// The value of that word.
            pub fn from_name(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == text)
            }
        }
    };
}
pub(crate) use wire_enum;
