//! Patterns as Java writes them, in the words of our own engine.
//!
//! Java's classes `\d`, `\w`, `\s` and its borders `\b` are of ASCII. `\Q…\E` is a text. A possessive quantifier is a
//! plain one where that matches the same names; what only backtracking engines have is refused by its name.

mod quantifier;

/// Writes a pattern of Java for our own engine.
///
/// # Errors
/// What there is in it that has no equal.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    let mut writer = Writer {
        rest: pattern,
        out: String::with_capacity(pattern.len()),
        atom: None,
    };
    while let Some(next) = writer.bump() {
        match next {
            '\\' => writer.escape()?,
            '[' => writer.class()?,
            '(' => writer.group()?,
            '*' | '+' | '?' => {
                writer.out.push(next);
                writer.after_quantifier()?;
            }
            '{' => writer.bounds()?,
            ')' | '|' | '^' | '$' => {
                writer.atom = None;
                writer.out.push(next);
            }
            '.' => writer.push_atom("."),
            plain => writer.push_atom(&regex::escape(plain.encode_utf8(&mut [0; 4]))),
        }
    }
    Ok(writer.out)
}

/// Why what backtracks is refused.
fn unknown(what: &str) -> String {
    format!("{what} of Java has no equal here; write the pattern without it")
}

struct Writer<'p> {
    rest: &'p str,
    out: String,
    /// Where the last atom of one character begins in `out`; none after anything else.
    atom: Option<usize>,
}

