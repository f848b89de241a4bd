//! Environment of Meridio's server: `IPAM_*`, a closed list. Any of these names enables the front end.
//!
//! Kubernetes sets `IPAM_PORT=tcp://…`, `IPAM_SERVICE_HOST` and the like for a Service `ipam`.
//! These, and other unknown names, are ignored with a warning. Variables of `ipamctl`, the plugin and the
//! agent have the same prefix, but are not the daemon's.

use std::path::Path;
use std::time::Duration;

use ipam_api::brand::{
    AGENT_LOG_ENV, CA_FILE_ENV, CERT_FILE_ENV, CNI_DEADLINE_ENV, CONTEXT_ENV, KEY_FILE_ENV,
    MERIDIO_DATA_FOLDER, MERIDIO_ENV_PREFIX, MERIDIO_SOCKET, SERVERS_ENV, TOKEN_FILE_ENV,
};
use ipam_api::limits::MERIDIO_KEEPALIVE_MS_MIN;
use ipam_api::name::shown;
use toml::{Table, Value};

use super::go_duration;
use crate::config::error::{ConfigError, wrong};

/// Every variable with the configuration key that it sets.
pub const NAMES: &[(&str, &str)] = &[
    ("IPAM_PORT", "meridio.listen"),
    ("IPAM_DATA_SOURCE", "data_dir"),
    ("IPAM_DATASOURCE", "data_dir"),
    ("IPAM_TRENCH_NAME", "meridio.trench"),
    ("IPAM_NSP_SERVICE", "meridio.nsp_service"),
    ("IPAM_PREFIX_IPV4", "meridio.prefix_ipv4"),
    ("IPAM_CONDUIT_PREFIX_LENGTH_IPV4", "meridio.conduit_prefix_length_ipv4"),
    ("IPAM_NODE_PREFIX_LENGTH_IPV4", "meridio.node_prefix_length_ipv4"),
    ("IPAM_PREFIX_IPV6", "meridio.prefix_ipv6"),
    ("IPAM_CONDUIT_PREFIX_LENGTH_IPV6", "meridio.conduit_prefix_length_ipv6"),
    ("IPAM_NODE_PREFIX_LENGTH_IPV6", "meridio.node_prefix_length_ipv6"),
    ("IPAM_IP_FAMILY", "meridio.ip_family"),
    ("IPAM_LOG_LEVEL", "log"),
    ("IPAM_GRPC_KEEPALIVE_TIME", "meridio.grpc_keepalive_ms"),
    ("IPAM_GRPC_PROBE_RPC_TIMEOUT", NO_EFFECT),
    ("IPAM_GRPC_MAX_BACKOFF", "meridio.grpc_max_backoff_ms"),
    ("IPAM_GARBAGE_COLLECTION_ENABLED", "meridio.expiry"),
    ("IPAM_GARBAGE_COLLECTION_INTERVAL", NO_EFFECT),
    ("IPAM_GARBAGE_COLLECTION_THRESHOLD", "meridio.ttl_ms"),
    ("IPAM_GRPC_COMPAT", "meridio.grpc_compat"),
];

/// Pseudo-key of names in [`NAMES`] that are accepted without effect.
const NO_EFFECT: &str = "no effect";

/// Variables of other ipamd programs, ignored without a warning.
const OF_OTHERS: [&str; 8] = [
    SERVERS_ENV,
    CONTEXT_ENV,
    TOKEN_FILE_ENV,
    CA_FILE_ENV,
    CERT_FILE_ENV,
    KEY_FILE_ENV,
    CNI_DEADLINE_ENV,
    AGENT_LOG_ENV,
];

/// Section of the file.
const SECTION: &str = "meridio";

/// Settings from the `IPAM_*` variables.
#[derive(Debug, Default)]
pub(in crate::config) struct MeridioEnvironment {
    /// Settings by configuration key; they override the file.
    pub(in crate::config) settings: Table,
    /// Settings by configuration key; every other source overrides them.
    pub(in crate::config) defaults: Table,
    pub(in crate::config) warnings: Vec<String>,
}

