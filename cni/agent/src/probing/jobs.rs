//! Prober: makes the probes that the cluster requests from this node, for as long as it has any.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::{AGENT_INTERVAL_MS_MAX, AGENT_INTERVAL_MS_MIN, PROBE_RESULTS_MAX, SWEEP_INTERVAL_MS};
use ipam_api::name::Name;
use ipam_api::probe::{ProbeJob, ProbeResult, ProbesAnswer, ProbesRequest, SWEEP_BEGINS};
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::node::Node;
use crate::probe::{ProbeError, Purpose};
use crate::probing::links::Links;
use crate::probing::report::{macs, report};
use crate::probing::wire::Wire;

/// Time limit of one request.
const REQUEST: Duration = Duration::from_secs(10);

/// Progress of the prober.
#[derive(Debug, Default)]
struct Sweep {
    /// Results for the next request.
    results: Vec<ProbeResult>,
    /// Position after the jobs of these results.
    after: Option<String>,
    /// Position before these jobs.
    before: Option<String>,
    /// Time of the next sweep; none before the first answer.
    due_at: Option<Instant>,
}

impl Sweep {
    /// Builds the next request. Starts a sweep if one is due and none is under way.
    fn request(&mut self, now: Instant) -> ProbesRequest {
        if self.after.is_none() && self.due_at.is_none_or(|at| at <= now) {
            self.after = Some(SWEEP_BEGINS.to_owned());
        }
        let (results, after) = (std::mem::take(&mut self.results), self.after.clone());
        ProbesRequest { results, jobs: PROBE_RESULTS_MAX as u64, after }
    }

    /// Moves on to the jobs of an answer.
    fn answered(&mut self, answer: &ProbesAnswer, now: Instant) {
        // A sweep is due until a server has answered its first request.
        if self.after.as_deref() == Some(SWEEP_BEGINS) {
            self.due_at = Some(now + Duration::from_millis(SWEEP_INTERVAL_MS));
        }
        self.before = std::mem::replace(&mut self.after, answer.next.clone());
    }

    /// Moves back, so that the same jobs are repeated: results of a failed request would be outdated.
    fn failed(&mut self) {
        self.after.clone_from(&self.before);
    }
}

/// Requests and makes probes for as long as the agent runs.
pub async fn run(node: Arc<Node>, wire: impl Wire) {
    if !node.config.probes {
        return;
    }
    let mut wanted = node.has_probes.subscribe();
    let mut has_failed = false;
    let mut failures = Failures::default();
    let mut backoff = Backoff::default();
    loop {
        if wanted.wait_for(|has_probes| *has_probes).await.is_err() {
            return;
        }
        let mut sweep = Sweep::default();
        while *wanted.borrow() {
            let result = report(&node, &sweep.request(Instant::now()), REQUEST).await;
            if has_failed != result.is_err() {
                has_failed = result.is_err();
                match &result {
                    Ok(_) => tracing::info!("the cluster takes results of probes again"),
                    Err(problem) => tracing::warn!(%problem, "the cluster takes no results of probes"),
                }
            }
            match result {
                Ok(answer) => {
                    backoff.reset();
                    sweep.answered(&answer, Instant::now());
                    let wait_ms = answer.wait_ms.clamp(AGENT_INTERVAL_MS_MIN, AGENT_INTERVAL_MS_MAX);
                    // The pause precedes the probes, so that their results are recent when the cluster gets
                    // them.
                    sleep(Duration::from_millis(wait_ms)).await;
                    match probe_all(&node, &wire, &mut failures, answer.jobs).await {
                        Some(results) => sweep.results = results,
                        None => sleep(node.config.heartbeat_interval).await,
                    }
                }
                Err(_) => {
                    sweep.failed();
                    sleep(backoff.next()).await;
                }
            }
        }
    }
}

/// Failures of probes, by interface and family. A link that fails for long is logged once.
#[derive(Debug, Default)]
struct Failures(BTreeMap<(String, bool), String>);

impl Failures {
    fn note(&mut self, interface: &str, is_ipv6: bool, error: &ProbeError) {
        let (link, text) = ((interface.to_owned(), is_ipv6), error.to_string());
        if self.0.get(&link) != Some(&text) {
            tracing::warn!(%error, "probes of the cluster are left out");
            self.0.insert(link, text);
        }
    }

    fn ended(&mut self, interface: &str, is_ipv6: bool) {
        self.0.remove(&(interface.to_owned(), is_ipv6));
    }
}

