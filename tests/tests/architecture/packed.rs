//! The two packages hold the same files, and what is to be packed is there: they are not built where the tests run.

use std::collections::BTreeMap;
use std::fs;

use toml::{Table, Value};

use crate::source::root;

/// Where a package has another place for a file than the other one, and what only one has.
const OWN: &[&str] = &["LICENSE", "target/package/files/completions/zsh/_tidegate"];

/// What a release makes, not the checkout.
const MADE: &str = "target/package/";

/// The file or pattern in the checkout, and the folder or file that it becomes.
type Packed = BTreeMap<String, String>;

fn read(section: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join("agent/Cargo.toml")).expect("it is there");
    let manifest: Table = text.parse().expect("it is TOML");
    let assets = &manifest["package"]["metadata"][section]["assets"];
    assets.as_array().expect("a list").clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The list of the .deb is relative to the package, with places relative to `/`.
fn of_deb() -> Packed {
    let of_one = |asset: &Value| {
        let source = text(&asset[0]);
        let source = source.strip_prefix("../").expect("from the checkout");
        (source.to_owned(), format!("/{}", text(&asset[1])))
    };
    read("deb").iter().map(of_one).collect()
}

fn of_rpm() -> Packed {
    let of_one = |asset: &Value| (text(&asset["source"]), text(&asset["dest"]));
    read("generate-rpm").iter().map(of_one).collect()
}

#[test]
fn both_packages_hold_the_same_files_at_the_same_places() {
    let [mut deb, mut rpm] = [of_deb(), of_rpm()];
    for own in OWN {
        deb.remove(*own);
        rpm.remove(*own);
    }
    assert!(deb.len() > 10, "{deb:?}");
    assert_eq!(deb, rpm);
}

#[test]
fn what_is_packed_is_there_and_each_unit_is_packed() {
    let packed = of_deb();
    for source in packed.keys().filter(|source| !source.starts_with(MADE)) {
        let path = root().join(source);
        let is_there = match source.strip_suffix("*.conf") {
            Some(folder) => {
                fs::read_dir(root().join(folder)).is_ok_and(|mut all| all.next().is_some())
            }
            None => path.is_file(),
        };
        assert!(is_there, "{source} is not there");
    }
    for unit in fs::read_dir(root().join("systemd")).expect("units are there") {
        let name = unit.expect("it can be read").file_name();
        let path = format!("systemd/{}", name.to_string_lossy());
        let is_packed = packed.keys().any(|source| source.starts_with(&path));
        assert!(is_packed, "{path} is in no package");
    }
}
