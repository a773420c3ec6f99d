//! Files that import each other in a circle. One can be read, and changed, only with all the others.
//!
//! A name that a folder's `mod.rs` passes on (`pub use`) counts as imported from the file that it is in, so a folder
//! and its files are no circle for that alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{self, Code};

/// Packages that are looked at.
const PACKAGES: &[&str] = &[
    "agent",
    "shared/abi",
    "shared/client",
    "shared/limits",
    "shared/segment",
];

/// A circle that there may be: the package, its files, and why they are one thing.
type Circle = (&'static str, &'static [&'static str], &'static str);

/// Dissolve one and take it out; put none in.
const ALLOWED: &[Circle] = &[
    (
        "agent",
        &["config/guard", "config/law/numbers"],
        "options of the law and of the marks become one set of numbers",
    ),
    (
        "agent",
        &[
            "door/http",
            "door/http/caller",
            "door/http/exchange",
            "door/http/reports",
            "door/http/scrapers",
        ],
        "the routes of one server, who asks on them, and what is told",
    ),
    (
        "agent",
        &["ebpf/thread", "ebpf/worker"],
        "the thread of the programs, and what it does each second",
    ),
    (
        "agent",
        &["replay/report", "replay/run", "replay/tally"],
        "a run tallies what its report tells",
    ),
    (
        "agent",
        &[
            "rule/authority",
            "rule/circle",
            "rule/degrade",
            "rule/effect",
            "rule/expiry",
            "rule/flow",
            "rule/meant",
            "rule/param",
            "rule/set",
            "rule/shadow",
            "rule/system",
        ],
        "a rule is one of its kinds, and every kind is a rule",
    ),
    (
        "agent",
        &["run/assembly", "run/serve"],
        "what is put together is what serves, and both clean up",
    ),
    (
        "agent",
        &["run/keeper", "run/start_text"],
        "the text of the start tells what is kept",
    ),
    (
        "agent",
        &["schema/effect", "schema/kind", "schema/settings"],
        "options, their kinds and their effects are one table",
    ),
    (
        "agent",
        &["schema/fault", "schema/source"],
        "a fault has a place in a source, and a source is read with faults",
    ),
    (
        "agent",
        &[
            "signal/cgroup/above",
            "signal/cgroup/cpu_list",
            "signal/cgroup/quota",
        ],
        "groups share what is read of those above them",
    ),
    (
        "agent",
        &["signal/groups", "signal/programs"],
        "a group holds what programs in the kernel tell of it",
    ),
    (
        "agent",
        &["signal/processes", "signal/processes/affinity"],
        "a scan of processes, and one of the things it reads",
    ),
    (
        "agent",
        &[
            "tenant",
            "tenant/breakers",
            "tenant/client",
            "tenant/directory",
            "tenant/directory/give",
            "tenant/directory/idle",
            "tenant/directory/publish",
            "tenant/kept",
            "tenant/past_life",
            "tenant/past_life/count",
            "tenant/peer_scope",
            "tenant/permit",
            "tenant/proxy_seats",
            "tenant/rule_counts",
            "tenant/seat_life",
            "tenant/seats",
            "tenant/upkeep",
        ],
        "one type, `Tenant`, over several files",
    ),
    (
        "agent",
        &[
            "tenant/compile",
            "tenant/compile/carry",
            "tenant/compile/flow",
            "tenant/compile/inherit",
            "tenant/compile/room",
        ],
        "one pass over the rules, a file for each step",
    ),
    (
        "shared/segment",
        &["board/record", "board/short"],
        "a record and its short form",
    ),
    (
        "shared/segment",
        &["gate", "gate/param", "gate/walk"],
        "one type, `Gate`, over several files",
    ),
];

/// A module's path from the root of its package.
type Module = Vec<String>;

/// The modules of a package: what each imports, and what it passes on.
#[derive(Default)]
struct Package {
    imports: BTreeMap<Module, Vec<Module>>,
    /// The path of a name that is passed on, and where the name is from.
    passed_on: BTreeMap<Module, Module>,
}

impl Package {
    fn read(package: &str) -> Self {
        let folder = format!("{package}/src");
        let files = source::rust_files(&[&folder]);
        let files = files.into_iter().filter(|file| !file.is_test());
        let code: Vec<(Module, Code)> = files
            .map(|file| (module_of(&file.path, &folder), file.product_code()))
            .collect();
        let modules: BTreeSet<Module> = code.iter().map(|(module, _code)| module.clone()).collect();
        let mut read = Self::default();
        for (module, code) in code {
            let mut imports = Vec::new();
            for path in paths(&code) {
                let Some(whole) = absolute(&module, &path.steps, &modules) else {
                    continue;
                };
                match whole.last().filter(|_name| path.is_public) {
                    Some(name) => {
                        let name = [module.as_slice(), std::slice::from_ref(name)].concat();
                        read.passed_on.insert(name, whole);
                    }
                    None => imports.push(whole),
                }
            }
            read.imports.insert(module, imports);
        }
        read
    }

    /// The file that a path leads to, past all that only pass it on.
    fn file_of(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        // A name is passed on by some folders at most.
        for _folder in 0..4 {
            let file = self.longest(&path);
            let named = path.get(..=file.len()).unwrap_or(&path);
            match self.passed_on.get(named) {
                Some(from) if *from != path => path = from.clone(),
                _ => break,
            }
        }
        self.longest(&path)
    }

    /// The longest beginning of a path that is a file.
    fn longest(&self, path: &[String]) -> Module {
        let lengths = (0..=path.len()).rev();
        let mut beginnings = lengths.filter_map(|length| path.get(..length));
        let found = beginnings.find(|beginning| self.imports.contains_key(*beginning));
        found.map(<[String]>::to_vec).unwrap_or_default()
    }

    /// Every file that a file leads to, by however many steps.
    fn reached(&self, from: &Module) -> BTreeSet<Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from.clone()];
        while let Some(module) = open.pop() {
            for path in self.imports.get(&module).into_iter().flatten() {
                let file = self.file_of(path);
                if file != module && reached.insert(file.clone()) {
                    open.push(file);
                }
            }
        }
        reached
    }

    /// The circles, each with its files in order.
    fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let reached: BTreeMap<&Module, BTreeSet<Module>> = self
            .imports
            .keys()
            .map(|module| (module, self.reached(module)))
            .collect();
        let leads = |from: &Module, to: &Module| {
            reached
                .get(from)
                .is_some_and(|reached| reached.contains(to))
        };
        let in_circle = reached.keys().filter(|module| leads(module, module));
        in_circle
            .map(|module| {
                let all = reached.keys();
                let circle = all.filter(|other| leads(module, other) && leads(other, module));
                circle.map(|module| module.join("/")).collect()
            })
            .collect()
    }
}

