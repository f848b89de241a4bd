//! The command.

use std::time::Duration;

use clap::Args;
use ipam_api::cluster::Member;
use ipam_api::{Code, Problem};
use tokio::time::{Instant, sleep};

use super::ask::{DEADLINE, Observed, ask_all, ask_leader};
use super::judge::Diagnosis;
use super::view;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::text::parse_duration;

/// Polling interval of `--wait`.
const LOOK: Duration = Duration::from_millis(250);

/// Arguments of the command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamctl status
  ipamctl status --check
  ipamctl status --wait 1m
  ipamctl --server http://n1:7440,http://n2:7440,http://n3:7440 status -o json")]
pub(crate) struct StatusArguments {
    /// Exit with code 7 unless the cluster has a leader, every member answers and all states agree
    #[arg(long)]
    check: bool,
    /// Wait up to this long for a healthy cluster, and exit with code 7 otherwise: 30s, 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &StatusArguments) -> Result<(), Failure> {
    let (observed, by_leader) = match arguments.wait {
        Some(patience) => wait(session, patience).await,
        None => observe(session).await,
    };
    let Some(diagnosis) = Diagnosis::of(&observed, &by_leader) else {
        return Err(no_server_answered(session, &observed));
    };
    let best = diagnosis.best;
    session.show(&best.body, &best.cluster.id, || Ok(view::text(&diagnosis, session)))?;
    let wanted = arguments.check || arguments.wait.is_some();
    if wanted && !diagnosis.is_well() { Err(Failure::Found) } else { Ok(()) }
}

async fn observe(session: &Session) -> (Vec<Observed>, Vec<Member>) {
    futures::join!(ask_all(session), ask_leader(session))
}

/// Polls until the cluster is settled or `patience` has passed; returns the last observation.
async fn wait(session: &Session, patience: Duration) -> (Vec<Observed>, Vec<Member>) {
    let begun = Instant::now();
    loop {
        let (observed, by_leader) = observe(session).await;
        let settled = Diagnosis::of(&observed, &by_leader).is_some_and(|diagnosis| diagnosis.is_settled());
        if settled || begun.elapsed() >= patience {
            return (observed, by_leader);
        }
        sleep(LOOK).await;
    }
}

/// The failure that no server answered, with the reason of each.
fn no_server_answered(session: &Session, observed: &[Observed]) -> Failure {
    if let Some(problem) = observed.iter().find_map(|one| one.barred.clone()) {
        return problem.into();
    }
    let waited = session.reading.timeout.min(DEADLINE).as_secs_f64();
    let mut detail = format!("no server answered within {waited:.1} s");
    for one in observed {
        if let Err(why) = &one.answer {
            detail.push_str(&format!("; {}: {why}", one.server));
        }
    }
    let problem = Problem::new(Code::Unreachable, detail)
        .help("Check that ipamd runs there and that the addresses are right (--server, IPAM_SERVERS).");
    Failure::from(problem).about_servers(session.settings.origin.clone())
}
