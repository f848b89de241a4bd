//! Work that runs once in each leadership of this member, such as watchers.

use std::future::{Future, pending};

use tokio::sync::watch::Receiver;

/// Runs the work once in each leadership of this member, and cancels it when the leadership ends.
pub(crate) async fn in_each_leadership<F: Future<Output = ()>>(
    mut leadership: Receiver<Option<u64>>,
    work: impl Fn(u64) -> F,
) {
    while leadership.wait_for(Option::is_some).await.is_ok() {
        let Some(number) = *leadership.borrow() else { continue };
        let work = async {
            work(number).await;
            // Work without sections ends at once, and must not run again in the same leadership.
            pending::<()>().await;
        };
        tokio::select! {
            () = work => {}
            ended = leadership.wait_for(|now| *now != Some(number)) => {
                if ended.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;

    use tokio::sync::watch::channel;

    use super::*;

    #[tokio::test]
    async fn work_that_is_done_is_not_done_again_in_the_same_leadership() {
        let (leads, leadership) = channel(None);
        let done = RefCell::new(Vec::new());
        let work = |number| {
            done.borrow_mut().push(number);
            ready(())
        };
        let changes = async {
            for now in [Some(3), Some(3), None, Some(5), Some(6)] {
                leads.send_replace(now);
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            drop(leads);
        };
        tokio::join!(in_each_leadership(leadership, work), changes);
        assert_eq!(*done.borrow(), [3, 5, 6]);
    }
}
