//! Reports of members to each other about their states and their programs.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::super::running::Running;
use super::integrity::Integrity;
use crate::transport::{Answer, Purpose, Report, Request};

/// Time limit for the reports of the other members.
const PATIENCE: Duration = Duration::from_millis(500);

/// Collects the reports of all members that answer, this one included. The requests use the journal's
/// connections: a member of an older version closes the connection on an unknown request, which must not
/// affect votes and heartbeats.
pub(super) async fn ask_all(integrity: &Integrity, running: &Running) -> BTreeMap<u64, Report> {
    let deadline = Instant::now() + PATIENCE;
    let others = running.members().into_iter().filter(|(id, _)| *id != running.me.member_id);
    let answers = others.map(async |(id, member)| {
        let channel = running.peers.channel(id, &member, Purpose::Journal);
        match channel.call(Request::Report, deadline).await {
            Ok(Answer::Report(report)) => Some((id, *report)),
            _ => None,
        }
    });
    let mut reports: BTreeMap<u64, Report> = join_all(answers).await.into_iter().flatten().collect();
    // The own report is taken last, so that it isn't older than the others' reports.
    reports.insert(running.me.member_id, integrity.report());
    reports
}
