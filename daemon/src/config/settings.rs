//! Settings of a member, merged from file, environment and flags, and checked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipam_api::brand::{CLIENT_PORT, DATA_DIR};
use ipam_api::name::{Name, shown};
use ipam_api::place::{CLIENT_URL_FORM, is_client_url};
use ipam_raft::node::{DiskLimits, InitialMember, LOG_DIRECTIVES, SnapshotPolicy, Timing};
use tracing_subscriber::EnvFilter;

use super::cluster::JoinConfig;
use super::cluster_api::{self, ClusterApiSettings};
use super::error::{ConfigError, wrong};
use super::flags::Flags;
use super::kubernetes::{self, KubernetesSettings};
use super::members;
#[cfg(feature = "meridio")]
use super::meridio::MeridioSettings;
use super::peers::{self, PeerListen};
use super::sources::Sources;
use super::tls::{ClientTlsFiles, PeerTlsFiles};
use crate::access::AccessConfig;
use crate::tasks::GcSettings;
use crate::tasks::journal::JournalLimits;

/// Log directives for kube, which logs complete responses that it can't parse.
pub const KUBE_DIRECTIVES: &str = "kube_client=error,kube_runtime=error";

/// A member's settings, complete and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// This member's name.
    pub name: Name,
    /// Data directory.
    pub data_dir: PathBuf,
    /// Address for clients.
    pub client_listen: SocketAddr,
    /// Address or socket for peers.
    pub peer_listen: PeerListen,
    /// Additional Unix socket for clients.
    pub client_socket: Option<PathBuf>,
    /// Advertised URL for clients; derived from `client_listen` if absent.
    pub client_url: Option<String>,
    /// The founding members, this one among them.
    pub initial_members: Vec<InitialMember>,
    /// Address for other members; empty if the member is alone and has no peer port.
    pub peer_address: String,
    /// Servers to join through, while the data directory belongs to no cluster.
    pub join: Option<JoinConfig>,
    /// Heartbeat and election times.
    pub timing: Timing,
    /// Size, rate and retained log of snapshots.
    pub snapshots: SnapshotPolicy,
    /// Rules for callers without a token of the cluster.
    pub access: AccessConfig,
    /// Retention of the journal.
    pub journal: JournalLimits,
    /// Garbage collection by the leader.
    pub gc: GcSettings,
    /// Kubernetes clusters whose watchers run on the leader.
    pub kubernetes: Vec<KubernetesSettings>,
    /// Management clusters of Cluster API whose claims the leader serves.
    pub cluster_api: Vec<ClusterApiSettings>,
    /// Front end for clients of Meridio.
    #[cfg(feature = "meridio")]
    pub meridio: Option<MeridioSettings>,
    /// True if each pool has its own series at `/metrics`.
    pub metrics_per_pool: bool,
    /// Free space below which the disk counts as full.
    pub disk: DiskLimits,
    /// True if the configuration declares the network trusted.
    pub insecure: bool,
    /// Log filter.
    pub log: String,
    /// TLS with clients.
    pub tls: Option<ClientTlsFiles>,
    /// TLS among members.
    pub peer_tls: Option<PeerTlsFiles>,
    /// Warnings about settings that are accepted.
    pub warnings: Vec<String>,
}

impl Config {
    /// Loads all sources.
    ///
    /// # Errors
    /// The mistake, for the operator.
    pub fn load(flags: &Flags) -> Result<Self, ConfigError> {
        Self::merge(flags, &Sources::read(flags)?)
    }

