//! Questions to every server on its own, and the answers.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ipam_api::client::Call;
use ipam_api::cluster::{Cluster, Member, Members, Version};
use ipam_api::{Code, Problem};

use crate::client::session::Session;
use crate::output::text::without_number;

/// Time limit of one server. It is short because a person waits for the screen.
pub(crate) const DEADLINE: Duration = Duration::from_millis(1_500);

/// Result of asking one server.
#[derive(Debug)]
pub(super) struct Observed {
    /// Its address, without the slash at the end.
    pub(super) server: String,
    /// Its answer, or the reason for having none.
    pub(super) answer: Result<Report, String>,
    /// Its refusal, if it answered and doesn't allow this caller to read.
    pub(super) barred: Option<Problem>,
}

/// Answer of a server.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) cluster: Cluster,
    /// The version of its program, if it reports one.
    pub(super) version: Option<String>,
    /// The cluster as bytes, for `-o json`.
    pub(super) body: Vec<u8>,
}

/// The servers that were named and the members that they name, those that don't answer too.
pub(crate) async fn known_servers(session: &Session) -> Vec<String> {
    ask_all(session).await.into_iter().map(|one| one.server).collect()
}

/// The members as the leader sees them, if all named servers are sockets: the host of a member may have no
/// credentials for the other members. Empty otherwise, and without a leader.
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

/// Asks the servers that were named, and the members that they name.
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
    // In an order that doesn't depend on their speed.
    observed.sort_by(|a, b| a.server.cmp(&b.server));
    observed
}

/// Asks one server alone for its own view.
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

/// Tells a server that refuses this caller from one that doesn't work.
fn is_barred(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unauthenticated | Code::TokenExpired | Code::Forbidden)
}

/// Address of a server in the form that is compared.
pub(super) fn plain(server: &str) -> String {
    server.trim().trim_end_matches('/').to_owned()
}

/// Reason why one server didn't answer, from a problem about all servers that were asked.
pub(crate) fn reason(server: &str, problem: &Problem) -> String {
    let before = format!("; {}: ", plain(server));
    match problem.detail.split_once(&before) {
        Some((_, why)) => without_number(why).to_owned(),
        None if problem.code == Code::Unreachable => "timed out".to_owned(),
        None => problem.to_string(),
    }
}
