//! What an operator writes: file, then environment, then flags, the later one winning.

mod access;
pub mod check;
mod cluster;
mod disk;
mod environment;
mod journal;
mod members;
mod metrics;
mod raft;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use ipam_api::brand::{CLIENT_PORT, CONFIG_FILE, DATA_DIR, PEER_PORT};
use ipam_api::name::{Name, shown};
use ipam_api::tls::TlsError;
use ipam_raft::node::{DiskLimits, InitialMember, LOG_DIRECTIVES, SnapshotPolicy, Timing};
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

pub use self::cluster::JoinConfig;
pub use self::environment::NAMES as ENVIRONMENT_NAMES;
use self::environment::{Environment, switch};
pub use self::tls::{ClientTlsFiles, PeerTlsFiles};

use crate::access::AccessConfig;
use crate::tasks::journal::JournalLimits;

/// Flags of `ipamd serve`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Examples:\n  ipamd serve --config /etc/ipamd/ipamd.toml\n  ipamd serve --name n1 --data-dir /var/lib/ipamd --member n1=127.0.0.1:7441\n\nEvery setting may come from the file, from the environment (IPAMD_NAME, IPAMD_DATA_DIR, …) or from a\nflag; the later one wins. All members may share one file if their names come from elsewhere."
)]
pub struct Flags {
    /// The configuration file [default: /etc/ipamd/ipamd.toml, if it exists].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// This member's name [default: the host's name].
    #[arg(long)]
    name: Option<String>,
    /// Where data is kept.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where clients are answered.
    #[arg(long, value_name = "ADDRESS")]
    client_listen: Option<String>,
    /// Where peers are answered.
    #[arg(long, value_name = "ADDRESS")]
    peer_listen: Option<String>,
    /// A unix socket on which clients are answered too.
    #[arg(long, value_name = "PATH")]
    client_socket: Option<PathBuf>,
    /// What clients are told this member's address is.
    #[arg(long, value_name = "URL")]
    client_url: Option<String>,
    /// A founding member, as NAME=ADDRESS; repeat for each, this one included.
    #[arg(long = "member", value_name = "NAME=ADDRESS")]
    members: Vec<String>,
    /// Serve beyond loopback without TLS.
    #[arg(long)]
    insecure: bool,
    /// What is logged, such as `info` or `ipam_raft=debug`.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    #[command(flatten)]
    tls: tls::TlsFlags,
    /// Stop when the process that started this one ends, however it ends.
    #[arg(long, hide = true)]
    pub(crate) stop_with_parent: bool,
    /// Reword every sentence of the machine, as a program with other sentences would; for the test of upgrades.
    #[cfg(feature = "next-level")]
    #[arg(long, hide = true)]
    pub(crate) test_reword_sentences: bool,
}

impl Flags {
    /// The settings that they say, by the keys of the file.
    fn said(&self) -> Vec<&'static str> {
        let all = [
            ("name", self.name.is_some()),
            ("data_dir", self.data_dir.is_some()),
            ("client_listen", self.client_listen.is_some()),
            ("peer_listen", self.peer_listen.is_some()),
            ("client_socket", self.client_socket.is_some()),
            ("client_url", self.client_url.is_some()),
            ("initial_members", !self.members.is_empty()),
            ("insecure", self.insecure),
            ("log", self.log.is_some()),
        ];
        all.into_iter().chain(self.tls.said()).filter(|(_, said)| *said).map(|(key, _)| key).collect()
    }

    /// Nothing but a configuration file, if one is named.
    #[must_use]
    pub fn with_file(config: Option<PathBuf>) -> Self {
        Self { config, ..Self::default() }
    }
}

