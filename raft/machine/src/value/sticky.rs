//! Sticky endpoints: their part of a request, and the number of a controller's replicas.

use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::ScaleDown;
use serde::{Deserialize, Serialize};

use crate::value::Text;

/// Kinds of controllers whose endpoints have stable names.
const STABLE_NAMES: [&str; 3] = ["StatefulSet", "VirtualMachine", "VirtualMachineInstance"];
/// Kinds of controllers that give each endpoint a new name, which is never reused.
const PASSING_NAMES: [&str; 6] =
    ["CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController"];

/// Controller that creates and counts endpoints, in their realm and namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// API group of the controller, without a version.
    pub group: Text,
    pub kind: Text,
    pub name: ObjectName,
    /// Uid of its incarnation, if its external system has one.
    pub uid: Option<Text>,
}

impl Controller {
    /// Returns true if the controller keeps the names of its endpoints stable.
    #[must_use]
    pub fn has_stable_names(&self) -> bool {
        STABLE_NAMES.contains(&&*self.kind)
    }

    /// Returns true if names of the controller's endpoints are never reused.
    #[must_use]
    pub fn has_passing_names(&self) -> bool {
        PASSING_NAMES.contains(&&*self.kind)
    }

    /// Returns true unless the uids of the two name different incarnations.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        match (&self.uid, &other.uid) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

/// Stickiness in a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stickiness {
    /// Controller of the endpoint.
    pub controller: Option<Controller>,
    /// True to keep the endpoint's addresses; by default the kind of the controller decides.
    pub sticky: Option<bool>,
    /// Policy after a scale-down; by default that of the pools.
    pub scale_down: Option<ScaleDown>,
}

impl Stickiness {
    /// Returns true if the endpoint is sticky.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        let by_nature = || self.controller.as_ref().is_some_and(Controller::has_stable_names);
        self.sticky.unwrap_or_else(by_nature)
    }
}

/// Scaling of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleController {
    pub realm: Name,
    pub namespace: ObjectName,
    /// Key of the controller.
    pub controller: Controller,
    /// Desired number of endpoints.
    pub replicas: u32,
    /// First ordinal of the endpoints' names.
    pub start: u32,
}

impl ScaleController {
    /// Returns true if the scaling keeps an endpoint of this name. Without ordinals it keeps all or none.
    #[must_use]
    pub fn wants(&self, endpoint: &ObjectName) -> bool {
        let number = endpoint.as_str().strip_prefix(self.controller.name.as_str());
        let number = number.and_then(|rest| rest.strip_prefix('-'));
        // A number has neither a sign nor leading zeros.
        let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with("0");
        let number =
            number.filter(|text| *text == "0" || digits(text)).and_then(|text| text.parse::<u64>().ok());
        let (first, count) = (u64::from(self.start), u64::from(self.replicas));
        number.map_or(count > 0, |number| (first..first + count).contains(&number))
    }
}
