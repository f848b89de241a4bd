//! Fake server, command lines that are run against it, and objects for its answers.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse as _;
use clap::Parser as _;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::grammar::arguments::Arguments;
use crate::grammar::dispatch::carry_out;
use crate::grammar::synonyms;
use crate::output::error::Failure;
use crate::settings::environment::Environment;

/// Cuts a line into words as a shell does, as far as the examples need it.
pub(super) fn split(line: &str) -> Vec<OsString> {
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

pub(crate) fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(synonyms::translate(split(line)).0)
}

/// Requests that a server saw: method, path with query, the conditions and the body.
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

/// Answers a request with a status and a body; none is `not-found`.
pub(crate) type Answers = fn(&str, &str, usize) -> Option<(u16, Value)>;

/// Starts a fake server; `answers` gets the method, the path and the number of previous requests.
pub(crate) async fn pretend(answers: Answers) -> (String, Seen) {
    let seen = Seen::default();
    let kept = seen.clone();
    let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let seen = kept.clone();
        async move {
            let mut line = format!("{method} {uri}");
            for name in ["if-match", "if-none-match", "change-comment", "idempotency-key"] {
                if let Some(value) = headers.get(name) {
                    line.push_str(&format!(" {name}:{}", value.to_str().unwrap()));
                }
            }
            line.push_str(&format!(" {}", String::from_utf8_lossy(&body)));
            let before = seen.lock().unwrap().len();
            seen.lock().unwrap().push(line.trim().to_owned());
            match answers(method.as_str(), &uri.to_string(), before) {
                // The field `dry` marks the answer of a server to a dry run.
                Some((status, body)) if body.get("dry").is_some() => {
                    let dry = body["dry"].as_object().map(|tried| json!(tried)).unwrap_or(json!({}));
                    let status = StatusCode::from_u16(status).unwrap();
                    (status, [("dry-run", "true")], dry.to_string()).into_response()
                }
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

/// Text that a command wrote to standard output.
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

/// Runs a command line against a server, without a terminal.
pub(crate) async fn run(server: &str, line: &str) -> (Result<(), Failure>, String) {
    run_within(&Environment::default(), &format!("--no-input -q --server {server} {line}")).await
}

/// Runs a command line in an environment.
pub(crate) async fn run_within(environment: &Environment, line: &str) -> (Result<(), Failure>, String) {
    let line = format!("ipamctl {line}");
    let arguments = parse(&line).unwrap_or_else(|error| panic!("{line}\n{error}"));
    let words = split(&line).into_iter().map(|word| word.into_string().unwrap()).collect();
    let paper = Paper::default();
    let environment = Environment { words, ..environment.clone() };
    let result = carry_out(arguments, &environment, Box::new(paper.clone())).await;
    let text = String::from_utf8(paper.0.borrow().clone()).unwrap();
    (result, text)
}

pub(crate) fn code(result: &Result<(), Failure>) -> u8 {
    result.as_ref().map_or_else(Failure::exit_code, |()| 0)
}

pub(crate) fn meta(revision: u64) -> Value {
    json!({"id": 412, "revision": revision, "created_at": "2026-11-08T00:00:00Z", "created_by": "admin",
           "updated_at": "2026-11-19T08:00:00Z", "updated_by": "admin"})
}

pub(crate) fn pool(name: &str, allocated: u64) -> Value {
    json!({"name": name, "subnet": "lan-10", "network": "default", "ranges": ["10.10.0.50-10.10.0.199"],
           "exclude": [], "strategy": "next", "cooling_ms": 30_000, "labels": {"team": "web"}, "weight": 5,
           "meta": meta(1204),
           "status": {"revision": 48_211_907, "family": 4, "cidr": "10.10.0.0/24", "conditions": [],
                      "counts": {"size": 150, "allocated": allocated, "cooling": 0, "quarantined": 0,
                                 "reserved": 0, "excluded": 0, "free": 150 - allocated, "saturated": false}}})
}

pub(super) fn allocation(lifecycle: &str) -> Value {
    json!({"id": 4819, "address": "10.10.0.77/24", "network": "default", "subnet": "lan-10", "pool": "web",
           "endpoint": {"kind": "pod", "realm": "default", "namespace": "web", "name": "frontend-7"},
           "interface": "eth0", "node": "worker-3", "lifecycle": lifecycle, "checked": true,
           "created_at": "2026-11-19T22:14:07Z", "created_by": "cni"})
}
