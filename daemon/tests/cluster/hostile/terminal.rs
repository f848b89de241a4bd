//! Terminal codes in all foreign text: names, texts, headers, files, a hostile server. None of them reaches
//! standard output, standard error or the log.

use std::net::SocketAddr;
use std::process::{Command, Output};

use ipam_api::client::Client;
use ipam_api::screen::is_harmless;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::support::ask::{allocate, allocate_request, make_pools};
use crate::support::raw::{ask, send};
use crate::support::{Cluster, programs};

/// Clears the screen, names the window, hides text, turns it around, ends lines.
const NASTY: &str =
    "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{8}\u{7f}\r\u{202e}b\u{2066}c\u{200f}\u{61c}\u{2028}\u{85}d";

#[track_caller]
fn check(what: &str, output: &Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        let harmful = text.chars().find(|one| !is_harmless(*one));
        assert!(harmful.is_none(), "{what}: {harmful:?} in {text:?}");
    }
}

fn ipamctl(server: &str, line: &[&str]) -> Output {
    let output = Command::new(programs::ipamctl())
        .args(["--server", server, "--timeout", "3s", "--no-input", "--color", "always"])
        .args(line)
        .env_clear()
        .output()
        .unwrap();
    // Our own colours are wanted, and nothing else of the kind.
    let plain = |bytes: Vec<u8>| {
        let colours = ["\u{1b}[1;31m", "\u{1b}[1;32m", "\u{1b}[1;33m", "\u{1b}[0m"];
        let text = String::from_utf8(bytes).unwrap();
        colours.iter().fold(text, |text, colour| text.replace(colour, "")).into_bytes()
    };
    Output { stdout: plain(output.stdout), stderr: plain(output.stderr), ..output }
}

/// Kinds of harm that a server may do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Harm {
    /// Codes in texts that people write.
    Texts,
    /// Codes in every word of its answers.
    Words,
    /// Codes in a refusal.
    Problem,
    /// An answer that is no JSON.
    Nonsense,
}

/// Puts codes into the texts of an answer, or into all of its words.
fn spoil(value: &mut Value, harm: Harm, field: &str) {
    const TEXTS: [&str; 16] = [
        "description",
        "comment",
        "reason",
        "message",
        "detail",
        "help",
        "created_by",
        "updated_by",
        "principal",
        "managed_by",
        "request_id",
        "version",
        "hostname",
        "via",
        "from",
        "to",
    ];
    match value {
        Value::String(text) if harm == Harm::Words || TEXTS.contains(&field) => text.push_str(NASTY),
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, harm, field)),
        Value::Object(fields) => {
            if ["labels", "annotations"].contains(&field) {
                fields.insert(format!("x{NASTY}"), NASTY.into());
            }
            fields.iter_mut().for_each(|(name, value)| spoil(value, harm, name));
        }
        _ => {}
    }
}

/// Answers as a member does, but for the harm.
async fn answer(mut client: TcpStream, member: SocketAddr, harm: Harm) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if client.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match harm {
        Harm::Problem => {
            let error = json!({"pointer": NASTY, "code": "invalid-field", "detail": NASTY});
            let problem = json!({
                "type": NASTY, "title": NASTY, "status": 422, "code": "internal", "detail": NASTY, "help": NASTY,
                "retry": "never", "applied": "no", "request_id": NASTY, "errors": [error, error],
            });
            (500, problem.to_string())
        }
        Harm::Nonsense => (200, format!("{NASTY} {{\"a\": {NASTY}")),
        Harm::Texts | Harm::Words => {
            let real = ask(member, method, path, &[], &Value::Null).await;
            let mut body: Value = serde_json::from_str(&real.body).unwrap_or(Value::Null);
            spoil(&mut body, harm, "");
            (real.status, body.to_string())
        }
    };
    let reply = format!(
        "HTTP/1.1 {status} {NASTY}\r\ncontent-type: application/json\r\nrevision: 9\r\nserver: \u{202e}\u{9b}x\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // The reason is the only word here that a line end would end.
    let reply = reply.replacen(NASTY, &NASTY.replace(['\r', '\u{1b}', '\u{7}', '\u{8}', '\u{7f}'], ""), 1);
    let _ = client.write_all(reply.as_bytes()).await;
}

