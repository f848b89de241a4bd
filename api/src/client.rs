//! The HTTP client that the plugin, `ipamctl` and the tests share.
//!
//! It knows several servers, prefers the one that leads, keeps one deadline over all attempts, and repeats
//! a write of unknown fate when the write carries an identity by which the servers know it again. Where it
//! can't, it says so (`applied: unknown`) instead of guessing.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{ETAG, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::brand::{HEADER_BUDGET_MS, HEADER_LEADER, HEADER_REVISION};
use crate::limits::{ATTEMPT_MS_MAX, BODY_BYTES_MAX};
use crate::name::shown;
use crate::problem::{Applied, Code, Problem, Retry};

/// Shortest and longest pause between two rounds over all servers.
const PAUSE_MS: (u64, u64) = (20, 500);
/// With less time than that a refusal in hand is not tried to be turned: whoever asks again and then doesn't wait
/// for the answer only knows less.
const ATTEMPT_MS_MIN: u64 = 100;
/// Longest answer that is read: a full page of the largest resources fits many times.
const ANSWER_BYTES_MAX: usize = 64 * BODY_BYTES_MAX;

/// Asks one of several servers.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    servers: Vec<Url>,
    /// Index of the server to ask first.
    preferred: AtomicUsize,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    path: String,
    body: Option<Vec<u8>>,
    expect: Expect,
    repeatable: bool,
    deadline: Duration,
}

/// What must be the case for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing in particular.
    Anything,
    /// It doesn't exist yet (`If-None-Match: *`).
    Absent,
    /// It has this revision (`If-Match`).
    Revision(u64),
}

impl Call {
    /// A read. `path` begins with a slash.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), true)
    }

    /// A write that the servers can't know again: it is not repeated once it may have been received.
    #[must_use]
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path.into(), false)
    }

    /// A write that says what shall be: repeating it changes nothing.
    #[must_use]
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path.into(), true)
    }

    /// A removal, not repeated once it may have been received (the second answer would be `not-found`).
    #[must_use]
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), false)
    }

    fn new(method: Method, path: String, repeatable: bool) -> Self {
        let deadline = Duration::from_millis(crate::limits::BUDGET_MS_DEFAULT);
        Self { method, path, body: None, expect: Expect::Anything, repeatable, deadline }
    }

    /// Sends `body` as JSON.
    ///
    /// # Errors
    /// `internal`, for a type that JSON can't carry.
    pub fn json(mut self, body: &impl Serialize) -> Result<Self, Problem> {
        let body =
            serde_json::to_vec(body).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        self.body = Some(body);
        Ok(self)
    }

    /// Makes the write depend on the state that it meets.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        // The first try of a conditional write spoils the condition for the second.
        self.repeatable &= expect == Expect::Anything || self.method == Method::GET;
        self.expect = expect;
        self
    }

    /// The body names what makes two of these the same (an attachment, a claim): repeating it is safe.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// How long all attempts together may take.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// An answer that is no problem.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// The state that it is from, if it says.
    pub revision: Option<u64>,
    /// The `ETag`'s number, if it has one.
    pub etag: Option<u64>,
}

impl Answer {
    /// Reads the body, ignoring fields that this version doesn't know.
    ///
    /// # Errors
    /// `unreachable`, when what answered is not ipamd.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Problem::new(Code::Unreachable, format!("the server's answer can't be read: {error}"))
                .help("Check that the address is ipamd's and that its version fits.")
        })
    }
}

/// How one attempt ended without an answer.
enum Miss {
    /// The request can't have had an effect.
    Unsent(String),
    /// It may have had one.
    Unknown(String),
    /// The server answered with a problem.
    Refused(Box<Problem>),
}

