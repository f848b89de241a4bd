//! `ipamctl`: the command line of ipamd.
//!
//! It knows nothing that the API doesn't say: every command is a few HTTP calls, a table, and an exit code
//! out of the catalogue of problems. Data goes to standard output, talk to standard error, and what could
//! hurt asks first.
//!
//! **Invariant:** an exit code of 0 means that what was asked for is the case; 6 that nobody knows.

mod allocate;
mod allocation;
mod apply;
mod arguments;
mod cluster;
mod completion;
mod config;
mod confirm;
mod context;
mod contexts;
mod controller;
mod curl;
mod difference;
mod endpoint;
mod events;
mod exchange;
mod explain;
mod fail;
mod global;
mod identity;
mod interrupt;
mod list;
mod manual;
mod map;
mod metadata;
mod namespace;
mod network;
mod node;
mod output;
mod place;
mod pool;
mod prefix;
mod release;
mod renew;
mod reservation;
mod resource;
mod settings;
mod show;
mod status;
mod subnet;
mod support;
mod surroundings;
#[cfg(test)]
mod tests;
mod token;
mod version;
mod watch;
mod who_has;
mod words;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command};
use context::Context;
use fail::Failure;
use output::format::Format;
use settings::Settings;
use surroundings::Surroundings;

/// What shells report for a program that SIGINT ended.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    completion::answer();
    let (words, hint) = words::translate(std::env::args_os().collect());
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => {
            if let Some(instead) = words::absent(&words) {
                let failure = Failure::usage("there is no such command in this version.", instead);
                say(&failure.text(false).unwrap_or_default());
                return ExitCode::from(failure.exit_code());
            }
            if let Some(hint) = hint {
                say(&hint);
            }
            let code = u8::try_from(error.exit_code()).unwrap_or(ipam_api::problem::exit::USAGE);
            // Help into a pipe that was closed is help that was read far enough.
            error.print().ok();
            return ExitCode::from(code);
        }
    };
    if let Some(hint) = hint.filter(|_| !arguments.global.output.quiet) {
        say(&hint);
    }
    ExitCode::from(start(arguments))
}

/// Runs the command until it ends or somebody presses Ctrl-C.
fn start(arguments: Arguments) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("can't start: {error}"));
            return ipam_api::problem::exit::UNAVAILABLE;
        }
    };
    let color = arguments.global.color_on_errors();
    let for_programs = matches!(arguments.global.output.format, Format::Json);
    let code = runtime.block_on(async {
        tokio::select! {
            // Ctrl-C is listened for before anything is sent.
            biased;
            _ = tokio::signal::ctrl_c() => {
                say(&interrupt::words());
                EXIT_INTERRUPTED
            }
            result = run(arguments) => match result {
                Ok(()) => ipam_api::problem::exit::DONE,
                Err(failure) => {
                    let document = for_programs.then(|| failure.json()).flatten();
                    if let Some(text) = document.or_else(|| failure.text(color)) {
                        say(&text);
                    }
                    failure.exit_code()
                }
            },
        }
    });
    // A question that nobody answered still sits in a thread that reads the terminal; don't wait for it.
    runtime.shutdown_background();
    code
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let surroundings = Surroundings::of_process();
    carry_out(arguments, &surroundings, Box::new(std::io::stdout())).await
}

/// Does what the arguments say; `output` is where data goes.
async fn carry_out(
    arguments: Arguments,
    surroundings: &Surroundings,
    output: Box<dyn std::io::Write>,
) -> Result<(), Failure> {
    let global = &arguments.global;
    if arguments.command.asks_nobody() {
        // It must work with a configuration that leads nowhere.
        let context = Context::new(global, Settings::nowhere(), surroundings, output)?;
        return match arguments.command {
            Command::Cluster { verb } => cluster::run(&context, verb).await,
            Command::Context { verb } => contexts::run(&context, verb, &global.connection, surroundings),
            Command::Explain(arguments) => explain::run(&context, &arguments).await,
            Command::Completion(arguments) => completion::run(&context, &arguments),
            Command::Man { folder } => manual::run(&context, &folder),
            _ => Ok(()),
        };
    }
    let settings = Settings::resolve(&global.connection, surroundings)?;
    let context = Context::new(global, settings, surroundings, output)?;
    dispatch(arguments.command, &context).await
}

/// The one place where a command meets the code that does it.
async fn dispatch(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Status(arguments) => status::run(context, &arguments).await,
        Command::WhoHas(arguments) => who_has::run(context, &arguments).await,
        Command::Events(arguments) => events::run(context, &arguments).await,
        Command::Allocate(arguments) => allocate::run(context, &arguments).await,
        Command::Release(arguments) => release::run(context, &arguments).await,
        Command::Renew(arguments) => renew::run(context, &arguments).await,
        Command::Apply(arguments) => apply::run(context, &arguments).await,
        Command::Explain(arguments) => explain::run(context, &arguments).await,
        Command::Diff(arguments) => apply::diff(context, &arguments).await,
        Command::Version => version::run(context).await,
        // Done before there is anybody to ask.
        Command::Context { .. } | Command::Completion(_) | Command::Man { .. } => Ok(()),
        Command::Cluster { verb } => cluster::run(context, verb).await,
        Command::Network { verb } => network::run(context, verb).await,
        Command::Subnet { verb } => subnet::run(context, verb).await,
        Command::Pool { verb } => pool::run(context, verb).await,
        Command::Reservation { verb } => reservation::run(context, verb).await,
        Command::Node { verb } => node::run(context, verb).await,
        Command::Namespace { verb } => namespace::run(context, verb).await,
        Command::Endpoint { verb } => endpoint::run(context, verb).await,
        Command::Support { verb } => support::run(context, verb).await,
        Command::Token { verb } => token::run(context, verb).await,
        Command::Allocation { verb } => allocation::run(context, verb).await,
        Command::Prefix { verb } => prefix::run(context, verb).await,
    }
}

/// Writes a line to standard error. Nobody can be told when that fails.
fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").ok();
}
