//! Room for a descriptor per connection.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, and returns what it is then.
pub fn raise_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(errno) => {
            tracing::warn!(%errno, soft, hard, "the limit of open files stays as it is");
            soft
        }
    }
}
