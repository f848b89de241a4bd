//! `[meridio]`: the front end for clients of Meridio, and the trench that it serves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipam_api::address::Family;
use ipam_api::brand::MERIDIO_PORT;
use ipam_api::limits::{
    MERIDIO_BACKOFF_MS_DEFAULT, MERIDIO_BACKOFF_MS_MAX, MERIDIO_BACKOFF_MS_MIN, MERIDIO_KEEPALIVE_MS_DEFAULT,
    MERIDIO_KEEPALIVE_MS_MAX, MERIDIO_KEEPALIVE_MS_MIN, MERIDIO_SPIFFE_IDS_MAX, MERIDIO_TTL_MS_DEFAULT,
    OBJECT_NAME_CHARS_MAX, PREFIX_TTL_MS_MAX, PREFIX_TTL_MS_MIN, SUBNET_PREFIX_LENGTH_MIN_V4,
    SUBNET_PREFIX_LENGTH_MIN_V6,
};
use ipam_api::name::{Name, SpiffePattern, shown};
use ipam_api::place::PeerAddress;
use ipam_meridio::{FamilySettings, NspSettings, Settings};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::config::error::{ConfigError, wrong};
use crate::config::tls::{ClientTlsFiles, FileTls};

/// Minimum address bits of a node prefix, whose first and last addresses are never allocated.
const NODE_BITS_MIN: u8 = 2;

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct FileMeridio {
    /// Address for Meridio's clients.
    pub(in crate::config) listen: Option<String>,
    /// Additional unix socket, with the services of Meridio's probes; absent: none.
    pub(in crate::config) socket: Option<PathBuf>,
    /// Name of the trench, as clients name it.
    pub(in crate::config) trench: Option<String>,
    /// Realm of the owners of prefixes.
    pub(in crate::config) realm: Option<String>,
    /// Network of the trench; absent: `meridio-` and the name of the trench.
    pub(in crate::config) network: Option<String>,
    pub(in crate::config) prefix_ipv4: Option<String>,
    pub(in crate::config) conduit_prefix_length_ipv4: Option<u8>,
    pub(in crate::config) node_prefix_length_ipv4: Option<u8>,
    pub(in crate::config) prefix_ipv6: Option<String>,
    pub(in crate::config) conduit_prefix_length_ipv6: Option<u8>,
    pub(in crate::config) node_prefix_length_ipv6: Option<u8>,
    /// Families of the trench: `ipv4`, `ipv6` or `dualstack`.
    pub(in crate::config) ip_family: Option<String>,
    /// False to keep nodes and addresses that no client refreshes; absent: true.
    pub(in crate::config) expiry: Option<bool>,
    /// Log time for which a node or an address lives without being refreshed.
    pub(in crate::config) ttl_ms: Option<u64>,
    /// Host and port of Meridio's NSP service; absent: clients of the REST API list the conduits.
    pub(in crate::config) nsp_service: Option<String>,
    /// Interval of keepalive pings on an idle connection to the NSP service.
    pub(in crate::config) grpc_keepalive_ms: Option<u64>,
    /// Longest pause between two attempts to connect to the NSP service.
    pub(in crate::config) grpc_max_backoff_ms: Option<u64>,
    /// True to report each error as UNKNOWN, as Meridio does.
    pub(in crate::config) grpc_compat: Option<bool>,
    /// SPIFFE ids of permitted clients; absent: all ids in certificates of the CA.
    pub(in crate::config) spiffe_ids: Option<Vec<String>>,
    #[serde(default)]
    pub(in crate::config) tls: FileTls,
}

/// Front end for clients of Meridio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeridioSettings {
    /// Address for clients.
    pub listen: SocketAddr,
    /// Unix socket for clients and probes.
    pub socket: Option<PathBuf>,
    /// TLS with clients, which need a certificate.
    pub tls: Option<ClientTlsFiles>,
    /// SPIFFE ids of permitted clients; all if empty.
    pub spiffe_ids: Vec<SpiffePattern>,
    /// Served trench.
    pub trench: Settings,
}

