//! `ipamd check-config`: effective settings with their sources, and a check of the named files.
//!
//! Stricter than `serve`: an expired certificate is refused here.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use ipam_api::tls::{Credentials, expires_within};

use super::cluster_api::ClusterApiSettings;
use super::error::{ConfigError, wrong};
use super::flags::Flags;
use super::kubernetes::KubernetesSettings;
#[cfg(feature = "meridio")]
use super::meridio;
use super::settings::Config;
use super::sources::Sources;
use super::tls::RENEW_WITHIN;
use crate::access::Access;
use crate::screen;

/// Runs the command.
#[must_use]
pub fn main(flags: &Flags) -> ExitCode {
    match report(flags) {
        Ok((settings, warnings)) => {
            screen::out(&settings);
            screen::err(&warnings);
            ExitCode::SUCCESS
        }
        Err(error) => {
            screen::err(&format!("ipamd: {error}\n"));
            ExitCode::from(2)
        }
    }
}

/// Returns the settings as a table, and the warnings.
fn report(flags: &Flags) -> Result<(String, String), ConfigError> {
    let sources = Sources::read(flags)?;
    let config = Config::merge(flags, &sources)?;
    let mut warnings = config.warnings.clone();
    warnings.extend(files(&config)?);
    let warnings: String = warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    Ok((table(&config, &sources) + "The configuration is valid.\n", warnings))
}

/// Reads all files that a configuration names. Returns warnings about certificates that expire soon.
fn files(config: &Config) -> Result<Vec<String>, ConfigError> {
    config.log_filter()?;
    Access::new(config.access.clone()).map_err(|error| wrong("access.tokens_file", &error.to_string()))?;
    let mut warnings = Vec::new();
    if let Some(files) = &config.tls {
        files.load()?;
        let (own, _) = files.read()?;
        warnings.extend(in_time("tls.certificate", &own)?);
    }
    if let Some(files) = &config.peer_tls {
        files.load(&config.name)?;
        warnings.extend(in_time("peer_tls.certificate", &files.read()?.own)?);
    }
    #[cfg(feature = "meridio")]
    if let Some(files) = config.meridio.as_ref().and_then(|meridio| meridio.tls.as_ref()) {
        files.load_rotated()?;
        // A program renews this certificate in time, so its near expiry is no warning.
        in_time("meridio.tls.certificate", &files.read_rotated()?.0)?;
    }
    config.kubernetes.iter().try_for_each(KubernetesSettings::open)?;
    config.cluster_api.iter().try_for_each(ClusterApiSettings::open)?;
    Ok(warnings)
}

/// Refuses an expired certificate. Returns a warning for one that expires within [`RENEW_WITHIN`].
fn in_time(key: &str, own: &Credentials) -> Result<Option<String>, ConfigError> {
    let expired = |within| own.chain.first().is_some_and(|certificate| expires_within(certificate, within));
    if expired(Duration::ZERO) {
        return Err(wrong(
            key,
            "it has expired; have a new one issued, such as by `ipamctl cluster ca issue`",
        ));
    }
    Ok(expired(RENEW_WITHIN).then(|| format!("{key} expires within two weeks; renew it, then send SIGHUP")))
}

/// Renders the settings as aligned lines, one setting per line.
fn table(config: &Config, sources: &Sources) -> String {
    let settings = settings(config);
    let wide = |width: usize, text: &str| width.max(text.chars().count());
    let keys = settings.iter().fold(0, |width, (key, _)| wide(width, key));
    let values = settings.iter().fold(0, |width, (_, value)| wide(width, value));
    let mut text = String::new();
    for (key, value) in settings {
        // Writing to a string doesn't fail.
        let _ = writeln!(text, "{key:<keys$} = {value:<values$}   ({})", sources.source(key));
    }
    text
}

