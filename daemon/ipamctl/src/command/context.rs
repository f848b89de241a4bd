//! `ipamctl context`: the known clusters, and the current one.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use ipam_api::Name;
use serde_json::json;

use crate::client::session::Session;
use crate::command::arguments::Named;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};
use crate::settings::config::{self, Config, Place};
use crate::settings::environment::Environment;
use crate::settings::flags::ConnectionArguments;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl context set prod --server https://n1.ipam.example:7440,https://n2.ipam.example:7440 --production
  ipamctl context use prod
  ipamctl context list";

/// Verbs of contexts.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the contexts; the current one is marked
    #[command(alias = "ls", after_help = "Examples:\n  ipamctl context list\n  ipamctl context list -o name")]
    List,
    /// Show a context; the current one by default
    #[command(
        alias = "describe",
        after_help = "Examples:\n  ipamctl context show\n  ipamctl context show prod"
    )]
    Show {
        /// Name
        name: Option<Name>,
    },
    /// Set the current context
    #[command(after_help = "Examples:\n  ipamctl context use prod")]
    Use(Named),
    /// Create or change a context: --server, --ca-file, --token-file, --cert-file, --key-file, --realm, …
    #[command(
        alias = "create",
        after_help = "A context stores the connection flags given with this command. An empty file name removes the entry.

Examples:
  ipamctl context set lab --server http://127.0.0.1:7440
  ipamctl context set prod --server https://n1.ipam.example:7440 --ca-file ca.pem --token-file token
  ipamctl context set prod --realm prod-eu --production"
    )]
    Set {
        /// Name
        name: Name,
        /// Mark the context as production in confirmation prompts
        #[arg(long, conflicts_with = "no_production")]
        production: bool,
        /// Remove the production mark
        #[arg(long)]
        no_production: bool,
    },
    /// Delete a context; the cluster is unaffected
    #[command(alias = "rm", after_help = "Examples:\n  ipamctl context delete lab")]
    Delete(Named),
}

/// Runs a verb.
pub(crate) fn run(
    session: &Session,
    verb: Verb,
    said: &ConnectionArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let path = config::path(environment).ok_or_else(|| {
        Failure::usage("the directory of contexts is unknown", "Set HOME or XDG_CONFIG_HOME.")
    })?;
    let mut config = config::read(&path)?;
    match verb {
        Verb::List => list(session, &config),
        Verb::Show { name } => show(session, &config, &path, name),
        Verb::Use(Named { name }) => {
            config.context(&name, &path)?;
            config.current = Some(name.clone());
            save(session, &path, &config, &format!("current context: {name}"))
        }
        Verb::Set { name, production, no_production } => {
            let first = config.contexts.is_empty();
            let place = config.contexts.entry(name.clone()).or_default();
            change(place, said)?;
            place.production = (place.production || production) && !no_production;
            if place.servers.is_empty() {
                return Err(Failure::usage(
                    format!("context {name} has no servers"),
                    "Name them with --server, as https://n1.ipam.example:7440,https://n2.ipam.example:7440.",
                ));
            }
            // The first context becomes the current one.
            if first {
                config.current = Some(name.clone());
            }
            save(session, &path, &config, &format!("context {name} written to {}", path.display()))
        }
        Verb::Delete(Named { name }) => {
            config.context(&name, &path)?;
            config.contexts.remove(&name);
            config.current = config.current.filter(|current| *current != name);
            save(session, &path, &config, &format!("context {name} forgotten"))
        }
    }
}

fn save(session: &Session, path: &Path, config: &Config, sentence: &str) -> Result<(), Failure> {
    if session.writing.dry_run {
        session.say(&format!("{sentence}   (a dry run: nothing was written)"));
        return Ok(());
    }
    config::write(path, config)?;
    session.say(sentence);
    Ok(())
}

/// Writes the specified flags into a context. Paths of files are stored as absolute paths.
fn change(place: &mut Place, said: &ConnectionArguments) -> Result<(), Failure> {
    if !said.servers.is_empty() {
        ipam_api::client::Client::new(&said.servers)?;
        place.servers.clone_from(&said.servers);
    }
    for (kept, flag) in [
        (&mut place.ca_file, &said.ca_file),
        (&mut place.token_file, &said.token_file),
        (&mut place.cert_file, &said.cert_file),
        (&mut place.key_file, &said.key_file),
    ] {
        if let Some(file) = flag {
            *kept = if file.as_os_str().is_empty() { None } else { Some(absolute(file)?) };
        }
    }
    place.network = said.place.network.clone().or_else(|| place.network.clone());
    place.realm = said.place.realm.clone().or_else(|| place.realm.clone());
    place.namespace = said.place.namespace.clone().or_else(|| place.namespace.clone());
    Ok(())
}

fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display()), "Name a file."))
}

fn list(session: &Session, config: &Config) -> Result<(), Failure> {
    let items: Vec<serde_json::Value> = config
        .contexts
        .iter()
        .map(|(name, place)| {
            let mut item = json!({"name": name, "current": config.current.as_ref() == Some(name)});
            if let (Some(fields), Ok(serde_json::Value::Object(place))) =
                (item.as_object_mut(), serde_json::to_value(place))
            {
                fields.extend(place);
            }
            item
        })
        .collect();
    let contexts: Vec<(&Name, &Place)> = config.contexts.iter().collect();
    let table = Table::of(&contexts)
        .text("", |(name, _)| if config.current.as_ref() == Some(*name) { "*" } else { "" })
        .text("NAME", |(name, place)| {
            format!("{name}{}", if place.production { " (production)" } else { "" })
        })
        .text("SERVERS", |(_, place)| text::joined(&place.servers))
        .spare("REALM", 2, |(_, place)| text::or_dash(place.realm.as_ref()))
        .spare("NETWORK", 3, |(_, place)| text::or_dash(place.network.as_ref()))
        .table();
    let names: Vec<&str> = config.contexts.keys().map(Name::as_str).collect();
    let json = json!({"items": items}).to_string();
    session.show_table(json.as_bytes(), &names.join("\n"), || table)
}

fn show(session: &Session, config: &Config, path: &Path, name: Option<Name>) -> Result<(), Failure> {
    let name = name
        .or_else(|| config.current.clone())
        .ok_or_else(|| Failure::usage("no current context", "Select one with `ipamctl context use NAME`."))?;
    let place = config.context(&name, path)?;
    let json = serde_json::to_vec(place).unwrap_or_default();
    let file =
        |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let mut fields = Fields::default();
    fields.line("context", format!("{name}   from {}", path.display()));
    fields.line("servers", text::joined(&place.servers));
    fields.line_if("ca file", &file(&place.ca_file));
    fields.line_if("token file", &file(&place.token_file));
    fields.line_if("certificate", &file(&place.cert_file));
    fields.line_if("key", &file(&place.key_file));
    fields.line_if("network", &text::or_dash(place.network.as_ref()));
    fields.line_if("realm", &text::or_dash(place.realm.as_ref()));
    fields.line_if("namespace", &text::or_dash(place.namespace.as_ref()));
    fields.line_if("production", if place.production { "yes: marked in confirmation prompts" } else { "" });
    session.show(&json, name.as_str(), || Ok(fields.text()))
}
