//! Event stream, as server-sent events.
//!
//! `id` is an event's position, so that a reader that reconnects, to this member or another, continues after
//! its last event (`Last-Event-ID`). An idle stream sends progress messages. The stream ends when this member
//! stops or loses contact with the cluster, when the caller loses the right to read events, or when the
//! reader accepts no data.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use ipam_api::access::{Target, Verb};
use ipam_api::limits::{
    EVENT_PROGRESS_MS, EVENT_READER_MS_MAX, EVENT_STALE_MS_MAX, EVENT_STREAM_PAGE, EVENT_STREAMS_MAX,
    EVENT_STREAMS_PER_CALLER_MAX,
};
use ipam_api::{Code, Problem};
use ipam_machine::{EventId, SeededBug};
use ipam_raft::{EventPage, EventQuery};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, sleep_until};

use super::item;
use super::query::{EventsQuery, place};
use crate::http::request::{App, Caller, Flight, Read};

/// Header with the position of a reader that reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Maximum number of pages that wait for a slow reader.
const PAGES_WAITING_MAX: usize = 4;
/// Interval in which the end of the stream is checked.
const LOOK: Duration = Duration::from_secs(1);
/// Time in which consecutive events are gathered into one write.
const GATHER: Duration = Duration::from_millis(5);

/// Producer of one event stream.
struct Stream {
    app: App,
    caller: Caller,
    query: EventQuery,
    to: Sender<Bytes>,
    _place: OwnedSemaphorePermit,
    _own_place: Flight,
}

/// Begins to stream.
pub(super) async fn open(read: Read<EventsQuery>, headers: &HeaderMap) -> Result<Response, Problem> {
    let Read { app, caller, query: asked } = read;
    let mut query = EventQuery { limit: EVENT_STREAM_PAGE, ..asked.page()? };
    if query.reverse {
        return Err(Problem::new(Code::InvalidFilter, "a stream goes forward only")
            .help("Leave reverse out, or ask for a page: Accept: application/json."));
    }
    let known = app.who(&caller).await?;
    known.check((Verb::Read, Target::Event))?;
    if let Some(last) = headers.get(LAST_EVENT_ID) {
        query.after = Some(place(last.to_str().unwrap_or_default())?);
    }
    // Without a position the stream begins after the present revision.
    if query.after.is_none() && query.filter.since_ms.is_none() {
        query.after = Some(EventId::end_of(app.node.read(caller.deadline).await?.revision()));
    }
    app.node.check_trust()?;
    if app.node.stale().1 >= EVENT_STALE_MS_MAX {
        return Err(Problem::new(Code::NoLeader, "this member has lost touch with the cluster"));
    }
    let own_place = app.streams_of.begin(caller.slot_holder(&known)).ok_or_else(|| {
        let detail = format!("the caller has {EVENT_STREAMS_PER_CALLER_MAX} streams of events open here");
        Problem::new(Code::TooManyRequests, detail)
            .help("End streams that no client reads, or ask another member.")
    })?;
    let place = app.streams.clone().try_acquire_owned().map_err(|_| {
        Problem::new(Code::Overloaded, format!("{EVENT_STREAMS_MAX} streams of events are open here"))
            .help("Use another member, or end unused streams.")
    })?;
    let mut news = app.node.events_revision();
    news.mark_unchanged();
    let first = app.node.events(query.clone()).await?;
    let (to, from) = channel(PAGES_WAITING_MAX);
    let node = app.node.clone();
    let stream = Stream { app, caller, query, to, _place: place, _own_place: own_place };
    tokio::spawn(async move { node.guard_work(stream.run(first, news)).await });
    let head = [(CONTENT_TYPE.as_str(), "text/event-stream"), ("x-accel-buffering", "no")];
    Ok((head, Body::from_stream(body(from))).into_response())
}

/// Body of the response. It ends normally when the producer is dropped.
fn body(from: Receiver<Bytes>) -> impl futures::Stream<Item = Result<Bytes, std::convert::Infallible>> {
    stream::unfold(from, async |mut from| from.recv().await.map(|bytes| (Ok(bytes), from)))
}

impl Stream {
    async fn run(mut self, first: EventPage, mut news: tokio::sync::watch::Receiver<u64>) {
        let mut stopping = self.app.node.stopping();
        let mut page = first;
        let mut progress = Instant::now() + Duration::from_millis(EVENT_PROGRESS_MS);
        // A reader that loses the connection before the first event needs a position to continue from.
        if page.next.is_none() && !self.send(self.progress(&page)).await {
            return;
        }
        loop {
            if !self.send(written(&page)).await {
                return;
            }
            let more = page.next.is_some();
            // All events up to the page's revision have been sent or filtered out.
            let reached =
                if SeededBug::SkippedEvent.is_on() { self.app.node.revision() } else { page.revision };
            let known = page.next.unwrap_or(EventId::end_of(reached));
            self.query.after = self.query.after.max(Some(known));
            let (mut due, mut fresh) = (false, false);
            while !more && !due && !fresh {
                tokio::select! {
                    changed = news.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        fresh = true;
                    }
                    () = sleep_until(progress) => due = true,
                    _ = stopping.wait_for(|stopping| *stopping) => return,
                    () = sleep(LOOK) => {}
                }
                if self.to.is_closed() || !self.may_go_on() {
                    return;
                }
            }
            if fresh {
                sleep(GATHER).await;
            }
            if *stopping.borrow() {
                return;
            }
            news.mark_unchanged();
            page = match self.app.node.events(self.query.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    let problem = Problem::from(error);
                    let data = serde_json::to_string(&problem).unwrap_or_default();
                    self.send(format!("event: problem\ndata: {data}\n\n")).await;
                    return;
                }
            };
            if due {
                progress = Instant::now() + Duration::from_millis(EVENT_PROGRESS_MS);
                if page.next.is_none() && !self.send(self.progress(&page)).await {
                    return;
                }
            }
        }
    }

    /// True if this member still receives events and the caller may still read them.
    fn may_go_on(&self) -> bool {
        let (state, stale_ms) = self.app.node.stale();
        let known = self.caller.known_in(&state).ok().flatten();
        stale_ms < EVENT_STALE_MS_MAX
            && self.app.node.check_trust().is_ok()
            && known.is_some_and(|known| known.check((Verb::Read, Target::Event)).is_ok())
    }

    /// Progress message; only if the present page holds no event to send first.
    fn progress(&self, page: &EventPage) -> String {
        if !page.events.is_empty() {
            return String::new();
        }
        let known = self.query.after.max(Some(EventId::end_of(page.revision))).unwrap_or_default();
        format!("id: {known}\nevent: progress\ndata: {{\"revision\":{}}}\n\n", known.revision)
    }

    /// Returns false if the reader has disconnected or accepts no data.
    async fn send(&self, text: String) -> bool {
        if text.is_empty() {
            return true;
        }
        self.to.send_timeout(text.into(), Duration::from_millis(EVENT_READER_MS_MAX)).await.is_ok()
    }
}

/// Events of a page, each in its own lines: encoded JSON contains no line breaks.
fn written(page: &EventPage) -> String {
    let mut text = String::new();
    for event in &page.events {
        let item = item::event(event);
        let Ok(data) = serde_json::to_string(&item) else { continue };
        // Writing to a string doesn't fail.
        let _ = write!(text, "id: {}\nevent: {}\ndata: {data}\n\n", event.id(), item.event_type);
    }
    text
}
