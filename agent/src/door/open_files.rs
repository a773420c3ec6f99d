//! Room for a descriptor per connection, beside the agent's own files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Fewest files that must be allowed to be open.
///
/// What the agent always needs are pages, sockets, signals of the host and programs in the kernel, about 100; the
/// rest is for groups, processes and connections.
pub const LEAST: u64 = 256;

/// Of these the connections leave so many alone.
const OWN: u64 = 128;

/// Files of a place at both sockets: a socket and a pidfd, a socket over HTTP, and as many again for the files of
/// groups and processes, whose number is not known beforehand.
const FILES_OF_PLACE: u64 = 4;

/// Too few files may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "open files: the hard limit is {0}, at least {LEAST} are needed, and 4 more for each service; raise it \
     (LimitNOFILE= of the unit, --ulimit nofile= of a container, ulimit -Hn as root)"
)]
pub struct TooFew(u64);

/// Raises the soft limit of open files to the hard one.
///
/// # Errors
/// Not even that many are enough to serve.
pub fn raise_limit() -> Result<(), TooFew> {
    let (soft, hard) = limits();
    if hard < LEAST {
        return Err(TooFew(hard));
    }
    if soft == hard {
        return Ok(());
    }
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => tracing::info!(
            event = "open_files_raised",
            soft,
            hard,
            "raised the limit of open files to the hard limit"
        ),
        Err(errno) => {
            tracing::warn!(event = "open_files_limited", %errno, soft, hard, "cannot raise the limit of open files");
            if soft < LEAST {
                return Err(TooFew(soft));
            }
        }
    }
    Ok(())
}

/// Most connections to each of the two sockets for which there are files, `most` at most: who comes after them is
/// told so, where a connection without a file would wait for ever.
pub fn connections(most: usize) -> usize {
    within(limits().0, most)
}

fn within(limit: u64, most: usize) -> usize {
    let places = limit.saturating_sub(OWN) / FILES_OF_PLACE;
    usize::try_from(places).unwrap_or(most).min(most)
}

/// The soft limit and the hard one.
fn limits() -> (u64, u64) {
    // The call knows this resource, so it does not fail.
    getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((u64::MAX, u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_agent() {
        assert_eq!(within(LEAST, 4096), 32);
        assert_eq!(within(1024, 4096), 224);
        assert_eq!(within(524_288, 4096), 4096);
        assert_eq!(within(u64::MAX, 4096), 4096);
        assert_eq!(within(16, 4096), 0);
    }

    #[test]
    fn too_few_are_told_with_what_is_needed_and_how_to_get_it() {
        let text = TooFew(16).to_string();
        assert!(text.starts_with("open files: the hard limit is 16, at least 256 are needed"));
        assert!(text.contains("LimitNOFILE="), "{text}");
    }
}
