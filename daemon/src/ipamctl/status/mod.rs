//! `ipamctl status`: whether the cluster is well, on one screen.
//!
//! It has to be right when everything is wrong. So it asks every server on its own and briefly, follows to
//! members that weren't named, reads without needing a leader, and says where its words come from.

mod judge;
mod view;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ipam_api::client::Call;
use ipam_api::cluster::{Cluster, Version};
use ipam_api::{Code, Problem};

use crate::context::Context;
use crate::fail::Failure;
use crate::output::format::Format;
use crate::output::text::{parse_duration, without_number};
use judge::Judgement;
use tokio::time::{Instant, sleep};

/// How long one server may take. Somebody waits in front of a dark screen.
pub(crate) const DEADLINE: Duration = Duration::from_millis(1_500);
/// How often `--wait` looks.
const LOOK: Duration = Duration::from_millis(250);

/// How to look.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamctl status
  ipamctl status --check
  ipamctl status --wait 1m
  ipamctl --server http://n1:7440,http://n2:7440,http://n3:7440 status -o json")]
pub(crate) struct StatusArguments {
    /// Exit with 7 unless all is well: a leader, every member answering, one state
    #[arg(long)]
    check: bool,
    /// Look again until all is well and everybody follows the leader, for so long at most; exit with 7 if it never is: 30s, 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// What came of asking one server.
#[derive(Debug)]
struct Observed {
    /// Its address, without the slash at the end.
    server: String,
    /// What it said, or why nothing.
    answer: Result<Said, String>,
    /// Its own word, if it answered and doesn't let us look.
    barred: Option<Problem>,
}

/// What a server said.
#[derive(Debug)]
struct Said {
    cluster: Cluster,
    /// The version of its program, if it says.
    version: Option<String>,
    /// The same as bytes, for `-o json`.
    body: Vec<u8>,
}

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &StatusArguments) -> Result<(), Failure> {
    let observed = match arguments.wait {
        Some(patience) => wait(context, patience).await,
        None => ask_all(context).await,
    };
    let Some(judgement) = Judgement::of(&observed) else { return Err(nobody(context, &observed)) };
    if !context.data(&judgement.best.body)? {
        let name = matches!(context.format, Format::Name);
        context.print(&if name {
            judgement.best.cluster.id.clone()
        } else {
            view::text(&judgement, context)
        })?;
    }
    let wanted = arguments.check || arguments.wait.is_some();
    if wanted && !judgement.is_well() { Err(Failure::Found) } else { Ok(()) }
}

/// Looks until all is well or patience ends; what was seen last.
async fn wait(context: &Context, patience: Duration) -> Vec<Observed> {
    let begun = Instant::now();
    loop {
        let observed = ask_all(context).await;
        let settled = Judgement::of(&observed).is_some_and(|judgement| judgement.is_settled());
        if settled || begun.elapsed() >= patience {
            return observed;
        }
        sleep(LOOK).await;
    }
}

/// The servers that were named and the members that they name, those that don't answer too.
pub(crate) async fn known_servers(context: &Context) -> Vec<String> {
    ask_all(context).await.into_iter().map(|one| one.server).collect()
}

/// Asks the servers that were named, and the members that they name.
async fn ask_all(context: &Context) -> Vec<Observed> {
    let mut known = BTreeSet::new();
    let mut waiting = FuturesUnordered::new();
    for server in &context.settings.servers {
        let server = plain(server);
        if known.insert(server.clone()) {
            waiting.push(ask(context, server));
        }
    }
    let mut observed = Vec::new();
    while let Some(one) = waiting.next().await {
        if let Ok(said) = &one.answer {
            for member in &said.cluster.members {
                let server = plain(&member.client_url);
                if !server.is_empty() && known.insert(server.clone()) {
                    waiting.push(ask(context, server));
                }
            }
        }
        observed.push(one);
    }
    // In an order that doesn't depend on who was faster.
    observed.sort_by(|a, b| a.server.cmp(&b.server));
    observed
}

/// Asks one server alone, for what it knows itself.
async fn ask(context: &Context, server: String) -> Observed {
    let within = context.timeout().min(DEADLINE);
    let cluster = context.ask_one(&server, Call::get("/v1/cluster?consistency=stale").within(within));
    let version = context.ask_one(&server, Call::get("/version").within(within));
    let (cluster, version) = futures::join!(cluster, version);
    let version = version.and_then(|answer| answer.read::<Version>()).map(|version| version.version).ok();
    let barred = cluster.as_ref().err().filter(|problem| is_barred(problem)).cloned();
    let answer = cluster
        .and_then(|answer| Ok(Said { cluster: answer.read()?, version, body: answer.body }))
        .map_err(|problem: Problem| reason(&server, &problem));
    Observed { server, answer, barred }
}

/// Whether a server is well and only doesn't let us look.
fn is_barred(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unauthenticated | Code::TokenExpired | Code::Forbidden)
}

/// A server's address as it is compared.
fn plain(server: &str) -> String {
    server.trim().trim_end_matches('/').to_owned()
}

/// Why one server didn't answer, out of a problem that speaks of all that were asked.
pub(crate) fn reason(server: &str, problem: &Problem) -> String {
    let before = format!("; {}: ", plain(server));
    match problem.detail.split_once(&before) {
        Some((_, why)) => without_number(why).to_owned(),
        None if problem.code == Code::Unreachable => "timed out".to_owned(),
        None => problem.to_string(),
    }
}

/// Nobody answered: the reasons are all there is to show.
fn nobody(context: &Context, observed: &[Observed]) -> Failure {
    if let Some(problem) = observed.iter().find_map(|one| one.barred.clone()) {
        return problem.into();
    }
    let waited = context.timeout().min(DEADLINE).as_secs_f64();
    let mut detail = format!("no server answered within {waited:.1} s");
    for one in observed {
        if let Err(why) = &one.answer {
            detail.push_str(&format!("; {}: {why}", one.server));
        }
    }
    let problem = Problem::new(Code::Unreachable, detail)
        .help("Check that ipamd runs there and that the addresses are right (--server, IPAM_SERVERS).");
    Failure::from(problem).about_servers(context.settings.origin.clone())
}

#[cfg(test)]
mod tests;
