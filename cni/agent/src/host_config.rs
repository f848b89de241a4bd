//! Sections `[host]` and `[[interface]]` of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use ipam_api::limits::{HOST_CONFIRM_MS, HOST_REFRESH_MS, HOST_SECTIONS_MAX, POOLS_NAMED_MAX};
use ipam_api::mac::MacAddress;
use ipam_api::name::{InterfaceName, NamePattern};
use ipam_api::render::Format;
use serde::{Deserialize, Serialize};

/// Longest pattern of interface names.
const PATTERN_CHARS_MAX: usize = 64;

/// Use of the addresses that a host gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Files for a network manager are written.
    Render,
    /// The kernel is configured by netlink.
    #[default]
    Apply,
    /// Files are written, and the kernel is configured.
    Both,
}

impl Mode {
    /// Returns true if the agent configures the kernel.
    #[must_use]
    pub fn applies(self) -> bool {
        matches!(self, Self::Apply | Self::Both)
    }

    /// Returns true if the agent writes files.
    #[must_use]
    pub fn renders(self) -> bool {
        matches!(self, Self::Render | Self::Both)
    }
}

/// Section `[host]` as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSection {
    #[serde(default)]
    mode: Mode,
    format: Option<Format>,
    #[serde(default = "root")]
    directory: PathBuf,
    #[serde(default = "confirm_ms")]
    confirm_ms: u64,
    #[serde(default = "refresh_ms")]
    refresh_ms: u64,
    #[serde(default = "machine_id_file")]
    machine_id_file: PathBuf,
    #[serde(default)]
    take_over: bool,
}

fn root() -> PathBuf {
    "/".into()
}

fn confirm_ms() -> u64 {
    HOST_CONFIRM_MS
}

fn refresh_ms() -> u64 {
    HOST_REFRESH_MS
}

fn machine_id_file() -> PathBuf {
    "/etc/machine-id".into()
}

impl Default for HostSection {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            format: None,
            directory: root(),
            confirm_ms: confirm_ms(),
            refresh_ms: refresh_ms(),
            machine_id_file: machine_id_file(),
            take_over: false,
        }
    }
}

/// Section `[[interface]]` as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSection {
    name: Option<InterfaceName>,
    mac: Option<String>,
    #[serde(rename = "match")]
    pattern: Option<String>,
    #[serde(default)]
    ipv4_pools: Vec<NamePattern>,
    #[serde(default)]
    ipv6_pools: Vec<NamePattern>,
    #[serde(default)]
    clean_gateway: bool,
}

/// Links of a host that a section selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The link with this name.
    Name(InterfaceName),
    /// The link with this Ethernet address.
    Mac(MacAddress),
    /// All links whose name matches a pattern with `*` and `?`.
    Match(String),
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "name = \"{name}\""),
            Self::Mac(mac) => write!(f, "mac = \"{mac}\""),
            Self::Match(pattern) => write!(f, "match = \"{pattern}\""),
        }
    }
}

/// Interface that gets addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Links of the section.
    pub selector: Selector,
    /// IPv4 pools to allocate from.
    pub ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools to allocate from.
    pub ipv6_pools: Vec<NamePattern>,
    /// True if the interface gets no default route.
    pub clean_gateway: bool,
}

/// Settings for the interfaces of a host.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Use of the addresses.
    pub mode: Mode,
    /// Format of the files.
    pub format: Format,
    /// Root directory of the files.
    pub directory: PathBuf,
    /// Time within which a server must answer after a change.
    pub confirm: Duration,
    /// Time between two requests.
    pub refresh: Duration,
    /// File with the machine id, the uid of the host's endpoint.
    pub machine_id_file: PathBuf,
    /// True to take over addresses that a former installation of this host holds.
    pub take_over: bool,
    /// Interfaces that get addresses, at least one.
    pub interfaces: Vec<InterfaceConfig>,
}

