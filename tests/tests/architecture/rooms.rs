//! Which room of the agent may name which other room.
//!
//! A room is a folder of `agent/src`, or a file of it. An arrow goes down: from a room to one on a lower floor.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{self, SourceFile};

/// A room, its floor, and the rooms that it may name.
type Room = (&'static str, u8, &'static [&'static str]);

/// Every room there is. `ARCHITECTURE.md` has the same rooms, with what each holds.
const ROOMS: &[Room] = &[
    ("background", 0, &[]),
    ("calendar", 0, &[]),
    ("journal", 0, &[]),
    ("places", 0, &[]),
    ("plain", 0, &[]),
    ("words", 0, &[]),
    ("procfs", 1, &[]),
    ("schema", 1, &["plain"]),
    ("event", 1, &["calendar"]),
    ("ebpf", 2, &["background", "procfs"]),
    ("recording", 2, &["background", "calendar"]),
    ("rule", 2, &["calendar", "schema", "words"]),
    ("signal", 3, &["ebpf", "procfs"]),
    ("config", 3, &["ebpf", "procfs", "rule", "schema"]),
    ("tenant", 3, &["places", "rule"]),
    ("telemetry", 4, &["plain", "schema", "words"]),
    (
        "control",
        4,
        &[
            "background",
            "config",
            "procfs",
            "recording",
            "signal",
            "tenant",
        ],
    ),
    (
        "rule_source",
        4,
        &["calendar", "config", "procfs", "rule", "schema", "signal"],
    ),
    (
        "replay",
        5,
        &["config", "control", "recording", "schema", "words"],
    ),
    (
        "host",
        5,
        &[
            "config",
            "control",
            "ebpf",
            "event",
            "places",
            "procfs",
            "telemetry",
            "tenant",
        ],
    ),
    (
        "report",
        6,
        &[
            "control",
            "ebpf",
            "event",
            "host",
            "places",
            "procfs",
            "rule",
            "schema",
            "signal",
            "telemetry",
            "tenant",
            "words",
        ],
    ),
    (
        "door",
        7,
        &[
            "config",
            "control",
            "host",
            "places",
            "report",
            "schema",
            "telemetry",
            "tenant",
            "words",
        ],
    ),
    ("caller", 8, &["door", "host"]),
    (
        "run",
        8,
        &[
            "background",
            "calendar",
            "config",
            "control",
            "door",
            "ebpf",
            "event",
            "host",
            "journal",
            "plain",
            "procfs",
            "recording",
            "report",
            "rule",
            "rule_source",
            "schema",
            "signal",
            "telemetry",
            "tenant",
            "words",
        ],
    ),
    (
        "command",
        9,
        &[
            "caller",
            "config",
            "control",
            "ebpf",
            "journal",
            "plain",
            "procfs",
            "replay",
            "report",
            "rule",
            "rule_source",
            "run",
            "schema",
            "signal",
            "words",
        ],
    ),
];

/// Rooms that are to come: where they will be, and what they will need. The first file of one makes it a row of
/// [`ROOMS`].
const COMING: &[Room] = &[
    // A client of a token server that many hosts share: it is told of the tenants' rules, and tells what they may take.
    ("cluster", 5, &["background", "config", "schema", "tenant"]),
];

/// The first step of a path from the agent's `src`: its room.
fn room_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("agent/src/")?;
    let first = inside.split('/').next()?;
    let room = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(room, "lib" | "main")).then_some(room)
}

/// Rooms that a file names, in what is no test.
fn named(file: &SourceFile) -> BTreeSet<String> {
    let code = file.product_code();
    let mut rooms = BTreeSet::new();
    for rest in code.after("crate::") {
        let name: String = rest
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        assert!(
            !name.is_empty(),
            "{}: write one `use crate::room::…` for each room, so that this test can read it",
            file.path
        );
        rooms.insert(name);
    }
    rooms
}

/// Which rooms there are, and whom each names with the first file that does.
fn arrows() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut arrows: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for file in source::rust_files(&["agent/src"]) {
        let Some(room) = room_of(&file.path).filter(|_room| !file.is_test()) else {
            continue;
        };
        let from = arrows.entry(room.to_owned()).or_default();
        for to in named(&file).into_iter().filter(|to| to != room) {
            from.entry(to).or_insert_with(|| file.path.clone());
        }
    }
    arrows
}

fn floor(room: &str) -> u8 {
    let mut rows = ROOMS.iter().chain(COMING);
    let row = rows.find(|(name, _floor, _may)| *name == room);
    let Some((_name, floor, _may)) = row else {
        panic!(
            "{room} is a new room of the agent: give it its row in ROOMS and in ARCHITECTURE.md"
        );
    };
    *floor
}

#[test]
fn a_room_of_the_agent_names_only_rooms_below_it() {
    for (room, there, may) in ROOMS.iter().chain(COMING) {
        for below in *may {
            assert!(
                floor(below) < *there,
                "ROOMS: {room} is on floor {there} and may name {below}, which is on floor {}; \
                 move what they share further down",
                floor(below)
            );
        }
    }
}

#[test]
fn every_arrow_between_rooms_is_listed_and_every_listed_one_is_needed() {
    let arrows = arrows();
    for (room, named) in &arrows {
        let row = ROOMS.iter().find(|(name, _floor, _may)| name == room);
        let Some((_room, _floor, may)) = row else {
            panic!(
                "{room} is a new room of the agent: give it its row in ROOMS and in ARCHITECTURE.md"
            );
        };
        for (to, file) in named {
            assert!(
                may.contains(&to.as_str()),
                "{file} names {to}: {room} may name {may:?} only (ROOMS); ask a room that may, or \
                 move what is needed down"
            );
        }
        for listed in *may {
            assert!(
                named.contains_key(*listed),
                "{room} does not name {listed} any more: take it out of ROOMS"
            );
        }
    }
    for (room, _floor, _may) in ROOMS {
        assert!(
            arrows.contains_key(*room),
            "{room} is no room any more: take it out of ROOMS"
        );
    }
    for (room, _floor, _may) in COMING {
        assert!(
            !arrows.contains_key(*room),
            "{room} is there: make it a row of ROOMS"
        );
    }
}

#[test]
fn the_map_has_a_row_for_every_room() {
    let path = source::root().join("ARCHITECTURE.md");
    let map = std::fs::read_to_string(path).expect("ARCHITECTURE.md");
    for (room, _floor, _may) in ROOMS.iter().chain(COMING) {
        let row = [
            format!("| `agent/src/{room}` |"),
            format!("| `agent/src/{room}.rs` |"),
        ];
        assert!(
            row.iter().any(|row| map.contains(row.as_str())),
            "ARCHITECTURE.md has no row for the room agent/src/{room}"
        );
    }
}
