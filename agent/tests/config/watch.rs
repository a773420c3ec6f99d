//! A watched directory says when its rules are to be read again, and is read when nobody writes to it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidegate_agent::rule::QuirksOption;
use tidegate_agent::rule_source::{DirectorySource, DirectoryWatch, RuleSource as _};

const DEADLINE: Duration = Duration::from_secs(10);

const RULE: &str = "[[flow]]\nresource = \"a\"\ncount = 1\n";

fn run<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, task).await.unwrap() })
}

fn wait(watch: &mut DirectoryWatch) {
    run(watch.changed()).unwrap();
}

fn rules(directory: &Path) -> usize {
    let source = DirectorySource::new(directory);
    source
        .read()
        .build(QuirksOption::None)
        .unwrap()
        .rules()
        .len()
}

/// Waits for changes until there are so many rules.
fn wait_for(watch: &mut DirectoryWatch, directory: &Path, count: usize) {
    while rules(directory) != count {
        wait(watch);
    }
}

#[test]
fn a_file_written_moved_or_removed_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let mut watch = DirectoryWatch::new(directory.path());
    assert!(!watch.look());

    let file = directory.path().join("a.toml");
    fs::write(&file, RULE).unwrap();
    wait(&mut watch);
    assert_eq!(rules(directory.path()), 1);

    fs::rename(&file, directory.path().join("a.off")).unwrap();
    wait(&mut watch);
    assert_eq!(rules(directory.path()), 0);

    fs::remove_file(directory.path().join("a.off")).unwrap();
    wait(&mut watch);
    assert!(!watch.look());
}

#[test]
fn field_r10_a_file_that_is_written_in_place_is_read_when_it_is_still() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.toml");
    let source = DirectorySource::new(directory.path());
    // Half of it is a valid file, with one rule.
    let whole = RULE.to_owned() + &RULE.replace('a', "b");
    let end = AtomicBool::new(false);
    let write = || {
        let (mut last, mut longest_rest) = (Instant::now(), Duration::ZERO);
        while !end.load(Ordering::Relaxed) {
            let mut file = fs::File::create(&path).unwrap();
            for byte in whole.as_bytes().chunks(10) {
                file.write_all(byte).unwrap();
                longest_rest = longest_rest.max(last.elapsed());
                last = Instant::now();
            }
        }
        longest_rest
    };
    fs::write(&path, &whole).unwrap();
    let (tried, longest_rest) = std::thread::scope(|scope| {
        let writer = scope.spawn(write);
        let tried = [(); 3].map(|()| run(source.read_still()).build(QuirksOption::None));
        end.store(true, Ordering::Relaxed);
        (tried, writer.join().unwrap())
    });
    // On a busy machine the writer itself may stand still for as long as it takes to be read.
    let wrote_on = longest_rest < Duration::from_millis(40);
    for rules in tried {
        match rules {
            Ok(rules) => assert!(rules.rules().len() == 2 || !wrote_on, "half a file"),
            Err(faults) => {
                let fault = faults[0].to_string();
                assert!(fault.contains("a.toml: it never stops changing"), "{fault}");
            }
        }
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(
        run(source.read_still())
            .build(QuirksOption::None)
            .unwrap()
            .rules()
            .len(),
        2
    );
}

#[test]
fn field_r9_a_link_that_is_swapped_above_the_directory_is_a_change() {
    let above = tempfile::tempdir().unwrap();
    for (release, count) in [("rel/1/rules.d", 1), ("rel/2/rules.d", 2)] {
        let release = above.path().join(release);
        fs::create_dir_all(&release).unwrap();
        for number in 0..count {
            fs::write(
                release.join(format!("{number}.toml")),
                RULE.replace('a', &format!("r{number}")),
            )
            .unwrap();
        }
    }
    let current = above.path().join("current");
    symlink("rel/1", &current).unwrap();
    let directory = current.join("rules.d");
    let mut watch = DirectoryWatch::new(&directory);
    assert_eq!(rules(&directory), 1);
    let next = above.path().join("next");
    symlink("rel/2", &next).unwrap();
    fs::rename(&next, &current).unwrap();
    wait(&mut watch);
    assert_eq!(rules(&directory), 2);
    // And what happens in the new one.
    fs::remove_file(directory.join("0.toml")).unwrap();
    wait(&mut watch);
    assert_eq!(rules(&directory), 1);
}

#[test]
fn field_r9_the_way_kubernetes_swaps_files_is_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for (version, count) in [("..1", "1"), ("..2", "2")] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("a.toml"), RULE.replace('1', count)).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/a.toml", at("a.toml")).unwrap();
    let mut watch = DirectoryWatch::new(directory.path());
    symlink("..2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    wait(&mut watch);
    let rules = DirectorySource::new(directory.path())
        .read()
        .build(QuirksOption::None)
        .unwrap();
    assert_eq!(
        rules.rules()[0].body.flow().unwrap().count.get().to_bits(),
        2.0_f64.to_bits()
    );
    assert_eq!(
        rules.warnings(),
        [],
        "what Kubernetes needs is nothing to warn of"
    );
}

