//! Quantifiers, and which possessive ones are as good as plain ones.

use regex::Regex;

use super::{Writer, unknown};

impl Writer<'_> {
    /// `{…}` behind an atom.
    pub(super) fn bounds(&mut self) -> Result<(), String> {
        let (bounds, rest) = self
            .rest
            .split_once('}')
            .ok_or("{ has no }; write \\{ for the character")?;
        self.rest = rest;
        self.out.push('{');
        self.out.push_str(bounds);
        self.out.push('}');
        self.after_quantifier()
    }

    /// What may stand behind a quantifier: `?` for the least, `+` for all or nothing.
    pub(super) fn after_quantifier(&mut self) -> Result<(), String> {
        let atom = self.atom.take();
        if self.take("?") {
            self.out.push('?');
            return Ok(());
        }
        if !self.rest.starts_with('+') {
            return Ok(());
        }
        self.bump();
        let next = self.rest.chars().next();
        let first = match next {
            None => return Ok(()),
            Some('\\') => self
                .rest
                .chars()
                .nth(1)
                .filter(|one| !one.is_alphanumeric()),
            Some(one) => Some(one).filter(|one| !"[(*+?{)|^$.".contains(*one)),
        };
        // Behind it a character that the atom never is: the plain quantifier takes as much.
        let quantified = self.quantified(atom);
        let apart = first.zip(quantified).is_some_and(|(first, atom)| {
            let follows = self
                .rest
                .chars()
                .nth(usize::from(next == Some('\\')).saturating_add(1));
            let must_follow = !matches!(follows, Some('*' | '?' | '{'));
            must_follow && !atom.is_match(first.encode_utf8(&mut [0; 4]))
        });
        if apart {
            Ok(())
        } else {
            Err(unknown("a possessive quantifier"))
        }
    }

    /// The atom before the quantifier that was just written.
    fn quantified(&self, atom: Option<usize>) -> Option<Regex> {
        let text = self.out.get(atom?..)?;
        let end = text.rfind(['*', '+', '?', '{'])?;
        Regex::new(&format!(r"\A(?:{})\z", text.get(..end)?)).ok()
    }
}