impl Writer<'_> {
    fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn push_atom(&mut self, text: &str) {
        self.atom = Some(self.out.len());
        self.out.push_str(text);
    }

    /// An escape outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        let Some(next) = self.bump() else {
            return Err("a backslash at the end".to_owned());
        };
        match next {
            'Q' => {
                let (text, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = rest;
                for one in text.chars() {
                    self.push_atom(&regex::escape(one.encode_utf8(&mut [0; 4])));
                }
            }
            'E' => {}
            '1'..='9' | 'k' => return Err(unknown("a back reference")),
            'b' | 'B' => {
                self.atom = None;
                self.out.push_str(if next == 'b' {
                    r"(?-u:\b)"
                } else {
                    r"(?-u:\B)"
                });
            }
            'A' | 'z' => {
                self.atom = None;
                self.out.push('\\');
                self.out.push(next);
            }
            'Z' | 'G' | 'X' | 'R' => return Err(unknown(&format!("\\{next}"))),
            other => {
                let class = self.class_escape(other)?;
                self.push_atom(&class);
            }
        }
        Ok(())
    }

    /// What an escape that stands for characters is here, inside of a class and outside.
    fn class_escape(&mut self, next: char) -> Result<String, String> {
        let class = match next {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[a-zA-Z0-9_]",
            'W' => "[^a-zA-Z0-9_]",
            's' => r"[ \t\n\x0B\f\r]",
            'S' => r"[^ \t\n\x0B\f\r]",
            'h' => r"[ \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]",
            'v' => r"[\n\x0B\f\r\x{85}\x{2028}\x{2029}]",
            't' | 'n' | 'r' | 'f' | 'a' => return Ok(format!("\\{next}")),
            'e' => r"\x1B",
            'p' | 'P' => return self.property(next),
            'x' if self.rest.starts_with('{') => {
                let (number, rest) = self.rest.split_once('}').ok_or("\\x{ has no }")?;
                self.rest = rest;
                return Ok(format!("\\x{number}}}"));
            }
            'x' => return self.digits("\\x", 2),
            'u' => return self.digits("\\u", 4),
            '0' | 'c' | 'N' | 'H' | 'V' => return Err(unknown(&format!("\\{next}"))),
            letter if letter.is_ascii_alphabetic() => {
                return Err(format!("\\{letter} is no escape of Java"));
            }
            plain => return Ok(regex::escape(plain.encode_utf8(&mut [0; 4]))),
        };
        Ok(class.to_owned())
    }

    fn digits(&mut self, escape: &str, count: usize) -> Result<String, String> {
        let digits = self
            .rest
            .get(..count)
            .filter(|digits| digits.bytes().all(|one| one.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(|| format!("{escape} needs {count} hexadecimal digits"))?;
        self.rest = self.rest.get(count..).unwrap_or_default();
        Ok(format!("\\x{{{digits}}}"))
    }

    /// `\p{…}`: the classes of POSIX are of ASCII in Java; others have the same names here.
    fn property(&mut self, sign: char) -> Result<String, String> {
        let name = if self.take("{") {
            let (name, rest) = self.rest.split_once('}').ok_or("\\p{ has no }")?;
            self.rest = rest;
            name
        } else {
            let length = self.rest.chars().next().map_or(0, char::len_utf8);
            let (name, rest) = self.rest.split_at(length);
            self.rest = rest;
            name
        };
        let posix = [
            "Lower", "Upper", "ASCII", "Alpha", "Digit", "Alnum", "Punct", "Graph", "Print",
            "Blank", "Cntrl", "XDigit", "Space",
        ];
        if posix.contains(&name) {
            let not = if sign == 'P' { "^" } else { "" };
            return Ok(format!("[[:{not}{}:]]", name.to_ascii_lowercase()));
        }
        if name.starts_with("java") {
            return Err(unknown(&format!("\\p{{{name}}}")));
        }
        let script = name.strip_prefix("Is").unwrap_or(name);
        Ok(format!("\\{sign}{{{script}}}"))
    }

    /// A class in brackets.
    fn class(&mut self) -> Result<(), String> {
        let start = self.out.len();
        let mut depth = 1_u32;
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        while depth > 0 {
            let Some(next) = self.bump() else {
                return Err("a class has no closing bracket".to_owned());
            };
            match next {
                '[' => {
                    depth = depth.saturating_add(1);
                    self.out.push('[');
                    if self.take("^") {
                        self.out.push('^');
                    }
                }
                ']' => {
                    depth = depth.saturating_sub(1);
                    self.out.push(']');
                }
                '\\' if self.take("Q") => {
                    let (text, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                    self.rest = rest;
                    self.out.push_str(&regex::escape(text));
                }
                '\\' => {
                    let escaped = self.bump().ok_or("a backslash at the end")?;
                    let class = self.class_escape(escaped)?;
                    self.out.push_str(&class);
                }
                '&' if self.take("&") => self.out.push_str("&&"),
                // Two of them are an operator of our engine alone.
                '~' | '&' => {
                    self.out.push('\\');
                    self.out.push(next);
                }
                '-' if self.rest.starts_with('-') => self.out.push_str(r"\-"),
                plain => self.out.push(plain),
            }
        }
        self.atom = Some(start);
        Ok(())
    }

    /// What follows an opening parenthesis.
    fn group(&mut self) -> Result<(), String> {
        self.atom = None;
        self.out.push('(');
        for (mark, what) in [
            ("?=", "look-ahead"),
            ("?!", "look-ahead"),
            ("?<=", "look-behind"),
            ("?<!", "look-behind"),
            ("?>", "an atomic group"),
        ] {
            if self.rest.starts_with(mark) {
                return Err(unknown(what));
            }
        }
        if self.rest.starts_with("?<") {
            let (name, rest) = self
                .rest
                .split_once('>')
                .ok_or("a name of a group has no >")?;
            self.out.push_str(name);
            self.out.push('>');
            self.rest = rest;
            return Ok(());
        }
        if let Some(flags) = self.rest.strip_prefix('?') {
            let end = flags.find([':', ')']).unwrap_or(flags.len());
            let (flags, rest) = flags.split_at(end);
            if let Some(flag) = flags
                .chars()
                .find(|flag| !matches!(flag, 'i' | 's' | 'm' | '-'))
            {
                return Err(unknown(&format!("the flag {flag}")));
            }
            self.out.push('?');
            self.out.push_str(flags);
            self.rest = rest;
            if self.take(":") {
                self.out.push(':');
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