/// Returns every key of the file with its effective value. Secrets are in separate files, never here.
fn settings(config: &Config) -> Vec<(&'static str, String)> {
    let path = |path: Option<&std::path::PathBuf>| or_dash(path.map(|path| path.display()));
    let (tls, peer_tls) = (config.tls.as_ref(), config.peer_tls.as_ref());
    let members = config.initial_members.iter();
    let members = members.map(|member| match member.peer_address.as_str() {
        "" => member.name.to_string(),
        address => format!("{}={address}", member.name),
    });
    let clients = config.access.clients.iter().map(|(name, role)| format!("{name}={role}"));
    let (snapshots, join) = (&config.snapshots, config.join.as_ref());
    let mib = |bytes: u64| (bytes >> 20).to_string();
    let rows = vec![
        ("name", config.name.to_string()),
        ("data_dir", config.data_dir.display().to_string()),
        ("client_listen", config.client_listen.to_string()),
        ("peer_listen", config.peer_listen.to_string()),
        ("client_socket", path(config.client_socket.as_ref())),
        ("client_url", or_dash(config.client_url.as_ref())),
        ("insecure", config.insecure.to_string()),
        ("log", config.log.clone()),
        ("initial_members", list(members)),
        ("raft.heartbeat_ms", config.timing.heartbeat_ms.to_string()),
        ("raft.election_min_ms", config.timing.election_min_ms.to_string()),
        ("raft.election_max_ms", config.timing.election_max_ms.to_string()),
        ("raft.lease_grace_ms", config.timing.lease_grace_ms.to_string()),
        ("raft.snapshot_every_entries", snapshots.every_entries.to_string()),
        ("raft.snapshot_every_mib", mib(snapshots.every_bytes)),
        ("raft.keep_entries_behind_snapshot", snapshots.keep_entries.to_string()),
        ("raft.keep_mib_behind_snapshot", mib(snapshots.keep_bytes)),
        ("raft.snapshot_mib_per_second", mib(snapshots.bytes_per_second)),
        ("tls.certificate", path(tls.map(|files| &files.certificate))),
        ("tls.key", path(tls.map(|files| &files.key))),
        ("tls.client_ca", path(tls.and_then(|files| files.client_ca.as_ref()))),
        ("peer_tls.certificate", path(peer_tls.map(|files| &files.certificate))),
        ("peer_tls.key", path(peer_tls.map(|files| &files.key))),
        ("peer_tls.ca", path(peer_tls.map(|files| &files.ca))),
        ("access.require_tokens", (!config.access.open).to_string()),
        ("access.tokens_file", path(config.access.tokens_file.as_ref())),
        ("access.trusted_uids", list(config.access.trusted_uids.iter().map(ToString::to_string))),
        ("access.clients", list(clients)),
        ("journal.keep_bytes", config.journal.keep_bytes.to_string()),
        ("journal.keep_days", config.journal.keep_days.to_string()),
        ("gc.silent_nodes", config.gc.silent_nodes.to_string()),
        ("gc.node_grace_ms", config.gc.node_grace_ms.to_string()),
        ("gc.terminating_on_ready_node", config.gc.workloads.terminating_on_ready_node.to_string()),
        ("gc.terminating_on_gone_node", config.gc.workloads.terminating_on_gone_node.to_string()),
        ("gc.running_without_addresses", config.gc.workloads.running_without_addresses.to_string()),
        ("gc.delay_ms", config.gc.workloads.delay_ms.to_string()),
        ("kubernetes", list(config.kubernetes.iter().map(|section| section.realm.to_string()))),
        ("cluster_api", list(config.cluster_api.iter().map(|section| section.realm.to_string()))),
        ("metrics.per_pool", config.metrics_per_pool.to_string()),
        ("cluster.peer_address", or_dash(Some(&config.peer_address).filter(|address| !address.is_empty()))),
        ("cluster.join", list(join.into_iter().flat_map(|join| join.servers.iter().cloned()))),
        ("cluster.join_token_file", path(join.and_then(|join| join.token_file.as_ref()))),
        ("cluster.join_ca", path(join.and_then(|join| join.ca_file.as_ref()))),
        ("disk.low_bytes", config.disk.low_bytes.to_string()),
        ("disk.ballast_bytes", config.disk.ballast_bytes.to_string()),
    ];
    #[cfg(feature = "meridio")]
    let rows = [rows, meridio::rows(config.meridio.as_ref())].concat();
    rows
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    or_dash((!items.is_empty()).then(|| items.join(", ")))
}

