//! Next step for one mirrored resource.

use std::collections::BTreeSet;

use ipam_api::Code;
use ipam_api::client::Expect;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::Labels;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Resource of the servers that mirrors objects of Kubernetes.
pub(crate) trait Mirror: Send + 'static {
    /// Resource of the servers.
    type Spec: Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync;
    /// Part of the object that is mirrored.
    type Facts: Clone + PartialEq + Send + 'static;
    /// Plural of both resources.
    const PLURAL: &'static str;

    /// Resource before the first mirroring.
    fn blank(realm: &Name, name: &ObjectName) -> Self::Spec;
    /// Name of the resource.
    fn name(spec: &Self::Spec) -> &ObjectName;
    /// Field `managed_by` of the resource.
    fn manager(spec: &mut Self::Spec) -> &mut Option<String>;
    /// Labels of the object.
    fn labels(facts: &Self::Facts) -> &Labels;
    /// Sets the mirrored fields. Returns the code of a problem with the object, whose other fields are set.
    fn fill(spec: &mut Self::Spec, facts: &Self::Facts, selected: &BTreeSet<String>) -> Result<(), Code>;
}

/// Resource as the servers have it.
#[derive(Debug, Clone)]
pub(crate) struct Row<S> {
    pub(crate) spec: S,
    pub(crate) revision: u64,
}

/// Object that a resource mirrors.
#[derive(Debug)]
pub(crate) enum Wanted<F> {
    /// The object has these fields.
    Present(F),
    /// The object was deleted.
    Gone,
    /// The state of the object is unknown.
    Unknown,
}

/// Next step for a resource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step<S> {
    /// The resource is as it should be, or the state of the object is unknown.
    Nothing,
    /// Write the resource.
    Put(S, Expect),
    /// Delete the resource of this revision.
    Delete(u64),
    /// The resource has another manager or none, and stays as it is.
    Foreign,
}

/// Next step for a resource, and the code of a problem with the object.
pub(crate) fn step<M: Mirror>(
    (realm, name, manager): (&Name, &ObjectName, &str),
    row: Option<&Row<M::Spec>>,
    wanted: &Wanted<M::Facts>,
    selected: &BTreeSet<String>,
) -> (Step<M::Spec>, Option<Code>) {
    let mut spec = row.map_or_else(|| M::blank(realm, name), |row| row.spec.clone());
    let is_own = row.is_none() || M::manager(&mut spec).as_deref() == Some(manager);
    match (wanted, row) {
        (Wanted::Unknown, _) | (Wanted::Gone, None) => (Step::Nothing, None),
        (Wanted::Gone, Some(_)) if !is_own => (Step::Nothing, None),
        (Wanted::Gone, Some(row)) => (Step::Delete(row.revision), None),
        (Wanted::Present(_), _) if !is_own => (Step::Foreign, None),
        (Wanted::Present(facts), _) => {
            *M::manager(&mut spec) = Some(manager.to_owned());
            let problem = M::fill(&mut spec, facts, selected).err();
            let step = match row {
                Some(row) if row.spec == spec => Step::Nothing,
                Some(row) => Step::Put(spec, Expect::Revision(row.revision)),
                None => Step::Put(spec, Expect::Absent),
            };
            (step, problem)
        }
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::annotations::DefaultPools;
    use ipam_api::resource::{Namespace, Quota};

    use super::*;
    use crate::mirror::NamespaceMirror;
    use crate::objects::NamespaceFacts;

    const MANAGER: &str = "kubernetes/prod";

    fn labels(zone: &str) -> Labels {
        [("zone".to_owned(), zone.to_owned())].into()
    }

    fn row(zone: &str, managed_by: Option<&str>) -> Row<Namespace> {
        let (realm, name) = (Name::new("prod").unwrap(), ObjectName::new("shop").unwrap());
        let mut spec = NamespaceMirror::blank(&realm, &name);
        spec.labels = labels(zone);
        spec.quota = Quota { ipv4: Some(9), ..Quota::default() };
        spec.default_ipv4_pools = vec!["old".parse().unwrap()];
        spec.managed_by = managed_by.map(str::to_owned);
        Row { spec, revision: 7 }
    }

    fn next(
        row: Option<&Row<Namespace>>,
        wanted: &Wanted<NamespaceFacts>,
    ) -> (Step<Namespace>, Option<Code>) {
        let (realm, name) = (Name::new("prod").unwrap(), ObjectName::new("shop").unwrap());
        step::<NamespaceMirror>((&realm, &name, MANAGER), row, wanted, &BTreeSet::new())
    }

    fn present(zone: &str, pools: Result<&str, Code>) -> Wanted<NamespaceFacts> {
        let pools = pools.map(|name| DefaultPools { ipv4: vec![name.parse().unwrap()], ipv6: Vec::new() });
        Wanted::Present(NamespaceFacts { labels: labels(zone), pools })
    }

    #[test]
    fn a_new_object_gets_a_resource() {
        let (Step::Put(spec, Expect::Absent), None) = next(None, &present("a", Ok("web"))) else { panic!() };
        assert_eq!((spec.managed_by.as_deref(), spec.labels), (Some(MANAGER), labels("a")));
        assert_eq!(spec.default_ipv4_pools[0].to_string(), "web");
    }

    #[test]
    fn only_differences_are_written_and_other_fields_stay() {
        let own = row("a", Some(MANAGER));
        assert_eq!(next(Some(&own), &present("a", Ok("old"))), (Step::Nothing, None));
        let (Step::Put(spec, Expect::Revision(7)), None) = next(Some(&own), &present("b", Ok("old"))) else {
            panic!()
        };
        assert_eq!((spec.labels, spec.quota.ipv4), (labels("b"), Some(9)));
        let (Step::Put(spec, _), Some(Code::InvalidField)) =
            next(Some(&own), &present("b", Err(Code::InvalidField)))
        else {
            panic!()
        };
        assert_eq!(spec.default_ipv4_pools[0].to_string(), "old", "malformed annotations change no pools");
    }

    #[test]
    fn resources_of_others_are_left_alone() {
        for managed_by in [None, Some("terraform"), Some("kubernetes/other")] {
            let other = row("a", managed_by);
            assert_eq!(next(Some(&other), &present("b", Ok("web"))), (Step::Foreign, None));
            assert_eq!(next(Some(&other), &Wanted::Gone), (Step::Nothing, None));
        }
    }

    #[test]
    fn only_an_object_that_is_gone_loses_its_resource() {
        let own = row("a", Some(MANAGER));
        assert_eq!(next(Some(&own), &Wanted::Gone), (Step::Delete(7), None));
        assert_eq!(next(Some(&own), &Wanted::Unknown), (Step::Nothing, None));
        assert_eq!(next(None, &Wanted::Gone), (Step::Nothing, None));
    }
}