impl MeridioSettings {
    /// Describes the access that `insecure` opens to the network, if any.
    pub(in crate::config) fn opened(&self) -> Option<String> {
        let Self { listen, tls, .. } = self;
        (tls.is_none() && !listen.ip().is_loopback()).then(|| {
            format!(
                "meridio.listen {listen} takes and frees addresses of the trench for every process that \
                 reaches it, in the clear"
            )
        })
    }

    /// Warning if local processes need no credentials. It matters where the REST API requires a token.
    pub(in crate::config) fn warning(&self) -> Option<String> {
        let Self { listen, tls, .. } = self;
        (tls.is_none() && listen.ip().is_loopback()).then(|| {
            format!(
                "meridio.listen {listen} asks for no token: each process of this machine takes and frees \
                 addresses of the trench. Use [meridio.tls] to ask for certificates"
            )
        })
    }
}

fn mistake(key: &str, why: &str) -> ConfigError {
    wrong(&format!("meridio.{key}"), why)
}

impl FileMeridio {
    /// Completes and checks the section. `insecure` is true if the network is declared trusted.
    pub(in crate::config) fn complete(self, insecure: bool) -> Result<MeridioSettings, ConfigError> {
        let trench = self.trench()?;
        let settings = Settings {
            realm: self.realm()?,
            network: self.network(&trench)?,
            families: self.families(&trench)?,
            ttl_ms: self.ttl_ms()?,
            compat: self.grpc_compat.unwrap_or_default(),
            nsp: self.nsp()?,
            trench,
        };
        let listen = self.listen.unwrap_or_else(|| format!("127.0.0.1:{MERIDIO_PORT}"));
        let tls = ClientTlsFiles::complete("meridio.tls", self.tls)?;
        Ok(MeridioSettings {
            listen: check_listen(&listen, tls.as_ref(), insecure)?,
            socket: self.socket,
            spiffe_ids: patterns(self.spiffe_ids.unwrap_or_default(), tls.is_some())?,
            tls,
            trench: settings,
        })
    }

    fn trench(&self) -> Result<String, ConfigError> {
        let trench = self.trench.clone().unwrap_or_else(|| Name::default_name().to_string());
        let is_named = (1..=OBJECT_NAME_CHARS_MAX).contains(&trench.chars().count());
        if is_named && !trench.chars().any(char::is_control) {
            return Ok(trench);
        }
        let why = format!("{} is not 1 to {OBJECT_NAME_CHARS_MAX} printable characters", shown(&trench));
        Err(mistake("trench", &why))
    }

    fn realm(&self) -> Result<Name, ConfigError> {
        let realm = self.realm.as_deref().map_or_else(|| Ok(Name::default_name()), Name::new);
        realm.map_err(|problem| mistake("realm", &problem.detail))
    }

    fn network(&self, trench: &str) -> Result<Name, ConfigError> {
        let derived = || Ok(Name::from_foreign_text(&format!("meridio-{trench}")));
        let network = self.network.as_deref().map_or_else(derived, Name::new);
        network.map_err(|problem| mistake("network", &problem.detail))
    }

    fn families(&self, trench: &str) -> Result<Vec<FamilySettings>, ConfigError> {
        let families: &[Family] = match self.ip_family.as_deref() {
            Some("ipv4") => &[Family::V4],
            Some("ipv6") => &[Family::V6],
            None | Some("dualstack") => &Family::BOTH,
            Some(other) => {
                let why = format!("{} is none of ipv4, ipv6 and dualstack", shown(other));
                return Err(mistake("ip_family", &why));
            }
        };
        families.iter().map(|family| self.family(*family, trench)).collect()
    }