impl MeridioEnvironment {
    /// Reads the variables.
    ///
    /// # Errors
    /// For a value that can't be used.
    pub(in crate::config) fn read(
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut environment = Self::default();
        let mut data_source: Option<(&str, String)> = None;
        for (name, value) in variables.filter(|(name, _)| name.starts_with(MERIDIO_ENV_PREFIX)) {
            match NAMES.iter().find(|(known, _)| *known == name) {
                Some((known, _)) if is_link(known, &value) => environment.ignore(known),
                // An empty variable counts as unset, as everywhere.
                Some(_) if value.is_empty() => {}
                Some((known, "data_dir")) => {
                    if let Some((other, path)) = &data_source
                        && *path != value
                    {
                        let why = format!("it differs from {other}; leave one of them out");
                        return Err(wrong(known, &why));
                    }
                    data_source = Some((*known, value));
                }
                Some((known, key)) => environment.set(known, key, &value)?,
                None if OF_OTHERS.contains(&name.as_str()) => {}
                None => environment.ignore(&name),
            }
        }
        if let Some((name, path)) = data_source {
            environment.replace_file(name, &path);
        }
        if environment.settings.contains_key(SECTION) {
            let socket = Table::from_iter([("socket".to_owned(), Value::from(MERIDIO_SOCKET))]);
            environment.defaults.insert(SECTION.to_owned(), Value::Table(socket));
        }
        Ok(environment)
    }

    fn ignore(&mut self, name: &str) {
        self.warnings.push(format!(
            "{} in the environment is no setting of Meridio's front end, or a link to a Kubernetes Service; \
             ignored",
            shown(name)
        ));
    }

    /// Reads one variable.
    fn set(&mut self, name: &str, key: &str, text: &str) -> Result<(), ConfigError> {
        let section = self.settings.entry(SECTION).or_insert_with(|| Value::Table(Table::new()));
        let value = match name {
            "IPAM_PORT" => Value::from(format!("[::]:{}", port(name, text)?)),
            "IPAM_LOG_LEVEL" => {
                self.defaults.insert(key.to_owned(), Value::from(level(name, text)?));
                return Ok(());
            }
            "IPAM_IP_FAMILY" => {
                let family = text.to_ascii_lowercase();
                let is_known = ["ipv4", "ipv6", "dualstack"].contains(&family.as_str());
                if !is_known {
                    let family = shown(text);
                    self.warnings.push(format!("{name}: {family} is no family; dualstack, as with Meridio"));
                }
                Value::from(if is_known { family } else { "dualstack".to_owned() })
            }
            "IPAM_GARBAGE_COLLECTION_ENABLED" | "IPAM_GRPC_COMPAT" => Value::from(switch(name, text)?),
            "IPAM_GARBAGE_COLLECTION_INTERVAL" => {
                duration(name, text)?;
                self.warnings.push(format!("{name} has no effect: prefixes expire exactly, not in rounds"));
                return Ok(());
            }
            "IPAM_GRPC_PROBE_RPC_TIMEOUT" => {
                duration(name, text)?;
                self.warnings
                    .push(format!("{name} has no effect: the server does not probe itself over gRPC"));
                return Ok(());
            }
            // gRPC for Go also raises shorter intervals to its minimum.
            "IPAM_GRPC_KEEPALIVE_TIME" => {
                let least = i64::try_from(MERIDIO_KEEPALIVE_MS_MIN).unwrap_or(i64::MAX);
                Value::from(milliseconds(name, text)?.max(least))
            }
            _ if key.ends_with("_ms") => Value::from(milliseconds(name, text)?),
            _ if key.contains("_length_") => Value::from(length(name, text)?),
            _ => Value::from(text),
        };
        let key = key.split_once('.').map_or(key, |(_, key)| key);
        section.as_table_mut().and_then(|section| section.insert(key.to_owned(), value));
        Ok(())
    }

    /// Uses a folder beside Meridio's database as the data directory, unless another one is configured.
    fn replace_file(&mut self, name: &str, path: &str) {
        let dir = Path::new(path).parent().unwrap_or(Path::new("")).join(MERIDIO_DATA_FOLDER);
        let dir = dir.display().to_string();
        self.warnings.push(format!(
            "{name}: ipamd neither reads nor writes an SQLite file; unless data_dir is set, its data \
             directory is {}",
            shown(&dir)
        ));
        self.defaults.insert("data_dir".to_owned(), Value::from(dir));
        self.settings.entry(SECTION).or_insert_with(|| Value::Table(Table::new()));
    }
}

/// True for a Service link of Kubernetes. Of the known names only `IPAM_PORT` can be such a link.
fn is_link(name: &str, value: &str) -> bool {
    name == "IPAM_PORT" && ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme))
}

fn port(name: &str, text: &str) -> Result<u16, ConfigError> {
    match text.parse() {
        Ok(0) | Err(_) => {
            Err(wrong(name, &format!("{} is not a port; write 7777, for example", shown(text))))
        }
        Ok(port) => Ok(port),
    }
}

