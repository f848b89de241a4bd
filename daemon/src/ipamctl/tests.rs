//! The command line as a whole: its help, its words, and what it sends to a server that only pretends.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse as _;
use clap::{CommandFactory as _, Parser as _};
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::fail::Failure;
use crate::{dispatch, words};

/// Cuts a line into words as a shell does, as far as the examples need it.
fn split(line: &str) -> Vec<OsString> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(OsString::from).collect()
}

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(words::translate(split(line)).0)
}

fn walk(command: &clap::Command, visit: &mut impl FnMut(&clap::Command)) {
    visit(command);
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        walk(sub, visit);
    }
}

#[test]
fn the_grammar_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn every_command_has_examples_that_parse() {
    let mut examples = 0;
    walk(&Arguments::command(), &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, block) = after
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{} has no examples", command.get_name()));
        for line in block.lines() {
            let line = line.trim();
            assert!(line.starts_with("ipamctl "), "{line}");
            if let Err(error) = parse(line) {
                panic!("{line}\n{error}");
            }
            examples += 1;
        }
    });
    assert!(examples > 40, "{examples}");
}

#[test]
fn every_command_and_every_flag_says_what_it_is() {
    walk(&Arguments::command(), &mut |command| {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments().filter(|a| !a.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
        }
    });
}

#[test]
fn help_parses_for_every_noun_and_verb() {
    let mut command = Arguments::command();
    command.build();
    let mut paths = Vec::new();
    fn collect(command: &clap::Command, path: &str, paths: &mut Vec<String>) {
        paths.push(path.to_owned());
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            collect(sub, &format!("{path} {}", sub.get_name()), paths);
        }
    }
    collect(&command, "ipamctl", &mut paths);
    for path in paths {
        let error = parse(&format!("{path} --help")).unwrap_err();
        assert_eq!(error.exit_code(), 0, "{path}");
        assert!(error.to_string().contains("Examples:"), "{path}");
    }
}

#[test]
fn other_words_for_the_same() {
    for line in [
        "ipamctl pools ls",
        "ipamctl get pools",
        "ipamctl describe subnet lan-10",
        "ipamctl reservations rm printers",
        "ipamctl whois 10.0.0.1",
        "ipamctl vrf list",
        "ipamctl endpoints get host/a",
        "ipamctl -o json pool list",
        "ipamctl pool list -o json --server http://a:1,http://b:2 -n web",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}\n{error}");
        }
    }
    let several = parse("ipamctl pool list --server http://a:1,http://b:2").unwrap();
    assert_eq!(several.global.servers, ["http://a:1", "http://b:2"]);
}