fn or_dash(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    use super::*;
    use crate::config::environment::Environment;
    use crate::config::file::File;
    use crate::config::meridio::MeridioEnvironment;
    use crate::config::settings::tests::{example, load};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn keys(at: &str, value: &serde_json::Value, all: &mut Vec<String>) {
        match value {
            // A section. `access.clients` is a map from names, and counts as one setting.
            serde_json::Value::Object(map) if at != "access.clients" => {
                let inner = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
                map.iter().for_each(|(key, value)| keys(&inner(key), value, all));
            }
            _ => all.push(at.to_owned()),
        }
    }

    #[test]
    fn every_setting_is_shown() {
        let file: File = toml::from_str(&example()).unwrap();
        let mut all = Vec::new();
        keys("", &serde_json::to_value(&file).unwrap(), &mut all);
        let config = load("name = \"n1\"", &Flags::default(), &[]).unwrap();
        let mut shown: Vec<String> = settings(&config).into_iter().map(|(key, _)| key.to_owned()).collect();
        all.sort();
        shown.sort();
        assert_eq!(shown, all);
    }

    #[test]
    fn every_flag_and_every_name_of_the_environment_is_known_for_its_setting() {
        let config = load("name = \"n1\"", &Flags::default(), &[]).unwrap();
        let known: Vec<&str> = settings(&config).into_iter().map(|(key, _)| key).collect();
        let mut seen = 0;
        for argument in Line::command().get_arguments() {
            let name = argument.get_long().unwrap();
            if ["config", "stop-with-parent", "test-option", "help"].contains(&name) {
                continue;
            }
            let flag = format!("--{name}");
            let line = match argument.get_action().takes_values() {
                true => vec!["ipamd", flag.as_str(), "x"],
                false => vec!["ipamd", flag.as_str()],
            };
            let matches = Line::command().try_get_matches_from(line).unwrap();
            let mut given = Vec::new();
            let table = Line::from_arg_matches(&matches).unwrap().flags.table().unwrap();
            keys("", &serde_json::to_value(table).unwrap(), &mut given);
            assert!(given.len() == 1 && known.contains(&given[0].as_str()), "--{name}: {given:?}");
            seen += 1;
        }
        assert!(seen > 10, "{seen}");
        for (_, key) in super::super::ENVIRONMENT_NAMES.iter().filter(|(name, _)| *name != "IPAMD_CONFIG") {
            assert!(known.contains(key), "{key}");
        }
    }

    #[test]
    fn each_setting_says_where_it_comes_from() {
        let flags = Flags { log: Some("debug".into()), ..Flags::default() };
        let variables = [("IPAMD_NAME", "b"), ("IPAMD_LOG", "warn"), ("IPAMD_CLIENT_URL", "")];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let environment = Environment::read(variables.into_iter());
        let file = "name = \"a\"\nclient_url = \"http://a:1\"\ninsecure = false\n[raft]\nheartbeat_ms = 20\n\
                    [access]\nclients = {argocd = \"operator\"}";
        let file = File::parse(file).unwrap();
        let sources = Sources::new(&flags, environment, MeridioEnvironment::default(), file).unwrap();
        let config = Config::merge(&flags, &sources).unwrap();
        let table = table(&config, &sources);
        let line = |key: &str| {
            let found = table.lines().find(|line| line.split(' ').next() == Some(key));
            let words: Vec<&str> = found.unwrap().split_whitespace().collect();
            words.join(" ")
        };
        assert_eq!(line("name"), "name = b (environment)");
        assert_eq!(line("log"), "log = debug (flag)");
        assert_eq!(line("client_url"), "client_url = http://a:1 (file)", "an empty name says nothing");
        assert_eq!(line("insecure"), "insecure = false (file)");
        assert_eq!(line("raft.heartbeat_ms"), "raft.heartbeat_ms = 20 (file)");
        assert_eq!(line("raft.election_min_ms"), "raft.election_min_ms = 150 (default)");
        assert_eq!(line("access.clients"), "access.clients = argocd=operator (file)");
        assert_eq!(line("tls.key"), "tls.key = - (default)");
        let equals: Vec<_> = table.lines().map(|line| line.find(" = ")).collect();
        let sources: Vec<_> = table.lines().map(|line| line.rfind("   (")).collect();
        for columns in [equals, sources] {
            assert!(columns.iter().all(|column| *column == columns[0] && column.is_some()), "{table}");
        }
    }
}