async fn server(member: SocketAddr, harm: Harm) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(answer(client, member, harm));
        }
    });
    url
}

const COMMANDS: [&str; 22] = [
    "status",
    "version",
    "cluster members",
    "cluster epoch",
    "network list",
    "network show default",
    "subnet list",
    "subnet show lan",
    "pool list",
    "pool show web",
    "pool map web",
    "node list",
    "namespace list",
    "endpoint list",
    "endpoint show host/a",
    "allocation list",
    "prefix list",
    "token list",
    "events",
    "who-has 10.7.0.1",
    "explain --endpoint host/b --pool web",
    "pool delete web --yes --dry-run",
];
const FORMATS: [&str; 6] = ["table", "wide", "yaml", "csv", "name", "json"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardening_10_no_answer_of_any_server_brings_a_code_to_the_terminal() {
    let cluster = Cluster::up(1).await;
    let member = &cluster.members[0];
    make_pools(&cluster.ask()).await;
    allocate(&cluster.ask(), &allocate_request("a", &["web"])).await.unwrap();
    let harms = [Harm::Texts, Harm::Words, Harm::Problem, Harm::Nonsense];
    let mut shown = 0;
    for harm in harms {
        let url = server(member.client, harm).await;
        for command in COMMANDS {
            for format in FORMATS {
                let mut line: Vec<&str> = command.split(' ').collect();
                line.extend(["-o", format]);
                let url = url.clone();
                let owned: Vec<String> = line.iter().map(ToString::to_string).collect();
                let run = move || ipamctl(&url, &owned.iter().map(String::as_str).collect::<Vec<_>>());
                let output = tokio::task::spawn_blocking(run).await.unwrap();
                check(&format!("{harm:?} {line:?}"), &output);
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                shown += usize::from(text.contains('\u{fffd}') || text.contains("\\u202e"));
            }
        }
    }
    assert!(shown > 40, "the server's texts were shown {shown} times only");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardening_10_what_people_wrote_brings_no_code_to_the_terminal() {
    let cluster = Cluster::up(1).await;
    let url = cluster.members[0].url();
    // The server takes what is no control character.
    let nasty = "turned \u{202e}around\u{2066} \u{200f}\u{61c}\u{2028}";
    let body =
        json!({"name": "a", "description": nasty, "labels": {"k": "v"}, "annotations": {"note": nasty}});
    let headers = [("change-comment", nasty), ("request-id", nasty)];
    assert_eq!(ask(cluster.members[0].client, "POST", "/v1/networks", &headers, &body).await.status, 201);
    for line in
        ["network list -o wide", "network show a", "events", "network list -o yaml", "network show a -o json"]
    {
        let line: Vec<&str> = line.split(' ').collect();
        let output = ipamctl(&url, &line);
        assert!(output.status.success(), "{output:?}");
        check(&format!("{line:?}"), &output);
    }
    // JSON says it all the same.
    let json: Value =
        serde_json::from_slice(&ipamctl(&url, &["network", "show", "a", "-o", "json"]).stdout).unwrap();
    assert_eq!(json["description"], nasty);
}

#[test]
fn hardening_10_words_and_files_of_the_command_line_bring_no_code_to_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(NASTY.replace('/', ""));
    std::fs::write(&file, format!("kind: pool\nname: {NASTY}\n{NASTY}: 5\n")).unwrap();
    let file = file.to_str().unwrap();
    let nowhere = "http://127.0.0.1:9";
    let lines: [&[&str]; 12] = [
        &[NASTY],
        &["pool", "show", NASTY],
        &["pool", "list", "--limit", NASTY],
        &["endpoint", "show", NASTY],
        &["events", "--since", NASTY],
        &["apply", "-f", file],
        &["apply", "-f", NASTY],
        &["token", "rotate", "a", "--yes", "--to-file", &format!("/nowhere/{NASTY}")],
        &["--token-file", NASTY, "status"],
        &["--ca-file", file, "status"],
        &["cluster", "backup", "--verify", file],
        &["explain", NASTY],
    ];
    for line in lines {
        let output = ipamctl(nowhere, line);
        assert!(!output.status.success(), "{line:?}");
        check(&format!("{line:?}"), &output);
    }
    check("the name of a server", &ipamctl(&format!("http://{NASTY}"), &["status"]));
    let config = dir.path().join(format!("{}.toml", NASTY.replace('/', "")));
    for text in
        [format!("\"{}\" = 1", NASTY.escape_unicode()), format!("name = \"{NASTY}\""), NASTY.to_owned()]
    {
        std::fs::write(&config, text.replace("\\u{", "\\U{")).unwrap();
        for words in [&["check-config", "--config"][..], &["serve", "--config"]] {
            let output =
                Command::new(programs::ipamd()).args(words).arg(&config).env_clear().output().unwrap();
            assert!(!output.status.success());
            check(&format!("{words:?} {text:?}"), &output);
        }
    }
    for words in [&["serve", NASTY][..], &["check-journal", "--data-dir", NASTY], &["restore", NASTY, NASTY]]
    {
        let output = Command::new(programs::ipamd()).args(words).env_clear().output().unwrap();
        check(&format!("{words:?}"), &output);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardening_10_no_request_brings_a_code_into_the_log() {
    let cluster = Cluster::of(1);
    let config = std::fs::read_to_string(cluster.config()).unwrap();
    std::fs::write(cluster.config(), config.replace("log = \"info\"", "log = \"trace\"")).unwrap();
    let cluster = cluster.all_up().await;
    let member = &cluster.members[0];
    for head in [
        format!("GET /{NASTY} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
        "GET /v1/pools/%1b%5b2J%e2%80%ae HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: localhost\r\nrequest-id: \u{202e}\u{9b}\r\nconnection: close\r\n\r\n"
            .to_owned(),
        "GET /livez HTTP/1.1\r\nhost: localhost\r\ntraceparent: \u{202e}\u{9b}\r\nconnection: close\r\n\r\n"
            .to_owned(),
        "GET /livez HTTP/1.1\r\nhost: \u{202e}\u{9b}\r\nconnection: close\r\n\r\n".to_owned(),
    ] {
        let _ = send(member.client, head.as_bytes()).await;
    }
    let address = member.peer_address();
    let mut peer = UnixStream::connect(address.strip_prefix("unix:").unwrap()).await.unwrap();
    let _ = peer.write_all(NASTY.repeat(50).as_bytes()).await;
    let body = json!({"name": "a", "description": NASTY});
    ask(member.client, "POST", "/v1/networks", &[("change-comment", "\u{202e}x")], &body).await;
    let _ = Client::with(&[member.url()], &member.options());
    let log = member.logged();
    assert!(log.contains("answered"), "{log}");
    let harmful = log.chars().find(|one| !is_harmless(*one));
    assert!(harmful.is_none(), "{harmful:?}");
}

/// The log quotes errors of the environment; a member without its port reports that and exits.
#[test]
fn hardening_10_names_in_the_environment_bring_no_code_into_the_log() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let listen = taken.local_addr().unwrap().to_string();
    let output = Command::new(programs::ipamd())
        .args(["serve", "--name", "n1", "--client-listen", &listen, "--data-dir"])
        .arg(&data_dir)
        .env_clear()
        .env("IPAMD_\u{202e}\u{9b}31mX", "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("WARN") && log.contains("31mX"), "{log}");
    check("the log", &output);
}
