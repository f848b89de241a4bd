//! One step of a claim, or of an object whose claim no longer exists.

use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ApiResource;
use serde_json::json;

use super::failure::Failure;
use super::grant::{Grant, allocate, held, release};
use super::shared::Shared;
use super::views::{PoolState, ReadyPool, Views};
use crate::cluster_api::{
    ALLOCATION_FAILED, AddressFacts, AddressSpec, ClaimFacts, ClusterFacts, Key, Metadata, PoolFacts,
    Readiness, Scene, Shown, Step, claim_status, object, owners, step,
};
use crate::connection::{Target, finalizers};
use crate::custom::{changes, message};
use crate::servers::{Servers, is_passing};

/// Result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The next step follows from an event, or is due already.
    Idle,
    /// The address is allocated. Only the next step shows whether the claim makes progress.
    Granted,
    /// The claim waits for an address.
    Waits,
    /// The step failed, and is retried after a pause.
    Failed,
    /// Neither the claim nor its object exists.
    Gone,
}

/// Claim at the time of its step.
struct Present {
    key: Key,
    claim: ClaimFacts,
    address: Option<AddressFacts>,
    pool_uid: Option<String>,
    pool: Option<ReadyPool>,
    claims: ApiResource,
    addresses: ApiResource,
}

/// State that prevents a release, and that the view doesn't show yet.
enum Obstacle {
    /// The claim has changed. Its event triggers the next step.
    News,
    /// Another object differs from the view.
    Lag(String),
}

/// Claim with its next step, or an object whose claim no longer exists.
enum Next {
    Nothing,
    Claim(Box<Present>, Step),
    Orphan(AddressFacts),
    Gone,
}

/// Takes the next step of a claim.
pub(super) async fn take_step(shared: &Shared<impl Servers>, key: &Key) -> Outcome {
    let contract = shared.contract().clone();
    let (Some(claims), Some(addresses)) = (contract.claims, contract.addresses) else {
        return Outcome::Failed;
    };
    let next = next(&shared.views(), key, &claims, &addresses);
    match next {
        Next::Gone => Outcome::Gone,
        Next::Orphan(address) => {
            settle(shared, free_orphan(shared, (&claims, &addresses), key, &address).await)
        }
        Next::Nothing => Outcome::Idle,
        Next::Claim(present, Step::Request { existing }) => request(shared, &present, existing).await,
        Next::Claim(present, step) => settle(shared, present.write(shared, step).await),
    }
}

fn next(views: &Views, key: &Key, claims: &ApiResource, addresses: &ApiResource) -> Next {
    let address = views.addresses.get(key);
    let Some(claim) = views.claims.get(key) else {
        return address.map_or(Next::Gone, |address| Next::Orphan(address.clone()));
    };
    let (pool, state) = (views.pool(&claim.pool), views.states.get(&claim.pool));
    let refusal = match state {
        Some(PoolState::Refused(problem) | PoolState::Unreached(problem)) => message(problem),
        Some(PoolState::Ready(_)) | None => String::new(),
    };
    let answer = views.answers.get(key);
    let step = step(Scene {
        name: &key.1,
        claim,
        pool,
        readiness: match state {
            None => Readiness::Unknown,
            Some(PoolState::Ready(_)) => Readiness::Ready,
            Some(PoolState::Refused(_)) => Readiness::Refused(&refusal),
            Some(PoolState::Unreached(_)) => Readiness::Unreached(&refusal),
        },
        cluster: views.cluster_state(&key.0, claim),
        address,
        granted: answer.and_then(|answer| answer.granted.as_ref()),
        refusal: answer.and_then(|answer| answer.refusal.as_ref()),
    });
    if step == Step::Nothing {
        return Next::Nothing;
    }
    let present = Present {
        key: key.clone(),
        claim: claim.clone(),
        address: address.cloned(),
        pool_uid: pool.and_then(PoolFacts::owner_uid).map(str::to_owned),
        pool: match state {
            Some(PoolState::Ready(pool)) => Some(pool.clone()),
            _ => None,
        },
        claims: claims.clone(),
        addresses: addresses.clone(),
    };
    Next::Claim(Box::new(present), step)
}

/// Outcome of a write.
fn settle(shared: &Shared<impl Servers>, result: Result<(), Failure>) -> Outcome {
    match result {
        Ok(()) => Outcome::Idle,
        Err(failure) => {
            failure.note(shared);
            Outcome::Failed
        }
    }
}

