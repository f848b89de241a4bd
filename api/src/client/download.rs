//! Answers that are too long to be kept in memory, read piece by piece.

use std::time::{Duration, Instant};

use reqwest::Method;

use super::stream::helps_elsewhere;
use super::{Call, Client, reason};
use crate::problem::{Code, Problem};

/// Silence of a server in the middle of a response after which the download fails.
const SILENCE: Duration = Duration::from_secs(30);

/// An answer being read.
#[derive(Debug)]
pub struct Download {
    response: reqwest::Response,
    /// URL of the server that answers.
    pub server: String,
}

impl Client {
    /// Tries each server once, and returns the first response with an unread body.
    ///
    /// # Errors
    /// The last server's problem; `unreachable` when no server answered.
    pub async fn download(&self, call: &Call) -> Result<Download, Problem> {
        let begun = Instant::now();
        let mut problem = Problem::new(Code::Unreachable, "no server is named");
        for server in &self.servers {
            let request = self.request(server, Method::GET, &call.path)?.headers(call.headers.clone());
            let left = call.deadline.saturating_sub(begun.elapsed());
            let why = match tokio::time::timeout(left, server.send(request)).await {
                Ok(Ok(response)) if response.status().is_success() => {
                    return Ok(Download { response, server: server.to_string() });
                }
                Ok(Ok(response)) => {
                    let status = response.status();
                    match serde_json::from_slice::<Problem>(&response.bytes().await.unwrap_or_default()) {
                        Ok(refused) if helps_elsewhere(&refused) => {
                            problem = refused;
                            continue;
                        }
                        Ok(refused) => return Err(refused),
                        Err(_) => format!("answered {status}, but not as ipamd does"),
                    }
                }
                Ok(Err(miss)) => miss.why().to_owned(),
                Err(_) => "timed out".to_owned(),
            };
            if problem.code == Code::Unreachable {
                problem = Problem::new(Code::Unreachable, format!("no server answered; {server}: {why}"));
            }
        }
        Err(problem)
    }
}

impl Download {
    /// Returns the next piece; `None` at the end.
    ///
    /// # Errors
    /// `unreachable`, when the connection ends before the answer does.
    pub async fn piece(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Problem> {
        let why = match tokio::time::timeout(SILENCE, self.response.chunk()).await {
            Ok(Ok(piece)) => return Ok(piece),
            Ok(Err(error)) => reason(&error),
            Err(_) => format!("nothing came for {} s", SILENCE.as_secs()),
        };
        Err(Problem::new(Code::Unreachable, format!("{} broke off its answer: {why}", self.server))
            .help("Repeat; the log of that member says why."))
    }
}
