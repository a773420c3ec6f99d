//! Links lead to files and headings that are there.

use std::path::{Component, Path, PathBuf};

use tidegate_tests::generated::{read, root};

use crate::pages::{Page, all, handbook, page};

/// Targets of the links and pictures of a line, outside of code.
fn targets(line: &str) -> Vec<&str> {
    let code_free = line.split('`').step_by(2);
    let parts = code_free.flat_map(|part| part.split("](").skip(1));
    let inline = parts.filter_map(|part| part.split(')').next());
    inline.collect()
}

/// Targets of a page. Code between a link's brackets does not hide it.
fn links(page: &Page) -> Vec<String> {
    let mut found = Vec::new();
    for line in page.prose() {
        let without_code_names = line.replace("`](", "](");
        found.extend(targets(&without_code_names).into_iter().map(str::to_owned));
    }
    found
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn has_anchor(page: &Page, wanted: &str) -> bool {
    let mut headings = page.prose().filter(|line| line.starts_with('#'));
    headings.any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_link_of_every_document_leads_somewhere() {
    let mut looked_at = 0;
    for from in all() {
        for link in links(&from) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&from.path).parent().unwrap_or(Path::new(""));
            let to = match file {
                "" => PathBuf::from(&from.path),
                file => plain(&folder.join(file)),
            };
            let path = from.path.as_str();
            assert!(
                root().join(&to).exists(),
                "{path}: the link {link} leads nowhere"
            );
            // Only what is in the book is in the web site that is made of it.
            assert!(
                !path.starts_with("docs/") || to.starts_with("docs"),
                "{path}: the link {link} leads out of the handbook; write the path as code"
            );
            if !heading.is_empty() {
                let to = page(to.to_string_lossy().into_owned());
                assert!(
                    has_anchor(&to, heading),
                    "{path}: {} has no heading for {link}",
                    to.path
                );
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 80, "{looked_at} links");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = read("docs/SUMMARY.md");
    for page in handbook() {
        let name = page.path.trim_start_matches("docs/");
        let is_named = summary.contains(&format!("]({name})"));
        assert!(
            is_named || name == "SUMMARY.md",
            "docs/SUMMARY.md does not name {name}"
        );
    }
}

/// A picture in the book is a file of the book, and that of the lab is made by the lab.
#[test]
fn the_plot_of_the_handbook_is_that_of_the_lab() {
    assert!(
        read("docs/figures/goodput.svg") == read("tests/lab/figures/goodput.svg"),
        "docs/figures/goodput.svg is an old one: cp tests/lab/figures/goodput.svg docs/figures"
    );
}

#[test]
fn readme_and_architecture_are_read_to_the_end() {
    for (path, most) in [("README.md", 900), ("ARCHITECTURE.md", 1800)] {
        let words = read(path).split_whitespace().count();
        assert!(
            words <= most,
            "{path} has {words} words; {most} are allowed"
        );
    }
}

#[test]
fn an_anchor_is_that_of_github() {
    assert_eq!(
        anchor(" `[[flow]]`: limit a resource"),
        "flow-limit-a-resource"
    );
    assert_eq!(targets("a `b](c)` [d](e#f) ![g](h.svg)"), ["e#f", "h.svg"]);
}
