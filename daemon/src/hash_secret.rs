//! `ipamd hash-secret`: hash of a secret for a tokens file. The secret comes from standard input, so that no
//! list of processes shows it.

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

use ipam_api::brand::SECRET_PREFIX;
use ipam_api::limits::TOKEN_BYTES_MAX;
use ipam_machine::command::secret_hash;

use crate::screen;

/// Reads a secret and prints its hash.
#[must_use]
pub fn main() -> ExitCode {
    match read() {
        Ok(secret) => {
            let digits: String = secret_hash(&secret).iter().map(|byte| format!("{byte:02x}")).collect();
            screen::out(&format!("{digits}\n"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            screen::err(&format!("ipamd: {why}\n"));
            ExitCode::from(2)
        }
    }
}

fn read() -> Result<String, String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err("the secret comes from standard input: ipamd hash-secret < FILE".to_owned());
    }
    let mut text = String::new();
    input.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let secret = text.trim();
    // A secret without the prefix is never looked up, so its token would be useless.
    if !secret.starts_with(SECRET_PREFIX) || text.len() as u64 > TOKEN_BYTES_MAX {
        return Err(format!("a secret begins with {SECRET_PREFIX} and has at most {TOKEN_BYTES_MAX} bytes"));
    }
    Ok(secret.to_owned())
}
