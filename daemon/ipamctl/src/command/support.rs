//! `ipamctl support bundle`: one file for support, without any secret.
//!
//! The command uploads nothing. The bundle and the output list its contents.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use futures::future::join_all;
use ipam_api::brand::AGENT_SOCKET;
use ipam_api::client::{Call, Client};
use ipam_api::limits::BODY_BYTES_MAX;
use ipam_api::time::Timestamp;
use serde_json::json;

use crate::client::session::Session;
use crate::command::status::{self, DEADLINE};
use crate::output::error::Failure;
use crate::output::file;

pub(crate) const EXAMPLES: &str = "Examples:\n  ipamctl support bundle ipamd.tar";

/// Requests to every server: the name in the bundle, the path, the description.
const ASKED: [(&str, &str, &str); 6] = [
    (
        "cluster.json",
        "/v1/cluster?consistency=stale",
        "members, leader, revision and counts, as seen by this server",
    ),
    ("version.json", "/version", "its version"),
    ("ready.txt", "/readyz", "readiness, or the reason against it"),
    ("metrics.txt", "/metrics", "its counters and durations"),
    ("pools.json", "/v1/pools?consistency=stale&limit=1000", "its pools with their counts"),
    (
        "events.json",
        "/v1/events?consistency=stale&reverse=true&limit=1000",
        "the latest events with their principals",
    ),
];

/// Verbs for support.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write diagnostics of every reachable server to one tar file; no secrets, no upload
    #[command(
        after_help = "Examples:\n  ipamctl support bundle ipamd.tar\n  ipamctl support bundle ipamd.tar --timeout 3s"
    )]
    Bundle(BundleArguments),
}

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub(crate) struct BundleArguments {
    /// File to create; an existing file is not overwritten
    file: PathBuf,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Bundle(arguments) => bundle(session, &arguments.file).await,
    }
}

/// A file of the bundle: its name and its bytes.
type Piece = (String, Vec<u8>);

async fn bundle(session: &Session, path: &Path) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::file(path, "written", error, "Name another file.");
    if session.writing.dry_run {
        session.say(&manifest(session, &status::known_servers(session).await));
        return Ok(());
    }
    let made = file::create(path, file::PRIVATE).map_err(cannot)?;
    let servers = status::known_servers(session).await;
    let deadline = session.reading.timeout.min(DEADLINE);
    let asked = join_all(servers.iter().map(|server| ask(session, server))).await;
    let mut pieces = vec![
        ("README.txt".to_owned(), manifest(session, &servers).into_bytes()),
        ("client.json".to_owned(), client(&servers, session.now())),
        ("agent.json".to_owned(), agent(Path::new(AGENT_SOCKET), deadline).await),
    ];
    let answered = asked.iter().filter(|(_, answered)| *answered > 0).count();
    pieces.extend(asked.into_iter().flat_map(|(pieces, _)| pieces));
    write(made, &pieces, session.now()).map_err(cannot)?;
    session.print(&manifest(session, &servers))?;
    session.say(&format!(
        "{}: {} files from {answered} of {} servers",
        path.display(),
        pieces.len(),
        servers.len()
    ));
    Ok(())
}

/// Table of contents of the bundle, as text.
fn manifest(session: &Session, servers: &[String]) -> String {
    let mut text = format!(
        "ipamctl {} asked {} at {}.\n\nclient.json: the version of ipamctl and the servers queried\n\
         agent.json: the report of the agent of this machine (ipam-agent doctor), if it has one\n",
        env!("CARGO_PKG_VERSION"),
        if servers.len() == 1 { "1 server".to_owned() } else { format!("{} servers", servers.len()) },
        session.now(),
    );
    text.push_str("of each server, in a directory of its name:\n");
    for (name, _, what) in ASKED {
        text.push_str(&format!("  {name:<13} {what}\n"));
    }
    text.push_str(
        "\nThe bundle contains names, addresses and principals, but no tokens, keys, certificates or configuration.\n",
    );
    text
}

fn client(servers: &[String], now: Timestamp) -> Vec<u8> {
    json!({"ipamctl": env!("CARGO_PKG_VERSION"), "at": now, "servers": servers}).to_string().into_bytes()
}

