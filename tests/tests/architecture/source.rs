//! Reads the sources of the workspace: which files there are, and their code without comments.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One source file.
pub(crate) struct SourceFile {
    /// From the workspace's folder on, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

/// A file's code without comments and without what stands inside string literals.
pub(crate) struct Code(String);

/// Every `.rs` file below these folders, in the order of their paths.
pub(crate) fn rust_files(folders: &[&str]) -> Vec<SourceFile> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root().join(folder), folder, &mut files);
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    assert!(!files.is_empty(), "no .rs file below {folders:?}");
    files
}

fn collect(folder: &Path, path: &str, files: &mut Vec<SourceFile>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{path}: {error}"));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("{path}: {error}"));
        let name = entry.file_name().to_string_lossy().into_owned();
        let below = format!("{path}/{name}");
        if entry.path().is_dir() && name != "target" {
            collect(&entry.path(), &below, files);
        } else if entry.path().extension().is_some_and(|end| end == "rs") {
            let text =
                fs::read_to_string(entry.path()).unwrap_or_else(|error| panic!("{below}: {error}"));
            files.push(SourceFile { path: below, text });
        }
    }
}

impl SourceFile {
    /// The code alone.
    pub(crate) fn code(&self) -> Code {
        Code::of(&self.text)
    }

    /// The code that is no test: up to the module of the file's own tests.
    pub(crate) fn product_code(&self) -> Code {
        let mut lines = self.text.lines().peekable();
        let mut product = String::new();
        while let Some(line) = lines.next() {
            let next = lines.peek().copied().unwrap_or_default();
            let is_module = next.ends_with('{') && next.contains("mod ");
            if line == "#[cfg(test)]" && is_module {
                break;
            }
            product.push_str(line);
            product.push('\n');
        }
        Code::of(&product)
    }

    /// Whether the whole file is there for tests alone, or for the fuzzer.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.ends_with("tests.rs")
            || self.path.contains("tests/")
            || ["fixture.rs", "fuzz.rs", "test_agent.rs", "test_rules.rs"].contains(&name)
    }
}

impl Code {
    fn of(text: &str) -> Self {
        Self(text.lines().map(|line| code_of(line) + "\n").collect())
    }

    /// What follows each place where this text occurs.
    pub(crate) fn after(&self, text: &str) -> impl Iterator<Item = &str> {
        self.0.match_indices(text).filter_map(move |(at, found)| {
            let before = self.0.get(..at)?.chars().next_back();
            let is_word = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
            let rest = self.0.get(at.saturating_add(found.len())..)?;
            (!is_word).then_some(rest)
        })
    }

    /// All of it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether an identifier occurs.
    pub(crate) fn names(&self, identifier: &str) -> bool {
        self.0
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|word| word == identifier)
    }

    /// Whether this text occurs, spaces aside.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let tight = |text: &str| text.split_whitespace().collect::<String>();
        tight(&self.0).contains(&tight(text))
    }
}

/// A line up to its comment, with its string literals emptied. Strings over several lines count as
/// code: a false alarm there is cheaper than a parser here.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '/' if letters.peek() == Some(&'/') => break,
            '\'' if letters.peek() == Some(&'"') => {
                letters.next();
            }
            '"' => {
                while let Some(inside) = letters.next() {
                    match inside {
                        '\\' => {
                            letters.next();
                        }
                        '"' => break,
                        _ => {}
                    }
                }
                code.push_str("\"\"");
            }
            _ => code.push(letter),
        }
    }
    code
}

#[test]
fn comments_and_strings_are_not_code() {
    assert_eq!(code_of(r#"a("b // \" c", '"'); // d"#), r#"a("", '); "#);
}