/// Probes the addresses of jobs. Addresses without a link and addresses of this host have no result.
///
/// Returns no results if all links failed.
async fn probe_all(
    node: &Node,
    wire: &impl Wire,
    failures: &mut Failures,
    mut jobs: Vec<ProbeJob>,
) -> Option<Vec<ProbeResult>> {
    jobs.truncate(PROBE_RESULTS_MAX);
    if jobs.is_empty() {
        return Some(Vec::new());
    }
    let interfaces = wire.interfaces().await.map_err(|error| failures.note("", false, &error)).ok()?;
    let links = Links::new(&node.config.links, &interfaces);
    let mut results = Vec::new();
    let mut has_failed = false;
    for ((interface, network, is_ipv6), addresses) in by_link(&links, &jobs) {
        match wire.probe(interface, &addresses, Purpose::Conflict).await {
            Ok(outcomes) => {
                failures.ended(interface, is_ipv6);
                results.extend(outcomes.into_iter().map(|(address, outcome)| ProbeResult {
                    network: network.clone(),
                    address,
                    macs: macs(outcome),
                    allocation: None,
                }));
            }
            Err(error) => {
                has_failed = true;
                failures.note(interface, is_ipv6, &error);
            }
        }
    }
    (!has_failed || !results.is_empty()).then_some(results)
}

/// Addresses by interface, network and family: an interface without IPv6 still probes IPv4.
fn by_link<'a>(
    links: &'a Links,
    jobs: &'a [ProbeJob],
) -> BTreeMap<(&'a str, &'a Name, bool), BTreeSet<IpAddr>> {
    let mut by_link: BTreeMap<_, BTreeSet<IpAddr>> = BTreeMap::new();
    for ProbeJob { network, address } in jobs {
        match links.of_job(network, *address).filter(|_| !links.has_address(*address)) {
            Some(interface) => {
                by_link.entry((interface, network, address.is_ipv6())).or_default().insert(*address);
            }
            None => tracing::debug!(%network, %address, "no link is probed for a job"),
        }
    }
    by_link
}

#[cfg(test)]
mod tests {
    use ipam_api::problem::Code;

    use super::*;
    use crate::fakes::{FOREIGN, FakeCluster, FakeWire};

    fn jobs(addresses: &[&str], next: &str) -> ProbesAnswer {
        let job =
            |address: &&str| ProbeJob { network: Name::default_name(), address: address.parse().unwrap() };
        let (jobs, next) = (addresses.iter().map(job).collect(), Some(next.to_owned()));
        ProbesAnswer { recorded: 0, refused: 0, jobs, next, wait_ms: 0, revision: 1 }
    }

    /// Results of a request, as text.
    fn texts(request: &ProbesRequest) -> Vec<String> {
        let text = |result: &ProbeResult| {
            assert_eq!(result.allocation, None);
            let macs = result.macs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            format!("{} {} [{macs}]", result.network, result.address)
        };
        request.results.iter().map(text).collect()
    }

    async fn wait(cluster: &FakeCluster, count: usize) {
        while cluster.model().reports.len() < count {
            cluster.asked.notified().await;
        }
    }

    #[tokio::test]
    async fn jobs_are_probed_while_the_cluster_wants_them() {
        let dir = tempfile::tempdir().unwrap();
        let cluster = FakeCluster::default();
        let link =
            "[[link]]\ninterface = \"br0\"\ncidrs = [\"10.0.0.0/16\", \"10.9.0.0/24\", \"2001:db8::/64\"]";
        let node = cluster.node(dir.path(), link).await;
        let first = ["10.0.0.1", "10.0.0.2", "2001:db8::9", "10.9.0.1", "10.77.0.1", "192.0.2.1"];
        cluster.model().jobs = [jobs(&first, "a"), jobs(&["10.0.0.3"], "b"), jobs(&[], "c")].into();
        let wire = FakeWire::with(&["10.0.0.2"]);
        let prober = tokio::spawn(run(node.clone(), wire.clone()));
        node.has_probes.send_replace(true);
        wait(&cluster, 4).await;
        node.has_probes.send_replace(false);
        // The node's own address has no probe, nor those of other links.
        let probes = ["Conflict br0 10.0.0.1 10.0.0.2", "Conflict br0 2001:db8::9", "Conflict br0 10.0.0.3"];
        assert_eq!(wire.probes(), probes);
        {
            let reports = &cluster.model().reports;
            let after: Vec<Option<&str>> = reports.iter().map(|report| report.after.as_deref()).collect();
            assert_eq!(after[..4], [Some(SWEEP_BEGINS), Some("a"), Some("b"), Some("c")]);
            assert!(reports.iter().all(|report| report.jobs == PROBE_RESULTS_MAX as u64));
            assert!(reports[0].results.is_empty() && reports[3].results.is_empty());
            let heard = format!("default 10.0.0.2 [{FOREIGN}]");
            assert_eq!(texts(&reports[1]), ["default 10.0.0.1 []", &heard, "default 2001:db8::9 []"]);
            assert_eq!(texts(&reports[2]), ["default 10.0.0.3 []"]);
        }
        prober.abort();
    }

