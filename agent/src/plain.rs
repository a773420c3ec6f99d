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

/// The same of JSON, which stays JSON of the same meaning: what cannot be seen is written as `\u202e`. The ends of
/// lines between its members stay.
pub fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for one in text.chars() {
        if one == '\n' || is_plain(one) {
            shown.push(one);
        } else {
            for unit in one.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _cannot: fmt::Result = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    shown
}

/// Shows as [`plain`] does.
#[derive(Debug, Clone, Copy)]
pub struct PlainText<T>(pub T);

impl<T: Display> Display for PlainText<T> {
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
    if is_blank(one) {
        return false;
    }
    // Behind a letter, a mark is shown as it is.
    let mut text = String::from("a");
    text.push(one);
    text.escape_debug().nth(1) == Some(one)
}

/// Whether nothing is to be seen of a character: those that Unicode says to leave out where they mean nothing
/// (`Default_Ignorable_Code_Point`), and a blank of Braille.
fn is_blank(one: char) -> bool {
    matches!(
        one,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
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
            ("a\u{34f}b\u{fe0f}", "a\\u{34f}b\\u{fe0f}"),
            ("\u{180e}\u{e0100}\u{17b4}", "\\u{180e}\\u{e0100}\\u{17b4}"),
            (
                "Zahlung \"ü\" e\u{301} 支付 \\ 'a'",
                "Zahlung \"ü\" e\u{301} 支付 \\ 'a'",
            ),
        ] {
            assert_eq!(plain(text), shown);
            assert_eq!(PlainText(text).to_string(), shown);
        }
        assert_eq!(lines("a\nb\u{85}\n"), "a\nb\\u{85}\n");
    }

    /// Ranges that end a line, turn the direction, hide, or are no characters.
    const HIDDEN: &[std::ops::RangeInclusive<u32>] = &[
        0x00..=0x1f,
        0x7f..=0x9f,
        0xad..=0xad,
        0x34f..=0x34f,
        0x61c..=0x61c,
        0x115f..=0x1160,
        0x17b4..=0x17b5,
        0x180b..=0x180f,
        0x200b..=0x200f,
        0x2028..=0x202e,
        0x2060..=0x206f,
        0x2800..=0x2800,
        0x3164..=0x3164,
        0xfe00..=0xfe0f,
        0xfeff..=0xfeff,
        0xffa0..=0xffa0,
        0xfff0..=0xfffb,
        0x1bca0..=0x1bca3,
        0x1d173..=0x1d17a,
        0xe0000..=0xe0fff,
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

        #[test]
        fn field_b9_json_keeps_its_meaning_and_no_hidden_character(
            text in any::<String>(),
            at in any::<prop::sample::Index>(),
        ) {
            let all: Vec<u32> = HIDDEN.iter().cloned().flatten().collect();
            let hidden = char::from_u32(all[at.index(all.len())]).unwrap();
            let value = serde_json::json!({format!("{hidden}{text}"): [format!("{text}{hidden}\u{202e}")]});
            for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let shown = json(&written);
                for one in shown.chars().filter(|one| *one != '\n') {
                    let one = u32::from(one);
                    prop_assert!(!HIDDEN.iter().any(|range| range.contains(&one)), "{:x} in {:?}", one, shown);
                }
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&shown).unwrap(), &value);
            }
        }
    }
}
