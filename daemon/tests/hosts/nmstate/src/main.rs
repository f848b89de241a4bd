//! Reads a desired state from standard input and checks it; with `apply` it is applied, too.
//!
//! NetworkManager is not needed. What nmstate can't do without it is left out: name servers are not
//! configured, and the verification of matches by MAC address is skipped (`apply-unverified`).

use std::io::Read as _;
use std::process::ExitCode;

use nmstate::{DnsState, NetworkState};

fn main() -> ExitCode {
    let mode = std::env::args().nth(1);
    match run(mode.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(mode: Option<&str>) -> Result<(), String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let mut state = NetworkState::new_from_yaml(&text).map_err(|error| error.to_string())?;
    let is_verified = match mode {
        None => return Ok(()),
        Some("apply") => true,
        Some("apply-unverified") => false,
        Some(other) => return Err(format!("{other} is no mode; the modes are apply and apply-unverified")),
    };
    state.dns = DnsState::default().into();
    state.set_kernel_only(true);
    state.set_verify_change(is_verified);
    state.apply().map_err(|error| error.to_string())
}
