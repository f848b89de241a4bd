//! HTTP client of the plugin, `ipamctl` and the tests.
//!
//! It has several servers, prefers the leader, and has one deadline for all attempts. A write with an unknown
//! outcome is repeated if it has an identity by which the servers recognise it; otherwise the client reports
//! `applied: unknown`.

mod call;
mod download;
mod exchange;
mod options;
mod server;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

pub use self::call::{Answer, Call, Expect, push_encoded, with_query};
pub use self::download::Download;
#[cfg(feature = "simulation")]
pub use self::exchange::{Exchange, Lost, Network, simulate};
pub use self::options::Options;
use self::options::Token;
pub use self::server::unresolved_host;
use self::server::{Place, Server, builder};
pub use self::stream::EventStream;
use crate::brand::{HEADER_BUDGET_MS, HEADER_LEADER};
use crate::limits::{ATTEMPT_MS_FIRST, ATTEMPT_MS_MAX, BODY_BYTES_MAX, RETRY_AFTER_MS_MAX};
use crate::problem::{Applied, Code, Problem, Retry};

/// Shortest and longest pause between two rounds over all servers.
const PAUSE_MS: (u64, u64) = (20, 500);
/// Minimum time for another attempt. With less, the client returns the refusal that it has, since an attempt
/// without time for the answer leaves the result unknown.
const ATTEMPT_MS_MIN: u64 = 100;
/// Longest answer that is read: a full page of the largest resources fits many times.
const ANSWER_BYTES_MAX: usize = 64 * BODY_BYTES_MAX;

/// Client of several equivalent servers.
#[derive(Debug)]
pub struct Client {
    servers: Vec<Server>,
    token: Option<Token>,
    /// Index of the preferred server.
    preferred: AtomicUsize,
}

/// HTTP client for servers of other systems, with the settings of all connections and the CAs of `options`.
///
/// # Errors
/// `invalid-field` for a file that can't be used.
#[cfg(feature = "tls")]
pub fn http(options: &Options) -> Result<reqwest::Client, Problem> {
    let refused = |error: reqwest::Error| Problem::new(Code::Internal, error.to_string());
    builder().tls_backend_preconfigured(options.tls(false)?).build().map_err(refused)
}

/// Failure of one attempt to get an answer.
enum Miss {
    /// The request can't have had an effect.
    Unsent(String),
    /// The request may have had an effect.
    Unknown {
        why: String,
        /// True if the server was silent and may still apply the request.
        is_silent: bool,
    },
    /// The server answered with a problem.
    Refused(Box<Problem>),
}

impl Miss {
    /// Reason in words.
    fn why(&self) -> &str {
        match self {
            Self::Unsent(why) | Self::Unknown { why, .. } => why,
            Self::Refused(problem) => &problem.detail,
        }
    }
}

impl Client {
    /// Creates a client of these servers, each `http://host:port`, `https://host:port` or `unix:/path`.
    ///
    /// # Errors
    /// `invalid-field` for a malformed address, or for an empty list.
    pub fn new<Address: AsRef<str>>(servers: &[Address]) -> Result<Self, Problem> {
        Self::with(servers, &Options::default())
    }

