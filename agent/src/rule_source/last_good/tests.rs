//! What is kept comes back as it was, or is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;

use super::*;

fn key(tenant: &str) -> Key {
    Key {
        tenant: tenant.to_owned(),
        kind: DIRECTORY,
    }
}

fn document(name: &str, text: &str) -> Document {
    Document {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn only_file(state: &Path) -> PathBuf {
    let mut files = fs::read_dir(state.join(FOLDER)).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "one file, and nothing half-written");
    file
}

fn refusal(store: &LastGood) -> String {
    store.load(&key("default")).unwrap_err().to_string()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

proptest! {
    // Each case waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn field_b12_what_is_kept_comes_back_for_whatever_tenant(
        tenants in proptest::collection::btree_map(".{0,300}", proptest::collection::vec((".*", ".*"), 0..4), 1..4),
    ) {
        let state = tempfile::tempdir().unwrap();
        let store = LastGood::below(&state.path().join("later"));
        let documents = |texts: &[(String, String)]| -> Vec<Document> {
            texts.iter().map(|(name, text)| document(name, text)).collect()
        };
        for (tenant, texts) in &tenants {
            prop_assert!(store.load(&key(tenant)).unwrap().is_none());
            store.keep(&key(tenant), vec![document("old", "old")]).unwrap();
            store.keep(&key(tenant), documents(texts)).unwrap();
        }
        for (tenant, texts) in &tenants {
            prop_assert_eq!(store.load(&key(tenant)).unwrap(), Some(documents(texts)));
        }
    }

    #[test]
    fn field_b12_a_byte_that_is_another_one_is_noticed(at in 0_usize..200, byte: u8) {
        let state = tempfile::tempdir().unwrap();
        let store = LastGood::below(state.path());
        let documents = vec![document("a.toml", "[[flow]]\nresource = \"a\"\ncount = 100\n")];
        store.keep(&key("default"), documents.clone()).unwrap();
        let file = only_file(state.path());
        let mut bytes = fs::read(&file).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        fs::write(&file, &bytes).unwrap();
        // White space and other spellings of the same may pass; other rules may not.
        if let Ok(loaded) = store.load(&key("default")) {
            prop_assert_eq!(loaded, Some(documents));
        }
    }
}

#[test]
fn field_b12_only_the_agent_can_read_what_is_kept_and_what_others_can_write_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let store = LastGood::below(state.path());
    let documents = vec![document("a.toml", "x")];
    store.keep(&key("default"), documents.clone()).unwrap();
    let (file, folder) = (only_file(state.path()), state.path().join(FOLDER));
    let bits = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((bits(&folder), bits(&file)), (0o700, 0o600));
    mode(&file, 0o620);
    assert!(refusal(&store).ends_with("can be written by others"));
    mode(&file, 0o600);
    mode(&folder, 0o702);
    assert!(refusal(&store).ends_with("can be written by others"));
    mode(&folder, 0o700);
    let elsewhere = state.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    refusal(&store);
    // It is written anew over whatever lies there, and never through a link.
    store.keep(&key("default"), documents.clone()).unwrap();
    assert!(!only_file(state.path()).is_symlink());
    assert_eq!(store.load(&key("default")).unwrap(), Some(documents));
}

#[test]
fn field_b12_what_is_cut_off_of_another_version_or_too_large_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let store = LastGood::below(state.path());
    store
        .keep(&key("default"), vec![document("a.toml", "x")])
        .unwrap();
    let file = only_file(state.path());
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace("\"version\":1", "\"version\":2")).unwrap();
    assert!(refusal(&store).ends_with("is of another version of the agent"));
    fs::write(&file, whole.replace("\"default\"", "\"shop\"")).unwrap();
    assert!(refusal(&store).ends_with("has the rules of another tenant"));
    for bytes in [0, 1, whole.len() - 1] {
        fs::write(&file, &whole.as_bytes()[..bytes]).unwrap();
        assert!(refusal(&store).contains("is damaged"), "{bytes}");
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    refusal(&store);
    File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    refusal(&store);
    let much = vec![document("a.toml", &"x".repeat(SIZE_MAX))];
    let refused = store.keep(&key("default"), much).unwrap_err().to_string();
    assert!(
        refused.ends_with("of more than 16 MiB are not kept"),
        "{refused}"
    );
}

#[test]
fn field_b12_a_state_directory_that_takes_nothing_is_an_error_and_no_end() {
    let state = tempfile::tempdir().unwrap();
    let in_the_way = state.path().join("state");
    fs::write(&in_the_way, "").unwrap();
    let store = LastGood::below(&in_the_way);
    store.keep(&key("default"), Vec::new()).unwrap_err();
    refusal(&store);
    let nowhere = LastGood::below(&state.path().join("nowhere"));
    assert_eq!(nowhere.load(&key("default")).unwrap(), None);
}