/// The configuration file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    data_dir: Option<PathBuf>,
    client_listen: Option<String>,
    peer_listen: Option<String>,
    client_socket: Option<PathBuf>,
    client_url: Option<String>,
    #[serde(default)]
    insecure: bool,
    log: Option<String>,
    #[serde(default)]
    initial_members: Vec<FileMember>,
    #[serde(default)]
    cluster: cluster::FileCluster,
    #[serde(default)]
    raft: raft::FileRaft,
    #[serde(default)]
    tls: tls::FileTls,
    #[serde(default)]
    peer_tls: tls::FilePeerTls,
    #[serde(default)]
    access: access::FileAccess,
    #[serde(default)]
    journal: journal::FileJournal,
    #[serde(default)]
    metrics: metrics::FileMetrics,
    #[serde(default)]
    disk: disk::FileDisk,
    /// Its text as it was read, for who asks what it says itself.
    #[serde(skip)]
    said: toml::Table,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileMember {
    name: String,
    peer: String,
}

/// A member's settings, complete and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// This member's name.
    pub name: Name,
    /// Where data is kept.
    pub data_dir: PathBuf,
    /// Where clients are answered.
    pub client_listen: SocketAddr,
    /// Where peers are answered.
    pub peer_listen: SocketAddr,
    /// A unix socket on which clients are answered too.
    pub client_socket: Option<PathBuf>,
    /// What clients are told; derived from where it listens if not said.
    pub client_url: Option<String>,
    /// The founding members, this one among them.
    pub initial_members: Vec<InitialMember>,
    /// Where other members reach this one.
    pub peer_address: String,
    /// Whom it asks to be taken in, while its data directory belongs to no cluster.
    pub join: Option<JoinConfig>,
    /// How fast the absence of a leader is noticed.
    pub timing: Timing,
    /// When snapshots are made, how fast, and what of the log stays behind them.
    pub snapshots: SnapshotPolicy,
    /// Who may ask without a token of the cluster.
    pub access: AccessConfig,
    /// How long history is kept.
    pub journal: JournalLimits,
    /// Whether each pool has its own series at `/metrics`.
    pub metrics_per_pool: bool,
    /// From when on the disk counts as full.
    pub disk: DiskLimits,
    /// Whether somebody has said that the network is trusted.
    pub insecure: bool,
    /// What is logged.
    pub log: String,
    /// TLS with clients.
    pub tls: Option<ClientTlsFiles>,
    /// TLS among members.
    pub peer_tls: Option<PeerTlsFiles>,
    /// What was odd and not wrong.
    pub warnings: Vec<String>,
}

/// A configuration that can't be used: what is wrong, and what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl From<TlsError> for ConfigError {
    fn from(error: TlsError) -> Self {
        Self(error.to_string())
    }
}

