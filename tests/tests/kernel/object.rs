//! The prebuilt objects are the ones that their checksums name.

use std::path::Path;

use tidegate_tests::skip;

#[test]
fn the_prebuilt_objects_have_their_checksums() {
    let Some(mut sums) = skip::tool("sha256sum", "--version") else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ebpf/prebuilt");
    let output = sums
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(folder)
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{output:?}; ebpf/build writes both"
    );
    let told = String::from_utf8_lossy(&output.stdout);
    for architecture in ["x86_64", "aarch64"] {
        assert!(told.contains(architecture), "{told}");
    }
}
