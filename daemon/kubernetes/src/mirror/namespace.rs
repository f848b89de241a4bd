//! Namespace as its mirror.

use std::collections::BTreeSet;

use ipam_api::Code;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Labels, Namespace, Quota};

use super::labels::chosen;
use super::step::Mirror;
use crate::objects::NamespaceFacts;

/// Namespaces.
#[derive(Debug)]
pub(crate) struct NamespaceMirror;

impl Mirror for NamespaceMirror {
    type Spec = Namespace;
    type Facts = NamespaceFacts;
    const PLURAL: &'static str = "namespaces";

    fn blank(realm: &Name, name: &ObjectName) -> Namespace {
        Namespace {
            realm: realm.clone(),
            name: name.clone(),
            default_ipv4_pools: Vec::new(),
            default_ipv6_pools: Vec::new(),
            quota: Quota::default(),
            description: String::new(),
            labels: Labels::new(),
            annotations: Labels::new(),
            managed_by: None,
        }
    }

    fn name(spec: &Namespace) -> &ObjectName {
        &spec.name
    }

    fn manager(spec: &mut Namespace) -> &mut Option<String> {
        &mut spec.managed_by
    }

    fn labels(facts: &NamespaceFacts) -> &Labels {
        &facts.labels
    }

    /// Unreadable default pools stay as they were; the labels are mirrored in any case.
    fn fill(spec: &mut Namespace, facts: &NamespaceFacts, selected: &BTreeSet<String>) -> Result<(), Code> {
        spec.labels = chosen(&facts.labels, selected);
        let pools = facts.pools.clone()?;
        (spec.default_ipv4_pools, spec.default_ipv6_pools) = (pools.ipv4, pools.ipv6);
        Ok(())
    }
}
