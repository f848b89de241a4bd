//! Task that keeps the host's addresses as the cluster has allocated them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::limits::AGENT_INTERVAL_MS_MAX;
use ipam_api::problem::{Code, Problem};
use ipam_api::render::render;
use ipam_api::request::Allocated;
use ipam_api::resource::Interface;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::announcement::announce;
use super::confirmation::answers;
use super::conflict::{probed, unprobed};
use super::kernel::Kernel;
use super::rendering::{activation, named, write};
use super::request::{body, interfaces, machine_id, merged};
use super::session::{Session, SessionError, View};
use super::status::{HostState, Source};
use crate::node::Node;
use crate::probing::wire::Wire;

/// Pause after a failed request, doubled with each further failure.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two checks of the links while addresses wait for their announcement.
const LOOK: Duration = Duration::from_millis(250);
/// Number of these checks in one pause.
const LOOKS: u32 = 20;
/// Time limit of a request.
const REQUEST: Duration = Duration::from_secs(5);
/// Code of a refusal: another installation of this host holds the addresses.
const REINSTALLED: &str = "host-reinstalled";

/// Remedy for an administrator of this host.
const TAKE_OVER: &str = "If this host replaces that one: ipam-agent serve --take-over, or take_over = true.";

/// Change that was undone, since it cut the host off from the servers.
#[derive(Debug)]
struct Rejected {
    interfaces: Vec<Interface>,
    /// Time before which the change is not repeated.
    until: Instant,
    pause: Duration,
    detail: String,
}

/// Configures the addresses of the journal, while no server has answered yet.
///
/// Returns the pause until the next call.
pub async fn hold<K: Kernel>(session: &mut Session<K>, wire: &impl Wire) -> Duration {
    if let Err(error) = session.repair().await {
        tracing::warn!(%error, "the host is not configured");
    }
    if let Ok(view) = session.view().await {
        let state = if session.journal.applied.is_empty() { HostState::Waiting } else { HostState::Applied };
        session.report(state, Source::Journal, "no server has answered yet", &view);
    }
    announce(session, wire).await;
    if session.unannounced.is_empty() { RETRY } else { LOOK }
}

/// Keeps the host's addresses as allocated by the cluster, for as long as the agent runs.
pub async fn follow<K: Kernel>(node: Arc<Node>, session: Session<K>, wire: impl Wire) {
    let mut follower = Follower {
        node,
        session,
        wire,
        rejected: None,
        retry: RETRY,
        source: Source::Journal,
        problem: None,
    };
    if follower.session.is_unconfirmed() {
        // The agent ended before its last change was confirmed.
        follower.settle().await;
    }
    loop {
        let pause = match follower.round().await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!(%error, "the host is not configured");
                RETRY
            }
        };
        follower.wait(pause).await;
    }
}

struct Follower<K, W> {
    node: Arc<Node>,
    session: Session<K>,
    wire: W,
    rejected: Option<Rejected>,
    /// Pause after the next failed request.
    retry: Duration,
    source: Source,
    /// Problem of the last request.
    problem: Option<String>,
}

impl<K: Kernel, W: Wire> Follower<K, W> {
    /// Waits for the next round. Meanwhile, announces addresses and repairs the configuration where needed.
    async fn wait(&mut self, pause: Duration) {
        let end = Instant::now() + pause;
        let mut looks = 0;
        loop {
            announce(&mut self.session, &self.wire).await;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // Without a server, the next request may be far away, and a link may reappear earlier.
            let is_announcing = !self.session.unannounced.is_empty() && looks < LOOKS;
            looks += 1;
            if !is_announcing && self.problem.is_none() {
                sleep(left).await;
                return;
            }
            sleep(left.min(if is_announcing { LOOK } else { RETRY })).await;
            if let Err(error) = self.session.repair().await {
                tracing::debug!(%error, "the host is not configured");
            }
        }
    }

