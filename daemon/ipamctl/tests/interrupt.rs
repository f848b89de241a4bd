//! Ctrl-C: waiting ends at once, says what may still happen, and exits with 130.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

#[test]
fn interrupted_is_130() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipamctl"))
        .args(["--server", &server, "pool", "list"])
        .env_remove("IPAM_CONTEXT")
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Who has connected waits for an answer, and there won't be one.
    let (connection, _) = listener.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    drop(connection);
    assert_eq!(status.code(), Some(130));
    assert!(said.contains("nobody waits any more"), "{said}");
}
