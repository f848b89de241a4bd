//! `ipamctl completion`: completion candidates for a command line, with names from the servers.
//!
//! The script of a shell runs this program at each TAB. The user waits only briefly and expects only
//! candidates, so every failure is silent.

use std::time::Duration;

use clap::{Args, CommandFactory as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use ipam_api::client::{Call, Client, with_query};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::screen::is_harmless;
use serde_json::Value;

use crate::client::session::Session;
use crate::grammar::arguments::Arguments;
use crate::output::error::Failure;
use crate::settings::config;
use crate::settings::connection::Settings;
use crate::settings::environment::Environment;
use crate::settings::flags::ConnectionArguments;

/// Environment variable by which the script requests candidates.
const VARIABLE: &str = "IPAMCTL_COMPLETE";
/// Time limit of a completion.
const PATIENCE: Duration = Duration::from_millis(300);

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = "Into ~/.bashrc:  source <(ipamctl completion bash)

Examples:
  ipamctl completion bash
  ipamctl completion zsh
  ipamctl completion fish")]
pub(crate) struct CompletionArguments {
    /// bash, zsh or fish
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Prints the script for a shell.
pub(crate) fn run(session: &Session, arguments: &CompletionArguments) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&arguments.shell) else { return Ok(()) };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "ipamctl", "ipamctl", "ipamctl", &mut script)?;
    session.print_bytes(&script)
}

/// Answers a completion request and exits; returns if there is none.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| with_names(Arguments::command())).var(VARIABLE).complete();
}

/// Adds the lookup of names to the arguments that are names.
fn with_names(command: clap::Command) -> clap::Command {
    fill(command, None)
}

fn fill(command: clap::Command, resource_type: Option<&'static str>) -> clap::Command {
    let resource_type = places(command.get_name()).or(resource_type);
    let ids: Vec<String> = command.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    let command = ids.into_iter().fold(command, |command, id| {
        let place = match id.as_str() {
            "name" if command.get_name() != "create" => resource_type,
            "pool" | "pools" => places("pool"),
            "subnet" => places("subnet"),
            "network" => places("network"),
            "endpoint" => places("endpoint"),
            "context" => places("context"),
            _ => None,
        };
        match place {
            Some(place) => command
                .mut_arg(id, |argument| argument.add(ArgValueCandidates::new(move || candidates(place)))),
            None => command,
        }
    });
    let nested: Vec<String> = command.get_subcommands().map(|nested| nested.get_name().to_owned()).collect();
    nested
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |nested| fill(nested, resource_type)))
}

/// API path that lists the names of a noun; empty for contexts, which are in a local file.
fn places(resource_type: &str) -> Option<&'static str> {
    match resource_type {
        "network" => Some("/v1/networks"),
        "subnet" => Some("/v1/subnets"),
        "pool" => Some("/v1/pools"),
        "reservation" => Some("/v1/reservations"),
        "node" => Some("/v1/nodes"),
        "host-policy" => Some("/v1/host-policies"),
        "namespace" => Some("/v1/namespaces"),
        "endpoint" => Some("/v1/endpoints"),
        "token" => Some("/v1/tokens"),
        "context" => Some(""),
        _ => None,
    }
}

fn candidates(place: &'static str) -> Vec<CompletionCandidate> {
    let environment = Environment::of_process();
    let names = names(place, &environment.words, &environment).unwrap_or_default();
    // The shell writes candidates to the terminal without filtering them.
    let harmless = names.into_iter().filter(|name| !name.contains(|one| one == '\n' || !is_harmless(one)));
    harmless.map(CompletionCandidate::new).collect()
}

/// Reads the names at an API path from the servers that the command line selects.
fn names(place: &str, words: &[String], environment: &Environment) -> Option<Vec<String>> {
    if place.is_empty() {
        let config = config::read(&config::path(environment)?).ok()?;
        return Some(config.contexts.keys().map(ToString::to_string).collect());
    }
    let settings = Settings::resolve(&connection(words), environment).ok()?;
    let client = Client::with(&settings.servers, &settings.options).ok()?;
    let path = with_query(&with_query(place, "limit", &PAGE_ITEMS_MAX.to_string()), "consistency", "stale");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = async { tokio::time::timeout(PATIENCE, client.send(Call::get(path).within(PATIENCE))).await };
    let answer = runtime.block_on(asked).ok()?.ok()?;
    let list: Value = answer.read().ok()?;
    Some(list.get("items")?.as_array()?.iter().filter_map(name_of).collect())
}