/// Report of this machine's agent, or the reason for its absence. An absent agent is no error.
async fn agent(socket: &Path, deadline: Duration) -> Vec<u8> {
    let none = |why: &dyn Display| format!("no report of {}: {why}\n", socket.display()).into_bytes();
    if let Err(error) = std::fs::symlink_metadata(socket) {
        return none(&error);
    }
    let answer = match Client::over_socket(socket) {
        Ok(client) => client.send(Call::get(ipam_api::agent::DOCTOR_PATH).within(deadline)).await,
        Err(problem) => Err(problem),
    };
    match answer {
        Ok(answer) if answer.body.len() <= BODY_BYTES_MAX => answer.body,
        Ok(_) => none(&format!("it is longer than {BODY_BYTES_MAX} bytes")),
        Err(problem) => none(&problem),
    }
}

/// All diagnostics of one server, with the number of answered calls. A failed call is recorded with its
/// error.
async fn ask(session: &Session, server: &str) -> (Vec<Piece>, usize) {
    let folder: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' })
        .collect();
    let deadline: Duration = session.reading.timeout.min(DEADLINE);
    let answers = join_all(ASKED.iter().map(|(name, path, _)| async move {
        (name, session.ask_one(server, Call::get(*path).within(deadline)).await)
    }))
    .await;
    let mut answered = 0;
    let pieces = answers.into_iter().map(|(name, answer)| {
        let bytes = match answer {
            Ok(answer) => {
                answered += 1;
                answer.body
            }
            Err(problem) => format!("no answer: {problem}\n").into_bytes(),
        };
        (format!("{folder}/{name}"), bytes)
    });
    (pieces.collect(), answered)
}

fn write(file: std::fs::File, pieces: &[Piece], now: Timestamp) -> std::io::Result<()> {
    let mut archive = tar::Builder::new(file);
    for (name, bytes) in pieces {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now.0 / 1000);
        archive.append_data(&mut header, name, bytes.as_slice())?;
    }
    let mut file = archive.into_inner()?;
    file.flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use ipam_api::limits::BODY_BYTES_MAX;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::command::status::DEADLINE;
    use crate::settings::environment::Environment;
    use crate::tests::world::world;
    use crate::tests::{code, pretend, run_within};

    /// Report of an agent that sends this body.
    async fn reported(body: String) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).await.unwrap();
            assert!(head[..read].starts_with(b"GET /v1/doctor HTTP/1.1\r\n"));
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
            // Closed by the reader.
            let _ = stream.read(&mut head).await;
        });
        String::from_utf8(super::agent(&path, DEADLINE).await).unwrap()
    }

    #[tokio::test]
    async fn the_report_of_the_agent_is_optional_and_bounded() {
        assert_eq!(reported(r#"{"checks":[]}"#.to_owned()).await, r#"{"checks":[]}"#);
        let long = reported("x".repeat(BODY_BYTES_MAX + 1)).await;
        assert!(long.contains("it is longer than"), "{} bytes", long.len());
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent.sock");
        let none = String::from_utf8(super::agent(&socket, DEADLINE).await).unwrap();
        assert!(none.starts_with("no report of ") && none.contains("No such file"), "{none}");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let none = super::agent(&socket, std::time::Duration::from_secs(1)).await;
        assert!(String::from_utf8(none).unwrap().contains("refused"), "a socket without a process");
    }

    #[tokio::test]
    async fn it_has_what_servers_say_and_no_secret() {
        let (server, _) = pretend(world).await;
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "s3cret-word").unwrap();
        let file = folder.path().join("bundle.tar");
        let line = format!(
            "-q --server {server},http://127.0.0.1:1 --token-file {} support bundle {}",
            token.display(),
            file.display()
        );
        let (result, said) = run_within(&Environment::default(), &line).await;
        assert_eq!(code(&result), 0, "{result:?}");
        assert!(said.contains("no tokens") && said.contains("metrics.txt"), "{said}");
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"s3cret"));
        let mut names = Vec::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            if name.ends_with("cluster.json") && !name.contains("127.0.0.1_1/") {
                assert!(text.contains("7f3c-91aa"), "{name}: {text}");
            }
            if name.contains("127.0.0.1_1/") {
                assert!(text.starts_with("no answer: "), "{name}: {text}");
            }
            names.push(name);
        }
        assert_eq!(names.len(), 3 + 2 * super::ASKED.len(), "{names:?}");
        assert!(names.contains(&"agent.json".to_owned()), "{names:?}");
        let (again, _) = run_within(&Environment::default(), &line).await;
        assert_eq!(code(&again), 2, "nothing is written over");
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
}
