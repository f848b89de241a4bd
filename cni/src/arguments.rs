//! `CNI_ARGS`: `key=value;key=value`, the oldest way of orchestrators to identify a workload.
//!
//! An unknown key is refused unless `IgnoreUnknown` is `1` or `true`, as the convention specifies. Known keys
//! are those of Kubernetes and Nomad, and that of main plugins (`MAC`).

use std::net::IpAddr;

use ipam_api::address::parse_address;
use ipam_api::name::{Name, ObjectName, shown};
use ipam_api::resource::{Controller, EndpointKey, EndpointKind};

use crate::fail::{self, Failure};

/// Kinds of controllers that are virtual machines.
const MACHINES: [&str; 2] = ["VirtualMachine", "VirtualMachineInstance"];

/// Arguments of `CNI_ARGS`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Requested addresses.
    pub addresses: Vec<IpAddr>,
    /// The interface's hardware address.
    pub mac: Option<String>,
    /// `K8S_POD_NAMESPACE`
    pub pod_namespace: Option<ObjectName>,
    /// `K8S_POD_NAME`
    pub pod_name: Option<ObjectName>,
    /// `K8S_POD_UID`
    pub pod_uid: Option<String>,
    /// `NOMAD_NAMESPACE`
    pub nomad_namespace: Option<ObjectName>,
    /// `NOMAD_ALLOC_ID`
    pub nomad_allocation: Option<ObjectName>,
}

impl Arguments {
    /// Reads `CNI_ARGS`.
    ///
    /// # Errors
    /// Code 4, naming the pair.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut arguments = Self::default();
        let mut unknown: Vec<&str> = Vec::new();
        let mut ignore_unknown = false;
        for pair in text.split(';').filter(|pair| !pair.is_empty()) {
            // Only the first "=" divides: Nomad passes JSON and base64 of users through.
            let Some((key, value)) = pair.split_once('=') else {
                return Err(wrong(format!("invalid pair {}", shown(pair))));
            };
            match key {
                "IgnoreUnknown" => ignore_unknown = boolean(key, value)?,
                "IP" => arguments.addresses.extend(addresses(value.split(',')).map_err(wrong)?),
                "MAC" => arguments.mac = Some(value.to_owned()).filter(|mac| !mac.is_empty()),
                "K8S_POD_NAMESPACE" => arguments.pod_namespace = object_name(key, value)?,
                "K8S_POD_NAME" => arguments.pod_name = object_name(key, value)?,
                "K8S_POD_UID" => arguments.pod_uid = Some(value.to_owned()).filter(|uid| !uid.is_empty()),
                "NOMAD_NAMESPACE" => arguments.nomad_namespace = object_name(key, value)?,
                "NOMAD_ALLOC_ID" => arguments.nomad_allocation = object_name(key, value)?,
                // Known keys of Kubernetes and Nomad that the plugin doesn't need.
                "K8S_POD_INFRA_CONTAINER_ID" | "NOMAD_GROUP_NAME" | "NOMAD_JOB_ID" | "NOMAD_REGION" => {}
                _ => unknown.push(key),
            }
        }
        if !unknown.is_empty() && !ignore_unknown {
            let keys: Vec<String> = unknown.into_iter().map(shown).collect();
            return Err(wrong(format!("unknown args [{}] without IgnoreUnknown=1", keys.join(" "))));
        }
        Ok(arguments)
    }

    /// Endpoint that requests the addresses, and its incarnation.
    ///
    /// A pod if Kubernetes names one. A Nomad allocation is a container: it is one run of one task group, its
    /// id never recurs, and all its tasks share one network namespace. Without an orchestrator, the endpoint
    /// is the container itself. Its namespace is the node's name, since container ids are only unique there.
    /// A virtual machine is an endpoint of its own and not its pod: its pods differ by node, and a migration
    /// has two.
    #[must_use]
    pub fn endpoint(
        &self,
        realm: &Name,
        node: &ObjectName,
        container_id: &ObjectName,
        controller: Option<&Controller>,
    ) -> (EndpointKey, Option<String>) {
        let key = |kind, namespace: &ObjectName, name: &ObjectName| EndpointKey {
            realm: realm.clone(),
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
        };
        if let (Some(namespace), Some(name)) = (&self.pod_namespace, &self.pod_name) {
            let machine = controller.filter(|controller| MACHINES.contains(&controller.kind.as_str()));
            let (kind, name) = match machine {
                Some(machine) => (EndpointKind::Vm, &machine.name),
                None => (EndpointKind::Pod, name),
            };
            return (key(kind, namespace, name), self.pod_uid.clone());
        }
        if let Some(allocation) = &self.nomad_allocation {
            let namespace = self.nomad_namespace.clone().unwrap_or_else(ObjectName::default_name);
            return (key(EndpointKind::Container, &namespace, allocation), None);
        }
        (key(EndpointKind::Container, node, container_id), None)
    }
}

