//! Watch of a client.

use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

/// Duration after which an event counts as lost. A real server sends bookmarks about once a minute.
const PATIENCE: Duration = Duration::from_secs(150);

/// Lines of a watch.
pub(crate) struct Watch {
    response: Response,
    buffer: String,
}

impl Watch {
    pub(crate) async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, buffer: String::new() }
    }

    /// Next event; none at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        tokio::time::timeout(PATIENCE, self.line()).await.expect("an event")
    }

    /// True if the connection ends in the middle of the watch.
    pub(crate) async fn is_cut(&mut self) -> bool {
        self.response.chunk().await.is_err()
    }

    async fn line(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.buffer.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.buffer = rest.to_owned();
                return Some(event);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Type and name of the next event that is no bookmark.
    pub(crate) async fn change(&mut self) -> Option<String> {
        loop {
            let event = self.next().await?;
            if event["type"] != "BOOKMARK" {
                let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
                return Some(format!("{} {name}", event["type"].as_str().unwrap()));
            }
        }
    }
}