/// Returns the log filter for a log level of Meridio.
fn level(name: &str, text: &str) -> Result<&'static str, ConfigError> {
    match text.to_ascii_uppercase().as_str() {
        "TRACE" => Ok("trace"),
        "DEBUG" => Ok("debug"),
        "INFO" => Ok("info"),
        "WARNING" => Ok("warn"),
        "ERROR" | "FATAL" | "PANIC" => Ok("error"),
        _ => {
            let level = shown(text);
            let why = format!("{level} is none of TRACE, DEBUG, INFO, WARNING, ERROR, FATAL and PANIC");
            Err(wrong(name, &why))
        }
    }
}

/// Reads a boolean in the forms of Go's `strconv.ParseBool`.
fn switch(name: &str, text: &str) -> Result<bool, ConfigError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(wrong(name, &format!("{} is neither true nor false", shown(other)))),
    }
}

fn length(name: &str, text: &str) -> Result<i64, ConfigError> {
    let number = text.parse::<u8>().map(i64::from);
    number.map_err(|_| wrong(name, &format!("{} is not the length of a prefix", shown(text))))
}

fn duration(name: &str, text: &str) -> Result<Duration, ConfigError> {
    go_duration::parse(text).map_err(|why| wrong(name, &format!("{}: {why}", shown(text))))
}