impl HostConfig {
    /// Checks the sections. Without interfaces there is nothing to configure.
    ///
    /// # Errors
    /// The reason, with the key.
    pub fn check(
        host: Option<HostSection>,
        interfaces: Vec<InterfaceSection>,
        interval: impl Fn(&str, u64) -> Result<Duration, String>,
    ) -> Result<Option<Self>, String> {
        if interfaces.is_empty() {
            let is_alone = host.is_some();
            return if is_alone { Err(ALONE.to_owned()) } else { Ok(None) };
        }
        if interfaces.len() > HOST_SECTIONS_MAX {
            let count = interfaces.len();
            return Err(format!("interface: {count} sections exceed the {HOST_SECTIONS_MAX} of a file"));
        }
        let host = host.unwrap_or_default();
        let format = match host.format {
            None if host.mode.renders() => {
                return Err("host.format is missing; mode = \"render\" and \"both\" need it".to_owned());
            }
            format => format.unwrap_or(Format::Netplan),
        };
        for (key, path) in
            [("host.directory", &host.directory), ("host.machine_id_file", &host.machine_id_file)]
        {
            if !path.is_absolute() {
                return Err(format!("{key} is {}; write an absolute path", path.display()));
            }
        }
        let interfaces: Vec<InterfaceConfig> =
            interfaces.into_iter().map(InterfaceConfig::check).collect::<Result<_, _>>()?;
        for (place, interface) in interfaces.iter().enumerate() {
            if interfaces.iter().take(place).any(|other| other.selector == interface.selector) {
                return Err(format!("interface: {} is in two sections; merge them", interface.selector));
            }
        }
        Ok(Some(Self {
            mode: host.mode,
            format,
            directory: host.directory,
            confirm: interval("host.confirm_ms", host.confirm_ms)?,
            refresh: interval("host.refresh_ms", host.refresh_ms)?,
            machine_id_file: host.machine_id_file,
            take_over: host.take_over,
            interfaces,
        }))
    }
}

/// Refusal of a section `[host]` without interfaces.
const ALONE: &str = "host needs at least one section [[interface]]; add one, or remove [host]";

impl InterfaceConfig {
    fn check(section: InterfaceSection) -> Result<Self, String> {
        let InterfaceSection { name, mac, pattern, ipv4_pools, ipv6_pools, clean_gateway } = section;
        let selector = match (name, mac, pattern) {
            (Some(name), None, None) => Selector::Name(name),
            (None, Some(mac), None) => {
                let wrong = |problem: ipam_api::Problem| format!("interface: mac: {}", problem.detail);
                let mac: MacAddress = mac.parse().map_err(wrong)?;
                if !mac.is_unicast() {
                    return Err(format!("interface: mac: {mac} is no address of one station"));
                }
                Selector::Mac(mac)
            }
            (None, None, Some(pattern)) => Selector::Match(checked(pattern)?),
            _ => return Err("interface: write exactly one of name, mac and match".to_owned()),
        };
        if ipv4_pools.is_empty() && ipv6_pools.is_empty() {
            return Err(format!("interface: {selector} has no pools; write ipv4_pools or ipv6_pools"));
        }
        for (key, pools) in [("ipv4_pools", &ipv4_pools), ("ipv6_pools", &ipv6_pools)] {
            if pools.len() > POOLS_NAMED_MAX {
                return Err(format!("interface: {selector}: {key} has more than {POOLS_NAMED_MAX} pools"));
            }
        }
        Ok(Self { selector, ipv4_pools, ipv6_pools, clean_gateway })
    }
}

/// Checks a pattern of interface names.
fn checked(pattern: String) -> Result<String, String> {
    let is_usable = |byte: u8| byte.is_ascii_graphic() && !b"/:[]".contains(&byte);
    if pattern.is_empty() || pattern.len() > PATTERN_CHARS_MAX || !pattern.bytes().all(is_usable) {
        return Err(format!("interface: match is {pattern:?}; write a name with * and ?, such as enp*s0f1"));
    }
    Ok(pattern)
}