/// The module that a file is.
fn module_of(path: &str, folder: &str) -> Module {
    let inside = path.strip_prefix(folder).unwrap_or(path);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let steps = inside
        .split('/')
        .filter(|step| !["", "lib", "main", "mod"].contains(step));
    steps.map(str::to_owned).collect()
}

/// A path that a file names.
struct Path {
    steps: Vec<String>,
    /// Whether the file passes the name on.
    is_public: bool,
}

/// The path from the root of the package; `None` where it leads out of it.
fn absolute(module: &Module, steps: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let (first, rest) = steps.split_first()?;
    let (mut base, mut rest) = match first.as_str() {
        "crate" => (Vec::new(), rest),
        "self" => (module.clone(), rest),
        "super" => (module.clone(), steps),
        // A module of the file's own, or a package.
        child => {
            let child = [module.as_slice(), &[child.to_owned()]].concat();
            modules
                .contains(&child)
                .then_some((module.clone(), steps))?
        }
    };
    while let Some((step, further)) = rest.split_first()
        && step == "super"
    {
        base.pop();
        rest = further;
    }
    let names = rest
        .iter()
        .filter(|step| !["*", "self"].contains(&step.as_str()));
    base.extend(names.cloned());
    Some(base)
}

/// Every path that code names: what it imports, and what it names in full.
fn paths(code: &Code) -> Vec<Path> {
    let mut paths = Vec::new();
    let mut rest = code.text().to_owned();
    for statement in uses(code.text()) {
        rest = rest.replacen(&statement.text, "", 1);
        for tree in expanded(&statement.tree) {
            let steps = tree.split("::").map(|step| step.trim().to_owned());
            paths.push(Path {
                steps: steps.collect(),
                is_public: statement.is_public,
            });
        }
    }
    for word in rest.split(|letter: char| !(letter.is_alphanumeric() || "_:$".contains(letter))) {
        let steps: Vec<String> = word.split("::").map(str::to_owned).collect();
        let begins = steps.first().map(String::as_str);
        if steps.len() > 1 && matches!(begins, Some("crate" | "super" | "self")) {
            paths.push(Path {
                steps,
                is_public: false,
            });
        }
    }
    paths
}

/// A `use` statement.
struct Use {
    text: String,
    tree: String,
    is_public: bool,
}

fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (at, _use) in code.match_indices("use ") {
        let before = code.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let is_statement = line.is_empty() || line == "pub" || line.starts_with("pub(");
        let after = code.get(at..).unwrap_or_default();
        let Some((text, _rest)) = after.split_once(';').filter(|_statement| is_statement) else {
            continue;
        };
        found.push(Use {
            text: text.to_owned(),
            tree: text.trim_start_matches("use ").to_owned(),
            is_public: !line.is_empty(),
        });
    }
    found
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn expanded(tree: &str) -> Vec<String> {
    let Some((before, inner)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree);
        return vec![name.trim().to_owned()];
    };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _end)| inner);
    let (mut parts, mut depth) = (vec![String::new()], 0_u32);
    for letter in inner.chars() {
        match letter {
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            '{' => depth = depth.saturating_add(1),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(|part| expanded(&format!("{}{}", before.trim(), part.trim())))
        .collect()
}

#[test]
fn files_import_each_other_in_no_circle_that_is_not_listed() {
    for package in PACKAGES {
        let found = Package::read(package).circles();
        let listed: BTreeSet<BTreeSet<String>> = ALLOWED
            .iter()
            .filter(|(of, _files, _why)| of == package)
            .map(|(_of, files, _why)| files.iter().map(|file| (*file).to_owned()).collect())
            .collect();
        let new: Vec<_> = found.difference(&listed).collect();
        assert!(
            new.is_empty(),
            "{package}: files import each other in a circle: {new:?}; move what they share into \
             a file below them, or list them in ALLOWED with the reason"
        );
        let gone: Vec<_> = listed.difference(&found).collect();
        assert!(
            gone.is_empty(),
            "{package}: no such circle any more: take {gone:?} out of ALLOWED"
        );
    }
}

#[test]
fn a_tree_of_imports_is_read_as_its_paths() {
    assert_eq!(
        expanded("crate::a::{self, b, c::{d as e, f}}"),
        [
            "crate::a::self",
            "crate::a::b",
            "crate::a::c::d",
            "crate::a::c::f"
        ]
    );
}
