//! Journal of the cluster, from its first event to its last.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use ipam_api::event::{Event, EventPage};

const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of events of a run.
const EVENTS_MAX: usize = 20_000_000;

/// Downloads the journal by pages.
///
/// # Errors
/// If a page can't be read, or the first event isn't the oldest: the checkers need all of them.
pub(super) async fn download(client: &Client) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut call = Call::get("/v1/events?limit=1000").within(PATIENCE);
        if let Some(after) = &after {
            call = call.query("after", after);
        }
        let page: EventPage = client.call(call).await.context("the journal can't be read")?;
        events.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
        if events.len() > EVENTS_MAX {
            bail!("the journal has more than {EVENTS_MAX} events");
        }
    }
    Ok(events)
}
