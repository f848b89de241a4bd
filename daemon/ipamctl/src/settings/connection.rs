//! Servers and credentials: from flags, environment and the configuration file.
//!
//! The command line takes precedence over the environment, and the environment over the file. A context that
//! the command line names takes precedence like a flag: with `--context lab`, a variable must not redirect
//! the command to production. Credentials of a context are used only for the servers of that context.

use std::path::PathBuf;

use ipam_api::brand::{
    CA_FILE_ENV, CERT_FILE_ENV, CLIENT_PORT, CONTEXT_ENV, KEY_FILE_ENV, SERVERS_ENV, TOKEN_FILE_ENV,
};
use ipam_api::client::Options;
use ipam_api::{Name, ObjectName};

use crate::output::error::Failure;
use crate::settings::config::{self, Place};
use crate::settings::environment::Environment;
use crate::settings::flags::ConnectionArguments;

/// Servers and credentials.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) servers: Vec<String>,
    /// Origin of the list of servers.
    pub(crate) origin: String,
    /// Files with the credentials of the caller, and with the trusted CA certificates.
    pub(crate) options: Options,
    /// Selected network, if any.
    pub(crate) network: Option<Name>,
    pub(crate) realm: Name,
    pub(crate) namespace: ObjectName,
    /// Name of the context, if it is marked as production.
    pub(crate) production: Option<Name>,
}

impl Settings {
    /// Combines flags, environment and configuration file.
    pub(crate) fn resolve(said: &ConnectionArguments, environment: &Environment) -> Result<Self, Failure> {
        let chosen = Chosen::find(said, environment)?;
        let named = said.context.is_some();
        let variable = |name: &str| environment.variable(name).filter(|_| !named);
        let mut context = chosen.as_ref().map(|chosen| chosen.place.clone()).unwrap_or_default();
        let environment = variable(SERVERS_ENV).map(|text| text.split(',').map(str::to_owned).collect());
        let (servers, origin) = if !said.servers.is_empty() {
            (said.servers.clone(), "these servers are from --server".to_owned())
        } else if let Some(servers) = environment {
            (servers, format!("these servers are from {SERVERS_ENV}"))
        } else if let Some(chosen) = chosen.as_ref().filter(|chosen| !chosen.place.servers.is_empty()) {
            (
                chosen.place.servers.clone(),
                format!("context {} (from {})", chosen.name, chosen.file.display()),
            )
        } else {
            let here = vec![format!("http://127.0.0.1:{CLIENT_PORT}")];
            (
                here,
                format!(
                    "no server is configured (--server, --context or {SERVERS_ENV}); the default is this machine"
                ),
            )
        };
        let servers: Vec<String> = servers.iter().map(|server| server.trim().to_owned()).collect();
        let plain = |server: &String| server.trim_end_matches('/').to_owned();
        let known: Vec<String> = context.servers.iter().map(plain).collect();
        if !servers.iter().all(|server| known.contains(&plain(server))) {
            // Credentials and the production mark of a context apply only to its own servers.
            context = Place {
                network: context.network,
                realm: context.realm,
                namespace: context.namespace,
                ..Place::default()
            };
        }
        let file = |flag: &Option<PathBuf>, name: &str, of_context: Option<PathBuf>| {
            flag.clone().or_else(|| variable(name).map(PathBuf::from)).or(of_context)
        };
        Ok(Self {
            servers,
            origin,
            options: Options {
                ca_file: file(&said.ca_file, CA_FILE_ENV, context.ca_file),
                token_file: file(&said.token_file, TOKEN_FILE_ENV, context.token_file),
                certificate_file: file(&said.cert_file, CERT_FILE_ENV, context.cert_file),
                key_file: file(&said.key_file, KEY_FILE_ENV, context.key_file),
            },
            network: said.place.network.clone().or(context.network),
            realm: said.place.realm.clone().or(context.realm).unwrap_or_else(Name::default_name),
            namespace: said
                .place
                .namespace
                .clone()
                .or(context.namespace)
                .unwrap_or_else(ObjectName::default_name),
            production: chosen.filter(|_| context.production).map(|chosen| chosen.name),
        })
    }
}

/// Selected context.
struct Chosen {
    name: Name,
    place: Place,
    file: PathBuf,
}