#[test]
fn what_cannot_be_meant_is_usage() {
    for line in [
        "ipamctl pool create Web --subnet lan",
        "ipamctl pool create web --subnet lan --range 10.0.0.9-10.0.0.1",
        "ipamctl pool create web --subnet lan --cooling soon",
        "ipamctl pool set web --enable --disable",
        "ipamctl subnet create lan --cidr 10.0.0.1/24",
        "ipamctl subnet set lan --route 10.0.0.0/8",
        "ipamctl who-has nobody",
        "ipamctl release",
        "ipamctl release somebody",
        "ipamctl release 10.0.0.1 --endpoint host/a",
        "ipamctl frobnicate",
        "ipamctl pool list -o yaml",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

/// What a server saw: method, path with query, the conditions and the body.
type Seen = Arc<Mutex<Vec<String>>>;

/// Answers a request with a status and a body; none is `not-found`.
type Answers = fn(&str, &str, usize) -> Option<(u16, Value)>;

/// Starts a server that only pretends; `answers` gets method, path and how many requests there were before.
async fn pretend(answers: Answers) -> (String, Seen) {
    let seen = Seen::default();
    let kept = seen.clone();
    let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let seen = kept.clone();
        async move {
            let mut line = format!("{method} {uri}");
            for name in ["if-match", "if-none-match"] {
                if let Some(value) = headers.get(name) {
                    line.push_str(&format!(" {name}:{}", value.to_str().unwrap()));
                }
            }
            line.push_str(&format!(" {}", String::from_utf8_lossy(&body)));
            let before = seen.lock().unwrap().len();
            seen.lock().unwrap().push(line.trim().to_owned());
            match answers(method.as_str(), &uri.to_string(), before) {
                Some((status, body)) => {
                    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
                }
                None => {
                    let problem = Problem::new(Code::NotFound, format!("{} doesn't exist", uri.path()));
                    (StatusCode::NOT_FOUND, serde_json::to_string(&problem).unwrap()).into_response()
                }
            }
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
    (server, seen)
}

/// What a command wrote to standard output.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a command line against a server, with nobody to ask.
async fn run(server: &str, line: &str) -> (Result<(), Failure>, String) {
    let arguments = parse(&format!("ipamctl --no-input -q --server {server} {line}")).unwrap();
    let paper = Paper::default();
    let context = Context::new(&arguments.global, Box::new(paper.clone())).unwrap();
    let result = dispatch(arguments.command, &context).await;
    let text = String::from_utf8(paper.0.borrow().clone()).unwrap();
    (result, text)
}

fn code(result: &Result<(), Failure>) -> u8 {
    result.as_ref().map_or_else(Failure::exit_code, |()| 0)
}

fn meta(revision: u64) -> Value {
    json!({"id": 412, "revision": revision, "created_at": "2026-11-08T00:00:00Z", "created_by": "admin",
           "updated_at": "2026-11-19T08:00:00Z", "updated_by": "admin"})
}

fn pool(name: &str, allocated: u64) -> Value {
    json!({"name": name, "subnet": "lan-10", "network": "default", "ranges": ["10.10.0.50-10.10.0.199"],
           "exclude": [], "strategy": "next", "cooling_ms": 30_000, "labels": {"team": "web"}, "weight": 5,
           "meta": meta(1204),
           "status": {"revision": 48_211_907, "family": 4, "cidr": "10.10.0.0/24", "conditions": [],
                      "counts": {"size": 150, "allocated": allocated, "cooling": 0, "quarantined": 0,
                                 "reserved": 0, "excluded": 0, "free": 150 - allocated, "saturated": false}}})
}

fn allocation(lifecycle: &str) -> Value {
    json!({"id": 4819, "address": "10.10.0.77/24", "network": "default", "subnet": "lan-10", "pool": "web",
           "endpoint": {"kind": "pod", "realm": "default", "namespace": "web", "name": "frontend-7"},
           "interface": "eth0", "node": "worker-3", "lifecycle": lifecycle, "checked": true,
           "created_at": "2026-11-19T22:14:07Z", "created_by": "cni"})
}

#[tokio::test]
async fn a_list_is_the_servers_bytes() {
    let (server, seen) =
        pretend(|_, _, _| Some((200, json!({"items": [pool("web", 0)], "revision": 7})))).await;
    let (result, text) = run(&server, "pool list -o json").await;
    assert_eq!(code(&result), 0);
    assert_eq!(text, format!("{}\n", json!({"items": [pool("web", 0)], "revision": 7})));
    assert_eq!(*seen.lock().unwrap(), ["GET /v1/pools?limit=1000"]);
    let (_, text) = run(&server, "pool list -o name --consistency stale").await;
    assert_eq!(text, "web\n");
    assert_eq!(seen.lock().unwrap().last().unwrap(), "GET /v1/pools?limit=1000&consistency=stale");
}

#[tokio::test]
async fn pages_are_put_together() {
    let (server, seen) = pretend(|_, _, before| {
        let name = ["web", "web6"][before];
        let mut page = json!({"items": [pool(name, 0)], "revision": 7});
        if before == 0 {
            page["next"] = "a+b".into();
        }
        Some((200, page))
    })
    .await;
    let (_, text) = run(&server, "pool list -o json").await;
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list, json!({"items": [pool("web", 0), pool("web6", 0)], "revision": 7}));
    assert_eq!(seen.lock().unwrap()[1], "GET /v1/pools?limit=1000&cursor=a%2Bb");
}

#[tokio::test]
async fn a_wrong_name_gets_the_right_one() {
    let (server, _) = pretend(|_, path, _| {
        path.starts_with("/v1/pools?").then(|| (200, json!({"items": [pool("web", 0)], "revision": 7})))
    })
    .await;
    for line in [
        "pool show wbe",
        "pool set wbe --disable",
        "pool delete wbe",
        "allocate --endpoint host/a --pool wbe",
    ] {
        let (result, text) = run(&server, line).await;
        assert_eq!(code(&result), 3, "{line}");
        assert_eq!(text, "");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("Did you mean web?") && said.ends_with("(exit 3)"), "{said}");
    }
}

#[tokio::test]
async fn an_edit_begins_again_when_somebody_was_faster() {
    let (server, seen) = pretend(|method, _, before| match (method, before) {
        ("GET", _) => Some((200, pool("web", 0))),
        (_, 1) => Some((
            412,
            serde_json::to_value(Problem::new(Code::RevisionMismatch, "changed by argocd")).unwrap(),
        )),
        _ => Some((200, pool("web", 0))),
    })
    .await;
    let (result, _) = run(&server, "pool set web --add-range 10.10.0.200 --cooling 1m --disable").await;
    assert_eq!(code(&result), 0);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 4);
    let (head, body) = seen[3].split_once(" {").unwrap();
    assert_eq!(head, "PUT /v1/pools/web if-match:\"1204\"");
    let body: Value = serde_json::from_str(&format!("{{{body}")).unwrap();
    assert_eq!(body["ranges"], json!(["10.10.0.50-10.10.0.199", "10.10.0.200"]));
    assert_eq!((&body["cooling_ms"], &body["disabled"]), (&json!(60_000), &json!(true)));
    assert_eq!((&body["weight"], &body["meta"]), (&json!(5), &Value::Null), "unknown fields stay");
}