/// Returns true if a name matches a pattern with `*` and `?`.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Prefixes of the pattern that match the part of the name read so far.
    let mut ends = vec![false; pattern.len() + 1];
    let skip = |ends: &mut Vec<bool>| {
        for (place, byte) in pattern.iter().enumerate() {
            if *byte == b'*'
                && ends.get(place) == Some(&true)
                && let Some(next) = ends.get_mut(place + 1)
            {
                *next = true;
            }
        }
    };
    if let Some(first) = ends.first_mut() {
        *first = true;
    }
    skip(&mut ends);
    for read in name {
        let mut next = vec![false; ends.len()];
        for (place, byte) in pattern.iter().enumerate().filter(|(place, _)| ends.get(*place) == Some(&true)) {
            let at =
                if *byte == b'*' { Some(place) } else { (*byte == b'?' || byte == read).then(|| place + 1) };
            if let Some(end) = at.and_then(|at| next.get_mut(at)) {
                *end = true;
            }
        }
        skip(&mut next);
        ends = next;
    }
    ends.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        host: Option<HostSection>,
        #[serde(default)]
        interface: Vec<InterfaceSection>,
    }

    fn parse(text: &str) -> Result<Option<HostConfig>, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let interval = |key: &str, ms: u64| {
            if ms == 0 { Err(format!("{key} is 0")) } else { Ok(Duration::from_millis(ms)) }
        };
        HostConfig::check(file.host, file.interface, interval)
    }

    #[test]
    fn an_interface_needs_a_selector_and_pools() {
        let config = parse("[[interface]]\nname = \"eth1\"\nipv4_pools = [\"rack-12\"]").unwrap().unwrap();
        assert_eq!(config.mode, Mode::Apply);
        assert_eq!(config.interfaces[0].selector, Selector::Name("eth1".parse().unwrap()));
        assert!(parse("").unwrap().is_none());
    }

    #[test]
    fn wrong_sections_name_their_key() {
        let pools = "ipv4_pools = [\"p\"]";
        for (text, key) in [
            ("[host]\nmode = \"apply\"".to_owned(), "[[interface]]"),
            (format!("[host]\nmode = \"off\"\n[[interface]]\nname = \"eth1\"\n{pools}"), "mode"),
            (format!("[host]\nmode = \"render\"\n[[interface]]\nname = \"eth1\"\n{pools}"), "host.format"),
            (format!("[host]\nformat = \"x\"\n[[interface]]\nname = \"eth1\"\n{pools}"), "format"),
            (format!("[host]\ndirectory = \"x\"\n[[interface]]\nname = \"a\"\n{pools}"), "host.directory"),
            (format!("[host]\nconfirm_ms = 0\n[[interface]]\nname = \"a\"\n{pools}"), "host.confirm_ms"),
            (format!("[host]\nwait = 0\n[[interface]]\nname = \"a\"\n{pools}"), "wait"),
            (format!("[[interface]]\n{pools}"), "exactly one"),
            (format!("[[interface]]\nname = \"a\"\nmatch = \"b\"\n{pools}"), "exactly one"),
            (format!("[[interface]]\nmac = \"x\"\n{pools}"), "mac"),
            (format!("[[interface]]\nmac = \"01:00:00:00:00:00\"\n{pools}"), "mac"),
            (format!("[[interface]]\nmatch = \"a/b\"\n{pools}"), "match"),
            ("[[interface]]\nname = \"a\"".to_owned(), "ipv4_pools"),
            (format!("[[interface]]\nname = \"a\"\n{pools}\n[[interface]]\nname = \"a\"\n{pools}"), "merge"),
            (format!("[[interface]]\nname = \"a\"\n{pools}\npool = \"x\""), "pool"),
        ] {
            let why = parse(&text).unwrap_err();
            assert!(why.contains(key), "{text}: {why}");
        }
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("eth1", "eth1", true),
            ("eth1", "eth10", false),
            ("enp*s0f1", "enp65s0f1", true),
            ("enp*s0f1", "enp65s0f10", false),
            ("e*0*1", "eno0x01", true),
            ("eth?", "eth1", true),
            ("eth?", "eth", false),
            ("*", "", true),
            ("**a", "bca", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
