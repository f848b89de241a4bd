//! A server that speaks just enough HTTP, in several manners.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};

use ipam_api::{Code, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::model::Model;

/// Behaviour of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerBehavior {
    /// As ipamd does.
    Proper,
    /// Takes requests and never answers.
    Hangs,
    /// Answers with something that isn't ipamd's.
    Garbage,
    /// Closes the connection in the middle of its answer.
    CutsShort,
    /// Answers everything with this problem.
    Refuses(Code),
}

/// Holds a request: signals its arrival to the test, and waits for the release.
type Gate = (Sender<()>, Receiver<()>);

/// A server; it lives until the test's process ends.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    behavior: ServerBehavior,
    model: Mutex<Model>,
    seen: Mutex<Vec<Seen>>,
    before: Mutex<Option<Gate>>,
    after: Mutex<Option<Gate>>,
}

/// A request that came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Server {
    pub(crate) fn start(behavior: ServerBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Shared::new(behavior);
        let handler = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&handler);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { url, shared }
    }

    pub(crate) fn on_socket(behavior: ServerBehavior, path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let shared = Shared::new(behavior);
        let handler = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&handler);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { url: String::new(), shared }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.shared.model.lock().unwrap()
    }

    /// The requests so far, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Holds the next request before its effect. The receiver signals its arrival; a message to the sender
    /// releases it.
    pub(crate) fn hold_before(&self) -> (Receiver<()>, Sender<()>) {
        hold(&self.shared.before)
    }

    /// Holds the answer to the next request after it had its effect.
    pub(crate) fn hold_after(&self) -> (Receiver<()>, Sender<()>) {
        hold(&self.shared.after)
    }
}

fn hold(gate: &Mutex<Option<Gate>>) -> (Receiver<()>, Sender<()>) {
    let (arrived, at_gate) = channel();
    let (open, opened) = channel();
    *gate.lock().unwrap() = Some((arrived, opened));
    (at_gate, open)
}

fn pass(gate: &Mutex<Option<Gate>>) {
    let taken = gate.lock().unwrap().take();
    if let Some((arrived, opened)) = taken {
        arrived.send(()).unwrap();
        // The test may drop its end: then this request isn't held.
        let _ = opened.recv();
    }
}

/// An address that nothing listens on: it was free a moment ago, and connecting to it is refused.
pub(crate) fn unused_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

impl Shared {
    fn new(behavior: ServerBehavior) -> Arc<Self> {
        Arc::new(Self {
            behavior,
            model: Mutex::default(),
            seen: Mutex::default(),
            before: Mutex::default(),
            after: Mutex::default(),
        })
    }

    fn serve(&self, mut stream: impl Read + Write) {
        let Some((line, headers, body)) = read_request(&mut stream) else { return };
        let value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        self.seen.lock().unwrap().push(Seen { line: line.clone(), headers, body: value });
        let answer = match self.behavior {
            ServerBehavior::Proper => self.answer(&line, &body),
            ServerBehavior::Hangs => return hang(stream),
            ServerBehavior::Garbage => http(200, b"<html>it works!</html>"),
            ServerBehavior::CutsShort => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"endp".to_vec(),
            ServerBehavior::Refuses(code) => render::<()>(Err(Problem::new(code, "so says the test"))),
        };
        // The client may be gone.
        let _ = stream.write_all(&answer);
    }

    fn answer(&self, line: &str, body: &[u8]) -> Vec<u8> {
        pass(&self.before);
        let answer = match line {
            "POST /v1/allocations" => {
                render(read(body).and_then(|request| self.model.lock().unwrap().allocate(request)))
            }
            "POST /v1/attachments/release" => {
                render(read(body).map(|request| self.model.lock().unwrap().release(request)))
            }
            "GET /readyz" => http(200, b"ok\n"),
            _ => match line.strip_prefix("GET /v1/attachments/") {
                Some(path) => render(self.model.lock().unwrap().attachment(path)),
                None => render::<()>(Err(Problem::new(Code::NotFound, format!("no {line}")))),
            },
        };
        pass(&self.after);
        answer
    }
}

/// Keeps the connection open until the other side closes it.
fn hang(mut stream: impl Read) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}

fn read_request(stream: &mut (impl Read + Write)) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = first.trim().strip_suffix(" HTTP/1.1")?.to_owned();
    Some((line, headers, body))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    ipam_api::strict::from_slice(body)
}

fn render<T: Serialize>(answer: Result<T, Problem>) -> Vec<u8> {
    match answer {
        Ok(answer) => http(200, &serde_json::to_vec(&answer).unwrap()),
        Err(problem) => http(problem.status, &serde_json::to_vec(&problem).unwrap()),
    }
}

fn http(status: u16, body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len())
            .into_bytes();
    answer.extend_from_slice(body);
    answer
}
