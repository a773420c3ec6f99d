//! A value that is replaced as a whole while others read it without a lock.
#![expect(
    unsafe_code,
    reason = "a pointer that is swapped has no safe form without a count"
)]

use crate::sync::{AtomicPtr, Ordering};

/// Holds one value at a time; readers get a reference that stays valid for ever.
///
/// Replaced values are leaked: meant for things that change a few times in the life of a process
/// (a session with the agent), where a count of readers would cost more than the memory.
#[derive(Debug)]
pub struct PublishedValue<T: Sync + 'static> {
    current: AtomicPtr<T>,
}

impl<T: Sync + 'static> PublishedValue<T> {
    /// Holds `value`.
    pub fn new(value: T) -> Self {
        Self {
            current: AtomicPtr::new(Box::into_raw(Box::new(value))),
        }
    }

    /// The value now.
    #[inline]
    pub fn get(&self) -> &'static T {
        // Acquire: pairs with the Release in `set`; the value is whole before it is seen.
        let value = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer came from `Box::into_raw` in `new` or `set` and is never freed, and
        // `T: Sync` lets every thread hold a shared reference.
        unsafe { &*value }
    }

    /// Replaces the value; the old one stays valid for those who read it.
    pub fn set(&self, value: T) {
        // Release: pairs with the Acquire in `get`.
        self.current
            .store(Box::into_raw(Box::new(value)), Ordering::Release);
    }
}
