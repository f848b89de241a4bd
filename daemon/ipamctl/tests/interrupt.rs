//! Ctrl-C: waiting ends at once, says what may still happen, and exits with 130.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn start(server: &str, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipamctl"));
    command.args(["--server", server]).args(words);
    command.env_remove("IPAM_CONTEXT").env("XDG_CONFIG_HOME", "/nowhere");
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Presses Ctrl-C and returns the last words.
fn interrupted(mut child: Child) -> String {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // Standard input stays open: the end of it would end the wait, too.
    let (input, mut said) = (child.stdin.take(), String::new());
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    said
}

#[test]
fn interrupted_is_130() {
    for (words, said) in [
        (&["pool", "list"][..], "nothing was changed"),
        (&["status", "--wait", "1m"], "nothing was changed"),
        (&["pool", "create", "web", "--subnet", "lan"], "may still be applied"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let child = start(&server, words);
        // A client that has connected waits for an answer, and there won't be one.
        let connection = listener.accept().unwrap();
        let last = interrupted(child);
        assert!(last.contains(said), "{words:?}: {last}");
        drop(connection);
    }
}

#[test]
fn waiting_for_standard_input_is_interrupted() {
    let child = start("http://127.0.0.1:1", &["apply", "-f", "-"]);
    let status = format!("/proc/{}/status", child.id());
    // Until then the signal would end any program.
    let caught = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & 0b10 != 0
    };
    while !caught() {
        std::thread::yield_now();
    }
    assert!(interrupted(child).contains("nothing was changed"));
}
