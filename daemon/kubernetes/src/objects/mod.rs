//! Objects of Kubernetes with the fields that the watcher reads, and the facts that follow from them.

mod controller;
mod namespace;
mod node;
mod object;
mod pod;

pub(crate) use self::controller::{Controllers, KUBEVIRT, Kind, MACHINE, Scale, VM};
pub(crate) use self::namespace::{NamespaceFacts, Namespaces};
pub(crate) use self::node::{NodeFacts, NodeState, Nodes};
pub(crate) use self::object::{Object, resource};
pub(crate) use self::pod::{PodFacts, PodReport, Pods};
