//! Whether the scopes of a configuration have groups on this machine, and CPUs as declared. A configuration may be
//! checked on another machine than its own, so what is odd is no fault.

use std::path::Path;
use std::time::Duration;

use tidegate_segment::clock::monotonic_ns;

use crate::config::Config;
use crate::control::{ConfiguredScope, DeclaredCpus, Driver, Plan, Snapshot};
use crate::procfs::Roots;
use crate::schema::fault::{Fault, InFile};
use crate::schema::source::Source;
use crate::signal::Sampler;

/// Looks once.
pub(super) fn warnings(config: &Config, file: Option<&Path>, roots: Roots) -> Vec<Fault> {
    let source = file.and_then(|file| Source::read(file).ok());
    let Some(source) = source.filter(|_source| !config.scopes.is_empty()) else {
        return Vec::new();
    };
    let (mut driver, handle) = Driver::new(Sampler::new(roots), Vec::new(), Plan::of(config));
    driver.tick(monotonic_ns(), Duration::ZERO);
    let snapshot = handle.snapshot();
    let scopes = config.scopes.iter().enumerate();
    scopes
        .flat_map(|(index, scope)| of_scope(&snapshot, &source, index, &scope.name))
        .collect()
}

fn of_scope(snapshot: &Snapshot, source: &Source, index: usize, name: &str) -> Vec<Fault> {
    let mut configured = snapshot.configured.iter();
    let of_name = configured.find(|scope| &*scope.name == name);
    let without = of_name.and_then(ConfiguredScope::without_group);
    let mut warnings = Vec::new();
    let mut warn = |option, value, allowed, hint| {
        let place = place_of(source, index, option);
        let option = format!("scope[{index}].{option}");
        warnings.push(Fault::at(place, option, value, allowed, hint));
    };
    if let Some(without) = without {
        let value = format!("{:?}", &*without.cgroup);
        warn(
            "cgroup",
            value,
            "a group of this machine",
            without.to_string(),
        );
    }
    let below = format!("{name}/");
    let mut scopes = snapshot.scopes.iter();
    let conflict = scopes.find_map(|scope| {
        let is_of = &*scope.name == name || scope.name.starts_with(&below);
        let declared = scope.declared_cpus.filter(DeclaredCpus::conflicts);
        declared.filter(|_declared| is_of)
    });
    if let Some(declared) = conflict {
        let value = declared.cpus.to_string();
        warn(
            "cpus",
            value,
            "what the group may use",
            declared.to_string(),
        );
    }
    warnings
}

/// Where an option of a scope stands.
fn place_of(source: &Source, index: usize, option: &str) -> InFile {
    let find = || {
        let root = toml::de::DeTable::parse(source.text()).ok()?;
        let scopes = root.get_ref().get("scope")?.get_ref().as_array()?;
        let option = scopes.get(index)?.get_ref().get(option)?;
        Some(source.place(option.span().start))
    };
    find().unwrap_or_else(|| InFile::whole(&**source.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with the groups `web`, which has a quota of half a CPU, and `a.slice/a-b.slice`.
    fn machine() -> tempfile::TempDir {
        let machine = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("proc/stat", "cpu  1 0 0 9\ncpu0 1 0 0 9\ncpu1 1 0 0 9\n"),
            ("cgroup/cgroup.controllers", "cpu\n"),
            ("cgroup/web/cpu.max", "50000 100000\n"),
            (
                "cgroup/web/cpu.stat",
                "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
            ),
            ("cgroup/a.slice/a-b.slice/cpu.max", "max 100000\n"),
        ] {
            let path = machine.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        machine
    }

    fn warned(scope: &str) -> Vec<String> {
        let machine = machine();
        let file = machine.path().join("tidegate.toml");
        std::fs::write(&file, format!("[[scope]]\nname = \"x\"\n{scope}\n")).unwrap();
        let loaded = Config::load(Some(&file)).unwrap();
        let roots = Roots {
            proc: machine.path().join("proc"),
            cgroup: machine.path().join("cgroup"),
        };
        let warnings = loaded.warnings.into_iter();
        let here = super::warnings(&loaded.config, Some(&file), roots);
        let all = warnings.chain(here);
        all.map(|fault| fault.to_string()).collect()
    }

    #[test]
    fn field_s12_check_warns_of_a_scope_whose_group_is_not_there() {
        for (scope, said) in [
            (
                "cgroup = \"/wbe\"",
                "no group at /wbe: start what it stands for",
            ),
            ("cgroup = \"/sys/fs/cgroup/wbe\"", "no group at /wbe: "),
            ("cgroup = \"/a-b.slice\"", "write /a.slice/a-b.slice"),
            ("cgroup = \"/docker/*\"", "no group at /docker/*: "),
        ] {
            let warnings = warned(scope);
            let [warning] = &warnings[..] else {
                panic!("{scope}: {warnings:?}");
            };
            assert!(warning.contains(said), "{warning}");
            assert!(
                warning.contains("tidegate.toml:3:10: scope[0].cgroup"),
                "{warning}"
            );
        }
        for there in [
            "cgroup = \"/web\"",
            "cgroup = \"/sys/fs/cgroup/web\"",
            "cgroup = \"/w*\"",
        ] {
            assert_eq!(warned(there), Vec::<String>::new(), "{there}");
        }
    }

    #[test]
    fn field_s12_an_escape_in_double_quotes_is_told() {
        let warnings = warned(r#"cgroup = "/a\x2db.slice""#);
        let [escape, _nowhere] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        assert!(escape.contains("single quotes"), "{escape}");
        let kept = warned(r"cgroup = '/a\x2db.slice'");
        assert!(
            kept.iter()
                .all(|warning| !warning.contains("single quotes")),
            "{kept:?}"
        );
    }

    #[test]
    fn field_s11_check_warns_of_declared_cpus_that_the_quota_does_not_allow() {
        let warnings = warned("cgroup = \"/web\"\ncpus = 2.0");
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        assert!(warning.contains("its quota allows 0.5"), "{warning}");
        assert!(
            warning.contains("tidegate.toml:4:8: scope[0].cpus"),
            "{warning}"
        );
        assert_eq!(
            warned("cgroup = \"/web\"\ncpus = 0.5"),
            Vec::<String>::new()
        );
    }
}
