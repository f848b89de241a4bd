//! Broken invariants: the machine stops rather than continue from a state that can't be right.
//!
//! `apply` has no error: it refuses a command, or carries it out completely. A broken invariant is neither,
//! and no caller inside the machine could handle it. So [`broken`] unwinds, with a typed payload, to the
//! thread that called the machine. A state isn't published while the machine changes it, so the unwinding
//! discards the changed state.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

/// An invariant of the machine that doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invariant broken: {invariant}: {detail}")]
pub struct Broken {
    /// Name of the invariant, the same for each place that relies on it.
    pub invariant: &'static str,
    /// Ids and values that contradict the invariant.
    pub detail: String,
}

impl Broken {
    /// Calls the machine, and catches a broken invariant. Any other panic continues to unwind.
    ///
    /// # Errors
    /// The broken invariant. The values that `call` was changing must not be read again.
    pub fn catch<R>(call: impl FnOnce() -> R) -> Result<R, Self> {
        catch_unwind(AssertUnwindSafe(call)).map_err(|payload| match payload.downcast::<Self>() {
            Ok(broken) => *broken,
            Err(other) => resume_unwind(other),
        })
    }
}

/// Stops the machine: the invariant doesn't hold. The member ends with this reason, see [`Broken::catch`].
#[track_caller]
#[expect(clippy::panic, reason = "the one place where the machine panics on purpose; each caller catches it")]
pub fn broken(invariant: &'static str, detail: impl Into<String>) -> ! {
    panic_any(Broken { invariant, detail: detail.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_reaches_the_caller_by_its_name() {
        assert_eq!(Broken::catch(|| 7), Ok(7));
        let caught = Broken::catch(|| broken("pool of an allocation", format!("allocation {}", 5)));
        let expected = Broken { invariant: "pool of an allocation", detail: "allocation 5".to_owned() };
        assert_eq!(caught, Err::<(), _>(expected));
    }

    #[test]
    fn another_panic_passes_through() {
        let passed = catch_unwind(|| Broken::catch(|| panic_any("other")));
        assert_eq!(passed.unwrap_err().downcast_ref(), Some(&"other"));
    }
}
