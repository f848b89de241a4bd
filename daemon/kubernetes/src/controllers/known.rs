//! Controllers in the servers' resources, compared with the controllers of the cluster.

use ipam_api::name::ObjectName;
use ipam_api::resource::Controller;

use super::view::ControllerView;
use crate::objects::Kind;

/// Controller of a realm that has endpoints or pools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ControllerId {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: ObjectName,
    pub(crate) name: ObjectName,
    pub(crate) uid: Option<String>,
}

impl ControllerId {
    pub(crate) fn new(namespace: ObjectName, controller: Controller) -> Self {
        let Controller { group, kind, name, uid } = controller;
        Self { group, kind, namespace, name, uid }
    }

    /// Controller as requests name it.
    pub(crate) fn controller(&self) -> Controller {
        let Self { group, kind, name, uid, .. } = self.clone();
        Controller { group, kind, name, uid }
    }

    /// True if a uid may be that of the controller.
    pub(crate) fn may_be(&self, uid: &str) -> bool {
        self.uid.as_deref().is_none_or(|own| own == uid)
    }
}

/// Endpoints and pools of a controller.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// True if one of its endpoints is a pod that lives.
    pub(crate) has_pod: bool,
    /// Names of its sticky endpoints.
    pub(crate) endpoints: Vec<ObjectName>,
    /// Numbers of replicas that its pools are made for.
    pub(crate) replicas: Vec<u32>,
}

/// Result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assessment {
    /// Nothing is to be done, or too little is known.
    Fine,
    /// The servers have a number of replicas or a first ordinal other than these.
    Scale(Kind, u32, u32),
    /// The cluster doesn't show the controller, which is no evidence.
    Absent,
}

impl Known {
    /// Compares the controller with the view.
    pub(crate) fn assess(&self, id: &ControllerId, view: &ControllerView) -> Assessment {
        let Some(kind) = Kind::of(&id.group, &id.kind) else {
            // The kind of the controller is not watched.
            return if self.has_pod { Assessment::Fine } else { Assessment::Absent };
        };
        let is_listed = match kind {
            Kind::Machine | Kind::Vm => Kind::OF_KUBEVIRT.iter().all(|kind| view.is_synced(*kind)),
            _ => view.is_synced(kind),
        };
        if !is_listed {
            return Assessment::Fine;
        }
        let find = |kind| view.scale(kind, &id.namespace, &id.name);
        match (kind, find(kind)) {
            // The machine of a stopped or restarted VM returns with another uid.
            (Kind::Machine, found) if found.is_some() || find(Kind::Vm).is_some() => Assessment::Fine,
            (_, Some(scale)) if id.may_be(&scale.uid) => match scale.wanted {
                Some((replicas, start)) if self.differs(id, replicas, start) => {
                    Assessment::Scale(kind, replicas, start)
                }
                _ => Assessment::Fine,
            },
            _ => Assessment::Absent,
        }
    }

    fn differs(&self, id: &ControllerId, replicas: u32, start: u32) -> bool {
        let is_wanted = |name: &ObjectName| match ordinal(name, &id.name) {
            Some(number) => (u64::from(start)..u64::from(start) + u64::from(replicas)).contains(&number),
            None => replicas > 0,
        };
        self.replicas.iter().any(|other| *other != replicas) || !self.endpoints.iter().all(is_wanted)
    }
}

/// Ordinal of an endpoint, as in `web-3` of `web`.
fn ordinal(endpoint: &ObjectName, controller: &ObjectName) -> Option<u64> {
    let text = endpoint.as_str().strip_prefix(controller.as_str())?.strip_prefix('-')?;
    let is_number = text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::objects::Scale;

    fn name(text: &str) -> ObjectName {
        ObjectName::new(text).unwrap()
    }

    fn view(objects: &[(Kind, &str, (u32, u32))]) -> ControllerView {
        let mut view = ControllerView::default();
        for kind in Kind::BUILT_IN.into_iter().chain(Kind::OF_KUBEVIRT) {
            view.event(kind, Event::Init);
            for (_, uid, wanted) in objects.iter().filter(|(of, ..)| *of == kind) {
                let scale = Scale { uid: (*uid).to_owned(), wanted: Some(*wanted), owner: None };
                view.event(kind, Event::InitApply(Some(((name("shop"), name("db")), scale))));
            }
            view.event(kind, Event::InitDone);
        }
        view
    }

    fn id(group: &str, kind: &str, uid: Option<&str>) -> ControllerId {
        let uid = uid.map(str::to_owned);
        ControllerId {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: name("shop"),
            name: name("db"),
            uid,
        }
    }

    #[test]
    fn a_controller_is_scaled_only_if_the_servers_differ() {
        let sets = view(&[(Kind::StatefulSet, "u1", (2, 1))]);
        for (endpoints, replicas, differs) in [
            (&["db-1", "db-2"][..], &[][..], false),
            (&["db-1", "db-3"], &[], true),
            (&["db-0"], &[], true),
            (&["db-01", "else"], &[2], false),
            (&[], &[3], true),
        ] {
            let endpoints = endpoints.iter().map(|text| name(text)).collect();
            let known = Known { has_pod: true, endpoints, replicas: replicas.to_vec() };
            let expected =
                if differs { Assessment::Scale(Kind::StatefulSet, 2, 1) } else { Assessment::Fine };
            assert_eq!(known.assess(&id("apps", "StatefulSet", Some("u1")), &sets), expected, "{known:?}");
        }
    }

    #[test]
    fn only_what_would_be_shown_is_absent() {
        use Assessment::{Absent, Fine};
        let none = ControllerView::default();
        let empty = view(&[]);
        let set = view(&[(Kind::StatefulSet, "u1", (9, 0))]);
        let machine = view(&[(Kind::Machine, "u1", (0, 0))]);
        let vm = view(&[(Kind::Vm, "u9", (0, 0))]);
        for (view, group, kind, uid, expected) in [
            (&none, "apps", "StatefulSet", "u1", Fine),
            (&empty, "apps", "StatefulSet", "u1", Absent),
            (&set, "apps", "StatefulSet", "u1", Fine),
            (&set, "apps", "StatefulSet", "u0", Absent),
            (&set, "apps", "Deployment", "u1", Absent),
            (&none, "kubevirt.io", "VirtualMachineInstance", "u1", Fine),
            (&empty, "kubevirt.io", "VirtualMachineInstance", "u1", Absent),
            (&machine, "kubevirt.io", "VirtualMachineInstance", "u0", Fine),
            (&vm, "kubevirt.io", "VirtualMachineInstance", "u1", Fine),
            (&machine, "kubevirt.io", "VirtualMachine", "u1", Absent),
            (&empty, "example.com", "Rollout", "u1", Absent),
        ] {
            let id = id(group, kind, Some(uid));
            assert_eq!(Known::default().assess(&id, view), expected, "{id:?}");
        }
        let alive = Known { has_pod: true, ..Known::default() };
        assert_eq!(alive.assess(&id("example.com", "Rollout", None), &empty), Fine);
    }
}
