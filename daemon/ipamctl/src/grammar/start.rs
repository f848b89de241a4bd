//! Start and end of the process: parses the words, runs the command until its end or Ctrl-C, and exits.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};
use ipam_api::problem::exit;

use super::arguments::Arguments;
use super::dispatch::carry_out;
use super::synonyms;
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::{interrupt, screen};
use crate::settings::environment::Environment;

/// Exit code that shells report for a program that SIGINT ended.
const EXIT_INTERRUPTED: u8 = 130;

/// File name under which kubectl finds the program as its plugin `ipam`.
const KUBECTL_PLUGIN: &str = "kubectl-ipam";

/// Parses the words of a command line and runs its command.
pub(crate) fn process(words: Vec<OsString>) -> ExitCode {
    let is_plugin = words.first().is_some_and(|program| Path::new(program).ends_with(KUBECTL_PLUGIN));
    let (words, hint) = synonyms::translate(words);
    let arguments = match parse(&words, is_plugin) {
        Ok(arguments) => arguments,
        Err(error) => {
            let unknown_flag = error.kind() == ErrorKind::UnknownArgument;
            let verbless = || unknown_flag.then(|| synonyms::verbless(&words)).flatten();
            if let Some(instead) = synonyms::absent(&words).or_else(verbless) {
                let failure = Failure::usage("unknown command.", instead);
                screen::line(&failure.text(false).unwrap_or_default());
                return ExitCode::from(failure.exit_code());
            }
            if let Some(hint) = hint {
                screen::line(&hint);
            }
            let code = u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
            if is_plugin {
                print_for_kubectl(&error);
            } else if error.use_stderr() {
                // The error repeats words of the command line, which may be file names.
                screen::say(&error.render().to_string());
            } else {
                // A closed pipe is no failure: the reader has read enough of the help.
                error.print().ok();
            }
            return ExitCode::from(code);
        }
    };
    if let Some(hint) = hint.filter(|_| !arguments.global.output.quiet) {
        screen::line(&hint);
    }
    ExitCode::from(start(arguments))
}

/// Parses the words, with the usage of a kubectl plugin if the program is called as one.
fn parse(words: &[OsString], is_plugin: bool) -> Result<Arguments, clap::Error> {
    if !is_plugin {
        return Arguments::try_parse_from(words);
    }
    let grammar = Arguments::command().bin_name("kubectl ipam");
    let matches = grammar.try_get_matches_from(words)?;
    Arguments::from_arg_matches(&matches)
}

/// Prints help or a usage error, with examples that work for a user of kubectl.
fn print_for_kubectl(error: &clap::Error) {
    let text = error.render().to_string().replace("ipamctl ", "kubectl ipam ");
    if error.use_stderr() {
        screen::say(&text);
    } else {
        // A closed pipe is no failure: the reader has read enough of the help.
        std::io::stdout().write_all(text.as_bytes()).ok();
    }
}

/// Runs the command until it ends or Ctrl-C is pressed.
fn start(arguments: Arguments) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            screen::line(&format!("can't start: {error}"));
            return exit::UNAVAILABLE;
        }
    };
    let color = arguments.global.color_on_errors();
    let for_programs = matches!(arguments.global.output.format, Format::Json);
    let code = runtime.block_on(async {
        tokio::select! {
            // The handler of Ctrl-C is installed before the command sends a request.
            biased;
            _ = tokio::signal::ctrl_c() => {
                screen::line(&interrupt::words());
                EXIT_INTERRUPTED
            }
            result = run(arguments) => match result {
                Ok(()) => exit::DONE,
                Err(failure) => {
                    let document = for_programs.then(|| failure.json()).flatten();
                    if let Some(text) = document.or_else(|| failure.text(color)) {
                        screen::line(&text);
                    }
                    failure.exit_code()
                }
            },
        }
    });
    // An unanswered prompt still blocks a thread that reads the terminal; don't wait for it.
    runtime.shutdown_background();
    code
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let environment = Environment::of_process();
    carry_out(arguments, &environment, Box::new(std::io::stdout())).await
}
