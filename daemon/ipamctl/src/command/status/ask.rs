//! Requests to each server individually.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ipam_api::client::Call;
use ipam_api::cluster::{Cluster, Member, Members, Version};
use ipam_api::{Code, Problem};

use crate::client::session::Session;
use crate::output::text::without_number;

/// Time limit per server. It is short because a user waits for the output.
pub(crate) const DEADLINE: Duration = Duration::from_millis(1_500);

/// Result of the request to one server.
#[derive(Debug)]
pub(super) struct Observed {
    /// Address of the server, without a trailing slash.
    pub(super) server: String,
    /// Answer of the server, or the reason for its absence.
    pub(super) answer: Result<Report, String>,
    /// Refusal, if the server answered but this caller may not read.
    pub(super) barred: Option<Problem>,
}

/// Answer of a server.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) cluster: Cluster,
    /// Version of the server, if reported.
    pub(super) version: Option<String>,
    /// The cluster as bytes, for `-o json`.
    pub(super) body: Vec<u8>,
}

/// Addresses of the specified servers and of the members that they report, reachable or not.
pub(crate) async fn known_servers(session: &Session) -> Vec<String> {
    ask_all(session).await.into_iter().map(|one| one.server).collect()
}

/// Members as the leader sees them, if all specified servers are unix sockets. The host of a member may have
/// no credentials for the other members. Empty otherwise, and without a leader.
pub(super) async fn ask_leader(session: &Session) -> Vec<Member> {
    let servers = &session.settings.servers;
    if !servers.iter().all(|server| server.starts_with("unix:")) {
        return Vec::new();
    }
    let within = session.reading.timeout.min(DEADLINE);
    for server in servers {
        let answer = session.ask_one(&plain(server), Call::get("/v1/cluster/members").within(within)).await;
        if let Ok(members) = answer.and_then(|answer| answer.read::<Members>()) {
            return members.items;
        }
    }
    Vec::new()
}

/// Requests the views of the specified servers, and of the members that they report.
pub(super) async fn ask_all(session: &Session) -> Vec<Observed> {
    let mut known = BTreeSet::new();
    let mut waiting = FuturesUnordered::new();
    for server in &session.settings.servers {
        let server = plain(server);
        if known.insert(server.clone()) {
            waiting.push(ask(session, server));
        }
    }
    let mut observed = Vec::new();
    while let Some(one) = waiting.next().await {
        if let Ok(report) = &one.answer {
            for member in &report.cluster.members {
                let server = plain(&member.client_url);
                if !server.is_empty() && known.insert(server.clone()) {
                    waiting.push(ask(session, server));
                }
            }
        }
        observed.push(one);
    }
    // The order must not depend on response times.
    observed.sort_by(|a, b| a.server.cmp(&b.server));
    observed
}

/// Requests the view of one server.
async fn ask(session: &Session, server: String) -> Observed {
    let within = session.reading.timeout.min(DEADLINE);
    let cluster = session.ask_one(&server, Call::get("/v1/cluster?consistency=stale").within(within));
    let version = session.ask_one(&server, Call::get("/version").within(within));
    let (cluster, version) = futures::join!(cluster, version);
    let version = version.and_then(|answer| answer.read::<Version>()).map(|version| version.version).ok();
    let barred = cluster.as_ref().err().filter(|problem| is_barred(problem)).cloned();
    let answer = cluster
        .and_then(|answer| Ok(Report { cluster: answer.read()?, version, body: answer.body }))
        .map_err(|problem: Problem| reason(&server, &problem));
    Observed { server, answer, barred }
}

/// True if the server works, but refuses this caller.
fn is_barred(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unauthenticated | Code::TokenExpired | Code::Forbidden)
}

/// Normalized address of a server, for comparisons.
pub(super) fn plain(server: &str) -> String {
    server.trim().trim_end_matches('/').to_owned()
}

/// Extracts the reason for one server from a problem that lists the reasons of all servers.
pub(crate) fn reason(server: &str, problem: &Problem) -> String {
    let before = format!("; {}: ", plain(server));
    match problem.detail.split_once(&before) {
        Some((_, why)) => without_number(why).to_owned(),
        None if problem.code == Code::Unreachable => "timed out".to_owned(),
        None => problem.to_string(),
    }
}
