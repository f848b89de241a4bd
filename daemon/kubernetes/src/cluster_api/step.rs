//! Next step for a claim.
//!
//! A step is one write. A watch reports its effect, from which the next step follows. A provider that is
//! killed between two steps therefore continues with the next.

use ipam_api::name::ObjectName;

use super::address::{AddressFacts, AddressSpec};
use super::claim::ClaimFacts;
use super::claim_status::{ALLOCATION_FAILED, POOL_NOT_READY, Shown};
use super::pool::PoolFacts;

/// Known state of a claim, its pool, its Cluster and its address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) name: &'a ObjectName,
    pub(crate) claim: &'a ClaimFacts,
    pub(crate) pool: Option<&'a PoolFacts>,
    pub(crate) readiness: Readiness<'a>,
    pub(crate) cluster: ClusterState,
    /// Object with the name of the claim.
    pub(crate) address: Option<&'a AddressFacts>,
    /// Address that the servers have allocated.
    pub(crate) granted: Option<&'a AddressSpec>,
    /// Refusal of the servers, until the claim is tried again.
    pub(crate) refusal: Option<&'a Shown>,
}

/// Readiness of the pool of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness<'a> {
    /// The pool was not applied yet.
    Unknown,
    Ready,
    /// The pool is refused for this reason.
    Refused(&'a str),
    /// The pool was not applied yet, for this temporary reason.
    Unreached(&'a str),
}

/// State of the Cluster of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClusterState {
    /// The claim belongs to no Cluster.
    None,
    /// The Cluster does not exist.
    Missing,
    Paused,
    Running,
}

/// Next step for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is nothing to do yet.
    Nothing,
    /// Show the state of the claim.
    Show(Shown),
    /// Add the finalizer of the claim.
    Hold,
    /// Request the address. If the object exists already, its address is adopted.
    Request { existing: Option<AddressSpec> },
    /// Create the object with the address.
    Create(AddressSpec),
    /// Correct the owners and the finalizer of the object.
    Correct,
    /// Delete the object.
    Delete,
    /// Remove the finalizer of the object, so that its deletion ends.
    Free,
    /// Release the address, and remove the finalizer of the claim.
    Release,
}

/// Next step for a claim.
pub(crate) fn step(scene: Scene<'_>) -> Step {
    let Scene { claim, pool, cluster, .. } = scene;
    let is_paused = claim.metadata.is_paused || pool.is_some_and(|pool| pool.metadata.is_paused);
    if is_paused || cluster == ClusterState::Paused {
        return Step::Nothing;
    }
    if claim.metadata.is_ending { end(scene) } else { fulfil(scene) }
}

fn fulfil(scene: Scene<'_>) -> Step {
    let Scene { name, claim, pool, cluster, granted, .. } = scene;
    let address = scene.address.filter(|address| address.fulfils(name, claim));
    if let Some(cluster) = claim.cluster.as_ref().filter(|_| cluster == ClusterState::Missing) {
        // A fulfilled claim stays so: in a restored namespace, the Cluster may be created later than its
        // claims.
        return match address {
            Some(_) => Step::Nothing,
            None => Step::Show(unfulfilled(ALLOCATION_FAILED, format!("Cluster {cluster} does not exist"))),
        };
    }
    if let (Some(other), None) = (scene.address, address) {
        // The object belongs to an earlier claim of this name, which no longer exists.
        if other.claim == *name && other.metadata.is_ending && other.metadata.is_held() {
            return Step::Free;
        }
        let message = format!("IPAddress {name} exists, and fulfils another claim or refers to another pool");
        return Step::Show(unfulfilled(ALLOCATION_FAILED, message));
    }
    if granted.is_none() {
        if let Some(refusal) = scene.refusal {
            return Step::Show(refusal.clone());
        }
        let pool_is = |why: &str| unfulfilled(POOL_NOT_READY, format!("{} {why}", claim.pool));
        let why = match (pool, scene.readiness) {
            (None, _) => Some(pool_is("does not exist")),
            (Some(pool), _) if pool.metadata.is_ending => Some(pool_is("is being deleted")),
            (Some(_), Readiness::Refused(why)) => Some(pool_is(&format!("is refused: {why}"))),
            (Some(_), Readiness::Unreached(why)) => Some(unfulfilled(ALLOCATION_FAILED, why.to_owned())),
            (Some(_), Readiness::Unknown) => return Step::Nothing,
            (Some(_), Readiness::Ready) => None,
        };
        // An existing address is adopted once the pool is ready.
        if let Some(why) = why {
            return if address.is_some() { Step::Nothing } else { Step::Show(why) };
        }
    }
    if !claim.metadata.is_held() {
        // A move removes the finalizer of a fulfilled claim before it deletes it. With a new finalizer the
        // deletion would release the address of the moved claim.
        return if claim.address_ref().is_some() { Step::Nothing } else { Step::Hold };
    }
    let Some(granted) = granted else {
        return Step::Request { existing: address.map(|address| address.spec.clone()) };
    };
    let Some(address) = address else { return Step::Create(granted.clone()) };
    if address.metadata.is_ending {
        return if address.metadata.is_held() { Step::Free } else { Step::Nothing };
    }
    if !address.spec.has_address_of(granted) {
        let message = format!(
            "IPAddress {name} has {}, and ipamd has allocated {}: delete the object to correct it",
            address.spec.address, granted.address
        );
        return Step::Show(unfulfilled(ALLOCATION_FAILED, message));
    }
    let pool_uid = pool.and_then(PoolFacts::owner_uid);
    if !address.metadata.is_held() || !is_owned(address, &claim.metadata.uid, pool_uid) {
        return Step::Correct;
    }
    Step::Show(Shown::Allocated)
}

