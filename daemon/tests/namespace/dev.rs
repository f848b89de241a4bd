//! `ipamd dev` as somebody runs it in a terminal.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::programs;

#[test]
fn ctrl_c_takes_away_all_that_was_made() {
    let mut dev = Command::new(programs::ipamd())
        .arg("dev")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(dev.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("Ctrl-C stops and removes everything")));
    // A terminal sends it to all processes of the group.
    kill_process_group(Pid::from_child(&dev), Signal::INT).unwrap();
    let after: Vec<String> = said.collect();
    assert_eq!((dev.wait().unwrap().code(), after), (Some(0), Vec::new()));
}
