//! Watches: changes after a version, bookmarks, and errors, a line each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::Stream;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::form::Form;
use crate::path::{Place, parameter};
use crate::select::Select;
use crate::server::Shared;
use crate::status::Refusal;
use crate::store::{Change, Store};

/// Duration of a watch that names none.
const TIMEOUT_S: u64 = 1800;

/// Open watch.
struct Watch {
    shared: Arc<Shared>,
    place: Place,
    select: Select,
    form: Form,
    has_bookmarks: bool,
    version: u64,
    /// Generation of the watch; see `Faults::watches`.
    generation: u64,
    ready: VecDeque<Value>,
    end: Instant,
    bookmark: Instant,
    is_over: bool,
}

/// Opens a watch.
///
/// # Errors
/// 400 for a malformed query, 410 for a version that is too old.
pub(crate) fn watch(shared: &Arc<Shared>, place: &Place, query: &str, form: Form) -> Result<Body, Refusal> {
    let select = Select::of(query).map_err(|why| Refusal::new(400, why))?;
    let (version, ready) = {
        let state = shared.lock();
        let store = &state.store;
        match parameter(query, "resourceVersion").filter(|version| version != "0" && !version.is_empty()) {
            None => (store.version, present(store, place, &select)),
            Some(version) => {
                let version: u64 =
                    version.parse().map_err(|_| Refusal::new(400, "invalid resourceVersion"))?;
                if version < store.compacted {
                    return Err(too_old(version, store.compacted));
                }
                (version, VecDeque::new())
            }
        }
    };
    let timeout_s = parameter(query, "timeoutSeconds").and_then(|seconds| seconds.parse().ok());
    let watch = Watch {
        place: place.clone(),
        select,
        form,
        has_bookmarks: parameter(query, "allowWatchBookmarks").is_some_and(|value| value != "false"),
        version,
        generation: shared.lock().faults.watches,
        ready,
        end: Instant::now() + Duration::from_secs(timeout_s.unwrap_or(TIMEOUT_S)),
        bookmark: Instant::now() + shared.bookmark_interval,
        is_over: false,
        shared: Arc::clone(shared),
    };
    Ok(Body::from_stream(lines(watch)))
}

/// Present objects as if they had just been added, for a watch without a version.
fn present(store: &Store, place: &Place, select: &Select) -> VecDeque<Value> {
    let all = store.objects.iter().filter(|(key, object)| key.is_in(place) && select.fits(object));
    all.map(|(_, object)| json!({"type": "ADDED", "object": object})).collect()
}

fn too_old(version: u64, compacted: u64) -> Refusal {
    Refusal::new(410, format!("too old resource version: {version} ({compacted})"))
}

fn lines(watch: Watch) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(watch, async |mut watch| {
        let event = watch.next().await?;
        Some((Ok(Bytes::from(format!("{event}\n"))), watch))
    })
}

impl Watch {
    async fn next(&mut self) -> Option<Value> {
        let mut changed = self.shared.changed.subscribe();
        loop {
            if self.is_over || self.shared.lock().faults.watches != self.generation {
                return None;
            }
            if let Some(event) = self.ready_event() {
                return Some(self.shown(event));
            }
            if self.is_retired() {
                return None;
            }
            let wake = self.end.min(self.bookmark);
            tokio::select! {
                _ = changed.changed() => {}
                () = sleep_until(wake) => {
                    if Instant::now() >= self.end {
                        return None;
                    }
                    self.bookmark = Instant::now() + self.shared.bookmark_interval;
                    if let Some(event) = self.bookmark() {
                        return Some(event);
                    }
                }
            }
        }
    }

    fn ready_event(&mut self) -> Option<Value> {
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        if state.faults.is_frozen {
            return None;
        }
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        if self.version < state.store.compacted {
            self.is_over = true;
            let error = too_old(self.version, state.store.compacted).object();
            return Some(json!({"type": "ERROR", "object": error}));
        }
        while let Some(change) = state.store.change_after(self.version, &self.place) {
            self.version = change.version;
            if let Some(event) = event(change, &self.select) {
                return Some(event);
            }
        }
        None
    }

    /// Returns true if the definition has changed or no longer serves the version. Clients then watch again.
    fn is_retired(&mut self) -> bool {
        let Some(custom) = &self.place.custom else { return false };
        let resource = &self.place.resource;
        let state = self.shared.lock();
        let now = state.registry.find(&resource.group, &resource.version, &resource.plural);
        let now = now.and_then(|served| served.custom.clone());
        drop(state);
        let Some(now) = now.filter(|now| Arc::ptr_eq(now, custom) || now.is_same(custom)) else {
            return true;
        };
        self.place.custom = Some(now);
        false
    }

    fn bookmark(&self) -> Option<Value> {
        let state = self.shared.lock();
        let is_due = self.has_bookmarks && !state.faults.is_frozen;
        let resource = &self.place.resource;
        let metadata = json!({"resourceVersion": state.store.version.to_string(), "creationTimestamp": null});
        is_due.then(|| {
            let object =
                json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata});
            json!({"type": "BOOKMARK", "object": object})
        })
    }

    fn shown(&self, mut event: Value) -> Value {
        if event["type"] != "ERROR" {
            let now = self.shared.lock().clock.now();
            event["object"] = self.form.shown(&self.place, self.place.shown(&event["object"]), now);
        }
        event
    }
}

/// Event of a change for a watch that selects.
fn event(change: &Change, select: &Select) -> Option<Value> {
    let was = change.before.as_ref().is_some_and(|before| select.fits(before));
    let is = !change.is_deleted && select.fits(&change.after);
    let kind = match (was, is) {
        (false, true) => "ADDED",
        (true, true) => "MODIFIED",
        (true, false) => "DELETED",
        (false, false) => return None,
    };
    Some(json!({"type": kind, "object": change.after}))
}