/// Name of an item on a command line.
fn name_of(item: &Value) -> Option<String> {
    let field = |name: &str| item.get(name).and_then(Value::as_str);
    match (field("kind"), field("realm"), field("namespace"), field("name")?) {
        (Some(kind), Some(realm), Some(namespace), name) => {
            Some(format!("{kind}/{realm}/{namespace}/{name}"))
        }
        (None, Some(realm), None, name) => Some(format!("{realm}/{name}")),
        (_, _, _, name) => Some(name.to_owned()),
    }
}

/// Connection flags on the command line. The parser can't read them, because the line is incomplete.
fn connection(words: &[String]) -> ConnectionArguments {
    let value = |flag: &str| {
        words.iter().enumerate().rev().find_map(|(index, word)| match word.strip_prefix(flag)? {
            "" => words.get(index + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_owned),
        })
    };
    let servers = value("--server").map(|text| text.split(',').map(str::to_owned).collect());
    ConnectionArguments {
        servers: servers.unwrap_or_default(),
        context: value("--context").and_then(|name| name.parse().ok()),
        token_file: value("--token-file").map(Into::into),
        ca_file: value("--ca-file").map(Into::into),
        cert_file: value("--cert-file").map(Into::into),
        key_file: value("--key-file").map(Into::into),
        ..ConnectionArguments::default()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use serde_json::json;

    use super::*;
    use crate::tests::{pretend, run_within};

    #[tokio::test]
    async fn names_come_from_the_server() {
        let (server, seen) = pretend(|_, path, _| match path {
            path if path.starts_with("/v1/pools") => {
                Some((200, json!({"items": [{"name": "web"}, {"name": "web6"}], "revision": 1})))
            }
            path if path.starts_with("/v1/endpoints") => Some((
                200,
                json!({"items": [{"kind": "pod", "realm": "eu", "namespace": "web", "name": "a"}], "revision": 1}),
            )),
            _ => None,
        })
        .await;
        let words = ["ipamctl", "--server", &server, "pool", "show"].map(str::to_owned);
        let ask = move |place: &'static str| {
            let words = words.clone();
            tokio::task::spawn_blocking(move || names(place, &words, &Environment::default()))
        };
        assert_eq!(ask("/v1/pools").await.unwrap().unwrap(), ["web", "web6"]);
        assert_eq!(ask("/v1/endpoints").await.unwrap().unwrap(), ["pod/eu/web/a"]);
        assert_eq!(ask("/v1/tokens").await.unwrap(), None, "what isn't known is silent");
        assert_eq!(seen.lock().unwrap()[0], "GET /v1/pools?limit=1000&consistency=stale");
    }

    #[test]
    fn an_unreachable_server_is_silent() {
        let words = ["ipamctl", "--server=http://127.0.0.1:1"].map(str::to_owned);
        assert_eq!(names("/v1/pools", &words, &Environment::default()), None);
        assert_eq!(names("", &words, &Environment::default()), None);
    }

    #[test]
    fn commands_and_flags_are_completed() {
        let complete = |line: &str| -> Vec<String> {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let last = words.len() - 1;
            let mut grammar = with_names(Arguments::command());
            let found = clap_complete::engine::complete(&mut grammar, words, last, None).unwrap();
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(complete("ipamctl poo"), ["pool"]);
        assert_eq!(complete("ipamctl pool se"), ["set"]);
        assert_eq!(complete("ipamctl token w"), ["watch"]);
        assert!(complete("ipamctl pool set web --add").contains(&"--add-range".to_owned()));
        assert!(complete("ipamctl pool create x --strategy s").contains(&"sequential".to_owned()));
    }

    #[tokio::test]
    async fn each_shell_gets_its_script() {
        for shell in ["bash", "zsh", "fish"] {
            let (_, script) = run_within(&Environment::default(), &format!("completion {shell}")).await;
            assert!(script.contains(VARIABLE) && script.contains("ipamctl"), "{shell}: {script}");
        }
    }
}
