//! Lists, page by page, and reads of single objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::path::{Place, parameter};
use crate::select::Select;
use crate::server::State;
use crate::status::Refusal;
use crate::store::Key;

/// Objects and version that a list is made of.
pub(crate) type Snapshot = (BTreeMap<Key, Value>, u64);

/// One page of a collection.
///
/// # Errors
/// 400 for a malformed query, 410 for a continuation that is too old.
pub(crate) fn list(state: &State, place: &Place, query: &str) -> Result<Value, Refusal> {
    let (store, faults) = (&state.store, &state.faults);
    let select = Select::of(query).map_err(|why| Refusal::new(400, why))?;
    // A cached list has no pages.
    let is_cached = parameter(query, "resourceVersion").as_deref() == Some("0");
    let stale = faults.stale.as_ref().or(faults.stale_cache.as_ref().filter(|_| is_cached));
    let limit = parameter(query, "limit").and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0);
    let limit: usize = limit.filter(|_| !is_cached).unwrap_or(usize::MAX);
    let from = parameter(query, "continue").filter(|token| !token.is_empty());
    let (version, last) = match from.map(|token| Token::read(&token)) {
        Some(Some(token)) if token.version < store.compacted => {
            return Err(Refusal::new(410, "the provided continue parameter is too old"));
        }
        Some(Some(token)) => (token.version, Some((token.namespace, token.name))),
        Some(None) => return Err(Refusal::new(400, "continue key is not valid")),
        None => (stale.map_or(store.version, |stale| stale.1), None),
    };
    // Later pages show the version of the first one.
    let past = last.as_ref().and_then(|_| store.at(version, place));
    let objects = past.as_ref().or(stale.map(|stale| &stale.0)).unwrap_or(&store.objects);
    let is_next = |key: &&Key| {
        last.as_ref().is_none_or(|(namespace, name)| (&key.namespace, &key.name) > (namespace, name))
    };
    let all = objects.iter().filter(|(key, _)| key.is_in(place) && is_next(key));
    let mut fitting = all.filter(|(_, object)| select.fits(object));
    let page: Vec<(&Key, &Value)> = fitting.by_ref().take(limit).collect();
    let remaining = fitting.count();
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let (Some((key, _)), true) = (page.last(), remaining > 0) {
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        metadata["continue"] = Token { version, namespace, name }.to_string().into();
    }
    let items: Vec<Value> = page.into_iter().map(|(_, object)| place.shown(object)).collect();
    let mut list = list_of(place, version, &items);
    list["metadata"] = metadata;
    Ok(list)
}

/// List of objects at a version.
pub(crate) fn list_of<T: serde::Serialize>(place: &Place, version: u64, items: &[T]) -> Value {
    json!({
        "kind": format!("{}List", place.resource.kind), "apiVersion": place.resource.api_version(),
        "metadata": {"resourceVersion": version.to_string()}, "items": items,
    })
}

/// Position in a list.
struct Token {
    version: u64,
    namespace: String,
    name: String,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.version, self.namespace, self.name)
    }
}

impl Token {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        let version = parts.next()?.parse().ok()?;
        let (namespace, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self { version, namespace, name })
    }
}
