//! Writes of mirrored resources.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use ipam_api::client::{Call, Expect};
use ipam_api::host_policy::HostPolicy;
use ipam_api::limits::{KUBERNETES_READS_AT_ONCE, LABELS_MAX};
use ipam_api::name::ObjectName;
use ipam_api::resource::{Pool, Resource};
use ipam_api::{Code, Problem};
use kube::Client;
use serde::de::IgnoredAny;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::confirm::confirm_missing;
use super::write::{Outcome, write};
use crate::absent::Absent;
use crate::backoff::Backoff;
use crate::mirror::{Mirror, Mirrored, Row, Step, step};
use crate::objects::resource;
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::{Shared, Views};

/// Resources in one round of writes.
const ROUND: usize = 256;

/// Access to the view of a mirrored resource.
pub(crate) struct Place<M: Mirror> {
    /// Kind of the objects.
    pub(crate) kind: &'static str,
    /// Labels by which pools select.
    pub(crate) selector: fn(&Pool) -> &ipam_api::Selector,
    /// True if host policies select the objects, too.
    pub(crate) serves_hosts: bool,
    pub(crate) view: fn(&mut Views) -> &mut Mirrored<M::Facts>,
    /// Records the deletion of an object.
    pub(crate) end: fn(&mut Views, ObjectName),
}

struct Task<'a, S, M: Mirror> {
    shared: &'a Shared<S>,
    client: &'a Client,
    place: Place<M>,
    rows: BTreeMap<ObjectName, Row<M::Spec>>,
    /// Codes of present refusals.
    refused: BTreeMap<ObjectName, Code>,
    selected: BTreeSet<String>,
    absent: Absent<ObjectName>,
}

/// Resource of the servers after a step.
enum Written<S> {
    /// The resource is unchanged.
    Nothing,
    /// The resource has this state.
    Row(Row<S>),
    /// The resource does not exist.
    Gone,
}

/// Keeps the mirror of one resource, for as long as the watcher runs.
pub(crate) async fn mirror<M: Mirror>(
    shared: &Shared<impl Servers>,
    client: &Client,
    wake: &Notify,
    place: Place<M>,
) {
    let mut task = Task {
        shared,
        client,
        place,
        rows: BTreeMap::new(),
        refused: BTreeMap::new(),
        selected: BTreeSet::new(),
        absent: Absent::default(),
    };
    let mut backoff = Backoff::default();
    let mut refresh_at = Instant::now();
    loop {
        // Without a list of the objects there is nothing to compare.
        if !task.view(|view| view.listed.is_synced()) {
            wake.notified().await;
            continue;
        }
        let result = match Instant::now() >= refresh_at {
            true => task.refresh().await.map(|()| {
                refresh_at = Instant::now() + shared.settings.scan_interval;
                true
            }),
            false => task.round().await,
        };
        match result {
            Ok(true) => backoff.reset(),
            Ok(false) => {
                tokio::select! {
                    () = wake.notified() => {}
                    () = tokio::time::sleep_until(refresh_at) => {}
                }
            }
            Err(problem) => {
                shared.refused(&problem);
                backoff.wait().await;
            }
        }
    }
}