#[tokio::test]
async fn an_edit_gives_up_when_somebody_is_always_faster() {
    let (server, _) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 0))),
        _ => Some((412, serde_json::to_value(Problem::new(Code::RevisionMismatch, "changed")).unwrap())),
    })
    .await;
    assert_eq!(code(&run(&server, "pool set web --disable").await.0), 4);
}

#[tokio::test]
async fn an_edit_without_a_difference_writes_nothing() {
    let (server, seen) = pretend(|_, _, _| Some((200, pool("web", 0)))).await;
    for line in ["pool set web --enable", "pool set web --add-range 10.10.0.60 --label team=web"] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
    }
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    let (result, _) = run(&server, "pool set web --remove-range 10.10.0.0/24 --yes").await;
    assert_eq!(code(&result), 2, "a pool without ranges would have the whole subnet");
}

#[tokio::test]
async fn what_hurts_needs_a_word() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("DELETE", "/v1/pools/web?drain=true" | "/v1/networks/lab") => Some((200, json!({}))),
        ("DELETE", "/v1/allocations/4819") => {
            Some((200, json!({"addresses": ["10.10.0.77"], "revision": 9})))
        }
        (_, "/v1/pools/web") => Some((200, pool("web", 125))),
        (_, "/v1/networks/lab") => {
            Some((200, json!({"name": "lab", "meta": meta(1), "status": {"subnets": 0, "allocated": 0}})))
        }
        (_, "/v1/allocations/4819") => Some((200, allocation("attached"))),
        ("GET", path) if path.starts_with("/v1/allocations") => {
            Some((200, json!({"items": [allocation("attached")], "revision": 9})))
        }
        _ => None,
    })
    .await;
    for (line, word) in [
        ("pool delete web", "--yes"),
        ("allocation delete 4819", "--yes"),
        ("release 4819", "--yes"),
        ("pool set web --exclude 10.10.0.77", "--yes"),
        ("network delete lab", "--confirm lab"),
        ("network delete lab --yes", "--confirm lab"),
        ("network delete lab --confirm lob", "lob"),
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), 2, "{line}");
        assert!(result.unwrap_err().text(false).unwrap().contains(word), "{line}");
    }
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    for line in ["pool delete web --yes", "release 4819 --yes", "network delete lab --confirm lab"] {
        assert_eq!(code(&run(&server, line).await.0), 0, "{line}");
    }
}

#[tokio::test]
async fn an_address_is_released_by_its_allocation() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", "/v1/addresses/10.10.0.77?network=lab") => Some((
            200,
            json!({"address": "10.10.0.77", "network": "lab", "state": "allocated", "revision": 9,
                   "allocation": allocation("held")}),
        )),
        ("GET", "/v1/addresses/10.10.0.9") => {
            Some((200, json!({"address": "10.10.0.9", "network": "default", "state": "free", "revision": 9})))
        }
        ("DELETE", "/v1/allocations/4819") => {
            Some((200, json!({"addresses": ["10.10.0.77"], "revision": 9})))
        }
        _ => None,
    })
    .await;
    let (result, text) = run(&server, "release 10.10.0.77 --network lab -o json").await;
    assert_eq!((code(&result), text.as_str()), (0, "{\"addresses\":[\"10.10.0.77\"],\"revision\":9}\n"));
    assert_eq!(code(&run(&server, "release 10.10.0.9").await.0), 0);
    assert_eq!(seen.lock().unwrap().iter().filter(|line| line.starts_with("DELETE")).count(), 1);
}

