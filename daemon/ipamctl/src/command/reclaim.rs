//! Reclaims by id: requests of a limited size, and the fate of each allocation.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

use ipam_api::access::NodeKey;
use ipam_api::client::Call;
use ipam_api::limits::RECLAIM_LINES_MAX;
use ipam_api::reclaim::{ReclaimReason, ReclaimRequest, Reclaimed};
use ipam_api::{Name, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::requests::Again;
use crate::client::session::Session;
use crate::output::error::Failure;

/// Maximum size of a report file in bytes, far above that of a thousand lines.
const REPORT_BYTES_MAX: u64 = 64 << 20;

/// Allocation that is to be reclaimed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Target {
    pub(crate) node: NodeKey,
    pub(crate) network: Name,
    pub(crate) address: IpAddr,
    pub(crate) allocation: u64,
}

/// Fate of an allocation that was named in a reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fate {
    /// The address is free.
    Released,
    /// The allocation lost its attachment, but its endpoint keeps the address.
    Kept,
    /// The evidence no longer holds.
    LeftAlone,
    /// Either [`Self::Kept`] or [`Self::LeftAlone`]: the answer doesn't distinguish them.
    KeptOrLeftAlone,
}

impl Fate {
    /// Describes the fate; in a dry run, as a prediction.
    pub(crate) fn words(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Released, false) => "released",
            (Self::Released, true) => "would be released",
            (Self::Kept, false) => "kept by its endpoint",
            (Self::Kept, true) => "would be kept by its endpoint",
            (Self::LeftAlone, false) => "left alone",
            (Self::LeftAlone, true) => "would be left alone",
            (Self::KeptOrLeftAlone, false) => "kept or left alone",
            (Self::KeptOrLeftAlone, true) => "would be kept or left alone",
        }
    }
}

/// Reclaimed allocations, and the failure that ended the work early.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) fates: Vec<(Target, Fate)>,
    pub(crate) revision: u64,
    pub(crate) failure: Option<Failure>,
}

impl Outcome {
    /// Number of allocations with a fate.
    pub(crate) fn number(&self, fate: Fate) -> u64 {
        self.fates.iter().filter(|(_, found)| *found == fate).count() as u64
    }
}

/// Refuses an idempotency key. The command sends several requests, and ids make its repetition safe.
pub(crate) fn check_no_key(session: &Session) -> Result<(), Failure> {
    match &session.writing.idempotency_key {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "--idempotency-key does not apply to a command with several requests",
            "Remove it: each allocation is named by its id, so repeating the command is safe.",
        )),
    }
}

/// Sends one reclaim: at most as many ids as a request may have.
pub(crate) async fn send(
    session: &Session,
    node: &NodeKey,
    reason: ReclaimReason,
    allocations: &[u64],
) -> Result<Reclaimed, Failure> {
    let answer = session.write(call(node, reason, allocations)?, again()).await?;
    Ok(answer.read()?)
}

/// Advice after an unknown outcome.
pub(crate) fn again() -> Again {
    let advice = "run the same command again; each allocation is named by its id";
    Again::Same(advice.to_owned())
}

/// The request of a reclaim.
pub(crate) fn call(node: &NodeKey, reason: ReclaimReason, allocations: &[u64]) -> Result<Call, Problem> {
    let request = ReclaimRequest { reason, allocations: allocations.to_vec() };
    Call::post(format!("/v1/nodes/{node}/reclaim")).json(&request)
}

/// Reclaims allocations of nodes for a reason; ends at the first failure.
pub(crate) async fn all(session: &Session, reason: ReclaimReason, mut targets: Vec<Target>) -> Outcome {
    targets.sort();
    targets.dedup();
    let mut outcome = Outcome::default();
    // The answer names addresses, which are unique within one network only.
    let same = |one: &Target, other: &Target| one.node == other.node && one.network == other.network;
    for chunk in targets.chunk_by(same).flat_map(|of_node| of_node.chunks(RECLAIM_LINES_MAX)) {
        let Some(first) = chunk.first() else { continue };
        let ids: Vec<u64> = chunk.iter().map(|target| target.allocation).collect();
        match send(session, &first.node, reason, &ids).await {
            Ok(reclaimed) => {
                outcome.revision = reclaimed.revision;
                outcome.fates.extend(fates(chunk, &reclaimed));
            }
            Err(failure) => {
                outcome.failure = Some(failure);
                break;
            }
        }
    }
    outcome
}

fn fates(chunk: &[Target], reclaimed: &Reclaimed) -> Vec<(Target, Fate)> {
    let is_released = |target: &&Target| reclaimed.addresses.contains(&target.address);
    let others = chunk.iter().filter(|target| !is_released(target)).count() as u64;
    let other = match reclaimed.stale {
        0 => Fate::Kept,
        stale if stale >= others => Fate::LeftAlone,
        _ => Fate::KeptOrLeftAlone,
    };
    let fate = |target: &Target| if is_released(&target) { Fate::Released } else { other };
    chunk.iter().map(|target| (target.clone(), fate(target))).collect()
}

/// Reads a report that a dry run wrote; `-` is standard input.
pub(crate) fn read_report<Report: DeserializeOwned>(
    file: &Path,
    written_by: &str,
) -> Result<Report, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(REPORT_BYTES_MAX).read_to_string(&mut text)
    } else {
        let opened = std::fs::File::open(file);
        opened.and_then(|opened| opened.take(REPORT_BYTES_MAX).read_to_string(&mut text))
    };
    let help = format!("Use a file that `{written_by}` wrote, or - for standard input.");
    read.map_err(|error| Failure::file(file, "read", error, &help))?;
    serde_json::from_str(&text).map_err(|error| Failure::file(file, "read", error, &help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allocation_has_the_fate_that_the_answer_proves() {
        let target = |last: u8| Target {
            node: NodeKey { realm: Name::default_name(), name: "w".parse().unwrap() },
            network: Name::default_name(),
            address: IpAddr::from([10, 0, 0, last]),
            allocation: last.into(),
        };
        let chunk = [target(1), target(2), target(3)];
        for (stale, expected) in
            [(0, Fate::Kept), (2, Fate::LeftAlone), (3, Fate::LeftAlone), (1, Fate::KeptOrLeftAlone)]
        {
            let reclaimed = Reclaimed { addresses: vec![target(2).address], stale, revision: 7 };
            let found: Vec<Fate> = fates(&chunk, &reclaimed).into_iter().map(|(_, fate)| fate).collect();
            assert_eq!(found, [expected, Fate::Released, expected], "{stale}");
        }
    }
}