impl Chosen {
    /// Finds the context of the flag, the environment or the file, in this order; none without any.
    fn find(said: &ConnectionArguments, environment: &Environment) -> Result<Option<Self>, Failure> {
        let of_environment = environment.variable(CONTEXT_ENV);
        let Some(file) = config::path(environment) else {
            if said.context.is_none() && of_environment.is_none() {
                return Ok(None);
            }
            return Err(Failure::usage(
                "a context is given, but the directory of contexts is unknown",
                "Set HOME or XDG_CONFIG_HOME, or use --server.",
            ));
        };
        let of_environment = of_environment.map(|text| {
            text.parse::<Name>().map_err(|problem| {
                Failure::usage(format!("{CONTEXT_ENV}: {}", problem.detail), "See `ipamctl context list`.")
            })
        });
        let config = config::read(&file)?;
        let name = said.context.clone().or(of_environment.transpose()?).or_else(|| config.current.clone());
        let Some(name) = name else { return Ok(None) };
        let place = config.context(&name, &file)?.located(&file, environment);
        Ok(Some(Self { name, place, file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "current = 'prod'\n\
        [context.prod]\nservers = ['https://p1:7440', 'https://p2:7440']\ntoken_file = 'token'\n\
        realm = 'prod-eu'\nproduction = true\n\
        [context.lab]\nservers = ['http://l1:7440']\nnetwork = 'lab'\n";

    fn settled(flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            connection: ConnectionArguments,
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("ipamctl")).unwrap();
        std::fs::write(folder.path().join("ipamctl/config.toml"), FILE).unwrap();
        let home = folder.path().to_str().unwrap();
        let variables = variables.iter().copied().chain([("XDG_CONFIG_HOME", home)]);
        let line: Line = clap::Parser::parse_from(["ipamctl"].iter().chain(flags));
        Settings::resolve(&line.connection, &Environment::of(variables))
    }

    #[test]
    fn the_nearer_word_counts() {
        let current = settled(&[], &[]).unwrap();
        assert_eq!(current.servers, ["https://p1:7440", "https://p2:7440"]);
        assert_eq!(
            (current.realm.as_str(), current.production.as_ref().unwrap().as_str()),
            ("prod-eu", "prod")
        );
        assert!(current.options.token_file.unwrap().ends_with("ipamctl/token"));
        assert!(current.origin.starts_with("context prod (from "), "{}", current.origin);
        let lab = settled(&[], &[("IPAM_CONTEXT", "lab")]).unwrap();
        assert_eq!((lab.servers, lab.network.unwrap().as_str()), (vec!["http://l1:7440".to_owned()], "lab"));
        let environment = settled(&[], &[("IPAM_SERVERS", "http://e1:1,http://e2:1")]).unwrap();
        assert_eq!(environment.servers, ["http://e1:1", "http://e2:1"]);
        let both = [("IPAM_SERVERS", "http://e1:1"), ("IPAM_CA_FILE", "/e"), ("IPAM_CONTEXT", "prod")];
        let named = settled(&["--context", "lab"], &both).unwrap();
        assert_eq!((named.servers, named.options.ca_file), (vec!["http://l1:7440".to_owned()], None));
        let flag = settled(&["--server", "http://f", "--realm", "r"], &both).unwrap();
        assert_eq!((flag.servers, flag.realm.as_str()), (vec!["http://f".to_owned()], "r"));
    }

    #[test]
    fn a_contexts_token_is_for_its_own_servers() {
        let other = settled(&["--server", "http://elsewhere:7440"], &[]).unwrap();
        assert!(other.options.token_file.is_none() && other.production.is_none());
        let own = settled(&["--server", "https://p2:7440/"], &[]).unwrap();
        assert!(own.options.token_file.is_some() && own.production.is_some());
    }

    #[test]
    fn a_context_that_does_not_exist_is_usage() {
        for (flags, variables) in [
            (&["--context", "prud"][..], &[][..]),
            (&[], &[("IPAM_CONTEXT", "prud")]),
            (&[], &[("IPAM_CONTEXT", "/")]),
        ] {
            let failure = settled(flags, variables).unwrap_err();
            assert_eq!(failure.exit_code(), 2);
        }
        let said = settled(&["--context", "prud"], &[]).unwrap_err().text(false).unwrap();
        assert!(said.contains("Did you mean prod?"), "{said}");
    }
}