    fn family(&self, family: Family, trench: &str) -> Result<FamilySettings, ConfigError> {
        let (suffix, prefix, conduit_length, node_length, shortest) = match family {
            Family::V4 => (
                "ipv4",
                self.prefix_ipv4.as_deref().unwrap_or("169.255.0.0/16"),
                self.conduit_prefix_length_ipv4.unwrap_or(20),
                self.node_prefix_length_ipv4.unwrap_or(24),
                SUBNET_PREFIX_LENGTH_MIN_V4,
            ),
            Family::V6 => (
                "ipv6",
                self.prefix_ipv6.as_deref().unwrap_or("fd00::/48"),
                self.conduit_prefix_length_ipv6.unwrap_or(56),
                self.node_prefix_length_ipv6.unwrap_or(64),
                SUBNET_PREFIX_LENGTH_MIN_V6,
            ),
        };
        let prefix = check_prefix(&format!("prefix_{suffix}"), prefix, family, shortest)?;
        let longest = prefix.max_prefix_len() - NODE_BITS_MIN;
        if prefix.prefix_len() + 2 > longest {
            let why = format!("{prefix} has no space for conduits and nodes");
            return Err(mistake(&format!("prefix_{suffix}"), &why));
        }
        if conduit_length <= prefix.prefix_len() || conduit_length >= longest {
            let why = format!("it must be between {} and {}", prefix.prefix_len() + 1, longest - 1);
            return Err(mistake(&format!("conduit_prefix_length_{suffix}"), &why));
        }
        if node_length <= conduit_length || node_length > longest {
            let why = format!("it must be between {} and {longest}", conduit_length + 1);
            return Err(mistake(&format!("node_prefix_length_{suffix}"), &why));
        }
        let pool = Name::from_foreign_text(&format!("{trench}-{suffix}"));
        Ok(FamilySettings { family, prefix, conduit_length, node_length, pool })
    }

    /// TTL of nodes and addresses; none without expiry.
    fn ttl_ms(&self) -> Result<Option<u64>, ConfigError> {
        let range = (PREFIX_TTL_MS_MIN, PREFIX_TTL_MS_MAX);
        let ttl_ms = within("ttl_ms", self.ttl_ms, MERIDIO_TTL_MS_DEFAULT, range)?;
        Ok(self.expiry.unwrap_or(true).then_some(ttl_ms))
    }

    fn nsp(&self) -> Result<Option<NspSettings>, ConfigError> {
        let range = (MERIDIO_KEEPALIVE_MS_MIN, MERIDIO_KEEPALIVE_MS_MAX);
        let given = self.grpc_keepalive_ms;
        let keepalive_ms = within("grpc_keepalive_ms", given, MERIDIO_KEEPALIVE_MS_DEFAULT, range)?;
        let range = (MERIDIO_BACKOFF_MS_MIN, MERIDIO_BACKOFF_MS_MAX);
        let given = self.grpc_max_backoff_ms;
        let backoff_ms = within("grpc_max_backoff_ms", given, MERIDIO_BACKOFF_MS_DEFAULT, range)?;
        let Some(address) = &self.nsp_service else { return Ok(None) };
        if !matches!(PeerAddress::parse(address), Some(PeerAddress::Network(_))) {
            let why = format!("{} is not host:port, such as nsp-service:7778", shown(address));
            return Err(mistake("nsp_service", &why));
        }
        Ok(Some(NspSettings {
            address: address.clone(),
            keepalive: Duration::from_millis(keepalive_ms),
            backoff_max: Duration::from_millis(backoff_ms),
        }))
    }
}

/// Returns an optional number or its default, and refuses a number out of bounds.
fn within(key: &str, given: Option<u64>, default: u64, (min, max): (u64, u64)) -> Result<u64, ConfigError> {
    match given.unwrap_or(default) {
        number if (min..=max).contains(&number) => Ok(number),
        _ => Err(mistake(key, &format!("it must be between {min} and {max}"))),
    }
}