fn end(scene: Scene<'_>) -> Step {
    let Scene { name, claim, .. } = scene;
    if !claim.metadata.is_held() || claim.metadata.is_held_by_another() {
        return Step::Nothing;
    }
    match scene.address.filter(|address| address.fulfils(name, claim)) {
        Some(address) if !address.metadata.is_ending => Step::Delete,
        Some(address) if address.metadata.is_held() => Step::Free,
        Some(_) => Step::Nothing,
        None => Step::Release,
    }
}

/// True if the claim controls the object, and the pool owns it.
fn is_owned(address: &AddressFacts, claim_uid: &str, pool_uid: Option<&str>) -> bool {
    let has = |uid: &str| address.metadata.owners.iter().any(|owner| owner.uid == uid);
    let controls =
        address.metadata.owners.iter().any(|owner| owner.uid == claim_uid && owner.controller == Some(true));
    controls && pool_uid.is_none_or(has)
}

fn unfulfilled(reason: &'static str, message: String) -> Shown {
    Shown::Unfulfilled { reason, message }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::claim_status::POOL_EXHAUSTED;
    use super::super::kind::PoolKind;
    use super::*;

    const OWN: &str = "ipam.ipamd.internal/release";

    /// Objects of a test, as the API server shows them.
    struct Objects {
        claim: Value,
        pool: Option<Value>,
        address: Option<Value>,
        cluster: ClusterState,
        granted: bool,
        refusal: Option<Shown>,
        readiness: Readiness<'static>,
    }

    fn reference() -> Value {
        json!({"apiGroup": "ipam.ipamd.internal", "kind": "IPPool", "name": "web"})
    }

    fn spec() -> AddressSpec {
        AddressSpec { address: "10.0.0.9".to_owned(), prefix: 24, gateway: Some("10.0.0.1".to_owned()) }
    }

    impl Objects {
        /// Claim of a pool that is ready.
        fn new() -> Self {
            let metadata = json!({"name": "m-0", "namespace": "shop", "uid": "c", "generation": 1});
            Self {
                claim: json!({"metadata": metadata, "spec": {"poolRef": reference()}}),
                pool: Some(json!({"metadata": {"name": "web", "namespace": "shop", "uid": "p"}, "spec": {}})),
                address: None,
                cluster: ClusterState::None,
                granted: false,
                refusal: None,
                readiness: Readiness::Ready,
            }
        }

        /// Claim that is fulfilled, and shows it.
        fn fulfilled() -> Self {
            let mut objects = Self::new();
            objects.hold().granted = true;
            objects.address = Some(json!({
                "metadata": {
                    "name": "m-0", "namespace": "shop", "uid": "a", "finalizers": [OWN],
                    "ownerReferences": [
                        {"apiVersion": "x/v1", "kind": "IPAddressClaim", "name": "m-0", "uid": "c",
                         "controller": true},
                        {"apiVersion": "x/v1", "kind": "IPPool", "name": "web", "uid": "p"},
                    ],
                },
                "spec": {"claimRef": {"name": "m-0"}, "poolRef": reference(), "address": "10.0.0.9",
                         "prefix": 24, "gateway": "10.0.0.1"},
            }));
            objects.claim["status"] = json!({
                "addressRef": {"name": "m-0"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Allocated"}],
            });
            objects
        }

        fn hold(&mut self) -> &mut Self {
            self.claim["metadata"]["finalizers"] = json!([OWN]);
            self
        }

        fn end(&mut self) -> &mut Self {
            self.claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            self
        }

        fn address(&mut self) -> &mut Value {
            self.address.as_mut().unwrap()
        }

        fn step(&self) -> Step {
            let object = |value: &Value| serde_json::from_value(value.clone()).unwrap();
            let claim = ClaimFacts::of(object(&self.claim), None).unwrap().1;
            let pool =
                self.pool.as_ref().map(|pool| PoolFacts::of(PoolKind::Ip, object(pool), None).unwrap().1);
            let address = self.address.as_ref().map(|one| AddressFacts::of(&object(one)).unwrap().1);
            let granted = self.granted.then(spec);
            step(Scene {
                name: &ObjectName::new("m-0").unwrap(),
                claim: &claim,
                pool: pool.as_ref(),
                readiness: self.readiness,
                cluster: self.cluster,
                address: address.as_ref(),
                granted: granted.as_ref(),
                refusal: self.refusal.as_ref(),
            })
        }
    }

    fn reason(step: &Step) -> &'static str {
        match step {
            Step::Show(Shown::Unfulfilled { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claim_is_fulfilled_step_by_step() {
        let mut objects = Objects::new();
        assert_eq!(objects.step(), Step::Hold);
        assert_eq!(objects.hold().step(), Step::Request { existing: None });
        objects.granted = true;
        assert_eq!(objects.step(), Step::Create(spec()));
        let objects = Objects::fulfilled();
        assert_eq!(objects.step(), Step::Show(Shown::Allocated));
    }

    #[test]
    fn a_claim_ends_step_by_step() {
        let mut objects = Objects::fulfilled();
        assert_eq!(objects.end().step(), Step::Delete);
        objects.address()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(objects.step(), Step::Free);
        objects.address()["metadata"]["finalizers"] = json!(["other"]);
        assert_eq!(objects.step(), Step::Nothing, "another controller holds the object");
        objects.address = None;
        assert_eq!(objects.step(), Step::Release);
        objects.claim["metadata"]["finalizers"] = json!([]);
        assert_eq!(objects.step(), Step::Nothing);
    }

    #[test]
    fn a_fulfilled_claim_without_the_finalizer_is_left_alone() {
        for is_there in [true, false] {
            let mut objects = Objects::fulfilled();
            objects.claim["metadata"]["finalizers"] = json!([]);
            objects.address = objects.address.filter(|_| is_there);
            assert_eq!(objects.step(), Step::Nothing);
            // A claim that was not fulfilled yet needs the finalizer.
            objects.claim["status"] = Value::Null;
            assert_eq!(objects.step(), Step::Hold);
        }
    }

    #[test]
    fn a_claim_is_not_released_while_a_consumer_holds_it() {
        let mut objects = Objects::fulfilled();
        objects.end().claim["metadata"]["finalizers"] = json!([OWN, "infra.example/machine"]);
        assert_eq!(objects.step(), Step::Nothing);
        objects.claim["metadata"]["finalizers"] = json!([OWN, "foregroundDeletion"]);
        assert_eq!(objects.step(), Step::Delete);
    }

    #[test]
    fn nothing_happens_while_an_object_is_paused() {
        let paused = || json!({"cluster.x-k8s.io/paused": ""});
        for is_ending in [false, true] {
            let of = |change: &dyn Fn(&mut Objects)| {
                let mut objects = Objects::new();
                objects.hold();
                if is_ending {
                    objects.end();
                }
                change(&mut objects);
                objects.step()
            };
            assert_ne!(of(&|_| {}), Step::Nothing);
            assert_eq!(of(&|all| all.claim["metadata"]["annotations"] = paused()), Step::Nothing);
            let pool = |all: &mut Objects| all.pool.as_mut().unwrap()["metadata"]["annotations"] = paused();
            assert_eq!(of(&pool), Step::Nothing);
            assert_eq!(of(&|all| all.cluster = ClusterState::Paused), Step::Nothing);
        }
    }

    #[test]
    fn a_missing_cluster_prevents_an_allocation_and_no_release() {
        let mut objects = Objects::new();
        objects.hold().claim["spec"]["clusterName"] = "prod".into();
        objects.cluster = ClusterState::Missing;
        assert_eq!(reason(&objects.step()), ALLOCATION_FAILED);
        assert_eq!(objects.end().step(), Step::Release);
        let mut objects = Objects::fulfilled();
        objects.claim["spec"]["clusterName"] = "prod".into();
        objects.cluster = ClusterState::Missing;
        assert_eq!(objects.step(), Step::Nothing);
    }

    #[test]
    fn a_pool_that_is_not_there_serves_no_claim_and_prevents_no_release() {
        let changes: [&dyn Fn(&mut Objects); 3] =
            [&|all| all.pool = None, &|all| all.readiness = Readiness::Refused("Overlap"), &|all| {
                let deletion = "2026-01-01T00:00:00Z";
                all.pool.as_mut().unwrap()["metadata"]["deletionTimestamp"] = deletion.into();
            }];
        for change in changes {
            let mut objects = Objects::new();
            change(&mut objects);
            assert_eq!(reason(&objects.step()), POOL_NOT_READY);
            assert_eq!(objects.hold().end().step(), Step::Release);
            // A fulfilled claim stays so.
            let mut objects = Objects::fulfilled();
            change(&mut objects);
            assert_eq!(objects.step(), Step::Show(Shown::Allocated));
            objects.granted = false;
            assert_eq!(objects.step(), Step::Nothing);
        }
    }

    #[test]
    fn a_pool_that_was_not_applied_yet_fails_claims_for_the_reason_that_the_servers_give() {
        let mut objects = Objects::new();
        objects.readiness = Readiness::Unreached("no leader");
        let why = Shown::Unfulfilled { reason: ALLOCATION_FAILED, message: "no leader".to_owned() };
        assert_eq!(objects.step(), Step::Show(why));
        assert_eq!(objects.hold().end().step(), Step::Release);
        let mut objects = Objects::fulfilled();
        (objects.readiness, objects.granted) = (Readiness::Unreached("no leader"), false);
        assert_eq!(objects.step(), Step::Nothing, "what is fulfilled stays so");
    }

    #[test]
    fn a_refusal_is_shown_until_the_claim_is_tried_again() {
        let mut objects = Objects::new();
        let refusal = Shown::Unfulfilled { reason: POOL_EXHAUSTED, message: "full".to_owned() };
        objects.hold().refusal = Some(refusal.clone());
        assert_eq!(objects.step(), Step::Show(refusal.clone()));
        objects.refusal = None;
        assert_eq!(objects.step(), Step::Request { existing: None });
    }

    #[test]
    fn an_object_that_exists_is_adopted_and_corrected() {
        let mut objects = Objects::fulfilled();
        objects.granted = false;
        assert_eq!(objects.step(), Step::Request { existing: Some(spec()) });
        for field in ["ownerReferences", "finalizers"] {
            let mut objects = Objects::fulfilled();
            objects.address()["metadata"][field] = json!([]);
            assert_eq!(objects.step(), Step::Correct, "{field}");
        }
        // A claim of the same name that was created anew has another uid.
        let mut objects = Objects::fulfilled();
        objects.claim["metadata"]["uid"] = "c2".into();
        assert_eq!(objects.step(), Step::Correct);
    }

    #[test]
    fn a_pool_in_deletion_is_not_made_an_owner_again() {
        let mut objects = Objects::fulfilled();
        objects.address()["metadata"]["ownerReferences"].as_array_mut().unwrap().truncate(1);
        assert_eq!(objects.step(), Step::Correct);
        // The garbage collector removes the reference to a pool that waits for its dependents.
        objects.pool.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(objects.step(), Step::Show(Shown::Allocated));
    }

    #[test]
    fn an_object_that_is_deleted_by_hand_goes_and_comes_back() {
        let mut objects = Objects::fulfilled();
        objects.address()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(objects.step(), Step::Free);
        objects.address()["metadata"]["finalizers"] = json!([]);
        assert_eq!(objects.step(), Step::Nothing);
        objects.address = None;
        assert_eq!(objects.step(), Step::Create(spec()));
    }

    #[test]
    fn an_object_with_another_address_or_of_another_claim_is_an_error() {
        let mut objects = Objects::fulfilled();
        objects.address()["spec"]["address"] = "10.0.0.10".into();
        assert_eq!(reason(&objects.step()), ALLOCATION_FAILED);
        let mut objects = Objects::fulfilled();
        objects.address()["spec"]["claimRef"]["name"] = "other".into();
        assert_eq!(reason(&objects.step()), ALLOCATION_FAILED);
        assert_eq!(objects.end().step(), Step::Release, "the object is not the claim's");
        // The finalizer is removed from the object of an earlier claim of this name on another pool.
        let mut objects = Objects::fulfilled();
        objects.address()["spec"]["poolRef"]["name"] = "other".into();
        assert_eq!(reason(&objects.step()), ALLOCATION_FAILED);
        objects.address()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(objects.step(), Step::Free);
        let mut objects = Objects::fulfilled();
        objects.address()["spec"]["address"] = "10.0.0.009".into();
        assert_eq!(reason(&objects.step()), ALLOCATION_FAILED, "no address");
    }
}
