//! Locks that a panic doesn't close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic of its last holder: the contents are valid at each instant.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
