//! A public type has a name of its own, so that it is understood without its path.

use std::collections::BTreeMap;

use crate::source::rust_files;

/// What a public type begins with.
const KINDS: [&str; 5] = ["struct ", "enum ", "union ", "trait ", "type "];

/// Where a name may stand a second time, with the reason.
const TWINS: &[(&str, &str)] = &[(
    "shared/client/src/stub/",
    "the same types for systems without an agent; tests/tests/architecture/interface.rs holds both to one interface",
)];

/// Types named by a participle alone, with the reason.
const PARTICIPLES: &[(&str, &str)] = &[
    (
        "Guarded",
        "a tower service is named by what its layer makes of it",
    ),
    (
        "Refused",
        "the error of the client: what a caller got instead of a permit",
    ),
    (
        "Streamed",
        "a protocol of the tower layer, named by how an answer ends; beside Http and Grpc",
    ),
];

/// How a participle ends.
const ENDINGS: [&str; 5] = ["ed", "eld", "ept", "old", "ound"];

/// The name of a public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let name = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let name = name.split(|letter: char| !letter.is_alphanumeric()).next();
    // In a macro it is a parameter.
    name.filter(|name| !name.is_empty())
}

#[test]
fn every_public_type_has_a_name_of_its_own() {
    let files = rust_files(&["agent", "ebpf/src", "release", "sdk", "shared", "tests"]);
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| {
        !TWINS
            .iter()
            .any(|(folder, _why)| file.path.starts_with(folder))
    }) {
        for name in file.product_code().text().lines().filter_map(declared) {
            places
                .entry(name.to_owned())
                .or_default()
                .push(file.path.clone());
        }
    }
    assert!(
        places.len() > 500,
        "only {} public types are found",
        places.len()
    );
    for (name, places) in &places {
        assert!(
            places.len() == 1,
            "{name} is the name of {} public types, in {places:?}: give each a name that says what it is without its path",
            places.len()
        );
    }
}

#[test]
fn no_public_type_is_a_participle_alone() {
    let files = rust_files(&["agent", "ebpf/src", "release", "sdk", "shared", "tests"]);
    let mut found = Vec::new();
    for file in &files {
        for name in file.product_code().text().lines().filter_map(declared) {
            let is_one_word = name.chars().filter(|letter| letter.is_uppercase()).count() == 1;
            // A threshold and a background are things.
            let is_thing = name.ends_with("hold") || name.ends_with("ground");
            let ends = ENDINGS.iter().any(|end| name.ends_with(end));
            if is_one_word && ends && !is_thing && !found.contains(&name.to_owned()) {
                found.push(name.to_owned());
            }
        }
    }
    found.sort();
    let allowed: Vec<&str> = PARTICIPLES.iter().map(|(name, _why)| *name).collect();
    assert_eq!(
        found, allowed,
        "say of what a type is: `Held` may be anything, `HeldPermit` is not"
    );
}
