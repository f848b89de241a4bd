//! Network configuration: the part that an IPAM plugin reads.
//!
//! Each operation reads only its own keys, so that a misspelt pool name never fails a DEL.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use ipam_api::Problem;
use ipam_api::agent::ValidAttachment;
use ipam_api::client::unresolved_host;
use ipam_api::name::{Name, NamePattern, ObjectName, shown};
use ipam_api::request::AutomaticPool;
use ipam_api::resource::{Controller, Labels, ScaleDown};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::arguments;
use crate::environment::{self, is_plain};
use crate::fail::{self, Failure};
use crate::json::Section;
use crate::result::Dns;
use crate::version::CniVersion;

/// `ipam.realm`
pub const REALM: &str = "realm";
/// `ipam.node`
pub const NODE: &str = "node";
/// `ipam.servers`
pub const SERVERS: &str = "servers";
/// `ipam.token_file`
pub const TOKEN_FILE: &str = "token_file";
/// `ipam.socket`
pub const SOCKET: &str = "socket";
/// `ipam.runtime`
pub const RUNTIME: &str = "runtime";
/// The key under which a container's request names subnets.
pub const SUBNETS: &str = "subnets";
/// Keys of IPv4 pools: that of ipamd, and those of Spiderpool.
pub const IPV4_POOLS: [&str; 3] = ["ipv4_pools", "default_ipv4_ippool", "defaultv4ippool"];
/// Keys of IPv6 pools: that of ipamd, and those of Spiderpool.
pub const IPV6_POOLS: [&str; 3] = ["ipv6_pools", "default_ipv6_ippool", "defaultv6ippool"];

/// Key of GC's list, and its name in drafts of the specification. libcni sends both.
const VALID_ATTACHMENTS: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];
/// Source of the node's name, unless the configuration has one.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// A network configuration.
#[derive(Debug, Clone)]
pub struct Network {
    /// CNI version of the configuration.
    pub version: CniVersion,
    pub name: ObjectName,
    document: Map<String, Value>,
}

/// Realm and name of this attachment's node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Realm of the node and its endpoints.
    pub realm: Name,
    pub node: ObjectName,
}

/// Servers and credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The node's agent.
    pub socket: Option<PathBuf>,
    pub servers: Vec<String>,
    /// File with the token for the servers.
    pub token_file: Option<PathBuf>,
}

impl Network {
    /// Reads the parts that every operation needs.
    ///
    /// # Errors
    /// Code 7, if the name of the network is missing or invalid.
    pub fn new(document: Map<String, Value>, version: CniVersion) -> Result<Self, Failure> {
        let text = match document.get("name") {
            Some(Value::String(text)) => text.as_str(),
            _ => "",
        };
        if text.is_empty() {
            return Err(Failure::new(fail::CONFIGURATION, "missing network name", "give the network a name"));
        }
        if !is_plain(text) {
            let msg = "invalid characters found in network name";
            return Err(Failure::new(fail::CONFIGURATION, msg, shown(text)));
        }
        let name = ObjectName::new(text)?;
        Ok(Self { version, name, document })
    }

