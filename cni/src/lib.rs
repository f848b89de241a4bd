//! CNI plugin of ipamd: one short process per operation.
//!
//! A container runtime runs it through a main plugin (`bridge`, `macvlan`, `ipvlan`, …) whose `ipam.type` is
//! `ipam-cni`. It reads the network configuration from standard input and the operation from the environment,
//! sends a request to the node's agent or a server over HTTP, and prints the result in the requested CNI
//! version.
//!
//! Deliberate limits:
//!
//! * It decides nothing about addresses: it forwards requests and answers.
//! * An operation keeps nothing: no file, no lock, no cache. Killed at any instant, the next run with the
//!   same parameters gets the same answer, since the servers recognise the attachment.
//! * It changes no interface and sends nothing on a wire. In the container's network namespace it makes the
//!   kernel announce IPv6 addresses, and changes nothing else.
//! * It contains no TLS, since linking a TLS library alone doubles its start time. Use the node's agent to
//!   reach servers beyond loopback.

pub mod annotations;
pub mod announce;
pub mod arguments;
pub mod ask;
pub mod config;
pub mod container;
pub mod environment;
pub mod fail;
pub mod install;
pub mod interfaces;
pub mod json;
pub mod link;
pub mod manual_run;
pub mod master;
pub mod result;
pub mod routing;
pub mod started;
pub mod verbs;
pub mod version;

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

use ipam_api::limits::CNI_STDIN_BYTES_MAX;
use ipam_api::request::Started;

use crate::config::Network;
use crate::environment::{Environment, Verb};
use crate::fail::Failure;
use crate::version::CniVersion;

/// Runs the operation of the environment, and prints its result or its error.
#[must_use]
pub fn plugin(environment: &dyn Fn(&str) -> Option<String>, started: Option<Started>) -> ExitCode {
    let mut version = CniVersion::LATEST;
    let (output, code) = match run(environment, started, &mut version) {
        Ok(output) => (output, ExitCode::SUCCESS),
        Err(failure) => (failure.to_json(version), ExitCode::FAILURE),
    };
    // A runtime that closed its end has given up on this operation: it must not look like a success.
    match write_all(&output) {
        Ok(()) => code,
        Err(error) => {
            warn(&format!("standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(
    environment: &dyn Fn(&str) -> Option<String>,
    started: Option<Started>,
    version: &mut CniVersion,
) -> Result<Vec<u8>, Failure> {
    let environment = Environment::read(environment)?;
    if environment.verb == Verb::Version {
        return verbs::version::version();
    }
    let network = read(&environment, &read_input()?, version)?;
    // One thread and one connection suffice for one request.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Failure::new(fail::IO, "the plugin can't start", error.to_string()))?;
    runtime.block_on(verbs::serve(&environment, &network, started))
}

/// Reads the network configuration of an operation other than VERSION, and the version of its result.
///
/// # Errors
/// Codes 1, 6 and 7. Once the version is known, it is that of the error, too.
pub fn read(environment: &Environment, input: &[u8], version: &mut CniVersion) -> Result<Network, Failure> {
    let document = json::parse(input)?;
    *version = CniVersion::of(&document)?;
    environment.verb.check_version(*version)?;
    Network::new(document, *version)
}

/// Reads standard input, up to the maximum length of a network configuration.
fn read_input() -> Result<Vec<u8>, Failure> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(Failure::new(
            fail::IO,
            "standard input is a terminal",
            "the network configuration comes from standard input: ipam-cni < network.conf",
        ));
    }
    read_bounded(input.lock())
}

/// Reads all of `input`, or refuses it.
///
/// # Errors
/// Code 5 if it can't be read, code 6 if it is too long.
pub fn read_bounded(input: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let longest = u64::try_from(CNI_STDIN_BYTES_MAX).unwrap_or(u64::MAX);
    input.take(longest + 1).read_to_end(&mut bytes).map_err(|error| {
        Failure::new(fail::IO, "the network configuration can't be read", error.to_string())
    })?;
    if bytes.len() > CNI_STDIN_BYTES_MAX {
        return Err(Failure::new(
            fail::DECODE,
            "the network configuration is too long",
            format!("at most {CNI_STDIN_BYTES_MAX} bytes are read"),
        ));
    }
    Ok(bytes)
}

/// Writes to standard output. `println!` would panic if the reader has closed the pipe.
pub(crate) fn write_all(bytes: &[u8]) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Writes a warning to standard error, for the runtime's log. Failures are ignored.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "ipam-cni: {}", ipam_api::screen::clean(text));
}
