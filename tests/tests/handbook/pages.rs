//! The documents of the workspace, read as Markdown.

use std::fs;

use tidegate_tests::generated::{read, root};

/// A document: its path from the workspace's folder on, and its text.
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A fenced block of code.
pub(crate) struct Fence<'p> {
    /// What stands behind the opening fence.
    pub(crate) language: &'p str,
    pub(crate) code: String,
}

/// Documents beside the handbook.
const OTHERS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "ebpf/README.md",
    "shared/PROTOCOL.md",
    "shared/abi/README.md",
    "shared/client/README.md",
    "shared/limits/README.md",
    "shared/segment/README.md",
    "tests/lab/README.md",
    "tests/lab/figures/figures.md",
    "tests/replay/README.md",
    "tests/sentinel-files/README.md",
];

/// The pages of the handbook, in the order of their paths.
pub(crate) fn handbook() -> Vec<Page> {
    let mut paths = Vec::new();
    collect("docs", &mut paths);
    paths.sort();
    assert!(paths.len() > 15, "the handbook has {} pages", paths.len());
    paths.into_iter().map(page).collect()
}

/// All documents.
pub(crate) fn all() -> Vec<Page> {
    let others = OTHERS.iter().map(|path| page((*path).to_owned()));
    handbook().into_iter().chain(others).collect()
}

/// One of them.
pub(crate) fn page(path: String) -> Page {
    let text = read(&path);
    Page { path, text }
}

fn collect(folder: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(folder)).expect("the folder is there") {
        let entry = entry.expect("it can be read");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&path, paths);
        } else if entry.path().extension().is_some_and(|end| end == "md") {
            paths.push(path);
        }
    }
}

impl Page {
    /// Its fenced blocks, in order.
    pub(crate) fn fences(&self) -> Vec<Fence<'_>> {
        let mut fences: Vec<Fence<'_>> = Vec::new();
        let mut open = false;
        for line in self.text.lines() {
            if let Some(language) = line.strip_prefix("```") {
                open = !open;
                if open {
                    let code = String::new();
                    fences.push(Fence { language, code });
                }
            } else if open && let Some(fence) = fences.last_mut() {
                fence.code.push_str(line);
                fence.code.push('\n');
            }
        }
        assert!(!open, "{}: a block of code has no end", self.path);
        fences
    }

    /// Its lines outside of fenced blocks.
    pub(crate) fn prose(&self) -> impl Iterator<Item = &str> {
        let mut inside = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.starts_with("```");
            inside ^= is_fence;
            !inside && !is_fence
        })
    }
}
