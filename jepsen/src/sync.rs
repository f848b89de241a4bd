//! Locks that ignore poisoning by a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not its last holder panicked.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