/// Requests the address of a claim, and records the answer.
async fn request(shared: &Shared<impl Servers>, present: &Present, existing: Option<AddressSpec>) -> Outcome {
    let Present { key, claim, pool, .. } = present;
    let Some(pool) = pool else { return Outcome::Idle };
    let has_object = existing.is_some();
    let answer = allocate(shared, key, claim, pool, existing).await;
    let mut views = shared.views();
    // Meanwhile the claim may have been deleted, or replaced by a claim of the same name.
    if views.claims.get(key).is_none_or(|now| now.metadata.uid != claim.metadata.uid) {
        return Outcome::Idle;
    }
    views.stop_waiting(key);
    let known = views.answers.entry(key.clone()).or_default();
    let outcome = match answer {
        Ok(Grant::Allocated(spec)) => {
            known.granted = Some(spec);
            Outcome::Granted
        }
        Ok(Grant::Waiting { shown, revision }) => {
            known.refusal = Some(shown);
            views.waiting.entry(pool.name.clone()).or_default().add(key.clone(), revision);
            Outcome::Waits
        }
        Err(problem) => {
            // An outage of ipamd changes nothing for a claim that has its address.
            if !(has_object && is_passing(&problem)) {
                let reason = super::grant::reason(&problem);
                known.refusal = Some(Shown::Unfulfilled { reason, message: message(&problem) });
            }
            // A refusal is shown as a condition of the claim, an outage in the status of the provider.
            if is_passing(&problem) {
                drop(views);
                shared.refused(&problem);
                views = shared.views();
            }
            Outcome::Failed
        }
    };
    if outcome != Outcome::Failed || views.answers.get(key).is_some_and(|known| known.refusal.is_some()) {
        views.due_claims.insert(key.clone());
    }
    views.changed_pools.insert(claim.pool.clone());
    drop(views);
    shared.waiting.notify_one();
    shared.counts.notify_one();
    outcome
}

impl Present {
    fn target<'a>(&'a self, resource: &'a ApiResource, metadata: &'a Metadata) -> Target<'a> {
        let (namespace, name) = (Some(self.key.0.as_str()), self.key.1.as_str());
        Target { resource, namespace, name, uid: &metadata.uid }
    }

    fn owners(&self) -> Vec<OwnerReference> {
        owners(&self.claims, (&self.key.1, &self.claim), self.pool_uid.as_deref())
    }

    /// Writes what a step changes.
    async fn write(&self, shared: &Shared<impl Servers>, step: Step) -> Result<(), Failure> {
        let (client, own) = (&shared.client, &self.claim.metadata);
        let claim = self.target(&self.claims, own);
        match step {
            Step::Nothing | Step::Request { .. } => Ok(()),
            Step::Show(shown) => {
                let next = claim_status(&self.claims, &self.key.1, &self.claim, &shown, Timestamp::now());
                if next == self.claim.status {
                    return Ok(());
                }
                Ok(claim.patch_status(client, changes(&self.claim.status, &next)).await?)
            }
            Step::Hold => {
                let change = finalizers(own.with_finalizer());
                Ok(claim.patch_metadata(client, &own.version, change).await?)
            }
            Step::Create(spec) => self.create(shared, &spec).await,
            Step::Release => self.release(shared).await,
            Step::Correct | Step::Delete | Step::Free => {
                let Some(address) = &self.address else { return Ok(()) };
                let target = self.target(&self.addresses, &address.metadata);
                let change = match step {
                    Step::Delete => return self.delete(shared, &target).await,
                    Step::Correct => {
                        let mut change = finalizers(address.metadata.with_finalizer());
                        let owners = json!(address.owners(self.owners()));
                        change.insert("ownerReferences".to_owned(), owners);
                        change
                    }
                    _ => finalizers(address.metadata.without_finalizer()),
                };
                Ok(target.patch_metadata(client, &address.metadata.version, change).await?)
            }
        }
    }

    async fn create(&self, shared: &Shared<impl Servers>, spec: &AddressSpec) -> Result<(), Failure> {
        let body = object(&self.addresses, &self.key, &self.claim, &self.owners(), spec);
        let absent = Metadata::default();
        let target = self.target(&self.addresses, &absent);
        let error = match target.create(&shared.client, body).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // An object of this claim appears in the watch soon. Any other object keeps the name.
        if matches!(&error, kube::Error::Api(status) if status.code == 409)
            && let Some(other) = target.get(&shared.client).await?
            && AddressFacts::of(&other).is_none_or(|(_, facts)| !facts.fulfils(&self.key.1, &self.claim))
        {
            let message = format!("IPAddress {} exists, and is of another provider", self.key.1);
            self.refuse(shared, message);
        }
        Err(error.into())
    }

    fn refuse(&self, shared: &Shared<impl Servers>, message: String) {
        let mut views = shared.views();
        let known = views.answers.entry(self.key.clone()).or_default();
        // The address stays allocated; the next request finds it.
        known.granted = None;
        known.refusal = Some(Shown::Unfulfilled { reason: ALLOCATION_FAILED, message });
        views.due_claims.insert(self.key.clone());
    }

    /// Releases the address of a claim in deletion, and removes the finalizer of the claim.
    ///
    /// The prefixes are read before the API server confirms the deletion, so that they belong to this claim
    /// and not to a later claim of the same name.
    async fn release(&self, shared: &Shared<impl Servers>) -> Result<(), Failure> {
        loop {
            let held = held(shared, &self.key, &self.claim).await?;
            match self.obstacle(shared).await? {
                None => {}
                Some(Obstacle::News) => return Ok(()),
                Some(Obstacle::Lag(why)) => return Err(Problem::new(Code::Internal, why).into()),
            }
            if release(shared, &self.key, &self.claim, held).await? {
                break;
            }
        }
        shared.views().forget(&self.key);
        let own = &self.claim.metadata;
        let change = finalizers(own.without_finalizer());
        let target = self.target(&self.claims, own);
        target.patch_metadata(&shared.client, &own.version, change).await?;
        {
            let mut views = shared.views();
            views.due_pools.insert(self.claim.pool.clone());
            views.changed_pools.insert(self.claim.pool.clone());
        }
        shared.pools.notify_one();
        shared.counts.notify_one();
        Ok(())
    }
}

