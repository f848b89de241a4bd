//! The agent's command line: examples, wrong configurations, and the report without a running agent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use ipam_api::agent::{DoctorReport, Verdict};
use ipam_api::problem::exit;

fn run(arguments: &[&str], config: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipam-agent"));
    command.env_clear().args(arguments);
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_has_examples() {
    let output = run(&["--help"], None);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("Examples:\n  ipam-agent serve"));
}

#[test]
fn a_wrong_configuration_ends_the_agent_with_file_and_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    for (content, key) in [
        (None, "No such file"),
        (Some("servers = []"), "servers is empty"),
        (Some("server = [\"http://127.0.0.1:1\"]"), "unknown field `server`"),
        (
            Some("servers = [\"ftp://x\"]\nstate_dir = \"STATE\"\nsocket = \"STATE/s\""),
            "not a server address",
        ),
    ] {
        if let Some(content) = content {
            let state = dir.path().join("state");
            std::fs::write(&file, content.replace("STATE", state.to_str().unwrap())).unwrap();
        }
        let output = run(&["serve"], Some(&file));
        assert_eq!(output.status.code(), Some(1), "{content:?}");
        let message = text(&output.stderr);
        assert!(message.contains(key), "{content:?}: {message}");
    }
    assert_eq!(run(&["doctor"], Some(&dir.path().join("none"))).status.code(), Some(exit::USAGE.into()));
}

#[test]
fn the_example_has_the_defaults() {
    let example = include_str!("../../../deploy/ipam-agent.example.toml");
    // Settings with a default are comments there: `#key = value`.
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) && rest.contains(" = ") => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    let all: Vec<String> = example.lines().map(uncommented).collect();
    let dir = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        ipam_agent::config::Config::read(&file).unwrap()
    };
    let (plain, full) = (read("plain", example), read("full", &all.join("\n")));
    assert_ne!(all.join("\n"), example.trim_end(), "some settings are comments");
    assert_eq!(plain.socket, full.socket);
    assert_eq!(plain.state_dir, full.state_dir);
    assert_eq!(plain.heartbeat_interval, full.heartbeat_interval);
    assert_eq!(plain.inventory_interval, full.inventory_interval);
    assert_eq!(plain.orphan_grace, full.orphan_grace);
    assert_eq!((plain.status_policy, plain.status_grace), (full.status_policy, full.status_grace));
    assert_eq!((plain.probes, plain.links), (full.probes, full.links));
}

#[test]
fn the_sections_of_the_example_are_settings() {
    let example = include_str!("../../../deploy/ipam-agent.example.toml");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    for section in ["[[link]]", "[kubernetes]"] {
        let (_, rest) = example.split_once(&format!("# {section}\n")).unwrap();
        let keys = rest.lines().map_while(|line| line.strip_prefix("# "));
        let keys: Vec<&str> = keys.take_while(|line| line.contains(" = ")).collect();
        assert!(keys.len() >= 3, "{section}: {keys:?}");
        std::fs::write(&file, format!("servers = [\"http://127.0.0.1:1\"]\n{section}\n{}", keys.join("\n")))
            .unwrap();
        let config = ipam_agent::config::Config::read(&file).unwrap();
        assert_eq!(config.unknown_pod, ipam_agent::config::UnknownPod::Refuse);
        assert!(!config.links.is_empty() || config.kubernetes.is_some(), "{section}");
    }
}

#[test]
fn the_sections_of_hosts_in_the_example_are_the_defaults() {
    let example = include_str!("../../../deploy/ipam-agent.example.toml");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    let section = |section: &str| {
        let (_, rest) = example.split_once(&format!("# {section}\n")).unwrap();
        let keys = rest.lines().map_while(|line| line.strip_prefix("# "));
        let keys: Vec<&str> = keys.take_while(|line| line.contains(" = ")).collect();
        format!("{section}\n{}\n", keys.join("\n"))
    };
    let read = |text: String| {
        std::fs::write(&file, format!("servers = [\"http://127.0.0.1:1\"]\n{text}")).unwrap();
        ipam_agent::config::Config::read(&file).unwrap().host.unwrap()
    };
    let interface = section("[[interface]]");
    let (full, plain) = (read(section("[host]") + &interface), read(interface));
    assert_eq!(format!("{full:?}"), format!("{plain:?}"));
    assert_eq!(full.interfaces.len(), 1);
}

#[test]
fn doctor_without_an_agent_names_what_fails_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    let socket = dir.path().join("none.sock");
    // Port 1 has no listener.
    std::fs::write(&file, format!("servers = [\"http://127.0.0.1:1\"]\nsocket = {socket:?}")).unwrap();
    let output = run(&["doctor", "-o", "json"], Some(&file));
    assert_eq!(output.status.code(), Some(exit::FOUND.into()));
    let report: DoctorReport = serde_json::from_slice(&output.stdout).unwrap();
    let failed: Vec<&str> = report
        .checks
        .iter()
        .filter(|check| check.verdict == Verdict::Failed)
        .map(|check| {
            assert!(!check.help.is_empty(), "{check:?}");
            check.name.as_str()
        })
        .collect();
    assert_eq!(failed, ["socket", "server"]);
    let table = run(&["doctor"], Some(&file));
    assert!(text(&table.stdout).starts_with("FAILED   socket"), "{}", text(&table.stdout));
}
