//! View of the controllers, and the work that their changes make.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::limits::CONTROLLERS_OF_POD_MAX;
use ipam_api::name::ObjectName;
use ipam_api::resource::Controller;
use kube::runtime::watcher::Event;

use super::known::ControllerId;
use crate::listed::{Change, Listed};
use crate::objects::{Kind, Scale};

/// Namespace and name of a controller.
pub(crate) type ControllerKey = (ObjectName, ObjectName);

/// View of the controllers.
#[derive(Debug, Default)]
pub(crate) struct ControllerView {
    kinds: BTreeMap<Kind, Listed<ControllerKey, Scale>>,
    /// Work for the servers.
    pub(crate) work: BTreeSet<Work>,
}

/// Change of a controller that may concern the servers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// The number of replicas of a controller changed.
    Scaled(Kind, ObjectName, ObjectName),
    /// The watch reported the deletion of this uid.
    Deleted(Kind, ObjectName, ObjectName, String),
    /// The servers know the controller, and its deletion is confirmed.
    Gone(ControllerId),
}

impl ControllerView {
    /// Applies an event.
    pub(crate) fn event(&mut self, kind: Kind, event: Event<Option<(ControllerKey, Scale)>>) {
        for change in self.kinds.entry(kind).or_default().event(event) {
            match change {
                // The replicas of a new controller come with the ADDs of its pods.
                Change::Put(_, Some(scale)) | Change::Deleted(_, scale) if scale.is_inner(kind) => {}
                Change::Put((namespace, name), Some(former)) => {
                    if self.scale(kind, &namespace, &name).is_some_and(|now| now.wanted != former.wanted) {
                        self.work.insert(Work::Scaled(kind, namespace, name));
                    }
                }
                Change::Put(_, None) | Change::Missing(..) => {}
                Change::Deleted((namespace, name), scale) => {
                    self.work.insert(Work::Deleted(kind, namespace, name, scale.uid));
                }
            }
        }
    }

    /// Scale of a controller.
    pub(crate) fn scale(&self, kind: Kind, namespace: &ObjectName, name: &ObjectName) -> Option<&Scale> {
        self.kinds.get(&kind)?.get(&(namespace.clone(), name.clone())).filter(|scale| !scale.is_inner(kind))
    }

    /// Controllers above an owner, and the owner itself. None while the view may lack one of them.
    pub(crate) fn above(&self, namespace: &ObjectName, owner: &Controller) -> Option<Vec<Controller>> {
        let mut all = vec![owner.clone()];
        while let Some(last) = all.last().filter(|_| all.len() < CONTROLLERS_OF_POD_MAX) {
            let Some(kind) = Kind::of(&last.group, &last.kind).filter(|kind| Kind::BUILT_IN.contains(kind))
            else {
                break;
            };
            let scale = self.kinds.get(&kind)?.get(&(namespace.clone(), last.name.clone()))?;
            // A controller of the same name with another uid is not the owner.
            if last.uid.as_ref() != Some(&scale.uid) {
                return None;
            }
            let Some(next) = scale.owner.clone() else { break };
            all.push(next);
        }
        Some(all)
    }

    /// True once the controllers of all built-in kinds are listed.
    pub(crate) fn are_built_in_synced(&self) -> bool {
        Kind::BUILT_IN.into_iter().all(|kind| self.is_synced(kind))
    }

    /// True once the controllers of a kind are listed.
    pub(crate) fn is_synced(&self, kind: Kind) -> bool {
        self.kinds.get(&kind).is_some_and(Listed::is_synced)
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.values().map(Listed::len).sum()
    }
}