/// Milliseconds of a duration, rounded up: a positive duration never becomes 0.
fn milliseconds(name: &str, text: &str) -> Result<i64, ConfigError> {
    let milliseconds = duration(name, text)?.as_nanos().div_ceil(1_000_000);
    Ok(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

#[cfg(feature = "meridio")]
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::config::Config;
    use crate::config::flags::Flags;
    use crate::config::meridio::rows;
    use crate::config::settings::tests::load;

    /// Configuration of a trusted network with these variables.
    fn config(file: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let file = format!("name = \"a\"\ninsecure = true\n{file}");
        load(&file, &Flags::default(), variables).map_err(|error| error.to_string())
    }

    /// Effective settings of the front end, with the data directory and the log filter.
    fn shown(variables: &[(&str, &str)]) -> BTreeMap<&'static str, String> {
        let config = config("", variables).unwrap();
        let mut all: BTreeMap<_, _> = rows(config.meridio.as_ref()).into_iter().collect();
        all.insert("data_dir", config.data_dir.display().to_string());
        all.insert("log", config.log);
        all
    }

    #[test]
    fn m6_10_every_variable_has_its_default_and_is_read() {
        // The NSP service has no default, and its intervals are shown only together with the service.
        const NSP: (&str, &str) = ("IPAM_NSP_SERVICE", "nsp-service:7778");
        let rows = [
            ("IPAM_PORT", "8888", "meridio.listen", "127.0.0.1:7777", "[::]:8888"),
            ("IPAM_DATA_SOURCE", "/d/r.db", "data_dir", "/var/lib/ipamd", "/d/ipamd"),
            ("IPAM_DATASOURCE", "/d/r.db", "data_dir", "/var/lib/ipamd", "/d/ipamd"),
            ("IPAM_TRENCH_NAME", "blue", "meridio.trench", "default", "blue"),
            ("IPAM_NSP_SERVICE", "nsp:1", "meridio.nsp_service", "nsp-service:7778", "nsp:1"),
            ("IPAM_PREFIX_IPV4", "172.16.0.0/16", "meridio.prefix_ipv4", "169.255.0.0/16", "172.16.0.0/16"),
            ("IPAM_CONDUIT_PREFIX_LENGTH_IPV4", "18", "meridio.conduit_prefix_length_ipv4", "20", "18"),
            ("IPAM_NODE_PREFIX_LENGTH_IPV4", "25", "meridio.node_prefix_length_ipv4", "24", "25"),
            ("IPAM_PREFIX_IPV6", "fd00:1::/48", "meridio.prefix_ipv6", "fd00::/48", "fd00:1::/48"),
            ("IPAM_CONDUIT_PREFIX_LENGTH_IPV6", "52", "meridio.conduit_prefix_length_ipv6", "56", "52"),
            ("IPAM_NODE_PREFIX_LENGTH_IPV6", "72", "meridio.node_prefix_length_ipv6", "64", "72"),
            ("IPAM_IP_FAMILY", "IPv6", "meridio.ip_family", "dualstack", "ipv6"),
            ("IPAM_LOG_LEVEL", "WARNING", "log", "info", "warn"),
            ("IPAM_GRPC_KEEPALIVE_TIME", "1m30s", "meridio.grpc_keepalive_ms", "30000", "90000"),
            ("IPAM_GRPC_PROBE_RPC_TIMEOUT", "2s", "meridio.expiry", "true", "true"),
            ("IPAM_GRPC_MAX_BACKOFF", "500ms", "meridio.grpc_max_backoff_ms", "5000", "500"),
            ("IPAM_GARBAGE_COLLECTION_ENABLED", "False", "meridio.expiry", "true", "false"),
            ("IPAM_GARBAGE_COLLECTION_INTERVAL", "1h", "meridio.ttl_ms", "2400000", "2400000"),
            ("IPAM_GARBAGE_COLLECTION_THRESHOLD", "1.5h", "meridio.ttl_ms", "2400000", "5400000"),
            ("IPAM_GRPC_COMPAT", "true", "meridio.grpc_compat", "false", "true"),
        ];
        let defaults = shown(&[NSP]);
        for (name, value, key, default, expected) in rows {
            assert_eq!(defaults[key], default, "{name}");
            assert_eq!(shown(&[NSP, (name, value)])[key], expected, "{name}");
            let enabled = config("", &[(name, value)]).unwrap();
            let front_end = enabled.meridio.unwrap_or_else(|| panic!("{name} alone enables the front end"));
            assert_eq!(front_end.socket, Some(PathBuf::from("/tmp/health.sock")), "{name}");
            // An empty variable counts as unset.
            assert_eq!(config("", &[(name, "")]).unwrap().meridio, None, "{name}");
        }
        let tested = rows.map(|(name, ..)| name);
        assert_eq!(NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), tested);
    }

    #[test]
    fn m6_10_variables_without_effect_are_warned_of() {
        for (name, value, says) in [
            ("IPAM_GARBAGE_COLLECTION_INTERVAL", "2h", "no effect: prefixes expire exactly"),
            ("IPAM_GRPC_PROBE_RPC_TIMEOUT", "1s", "no effect"),
            ("IPAM_DATASOURCE", "/run/ipam/data/registry.db", "neither reads nor writes an SQLite file"),
            ("IPAM_IP_FAMILY", "none", "is no family; dualstack"),
        ] {
            let warnings = config("", &[(name, value)]).unwrap().warnings;
            let found = warnings.iter().filter(|warning| warning.contains(name) && warning.contains(says));
            assert_eq!(found.count(), 1, "{warnings:?}");
        }
        assert_eq!(shown(&[("IPAM_IP_FAMILY", "none")])["meridio.ip_family"], "dualstack");
    }

    #[test]
    fn m6_10_both_spellings_of_the_data_source_must_agree() {
        let both = |other| [("IPAM_DATASOURCE", "/run/ipam/data/registry.db"), ("IPAM_DATA_SOURCE", other)];
        assert_eq!(shown(&both("/run/ipam/data/registry.db"))["data_dir"], "/run/ipam/data/ipamd");
        let refused = config("", &both("/other.db")).unwrap_err();
        assert!(refused.contains("IPAM_DATA_SOURCE: it differs from IPAM_DATASOURCE"), "{refused}");
        let elsewhere = config("data_dir = \"/d\"", &both("/run/ipam/data/registry.db")).unwrap();
        assert_eq!(elsewhere.data_dir, Path::new("/d"));
        assert_eq!(shown(&[("IPAM_DATASOURCE", "registry.db")])["data_dir"], "ipamd");
    }

    #[test]
    fn m6_10_links_to_services_and_unknown_names_are_ignored_with_a_warning() {
        let links = [
            ("IPAM_PORT", "tcp://10.0.0.1:7777"),
            ("IPAM_SERVICE_HOST", "10.0.0.1"),
            ("IPAM_SERVICE_PORT", "7777"),
            ("IPAM_SERVICE_PORT_GRPC", "7777"),
            ("IPAM_PORT_7777_TCP", "tcp://10.0.0.1:7777"),
            ("IPAM_PORT_7777_TCP_PROTO", "tcp"),
            ("IPAM_PORT_7777_TCP_PORT", "7777"),
            ("IPAM_PORT_7777_TCP_ADDR", "10.0.0.1"),
            ("IPAM_SERVICE_SERVICE_HOST", "10.0.0.2"),
            ("IPAM_SERVICE_SERVICE_PORT", "7777"),
            ("IPAM_SERVICE_PORT_7777_TCP", "tcp://10.0.0.2:7777"),
            ("IPAM_TRENCH", "blue"),
        ];
        let ignored = MeridioEnvironment::read(links.iter().map(owned)).unwrap();
        assert_eq!(ignored.warnings.len(), links.len(), "{:?}", ignored.warnings);
        for (name, _) in links {
            assert!(
                ignored.warnings.iter().any(|warning| warning.contains(&format!("\"{name}\""))),
                "{name}"
            );
        }
        assert_eq!(config("", &links).unwrap().meridio, None);
        // Beside the links of a Service, a plain port number is still a setting.
        let set = config("", &[("IPAM_SERVICE_HOST", "10.0.0.1"), ("IPAM_PORT", "7777")]).unwrap();
        assert_eq!(set.meridio.unwrap().listen.to_string(), "[::]:7777");
    }

    fn owned((name, value): &(&str, &str)) -> (String, String) {
        ((*name).to_owned(), (*value).to_owned())
    }

    #[test]
    fn names_of_other_programs_enable_nothing_and_are_no_news() {
        let variables = OF_OTHERS.map(|name| (name, "x"));
        let read = MeridioEnvironment::read(variables.iter().map(owned)).unwrap();
        assert!(read.warnings.is_empty() && read.settings.is_empty() && read.defaults.is_empty(), "{read:?}");
    }

    #[test]
    fn the_file_is_completed_by_variables_key_by_key() {
        let file = "[meridio]\ntrench = \"red\"\nrealm = \"eu\"\nsocket = \"/s\"";
        let settings = config(file, &[("IPAM_TRENCH_NAME", "blue")]).unwrap().meridio.unwrap();
        assert_eq!((settings.trench.trench.as_str(), settings.trench.realm.as_str()), ("blue", "eu"));
        assert_eq!(settings.socket, Some(PathBuf::from("/s")));
        let level = ("IPAM_LOG_LEVEL", "trace");
        let logs = |file: &str, more: &[(&str, &str)]| config(file, &[&[level], more].concat()).unwrap().log;
        assert_eq!(logs("", &[]), "trace");
        assert_eq!(logs("log = \"error\"", &[]), "error");
        assert_eq!(logs("", &[("IPAMD_LOG", "warn")]), "warn");
    }

    #[test]
    fn levels_families_and_durations_have_the_values_of_meridio() {
        for (level, expected) in [
            ("TRACE", "trace"),
            ("debug", "debug"),
            ("Info", "info"),
            ("warning", "warn"),
            ("ERROR", "error"),
            ("FATAL", "error"),
            ("PANIC", "error"),
        ] {
            assert_eq!(shown(&[("IPAM_LOG_LEVEL", level)])["log"], expected);
        }
        for family in ["ipv4", "IPV4", "IPv4"] {
            assert_eq!(shown(&[("IPAM_IP_FAMILY", family)])["meridio.ip_family"], "ipv4");
        }
        let keepalive = [("IPAM_NSP_SERVICE", "nsp:1"), ("IPAM_GRPC_KEEPALIVE_TIME", "1s")];
        assert_eq!(shown(&keepalive)["meridio.grpc_keepalive_ms"], "10000", "as Go does");
        let threshold = [("IPAM_GARBAGE_COLLECTION_THRESHOLD", "1.0005s")];
        assert_eq!(shown(&threshold)["meridio.ttl_ms"], "1001", "rounded up");
    }

    #[test]
    fn values_that_can_not_be_used_name_their_variable() {
        for (name, value, says) in [
            ("IPAM_PORT", "0", "is not a port"),
            ("IPAM_PORT", "65536", "is not a port"),
            ("IPAM_PORT", "http", "is not a port"),
            ("IPAM_LOG_LEVEL", "loud", "is none of TRACE"),
            ("IPAM_GRPC_COMPAT", "yes", "is neither true nor false"),
            ("IPAM_NODE_PREFIX_LENGTH_IPV4", "-1", "is not the length of a prefix"),
            ("IPAM_GRPC_MAX_BACKOFF", "5", "is not a duration"),
            ("IPAM_GARBAGE_COLLECTION_THRESHOLD", "-40m", "it is negative"),
            ("IPAM_GARBAGE_COLLECTION_INTERVAL", "2 h", "is not a duration"),
            ("IPAM_GRPC_PROBE_RPC_TIMEOUT", "9999999h", "it is too long"),
            ("IPAM_PREFIX_IPV4", "10.0.0.1/16", "meridio.prefix_ipv4: 10.0.0.1/16 has host bits"),
        ] {
            let refused = config("", &[(name, value)]).unwrap_err();
            assert!(refused.contains(says), "{name}={value}: {refused}");
            assert!(refused.contains(name) || refused.contains("meridio."), "{refused}");
        }
        let refused =
            load("name = \"a\"", &Flags::default(), &[("IPAM_PORT", "7777")]).unwrap_err().to_string();
        assert!(refused.contains("meridio.listen: [::]:7777 is beyond loopback"), "{refused}");
    }
}