impl Config {
    /// Reads everything.
    ///
    /// # Errors
    /// What is wrong, in words for the operator.
    pub fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let (environment, file) = Self::sources(flags)?;
        Self::merge(flags, environment, file)
    }

    fn sources(flags: &Flags) -> Result<(Environment, File), ConfigError> {
        let environment = Environment::read(std::env::vars());
        let file = match flags.config.clone().or(environment.config.clone()) {
            Some(path) => File::read(&path)?,
            None if Path::new(CONFIG_FILE).exists() => File::read(Path::new(CONFIG_FILE))?,
            None => File::default(),
        };
        Ok((environment, file))
    }

    fn merge(flags: &Flags, environment: Environment, file: File) -> Result<Self, ConfigError> {
        let name = first([&flags.name, &environment.name, &file.name]).map_or_else(host_name, Ok)?;
        let name = Name::new(&name).map_err(|problem| wrong("name", &problem.detail))?;
        let client_listen = first([&flags.client_listen, &environment.client_listen, &file.client_listen])
            .unwrap_or_else(|| format!("127.0.0.1:{CLIENT_PORT}"));
        let peer_listen = first([&flags.peer_listen, &environment.peer_listen, &file.peer_listen])
            .unwrap_or_else(|| format!("127.0.0.1:{PEER_PORT}"));
        let client_listen = address("client_listen", &client_listen)?;
        let peer_listen = address("peer_listen", &peer_listen)?;
        let insecure = flags.insecure
            || switch("IPAMD_INSECURE", environment.insecure.as_deref())?.unwrap_or(file.insecure);
        let mut access = file.access;
        if let Some(required) = switch("IPAMD_ACCESS_REQUIRE_TOKENS", environment.require_tokens.as_deref())?
        {
            access.require_tokens = Some(required);
        }
        access.tokens_file = environment.tokens_file.or(access.tokens_file);
        let tls = ClientTlsFiles::merge(&flags.tls, &environment.tls, &file.tls)?;
        let peer_tls = PeerTlsFiles::merge(&flags.tls, &environment.tls, &file.peer_tls)?;
        for (key, listen, section, has_tls) in [
            ("client_listen", client_listen, "[tls]", tls.is_some()),
            ("peer_listen", peer_listen, "[peer_tls]", peer_tls.is_some()),
        ] {
            if !insecure && !has_tls && !listen.ip().is_loopback() {
                return Err(wrong(
                    key,
                    &format!(
                        "{listen} is beyond loopback, and there is no {section}: anybody who reaches the port could take and free addresses. Say in {section} which certificate and key to use (`ipamctl cluster ca` makes them), listen on 127.0.0.1, or say `insecure = true` for a network that you trust"
                    ),
                ));
            }
        }
        let client_url = first([&flags.client_url, &environment.client_url, &file.client_url]);
        // The other way round there may be somebody in front who speaks TLS for this member.
        if let Some(url) = client_url.as_ref().filter(|url| tls.is_some() && !url.starts_with("https://")) {
            return Err(wrong(
                "client_url",
                &format!("{} must begin with https://, as clients are served", shown(url)),
            ));
        }
        let peer_ca = peer_tls.as_ref().map(|files| files.ca.clone());
        let (peer_address, join) = cluster::merge(environment.cluster, file.cluster, peer_ca)?;
        let founds = join.is_none();
        let initial_members =
            members::members(&flags.members, file.initial_members, &name, peer_listen, founds)?;
        let mine = initial_members.iter().find(|member| member.name == name);
        let peer_address = peer_address
            .or(mine.map(|member| member.peer_address.clone()))
            .unwrap_or_else(|| peer_listen.to_string());
        if !founds && peer_address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_unspecified()) {
            let why = format!(
                "{peer_address} says not where this member is; name an address that the others reach"
            );
            return Err(wrong("cluster.peer_address", &why));
        }
        Ok(Self {
            name,
            data_dir: flags
                .data_dir
                .clone()
                .or(environment.data_dir)
                .or(file.data_dir)
                .unwrap_or_else(|| DATA_DIR.into()),
            client_listen,
            peer_listen,
            client_socket: flags.client_socket.clone().or(environment.client_socket).or(file.client_socket),
            client_url,
            tls,
            peer_tls,
            initial_members,
            timing: file.raft.timing()?,
            snapshots: file.raft.snapshots(&environment.raft)?,
            peer_address,
            join,
            access: access.complete(!client_listen.ip().is_loopback(), insecure)?,
            journal: file.journal.complete()?,
            metrics_per_pool: file.metrics.per_pool(),
            disk: file.disk.complete()?,
            insecure,
            log: first([&flags.log, &environment.log, &file.log]).unwrap_or_else(|| "info".to_owned()),
            warnings: environment.warnings,
        })
    }
}

impl File {
    fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError(format!("{} can't be read: {error}", path.display())))?;
        Self::parse(&text).map_err(|error| ConfigError(format!("{}: {error}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        Ok(Self { said: toml::from_str(text)?, ..toml::from_str(text)? })
    }
}

impl Config {
    /// What is logged: what the operator says comes last and wins.
    ///
    /// # Errors
    /// For something that is no filter.
    pub fn log_filter(&self) -> Result<EnvFilter, ConfigError> {
        EnvFilter::try_new(format!("{LOG_DIRECTIVES},{}", self.log)).map_err(|error| {
            let filter = shown(&self.log);
            wrong("log", &format!("{filter} is no filter ({error}); write `info`, or `info,ipam_raft=debug`"))
        })
    }
}

fn first(choices: [&Option<String>; 3]) -> Option<String> {
    choices.into_iter().flatten().next().cloned()
}

fn wrong(key: &str, why: &str) -> ConfigError {
    ConfigError(format!("{key}: {why}"))
}

fn address(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| {
        wrong(key, &format!("{} is no address with a port, such as 127.0.0.1:{CLIENT_PORT}", shown(text)))
    })
}