    /// Requests the addresses, and configures the differences. Returns the pause until the next round.
    async fn round(&mut self) -> Result<Duration, SessionError> {
        self.session.retry_foreign();
        self.session.repair().await?;
        let view = self.session.view().await?;
        let answer = match self.ask(&view).await {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                let detail = "no interface of this host gets addresses from the agent";
                self.report(HostState::Waiting, detail).await?;
                return Ok(self.session.config.refresh.min(RETRY));
            }
            Err(problem) => return self.refused(&problem).await,
        };
        self.problem = None;
        self.retry = RETRY;
        self.source = Source::Server;
        let interfaces = merged(answer, &self.session.journal.applied, &view);
        let now = Instant::now();
        if let Some(rejected) =
            self.rejected.as_ref().filter(|one| one.interfaces == interfaces && now < one.until)
        {
            let (pause, detail) = (rejected.until - now, rejected.detail.clone());
            self.report(HostState::RolledBack, &detail).await?;
            return Ok(pause.min(self.session.config.refresh));
        }
        let mut pause = self.session.config.refresh;
        let mut withheld = BTreeSet::new();
        if self.session.config.mode.applies() {
            self.session.prepare(&interfaces).await?;
            let view = self.session.view().await?;
            let probed = probed(&self.node, &self.wire, &view, &interfaces).await;
            for reason in probed.reasons.iter().filter(|_| probed.withheld != self.session.journal.withheld) {
                tracing::warn!("an address of the host is not configured: {reason}");
            }
            if !probed.withheld.is_empty() {
                pause = pause.min(RETRY);
            }
            withheld = probed.withheld;
            withheld.extend(unprobed(&view, &interfaces, &self.session.journal.withheld));
        }
        self.session.adopt(interfaces, withheld).await?;
        if self.session.is_unconfirmed() && !self.settle().await {
            return Ok(RETRY);
        }
        self.rejected = None;
        if self.session.config.mode.renders() {
            self.render().await?;
        }
        if self.session.journal.withheld.is_empty() {
            self.report(HostState::Applied, "").await?;
        } else {
            let detail = format!("not configured: {:?}", self.session.journal.withheld);
            self.report(HostState::Failed, &detail).await?;
        }
        Ok(pause)
    }

    /// Requests the addresses from the servers; `None` if no interface needs any.
    async fn ask(&self, view: &View) -> Result<Option<Vec<Interface>>, Problem> {
        let config = &self.session.config;
        let id = machine_id(&config.machine_id_file).map_err(|why| Problem::new(Code::InvalidField, why))?;
        let wanted = interfaces(config, view);
        if wanted.is_empty() {
            return Ok(None);
        }
        let body = |interfaces: &[Value]| body(config, &self.node.config.node, &id, interfaces);
        match self.allocate(&body(&wanted)).await {
            Ok(interfaces) => return Ok(Some(interfaces)),
            Err(problem) if problem.code == Code::AlreadyExists && wanted.len() > 1 => {}
            Err(problem) => return Err(problem),
        }
        // Some interfaces already hold addresses. One request gets either new or existing allocations, so
        // each interface is requested separately.
        let mut all = Vec::new();
        for one in &wanted {
            let given = self.allocate(&body(std::slice::from_ref(one))).await?;
            all.extend(given.into_iter().filter(|given| one.get("name") == Some(&json!(given.name))));
        }
        Ok(Some(all))
    }

    async fn allocate(&self, body: &Value) -> Result<Vec<Interface>, Problem> {
        let call = Call::post("/v1/allocations").json(body)?.repeatable().within(REQUEST);
        let allocated: Allocated = self.node.cluster.send(call).await?.read()?;
        match allocated.waiting {
            Some(reason) => {
                let detail = format!("the request waits: {}", reason.message);
                Err(Problem::new(Code::PoolExhausted, detail))
            }
            None => Ok(allocated.interfaces),
        }
    }

    async fn refused(&mut self, problem: &Problem) -> Result<Duration, SessionError> {
        let text = problem.to_string();
        if self.problem.as_ref() != Some(&text) {
            tracing::warn!(%problem, help = %problem.help, "the host has no answer for its addresses");
        }
        self.problem = Some(text.clone());
        // The type of a problem also identifies codes that this version doesn't know.
        if problem.kind.ends_with(REINSTALLED) {
            self.report(HostState::Reinstalled, &format!("{text}. {TAKE_OVER}")).await?;
            return Ok(self.session.config.refresh);
        }
        let has_some = !self.session.journal.applied.is_empty();
        self.report(if has_some { HostState::Applied } else { HostState::Waiting }, &text).await?;
        let pause = self.retry;
        self.retry = (2 * self.retry).min(self.session.config.refresh.max(RETRY));
        Ok(pause.min(self.session.config.refresh.max(RETRY)))
    }

    /// Waits until a server answers after a change; otherwise undoes the change.
    ///
    /// Returns true if a server has answered.
    async fn settle(&mut self) -> bool {
        let confirm = self.session.config.confirm;
        if let Err(error) = self.report(HostState::Unconfirmed, "").await {
            tracing::debug!(%error, "the state is unknown");
        }
        if answers(&self.node.config, confirm).await {
            if let Err(error) = self.session.confirm() {
                tracing::warn!(%error, "the journal has no confirmation of a change");
            }
            return true;
        }
        let undone = match self.session.undo().await {
            Ok(undone) => undone,
            Err(error) => {
                tracing::error!(%error, "a change that cut the host off can't be undone");
                return false;
            }
        };
        let is_blamed = answers(&self.node.config, confirm).await;
        let (after, what) = (confirm.as_millis(), summary(&undone));
        if !is_blamed {
            // No server answers without the change either, so it is not the cause, and is repeated later.
            tracing::warn!("no server answered within {after} ms after a change, which was undone: {what}");
            return false;
        }
        let detail =
            format!("no server answered within {after} ms after this change, which was undone: {what}");
        tracing::error!("{detail}");
        let same = self.rejected.as_ref().filter(|one| one.interfaces == undone);
        let longest = Duration::from_millis(AGENT_INTERVAL_MS_MAX);
        let pause = same.map_or(2 * confirm, |one| 2 * one.pause).min(longest);
        let until = Instant::now() + pause;
        if let Err(error) = self.report(HostState::RolledBack, &detail).await {
            tracing::debug!(%error, "the state is unknown");
        }
        self.rejected = Some(Rejected { interfaces: undone, until, pause, detail });
        false
    }

    async fn report(&mut self, state: HostState, detail: &str) -> Result<(), SessionError> {
        let view = self.session.view().await?;
        self.session.report(state, self.source, detail, &view);
        Ok(())
    }

    /// Writes the files of the network manager.
    async fn render(&mut self) -> Result<(), SessionError> {
        let view = self.session.view().await?;
        let interfaces = named(&self.session.journal.applied, &view.bindings);
        let format = self.session.config.format;
        let rendered = render(format, &interfaces).map_err(|error| error.to_string());
        let former = &self.session.journal.rendered;
        let written = rendered.and_then(|files| write(&self.session.config.directory, &files, former));
        match written {
            Ok(written) => {
                if written.changed > 0 {
                    let command = activation(format);
                    tracing::info!(%format, files = ?written.files, "written; activate: {command}");
                }
                self.session.note_rendered(written.files)?;
            }
            Err(error) => tracing::warn!(%format, %error, "the files can't be rendered"),
        }
        Ok(())
    }
}

/// Addresses and gateways of a change, for its report.
fn summary(interfaces: &[Interface]) -> String {
    let mut parts = Vec::new();
    for interface in interfaces {
        for given in &interface.addresses {
            let gateway = given.gateway.map(|gateway| format!(" gateway {gateway}")).unwrap_or_default();
            parts.push(format!("{} {}{gateway}", interface.name, given.address));
        }
    }
    parts.join(", ")
}
