//! Filter for all output of the daemon, log included: names and errors may have control characters.

use std::io::{self, Write};

use ipam_api::screen::clean;

/// Writes to standard output. An error is not reported: there is no other place to report it.
pub(crate) fn out(text: &str) {
    let _ = io::stdout().write_all(clean(text).as_bytes());
}

/// Writes to standard error. An error is not reported: there is no other place to report it.
pub fn err(text: &str) {
    let _ = io::stderr().write_all(clean(text).as_bytes());
}

/// Standard error as the log writes to it: a whole line at once.
#[derive(Debug)]
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(clean(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
