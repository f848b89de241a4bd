//! `test-apiserver ADDRESS`: an API server without objects, for attempts by hand. Ends with its input.

use std::io::Read as _;
use std::process::ExitCode;

use test_apiserver::ApiServer;

fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let Ok(address) = address.parse() else {
        eprintln!("{address} is no address; example: test-apiserver 127.0.0.1:8001");
        return ExitCode::from(2);
    };
    let server = ApiServer::start_at(address, None);
    println!("{}", server.url());
    // The end of the input, and not a signal: whatever started it may be killed.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