fn check_prefix(key: &str, text: &str, family: Family, shortest: u8) -> Result<IpNet, ConfigError> {
    let prefix = text.parse::<IpNet>().ok().filter(|prefix| Family::of(prefix.addr()) == family);
    let Some(prefix) = prefix else {
        return Err(mistake(key, &format!("{} is not a prefix of this family", shown(text))));
    };
    if prefix != prefix.trunc() {
        return Err(mistake(key, &format!("{prefix} has host bits; write {}", prefix.trunc())));
    }
    if prefix.prefix_len() < shortest {
        return Err(mistake(key, &format!("{prefix} is too large; its length must be at least {shortest}")));
    }
    Ok(prefix)
}

/// Checks the address for clients. Beyond loopback, clients need certificates unless `insecure` is true.
fn check_listen(text: &str, tls: Option<&ClientTlsFiles>, insecure: bool) -> Result<SocketAddr, ConfigError> {
    let listen: SocketAddr = text.parse().map_err(|_| {
        let why = format!("{} is not an address with a port, such as 127.0.0.1:{MERIDIO_PORT}", shown(text));
        mistake("listen", &why)
    })?;
    if tls.is_some_and(|files| files.client_ca.is_none()) {
        let why = "it is missing; clients are known by their certificates, so name the CA that issues them";
        return Err(mistake("tls.client_ca", why));
    }
    if tls.is_none() && !insecure && !listen.ip().is_loopback() {
        let why = format!(
            "{listen} is beyond loopback, and there is no [meridio.tls]: any process that reaches the port \
             could take and free addresses of the trench. Say in [meridio.tls] which certificate, key and \
             client_ca to use, listen on 127.0.0.1, or say `insecure = true` for a network that you trust"
        );
        return Err(mistake("listen", &why));
    }
    Ok(listen)
}

