//! Scales and ends of controllers.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::Problem;
use ipam_api::client::{Call, with_query};
use ipam_api::limits::KUBERNETES_FACTS_MAX;
use ipam_api::name::ObjectName;
use ipam_api::request::{EndRequest, Released, ScaleRequest};
use kube::Client;

use super::confirm::is_gone;
use crate::backoff::Backoff;
use crate::connection::Kinds;
use crate::controllers::{ControllerId, Work};
use crate::objects::Kind;
use crate::rows::{EndpointRow, PoolRow};
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::Shared;

/// Requests that the servers accepted. A policy may keep addresses, so that later scans repeat a finding.
#[derive(Debug, Default)]
struct Told {
    scales: BTreeMap<ControllerId, (u32, u32)>,
    ends: BTreeSet<ControllerId>,
}

/// Failure of one piece of work.
enum Failure {
    ApiServer(kube::Error),
    Servers(Problem),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::ApiServer(error)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Servers(problem)
    }
}

/// Reports scaled and deleted controllers to the servers, for as long as the watcher runs.
pub(crate) async fn follow_controllers(shared: &Shared<impl Servers>, client: &Client) {
    shared.synced().await;
    let mut told = Told::default();
    let mut backoff = Backoff::default();
    loop {
        let Some(work) = shared.views().controllers.work.pop_first() else {
            shared.wake.controllers.notified().await;
            continue;
        };
        let result = match &work {
            Work::Scaled(kind, namespace, name) => scale(shared, &mut told, (*kind, namespace, name)).await,
            Work::Deleted(kind, namespace, name, uid) => {
                end_deleted(shared, client, &mut told, (*kind, namespace, name), uid).await
            }
            Work::Gone(id) => end(shared, &mut told, id.clone()).await.map_err(Failure::from),
        };
        let is_passing = match &result {
            Ok(()) => {
                backoff.reset();
                continue;
            }
            Err(Failure::ApiServer(error)) => {
                shared.failed(error);
                true
            }
            Err(Failure::Servers(problem)) => {
                shared.refused(problem);
                is_passing(problem)
            }
        };
        // The next scan finds all other failed work again.
        if is_passing {
            shared.views().controllers.work.insert(work);
        }
        backoff.wait().await;
    }
}

type Named<'a> = (Kind, &'a ObjectName, &'a ObjectName);

async fn scale(shared: &Shared<impl Servers>, told: &mut Told, of: Named<'_>) -> Result<(), Failure> {
    let (kind, namespace, name) = of;
    let known = known(shared, of).await?;
    let scale = shared.views().controllers.scale(kind, namespace, name).cloned();
    let Some((scale, (replicas, start))) = scale.and_then(|scale| Some((scale.clone(), scale.wanted?)))
    else {
        return Ok(());
    };
    for id in known.into_iter().filter(|id| id.may_be(&scale.uid)) {
        if told.scales.get(&id) == Some(&(replicas, start)) {
            continue;
        }
        let request = ScaleRequest {
            realm: shared.settings.realm.clone(),
            namespace: id.namespace.clone(),
            controller: id.controller(),
            replicas,
            start,
        };
        released(shared, Call::post("/v1/controllers/scale").json(&request)?).await?;
        if told.scales.len() >= KUBERNETES_FACTS_MAX {
            told.scales.clear();
        }
        told.scales.insert(id, (replicas, start));
    }
    Ok(())
}

/// Ends the controllers that a deletion concerns.
async fn end_deleted(
    shared: &Shared<impl Servers>,
    client: &Client,
    told: &mut Told,
    (kind, namespace, name): Named<'_>,
    uid: &str,
) -> Result<(), Failure> {
    let mut known = known(shared, (kind, namespace, name)).await?;
    if kind == Kind::Vm {
        // Endpoints name the machine of a VM.
        known.extend(self::known(shared, (Kind::Machine, namespace, name)).await?);
    }
    let mut kinds = Kinds::default();
    for id in known {
        let is_deleted = match Kind::of(&id.group, &id.kind) {
            // The VM may exist without its machine, and the machine without its VM.
            Some(Kind::Machine) => is_gone(client, &mut kinds, &id).await?,
            _ => id.may_be(uid),
        };
        if is_deleted {
            let uid = id.uid.clone().or_else(|| (kind != Kind::Vm).then(|| uid.to_owned()));
            end(shared, told, ControllerId { uid, ..id }).await?;
        }
    }
    Ok(())
}

async fn end(shared: &Shared<impl Servers>, told: &mut Told, id: ControllerId) -> Result<(), Problem> {
    if told.ends.contains(&id) {
        return Ok(());
    }
    let request = EndRequest {
        realm: shared.settings.realm.clone(),
        namespace: id.namespace.clone(),
        controller: id.controller(),
    };
    released(shared, Call::post("/v1/controllers/end").json(&request)?).await?;
    shared.note(|status| status.ended += 1);
    if told.ends.len() >= KUBERNETES_FACTS_MAX {
        told.ends.clear();
    }
    told.ends.insert(id);
    Ok(())
}

async fn released(shared: &Shared<impl Servers>, call: Call) -> Result<(), Problem> {
    let released: Released = shared.servers.send(call.repeatable()).await?.read()?;
    shared.note(|status| status.reclaimed += released.addresses.len() as u64 + released.more);
    Ok(())
}

/// Controllers of this name that the servers know. A change of other controllers would have no effect.
async fn known(
    shared: &Shared<impl Servers>,
    (kind, namespace, name): Named<'_>,
) -> Result<BTreeSet<ControllerId>, Problem> {
    let realm = &shared.settings.realm;
    let (group, kind, _) = kind.names();
    let is_it = |id: &ControllerId| {
        (id.group.as_str(), id.kind.as_str()) == (group, kind)
            && (&id.namespace, &id.name) == (namespace, name)
    };
    let mut known = BTreeSet::new();
    let filters =
        [("realm", realm.as_str()), ("namespace", namespace.as_str()), ("controller", name.as_str())];
    let endpoints =
        filters.iter().fold(path(&["endpoints"]), |path, (key, value)| with_query(&path, key, value));
    each(&shared.servers, &endpoints, |row: EndpointRow| {
        let id = row.controller.map(|controller| ControllerId::new(row.key.namespace, controller));
        known.extend(id.filter(is_it));
    })
    .await?;
    let pools = with_query(&path(&["pools"]), "application", name.as_str());
    each(&shared.servers, &pools, |row: PoolRow| {
        let application = row.present_in(realm);
        let id = application.map(|one| ControllerId::new(one.namespace, one.controller));
        known.extend(id.filter(is_it));
    })
    .await?;
    Ok(known)
}
