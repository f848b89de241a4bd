//! Applications of pods: the controllers of their controllers, with the number of replicas.
//!
//! Controllers of other groups are taken from the reference in the pod, without a request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipam_api::client::push_encoded;
use ipam_api::limits::OWNERS_CACHED_MAX;
use ipam_api::name::ObjectName;
use ipam_api::resource::Controller;
use serde::Deserialize;

use super::object::Metadata;
use crate::journal::{Application, Pod};
use crate::kubernetes::{ApiError, Client};

/// Time for which a read owner is reused: the pods of one owner are created together.
const FRESH: Duration = Duration::from_secs(5);
/// Controllers from a pod to its application: a ReplicaSet and its Deployment, a Job and its CronJob.
const DEPTH_MAX: usize = 2;

/// Recently read owners, by path and uid: an object with another uid than the reference is not the owner.
#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<Read>);

type Read = BTreeMap<(String, String), (Instant, Owner)>;

/// Controller as the API server describes it.
#[derive(Debug, Clone)]
struct Owner {
    replicas: Option<u32>,
    owner: Option<Controller>,
}

/// Fields of a controller.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<u32>,
    parallelism: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    desired_number_scheduled: Option<u32>,
}

impl Owners {
    /// Reads the application of a pod; `None` without a controller, or if its ReplicaSet or Job is deleted.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub(super) async fn application(
        &self,
        client: &Client,
        pod: &Pod,
        within: Duration,
    ) -> Result<Option<Application>, ApiError> {
        let until = Instant::now() + within;
        let Some(mut controller) = pod.owner.clone() else { return Ok(None) };
        let mut replicas = None;
        for _ in 0..DEPTH_MAX {
            let Some(path) = path(&pod.namespace, &controller) else { break };
            let left = until.saturating_duration_since(Instant::now());
            let Some(owner) = self.owner(client, &path, &controller, left).await? else {
                // Only a controller with a stable name can represent its application.
                let is_last = !matches!(controller.kind.as_str(), "ReplicaSet" | "Job");
                return Ok(is_last.then_some(Application { controller, replicas }));
            };
            // A CronJob has no number of replicas.
            replicas = owner.replicas.or(replicas);
            match owner.owner {
                Some(next) => controller = next,
                None => break,
            }
        }
        Ok(Some(Application { controller, replicas }))
    }

    /// Reads one controller; `None` if the object with this uid is deleted.
    async fn owner(
        &self,
        client: &Client,
        path: &str,
        controller: &Controller,
        within: Duration,
    ) -> Result<Option<Owner>, ApiError> {
        let uid = controller.uid.as_deref().unwrap_or_default();
        let key = (path.to_owned(), uid.to_owned());
        let known =
            self.lock().get(&key).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, owner)| owner.clone());
        if known.is_some() {
            return Ok(known);
        }
        let object: Object = match client.get(path, within).await {
            Ok(object) => object,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        if object.metadata.uid != uid {
            return Ok(None);
        }
        let Object { metadata, spec, status } = object;
        let replicas = spec.replicas.or(spec.parallelism).or(status.desired_number_scheduled);
        let owner = Owner { replicas, owner: metadata.owner() };
        let mut all = self.lock();
        all.retain(|_, (at, _)| at.elapsed() < FRESH);
        if all.len() < OWNERS_CACHED_MAX {
            all.insert(key, (Instant::now(), owner.clone()));
        }
        Ok(Some(owner))
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Path of a controller that the agent may read.
fn path(namespace: &ObjectName, controller: &Controller) -> Option<String> {
    let plural = match (controller.group.as_str(), controller.kind.as_str()) {
        ("apps", "ReplicaSet") => "replicasets",
        ("apps", "Deployment") => "deployments",
        ("apps", "StatefulSet") => "statefulsets",
        ("apps", "DaemonSet") => "daemonsets",
        ("batch", "Job") => "jobs",
        _ => return None,
    };
    let mut path = format!("/apis/{}/v1/namespaces/", controller.group);
    push_encoded(&mut path, namespace.as_str());
    path.push('/');
    path.push_str(plural);
    path.push('/');
    push_encoded(&mut path, controller.name.as_str());
    Some(path)
}
