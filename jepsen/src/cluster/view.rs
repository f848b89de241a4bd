//! View of a cluster for nemeses.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use ipam_api::client::Call;
use ipam_api::cluster::Cluster as Shown;

use super::{Cluster, control};
use crate::nemesis::{Kind, View};

/// Time limit of a member's answer: a stopped one has none.
const PATIENCE: Duration = Duration::from_millis(300);

/// State of the members, as far as they answer.
pub(super) async fn view<C: Cluster>(cluster: &mut C) -> View {
    if let Err(error) = cluster.reap() {
        eprintln!("{error:#}");
    }
    let members = cluster.names();
    let touched: BTreeSet<String> = cluster.active().iter().flat_map(|fault| fault.kind.touched()).collect();
    let restores = cluster.active().iter().any(|fault| fault.kind == Kind::Restore);
    let running: Vec<String> = members.iter().filter(|name| cluster.is_started(name)).cloned().collect();
    let is_healthy = |name: &&String| {
        let is_lost = cluster.standing(name).is_ok_and(|standing| standing.must_rejoin);
        !is_lost && !restores && !touched.contains(*name)
    };
    let healthy = running.iter().filter(is_healthy).cloned().collect();
    View { members, running, leader: leader(cluster).await, hosts: cluster.hosts(), healthy }
}

/// The leader of the highest term that any member knows.
pub(super) async fn leader<C: Cluster>(cluster: &C) -> Option<String> {
    let shown = shown(cluster).await.into_iter();
    let known = shown.filter_map(|(_, shown)| Some((shown.term, shown.leader?)));
    let (_, leader) = known.max_by_key(|(term, _)| *term)?;
    cluster.names().contains(&leader).then_some(leader)
}

/// The cluster as each member that answers shows it.
pub(crate) async fn shown<C: Cluster>(cluster: &C) -> Vec<(String, Shown)> {
    let names = cluster.names();
    let ask = names.iter().filter(|name| cluster.answers(name)).map(async |name| {
        let call = Call::get("/v1/cluster").within(PATIENCE);
        Some((name.clone(), control(cluster, name).ok()?.call(call).await.ok()?))
    });
    join_all(ask).await.into_iter().flatten().collect()
}
