//! Both prebuilt objects: an architecture that no test runs on has the programs and maps of one that tests do run on.

use std::collections::BTreeMap;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};

use super::program::{Programs, Wanted};
use super::rung::Rung;
use crate::procfs::Lack;
use crate::procfs::{Layout, Roots};

const X86_64: &[u8] = aya::include_bytes_aligned!("../../../ebpf/prebuilt/tidegate.x86_64.bpf.o");
const AARCH64: &[u8] = aya::include_bytes_aligned!("../../../ebpf/prebuilt/tidegate.aarch64.bpf.o");

/// What a loader takes from a section besides its types: bytes, and the names that its instructions point to.
#[derive(Debug, PartialEq, Eq)]
struct Section {
    bytes: Vec<u8>,
    points_to: Vec<(u64, String)>,
}

/// The sections of an object but for those that describe types, lines and names.
fn sections(bytes: &[u8]) -> BTreeMap<String, Section> {
    let file = object::File::parse(bytes).expect("the object is ELF");
    let name_of = |target| {
        let RelocationTarget::Symbol(index) = target else {
            return format!("{target:?}");
        };
        let symbol = file.symbol_by_index(index).expect("the symbol is there");
        let section = symbol.section_index().map(|section| section.0);
        let name = symbol.name().unwrap_or_default();
        format!("{name} {} in {section:?}", symbol.address())
    };
    let of_loader = file.sections().filter(|section| {
        let name = section.name().unwrap_or_default();
        let describes = name.contains("BTF") || [".strtab", ".symtab"].contains(&name);
        !name.is_empty() && !describes
    });
    of_loader
        .map(|section| {
            let points_to = section.relocations();
            let points_to = points_to.map(|(place, to)| (place, name_of(to.target())));
            let found = Section {
                bytes: section.data().expect("it is readable").to_vec(),
                points_to: points_to.collect(),
            };
            (section.name().unwrap_or_default().to_owned(), found)
        })
        .collect()
}

#[test]
fn no_name_of_the_objects_holds_a_hash_that_the_folder_of_a_build_has_part_in() {
    // As the names of statics of another crate do: "17h" and 16 digits. Such an object is another one in each folder.
    for object in [X86_64, AARCH64] {
        let hashed = object.windows(20).find(|name| {
            let digits = name.get(3..19).unwrap_or_default();
            name.starts_with(b"17h")
                && name.ends_with(b"E")
                && digits.iter().all(u8::is_ascii_hexdigit)
        });
        assert_eq!(hashed.map(String::from_utf8_lossy), None);
    }
}

#[test]
fn both_architectures_have_the_same_programs_and_maps() {
    let [here, there] = [X86_64, AARCH64].map(sections);
    let names = |of: &BTreeMap<String, Section>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&here), names(&there));
    assert!(
        here.contains_key("tp_btf/sched_switch"),
        "{:?}",
        names(&here)
    );
    for (name, section) in &here {
        assert!(there.get(name) == Some(section), "{name} is not the same");
    }
}

/// The kernel's programs are of no machine: those of another one pass the same loader and verifier.
#[test]
#[expect(clippy::print_stdout, reason = "this is the test's report")]
fn the_programs_of_either_architecture_run_here() {
    for object in [X86_64, AARCH64] {
        let wanted = Wanted {
            rung: Rung::Typed,
            slots: 2,
            by_cpu_controller: Layout::discover(Roots::default()).has_cpu_hierarchy(),
        };
        match Programs::load_from(object, wanted) {
            Ok(programs) => assert!(programs.infos().count() > 4),
            Err(refused) if [Lack::Capability, Lack::NoTypes].contains(&refused.lack) => {
                println!("SKIPPED: needs programs in the kernel: {}", refused.lack);
            }
            Err(refused) => panic!("{refused:?}"),
        }
    }
}
