//! Server: the system under test, as a client sees it.

use std::time::Duration;

use futures::future::BoxFuture;
use ipam_api::Problem;
use ipam_api::client::{Answer, Call, Client};
use ipam_api::event::{Event, EventPage};
use tokio::time::Instant;

/// Time between two pages of a server that does not stream.
const POLL: Duration = Duration::from_millis(100);
/// Timeout of one page.
const PAGE: Duration = Duration::from_secs(2);

/// Receiver of the events of a stream.
pub type Seen<'a> = &'a mut (dyn FnMut(Event) + Send);

/// Accepts requests: a real client, or a simulated one.
pub trait Server: Send + Sync {
    /// Sends a request, with the repetitions of `ipam_api::client::Client`.
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Problem>>;

    /// Follows the events of `path` after `after` for a time, and resumes after interruptions. Returns the
    /// position after the last event; a stream also moves it while nothing happens.
    ///
    /// A server without streams is polled for pages.
    fn follow<'a>(
        &'a self,
        path: &'a str,
        after: String,
        time: Duration,
        seen: Seen<'a>,
    ) -> BoxFuture<'a, Result<String, Problem>> {
        Box::pin(async move {
            let deadline = Instant::now() + time;
            let mut position = after;
            while Instant::now() < deadline {
                let call = Call::get(path).query("after", &position).within(PAGE);
                let page: EventPage = self.send(call).await?.read()?;
                if let Some(last) = page.items.last() {
                    position = last.id();
                }
                page.items.into_iter().for_each(&mut *seen);
                position = page.next.unwrap_or(position);
                tokio::time::sleep(POLL).await;
            }
            Ok(position)
        })
    }
}

impl Server for Client {
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, Problem>> {
        Box::pin(Client::send(self, call))
    }

    fn follow<'a>(
        &'a self,
        path: &'a str,
        after: String,
        time: Duration,
        seen: Seen<'a>,
    ) -> BoxFuture<'a, Result<String, Problem>> {
        Box::pin(async move {
            let deadline = Instant::now() + time;
            let mut stream = self.events(path, Some(after.clone()), time);
            while let Ok(next) = tokio::time::timeout_at(deadline, stream.next()).await {
                seen(next?);
            }
            Ok(stream.last().map_or(after, str::to_owned))
        })
    }
}