#[tokio::test]
async fn pools_go_to_their_family() {
    let (server, seen) = pretend(|method, path, _| match (method, path) {
        ("GET", "/v1/pools/rack") => Some((200, pool("rack", 0))),
        ("GET", "/v1/pools/rack6") => {
            let mut pool = pool("rack6", 0);
            pool["ranges"] = json!([]);
            pool["status"]["family"] = 6.into();
            pool["status"]["cidr"] = "2001:db8::/64".into();
            Some((200, pool))
        }
        ("POST", _) => Some((
            201,
            json!({"endpoint": {"kind": "host", "name": "db-07"}, "repeated": false, "revision": 9,
                   "interfaces": [{"name": "eth0", "addresses": [
                       {"address": "10.10.0.50/24", "pool": "rack", "allocation": 9, "checked": false}]}]}),
        )),
        _ => None,
    })
    .await;
    let line = "allocate --endpoint host/db-07 --pool rack6 --pool rack --realm berlin -o name";
    let (result, text) = run(&server, line).await;
    assert_eq!((code(&result), text.as_str()), (0, "10.10.0.50\n"));
    let seen = seen.lock().unwrap();
    let sent: Value = serde_json::from_str(seen[2].strip_prefix("POST /v1/allocations ").unwrap()).unwrap();
    assert_eq!(
        sent,
        json!({"endpoint": {"realm": "berlin", "kind": "host", "namespace": "default", "name": "db-07"},
               "interfaces": [{"name": "eth0", "ipv4_pools": ["rack"], "ipv6_pools": ["rack6"]}]})
    );
}

#[tokio::test]
async fn nobody_answers() {
    for line in ["status", "pool list --timeout 200ms"] {
        // Port 1 of loopback: nothing listens there.
        let (result, text) = run("http://127.0.0.1:1", line).await;
        assert_eq!((code(&result), text.as_str()), (5, ""), "{line}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("\n  http://127.0.0.1:1: "), "{said}");
    }
}

#[tokio::test]
async fn an_unknown_outcome_is_six() {
    let (server, _) = pretend(|method, _, _| match method {
        "GET" => Some((200, pool("web", 0))),
        // Not a problem of ours: something in between broke, and the request may have gone through.
        _ => Some((502, json!("bad gateway"))),
    })
    .await;
    let (result, _) = run(&server, "allocate --endpoint host/a --pool web --timeout 300ms").await;
    assert_eq!(code(&result), 6);
    let said = result.unwrap_err().text(false).unwrap();
    assert!(said.contains("repeat safely:  the same command again; what host/a holds on eth0"), "{said}");
}

#[tokio::test]
async fn status_checks() {
    let (server, seen) = pretend(|_, _, _| {
        Some((
            200,
            json!({"id": "c", "generation": 1, "level": 1, "answered_by": "n1", "leader": "n1", "term": 1,
                   "revision": 5, "digest": "d", "applied": 5, "stale_ms": 0, "pools": 0,
                   "addresses": {"size": 0, "allocated": 0, "cooling": 0, "quarantined": 0, "reserved": 0,
                                 "excluded": 0, "free": 0, "saturated": false},
                   "members": [
                       {"id": 1, "name": "n1", "role": "leader", "client_url": "", "peer_address": ""},
                       {"id": 2, "name": "n2", "role": "voter", "client_url": "http://127.0.0.1:1",
                        "peer_address": ""}]}),
        ))
    })
    .await;
    let (result, text) = run(&server, "status --timeout 300ms").await;
    assert_eq!(code(&result), 0);
    assert!(text.contains("DEGRADED  1 of 2 members answers · leader n1"), "{text}");
    let (result, _) = run(&server, "status --check --timeout 300ms").await;
    assert_eq!(code(&result), 7);
    assert!(result.unwrap_err().text(false).is_none());
    assert_eq!(seen.lock().unwrap()[0], "GET /v1/cluster?consistency=stale");
}
