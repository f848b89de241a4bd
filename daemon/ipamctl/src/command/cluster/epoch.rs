//! `ipamctl cluster epoch`: the state after a restore, and the confirmation of restored pools.

use std::fmt::Write as _;

use clap::Subcommand;
use ipam_api::Name;
use ipam_api::client::Call;
use ipam_api::cluster::{Cluster, ConfirmRequest, Epoch};

use crate::client::confirm;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::text;

pub(super) const EXAMPLES: &str = "Examples:
  ipamctl cluster epoch
  ipamctl cluster epoch confirm web --confirm 7f3c-91aa
  ipamctl cluster epoch confirm --all --confirm 7f3c-91aa";

const PATH: &str = "/v1/cluster/epoch";
/// Maximum number of pools that the output names.
const NAMED_MAX: usize = 20;

/// Verbs of epochs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Let restored pools allocate again, after checking that no unknown host uses their addresses
    #[command(after_help = "Examples:
  ipamctl cluster epoch confirm web web6 --confirm 7f3c-91aa
  ipamctl cluster epoch confirm --all --confirm 7f3c-91aa")]
    Confirm {
        /// Pools to confirm; --all for every pool
        pools: Vec<Name>,
    },
}

/// Runs the command.
pub(super) async fn run(session: &Session, verb: Option<Verb>) -> Result<(), Failure> {
    match verb {
        None => {
            let answer = session.read(PATH).await?;
            let epoch: Epoch = answer.read()?;
            session.show(&answer.body, &epoch.epoch.to_string(), || Ok(screen(&epoch)))
        }
        Some(Verb::Confirm { pools }) => confirm(session, pools).await,
    }
}

async fn confirm(session: &Session, pools: Vec<Name>) -> Result<(), Failure> {
    let pools = match (pools.is_empty(), session.reading.all) {
        (true, true) => None,
        (false, false) => Some(pools),
        _ => {
            return Err(Failure::usage(
                "either pools or --all is required, not both",
                "What waits: ipamctl cluster epoch.",
            ));
        }
    };
    let cluster: Cluster = session.read("/v1/cluster").await?.read()?;
    let before: Epoch = session.read(PATH).await?.read()?;
    let which = match &pools {
        None => "All pools allocate again".to_owned(),
        Some(pools) => format!("{} give again", text::joined(pools)),
    };
    let summary = [
        format!("{which}: addresses allocated after the backup of revision {} may still be in use,", {
            before.from_revision.unwrap_or_default()
        }),
        "but are unknown to this state. Confirm after checking that they are unused, or after reserving them."
            .to_owned(),
    ];
    confirm::severe(session, &cluster.id, &summary).await?;
    let request = ConfirmRequest { epoch: before.epoch, pools };
    let call = Call::post(format!("{PATH}/confirm")).json(&request)?;
    let answer = session.write(call, Again::ByKey).await?;
    let after: Epoch = answer.read()?;
    let confirmed = before.waiting.len().saturating_sub(after.waiting.len()) as u64;
    let left = match after.waiting.len() {
        0 => format!("epoch {} is confirmed", after.epoch),
        left => format!("{} still wait", text::plural(left as u64, "pool", "pools")),
    };
    let done = format!(
        "{} {}{}; {left}",
        text::plural(confirmed, "pool", "pools"),
        session.tense("confirmed"),
        session.at_revision(&answer)
    );
    session.done(&answer, &after.epoch.to_string(), &done)
}

fn screen(epoch: &Epoch) -> String {
    let mut text = format!("epoch       {}\n", epoch.epoch);
    if let (Some(since), Some(from)) = (epoch.since, epoch.from_revision) {
        let _ = writeln!(text, "since       {}, from revision {from}", text::moment(since));
    }
    let Some(since) = epoch.since.filter(|_| !epoch.confirmed) else {
        let when = epoch.confirmed_at.map(|at| format!(" at {}", text::moment(at))).unwrap_or_default();
        let _ = writeln!(text, "confirmed   yes{when}");
        return text;
    };
    let _ = writeln!(
        text,
        "confirmed   no: {} nothing, since addresses allocated after the backup may be in use",
        text::plural(epoch.waiting.len() as u64, "pool allocates", "pools allocate"),
    );
    let named: Vec<&Name> = epoch.waiting.iter().take(NAMED_MAX).collect();
    let more = epoch.waiting.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let _ = writeln!(text, "waiting     {}{more}", text::joined(named));
    let _ = writeln!(text, "\ninspect the history:   ipamctl events --until {}", text::moment(since));
    let _ = writeln!(text, "confirm pools:         ipamctl cluster epoch confirm POOL… | --all");
    text
}
