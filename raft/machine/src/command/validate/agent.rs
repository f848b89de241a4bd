//! Checks of reports by agents and orchestrators.

use std::collections::BTreeSet;

use crate::command::validate::check::{check_host_bits, check_keys, text};
use crate::command::validate::{check_boot_id, within};
use crate::command::{
    Cause, Controller, EndIncarnation, Heartbeat, Probing, Reclaim, ReclaimReason, Refusal, ReleaseOrphans,
    ReportPods, ReportProbes,
};
use crate::value::cause::{Counted, KeyedField, TextField};
use crate::value::refuse_if;
use ipam_api::limits::{
    AGENT_VERSION_CHARS_MAX, ALLOCATIONS_PER_ENDPOINT_MAX, CONTROLLERS_OF_POD_MAX, JSON_INTEGER_MAX,
    LINKS_PER_NODE_MAX, NODE_GRACE_MS_MAX, NODE_GRACE_MS_MIN, ORPHANS_MAX, PODS_GONE_PER_REPORT_MAX,
    PODS_PER_REPORT_MAX, PROBE_MACS_MAX, PROBE_RESULTS_MAX, PROBE_VALID_MS_MAX, PROBE_VALID_MS_MIN,
    RECLAIM_LINES_MAX,
};

impl Heartbeat {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_boot_id(&self.boot.id)?;
        refuse_if(!(1..=JSON_INTEGER_MAX).contains(&self.boot.number), || Cause::BootNumber)?;
        let version = &self.agent_version;
        let is_version = (1..=AGENT_VERSION_CHARS_MAX).contains(&version.len())
            && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte));
        refuse_if(!is_version, || Cause::AgentVersion)?;
        within(Counted::Links, self.links.len(), LINKS_PER_NODE_MAX)?;
        self.links.iter().try_for_each(|link| check_host_bits(link.cidr))?;
        refuse_if(!self.links.iter().is_sorted_by(|one, next| one < next), || Cause::LinksUnsorted)
    }
}

impl Probing {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let valid = PROBE_VALID_MS_MIN..=PROBE_VALID_MS_MAX;
        let odd = self.valid_ms.filter(|valid_ms| !valid.contains(valid_ms));
        odd.map_or(Ok(()), |valid_ms| Err(Cause::ProbeValidity { valid_ms }.into()))
    }
}

impl ReportProbes {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::ProbeResults, self.results.len(), PROBE_RESULTS_MAX)?;
        let mut macs = self.results.iter().map(|result| result.macs.len());
        macs.try_for_each(|count| within(Counted::ProbeMacs, count, PROBE_MACS_MAX))
    }
}

impl ReportPods {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::ReportedPods, self.pods.len(), PODS_PER_REPORT_MAX)?;
        within(Counted::GonePods, self.gone.len(), PODS_GONE_PER_REPORT_MAX)?;
        let mut uids = BTreeSet::new();
        for uid in self.pods.iter().map(|pod| &pod.uid).chain(&self.gone) {
            text(TextField::Uid, uid)?;
            refuse_if(!uids.insert(uid), || Cause::PodTwice { uid: uid.excerpt() })?;
        }
        for pod in &self.pods {
            let (realm, other) = (&self.realm, &pod.endpoint.realm);
            refuse_if(realm != other, || Cause::PodOfOtherRealm {
                realm: realm.clone(),
                other: other.clone(),
            })?;
            check_keys(KeyedField::Labels, &pod.labels)?;
            within(Counted::PodControllers, pod.controllers.len(), CONTROLLERS_OF_POD_MAX)?;
            pod.controllers.iter().try_for_each(Controller::check)?;
        }
        Ok(())
    }
}

impl Reclaim {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::ReclaimedAllocations, self.allocations.len(), RECLAIM_LINES_MAX)?;
        match self.reason {
            ReclaimReason::NodeGone => Ok(()),
            ReclaimReason::NodeSilent { grace_ms } => {
                let valid = NODE_GRACE_MS_MIN..=NODE_GRACE_MS_MAX;
                refuse_if(!valid.contains(&grace_ms), || Cause::NodeGrace { grace_ms })
            }
        }
    }
}

impl EndIncarnation {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::ObservedAllocations, self.allocations.len(), ALLOCATIONS_PER_ENDPOINT_MAX)
    }
}

impl ReleaseOrphans {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        within(Counted::Orphans, self.orphans.len(), ORPHANS_MAX)?;
        let mut observed = self.orphans.iter().map(|orphan| orphan.allocations.len());
        observed
            .try_for_each(|count| within(Counted::ObservedAllocations, count, ALLOCATIONS_PER_ENDPOINT_MAX))
    }
}
