//! `ipam-agent`: serves the CNI plugin of a node.

use std::process::ExitCode;

use clap::Parser as _;
use ipam_agent::command_line::Arguments;
use rustix::fs::Mode;
use rustix::process::umask;

fn main() -> ExitCode {
    // Other users have no access to the journal and the token.
    umask(Mode::RWXG.union(Mode::RWXO));
    Arguments::parse().run()
}
