//! Compiled patterns, each once however many rules have it, with a bound in bytes on all that are alive.
//!
//! A pattern of a few characters may take megabytes when it is compiled, and nobody who writes a rule sees that.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

/// Most memory that one compiled pattern may take, bytes. A repetition of up to 64 characters of any script takes 2 MiB.
const BYTES_OF_ONE: usize = 4 << 20;
/// Most memory that all of them may take, bytes, of all tenants, the rules in force and those that are read: a quarter
/// of what the unit may have.
const BYTES_OF_ALL: usize = 64 << 20;
/// What each is taken to have at least, bytes.
const LEAST: usize = 16 << 10;

/// The patterns of this process.
static ALL: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(BYTES_OF_ALL));

/// Compiled patterns under a bound.
#[derive(Debug)]
pub(super) struct Patterns {
    bytes_max: usize,
    alive: Arc<Mutex<Alive>>,
}

#[derive(Debug, Default)]
struct Alive {
    bytes: usize,
    known: HashMap<Arc<str>, Weak<Compiled>>,
}

/// A pattern for whole names, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) regex: Regex,
    meant: Arc<str>,
    bytes: usize,
    alive: Arc<Mutex<Alive>>,
}

impl Patterns {
    /// Those of this process.
    pub(super) fn all() -> &'static Self {
        &ALL
    }

    fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            alive: Arc::default(),
        }
    }

    /// The compiled form of a pattern.
    ///
    /// # Errors
    /// What is wrong with it, on one line.
    pub(super) fn compile(&self, meant: &str) -> Result<Arc<Compiled>, String> {
        let known = self.alive.lock().known.get(meant).and_then(Weak::upgrade);
        if let Some(known) = known {
            return Ok(known);
        }
        // Compiled alone first: a stray parenthesis must not close the group around it.
        sized(meant, BYTES_OF_ONE).map_err(|error| last_line(&error))?;
        let (regex, bytes) = measured(&format!(r"\A(?:{meant})\z"))?;
        let mut alive = self.alive.lock();
        let together = alive.bytes.saturating_add(bytes);
        if together > self.bytes_max {
            let (own, all) = (kib(bytes), kib(self.bytes_max));
            return Err(format!(
                "it takes {own} KiB, and all patterns of the rules may take {all} KiB together: write fewer, or shorter \
                 repetitions"
            ));
        }
        alive.bytes = together;
        let compiled = Arc::new(Compiled {
            regex,
            meant: Arc::from(meant),
            bytes,
            alive: Arc::clone(&self.alive),
        });
        alive
            .known
            .insert(Arc::clone(&compiled.meant), Arc::downgrade(&compiled));
        Ok(compiled)
    }
}

impl Compiled {
    /// The pattern as our engine has it.
    pub(super) fn meant(&self) -> &str {
        &self.meant
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let mut alive = self.alive.lock();
        alive.bytes = alive.bytes.saturating_sub(self.bytes);
        // Another one may have been compiled meanwhile.
        let known = alive.known.get(&self.meant);
        if known.is_some_and(|known| known.strong_count() == 0) {
            alive.known.remove(&self.meant);
        }
    }
}

/// Compiles a pattern under the least bound that it fits into, which is about what it takes; a matcher that is under way
/// has a cache of the same size.
fn measured(pattern: &str) -> Result<(Regex, usize), String> {
    let mut bytes = LEAST;
    loop {
        match sized(pattern, bytes) {
            Ok(regex) => return Ok((regex, bytes.saturating_mul(2))),
            Err(regex::Error::CompiledTooBig(_)) if bytes < BYTES_OF_ONE => {
                bytes = bytes.saturating_mul(4);
            }
            Err(error) => return Err(last_line(&error)),
        }
    }
}

fn sized(pattern: &str, bytes: usize) -> Result<Regex, regex::Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(bytes).dfa_size_limit(bytes).build()
}

/// The engine draws the place of the error on lines above its message.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

const fn kib(bytes: usize) -> usize {
    bytes >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_together_are_bounded_and_equal_ones_count_once() {
        let patterns = Patterns::new(4 * LEAST);
        let first = patterns.compile("/a/.*").unwrap();
        let again = patterns.compile("/a/.*").unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let _second = patterns.compile("/b/.*").unwrap();
        assert_eq!(patterns.alive.lock().bytes, 4 * LEAST);
        assert_eq!(
            patterns.compile("/c/.*").unwrap_err(),
            "it takes 32 KiB, and all patterns of the rules may take 64 KiB together: write fewer, or shorter repetitions"
        );
        drop((first, again));
        patterns.compile("/c/.*").unwrap();
        assert_eq!(patterns.alive.lock().known.len(), 1);
    }

    #[test]
    fn a_large_pattern_counts_as_large() {
        let patterns = Patterns::new(BYTES_OF_ALL);
        let large = patterns.compile(r"/users/\w{1,64}").unwrap();
        assert!(large.bytes > 1 << 20, "{}", large.bytes);
        assert!(large.regex.is_match("/users/josé"));
        let mut kept = vec![large];
        let refused = (1..100).find_map(|number| {
            let pattern = format!(r"/users/{number}/\w{{1,64}}");
            match patterns.compile(&pattern) {
                Ok(one) => {
                    kept.push(one);
                    None
                }
                Err(why) => Some(why),
            }
        });
        assert!(refused.is_some_and(|why| why.contains("together")));
        assert!(patterns.alive.lock().bytes <= BYTES_OF_ALL);
    }
}
