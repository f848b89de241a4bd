//! Contracts of the project, each a committed text file in `api/contracts/` that reviewers see change.
//! `UPDATE=1 cargo nextest run -p ipamd contracts::` writes them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ipam_api::Code;
use ipam_api::access::{DEEDS, Effect, Limit, Role, effect, may};
use ipam_api::limits::ALL as LIMITS;
use ipam_api::problem::exit;
use ipam_api::resource::{COLLISION_MEANING, IP_COLLISION, TWO_STATIONS};
use ipam_machine::event::{NAMES, Readiness};
use ipamd::config::{ENVIRONMENT_NAMES, MERIDIO_ENVIRONMENT_NAMES};
use ipamd::metrics::Metrics;

/// Compares a contract with its file, or writes the file.
#[track_caller]
fn hold(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/contracts").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        written == text,
        "{file} is a contract and would change: {differs:?}\nIf that is meant: UPDATE=1 cargo nextest run -p \
         ipamd contracts::, and say in CHANGELOG.md who is affected."
    );
}

#[test]
fn problems() {
    let mut text = "# code | HTTP | CNI | gRPC | exit | retry | title | help\n".to_owned();
    for code in Code::ALL {
        let entry = code.entry();
        let retry = format!("{:?}", entry.retry).to_lowercase();
        let _ = writeln!(
            text,
            "{} | {} | {} | {} | {} | {retry} | {} | {}",
            entry.code, entry.http, entry.cni, entry.grpc, entry.exit, entry.title, entry.help
        );
    }
    hold("problems.txt", &text);
}

#[test]
fn exit_codes() {
    let rows = [
        (exit::DONE, "done, or nothing to do"),
        (exit::REFUSED, "refused by a rule"),
        (exit::USAGE, "usage: flags, file syntax, local validation"),
        (exit::NOT_FOUND, "not found"),
        (exit::RACED, "conflict: revision mismatch, or already exists"),
        (exit::UNAVAILABLE, "unavailable: nothing was changed, retrying is safe"),
        (exit::UNKNOWN, "outcome unknown: repeat with the printed idempotency key"),
        (exit::FOUND, "completed: differences or problems found"),
        (130, "interrupted"),
    ];
    let text: String = rows.iter().map(|(code, meaning)| format!("{code} | {meaning}\n")).collect();
    hold("exit-codes.txt", &format!("# exit code of ipamctl | meaning\n{text}"));
}

#[test]
fn roles() {
    let mut text = "# verb target | ".to_owned();
    text += &Role::ALL.map(Role::as_str).join(" | ");
    text += " | ";
    text += &Limit::ALL.map(|limit| format!("limit {}", limit.as_str())).join(" | ");
    text.push('\n');
    for (verb, target) in DEEDS {
        let cells = Role::ALL.map(|role| if may(role, *verb, *target) { "yes" } else { "-" });
        let limits = Limit::ALL.map(|limit| effect(limit, *verb, *target).as_str());
        let _ = writeln!(text, "{verb} {target} | {} | {}", cells.join(" | "), limits.join(" | "));
    }
    for effect in Effect::ALL {
        let _ = writeln!(text, "# {}: {}", effect.as_str(), effect.meaning());
    }
    hold("roles.txt", &text);
}

#[test]
fn limits() {
    let mut text = "# limit | value | meaning\n".to_owned();
    for limit in LIMITS {
        let _ = writeln!(text, "{} | {} | {}", limit.name, limit.value, limit.meaning);
    }
    hold("limits.txt", &text);
}

#[test]
fn events() {
    let text: String = NAMES.iter().map(|(name, meaning)| format!("{name} | {meaning}\n")).collect();
    hold("events.txt", &format!("# event | meaning\n{text}"));
}

#[test]
fn conditions() {
    let row = |readiness: &Readiness| {
        let status = if *readiness == Readiness::Serving { "True" } else { "False" };
        format!("pool | Ready | {status} | {} | {}\n", readiness.as_str(), readiness.meaning())
    };
    let text: String = Readiness::ALL.iter().map(row).collect();
    let collision = format!("pool | {IP_COLLISION} | True | {TWO_STATIONS} | {COLLISION_MEANING}\n");
    hold("conditions.txt", &format!("# of | type | status | reason | meaning\n{text}{collision}"));
}

#[test]
fn environment() {
    let lines = |names: &[(&str, &str)]| -> String {
        names.iter().map(|(name, key)| format!("{name} | {key}\n")).collect()
    };
    let own = lines(ENVIRONMENT_NAMES);
    let of_meridio = lines(MERIDIO_ENVIRONMENT_NAMES);
    let header = "# environment name of the daemon | key in its file";
    let more = "# environment name of Meridio's server, which enables the front end | key in the file";
    hold("environment.txt", &format!("{header}\n{own}{more}\n{of_meridio}"));
}

#[test]
fn metrics() {
    let mut text = "# metric | type | labels | meaning\n".to_owned();
    for metric in Metrics::new(true).catalogue() {
        let _ = writeln!(
            text,
            "{} | {} | {} | {}",
            metric.name,
            metric.kind,
            metric.labels.join(","),
            metric.help
        );
    }
    hold("metrics.txt", &text);
}

#[test]
fn command_line_of_the_daemon() {
    let mut text = String::new();
    let commands = [
        &["--help"][..],
        &["serve", "--help"],
        &["dev", "--help"],
        &["check-config", "--help"],
        &["check-journal", "--help"],
        &["kubernetes", "--help"],
        &["cluster-api", "--help"],
        &["hash-secret", "--help"],
    ];
    for words in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_ipamd"))
            .args(words)
            .env_clear()
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}");
        let _ = write!(text, "$ ipamd {}\n{}\n", words.join(" "), String::from_utf8(output.stdout).unwrap());
    }
    hold("ipamd-help.txt", &text);
}

#[test]
fn a_secret_is_hashed_as_a_tokens_file_takes_it() {
    let run = |input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ipamd"))
            .arg("hash-secret")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let hash = ipam_machine::command::secret_hash("ipamd_abc");
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(String::from_utf8(run("ipamd_abc\n").stdout).unwrap().trim(), digits);
    let refused = run("abc");
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stdout.is_empty());
}