impl Present {
    /// Reads the state that prevents a release, which the view may not show yet, from a quorum.
    async fn obstacle(&self, shared: &Shared<impl Servers>) -> Result<Option<Obstacle>, Failure> {
        let (client, absent) = (&shared.client, Metadata::default());
        let (Self { claim, claims, addresses, .. }, name) = (self, &self.key.1);
        let found = self.target(claims, &absent).get(client).await?;
        let is_same = found.is_some_and(|found| {
            let found = Metadata::of(&found.metadata);
            found.uid == claim.metadata.uid && found.version == claim.metadata.version
        });
        if !is_same {
            return Ok(Some(Obstacle::News));
        }
        // An object that was created just now must not outlive its claim.
        let found = self.target(addresses, &absent).get(client).await?;
        let found = found.and_then(|found| AddressFacts::of(&found));
        if found.is_some_and(|(_, found)| found.fulfils(name, claim)) {
            return Ok(Some(Obstacle::Lag(format!("IPAddress {name} exists still"))));
        }
        Ok(self.pause(shared).await?.map(Obstacle::Lag))
    }

    /// Reads the pause of the Cluster, which the view may not show yet, from a quorum.
    async fn pause(&self, shared: &Shared<impl Servers>) -> Result<Option<String>, Failure> {
        let resource = shared.contract().clusters.clone();
        let (Some(cluster), Some(resource)) = (&self.claim.cluster, resource) else { return Ok(None) };
        let namespace = Some(self.key.0.as_str());
        let target = Target { resource: &resource, namespace, name: cluster.as_str(), uid: "" };
        let found = target.get(&shared.client).await?.and_then(|found| ClusterFacts::of(&found));
        let is_paused = found.is_some_and(|(_, found)| found.is_paused);
        Ok(is_paused.then(|| format!("Cluster {cluster} is paused")))
    }

    /// Deletes the object of a claim in deletion.
    async fn delete(&self, shared: &Shared<impl Servers>, target: &Target<'_>) -> Result<(), Failure> {
        match self.pause(shared).await? {
            Some(why) => Err(Problem::new(Code::Internal, why).into()),
            None => Ok(target.delete(&shared.client).await?),
        }
    }
}

/// Deletes an object whose claim no longer exists, and removes its finalizer.
///
/// The garbage collector keeps an object while its pool lives, and a move leaves the objects of global pools
/// in the source. An object without the provider's finalizer may be one to adopt, before its claim is
/// created.
async fn free_orphan(
    shared: &Shared<impl Servers>,
    (claims, addresses): (&ApiResource, &ApiResource),
    key: &Key,
    address: &AddressFacts,
) -> Result<(), Failure> {
    let (namespace, name) = (Some(key.0.as_str()), address.claim.as_str());
    if !address.metadata.is_held() {
        return Ok(());
    }
    let claim = Target { resource: claims, namespace, name, uid: "" };
    if claim.get(&shared.client).await?.is_some() {
        return Ok(());
    }
    let target = Target { resource: addresses, namespace, name: key.1.as_str(), uid: &address.metadata.uid };
    if !address.metadata.is_ending {
        return Ok(target.delete(&shared.client).await?);
    }
    let change = finalizers(address.metadata.without_finalizer());
    Ok(target.patch_metadata(&shared.client, &address.metadata.version, change).await?)
}
