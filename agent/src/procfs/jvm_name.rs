//! How a JVM is known.

/// Whether a thread's name tells a JVM: its launcher, which is the first thread of its process, or a thread that every
/// `HotSpot` has.
pub(crate) fn names_jvm(is_first: bool, name: &[u8]) -> bool {
    name == b"VM Thread" || (is_first && name == b"java")
}
