//! Place in which a command looks, as flags name it: `--network`, `--realm`, `--namespace`.
//!
//! A flag always counts: it narrows, or it is refused. A context's realm and namespace only fill in what
//! the name of an endpoint leaves out.

use ipam_api::{Name, ObjectName};
use serde::Deserialize;

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::settings::flags::PlaceArguments;

/// A flag that says where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Network,
    Realm,
    Namespace,
}

impl Part {
    const ALL: [Part; 3] = [Part::Network, Part::Realm, Part::Namespace];

    /// Its name, as lists are narrowed by it.
    fn word(self) -> &'static str {
        match self {
            Part::Network => "network",
            Part::Realm => "realm",
            Part::Namespace => "namespace",
        }
    }
}

impl PlaceArguments {
    fn part(&self, part: Part) -> Option<String> {
        match part {
            Part::Network => self.network.as_ref().map(ToString::to_string),
            Part::Realm => self.realm.as_ref().map(ToString::to_string),
            Part::Namespace => self.namespace.as_ref().map(ToString::to_string),
        }
    }

    /// True if a realm is the one that was said, or none was.
    pub(crate) fn fits_realm(&self, realm: &Name) -> bool {
        self.realm.as_ref().is_none_or(|said| said == realm)
    }

    /// True if a namespace is the one that was said, or none was.
    pub(crate) fn fits_namespace(&self, namespace: &ObjectName) -> bool {
        self.namespace.as_ref().is_none_or(|said| said == namespace)
    }
}

/// The one field that says where an object of an address space is.
#[derive(Deserialize)]
struct Placed {
    network: Option<Name>,
}

impl Session {
    /// True if a network is the one that was named, or none was.
    pub(crate) fn fits_network(&self, network: &Name) -> bool {
        self.settings.network.as_ref().is_none_or(|named| named == network)
    }

    /// Filters of a list of `plural`, by the parts that its items have. A flag about another part is refused:
    /// its user would take the whole list for a part of it.
    pub(crate) fn narrowed(
        &self,
        plural: &str,
        parts: &[Part],
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let others: Vec<Part> = Part::ALL.into_iter().filter(|part| !parts.contains(part)).collect();
        self.without(plural, &others)?;
        let value = |part: Part| match part {
            // A context names a network only to have it looked at.
            Part::Network => self.settings.network.as_ref().map(ToString::to_string),
            Part::Realm | Part::Namespace => self.said.part(part),
        };
        Ok(parts.iter().filter_map(|part| Some((part.word(), value(*part)?))).collect())
    }

    /// Refuses flags that say nothing about `what`, in the plural.
    pub(crate) fn without(&self, what: &str, parts: &[Part]) -> Result<(), Failure> {
        let Some(part) = parts.iter().find(|part| self.said.part(**part).is_some()) else { return Ok(()) };
        let word = part.word();
        Err(Failure::usage(
            format!("--{word} does not apply to {what}: they have no {word}"),
            format!("Remove --{word}."),
        ))
    }

    /// Refuses `--realm` beside a name that says another one.
    pub(crate) fn check_realm(&self, text: &str, realm: &Name) -> Result<(), Failure> {
        self.check_part(text, Part::Realm, self.said.fits_realm(realm))
    }

    /// The same for `--namespace`.
    pub(crate) fn check_namespace(&self, text: &str, namespace: &ObjectName) -> Result<(), Failure> {
        self.check_part(text, Part::Namespace, self.said.fits_namespace(namespace))
    }

    fn check_part(&self, text: &str, part: Part, fits: bool) -> Result<(), Failure> {
        let (word, said) = (part.word(), self.said.part(part).unwrap_or_default());
        if fits {
            return Ok(());
        }
        Err(Failure::usage(
            format!("{} names another {word} than --{word} {said}", ipam_api::name::shown(text)),
            format!("Remove --{word}, or the {word} of the name."),
        ))
    }

    /// Refuses `--network` where what was read lies in another one.
    pub(crate) fn check_network(&self, what: &str, lies_in: &Name) -> Result<(), Failure> {
        let Some(said) = self.said.network.as_ref().filter(|said| *said != lies_in) else { return Ok(()) };
        Err(Failure::usage(
            format!("{what} is in network {lies_in}, not in {said}"),
            format!("Remove --network, or use --network {lies_in}."),
        ))
    }

    /// Like the above, for an object of any kind that was read.
    pub(crate) fn check_placed(&self, what: &str, plural: &str, body: &[u8]) -> Result<(), Failure> {
        if self.said.network.is_none() {
            return Ok(());
        }
        match serde_json::from_slice(body) {
            Ok(Placed { network: Some(network) }) => self.check_network(what, &network),
            _ => self.without(plural, &[Part::Network]),
        }
    }

    /// The same for one that isn't read yet. The server refuses one that isn't there.
    pub(crate) async fn check_named(&self, word: &str, plural: &str, name: &str) -> Result<(), Failure> {
        if self.said.network.is_none() {
            return Ok(());
        }
        match self.read(&format!("/v1/{plural}/{name}")).await {
            Ok(answer) => self.check_placed(&format!("{word} {name}"), plural, &answer.body),
            Err(_) => Ok(()),
        }
    }
}