    #[tokio::test]
    async fn links_that_fail_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let node = FakeCluster::default().node(dir.path(), "").await;
        let mut failures = Failures::default();
        let jobs = || jobs(&["10.9.0.7"], "a").jobs;
        let down = FakeWire { is_down: true, ..FakeWire::default() };
        assert_eq!(probe_all(&node, &down, &mut failures, jobs()).await, None);
        assert_eq!(failures.0.keys().collect::<Vec<_>>(), [&("br0".to_owned(), false)]);
        let results = probe_all(&node, &FakeWire::default(), &mut failures, jobs()).await;
        assert_eq!(results.map(|results| results.len()), Some(1));
        assert!(failures.0.is_empty());
    }

    #[test]
    fn results_that_no_server_took_are_made_again() {
        let now = Instant::now();
        let mut sweep = Sweep::default();
        assert_eq!(sweep.request(now).after.as_deref(), Some(SWEEP_BEGINS));
        sweep.answered(&jobs(&["10.0.0.1"], "a"), now);
        sweep.results = vec![ProbeResult {
            network: Name::default_name(),
            address: "10.0.0.1".parse().unwrap(),
            macs: Vec::new(),
            allocation: None,
        }];
        let request = sweep.request(now);
        assert_eq!((request.after.as_deref(), request.results.len()), (Some("a"), 1));
        sweep.failed();
        sweep.failed();
        let again = sweep.request(now);
        assert_eq!((again.after.as_deref(), again.results.len()), (Some(SWEEP_BEGINS), 0));
    }

    #[test]
    fn a_sweep_is_due_until_its_first_request_is_answered() {
        let start = Instant::now();
        let interval = Duration::from_millis(SWEEP_INTERVAL_MS);
        let mut sweep = Sweep::default();
        for now in [start, start + interval] {
            for _ in 0..2 {
                assert_eq!(sweep.request(now).after.as_deref(), Some(SWEEP_BEGINS));
                sweep.failed();
            }
            // A sweep of one batch, and a request that neither begins nor continues a sweep.
            for after in [Some(SWEEP_BEGINS), None] {
                assert_eq!(sweep.request(now).after.as_deref(), after);
                sweep.answered(&ProbesAnswer { next: None, ..jobs(&[], "a") }, now);
            }
        }
    }

    #[tokio::test]
    async fn a_refused_sweep_begins_again_soon() {
        let dir = tempfile::tempdir().unwrap();
        let cluster = FakeCluster::default();
        let node = cluster.node(dir.path(), "heartbeat_interval_ms = 3600000").await;
        cluster.model().refusal = Some(Code::Forbidden);
        cluster.model().jobs = [jobs(&[], "a")].into();
        let prober = tokio::spawn(run(node.clone(), FakeWire::default()));
        node.has_probes.send_replace(true);
        cluster.asked.notified().await;
        cluster.model().refusal = None;
        tokio::time::timeout(Duration::from_secs(60), wait(&cluster, 1)).await.unwrap();
        assert_eq!(cluster.model().reports[0].after.as_deref(), Some(SWEEP_BEGINS));
        prober.abort();
    }

    #[test]
    fn a_sweep_begins_once_in_each_interval_at_the_agents_own_clock() {
        let start = Instant::now();
        let interval = Duration::from_millis(SWEEP_INTERVAL_MS);
        let mut sweep = Sweep::default();
        let mut begins = |after: Duration, next: Option<&str>| {
            let now = start + after;
            let request = sweep.request(now);
            let end = ProbesAnswer { next: next.map(str::to_owned), ..jobs(&[], "a") };
            sweep.answered(&end, now);
            request.after
        };
        assert_eq!(begins(Duration::ZERO, None).as_deref(), Some(SWEEP_BEGINS));
        assert_eq!(begins(interval / 2, None), None);
        assert_eq!(begins(interval, Some("7")).as_deref(), Some(SWEEP_BEGINS));
        assert_eq!(begins(interval * 3, None).as_deref(), Some("7"), "a sweep is under way");
        assert_eq!(begins(interval * 3, None).as_deref(), Some(SWEEP_BEGINS));
    }
}
