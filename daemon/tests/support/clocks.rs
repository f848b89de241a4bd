//! Controlled wall clocks: libfaketime, preloaded into a dynamic build. Monotonic clocks stay true, as on a
//! machine whose time is set.

use std::path::Path;
use std::process::Command;

use super::{member, programs};

/// Paths of Debian's package libfaketime.
const PLACES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];

/// `ipamd serve` by a wall clock that follows a file: `+0`, `+365d`, `-30d`, `+0 x1000`.
pub(crate) fn serve_by(clock: &Path) -> Command {
    let library = PLACES.iter().find(|place| Path::new(place).exists());
    let library = library.expect("libfaketime is missing; install it: apt-get install libfaketime");
    let mut command = member::serve_with(&programs::testing_ipamd());
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", clock);
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    command.env("DONT_FAKE_MONOTONIC", "1").env("FAKETIME_DONT_RESET", "1");
    command
}

/// Sets a clock, at once and as a whole: it is read all the time.
pub(crate) fn set(clock: &Path, how: &str) {
    let aside = clock.with_extension("aside");
    std::fs::write(&aside, format!("{how}\n")).unwrap();
    std::fs::rename(aside, clock).unwrap();
}
