//! Pause: tasks of a paused member get no turn, like those of a process under SIGSTOP.
//!
//! Time goes on meanwhile, and so do messages on their way. At the end the tasks find that their timers have
//! passed.

#[cfg(any(test, feature = "testing"))]
mod simulated {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::{Poll, Waker};

    use tokio::runtime::{Handle, Id};

    use super::super::present;
    use super::super::random::random;

    /// Runtime of a paused member.
    struct Paused {
        runtime: Id,
        /// Tasks that wait for their turn.
        waiting: Vec<Waker>,
        /// Number of turns that tasks did not get.
        refused: u64,
    }

    thread_local! {
        static PAUSED: RefCell<Vec<Paused>> = const { RefCell::new(Vec::new()) };
    }

    /// Pauses the tasks of a runtime. A pause in progress continues.
    pub fn pause(runtime: Id) {
        PAUSED.with_borrow_mut(|paused| {
            if paused.iter().all(|one| one.runtime != runtime) {
                paused.push(Paused { runtime, waiting: Vec::new(), refused: 0 });
            }
        });
    }

    /// Ends the pause of a runtime, whose tasks continue in random order; returns the number of turns that
    /// they did not get.
    pub fn resume(runtime: Id) -> u64 {
        let ended = PAUSED.with_borrow_mut(|paused| {
            let at = paused.iter().position(|one| one.runtime == runtime)?;
            Some(paused.remove(at))
        });
        let Some(Paused { mut waiting, refused, .. }) = ended else { return 0 };
        // The order is random, since a real scheduler guarantees none either.
        while !waiting.is_empty() {
            let next = random().unwrap_or_default() % waiting.len() as u64;
            waiting.swap_remove(usize::try_from(next).unwrap_or_default()).wake();
        }
        refused
    }

    /// Task that gets no turn while the runtime that it runs on is paused.
    pub async fn pausable<F: Future>(task: F) -> F::Output {
        let mut task = pin!(task);
        poll_fn(
            move |context| if waits(context.waker()) { Poll::Pending } else { task.as_mut().poll(context) },
        )
        .await
    }

    /// Returns true if the runtime is paused. The waker is called at the end of the pause.
    fn waits(waker: &Waker) -> bool {
        if present().is_none() || PAUSED.with_borrow(Vec::is_empty) {
            return false;
        }
        let here = Handle::current().id();
        PAUSED.with_borrow_mut(|paused| {
            let Some(paused) = paused.iter_mut().find(|one| one.runtime == here) else { return false };
            paused.refused += 1;
            if !paused.waiting.iter().any(|other| other.will_wake(waker)) {
                paused.waiting.push(waker.clone());
            }
            true
        })
    }
}

#[cfg(not(any(test, feature = "testing")))]
mod simulated {
    /// Task that a simulation may pause: the task itself.
    pub(crate) const fn pausable<F: Future>(task: F) -> F {
        task
    }
}

#[cfg(not(any(test, feature = "testing")))]
pub(crate) use self::simulated::pausable;
#[cfg(any(test, feature = "testing"))]
pub use self::simulated::{pausable, pause, resume};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Handle;
    use tokio::time::{Instant, sleep};

    use super::super::enter;
    use super::*;
    use crate::store::NOWHERE;

    #[tokio::test(start_paused = true)]
    async fn a_paused_task_finds_its_timer_passed() {
        enter(NOWHERE);
        let here = Handle::current().id();
        let begun = Instant::now();
        let task = tokio::spawn(pausable(async move {
            sleep(Duration::from_secs(1)).await;
            begun.elapsed()
        }));
        assert_eq!(resume(here), 0, "nothing is paused");
        sleep(Duration::from_millis(500)).await;
        pause(here);
        sleep(Duration::from_secs(4)).await;
        pause(here);
        assert!(!task.is_finished());
        assert_eq!(resume(here), 1, "the turn after the timer");
        assert_eq!(task.await.unwrap(), Duration::from_millis(4500));
        assert_eq!(tokio::spawn(pausable(async { 7 })).await.unwrap(), 7);
    }
}
