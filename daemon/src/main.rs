//! `ipamd`: serves a member of a cluster, or shows a whole cluster on this machine.

use std::process::ExitCode;

use clap::Parser as _;
use ipamd::command_line::Arguments;
use ipamd::screen;
use rustix::fs::Mode;
use rustix::process::umask;

/// Allocator of the whole program: several threads create and free millions of small rows of the state.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Permission bits that the umask removes from every new file: those of all users but the owner.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

fn main() -> ExitCode {
    umask(OTHERS);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if error.use_stderr() {
                // The error repeats text of the command line, which may contain control characters.
                screen::err(&error.render().to_string());
            } else {
                error.print().ok();
            }
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    arguments.run()
}
