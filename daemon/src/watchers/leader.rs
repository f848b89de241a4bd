//! Watchers and providers of all sections: they run on the leader, each with the API of its own member.
//!
//! A new leadership starts them anew: what an earlier one knew of a cluster proves nothing.

use std::sync::Arc;

use axum::Router;
use futures::future::{join_all, pending};
use ipam_raft::node::Node;
use tokio::sync::watch::Receiver;

use super::provider::{self, names};
use super::watcher;
use crate::config::{ClusterApiSettings, KubernetesSettings};
use crate::tasks::Statuses;

/// Sections of the configuration.
#[derive(Debug)]
pub struct Sections {
    /// Clusters to watch.
    pub kubernetes: Vec<KubernetesSettings>,
    /// Management clusters to serve.
    pub cluster_api: Vec<ClusterApiSettings>,
}

/// Runs the watchers and providers of all sections while this member leads, until it is aborted.
pub async fn run(node: Node, router: Router, sections: Sections, statuses: Arc<Statuses>) {
    let Sections { kubernetes, cluster_api } = sections;
    let named: Vec<_> = names(&cluster_api).into_iter().zip(&cluster_api).collect();
    let (kubernetes, named, router, statuses) = (&kubernetes, &named, &router, &*statuses);
    let all = move |number| async move {
        let watchers = kubernetes.iter().map(|section| watcher::run(section, router, number, statuses));
        let providers =
            named.iter().map(|(name, section)| provider::run(name, section, router, number, statuses));
        tokio::join!(join_all(watchers), join_all(providers));
    };
    in_each(node.leadership(), all).await;
}

/// Does the work once in each leadership of this member; both end together.
async fn in_each<F: Future<Output = ()>>(mut leadership: Receiver<Option<u64>>, work: impl Fn(u64) -> F) {
    while leadership.wait_for(Option::is_some).await.is_ok() {
        let Some(number) = *leadership.borrow() else { continue };
        let work = async {
            work(number).await;
            // Without sections it is done at once, and the leadership goes on.
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
        tokio::join!(in_each(leadership, work), changes);
        assert_eq!(*done.borrow(), [3, 5, 6]);
    }
}
