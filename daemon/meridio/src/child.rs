//! Child of a call: its conduit, node and name, checked in the order of Meridio's server and with its texts.

use ipam_api::address::Family;
use ipam_api::name::{Name, ObjectName};
use tonic::{Code, Status};

use crate::settings::{FamilySettings, Settings};
use crate::wire::ipam::v1::{Child, IpFamily, Subnet};
use crate::wire::nsp::v1::Conduit;

/// Child of the served trench, in one of its families.
#[derive(Debug)]
pub(crate) struct KnownChild<'a> {
    pub(crate) family: &'a FamilySettings,
    pub(crate) conduit: ObjectName,
    pub(crate) node: ObjectName,
    pub(crate) name: ObjectName,
}

impl<'a> KnownChild<'a> {
    /// Reads a child.
    ///
    /// # Errors
    /// The refusal of an allocation. A release of such a child has nothing to do.
    pub(crate) fn read(child: &Child, settings: &'a Settings) -> Result<Self, Status> {
        let invalid = |text: &str| Status::invalid_argument(text);
        let subnet = child.subnet.as_ref();
        // An absent family is the zero of the enumeration, which is IPv4.
        let family = match IpFamily::try_from(subnet.map_or(0, |subnet| subnet.ip_family)) {
            Ok(IpFamily::Ipv4) => Family::V4,
            Ok(IpFamily::Ipv6) => Family::V6,
            Err(_) => return Err(invalid("cannot allocate in this ip family: its number is not known")),
        };
        let family = settings.family(family).ok_or_else(|| {
            Status::failed_precondition("cannot allocate in this ip family: the trench has no prefix of it")
        })?;
        let Some(Subnet { conduit: Some(Conduit { name: conduit, trench }), node, .. }) = subnet else {
            return Err(invalid("conduit cannot be nil"));
        };
        let trench = trench.as_ref().ok_or_else(|| invalid("trench cannot be nil"))?;
        if trench.name != settings.trench {
            return Err(Status::new(Code::NotFound, "no corresponding trench"));
        }
        let name = |text: &str, what: &str| {
            owner(text).ok_or_else(|| invalid(&format!("the name of the {what} cannot be empty")))
        };
        Ok(Self {
            family,
            conduit: name(conduit, "conduit")?,
            node: name(node, "node")?,
            name: name(&child.name, "child")?,
        })
    }

    /// Owners from the pool down to the child.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}/{}", self.conduit, self.node, self.name)
    }

    /// TTL of the child: a bridge lives as long as its node.
    pub(crate) fn ttl_ms(&self, settings: &Settings) -> Option<u64> {
        settings.ttl_ms.filter(|_| self.name.as_str() != BRIDGE)
    }
}

/// Child that Meridio's proxies have on each node for its bridge.
const BRIDGE: &str = "bridge";

/// Owner of a name that Meridio gives, which may be any text; none for an empty one. A text that is no name
/// of ipamd is converted.
pub(crate) fn owner(text: &str) -> Option<ObjectName> {
    if text.is_empty() {
        return None;
    }
    ObjectName::new(text).or_else(|_| ObjectName::new(Name::from_foreign_text(text).as_str())).ok()
}

#[cfg(test)]
mod tests {
    use crate::testing::{child, settings};

    use super::*;

    fn refusal(change: impl FnOnce(&mut Child)) -> (Code, String) {
        let mut child = child("conduit-a", "node-a", "bridge", 0);
        change(&mut child);
        let status = KnownChild::read(&child, &settings()).unwrap_err();
        (status.code(), status.message().to_owned())
    }

    fn conduit(child: &mut Child) -> &mut Conduit {
        child.subnet.as_mut().unwrap().conduit.as_mut().unwrap()
    }

    #[test]
    fn refusals_have_the_texts_of_meridio() {
        let family = |number| move |child: &mut Child| child.subnet.as_mut().unwrap().ip_family = number;
        let (code, text) = refusal(family(7));
        assert_eq!(code, Code::InvalidArgument);
        assert!(text.starts_with("cannot allocate in this ip family"), "{text}");
        assert_eq!(refusal(|child| child.subnet = None).1, "conduit cannot be nil");
        assert_eq!(refusal(|child| child.subnet.as_mut().unwrap().conduit = None).1, "conduit cannot be nil");
        assert_eq!(refusal(|child| conduit(child).trench = None).1, "trench cannot be nil");
        let other = refusal(|child| conduit(child).trench.as_mut().unwrap().name = "other".to_owned());
        assert_eq!(other, (Code::NotFound, "no corresponding trench".to_owned()));
        for (empty, says) in [
            (refusal(|child| conduit(child).name.clear()), "conduit"),
            (refusal(|child| child.subnet.as_mut().unwrap().node.clear()), "node"),
            (refusal(|child| child.name.clear()), "child"),
        ] {
            assert_eq!(empty, (Code::InvalidArgument, format!("the name of the {says} cannot be empty")));
        }
    }

    #[test]
    fn a_family_without_a_prefix_is_refused() {
        let mut settings = settings();
        settings.families.retain(|family| family.family == Family::V4);
        let status = KnownChild::read(&child("c", "n", "x", 1), &settings).unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(KnownChild::read(&child("c", "n", "x", 0), &settings).is_ok());
    }

    #[test]
    fn only_the_bridge_has_no_ttl_of_its_own() {
        let settings = settings();
        let ttl_ms = |name| KnownChild::read(&child("c", "n", name, 1), &settings).unwrap().ttl_ms(&settings);
        assert_eq!((ttl_ms("bridge"), ttl_ms("bridge-src")), (None, settings.ttl_ms));
    }

    #[test]
    fn any_text_has_one_owner() {
        assert_eq!(owner("id:1_x-src").unwrap().as_str(), "id:1_x-src");
        assert!(owner("").is_none());
        let foreign = ["a/b", "ü", "-a", " ", "a\0", &"x".repeat(300)].map(|text| owner(text).unwrap());
        let different: std::collections::BTreeSet<_> = foreign.iter().collect();
        assert_eq!(different.len(), foreign.len());
        assert!(foreign.iter().all(|owner| !owner.as_str().contains('/')));
    }
}
