//! Reconciliation of one kind of custom resources with the servers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use ipam_api::client::{Call, Expect, with_query};
use ipam_api::limits::KUBERNETES_READS_AT_ONCE;
use ipam_api::name::ObjectName;
use ipam_api::resource::Resource;
use ipam_api::{Code, Problem};
use kube::Client;
use tokio::time::Instant;

use super::confirm::confirm_missing;
use super::publish::Publisher;
use super::write::{Outcome, write};
use crate::absent::Absent;
use crate::custom::{CustomFacts, CustomKind, Decision, Step, Stored, foreign, step};
use crate::mirror::{Mirrored, Row, Wanted};
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::Shared;

/// Resources whose next steps are in memory at once.
const ROUND: usize = 256;

/// Part of the steps that is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Deletions.
    Delete,
    /// Writes, and the decisions without a request.
    Put,
}

/// Refusal by the servers, after which the step is retried.
#[derive(Debug)]
struct Refused {
    code: Code,
    at: Instant,
    pause: Duration,
}

type View<K> = Resource<<K as CustomKind>::Spec, <K as CustomKind>::Status>;

/// Object with its next step.
struct Planned<K: CustomKind> {
    name: ObjectName,
    step: Step<K::Spec>,
    /// Uid and generation of the object, if there is one.
    of: Option<(String, i64)>,
}

/// Reconciliation of one kind.
pub(super) struct Reconciler<'a, S, K: CustomKind> {
    shared: &'a Shared<S>,
    client: &'a Client,
    /// Resources of this manager.
    rows: BTreeMap<ObjectName, Stored<K>>,
    /// Time of the next read of the resources; none before the first.
    refresh_at: Option<Instant>,
    /// Objects and resources to compare.
    due: BTreeSet<ObjectName>,
    refused: BTreeMap<ObjectName, Refused>,
    absent: Absent<ObjectName>,
    publisher: Publisher<'a, S, K>,
}

impl<'a, S: Servers, K: CustomKind> Reconciler<'a, S, K> {
    pub(super) fn new(shared: &'a Shared<S>, client: &'a Client) -> Self {
        Self {
            shared,
            client,
            rows: BTreeMap::new(),
            refresh_at: None,
            due: BTreeSet::new(),
            refused: BTreeMap::new(),
            absent: Absent::default(),
            publisher: Publisher::new(shared, client),
        }
    }

    fn view<T>(&self, read: impl FnOnce(&mut Mirrored<CustomFacts<K::Spec>>) -> T) -> T {
        read(K::view(&mut self.shared.views().custom))
    }

    /// Time between two reads of the resources.
    fn interval(&self) -> Duration {
        self.shared.settings.status_interval.min(self.shared.settings.scan_interval)
    }

    /// Determines the objects and resources to compare; none before the objects are listed.
    pub(super) async fn collect(&mut self) -> Result<(), Problem> {
        if !self.view(|view| view.listed.is_synced()) {
            return Ok(());
        }
        let now = Instant::now();
        if self.refresh_at.is_none_or(|at| at <= now) {
            self.refresh().await?;
            self.refresh_at = Some(now + self.interval());
        }
        let changed = self.view(|view| std::mem::take(&mut view.changed));
        let again = self.refused.iter().filter(|(_, refused)| refused.at <= now);
        self.due.extend(again.map(|(name, _)| name.clone()));
        self.due.extend(changed);
        Ok(())
    }

    /// Reads the resources, and finds those whose objects no longer exist.
    async fn refresh(&mut self) -> Result<(), Problem> {
        let list = with_query(&path(&[K::SERVERS_PLURAL]), "managed_by", &self.shared.settings.manager());
        let mut rows = BTreeMap::new();
        each(&self.shared.servers, &list, |one: View<K>| {
            rows.extend(named::<K>(one));
        })
        .await?;
        self.rows = rows;
        let objects: BTreeSet<ObjectName> = self.view(|view| view.listed.keys().cloned().collect());
        self.refused.retain(|name, _| objects.contains(name) || self.rows.contains_key(name));
        self.publisher.retain(&objects);
        let all = objects.iter().chain(self.rows.keys());
        self.due.extend(all.filter(|name| !self.refused.contains_key(*name)).cloned());
        let missing = self.rows.keys().filter(|name| !objects.contains(*name)).cloned();
        let absent = self.view(|view| missing.filter(|name| !view.is_gone(name)).collect());
        let due = self.absent.scan(absent, Instant::now(), self.shared.settings.scan_interval);
        for (name, is_missing) in confirm_missing(self.shared, self.client, &K::resource(), due).await {
            self.absent.forget(&name);
            if is_missing {
                self.view(|view| view.end(name));
            }
        }
        self.shared.note(|status| status.compared += 1);
        Ok(())
    }