    pub(super) fn merge(flags: &Flags, sources: &Sources) -> Result<Self, ConfigError> {
        let given = sources.merged()?;
        let name = given.name.unwrap_or_else(host_name);
        let name = Name::new(&name).map_err(|problem| wrong("name", &problem.detail))?;
        let client_listen = given.client_listen.unwrap_or_else(|| format!("127.0.0.1:{CLIENT_PORT}"));
        let client_listen = address("client_listen", &client_listen)?;
        let insecure = given.insecure;
        let tls = ClientTlsFiles::complete("tls", given.tls)?;
        let peer_tls = PeerTlsFiles::complete(given.peer_tls)?;
        if !insecure && tls.is_none() && !client_listen.ip().is_loopback() {
            return Err(wrong(
                "client_listen",
                &format!(
                    "{client_listen} is beyond loopback, and there is no [tls]: any process that reaches the \
                     port could take and free addresses. Say in [tls] which certificate and key to use \
                     (`ipamctl cluster ca` makes them), listen on 127.0.0.1, or say `insecure = true` for a \
                     network that you trust"
                ),
            ));
        }
        let client_url = given.client_url;
        // Without TLS on this listener, a proxy may terminate TLS for this member.
        if let Some(url) = client_url.as_ref().filter(|url| tls.is_some() && !url.starts_with("https://")) {
            return Err(wrong(
                "client_url",
                &format!("{} must begin with https://, as clients are served", shown(url)),
            ));
        }
        if let Some(url) = client_url.as_ref().filter(|url| !is_client_url(url)) {
            return Err(wrong("client_url", &format!("{} is none; {CLIENT_URL_FORM}", shown(url))));
        }
        let peer_ca = peer_tls.as_ref().map(|files| files.ca.clone());
        let (peer_address, join) = given.cluster.complete(peer_ca)?;
        let founds = join.is_none();
        let peers = peers::PeerSettings {
            name: &name,
            listen: given.peer_listen,
            address: peer_address,
            members: members::members(&flags.members, given.initial_members, &name, founds)?,
            founds,
            has_tls: peer_tls.is_some(),
            insecure,
        };
        let peers::Peers { listen: peer_listen, address: peer_address, members: initial_members } =
            peers.complete()?;
        let access = given.access.complete(!client_listen.ip().is_loopback(), insecure)?;
        let mut warnings = sources.warnings.clone();
        #[cfg(feature = "meridio")]
        let meridio = given.meridio.map(|section| section.complete(insecure)).transpose()?;
        #[cfg(feature = "meridio")]
        let (opened, unasked) = meridio.as_ref().map_or((None, None), |of| (of.opened(), of.warning()));
        #[cfg(not(feature = "meridio"))]
        let (opened, unasked) = (None, None);
        if insecure {
            let (clients, members) = (tls.is_some(), peer_tls.is_some());
            let also = opened.into_iter().collect();
            warnings.push(peers::opened(client_listen, clients, !access.open, &peer_listen, members, also));
        }
        warnings.extend(unasked.filter(|_| !access.open));
        if !founds && peer_address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_unspecified()) {
            let why = format!(
                "{peer_address} says not where this member is; name an address that the others reach"
            );
            return Err(wrong("cluster.peer_address", &why));
        }
        Ok(Self {
            name,
            data_dir: given.data_dir.unwrap_or_else(|| DATA_DIR.into()),
            client_listen,
            peer_listen,
            client_socket: given.client_socket,
            client_url,
            tls,
            peer_tls,
            initial_members,
            timing: given.raft.timing()?,
            snapshots: given.raft.snapshots()?,
            peer_address,
            join,
            access,
            journal: given.journal.complete()?,
            gc: given.gc.complete()?,
            kubernetes: kubernetes::complete(given.kubernetes)?,
            cluster_api: cluster_api::complete(given.cluster_api)?,
            #[cfg(feature = "meridio")]
            meridio,
            metrics_per_pool: given.metrics.per_pool(),
            disk: given.disk.complete()?,
            insecure,
            log: given.log.unwrap_or_else(|| "info".to_owned()),
            warnings,
        })
    }
}

/// Data directory of a command, from its flag or from a configuration.
///
/// # Errors
/// The mistake in the configuration, for the operator.
pub fn data_dir(dir: Option<&Path>, config: Option<&Path>) -> Result<PathBuf, ConfigError> {
    match dir {
        Some(dir) => Ok(dir.to_owned()),
        None => {
            let flags = Flags { config: config.map(Path::to_owned), ..Flags::default() };
            Ok(Config::load(&flags)?.data_dir)
        }
    }
}

impl Config {
    /// Filter of the log: the operator's directives come last and win.
    ///
    /// # Errors
    /// For a directive that can't be parsed.
    pub fn log_filter(&self) -> Result<EnvFilter, ConfigError> {
        EnvFilter::try_new(format!("{LOG_DIRECTIVES},{KUBE_DIRECTIVES},{}", self.log)).map_err(|error| {
            let filter = shown(&self.log);
            wrong(
                "log",
                &format!("{filter} is not a filter ({error}); write `info`, or `info,ipam_raft=debug`"),
            )
        })
    }
}

