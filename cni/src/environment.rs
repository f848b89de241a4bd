//! The parameters of one operation, as the runtime passes them in the environment.

use std::time::Duration;

use ipam_api::brand::{CNI_DEADLINE_ENV, SERVERS_ENV};
use ipam_api::limits::{BUDGET_MS_MAX, CNI_DEADLINE_MS, INTERFACE_NAME_CHARS_MAX, OBJECT_NAME_CHARS_MAX};
use ipam_api::name::{InterfaceName, ObjectName, shown};

use crate::fail::{self, Failure};
use crate::version::CniVersion;

/// Variable with the operation. Without it, the program was started by hand.
pub const COMMAND: &str = "CNI_COMMAND";
const CONTAINER_ID: &str = "CNI_CONTAINERID";
const NETWORK_NAMESPACE: &str = "CNI_NETNS";
const INTERFACE: &str = "CNI_IFNAME";
const PATH: &str = "CNI_PATH";
/// libcni's trace of the operation (W3C Trace Context).
const TRACE_PARENT: &str = "TRACEPARENT";
const ARGUMENTS: &str = "CNI_ARGS";

ipam_api::named_enum! {
/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Allocates addresses.
    Add = "ADD",
    /// Take them back.
    Del = "DEL",
    /// Checks that they are still allocated.
    Check = "CHECK",
    /// Reports if an ADD could be served.
    Status = "STATUS",
    /// Releases addresses that the runtime no longer knows.
    Gc = "GC",
    /// Lists the supported versions.
    Version = "VERSION",
}
}

impl Verb {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// Required variables. `CNI_PATH` is optional for STATUS in the specification, and nothing here uses it.
    fn required(self) -> &'static [&'static str] {
        match self {
            Verb::Add | Verb::Check => &[CONTAINER_ID, NETWORK_NAMESPACE, INTERFACE, PATH],
            Verb::Del => &[CONTAINER_ID, INTERFACE, PATH],
            Verb::Gc => &[PATH],
            Verb::Status | Verb::Version => &[],
        }
    }

    /// Refuses an operation that the configuration's version doesn't have.
    ///
    /// # Errors
    /// Code 1.
    pub fn check_version(self, version: CniVersion) -> Result<(), Failure> {
        let since = match self {
            Verb::Check => CniVersion::V040,
            Verb::Status | Verb::Gc => CniVersion::V110,
            Verb::Add | Verb::Del | Verb::Version => CniVersion::V010,
        };
        if version >= since {
            return Ok(());
        }
        Err(Failure::new(
            fail::INCOMPATIBLE_VERSION,
            format!("config version does not allow {self}"),
            format!("config is \"{version}\"; {self} exists since \"{since}\""),
        ))
    }
}

/// Identity of an attachment within its network configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The container's id.
    pub id: ObjectName,
    pub interface: InterfaceName,
}

/// The parameters of one operation.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Operation.
    pub verb: Verb,
    /// Container of the operation; none for STATUS, GC and VERSION.
    pub container: Option<Container>,
    /// Path of the container's network namespace; a DEL may have none.
    pub network_namespace: String,
    /// `CNI_ARGS`, unparsed.
    pub arguments: String,
    /// `IPAM_SERVERS`, unparsed.
    pub servers: String,
    /// Trace context of the operation, if there is a valid one.
    pub trace_parent: Option<String>,
    /// Time limit of the whole operation.
    pub deadline: Duration,
}

impl Environment {
    /// Reads and checks the variables that the operation needs.
    ///
    /// # Errors
    /// Code 4, naming every missing variable, or the invalid one.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let text = |name: &str| get(name).unwrap_or_default();
        let command = text(COMMAND);
        let verb = Verb::parse(&command).ok_or_else(|| {
            let shown: String = command.chars().filter(|c| !c.is_control()).take(40).collect();
            Failure::new(fail::ENVIRONMENT, format!("unknown {COMMAND}: {shown}"), "")
        })?;
        let missing: Vec<&str> =
            verb.required().iter().copied().filter(|name| text(name).is_empty()).collect();
        if !missing.is_empty() {
            let msg = format!("required env variables [{}] missing", missing.join(","));
            return Err(Failure::new(fail::ENVIRONMENT, msg, ""));
        }
        let container = match verb {
            Verb::Add | Verb::Del | Verb::Check => Some(Container {
                id: container_id(&text(CONTAINER_ID))?,
                interface: interface(&text(INTERFACE))?,
            }),
            Verb::Status | Verb::Gc | Verb::Version => None,
        };
        Ok(Self {
            verb,
            container,
            network_namespace: text(NETWORK_NAMESPACE),
            arguments: text(ARGUMENTS),
            servers: text(SERVERS_ENV),
            trace_parent: get(TRACE_PARENT).filter(|text| is_trace_parent(text)),
            deadline: deadline(&text(CNI_DEADLINE_ENV)),
        })
    }

    /// Container of the operation.
    ///
    /// # Errors
    /// Code 4, for an operation without a container.
    pub fn container(&self) -> Result<&Container, Failure> {
        self.container
            .as_ref()
            .ok_or_else(|| Failure::new(fail::ENVIRONMENT, format!("{CONTAINER_ID} is missing"), ""))
    }
}

/// True if the text is a `traceparent` of W3C Trace Context: four groups of hexadecimal digits.
fn is_trace_parent(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [2, 32, 16, 2] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// True for a container id or network name that the CNI library accepts.
pub(crate) fn is_plain(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Reads a container's id.
///
/// # Errors
/// Code 4.
pub fn container_id(text: &str) -> Result<ObjectName, Failure> {
    if !is_plain(text) {
        return Err(Failure::new(fail::ENVIRONMENT, "invalid characters in containerID", shown(text)));
    }
    ObjectName::new(text).map_err(|_| {
        let msg = format!("the containerID is longer than {OBJECT_NAME_CHARS_MAX} characters");
        Failure::new(fail::ENVIRONMENT, msg, shown(text))
    })
}

/// Reads an interface's name.
///
/// # Errors
/// Code 4.
pub fn interface(text: &str) -> Result<InterfaceName, Failure> {
    InterfaceName::new(text).map_err(|_| {
        let msg = if text.len() > INTERFACE_NAME_CHARS_MAX {
            "interface name is too long"
        } else if text.is_empty() || text == "." || text == ".." {
            "interface name is empty, . or .."
        } else {
            "interface name contains / or : or whitespace characters"
        };
        Failure::new(fail::ENVIRONMENT, msg, shown(text))
    })
}

/// Deadline set by the operator, or the default if it is malformed: a typo must not leave a node without
/// network.
fn deadline(text: &str) -> Duration {
    if text.is_empty() {
        return Duration::from_millis(CNI_DEADLINE_MS);
    }
    match text.parse() {
        Ok(milliseconds @ 1..=BUDGET_MS_MAX) => Duration::from_millis(milliseconds),
        _ => {
            crate::warn(&format!(
                "{CNI_DEADLINE_ENV}={} is ignored: it must be from 1 to {BUDGET_MS_MAX}",
                shown(text)
            ));
            Duration::from_millis(CNI_DEADLINE_MS)
        }
    }
}