    /// `ipam` section.
    ///
    /// # Errors
    /// Code 7 if it is missing or not an object.
    pub fn ipam(&self) -> Result<Section<'_>, Failure> {
        let ipam = self.whole().section("ipam")?;
        if ipam.exists() { Ok(ipam) } else { Err(Failure::configuration("the section ipam is missing")) }
    }

    /// Realm and name of the node.
    ///
    /// # Errors
    /// Code 7.
    pub fn home(&self) -> Result<Home, Failure> {
        let ipam = self.ipam()?;
        let realm = match ipam.text(REALM)? {
            Some(text) => Name::new(text).map_err(|problem| ipam.wrong(REALM, &problem.detail))?,
            None => Name::default_name(),
        };
        let node = match ipam.text(NODE)? {
            Some(text) => ObjectName::new(text).map_err(|problem| ipam.wrong(NODE, &problem.detail))?,
            None => host_name()?,
        };
        Ok(Home { realm, node })
    }

    /// Servers and credentials. `servers` comes from the environment, for configurations without any.
    ///
    /// # Errors
    /// Code 7: no server is specified, or a server has a host name.
    pub fn reach(&self, servers: &str) -> Result<Reach, Failure> {
        let ipam = self.ipam()?;
        let socket = ipam.text(SOCKET)?.map(PathBuf::from);
        let mut named: Vec<String> = ipam.texts(SERVERS)?.into_iter().map(str::to_owned).collect();
        if named.is_empty() {
            let separate = |c: char| c == ',' || c.is_whitespace();
            named = servers.split(separate).filter(|text| !text.is_empty()).map(str::to_owned).collect();
        }
        if named.is_empty() && socket.is_none() {
            return Err(Failure::configuration(format!(
                "{} is missing; name the servers, for example [\"http://127.0.0.1:7440\"], or the agent's \
                 socket in {}",
                ipam.path(SERVERS),
                ipam.path(SOCKET)
            )));
        }
        if let Some(host) = named.iter().find_map(|server| unresolved_host(server)) {
            // A static program that resolves names loads the host's NSS modules, and can crash in one.
            return Err(Failure::configuration(format!(
                "the server {} is a name, and the plugin resolves no names: name servers by IP address in \
                 {}, or use the node's agent, which resolves names ({})",
                shown(&host),
                ipam.path(SERVERS),
                ipam.path(SOCKET)
            )));
        }
        let token_file = ipam.text(TOKEN_FILE)?.map(PathBuf::from);
        Ok(Reach { socket, servers: named, token_file })
    }

    /// Name of the runtime, for runtimes that the plugin can't identify by their process.
    ///
    /// # Errors
    /// Code 7.
    pub fn runtime(&self) -> Result<Option<&str>, Failure> {
        self.ipam()?.text(RUNTIME)
    }

    /// Pools that one of the keys names, in order, each once: the default for other requests.
    ///
    /// # Errors
    /// Code 7.
    pub fn pools(&self, keys: [&str; 3]) -> Result<Vec<NamePattern>, Failure> {
        named(&self.ipam()?, &keys)
    }

    /// Names in the container's request under `args.cni`; they take precedence over all others.
    ///
    /// # Errors
    /// Code 7.
    pub fn requested<N>(&self, key: &str) -> Result<Vec<N>, Failure>
    where
        N: FromStr<Err = Problem> + PartialEq,
    {
        named(&self.arguments()?, &[key])
    }

    /// Requested addresses, from `args.cni.ips` and from `runtimeConfig.ips`.
    ///
    /// # Errors
    /// Code 7.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, Failure> {
        let arguments = self.arguments()?;
        let mut addresses = Vec::new();
        for section in [arguments, self.whole().section("runtimeConfig")?] {
            let texts = section.texts("ips")?;
            let more = arguments::addresses(texts.into_iter())
                .map_err(|why| Failure::configuration(format!("{}: {why}", section.path("ips"))))?;
            addresses.extend(more);
        }
        Ok(addresses)
    }

    /// Labels of the endpoint, from `args.cni.labels`: a list of `{"key", "value"}` (CNI conventions).
    ///
    /// # Errors
    /// Code 7.
    pub fn labels(&self) -> Result<Labels, Failure> {
        let arguments = self.arguments()?;
        let Some(labels) = arguments.get("labels") else { return Ok(Labels::new()) };
        let pair = |entry: &Value| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            Some((text("key")?, text("value")?))
        };
        let pairs = labels.as_array().and_then(|entries| entries.iter().map(pair).collect());
        pairs.ok_or_else(|| arguments.wrong("labels", "must be a list of objects with key and value"))
    }

    /// Controller of the endpoint, from `args.cni.controller`: kind and name, optionally group and uid.
    ///
    /// # Errors
    /// Code 7.
    pub fn controller(&self) -> Result<Option<Controller>, Failure> {
        let arguments = self.arguments()?;
        let controller = arguments.section("controller")?;
        if !controller.exists() {
            return Ok(None);
        }
        let (Some(kind), Some(name)) = (controller.text("kind")?, controller.text("name")?) else {
            return Err(arguments.wrong("controller", "must have a kind and a name"));
        };
        Ok(Some(Controller {
            group: controller.text("group")?.unwrap_or_default().to_owned(),
            kind: kind.to_owned(),
            name: ObjectName::new(name).map_err(|problem| controller.wrong("name", &problem.detail))?,
            uid: controller.text("uid")?.map(str::to_owned),
        }))
    }

    /// Stickiness of the endpoint, from `args.cni.sticky`.
    ///
    /// # Errors
    /// Code 7.
    pub fn sticky(&self) -> Result<Option<bool>, Failure> {
        self.arguments()?.boolean("sticky")
    }

    /// Policy for the addresses after a scale-down, from `args.cni.scale_down`.
    ///
    /// # Errors
    /// Code 7.
    pub fn scale_down(&self) -> Result<Option<ScaleDown>, Failure> {
        let arguments = self.arguments()?;
        let text = arguments.text("scale_down")?;
        let wrong = |_| arguments.wrong("scale_down", "must be release or keep");
        text.map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// Settings for the automatic pools of the endpoint's application, from `args.cni.automatic_pool`.
    ///
    /// # Errors
    /// Code 7.
    pub fn automatic_pool(&self) -> Result<Option<AutomaticPool>, Failure> {
        let arguments = self.arguments()?;
        let read = |value: &Value| {
            AutomaticPool::deserialize(value).map_err(|why| {
                let detail = format!("must be like {{\"size\": \"+2\", \"reclaim\": true}}: {why}");
                arguments.wrong("automatic_pool", &detail)
            })
        };
        arguments.get("automatic_pool").map(read).transpose()
    }

    /// Desired number of replicas, from `args.cni.replicas`.
    ///
    /// # Errors
    /// Code 7.
    pub fn replicas(&self) -> Result<Option<u32>, Failure> {
        let arguments = self.arguments()?;
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let wrong = || arguments.wrong("replicas", "must be a number");
        arguments.get("replicas").map(|value| number(value).ok_or_else(wrong)).transpose()
    }

    /// MAC address that the runtime requests for the interface.
    ///
    /// # Errors
    /// Code 7.
    pub fn mac(&self) -> Result<Option<String>, Failure> {
        Ok(self.whole().section("runtimeConfig")?.text("mac")?.map(str::to_owned))
    }

    /// Name resolution that the configuration itself prescribes, if it does.
    ///
    /// # Errors
    /// Code 7.
    pub fn dns(&self) -> Result<Option<Dns>, Failure> {
        let dns = self.whole().section("dns")?;
        let texts = |key| dns.texts(key).map(|texts| texts.into_iter().map(str::to_owned).collect());
        let dns = Dns {
            nameservers: texts("nameservers")?,
            domain: dns.text("domain")?.map(str::to_owned),
            search: texts("search")?,
            options: texts("options")?,
        };
        Ok(Some(dns).filter(|dns| *dns != Dns::default()))
    }

    /// Addresses of the ADD in `prevResult`; `None` if the runtime passes no result.
    ///
    /// # Errors
    /// Code 6 if they can't be read.
    pub fn previous_addresses(&self) -> Result<Option<Vec<IpAddr>>, Failure> {
        let wrong = |details: String| Failure::new(fail::DECODE, "prevResult can't be read", details);
        let previous = self.whole().section("prevResult").map_err(|failure| wrong(failure.details))?;
        let Some(entries) = previous.get("ips") else { return Ok(None) };
        let entries = entries.as_array().ok_or_else(|| wrong("prevResult.ips must be a list".to_owned()))?;
        let texts = entries
            .iter()
            .map(|entry| entry.get("address").and_then(Value::as_str))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| wrong("each of prevResult.ips must have an address".to_owned()))?;
        arguments::addresses(texts.into_iter()).map(Some).map_err(wrong)
    }

    /// Attachments that the runtime still knows; `None` if the key is absent, an empty list for `null`. (One
    /// runtime writes an empty list as `null`.)
    ///
    /// # Errors
    /// Code 7.
    pub fn valid_attachments(&self) -> Result<Option<Vec<ValidAttachment>>, Failure> {
        let Some((key, value)) =
            VALID_ATTACHMENTS.into_iter().find_map(|key| self.document.get(key).map(|value| (key, value)))
        else {
            return Ok(None);
        };
        let wrong = |why: &str| Failure::configuration(format!("{key} {why}"));
        let entries = match value {
            Value::Null => return Ok(Some(Vec::new())),
            Value::Array(entries) => entries,
            _ => return Err(wrong("must be a list")),
        };
        let mut attachments = Vec::new();
        for entry in entries {
            let text = |name: &str| entry.get(name).and_then(Value::as_str);
            let (Some(id), Some(interface)) = (text("containerID"), text("ifname")) else {
                return Err(wrong("must have containerID and ifname in each entry"));
            };
            attachments.push(ValidAttachment {
                container_id: environment::container_id(id)
                    .map_err(|failure| failure.with_code(fail::CONFIGURATION))?,
                interface: environment::interface(interface)
                    .map_err(|failure| failure.with_code(fail::CONFIGURATION))?,
            });
        }
        Ok(Some(attachments))
    }

    /// Arguments of the container's request: `args.cni`.
    ///
    /// # Errors
    /// Code 7 if it is not an object.
    pub fn arguments(&self) -> Result<Section<'_>, Failure> {
        self.whole().section("args")?.section("cni")
    }

    /// The whole document, with the keys of the main plugin.
    pub(crate) fn whole(&self) -> Section<'_> {
        Section::whole(&self.document)
    }
}

