//! Scope of a command, from the flags `--network`, `--realm` and `--namespace`.
//!
//! A specified flag is never ignored: it filters, or it is refused. Realm and namespace of a context are only
//! defaults for endpoint names without them.

use ipam_api::{Name, ObjectName};
use serde::Deserialize;

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::settings::flags::PlaceArguments;

/// Part of the scope that one flag specifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Network,
    Realm,
    Namespace,
}

impl Part {
    const ALL: [Part; 3] = [Part::Network, Part::Realm, Part::Namespace];

    /// Name of the flag, and of the list filter.
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

    /// True if `--realm` is absent or specifies this realm.
    pub(crate) fn fits_realm(&self, realm: &Name) -> bool {
        self.realm.as_ref().is_none_or(|said| said == realm)
    }

    /// True if `--namespace` is absent or specifies this namespace.
    pub(crate) fn fits_namespace(&self, namespace: &ObjectName) -> bool {
        self.namespace.as_ref().is_none_or(|said| said == namespace)
    }
}

/// Field with the network of an object in an address space.
#[derive(Deserialize)]
struct Placed {
    network: Option<Name>,
}

impl Session {
    /// True if no network is selected, or this one.
    pub(crate) fn fits_network(&self, network: &Name) -> bool {
        self.settings.network.as_ref().is_none_or(|named| named == network)
    }

    /// Filters of a list of `plural`, from the flags that apply to its items. Any other flag is refused,
    /// because its user would mistake the whole list for a part.
    pub(crate) fn narrowed(
        &self,
        plural: &str,
        parts: &[Part],
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let others: Vec<Part> = Part::ALL.into_iter().filter(|part| !parts.contains(part)).collect();
        self.without(plural, &others)?;
        let value = |part: Part| match part {
            // Unlike its realm and namespace, the network of a context also filters lists.
            Part::Network => self.settings.network.as_ref().map(ToString::to_string),
            Part::Realm | Part::Namespace => self.said.part(part),
        };
        Ok(parts.iter().filter_map(|part| Some((part.word(), value(*part)?))).collect())
    }

    /// Refuses flags that don't apply to `what` (a plural).
    pub(crate) fn without(&self, what: &str, parts: &[Part]) -> Result<(), Failure> {
        let Some(part) = parts.iter().find(|part| self.said.part(**part).is_some()) else { return Ok(()) };
        let word = part.word();
        Err(Failure::usage(
            format!("--{word} does not apply to {what}: they have no {word}"),
            format!("Remove --{word}."),
        ))
    }

    /// Refuses `--realm` if the name contains another realm.
    pub(crate) fn check_realm(&self, text: &str, realm: &Name) -> Result<(), Failure> {
        self.check_part(text, Part::Realm, self.said.fits_realm(realm))
    }

    /// Refuses `--namespace` if the name contains another namespace.
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

    /// Refuses `--network` if the object that was read is in another network.
    pub(crate) fn check_network(&self, what: &str, lies_in: &Name) -> Result<(), Failure> {
        let Some(said) = self.said.network.as_ref().filter(|said| *said != lies_in) else { return Ok(()) };
        Err(Failure::usage(
            format!("{what} is in network {lies_in}, not in {said}"),
            format!("Remove --network, or use --network {lies_in}."),
        ))
    }

    /// Like [`Self::check_network`], for the JSON of an object of any kind.
    pub(crate) fn check_placed(&self, what: &str, plural: &str, body: &[u8]) -> Result<(), Failure> {
        if self.said.network.is_none() {
            return Ok(());
        }
        match serde_json::from_slice(body) {
            Ok(Placed { network: Some(network) }) => self.check_network(what, &network),
            _ => self.without(plural, &[Part::Network]),
        }
    }

    /// Like [`Self::check_placed`], for an object that is not read yet. A failed read is ignored: the server
    /// refuses a request for a missing object.
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
