//! Other users, for tests that root runs.

use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

use crate::skip;

/// Two users that own nothing.
pub const TWO: [u32; 2] = [65_533, 65_532];

/// Whether the test is root's; says that it is skipped if not.
pub fn are_at_hand() -> bool {
    is_root("to run parts as other users")
}

/// The same; `why` says what root is needed for.
pub fn is_root(why: &str) -> bool {
    let root = geteuid().is_root();
    if !root {
        skip::skip(&format!("needs root, {why}"));
    }
    root
}

/// Calls `act` as another user, on a thread of its own: users are the kernel's matter for each thread.
///
/// # Panics
/// If the user cannot be taken on, or `act` panics.
#[expect(clippy::expect_used, reason = "a test ends here")]
pub fn act_as<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let user = Uid::from_raw(uid);
            set_thread_res_uid(user, user, user).expect("root may become anybody");
            act()
        });
        acting.join().expect("it acts to its end")
    })
}
