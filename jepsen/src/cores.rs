//! Work on all cores of this machine, for items that do not depend on each other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{available_parallelism, scope};

use anyhow::{Result, bail};

/// Calls a function with each item and its index. No call begins after one that returns false or an error.
///
/// # Errors
/// An error of a call, or if a call panics.
pub(crate) fn for_each<T: Sync>(items: &[T], work: impl Fn(usize, &T) -> Result<bool> + Sync) -> Result<()> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || -> Result<()> {
        while !is_over.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(index) else { break };
            let goes_on = work(index, item).inspect_err(|_| is_over.store(true, Relaxed))?;
            is_over.fetch_or(!goes_on, Relaxed);
        }
        Ok(())
    };
    let workers = available_parallelism().map_or(1, usize::from);
    scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(_) => bail!("a worker has panicked"),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;
    use crate::sync::held;

    #[test]
    fn each_item_is_worked_on_once_until_a_call_ends_the_work() {
        let items: Vec<usize> = (0..1_000).collect();
        let seen = Mutex::new(BTreeSet::new());
        let all = for_each(&items, |index, item| Ok(held(&seen).insert((index, *item))));
        assert!(all.is_ok() && held(&seen).iter().all(|(index, item)| index == item));
        assert_eq!(held(&seen).len(), items.len());
        for ends in [|| Ok(false), || bail!("broken")] {
            let calls = AtomicUsize::new(0);
            let done = for_each(&items, |_, _| {
                calls.fetch_add(1, Relaxed);
                ends()
            });
            assert_eq!(done.is_ok(), ends().is_ok());
            assert!(calls.load(Relaxed) < items.len());
        }
    }
}