/// Parses addresses with or without a prefix length, which is ignored: the subnet has one.
///
/// # Errors
/// The malformed address.
pub fn addresses<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<IpAddr>, String> {
    texts
        .map(|text| {
            let address = text.split_once('/').map_or(text, |(address, _)| address);
            parse_address(address.trim()).map_err(|_| format!("invalid IP address {}", shown(text)))
        })
        .collect()
}

fn object_name(key: &str, value: &str) -> Result<Option<ObjectName>, Failure> {
    if value.is_empty() {
        return Ok(None);
    }
    ObjectName::new(value).map(Some).map_err(|problem| wrong(format!("{key}: {}", problem.detail)))
}

fn boolean(key: &str, value: &str) -> Result<bool, Failure> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" | "" => Ok(false),
        _ => Err(wrong(format!("{key} is 1, true, 0 or false, not {}", shown(value)))),
    }
}

fn wrong(details: impl Into<String>) -> Failure {
    Failure::new(fail::ENVIRONMENT, "invalid CNI_ARGS", details)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBELET: &str = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;\
        K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1";
    const NOMAD: &str = "IgnoreUnknown=true;NOMAD_REGION=global;NOMAD_NAMESPACE=prod;NOMAD_JOB_ID=a b/c;\
        NOMAD_GROUP_NAME=web;NOMAD_ALLOC_ID=d96af0be-747b-91ac-325e-9565b4797e8e";

    fn endpoint(text: &str) -> (String, Option<String>) {
        created_by(text, None)
    }

    fn created_by(text: &str, kind: Option<&str>) -> (String, Option<String>) {
        let name = ObjectName::new("mail").unwrap();
        let controller =
            kind.map(|kind| Controller { group: String::new(), kind: kind.to_owned(), name, uid: None });
        let (key, uid) = Arguments::parse(text).unwrap().endpoint(
            &Name::default_name(),
            &ObjectName::new("node-1").unwrap(),
            &ObjectName::new("c1").unwrap(),
            controller.as_ref(),
        );
        (key.to_string(), uid)
    }

    #[test]
    fn each_orchestrator_names_its_endpoint() {
        for (text, key, uid) in [
            (KUBELET, "pod/shop/web-0", Some("u1")),
            (NOMAD, "container/prod/d96af0be-747b-91ac-325e-9565b4797e8e", None),
            ("NOMAD_ALLOC_ID=a1", "container/a1", None),
            ("K8S_POD_NAME=web-0", "container/node-1/c1", None),
            ("", "container/node-1/c1", None),
        ] {
            assert_eq!(endpoint(text), (key.to_owned(), uid.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn a_machine_is_not_the_pod_that_it_runs_in() {
        for (text, kind, key) in [
            (KUBELET, "VirtualMachine", "vm/shop/mail"),
            (KUBELET, "VirtualMachineInstance", "vm/shop/mail"),
            (KUBELET, "StatefulSet", "pod/shop/web-0"),
            ("", "VirtualMachine", "container/node-1/c1"),
        ] {
            assert_eq!(created_by(text, Some(kind)).0, key, "{text} {kind}");
        }
    }

    #[test]
    fn addresses_lose_their_prefix() {
        let arguments = Arguments::parse("IP=10.1.2.5/29,2001:db8:1::9;IP=10.1.2.6;").unwrap();
        let texts: Vec<String> = arguments.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.1.2.5", "2001:db8:1::9", "10.1.2.6"]);
    }

    #[test]
    fn an_unknown_argument_is_refused_unless_it_may_be_ignored() {
        for (text, complaint) in [
            ("IP", "invalid pair \"IP\""),
            ("IP=zzz", "invalid IP address \"zzz\""),
            ("IP=", "invalid IP address \"\""),
            ("COLOUR=red", "unknown args [\"COLOUR\"]"),
            ("COLOUR=red;IgnoreUnknown=0", "unknown args"),
            ("IgnoreUnknown=maybe", "IgnoreUnknown is 1, true, 0 or false"),
            ("K8S_POD_NAME=../x", "K8S_POD_NAME: \"../x\" is not"),
        ] {
            let failure = Arguments::parse(text).unwrap_err();
            assert_eq!(failure.code, fail::ENVIRONMENT);
            assert!(failure.details.starts_with(complaint), "{text}: {}", failure.details);
        }
        for text in ["COLOUR=red;IgnoreUnknown=1", "IgnoreUnknown=TRUE;X=a=b;", "K8S_POD_NAME=p", ";;"] {
            assert!(Arguments::parse(text).is_ok(), "{text}");
        }
    }
}
