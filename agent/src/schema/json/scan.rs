//! A cursor over a JSON text: blanks, texts, names, numbers.

use crate::schema::Value;

/// Where a text is none, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken {
    /// Byte of the text.
    pub(super) at: usize,
    /// What is wrong there.
    pub(super) why: &'static str,
}

/// A cursor over a text.
#[derive(Debug)]
pub(super) struct Scan<'t> {
    text: &'t str,
    rest: &'t str,
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, rest: text }
    }

    /// Bytes before the cursor.
    pub(super) fn at(&self) -> usize {
        self.text.len().saturating_sub(self.rest.len())
    }

    pub(super) fn broken<T>(&self, why: &'static str) -> Result<T, Broken> {
        Err(Broken { at: self.at(), why })
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Goes past this character, if it is the next.
    pub(super) fn take(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Goes past what these say and gives it.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let (run, rest) = match self.rest.find(|one| !belongs(one)) {
            Some(end) => self.rest.split_at(end),
            None => (self.rest, ""),
        };
        self.rest = rest;
        run
    }

    /// Goes past blanks and comments.
    pub(super) fn skip(&mut self) -> Result<(), Broken> {
        loop {
            self.run(|one| matches!(one, ' ' | '\t' | '\n' | '\r' | '\u{8}' | '\u{c}'));
            if self.rest.starts_with("//") {
                self.run(|one| one != '\n');
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let Some((_said, rest)) = comment.split_once("*/") else {
                    return self.broken("a comment has no end");
                };
                self.rest = rest;
            } else {
                return Ok(());
            }
        }
    }

    /// Goes past blanks, comments and commas; whether there was a comma.
    pub(super) fn skip_commas(&mut self) -> Result<bool, Broken> {
        self.skip()?;
        let mut any = false;
        while self.take(',') {
            any = true;
            self.skip()?;
        }
        Ok(any)
    }

    /// Goes past a name without quotes, which may be empty.
    pub(super) fn name(&mut self) -> &'t str {
        self.run(|one| one.is_alphanumeric() || matches!(one, '_' | '$' | '-' | '.'))
    }

    /// Reads a text in quotes.
    pub(super) fn quoted(&mut self, quote: char) -> Result<String, Broken> {
        let start = self.at();
        self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                Some(end) if end == quote => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(plain) => text.push(plain),
                None => {
                    return Err(Broken {
                        at: start,
                        why: "a text has no closing quote",
                    });
                }
            }
        }
    }

    /// Reads an escape behind its backslash.
    fn escaped(&mut self) -> Result<char, Broken> {
        let at = self.at();
        let unknown = Err(Broken {
            at,
            why: "no such escape in a text",
        });
        match self.bump() {
            Some('u') => self.unit(at),
            Some('x') => self.digits(2).and_then(char::from_u32).map_or(unknown, Ok),
            Some(octal @ '0'..='7') => octal
                .to_digit(8)
                .and_then(char::from_u32)
                .map_or(unknown, Ok),
            Some('b') => Ok('\u{8}'),
            Some('t') => Ok('\t'),
            Some('n') => Ok('\n'),
            Some('v') => Ok('\u{b}'),
            Some('f' | 'F') => Ok('\u{c}'),
            Some('r') => Ok('\r'),
            Some(plain @ ('"' | '\'' | '/' | '\\')) => Ok(plain),
            _ => unknown,
        }
    }

    /// Reads the digits of `\u`; two such escapes may be one character.
    fn unit(&mut self, at: usize) -> Result<char, Broken> {
        let broken = Broken {
            at,
            why: "no character has this number",
        };
        let first = self.digits(4).ok_or(broken)?;
        if let Some(whole) = char::from_u32(first) {
            return Ok(whole);
        }
        let second = self.rest.strip_prefix("\\u");
        self.rest = second.unwrap_or(self.rest);
        let second = second.and_then(|_rest| self.digits(4));
        let units = [Some(first), second].map(|unit| u16::try_from(unit?).ok());
        let units = units.iter().flatten().copied();
        let mut decoded = char::decode_utf16(units);
        match (decoded.next(), decoded.next()) {
            (Some(Ok(one)), None) => Ok(one),
            _ => Err(broken),
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest.get(..count)?;
        let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        self.rest = self.rest.get(count..)?;
        u32::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)
    }

    /// Reads a number, with the letter of its Java type behind it if there is one.
    pub(super) fn number(&mut self) -> Result<Value, Broken> {
        let before = self.rest;
        let start = self.at();
        self.take('-');
        let mut digits = !self.run(|one| one.is_ascii_digit()).is_empty();
        if self.take('.') {
            digits |= !self.run(|one| one.is_ascii_digit()).is_empty();
        }
        if self.rest.starts_with(['e', 'E']) {
            self.bump();
            let _signed = self.take('+') || self.take('-');
            digits &= !self.run(|one| one.is_ascii_digit()).is_empty();
        }
        let length = before.len().saturating_sub(self.rest.len());
        let number = before.get(..length).unwrap_or_default();
        if self.rest.starts_with(['L', 'S', 'B', 'F', 'D']) {
            self.bump();
        }
        let goes_on = !self.name().is_empty();
        let broken = Broken {
            at: start,
            why: "no number is written so",
        };
        if !digits || goes_on {
            return Err(broken);
        }
        match (number.parse(), number.parse()) {
            (Ok(whole), _) => Ok(Value::Integer(whole)),
            (Err(_), Ok(number)) => Ok(Value::Number(number)),
            (Err(_), Err(_)) => Err(broken),
        }
    }
}