fn patterns(given: Vec<String>, has_tls: bool) -> Result<Vec<SpiffePattern>, ConfigError> {
    let count = given.len();
    if count > MERIDIO_SPIFFE_IDS_MAX {
        return Err(mistake(
            "spiffe_ids",
            &format!("{count} patterns; at most {MERIDIO_SPIFFE_IDS_MAX} fit"),
        ));
    }
    if count > 0 && !has_tls {
        return Err(mistake(
            "spiffe_ids",
            "only certificates have SPIFFE ids, and there is no [meridio.tls]",
        ));
    }
    let pattern = |text: &String| SpiffePattern::new(text);
    given
        .iter()
        .map(pattern)
        .collect::<Result<_, _>>()
        .map_err(|problem| mistake("spiffe_ids", &problem.detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::flags::Flags;
    use crate::config::settings::tests::load;

    const TLS: &str = "[meridio.tls]\ncertificate = \"c\"\nkey = \"k\"\n";

    fn config(section: &str) -> Result<Config, String> {
        let file = format!("name = \"a\"\n{section}");
        load(&file, &Flags::default(), &[]).map_err(|error| error.to_string())
    }

    fn settings(section: &str) -> MeridioSettings {
        config(section).unwrap().meridio.unwrap()
    }

    #[test]
    fn an_empty_section_serves_the_default_trench_on_loopback() {
        assert_eq!(config("").unwrap().meridio, None);
        let name = |text: &str| Name::new(text).unwrap();
        let families = vec![
            FamilySettings {
                family: Family::V4,
                prefix: "169.255.0.0/16".parse().unwrap(),
                conduit_length: 20,
                node_length: 24,
                pool: name("default-ipv4"),
            },
            FamilySettings {
                family: Family::V6,
                prefix: "fd00::/48".parse().unwrap(),
                conduit_length: 56,
                node_length: 64,
                pool: name("default-ipv6"),
            },
        ];
        let trench = Settings {
            trench: "default".to_owned(),
            realm: Name::default_name(),
            network: name("meridio-default"),
            families,
            ttl_ms: Some(2_400_000),
            compat: false,
            nsp: None,
        };
        let listen = "127.0.0.1:7777".parse().unwrap();
        let expected = MeridioSettings { listen, socket: None, tls: None, spiffe_ids: Vec::new(), trench };
        assert_eq!(settings("[meridio]"), expected);
        assert!(config("[meridio]").unwrap().warnings.is_empty());
    }

    #[test]
    fn every_key_has_its_effect() {
        let all = "[meridio]\nlisten = \"10.0.0.1:1\"\nsocket = \"/s\"\ntrench = \"Trench A\"\n\
                   realm = \"eu\"\n\
                   network = \"net\"\nprefix_ipv4 = \"172.16.0.0/16\"\nconduit_prefix_length_ipv4 = 18\n\
                   node_prefix_length_ipv4 = 30\nprefix_ipv6 = \"2001:db8::/32\"\n\
                   conduit_prefix_length_ipv6 = 33\n\
                   node_prefix_length_ipv6 = 126\nip_family = \"dualstack\"\nttl_ms = 60000\n\
                   nsp_service = \"nsp:7778\"\ngrpc_keepalive_ms = 10000\ngrpc_max_backoff_ms = 700\n\
                   grpc_compat = true\nspiffe_ids = [\"spiffe://a/*\"]\n";
        let MeridioSettings { listen, socket, tls, spiffe_ids, trench } =
            settings(&format!("{all}{TLS}client_ca = \"a\""));
        assert_eq!(listen.to_string(), "10.0.0.1:1");
        assert_eq!(socket, Some(PathBuf::from("/s")));
        assert_eq!(tls.unwrap().client_ca, Some(PathBuf::from("a")));
        assert_eq!(spiffe_ids, [SpiffePattern::new("spiffe://a/*").unwrap()]);
        assert_eq!((trench.trench.as_str(), trench.realm.as_str()), ("Trench A", "eu"));
        assert_eq!((trench.network.as_str(), trench.ttl_ms, trench.compat), ("net", Some(60_000), true));
        let expected = NspSettings {
            address: "nsp:7778".to_owned(),
            keepalive: Duration::from_secs(10),
            backoff_max: Duration::from_millis(700),
        };
        assert_eq!(trench.nsp, Some(expected));
        let families: Vec<_> = trench
            .families
            .iter()
            .map(|family| {
                let FamilySettings { prefix, conduit_length, node_length, pool, .. } = family;
                assert!(pool.as_str().starts_with("trench-a-ipv"), "{pool}");
                (prefix.to_string(), *conduit_length, *node_length)
            })
            .collect();
        assert_eq!(families, [("172.16.0.0/16".to_owned(), 18, 30), ("2001:db8::/32".to_owned(), 33, 126)]);
        for (family, expected) in [("ipv4", Family::V4), ("ipv6", Family::V6)] {
            let trench = settings(&format!("[meridio]\nip_family = \"{family}\"")).trench;
            assert_eq!(trench.families.iter().map(|one| one.family).collect::<Vec<_>>(), [expected]);
        }
        assert_eq!(settings("[meridio]\nexpiry = false\nttl_ms = 60000").trench.ttl_ms, None);
    }

    #[test]
    fn mistakes_are_named() {
        let long = format!("trench = \"{}\"", "x".repeat(254));
        let many = format!("spiffe_ids = [{}]", "\"spiffe://a\",".repeat(65));
        for (section, says) in [
            ("lisen = \"x\"", "unknown field"),
            ("listen = \"7777\"", "meridio.listen: \"7777\" is not an address"),
            ("listen = \"0.0.0.0:7777\"", "meridio.listen: 0.0.0.0:7777 is beyond loopback"),
            ("trench = \"\"", "meridio.trench: \"\" is not 1 to 253"),
            ("trench = \"a\\nb\"", "meridio.trench"),
            (&long, "meridio.trench"),
            ("realm = \"X\"", "meridio.realm"),
            ("network = \"X\"", "meridio.network"),
            ("prefix_ipv4 = \"fd00::/48\"", "meridio.prefix_ipv4: \"fd00::/48\" is not a prefix"),
            ("prefix_ipv6 = \"10.0.0.0/8\"", "meridio.prefix_ipv6"),
            (
                "prefix_ipv4 = \"10.0.0.1/16\"",
                "meridio.prefix_ipv4: 10.0.0.1/16 has host bits; write 10.0.0.0/16",
            ),
            ("prefix_ipv4 = \"10.0.0.0/7\"", "meridio.prefix_ipv4"),
            ("prefix_ipv4 = \"10.0.0.0/29\"", "meridio.prefix_ipv4: 10.0.0.0/29 has no space"),
            (
                "conduit_prefix_length_ipv4 = 16",
                "meridio.conduit_prefix_length_ipv4: it must be between 17 and 29",
            ),
            (
                "conduit_prefix_length_ipv4 = 30",
                "meridio.conduit_prefix_length_ipv4: it must be between 17 and 29",
            ),
            ("conduit_prefix_length_ipv6 = 300", "conduit_prefix_length_ipv6 = 300"),
            ("node_prefix_length_ipv4 = 20", "meridio.node_prefix_length_ipv4: it must be between 21 and 30"),
            ("node_prefix_length_ipv4 = 31", "meridio.node_prefix_length_ipv4: it must be between 21 and 30"),
            (
                "node_prefix_length_ipv6 = 127",
                "meridio.node_prefix_length_ipv6: it must be between 57 and 126",
            ),
            ("ip_family = \"both\"", "meridio.ip_family: \"both\" is none of ipv4, ipv6 and dualstack"),
            ("ttl_ms = 999", "meridio.ttl_ms: it must be between 1000"),
            ("expiry = false\nttl_ms = 0", "meridio.ttl_ms"),
            ("nsp_service = \"nsp\"", "meridio.nsp_service: \"nsp\" is not host:port"),
            ("nsp_service = \"unix:/a\"", "meridio.nsp_service"),
            ("grpc_keepalive_ms = 9999", "meridio.grpc_keepalive_ms: it must be between 10000"),
            ("grpc_max_backoff_ms = 600001", "meridio.grpc_max_backoff_ms: it must be between 500"),
            ("spiffe_ids = [\"spiffe://a\"]", "meridio.spiffe_ids: only certificates"),
            (&many, "meridio.spiffe_ids: 65 patterns; at most 64 fit"),
            ("[meridio.tls]\ncertificate = \"c\"", "meridio.tls.key: it is missing"),
            (TLS, "meridio.tls.client_ca: it is missing"),
            (
                "spiffe_ids = [\"a\"]\n[meridio.tls]\ncertificate = \"c\"\nkey = \"k\"\nclient_ca = \"a\"",
                "meridio.spiffe_ids: \"a\" is not a pattern",
            ),
        ] {
            let refused = config(&format!("[meridio]\n{section}")).unwrap_err();
            assert!(refused.contains(says), "{section}: {refused}");
        }
    }

    #[test]
    fn open_listeners_are_warned_of() {
        let insecure = "insecure = true\n[meridio]\nlisten = \"[::]:7777\"";
        let warnings = config(insecure).unwrap().warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("INSECURE"), "{warnings:?}");
        assert!(warnings[0].contains("meridio.listen [::]:7777"), "{warnings:?}");
        let proven = config(&format!("[meridio]\nlisten = \"[::]:7777\"\n{TLS}client_ca = \"a\"")).unwrap();
        assert!(proven.warnings.is_empty(), "{:?}", proven.warnings);
        let tokens = "[meridio]\n[access]\nrequire_tokens = true";
        let warnings = config(tokens).unwrap().warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("asks for no token"), "{warnings:?}");
    }
}
