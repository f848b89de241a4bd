//! Trials: commands on a copy of the state, for dry runs and explanations.
//!
//! A trial costs as much as its command, and no log limits its rate. So trials run one at a time, on a thread
//! with a lower priority than those of the log and of `apply`, and a caller may have few of them waiting.

use std::sync::Arc;

use ipam_api::limits::TRIALS_PER_PRINCIPAL_MAX;
use ipam_api::{Code, Problem};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::in_flight::InFlight;

/// Number of trials that run at once.
const TRIALS_AT_ONCE: usize = 1;

/// Queue of trials.
#[derive(Debug, Clone)]
pub(in crate::http) struct Trials {
    turns: Arc<Semaphore>,
    waiting: InFlight,
}

impl Default for Trials {
    fn default() -> Self {
        let turns = Arc::new(Semaphore::new(TRIALS_AT_ONCE));
        Self { turns, waiting: InFlight::new(TRIALS_PER_PRINCIPAL_MAX) }
    }
}

impl Trials {
    /// Runs a trial of a principal when its turn comes.
    ///
    /// # Errors
    /// `too-many-requests` if the principal has too many trials waiting, `overloaded` if no turn came in
    /// time.
    pub(in crate::http) async fn run<T: Send + 'static>(
        &self,
        principal: &str,
        deadline: Instant,
        trial: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(waiting) = self.waiting.begin(principal.to_owned()) else {
            let detail = format!(
                "{} has {TRIALS_PER_PRINCIPAL_MAX} dry runs and explanations waiting",
                ipam_api::name::shown(principal)
            );
            return Err(Problem::new(Code::TooManyRequests, detail));
        };
        let turn = timeout_at(deadline, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            let detail = "no turn for a dry run or an explanation came within the request's time";
            return Err(Problem::new(Code::Overloaded, detail));
        };
        let tried = ipam_raft::blocking(move || {
            let tried = trial();
            // The slots are released with the trial, not with the request, which may have been cancelled.
            drop((turn, waiting));
            tried
        });
        tried.await.map_err(|_| Problem::new(Code::Internal, "the trial has ended without an answer"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test]
    async fn a_principal_has_few_trials_waiting_and_keeps_the_turn_of_no_other() {
        let trials = Trials::default();
        let (release, until) = mpsc::channel::<()>();
        let (mine, busy) = (trials.clone(), trials.clone());
        let first = tokio::spawn(async move { mine.run("me", soon(), move || until.recv().is_err()).await });
        while busy.turns.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let waiting: Vec<_> = (1..TRIALS_PER_PRINCIPAL_MAX)
            .map(|number| {
                let trials = trials.clone();
                tokio::spawn(async move { trials.run("me", soon(), move || number).await })
            })
            .collect();
        // All trials have been polled, and so counted, before this task runs again.
        tokio::task::yield_now().await;
        let refused = trials.run("me", Instant::now(), || 0).await.unwrap_err();
        let late = trials.run("you", Instant::now(), || 0).await.unwrap_err();
        // Release before any assertion: a failed test would otherwise wait for its thread.
        drop(release);
        assert_eq!(refused.code, Code::TooManyRequests);
        assert!(refused.detail.contains("dry runs and explanations waiting"), "{}", refused.detail);
        assert_eq!(late.code, Code::Overloaded);
        assert_eq!(trials.run("you", soon(), || 7).await.unwrap(), 7);
        assert!(first.await.unwrap().unwrap());
        for (trial, number) in waiting.into_iter().zip(1..) {
            assert_eq!(trial.await.unwrap().unwrap(), number);
        }
    }
}