#[test]
fn field_r9_what_a_link_leads_to_is_watched() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("a.toml");
    fs::write(&target, RULE).unwrap();
    let mut watch = DirectoryWatch::new(directory.path());
    symlink(&target, directory.path().join("a.toml")).unwrap();
    wait(&mut watch);
    assert_eq!(rules(directory.path()), 1);
    fs::write(&target, RULE.to_owned() + &RULE.replace('a', "b")).unwrap();
    wait_for(&mut watch, directory.path(), 2);
    fs::write(elsewhere.path().join("b.toml"), "").unwrap();
    fs::rename(elsewhere.path().join("b.toml"), &target).unwrap();
    wait_for(&mut watch, directory.path(), 0);
}

#[test]
fn a_directory_may_come_later_and_be_replaced() {
    let above = tempfile::tempdir().unwrap();
    let directory = above.path().join("etc/rules.d");
    let mut watch = DirectoryWatch::new(&directory);
    assert_eq!(rules(&directory), 0);

    fs::create_dir_all(&directory).unwrap();
    wait(&mut watch);
    fs::write(directory.join("a.toml"), RULE).unwrap();
    wait_for(&mut watch, &directory, 1);

    fs::rename(&directory, above.path().join("etc/old.d")).unwrap();
    wait(&mut watch);
    fs::create_dir(&directory).unwrap();
    wait(&mut watch);
    fs::write(directory.join("b.toml"), RULE).unwrap();
    wait_for(&mut watch, &directory, 1);
}

#[test]
fn field_r12_files_that_are_not_read_are_said() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("shop")).unwrap();
    fs::create_dir(at("..2026")).unwrap();
    for name in [
        "a.toml",
        "b.yaml",
        "all.toml.bak",
        ".hidden.json",
        "shop/flow.json",
        "README.md",
        ".a.toml.swp",
    ] {
        fs::write(at(name), "").unwrap();
    }
    let set = DirectorySource::new(directory.path())
        .read()
        .build(QuirksOption::None)
        .unwrap();
    let told: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
    let expected = [
        (
            ".hidden.json",
            "hidden files are left alone: rename it without the dot",
        ),
        (
            "all.toml.bak",
            "rename it if it is meant; move it away if it is not",
        ),
        (
            "b.yaml",
            "rename it if it is meant; move it away if it is not",
        ),
        (
            "shop",
            "directories are not entered: move its files up, or name it as rules.dir",
        ),
    ];
    let expected = expected.map(|(name, hint)| {
        let path = at(name);
        format!(
            "{}: not read; allowed: *.toml, *.json and data ids such as order-flow-rules, in the directory itself; {hint}",
            path.display()
        )
    });
    assert_eq!(told, expected);
}

#[test]
fn field_b9_nothing_is_quoted_of_a_file_behind_a_link_that_leads_out() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("shadow");
    let link = directory.path().join("s.toml");
    symlink(&secret, &link).unwrap();
    for text in [
        "root:$y$hash:1",
        "hash = 5\n",
        "[hash]\n",
        "[[flow]]\nresource = \"a\"\ncount = \"hash\"\nhash = 1",
    ] {
        fs::write(&secret, text).unwrap();
        let faults = DirectorySource::new(directory.path())
            .read()
            .build(QuirksOption::None)
            .unwrap_err();
        for fault in faults {
            let told = format!("{fault} {fault:?}");
            assert!(!told.contains("hash"), "{told}");
            assert!(told.contains("s.toml:"), "{told}");
        }
    }
    // What the directory itself holds is quoted, behind links as well.
    let inside = directory.path().join("t.txt");
    fs::write(&inside, "hash = 5\n").unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&inside, &link).unwrap();
    let faults = DirectorySource::new(directory.path())
        .read()
        .build(QuirksOption::None)
        .unwrap_err();
    assert!(faults[0].to_string().contains("hash"), "{:?}", faults[0]);
}

#[test]
fn field_b9_nothing_is_quoted_of_a_hard_link_to_a_file_that_others_may_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let secret = elsewhere.path().join("shadow");
    fs::write(&secret, "hash = 5\n").unwrap();
    fs::hard_link(&secret, directory.path().join("s.toml")).unwrap();
    let told = || {
        let source = DirectorySource::new(directory.path());
        let faults = source.read().build(QuirksOption::None).unwrap_err();
        format!("{} {faults:?}", faults[0])
    };
    set_mode(directory.path(), 0o755);
    set_mode(&secret, 0o600);
    assert!(!told().contains("hash"), "{}", told());
    assert!(told().contains("not all who may read"), "{}", told());
    set_mode(&secret, 0o644);
    assert!(told().contains("hash"), "{}", told());
    // A file of another owner, where this user may give one away.
    if chown(&secret, Some(12_345), None).is_ok() {
        assert!(!told().contains("hash"), "{}", told());
    }
}
