//! Stream of events that survives the loss of a server. The client resumes at another server after the last
//! event that it received, so none is missed and none is repeated.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::Instant;

use super::Client;
use crate::event::Event;
use crate::limits::{ATTEMPT_MS_MAX, BODY_BYTES_MAX, EVENT_PROGRESS_MS};
use crate::problem::{Code, Problem, Retry};

/// Silence after which a stream is considered dead: an idle stream carries progress messages.
const SILENCE: Duration = Duration::from_millis(3 * EVENT_PROGRESS_MS);
/// Pause before the next server is tried.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of one event that are read at most; the largest is far smaller.
const BLOCK_BYTES_MAX: usize = 16 * BODY_BYTES_MAX;

/// Stream of events, each sent when it occurs.
#[derive(Debug)]
pub struct EventStream<'client> {
    client: &'client Client,
    path: String,
    last: Option<String>,
    /// Time to look for a server that answers.
    patience: Duration,
    at: usize,
    open: Option<Open>,
    come: VecDeque<Frame>,
}

/// Position of the stream, and an event unless it is a progress message.
type Frame = (Option<String>, Option<Event>);

#[derive(Debug)]
struct Open {
    response: reqwest::Response,
    buffer: Vec<u8>,
}

impl Client {
    /// Follows `path` (`/v1/events` with its query) after the event `after`, or as the query specifies. After
    /// each interruption it looks for a server for `patience`.
    #[must_use]
    pub fn events(&self, path: &str, after: Option<String>, patience: Duration) -> EventStream<'_> {
        let path = path.to_owned();
        EventStream { client: self, path, last: after, patience, at: 0, open: None, come: VecDeque::new() }
    }
}

impl EventStream<'_> {
    /// Returns the next event. Cancel-safe.
    ///
    /// # Errors
    /// The server's problem, if no other server can continue (`revision-compacted`, `forbidden`);
    /// `unreachable` when no server answers.
    pub async fn next(&mut self) -> Result<Event, Problem> {
        loop {
            while let Some((id, event)) = self.come.pop_front() {
                if id.is_some() {
                    self.last = id;
                }
                if let Some(event) = event {
                    return Ok(event);
                }
            }
            if self.open.is_none() {
                self.connect().await?;
            }
            if let Err(Some(problem)) = self.read().await {
                self.open = None;
                if !helps_elsewhere(&problem) {
                    return Err(problem);
                }
            }
        }
    }

    /// Position after the last returned event, for `after`.
    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Tries the servers in turn until one streams.
    async fn connect(&mut self) -> Result<(), Problem> {
        let begun = Instant::now();
        let mut why = String::new();
        while begun.elapsed() < self.patience {
            let Some(server) = self.client.servers.get(self.at % self.client.servers.len().max(1)) else {
                break;
            };
            // The next attempt uses another server.
            self.at = self.at.wrapping_add(1);
            let request = self.client.request(server, Method::GET, &self.path)?;
            let mut request = request.header(ACCEPT, "text/event-stream");
            if let Some(last) = &self.last {
                request = request.header("last-event-id", last);
            }
            match tokio::time::timeout(Duration::from_millis(ATTEMPT_MS_MAX), server.send(request)).await {
                Ok(Ok(response)) if response.status().is_success() && !streams(&response) => {
                    why = format!("{server}: it answers, but doesn't stream");
                }
                Ok(Ok(response)) if response.status().is_success() => {
                    self.open = Some(Open { response, buffer: Vec::new() });
                    return Ok(());
                }
                Ok(Ok(response)) => {
                    let status = response.status();
                    let body = response.bytes().await.unwrap_or_default();
                    match serde_json::from_slice::<Problem>(&body) {
                        Ok(problem) if !helps_elsewhere(&problem) => return Err(problem),
                        Ok(problem) => why = format!("{server}: {}", problem.detail),
                        Err(_) => why = format!("{server}: answered {status}, but not as ipamd does"),
                    }
                }
                Ok(Err(miss)) => why = format!("{server}: {}", miss.why()),
                Err(_) => why = format!("{server}: timed out"),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Problem::new(Code::Unreachable, format!("no server streams events; {why}")))
    }

    /// Reads the next bytes and parses complete blocks. A lost connection only closes the stream.
    async fn read(&mut self) -> Result<(), Option<Problem>> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let piece = match tokio::time::timeout(SILENCE, open.response.chunk()).await {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None) | Err(_)) | Err(_) => {
                self.open = None;
                return Ok(());
            }
        };
        open.buffer.extend_from_slice(&piece);
        while let Some(end) = open.buffer.windows(2).position(|two| two == b"\n\n") {
            let block: Vec<u8> = open.buffer.drain(..end + 2).collect();
            let block = String::from_utf8_lossy(&block).into_owned();
            self.come.extend(parse(&block).map_err(Some)?);
        }
        if open.buffer.len() > BLOCK_BYTES_MAX {
            self.open = None;
        }
        Ok(())
    }
}

/// Parses one block of the stream.
fn parse(block: &str) -> Result<Option<Frame>, Problem> {
    let field = |name: &str| {
        let value = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(|value| value.strip_prefix(' ').unwrap_or(value))
    };
    let id = field("id").map(str::to_owned);
    let (kind, data) = (field("event").unwrap_or_default(), field("data").unwrap_or_default());
    match kind {
        "problem" => Err(serde_json::from_str(data).unwrap_or_else(|_| {
            Problem::new(Code::Internal, "the stream ended with a problem that can't be read")
        })),
        "progress" | "" => Ok(id.map(|id| (Some(id), None))),
        _ => match serde_json::from_str(data) {
            Ok(event) => Ok(Some((id, Some(event)))),
            Err(error) => Err(Problem::new(Code::Internal, format!("an event can't be read: {error}"))),
        },
    }
}

fn streams(response: &reqwest::Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| content_type.starts_with("text/event-stream"))
}

/// True if another server, or a later attempt, may succeed.
pub(super) fn helps_elsewhere(problem: &Problem) -> bool {
    matches!(problem.retry, Retry::Same | Retry::After)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_what_they_say() {
        let (id, event) = parse("id: 7\nevent: progress\ndata: {\"revision\":7}\n\n").unwrap().unwrap();
        assert_eq!((id.as_deref(), event), (Some("7"), None));
        assert!(parse(": a comment\n\n").unwrap().is_none());
        let problem = Problem::new(Code::RevisionCompacted, "gone");
        let block = format!("event: problem\ndata: {}\n\n", serde_json::to_string(&problem).unwrap());
        assert_eq!(parse(&block).unwrap_err().code, Code::RevisionCompacted);
        assert!(parse("id: 1.0\nevent: pool.changed\ndata: {\n\n").is_err());
        let item = r#"{"revision":9,"number":1,"at":"2026-11-20T00:00:00.000Z","type":"pool.new-word","object":"web","kind":"pool","by":{"principal":"a","via":"http","request_id":"r"},"later":1}"#;
        let (id, event) =
            parse(&format!("id: 9.1\nevent: pool.new-word\ndata: {item}\n\n")).unwrap().unwrap();
        assert_eq!((id, event.unwrap().id()), (Some("9.1".to_owned()), "9.1".to_owned()));
    }
}