impl<S: Servers, M: Mirror> Task<'_, S, M> {
    fn view<T>(&self, read: impl FnOnce(&mut Mirrored<M::Facts>) -> T) -> T {
        read((self.place.view)(&mut self.shared.views()))
    }

    /// Reads the resources, and finds those whose objects no longer exist.
    async fn refresh(&mut self) -> Result<(), Problem> {
        let realm = self.shared.settings.realm.clone();
        let list = ipam_api::client::with_query(&path(&[M::PLURAL]), "realm", realm.as_str());
        let mut rows = BTreeMap::new();
        each(&self.shared.servers, &list, |one: Resource<M::Spec, IgnoredAny>| {
            let row = Row { revision: one.meta.revision, spec: one.spec };
            rows.insert(M::name(&row.spec).clone(), row);
        })
        .await?;
        self.rows = rows;
        let has_many = |view: &mut Mirrored<M::Facts>| {
            let mut all = view.listed.values();
            all.any(|facts| M::labels(facts).len() > LABELS_MAX)
        };
        if self.view(has_many) {
            let mut selected = BTreeSet::new();
            let selector = self.place.selector;
            each(&self.shared.servers, &path(&["pools"]), |one: Resource<Pool, IgnoredAny>| {
                selected.extend(selector(&one.spec).keys().map(str::to_owned));
            })
            .await?;
            if self.place.serves_hosts && self.shared.settings.custom_resources {
                each(
                    &self.shared.servers,
                    &path(&["host-policies"]),
                    |one: Resource<HostPolicy, IgnoredAny>| {
                        selected.extend(one.spec.node_selector.keys().map(str::to_owned));
                    },
                )
                .await?;
            }
            self.selected = selected;
        }
        let manager = self.shared.settings.manager();
        let own =
            self.rows.values().filter(|row| M::manager(&mut row.spec.clone()).as_deref() == Some(&manager));
        let own: Vec<ObjectName> = own.map(|row| M::name(&row.spec).clone()).collect();
        let absent = self.view(|view| {
            view.changed.extend(view.listed.keys().cloned());
            own.into_iter().filter(|name| view.listed.get(name).is_none() && !view.is_gone(name)).collect()
        });
        let due = self.absent.scan(absent, Instant::now(), self.shared.settings.scan_interval);
        self.confirm(due).await;
        Ok(())
    }

    async fn confirm(&mut self, due: Vec<ObjectName>) {
        let resource = resource("", self.place.kind, M::PLURAL);
        for (name, is_missing) in confirm_missing(self.shared, self.client, &resource, due).await {
            self.absent.forget(&name);
            if is_missing {
                (self.place.end)(&mut self.shared.views(), name);
                self.shared.wake.leaving.notify_one();
            }
        }
    }

    /// Writes some of the changed resources. Returns false if none has changed.
    async fn round(&mut self) -> Result<bool, Problem> {
        let names: Vec<ObjectName> = self.view(|view| {
            let names: Vec<_> = view.changed.iter().take(ROUND).cloned().collect();
            for name in &names {
                view.changed.remove(name);
            }
            names
        });
        if names.is_empty() {
            return Ok(false);
        }
        let steps: Vec<_> = names.into_iter().map(|name| (self.step(&name), name)).collect();
        let writes = steps.into_iter().map(async |(step, name)| (self.write(&name, step).await, name));
        let results: Vec<_> =
            futures::stream::iter(writes).buffer_unordered(KUBERNETES_READS_AT_ONCE).collect().await;
        let mut failure = None;
        for (result, name) in results {
            match result {
                Ok(Written::Row(row)) => {
                    self.rows.insert(name, row);
                }
                Ok(Written::Gone) => {
                    self.rows.remove(&name);
                }
                Ok(Written::Nothing) => {}
                Err(problem) if is_passing(&problem) => {
                    self.view(|view| view.changed.insert(name));
                    failure = Some(problem);
                }
                Err(problem) => self.refuse(&name, problem.code),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    fn step(&mut self, name: &ObjectName) -> Step<M::Spec> {
        let settings = &self.shared.settings;
        let wanted = self.view(|view| view.wanted(name));
        let manager = settings.manager();
        let of = (&settings.realm, name, manager.as_str());
        let (step, problem) = step::<M>(of, self.rows.get(name), &wanted, &self.selected);
        match (&step, problem) {
            (Step::Foreign, _) => self.refuse(name, Code::ManagedElsewhere),
            (_, Some(code)) => self.refuse(name, code),
            (_, None) => {
                self.refused.remove(name);
            }
        }
        step
    }

    /// Counts a refusal once, until it ends.
    fn refuse(&mut self, name: &ObjectName, code: Code) {
        if self.refused.insert(name.clone(), code) != Some(code) {
            self.shared.note(|status| status.refuse(code));
        }
    }

    /// Takes a step.
    async fn write(&self, name: &ObjectName, step: Step<M::Spec>) -> Result<Written<M::Spec>, Problem> {
        let own = path(&[M::PLURAL, self.shared.settings.realm.as_str(), name.as_str()]);
        let (call, spec) = match step {
            Step::Nothing | Step::Foreign => return Ok(Written::Nothing),
            Step::Put(spec, expect) => (Call::put(own.as_str()).json(&spec)?.expect(expect), Some(spec)),
            Step::Delete(revision) => {
                let call = Call::delete(own.as_str()).query("manager", &self.shared.settings.manager());
                (call.expect(Expect::Revision(revision)), None)
            }
        };
        let outcome: Outcome<Resource<M::Spec, IgnoredAny>> = write(&self.shared.servers, own, call).await?;
        match (outcome, spec) {
            (Outcome::Done(answer), Some(spec)) => match answer.etag {
                Some(revision) => Ok(Written::Row(Row { spec, revision })),
                None => Err(Problem::new(Code::Unreachable, "the answer has no ETag")),
            },
            (Outcome::Done(_), None) => Ok(Written::Gone),
            (Outcome::Raced { present, .. }, _) => {
                self.view(|view| view.changed.insert(name.clone()));
                Ok(present.map_or(Written::Gone, |one| {
                    Written::Row(Row { spec: one.spec, revision: one.meta.revision })
                }))
            }
        }
    }
}
