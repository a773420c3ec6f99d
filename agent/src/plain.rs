//! Text from outside as people may read it: nothing in it moves the cursor, turns the direction of reading, hides or
//! begins a line.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// A name as it is shown on one line. What cannot be seen is written by its number, such as `\u{202e}`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _cannot: fmt::Result = Escaping(&mut shown).write_str(text);
    Cow::Owned(shown)
}

/// Shows a text of several lines: the ends of lines stay.
pub fn lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(plain).collect();
    lines.join("\n")
}

/// Shows as [`plain`] does.
#[derive(Debug, Clone, Copy)]
pub struct Plain<T>(pub T);

impl<T: Display> Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Escapes what is written through it.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for one in s.chars() {
            if is_plain(one) {
                self.0.write_char(one)?;
            } else {
                write!(self.0, "{}", one.escape_default())?;
            }
        }
        Ok(())
    }
}

/// Whether a character is seen as what it is. The standard library knows which cannot be printed; marks that join
/// the letter before them are part of many scripts.
fn is_plain(one: char) -> bool {
    if one.is_ascii() {
        return !one.is_ascii_control();
    }
    // Blank, and no letter for all that they are counted among them.
    if matches!(
        one,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}'
    ) {
        return false;
    }
    // Behind a letter, a mark is shown as it is.
    let mut text = String::from("a");
    text.push(one);
    text.escape_debug().nth(1) == Some(one)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn field_b9_what_cannot_be_seen_is_written_by_its_number() {
        for (text, shown) in [
            ("order", "order"),
            ("a\nb", "a\\nb"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{2028}b\u{2029}", "a\\u{2028}b\\u{2029}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("\u{1b}[31m\u{7f}\u{9b}", "\\u{1b}[31m\\u{7f}\\u{9b}"),
            (
                "\u{2066}x\u{2069}\u{61c}\u{ad}",
                "\\u{2066}x\\u{2069}\\u{61c}\\u{ad}",
            ),
            ("\u{e0041}\u{3164}", "\\u{e0041}\\u{3164}"),
            (
                "Zahlung \"ü\" e\u{301} 支付 \\ 'a'",
                "Zahlung \"ü\" e\u{301} 支付 \\ 'a'",
            ),
        ] {
            assert_eq!(plain(text), shown);
            assert_eq!(Plain(text).to_string(), shown);
        }
        assert_eq!(lines("a\nb\u{85}\n"), "a\nb\\u{85}\n");
    }

    /// Ranges that end a line, turn the direction, hide, or are no characters.
    const HIDDEN: &[std::ops::RangeInclusive<u32>] = &[
        0x00..=0x1f,
        0x7f..=0x9f,
        0xad..=0xad,
        0x61c..=0x61c,
        0x200b..=0x200f,
        0x2028..=0x202e,
        0x2060..=0x206f,
        0xfeff..=0xfeff,
        0xfff9..=0xfffb,
        0xe0001..=0xe007f,
    ];

    proptest! {
        #[test]
        fn field_b9_no_text_keeps_a_hidden_character(text in any::<String>(), at in any::<prop::sample::Index>()) {
            let all: Vec<u32> = HIDDEN.iter().cloned().flatten().collect();
            let hidden = char::from_u32(all[at.index(all.len())]).unwrap();
            let shown = plain(&format!("{text}{hidden}{text}")).into_owned();
            for one in shown.chars() {
                let one = u32::from(one);
                prop_assert!(!HIDDEN.iter().any(|range| range.contains(&one)), "{:x} in {:?}", one, shown);
            }
            prop_assert_eq!(&*plain(&shown), &*shown);
        }
    }
}