fn host_name() -> Result<ObjectName, Failure> {
    let text = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    ObjectName::new(text.trim()).map_err(|problem| {
        Failure::configuration(format!(
            "ipam.{NODE} is missing and the host's name won't do: {}",
            problem.detail
        ))
    })
}

/// The names under some keys of a section, in order, each once.
pub(crate) fn named<N>(section: &Section<'_>, keys: &[&str]) -> Result<Vec<N>, Failure>
where
    N: FromStr<Err = Problem> + PartialEq,
{
    let mut names = Vec::new();
    for key in keys {
        for text in section.texts(key)? {
            let name: N = text.parse().map_err(|problem: Problem| {
                Failure::configuration(format!("{}: {}", section.path(key), problem.detail))
            })?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        let document = crate::json::parse(text.as_bytes()).unwrap();
        Network::new(document, CniVersion::LATEST).unwrap()
    }

    #[test]
    fn spiderpools_keys_mean_the_same() {
        let network = network(
            r#"{"name":"n","ipam":{"ipv4_pools":"web","default_ipv4_ippool":["web","lan"],
                "defaultv4ippool":"old","defaultv6ippool":["six"],"colour":{"of":["no","interest"]}}}"#,
        );
        let names =
            |keys| -> Vec<String> { network.pools(keys).unwrap().iter().map(ToString::to_string).collect() };
        assert_eq!(names(IPV4_POOLS), ["web", "lan", "old"]);
        assert_eq!(names(IPV6_POOLS), ["six"]);
    }

    #[test]
    fn the_environment_names_servers_where_the_configuration_does_not() {
        let silent = network(r#"{"name":"n","ipam":{"servers":null}}"#);
        assert!(silent.reach("").unwrap_err().details.contains("ipam.servers is missing"));
        assert_eq!(
            silent.reach("http://10.0.0.1:1, http://[::1]:2").unwrap().servers,
            ["http://10.0.0.1:1", "http://[::1]:2"]
        );
        let own = network(r#"{"name":"n","ipam":{"servers":"http://10.0.0.3:3"}}"#);
        assert_eq!(own.reach("http://10.0.0.1:1").unwrap().servers, ["http://10.0.0.3:3"]);
        let agent = network(r#"{"name":"n","ipam":{"socket":"/run/x"}}"#).reach("").unwrap();
        assert_eq!(agent.socket, Some(PathBuf::from("/run/x")));
    }

    #[test]
    fn servers_are_named_by_address() {
        for ipam in
            [r#"{"servers":["http://10.0.0.1:1","http://n1:1"]}"#, r#"{"servers":"http://localhost:1"}"#]
        {
            let failure = network(&format!(r#"{{"name":"n","ipam":{ipam}}}"#)).reach("").unwrap_err();
            assert_eq!(failure.code, fail::CONFIGURATION, "{ipam}");
            assert!(failure.details.contains("the plugin resolves no names"), "{}", failure.details);
        }
        let silent = network(r#"{"name":"n","ipam":{"socket":"/run/x"}}"#);
        assert!(silent.reach("http://ipamd.example:7440").is_err(), "a name in the environment");
    }

    #[test]
    fn home_has_defaults() {
        let home = network(r#"{"name":"n","ipam":{}}"#).home().unwrap();
        assert_eq!(home.realm, Name::default_name());
        assert!(!home.node.as_str().is_empty());
        let failure = network(r#"{"name":"n","ipam":{"realm":"A/B"}}"#).home().unwrap_err();
        assert!(failure.details.starts_with("ipam.realm"), "{}", failure.details);
    }

    #[test]
    fn four_ways_to_say_what_is_valid() {
        let count = |text: &str| network(text).valid_attachments().map(|list| list.map(|list| list.len()));
        assert_eq!(count(r#"{"name":"n"}"#), Ok(None));
        assert_eq!(count(r#"{"name":"n","cni.dev/valid-attachments":null}"#), Ok(Some(0)));
        assert_eq!(count(r#"{"name":"n","cni.dev/attachments":[]}"#), Ok(Some(0)));
        let list = r#"{"name":"n","cni.dev/attachments":[{"containerID":"c1","ifname":"eth0"}]}"#;
        assert_eq!(count(list), Ok(Some(1)));
        for bad in ["7", r#"[{"containerID":"c1"}]"#, r#"[{"containerID":"../x","ifname":"eth0"}]"#] {
            let text = format!(r#"{{"name":"n","cni.dev/valid-attachments":{bad}}}"#);
            assert_eq!(count(&text).unwrap_err().code, fail::CONFIGURATION, "{bad}");
        }
    }
}
