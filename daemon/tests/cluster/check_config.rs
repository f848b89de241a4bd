//! `ipamd check-config`: validity of a configuration, its effective settings and their sources.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::programs;
use crate::support::tls::{Ca, Holder};

const SECRET_HASH: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

fn check(dir: &Path, text: &str, environment: &[(&str, &str)], flags: &[&str]) -> Output {
    let file = dir.join("ipamd.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(programs::ipamd());
    command.arg("check-config").arg("--config").arg(file).args(flags);
    command.env_clear().envs(environment.iter().copied()).output().unwrap()
}

#[track_caller]
fn refused(output: &Output, words: &str) {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(printed.starts_with("ipamd: ") && printed.contains(words), "{words:?} is not in {printed}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn effective_settings_are_listed_with_their_sources() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.toml");
    std::fs::write(
        &tokens,
        format!("[[token]]\nname = \"ci\"\nrole = \"viewer\"\nsecret_hash = \"{SECRET_HASH}\"\n"),
    )
    .unwrap();
    let text = format!("name = \"n1\"\nlog = \"warn\"\n[access]\ntokens_file = {tokens:?}\n");
    let environment = [("IPAMD_LOG", "debug"), ("IPAMD_DATA_DIR", "/d"), ("IPAMD_PORT", "tcp://10.0.0.1:1")];
    let checked = check(dir.path(), &text, &environment, &["--data-dir", "/elsewhere"]);
    let printed = String::from_utf8(checked.stdout).unwrap();
    let warned = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(0), "{printed}{warned}");
    let lines: Vec<String> =
        printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "name = n1 (file)",
        "log = debug (environment)",
        "data_dir = /elsewhere (flag)",
        "client_listen = 127.0.0.1:7440 (default)",
        "initial_members = n1 (default)",
        "peer_listen = - (default)",
        "The configuration is valid.",
    ] {
        assert!(lines.iter().any(|one| one == line), "{line:?} is not in {printed}");
    }
    assert!(!printed.contains(SECRET_HASH) && !warned.contains(SECRET_HASH));
    assert!(warned.contains("\"IPAMD_PORT\" in the environment is not an ipamd setting"), "{warned}");

    // A tokens file that `serve` would refuse: an unknown key, no hash, or a missing file.
    for (content, words) in [
        ("[[token]]\nname = \"ci\"\nroles = \"viewer\"\n", "unknown field `roles`"),
        (
            "[[token]]\nname = \"ci\"\nrole = \"viewer\"\nsecret_hash = \"swordfish\"\n",
            "64 hexadecimal digits",
        ),
    ] {
        std::fs::write(&tokens, content).unwrap();
        let checked = check(dir.path(), &text, &[], &[]);
        refused(&checked, words);
        assert!(!String::from_utf8_lossy(&checked.stderr).contains("swordfish"));
    }
    std::fs::remove_file(&tokens).unwrap();
    refused(&check(dir.path(), &text, &[], &[]), "access.tokens_file");
    refused(&check(dir.path(), "name = \"n1\"\nlog = \"ipam=loud\"", &[], &[]), "log: ");
}

#[test]
fn kubeconfigs_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kubeconfig");
    for section in ["kubernetes", "cluster_api"] {
        let text = format!("name = \"n1\"\n[[{section}]]\nrealm = \"eu\"\nkubeconfig = {file:?}\n");
        refused(&check(dir.path(), &text, &[], &[]), &format!("{section}.kubeconfig"));
        std::fs::write(&file, "{}").unwrap();
        let checked = check(dir.path(), &text, &[], &[]);
        let printed = String::from_utf8_lossy(&checked.stdout);
        let shows =
            |line: &str| line.split_whitespace().collect::<Vec<_>>() == [section, "=", "eu", "(file)"];
        assert!(checked.status.success() && printed.lines().any(shows), "{checked:?}");
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn certificates_are_read_strictly() {
    let dir = tempfile::tempdir().unwrap();
    let ca = Ca::new(dir.path().join("ca"));
    let [good, other] = ["n1", "n2"].map(|name| ca.member(name, "127.0.0.1"));
    let key = good.key.clone();
    let config = |section: &str, certificate: &Path, key: &Path, ca: &str| {
        format!("name = \"n1\"\n[{section}]\ncertificate = {certificate:?}\nkey = {key:?}\n{ca}")
    };
    let members_ca = format!("ca = {:?}", ca.certificate());
    for section in ["tls", "peer_tls"] {
        let with = |holder: &Holder, key: &Path| {
            let ca = if section == "tls" { "" } else { &members_ca };
            check(dir.path(), &config(section, &holder.certificate, key, ca), &[], &[])
        };
        let checked = with(&good, &key);
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        assert!(!String::from_utf8_lossy(&checked.stdout).contains("PRIVATE KEY"));
        refused(&with(&other, &key), "certificate");
        refused(&with(&good, &ca.certificate()), "no private key");
        let missing = Holder { certificate: dir.path().join("none.crt"), ..good.clone() };
        refused(&with(&missing, &key), "none.crt");
        let expired = ca.expired("n1.member.ipamd.internal");
        refused(&with(&expired, &expired.key), "expired");
    }
}