impl Client {
    /// A client of these servers, each an `http://host:port` address.
    ///
    /// # Errors
    /// `invalid-field` for something that is no such address, or for none at all.
    pub fn new<Server: AsRef<str>>(servers: &[Server]) -> Result<Self, Problem> {
        let servers =
            servers.iter().map(|server| parse_server(server.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(Problem::new(Code::InvalidField, "no server is named")
                .help("Name one with --server or IPAM_SERVERS, for example http://127.0.0.1:7440."));
        }
        Self::build(servers, None)
    }

    /// A client of whoever listens on a unix socket (the node's agent).
    ///
    /// # Errors
    /// `internal`, if the HTTP library refuses its settings.
    pub fn over_socket(path: &std::path::Path) -> Result<Self, Problem> {
        Self::build(vec![parse_server("http://localhost")?], Some(path))
    }

    fn build(servers: Vec<Url>, socket: Option<&std::path::Path>) -> Result<Self, Problem> {
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_millis(ATTEMPT_MS_MAX / 2));
        if let Some(path) = socket {
            builder = builder.unix_socket(path);
        }
        let http = builder.build().map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        Ok(Self { http, servers, preferred: AtomicUsize::new(0) })
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// The server's problem; `unreachable` when none answered; `deadline-exceeded` with
    /// `applied: unknown` when a write may have arrived.
    pub async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Problem> {
        self.send(call).await?.read()
    }

    /// Sends a request.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn send(&self, call: Call) -> Result<Answer, Problem> {
        let start = Instant::now();
        let mut pause_ms = PAUSE_MS.0;
        let mut misses: Vec<(String, String)> = Vec::new();
        let mut refusal: Option<Box<Problem>> = None;
        let mut maybe_applied = false;
        let mut at = self.preferred.load(Ordering::Relaxed);
        for attempt in 1usize.. {
            let Some(server) = self.servers.get(at % self.servers.len().max(1)) else { break };
            let left = call.deadline.saturating_sub(start.elapsed());
            let too_late = refusal.is_some() && left < Duration::from_millis(ATTEMPT_MS_MIN);
            if left.is_zero() || too_late {
                break;
            }
            let limit = left.min(Duration::from_millis(ATTEMPT_MS_MAX));
            match self.attempt(server, &call, limit).await {
                Ok(answer) => return Ok(answer),
                Err(Miss::Refused(problem)) => {
                    let again = problem.retry == Retry::Same || problem.code == Code::Overloaded;
                    let safe = problem.applied == Applied::No || call.repeatable;
                    maybe_applied |= problem.applied == Applied::Unknown;
                    if !again || !safe {
                        return Err(*problem);
                    }
                    refusal = Some(problem);
                }
                Err(Miss::Unsent(why)) => misses.push((server.to_string(), why)),
                Err(Miss::Unknown(why)) => {
                    misses.push((server.to_string(), why));
                    maybe_applied |= call.method != Method::GET;
                    if !call.repeatable {
                        break;
                    }
                }
            }
            at += 1;
            self.preferred.store(at % self.servers.len(), Ordering::Relaxed);
            if attempt.is_multiple_of(self.servers.len()) {
                let left = call.deadline.saturating_sub(start.elapsed());
                tokio::time::sleep(Duration::from_millis(pause_ms).min(left)).await;
                pause_ms = (pause_ms * 2).min(PAUSE_MS.1);
            }
        }
        let mut problem = match refusal {
            Some(problem) => *problem,
            None => unreachable_problem(&misses, start.elapsed(), maybe_applied),
        };
        if maybe_applied {
            problem = problem.maybe_applied();
        }
        Err(problem)
    }

    async fn attempt(&self, server: &Url, call: &Call, limit: Duration) -> Result<Answer, Miss> {
        let url = server.join(&call.path).map_err(|error| Miss::Unsent(error.to_string()))?;
        let mut request = self
            .http
            .request(call.method.clone(), url)
            .timeout(limit)
            .header(HEADER_BUDGET_MS, limit.as_millis().to_string());
        request = match call.expect {
            Expect::Anything => request,
            Expect::Absent => request.header(IF_NONE_MATCH, "*"),
            Expect::Revision(revision) => request.header(IF_MATCH, format!("\"{revision}\"")),
        };
        if let Some(body) = &call.body {
            request = request.header("content-type", "application/json").body(body.clone());
        }
        let response = request.send().await.map_err(|error| {
            if error.is_connect() || error.is_builder() {
                Miss::Unsent(reason(&error))
            } else {
                Miss::Unknown(reason(&error))
            }
        })?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read_body(response).await?;
        self.follow(&headers);
        if status.is_success() {
            let revision = number_in(&headers, HEADER_REVISION);
            let etag = number_in(&headers, ETAG.as_str());
            return Ok(Answer { status: status.as_u16(), body, revision, etag });
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(Miss::Refused(Box::new(problem))),
            Err(_) => Err(stranger(status)),
        }
    }

    /// Asks the leader first from now on, if it is one of the servers.
    fn follow(&self, headers: &HeaderMap) {
        let leader = headers.get(HEADER_LEADER).and_then(|value| value.to_str().ok());
        let Some(leader) = leader.and_then(|url| parse_server(url).ok()) else { return };
        if let Some(index) = self.servers.iter().position(|server| *server == leader) {
            self.preferred.store(index, Ordering::Relaxed);
        }
    }
}

/// Reads a server's address.
///
/// # Errors
/// `invalid-field`.
fn parse_server(text: &str) -> Result<Url, Problem> {
    let wrong = || {
        Problem::new(Code::InvalidField, format!("{} is no server address", shown(text)))
            .help("Write it as http://host:port, for example http://127.0.0.1:7440.")
    };
    let url: Url = text.trim().parse().map_err(|_| wrong())?;
    if url.scheme() != "http" || url.host_str().is_none() || url.path() != "/" || url.query().is_some() {
        return Err(wrong());
    }
    Ok(url)
}

async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, Miss> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| Miss::Unknown(reason(&error)))? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(Miss::Unknown("the answer is too long".to_owned()));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn stranger(status: StatusCode) -> Miss {
    let why = format!("answered {status}, but not as ipamd does");
    if status == StatusCode::NOT_FOUND { Miss::Unsent(why) } else { Miss::Unknown(why) }
}

/// A header's number, quoted or not.
fn number_in(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim_matches('"').parse().ok()
}

/// The innermost cause: "connection refused" says more than "error sending request".
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

fn unreachable_problem(misses: &[(String, String)], after: Duration, maybe_applied: bool) -> Problem {
    let mut last: std::collections::BTreeMap<&str, &str> = std::collections::BTreeMap::new();
    for (server, why) in misses {
        last.insert(server.trim_end_matches('/'), why);
    }
    if maybe_applied {
        let why = misses.last().map(|(_, why)| why.as_str()).unwrap_or_default();
        return Problem::new(
            Code::DeadlineExceeded,
            format!("the outcome is unknown: the connection broke after the request was sent ({why})"),
        );
    }
    let mut detail = format!("no server answered within {:.1} s", after.as_secs_f64());
    for (server, why) in last {
        let _ = write!(detail, "; {server}: {why}");
    }
    Problem::new(Code::Unreachable, detail)
}