    /// Creates a client with a token, a client certificate, or custom CAs.
    ///
    /// # Errors
    /// `invalid-field`, also for a file that can't be used.
    pub fn with<Address: AsRef<str>>(servers: &[Address], options: &Options) -> Result<Self, Problem> {
        let places =
            servers.iter().map(|server| Place::parse(server.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if places.is_empty() {
            return Err(Problem::new(Code::InvalidField, "no server is named")
                .help("Name one with --server or IPAM_SERVERS, for example http://127.0.0.1:7440."));
        }
        Self::build(places, options)
    }

    /// Returns a client for a server that listens on a unix socket (the node's agent).
    ///
    /// # Errors
    /// `internal`, if the HTTP library refuses its settings.
    pub fn over_socket(path: &std::path::Path) -> Result<Self, Problem> {
        Self::build(vec![Place::Socket(path.to_owned())], &Options::default())
    }

    fn build(places: Vec<Place>, options: &Options) -> Result<Self, Problem> {
        let refused = |error: reqwest::Error| Problem::new(Code::Internal, error.to_string());
        #[cfg(feature = "tls")]
        let builder = {
            // Needed even without a client certificate: reqwest would otherwise need its own crypto provider.
            let config = options.tls(places.iter().any(Place::has_tls))?;
            move || builder().tls_backend_preconfigured(config.clone())
        };
        #[cfg(not(feature = "tls"))]
        options.check()?;
        let network = builder().build().map_err(refused)?;
        let local: reqwest::Url =
            "http://localhost".parse().map_err(|_| Problem::new(Code::Internal, "localhost"))?;
        let servers = places.into_iter().map(|place| match &place {
            Place::Network(url) => Ok(Server {
                base: url.clone(),
                http: network.clone(),
                place,
                #[cfg(feature = "simulation")]
                network: exchange::present(),
            }),
            Place::Socket(path) => {
                let http = builder().unix_socket(path.as_path()).build().map_err(refused)?;
                Ok(Server {
                    base: local.clone(),
                    http,
                    place,
                    #[cfg(feature = "simulation")]
                    network: exchange::present(),
                })
            }
        });
        let servers = servers.collect::<Result<_, Problem>>()?;
        Ok(Self { servers, token: options.token()?, preferred: AtomicUsize::new(0) })
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// The server's problem; `unreachable` when no server answered; `deadline-exceeded` with
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
        // Servers that received a copy of the request and did not answer.
        let mut silent: BTreeSet<usize> = BTreeSet::new();
        let mut at = self.preferred.load(Ordering::Relaxed);
        // Attempts since the last pause.
        let mut asked = 0;
        for attempt in 1usize.. {
            let Some(server) = self.servers.get(at % self.servers.len().max(1)) else { break };
            let left = call.deadline.saturating_sub(start.elapsed());
            let too_late = refusal.is_some() && left < Duration::from_millis(ATTEMPT_MS_MIN);
            if left.is_zero() || too_late {
                break;
            }
            let limit = left.min(self.patience(&call, at, &silent));
            let mut busy = None;
            asked += 1;
            match self.attempt(server, &call, limit).await {
                Ok(answer) => return Ok(answer),
                Err(Miss::Refused(problem)) => {
                    busy = Busy::of(&problem);
                    let again =
                        problem.retry == Retry::Same || problem.code == Code::Overloaded || busy.is_some();
                    let safe = problem.applied == Applied::No || call.repeatable;
                    maybe_applied |= problem.applied == Applied::Unknown;
                    if !again || !safe {
                        // Without a key, this refusal does not prove that an earlier copy was refused, too.
                        let is_open = maybe_applied && !(call.has_key() && knows_keys(&problem));
                        return Err(if is_open { problem.maybe_applied() } else { *problem });
                    }
                    refusal = Some(problem);
                }
                Err(Miss::Unsent(why)) => misses.push((server.to_string(), why)),
                Err(Miss::Unknown { why, is_silent }) => {
                    silent.extend(is_silent.then_some(at % self.servers.len()));
                    misses.push((server.to_string(), why));
                    maybe_applied |= call.method != Method::GET;
                    if !call.repeatable {
                        break;
                    }
                }
            }
            at += 1;
            self.preferred.store(at % self.servers.len(), Ordering::Relaxed);
            let left = call.deadline.saturating_sub(start.elapsed());
            if let Some(Busy { pause, is_local }) = busy {
                // Without time for the pause, another server is the only chance: even `overloaded` may be
                // about the caller's share of one member.
                let is_too_long = left < pause + Duration::from_millis(ATTEMPT_MS_MIN);
                if (is_local || is_too_long) && asked < self.servers.len() {
                    continue;
                }
                if is_too_long {
                    break;
                }
                tokio::time::sleep(pause).await;
                asked = 0;
            } else if attempt.is_multiple_of(self.servers.len()) {
                tokio::time::sleep(Duration::from_millis(pause_ms).min(left)).await;
                pause_ms = (pause_ms * 2).min(PAUSE_MS.1);
                asked = 0;
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

    /// Timeout of an attempt at one server.
    ///
    /// A stopped server must not use up the deadline while another one could answer. A slow server isn't
    /// stopped: each later server gets more time, and the last one the rest, so that no server gets two
    /// copies while the others are silent. A single address may be a load balancer, and is tried again.
    fn patience(&self, call: &Call, at: usize, silent: &BTreeSet<usize>) -> Duration {
        if !call.repeatable || call.is_slow || self.servers.len() == 1 {
            return Duration::from_millis(ATTEMPT_MS_MAX);
        }
        let at = at % self.servers.len().max(1);
        let is_another_left = (0..self.servers.len()).any(|other| other != at && !silent.contains(&other));
        if !is_another_left {
            return call.deadline;
        }
        let doubled = silent.iter().fold(ATTEMPT_MS_FIRST, |ms, _| (2 * ms).min(ATTEMPT_MS_MAX));
        Duration::from_millis(doubled)
    }

    /// Builds a request to a server, with the token.
    fn request(&self, server: &Server, method: Method, path: &str) -> Result<RequestBuilder, Problem> {
        let wrong = |error| Problem::new(Code::InvalidField, format!("{path} is not a path: {error}"));
        let request = server.http.request(method, server.base.join(path).map_err(wrong)?);
        Ok(match &self.token {
            Some(Token(token)) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        })
    }

    async fn attempt(&self, server: &Server, call: &Call, limit: Duration) -> Result<Answer, Miss> {
        let request = self.request(server, call.method.clone(), &call.path);
        let request = request
            .map_err(|problem| Miss::Unsent(problem.detail))?
            .timeout(limit)
            .headers(call.headers.clone())
            .header(HEADER_BUDGET_MS, limit.as_millis().to_string());
        let mut request = match call.expect {
            Expect::Anything => request,
            Expect::Absent => request.header(IF_NONE_MATCH, "*"),
            Expect::Revision(revision) => request.header(IF_MATCH, format!("\"{revision}\"")),
        };
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, call.media_type()).body(body.clone());
        }
        let response = server.send(request).await?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = read_body(response).await?;
        self.follow(&headers);
        if status.is_success() {
            return Ok(Answer::new(status.as_u16(), headers, body));
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(Miss::Refused(Box::new(problem))),
            Err(_) => Err(stranger(status)),
        }
    }

    /// Prefers the leader from now on, if it is one of the servers.
    fn follow(&self, headers: &HeaderMap) {
        let leader = headers.get(HEADER_LEADER).and_then(|value| value.to_str().ok());
        let Some(leader) = leader.and_then(|url| Place::parse(url).ok()) else { return };
        if let Some(index) = self.servers.iter().position(|server| server.place == leader) {
            self.preferred.store(index, Ordering::Relaxed);
        }
    }
}

async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, Miss> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| unknown(&error))? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(Miss::Unknown { why: "the answer is too long".to_owned(), is_silent: false });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn stranger(status: StatusCode) -> Miss {
    let why = format!("answered {status}, but not as ipamd does");
    match status {
        StatusCode::NOT_FOUND => Miss::Unsent(why),
        _ => Miss::Unknown { why, is_silent: false },
    }
}

fn unknown(error: &reqwest::Error) -> Miss {
    Miss::Unknown { why: reason(error), is_silent: error.is_timeout() }
}

/// Refusal because a limit is reached; it may succeed later.
struct Busy {
    /// Pause that the server requests before the next attempt.
    pause: Duration,
    /// True if the limit is that server's own, so that another server may accept the request.
    is_local: bool,
}

impl Busy {
    fn of(problem: &Problem) -> Option<Self> {
        let pause_ms = problem.context.as_ref()?.retry_after_ms?.min(RETRY_AFTER_MS_MAX);
        let is_local = problem.code == Code::TooManyRequests;
        Some(Self { pause: Duration::from_millis(pause_ms), is_local })
    }
}

/// A header's number, quoted or not.
fn number_in(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim_matches('"').parse().ok()
}

/// Innermost cause: "connection refused" is more specific than "error sending request".
#[must_use]
pub fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    #[cfg(feature = "tls")]
    if let Some(error) = tls_error(error) {
        return crate::tls::reason(error);
    }
    cause.to_string()
}

/// True if the server ended the handshake. In TLS 1.3 a client learns of a rejected certificate only after
/// its first request, which the server then has not read.
#[cfg(feature = "tls")]
fn was_not_let_in(error: &reqwest::Error) -> bool {
    match tls_error(error) {
        Some(rustls::Error::AlertReceived(alert)) => crate::tls::is_about_certificates(*alert),
        _ => false,
    }
}

#[cfg(not(feature = "tls"))]
fn was_not_let_in(_: &reqwest::Error) -> bool {
    false
}

/// The TLS error among the causes of an error.
#[cfg(feature = "tls")]
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let found = error.downcast_ref::<std::io::Error>().and_then(crate::tls::in_io);
        if let Some(found) = found.or_else(|| error.downcast_ref()) {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Returns true for a refusal of the state machine, which knows the keys of earlier requests. A server that
/// is full, overloaded or about to stop refuses a request before that.
fn knows_keys(problem: &Problem) -> bool {
    problem.status < 500 && problem.code != Code::TooManyRequests
}

fn unreachable_problem(misses: &[(String, String)], after: Duration, maybe_applied: bool) -> Problem {
    let mut last: std::collections::BTreeMap<&str, &str> = std::collections::BTreeMap::new();
    for (server, why) in misses {
        last.insert(server, why);
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
