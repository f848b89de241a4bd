//! `test-apiserver ADDRESS [cluster-api]`: an API server without objects, for manual tests.
//!
//! With `cluster-api`, the server is a management cluster of Cluster API. It ends at the end of its input.

use std::io::Read as _;
use std::process::ExitCode;

use test_apiserver::{ApiServer, ClusterApi, ClusterApiVersion};

fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let Ok(address) = address.parse() else {
        eprintln!("{address} is no address; example: test-apiserver 127.0.0.1:8001");
        return ExitCode::from(2);
    };
    let server = ApiServer::start_at(address, None);
    if std::env::args().nth(2).is_some_and(|word| word == "cluster-api") {
        server.serve_cluster_api(ClusterApi::Both { storage: ClusterApiVersion::V1Beta2 });
    }
    println!("{}", server.url());
    // The end of the input also reports that the process that started this server was killed.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