fn host_name() -> Result<String, ConfigError> {
    let name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    Ok(name.split('.').next().unwrap_or_default().to_owned())
}

/// Where clients reach a listener that is bound to `listen`.
#[must_use]
pub fn client_url(listen: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    match listen.ip() {
        // Bound to every address: the host's name is the best guess that others can use.
        ip if ip.is_unspecified() => {
            let host = host_name().unwrap_or_else(|_| IpAddr::from([127, 0, 0, 1]).to_string());
            format!("{scheme}://{host}:{}", listen.port())
        }
        _ => format!("{scheme}://{listen}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn load(
        file: &str,
        flags: &Flags,
        environment: &[(&str, &str)],
    ) -> Result<Config, ConfigError> {
        let variables = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let file = toml::from_str(file).map_err(|error| ConfigError(error.to_string()))?;
        Config::merge(flags, Environment::read(variables), file)
    }

    /// The example with its settings switched on.
    pub(super) fn example() -> String {
        let text = include_str!("../../deploy/ipamd.example.toml");
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
        for (name, _) in ENVIRONMENT_NAMES.iter().filter(|(name, _)| *name != "IPAMD_CONFIG") {
            assert!(include_str!("../../deploy/ipamd.example.toml").contains(name), "{name}");
        }
    }

    #[test]
    fn the_examples_defaults_are_the_real_ones() {
        let file: File = toml::from_str(&example()).unwrap();
        let real = load("name = \"n1\"", &Flags::default(), &[]).unwrap();
        assert_eq!(file.data_dir.as_ref(), Some(&real.data_dir));
        assert_eq!(file.client_listen.unwrap(), real.client_listen.to_string());
        assert_eq!(file.peer_listen.unwrap(), real.peer_listen.to_string());
        assert_eq!(file.log.unwrap(), real.log);
        assert_eq!(file.raft.timing().unwrap(), real.timing);
        assert_eq!(file.raft.lease_grace_ms, Some(real.timing.lease_grace_ms));
        assert_eq!(file.raft.snapshots(&raft::EnvironmentRaft::default()).unwrap(), real.snapshots);
        assert_eq!(file.journal.keep_bytes, Some(real.journal.keep_bytes));
        assert_eq!(file.journal.keep_days, Some(real.journal.keep_days));
        assert_eq!(file.metrics.per_pool, Some(real.metrics_per_pool));
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
            ("name = \"a\"\nclient_listen = \"7440\"", "no address with a port"),
            ("name = \"a\"\n[[initial_members]]\nname = \"b\"\npeer = \"h:1\"", "not among b"),
            ("name = \"a\"\n[[initial_members]]\nname = \"a\"\npeer = \"h\"", "no address with a port"),
            ("name = \"a\"\n[tls]\ncertificate = \"c\"", "tls.key: it is missing"),
            ("name = \"a\"\n[tls]\nclient_ca = \"c\"", "tls.certificate: it is missing"),
            ("name = \"a\"\n[peer_tls]\ncertificate = \"c\"\nkey = \"k\"", "peer_tls.ca: it is missing"),
            ("name = \"a\"\n[peer_tls]\nclient_ca = \"c\"", "unknown field"),
            (
                "name = \"a\"\nclient_url = \"http://a:7440\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"",
                "must begin with https://",
            ),
            (
                "name = \"a\"\nclient_listen = \"0.0.0.0:1\"\n[peer_tls]\ncertificate = \"c\"\nkey = \"k\"\nca = \"a\"",
                "no [tls]",
            ),
            ("name = \"a\"\n[raft]\nheartbeat_ms = 500", "heartbeat_ms <"),
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