fn address(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| {
        wrong(key, &format!("{} is not an address with a port, such as 127.0.0.1:{CLIENT_PORT}", shown(text)))
    })
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// URL for clients of a listener that is bound to `listen`.
#[must_use]
pub fn client_url(listen: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    match listen.ip() {
        // Bound to every address: the host name is the most likely name by which others can connect.
        ip if ip.is_unspecified() => format!("{scheme}://{}:{}", host_name(), listen.port()),
        _ => format!("{scheme}://{listen}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::environment::Environment;
    use super::super::file::File;
    use super::super::meridio::{FileMeridio, MeridioEnvironment};
    use super::super::tls::FileTls;
    use super::super::{ENVIRONMENT_NAMES, MERIDIO_ENVIRONMENT_NAMES};
    use super::*;

    pub(in crate::config) fn load(
        file: &str,
        flags: &Flags,
        environment: &[(&str, &str)],
    ) -> Result<Config, ConfigError> {
        let variables = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let file = File::parse(file).map_err(|error| ConfigError(error.to_string()))?;
        let meridio = MeridioEnvironment::read(variables.clone())?;
        Config::merge(flags, &Sources::new(flags, Environment::read(variables), meridio, file)?)
    }

    /// Example configuration with all commented-out settings enabled.
    pub(in crate::config) fn example() -> String {
        let text = include_str!("../../../deploy/ipamd.example.toml");
        let switched_on = |line: &str| match line.strip_prefix('#') {
            Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().map(switched_on).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_example_has_every_setting() {
        let file: File = toml::from_str(&example()).unwrap();
        fn missing(at: &str, value: &serde_json::Value, all: &mut Vec<String>) {
            match value {
                serde_json::Value::Null => all.push(at.to_owned()),
                serde_json::Value::Object(map) => {
                    map.iter().for_each(|(key, value)| missing(&format!("{at}.{key}"), value, all));
                }
                serde_json::Value::Array(list) if list.is_empty() => all.push(at.to_owned()),
                _ => {}
            }
        }
        let mut all = Vec::new();
        missing("", &serde_json::to_value(&file).unwrap(), &mut all);
        assert!(all.is_empty(), "not in deploy/ipamd.example.toml: {all:?}");
        let of_meridio = MERIDIO_ENVIRONMENT_NAMES.iter();
        let names = ENVIRONMENT_NAMES.iter().filter(|(name, _)| *name != "IPAMD_CONFIG");
        for (name, _) in names.chain(of_meridio) {
            assert!(include_str!("../../../deploy/ipamd.example.toml").contains(name), "{name}");
        }
    }

    #[test]
    fn the_examples_defaults_are_the_real_ones() {
        let file: File = toml::from_str(&example()).unwrap();
        let real = load("name = \"n1\"", &Flags::default(), &[]).unwrap();
        assert_eq!(file.data_dir.as_ref(), Some(&real.data_dir));
        assert_eq!(file.client_listen.unwrap(), real.client_listen.to_string());
        let with_tls = "name = \"n1\"\n[peer_tls]\ncertificate = \"c\"\nkey = \"k\"\nca = \"a\"";
        let with_tls = load(with_tls, &Flags::default(), &[]).unwrap();
        assert_eq!(file.peer_listen.unwrap(), with_tls.peer_listen.to_string());
        assert_eq!(file.log.unwrap(), real.log);
        assert_eq!(file.raft.timing().unwrap(), real.timing);
        assert_eq!(file.raft.lease_grace_ms, Some(real.timing.lease_grace_ms));
        assert_eq!(file.raft.snapshots().unwrap(), real.snapshots);
        assert_eq!(file.journal.keep_bytes, Some(real.journal.keep_bytes));
        assert_eq!(file.journal.keep_days, Some(real.journal.keep_days));
        assert_eq!(file.gc.silent_nodes, Some(real.gc.silent_nodes));
        assert_eq!(file.gc.node_grace_ms, Some(real.gc.node_grace_ms));
        assert_eq!(file.gc.complete().unwrap(), real.gc);
        assert_eq!(file.metrics.per_pool, Some(real.metrics_per_pool));
        #[cfg(feature = "meridio")]
        assert_examples_of_meridio(file.meridio.unwrap());
    }

    /// Asserts that the example shows the defaults of `[meridio]`.
    #[cfg(feature = "meridio")]
    fn assert_examples_of_meridio(given: FileMeridio) {
        let given = FileMeridio { spiffe_ids: None, tls: FileTls::default(), ..given };
        let given = given.complete(false).unwrap();
        let environment = [("IPAM_NSP_SERVICE", "nsp-service:7778")];
        let real = load("name = \"n1\"", &Flags::default(), &environment).unwrap();
        assert_eq!(Some(given), real.meridio);
    }

    #[test]
    fn flags_win_over_environment_over_file() {
        let flags = Flags { name: Some("c".into()), ..Flags::default() };
        let file = "name = \"a\"\nlog = \"debug\"";
        let config = load(file, &flags, &[("IPAMD_NAME", "b"), ("IPAMD_DATA_DIR", "/d")]).unwrap();
        assert_eq!(config.name.as_str(), "c");
        assert_eq!(config.data_dir, Path::new("/d"));
        assert_eq!(config.log, "debug");
        assert_eq!(config.client_listen.to_string(), "127.0.0.1:7440");
        assert_eq!(config.initial_members.len(), 1);
    }

    #[test]
    fn links_of_kubernetes_services_are_no_settings() {
        let environment = [("IPAMD_PORT", "tcp://10.0.0.1:7440"), ("IPAMD_SERVICE_HOST", "10.0.0.1")];
        let config = load("name = \"a\"", &Flags::default(), &environment).unwrap();
        assert_eq!(config.warnings.len(), 2);
    }

    #[test]
    fn each_mistake_is_named() {
        for (file, says) in [
            ("nmae = \"a\"", "unknown field"),
            ("name = \"A\"", "name:"),
            ("name = \"a\"\nclient_listen = \"0.0.0.0:7440\"", "beyond loopback"),
            ("name = \"a\"\nclient_listen = \"7440\"", "not an address with a port"),
            ("name = \"a\"\n[[initial_members]]\nname = \"b\"\npeer = \"h:1\"", "not among b"),
            ("name = \"a\"\n[[initial_members]]\nname = \"a\"\npeer = \"h\"", "is not a peer address"),
            ("name = \"a\"\n[tls]\ncertificate = \"c\"", "tls.key: it is missing"),
            ("name = \"a\"\n[tls]\nclient_ca = \"c\"", "tls.certificate: it is missing"),
            ("name = \"a\"\n[peer_tls]\ncertificate = \"c\"\nkey = \"k\"", "peer_tls.ca: it is missing"),
            ("name = \"a\"\n[peer_tls]\nclient_ca = \"c\"", "unknown field"),
            (
                "name = \"a\"\nclient_url = \"http://a:7440\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"",
                "must begin with https://",
            ),
            (
                "name = \"a\"\nclient_listen = \"0.0.0.0:1\"\n[peer_tls]\ncertificate = \"c\"\nkey = \
                 \"k\"\nca = \"a\"",
                "no [tls]",
            ),
            ("name = \"a\"\n[raft]\nheartbeat_ms = 500", "heartbeat_ms <"),
            ("name = \"a\"\n[gc]\ndelay_ms = 3600001", "gc.delay_ms: it must be at most 3600000"),
            ("name = \"a\"\n[[kubernetes]]\nrealm = \"X\"", "kubernetes.realm"),
            ("name = \"a\"\n[[kubernetes]]\n[[kubernetes]]", "two sections have default"),
            ("name = \"a\"\n[[kubernetes]]\ncontext = \"x\"", "name the kubeconfig"),
            ("name = \"a\"\n[[kubernetes]]\nscan_interval_ms = 9", "kubernetes.scan_interval_ms: it must be"),
        ] {
            let error = load(file, &Flags::default(), &[]).unwrap_err().to_string();
            assert!(error.contains(says), "{file}: {error}");
        }
        let tls = "name = \"a\"\nclient_listen = \"0.0.0.0:7440\"\n[tls]\ncertificate = \"c\"";
        let config = load(tls, &Flags::default(), &[("IPAMD_TLS_KEY", "k")]).unwrap();
        assert_eq!(config.tls.unwrap().key, Path::new("k"));
        assert!(
            load("name = \"a\"\ninsecure = true\nclient_listen = \"0.0.0.0:7440\"", &Flags::default(), &[])
                .is_ok()
        );
    }
}