    /// Takes the steps of a phase. Returns true if the servers have changed anything.
    pub(super) async fn write(&mut self, phase: Phase) -> Result<bool, Problem> {
        let names: Vec<ObjectName> = match phase {
            Phase::Delete => self.due.iter().cloned().collect(),
            Phase::Put => std::mem::take(&mut self.due).into_iter().collect(),
        };
        let (mut has_changed, mut failure) = (false, None);
        for names in names.chunks(ROUND) {
            let mut writes = Vec::new();
            for name in names {
                let planned = self.plan(name);
                match (phase, &planned.step) {
                    (Phase::Delete, Step::Delete(_)) | (Phase::Put, Step::Put(..)) => writes.push(planned),
                    (Phase::Put, Step::Applied) => {
                        self.refused.remove(name);
                        self.decide(&planned, None);
                    }
                    (Phase::Put, Step::Refuse(problem)) => {
                        self.refused.remove(name);
                        self.decide(&planned, Some(problem.clone()));
                    }
                    (Phase::Put, Step::Delete(_)) => {
                        self.due.insert(name.clone());
                    }
                    (Phase::Put, Step::Nothing) => {
                        self.refused.remove(name);
                    }
                    (Phase::Delete, _) => {}
                }
            }
            let sent = writes.into_iter().map(async |planned| (self.send(&planned).await, planned));
            let results: Vec<_> =
                futures::stream::iter(sent).buffer_unordered(KUBERNETES_READS_AT_ONCE).collect().await;
            for (result, planned) in results {
                match result.and_then(|outcome| self.settle(&planned, outcome)) {
                    Ok(()) => has_changed = true,
                    Err(problem) if is_passing(&problem) => {
                        self.due.insert(planned.name);
                        failure = Some(problem);
                    }
                    Err(problem) => self.refuse(&planned, problem),
                }
            }
        }
        failure.map_or(Ok(has_changed), Err)
    }

    fn plan(&self, name: &ObjectName) -> Planned<K> {
        let wanted = self.view(|view| view.wanted(name));
        let of = match &wanted {
            Wanted::Present(facts) => Some((facts.uid.clone(), facts.generation)),
            Wanted::Gone | Wanted::Unknown => None,
        };
        let step = step::<K>(name, self.rows.get(name).map(|stored| &stored.row), wanted);
        Planned { name: name.clone(), step, of }
    }

    async fn send(&self, planned: &Planned<K>) -> Result<Outcome<View<K>>, Problem> {
        let own = path(&[K::SERVERS_PLURAL, planned.name.as_str()]);
        let call = match &planned.step {
            Step::Put(spec, expect) => Call::put(own.as_str()).json(spec)?.expect(*expect),
            Step::Delete(revision) => {
                let call = Call::delete(own.as_str()).query("manager", &self.shared.settings.manager());
                let call = if K::DRAINS { call.query("drain", "true") } else { call };
                call.expect(Expect::Revision(*revision))
            }
            Step::Nothing | Step::Applied | Step::Refuse(_) => {
                return Err(Problem::new(Code::Internal, "this step has no request"));
            }
        };
        write(&self.shared.servers, own, call).await
    }

    /// Records the outcome of a step. After a conflict with another writer, the object is compared again.
    fn settle(&mut self, planned: &Planned<K>, outcome: Outcome<View<K>>) -> Result<(), Problem> {
        let name = &planned.name;
        let present = match outcome {
            Outcome::Done(answer) => {
                self.refused.remove(name);
                // A terminating pool without held addresses is deleted at once.
                let present = if answer.body.is_empty() { None } else { Some(answer.read()?) };
                if present.is_some() {
                    self.decide(planned, None);
                }
                present
            }
            Outcome::Raced { problem, .. } if is_passing(&problem) => return Err(problem),
            Outcome::Raced { problem, present } => {
                let is_new = matches!(planned.step, Step::Put(_, Expect::Absent));
                if present.is_none() && is_new {
                    // A resource that this one refers to does not exist.
                    return Err(problem);
                }
                self.due.insert(name.clone());
                present
            }
        };
        self.rows.remove(name);
        let Some(present) = present else { return Ok(()) };
        let manager = self.shared.settings.manager();
        match K::manager(&present.spec) {
            Some(by) if by == manager => self.rows.extend(named::<K>(present)),
            by => return Err(foreign(K::KIND, name, by)),
        }
        Ok(())
    }

    /// Records a refusal by the servers, which is counted once until it ends.
    fn refuse(&mut self, planned: &Planned<K>, problem: Problem) {
        self.due.remove(&planned.name);
        let (first, longest) = (self.interval(), self.shared.settings.scan_interval);
        let former = self.refused.get(&planned.name);
        let pause = former.map_or(first, |former| (former.pause * 2).min(longest));
        if former.is_none_or(|former| former.code != problem.code) {
            self.shared.note(|status| status.refuse(problem.code));
        }
        let refused = Refused { code: problem.code, at: Instant::now() + pause, pause };
        self.refused.insert(planned.name.clone(), refused);
        self.decide(planned, Some(problem));
    }

    fn decide(&mut self, planned: &Planned<K>, refusal: Option<Problem>) {
        let Some((uid, generation)) = planned.of.clone() else { return };
        self.publisher.decide(&planned.name, Decision { uid, generation, refusal });
    }

    /// Retries refused steps, except those that only another manager can resolve.
    pub(super) fn retry(&mut self) {
        let now = Instant::now();
        for refused in self.refused.values_mut().filter(|one| one.code != Code::ManagedElsewhere) {
            refused.at = now;
        }
    }

    /// Writes the statuses that differ.
    pub(super) async fn publish(&mut self) {
        self.publisher.publish(&self.rows).await;
    }

    /// Time of the next work.
    pub(super) fn next(&self) -> Option<Instant> {
        let again = self.refused.values().map(|refused| refused.at).min();
        [self.refresh_at, again, self.publisher.next()].into_iter().flatten().min()
    }
}

/// Resource by its name.
fn named<K: CustomKind>(one: View<K>) -> Option<(ObjectName, Stored<K>)> {
    let name = ObjectName::new(K::name(&one.spec)).ok()?;
    let row = Row { revision: one.meta.revision, spec: one.spec };
    Some((name, Stored { row, status: one.status }))
}
