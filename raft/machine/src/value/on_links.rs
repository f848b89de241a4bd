//! Requests with the addresses of the host's interfaces, encoded after the request itself.

use std::net::IpAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Allocate;

/// Allocation request with the `link_addresses` of its interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnLinks(pub Allocate);

impl Serialize for OnLinks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let links: Vec<&[IpAddr]> =
            self.0.interfaces.iter().map(|one| one.link_addresses.as_slice()).collect();
        (&self.0, links).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OnLinks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut request, links): (Allocate, Vec<Vec<IpAddr>>) = Deserialize::deserialize(deserializer)?;
        if links.len() != request.interfaces.len() {
            return Err(D::Error::custom("another number of links than of interfaces"));
        }
        for (interface, link) in request.interfaces.iter_mut().zip(links) {
            interface.link_addresses = link;
        }
        Ok(Self(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Action;
    use crate::fixtures::{allocate_for, interface};
    use crate::value::InterfaceRequest;

    fn on_links(counts: &[usize]) -> Allocate {
        let interface = |(number, count): (usize, &usize)| InterfaceRequest {
            link_addresses: vec!["10.1.0.1".parse().unwrap(); *count],
            ..interface(&format!("eth{number}"))
        };
        allocate_for("pod/web/w0", counts.iter().enumerate().map(interface).collect())
    }

    #[test]
    fn an_action_keeps_the_addresses_of_links_of_each_interface() {
        for counts in [&[0, 0][..], &[1, 0], &[0, 2]] {
            let action = Action::from(on_links(counts));
            let bytes = postcard::to_stdvec(&action).unwrap();
            assert_eq!(postcard::from_bytes::<Action>(&bytes).unwrap(), action, "{counts:?}");
            let (Action::Allocate(read) | Action::AllocateOnLinks(OnLinks(read))) = action else { panic!() };
            assert_eq!(read, on_links(counts));
        }
    }

    #[test]
    fn another_number_of_links_than_of_interfaces_is_refused() {
        let link: Vec<IpAddr> = vec!["10.1.0.1".parse().unwrap()];
        for links in [vec![], vec![link.clone()], vec![link.clone(), link.clone(), link]] {
            let bytes = postcard::to_stdvec(&(on_links(&[0, 0]), links)).unwrap();
            postcard::from_bytes::<OnLinks>(&bytes).unwrap_err();
        }
    }
}
