//! Which package may depend on which package and library.

use std::process::Command;

use serde::Deserialize;

use crate::source;

/// The arrows: a package and the packages of this workspace it may name.
const ARROWS: &[(&str, &[&str])] = &[
    ("tidegate-abi", &[]),
    ("tidegate-limits", &["tidegate-abi"]),
    ("tidegate-segment", &["tidegate-abi", "tidegate-limits"]),
    (
        "tidegate-client",
        &["tidegate-abi", "tidegate-limits", "tidegate-segment"],
    ),
    (
        "tidegate-agent",
        &["tidegate-abi", "tidegate-limits", "tidegate-segment"],
    ),
    (
        "tidegate-bench",
        &[
            "tidegate-abi",
            "tidegate-limits",
            "tidegate-segment",
            "tidegate-agent",
        ],
    ),
    (
        "tidegate-tests",
        &[
            "tidegate-abi",
            "tidegate-limits",
            "tidegate-segment",
            "tidegate-client",
            "tidegate-agent",
            "tidegate-bench",
        ],
    ),
    ("tidegate-release", &["tidegate-agent"]),
    // The agent runs beside the lab as the program that users run; the harness is for its own tests.
    (
        "tidegate-lab",
        &[
            "tidegate-abi",
            "tidegate-limits",
            "tidegate-client",
            "tidegate-tests",
        ],
    ),
];

/// Libraries that only some packages may name. A name stands for its family too: `tokio` also
/// means `tokio-seqpacket`.
const KEEPERS: &[(&str, &[&str])] = &[
    (
        "tokio",
        // The client has it for its timer alone, where a service asks for that.
        &[
            "tidegate-agent",
            "tidegate-client",
            "tidegate-tests",
            "tidegate-lab",
        ],
    ),
    ("axum", &["tidegate-agent"]),
    ("hyper", &["tidegate-agent", "tidegate-tests"]),
    ("aya", &["tidegate-agent"]),
    ("prometheus", &["tidegate-agent"]),
    (
        "tracing",
        &["tidegate-agent", "tidegate-client", "tidegate-tests"],
    ),
    ("log", &["tidegate-agent"]),
    (
        "clap",
        &[
            "tidegate-agent",
            "tidegate-bench",
            "tidegate-lab",
            "tidegate-release",
        ],
    ),
    // It counts what a program allocates, which costs on every allocation.
    ("stats_alloc", &["tidegate-bench"]),
    ("toml", &["tidegate-agent", "tidegate-tests"]),
    ("anyhow", &[]),
];

/// A library that only one folder may name.
const ROOMS: &[(&str, &str)] = &[
    ("aya", "agent/src/ebpf/"),
    ("prometheus", "agent/src/telemetry/"),
    ("inotify", "agent/src/rule_source/"),
    ("axum", "agent/src/door/"),
    ("tokio_seqpacket", "agent/src/door/"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--locked"])
        .current_dir(source::root())
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata.packages
}

fn is_of(library: &str, family: &str) -> bool {
    library == family
        || library
            .strip_prefix(family)
            .is_some_and(|rest| rest.starts_with('-'))
}

#[test]
fn arrows_between_packages_point_one_way() {
    for package in packages() {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            panic!(
                "{} is a new package: give it its row in ARROWS",
                package.name
            );
        };
        for Dependency { name } in &package.dependencies {
            assert!(
                !name.starts_with("tidegate-") || allowed.contains(&name.as_str()),
                "{} may not depend on {name}: move what they share down the arrows \
                 (abi <- limits <- segment <- client, {{abi, limits, segment}} <- agent)",
                package.name
            );
        }
    }
}

#[test]
fn libraries_stay_with_their_keepers() {
    for package in packages() {
        for Dependency { name } in &package.dependencies {
            for (family, keepers) in KEEPERS.iter().filter(|(family, _)| is_of(name, family)) {
                assert!(
                    keepers.contains(&package.name.as_str()),
                    "{} may not depend on {name}: only {keepers:?} may use {family} (KEEPERS)",
                    package.name
                );
            }
        }
    }
}

#[test]
fn libraries_stay_in_their_rooms() {
    for file in source::rust_files(&["agent/src"]) {
        for (library, room) in ROOMS {
            assert!(
                file.path.starts_with(room) || !file.code().names(library),
                "{} names {library}: only {room} may (ROOMS); ask it for what you need",
                file.path
            );
        }
    }
}
