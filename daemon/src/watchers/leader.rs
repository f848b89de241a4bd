//! Watchers and providers of all sections: they run on the leader, each with the API of its own member.
//!
//! Each leadership starts them anew: what an earlier leadership observed in a cluster may be outdated.

use std::sync::Arc;

use axum::Router;
use futures::future::join_all;
use ipam_raft::node::Node;

use super::provider::{self, names};
use super::watcher;
use crate::config::{ClusterApiSettings, KubernetesSettings};
use crate::tasks::{Statuses, in_each_leadership};

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
    in_each_leadership(node.leadership(), all).await;
}
