//! `/v1/nodes/{realm}/{name}/probes`: results of an agent's probes, and its next jobs.

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::limits::{HEARTBEAT_INTERVAL_MS, PROBE_INTERVAL_MS, PROBE_RESULTS_MAX};
use ipam_api::probe::{ProbeJob, ProbesAnswer, ProbesRequest};
use ipam_api::{Code, Problem};
use ipam_machine::command::{ProbeResult, ReportProbes, Via};
use ipam_machine::{Action, Answer, Applied, ProbeJobs, Sweep};

use super::agent::{NodePath, another_answer, node_at};
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn exchange(
    Path(path): Path<NodePath>,
    write: Write,
) -> Result<ApiResponse<ProbesAnswer>, ApiError> {
    let node = node_at(&path)?;
    let ProbesRequest { results, jobs, after } = write.read()?;
    let limit = usize::try_from(jobs).unwrap_or(usize::MAX);
    if limit > PROBE_RESULTS_MAX {
        let detail = format!("an answer has at most {PROBE_RESULTS_MAX} jobs");
        return Err(Problem::new(Code::LimitExceeded, detail).at("/jobs").into());
    }
    let sweep = after.as_deref().map(position).transpose()?;
    let results = results.into_iter().map(|result| ProbeResult {
        network: result.network,
        address: result.address.to_canonical(),
        macs: result.macs,
        allocation: result.allocation.map(Into::into),
    });
    let action = Action::ReportProbes(ReportProbes { node: node.clone(), results: results.collect() });
    action.check()?;
    write.app.who(&write.caller).await?.check((Verb::Report, Target::Node))?;
    write.app.check_own_node(&write.caller, &write.app.node.stale().0, &node)?;
    // Most requests contain no result that needs a log entry.
    let state = write.app.node.stale().0;
    let is_news = matches!(&action, Action::ReportProbes(report) if state.is_news(&node, &report.results));
    let (recorded, refused, revision) = if is_news {
        let Applied { revision, answer, .. } = write.propose_via(Via::Cni, action).await?;
        let Answer::Probed { recorded, refused } = answer else { return Err(another_answer().into()) };
        (recorded, refused, revision)
    } else {
        (0, 0, state.revision())
    };
    let state = write.app.node.stale().0;
    let ProbeJobs { addresses, next } = match limit {
        0 => ProbeJobs::default(),
        limit => {
            let app = write.app.clone();
            let (state, node) = (state.clone(), node.clone());
            let derived =
                ipam_raft::blocking(move || app.node.guard(|| state.probe_jobs(&node, sweep, limit)));
            derived.await.map_err(|_| another_answer())?.map_err(Problem::from)?
        }
    };
    let wait_ms = if addresses.is_empty() { HEARTBEAT_INTERVAL_MS / 2 } else { PROBE_INTERVAL_MS };
    let job = |(network, address)| {
        let network = state.networks.get(network)?.spec.name.clone();
        Some(ProbeJob { network, address })
    };
    let body = ProbesAnswer {
        recorded,
        refused,
        jobs: addresses.into_iter().filter_map(job).collect(),
        next: next.map(text_of),
        wait_ms,
        revision,
    };
    Ok(ApiResponse::new(body, revision))
}

/// Encodes the position of a sweep for clients: the id of a subnet, and the last address.
fn text_of(sweep: Sweep) -> String {
    match sweep.after {
        Some(after) => format!("{}/{after}", sweep.subnet),
        None => sweep.subnet.to_string(),
    }
}

fn position(text: &str) -> Result<Sweep, Problem> {
    let odd = || Problem::new(Code::InvalidCursor, "the position of the sweep is malformed").at("/after");
    let (subnet, after) = match text.split_once('/') {
        Some((subnet, after)) => (subnet, Some(after.parse().map_err(|_| odd())?)),
        None => (text, None),
    };
    let subnet: u64 = subnet.parse().map_err(|_| odd())?;
    Ok(Sweep { subnet: subnet.into(), after })
}

#[cfg(test)]
mod tests {
    use ipam_api::probe::SWEEP_BEGINS;

    use super::*;

    #[test]
    fn positions_survive_their_notation() {
        for after in [None, "10.0.0.7".parse().ok(), "2001:db8::7".parse().ok()] {
            let sweep = Sweep { subnet: 1_099_511_627_777.into(), after };
            assert_eq!(position(&text_of(sweep)).unwrap(), sweep);
        }
        assert_eq!(position(SWEEP_BEGINS).unwrap(), Sweep::START);
        for odd in ["", "x", "1/", "1/x", "/10.0.0.7", "1/10.0.0.7/8"] {
            assert_eq!(position(odd).unwrap_err().code, Code::InvalidCursor, "{odd}");
        }
    }
}
