//! View of a lab for nemeses.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use ipam_api::client::Call;
use ipam_api::cluster::Cluster;

use super::cluster::Lab;
use crate::nemesis::{Change, Kind, View};

/// Time limit of a member's answer: a paused member has none.
const PATIENCE: Duration = Duration::from_millis(300);
/// Hosts with an agent or with clients.
const HOSTS: [&str; 3] = ["c1", "c2", "x1"];

impl Lab {
    /// State of the members, as far as they answer.
    pub(super) async fn look(&mut self) -> View {
        if let Err(error) = self.reap() {
            eprintln!("{error:#}");
        }
        let members = self.member_names();
        let touched: BTreeSet<String> = self.active.iter().flat_map(|fault| touched(&fault.kind)).collect();
        let restores = self.active.iter().any(|fault| fault.kind == Kind::Restore);
        let running = self.members.iter().filter(|member| member.is_started());
        let running: Vec<String> = running.map(|member| member.name.clone()).collect();
        let whole = |member: &&super::member::Member| {
            member.is_started() && !member.must_rejoin && !restores && !touched.contains(&member.name)
        };
        let healthy = self.members.iter().filter(whole).map(|member| member.name.clone()).collect();
        View {
            members,
            running,
            leader: self.leader().await,
            hosts: HOSTS.map(str::to_owned).to_vec(),
            healthy,
        }
    }

    /// The leader of the highest term that any member knows.
    pub(super) async fn leader(&self) -> Option<String> {
        let shown = self.shown().await;
        let known = shown.into_iter().filter_map(|(_, shown)| Some((shown.term, shown.leader?)));
        let (_, leader) = known.max_by_key(|(term, _)| *term)?;
        self.members.iter().any(|member| member.name == leader).then_some(leader)
    }

    /// The cluster as each member that answers shows it.
    pub(super) async fn shown(&self) -> Vec<(String, Cluster)> {
        let able = |member: &&super::member::Member| member.is_started() && !member.is_paused;
        let ask = self.members.iter().filter(able).map(async |member| {
            let call = Call::get("/v1/cluster").within(PATIENCE);
            Some((member.name.clone(), member.control().ok()?.call(call).await.ok()?))
        });
        join_all(ask).await.into_iter().flatten().collect()
    }
}

/// Members that a fault affects.
pub(super) fn touched(kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Partition { links } => {
            links.iter().flat_map(|link| [link.from.clone(), link.to.clone()]).collect()
        }
        Kind::Packets { hosts, .. } => hosts.clone(),
        Kind::Membership { change: Change::Remove { member } | Change::Replace { member } } => {
            vec![member.clone()]
        }
        other => other.members().unwrap_or_default().to_vec(),
    }
}
