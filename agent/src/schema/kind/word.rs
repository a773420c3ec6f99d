//! One word out of a few.

use std::marker::PhantomData;

use tidegate_abi::decision::{LossMode, Mode};

use serde_json::{Value as Json, json};

use super::{Scalar, Value, quoted};
use crate::schema::settings::nearest;

/// An enum whose values are words in files.
pub trait OptionWord: Copy + 'static {
    /// Every value.
    const ALL: &'static [Self];
    /// The word of a value.
    fn word(self) -> &'static str;
}

/// Makes an enum whose values are words in files.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }
        impl $crate::schema::kind::OptionWord for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];
            fn word(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
pub(crate) use words;

impl OptionWord for Mode {
    const ALL: &'static [Self] = Self::ALL;
    fn word(self) -> &'static str {
        self.name()
    }
}

impl OptionWord for LossMode {
    const ALL: &'static [Self] = Self::ALL;
    fn word(self) -> &'static str {
        self.name()
    }
}

/// One word of an enum.
#[derive(Debug, Clone, Copy)]
pub struct OneOf<W>(PhantomData<W>);

impl<W> OneOf<W> {
    /// Any of its words.
    pub const ANY: Self = Self(PhantomData);
}

impl<W: OptionWord> Scalar for OneOf<W> {
    type Output = W;
    fn allowed(&self) -> String {
        all_words::<W>().join(" | ")
    }
    fn parse(&self, value: &Value) -> Result<W, String> {
        let text = value.text().ok_or("write a word in quotes")?;
        let found = W::ALL.iter().copied().find(|one| one.word() == text);
        found.ok_or_else(|| nearest("word", text, &all_words::<W>()))
    }
    fn written(&self, value: &W) -> String {
        quoted(value.word())
    }
    fn json_schema(&self) -> Json {
        json!({"enum": all_words::<W>()})
    }
}

fn all_words<W: OptionWord>() -> Vec<&'static str> {
    W::ALL.iter().map(|one| one.word()).collect()
}
