//! One page of a list, made from one state.

use ipam_api::resource::Page;
use ipam_api::{Code, Problem};
use ipam_machine::{SeededBug, State};
use serde::Serialize;
use serde_json::{Map, Value};

use super::cursor::Cursor;
use super::field::Key;
use super::listed::Listable;
use super::query::ListQuery;

/// Item, or its requested fields.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in crate::http) enum Item<T> {
    Whole(T),
    Part(Value),
}

pub(super) fn page<L: Listable>(state: &State, query: &ListQuery) -> Result<Page<Item<L::Item>>, Problem> {
    match query.sort.is_empty() {
        true => in_own_order::<L>(state, query),
        false => sorted::<L>(state, query),
    }
}

/// Ids that the list may contain after its cursor.
fn candidates<'a, L: Listable>(
    state: &'a State,
    query: &ListQuery,
    after: Option<u64>,
) -> Result<Box<dyn Iterator<Item = u64> + 'a>, Problem> {
    if let Some(ids) = L::narrowed(state, &query.tests) {
        let behind = after.and_then(|after| ids.iter().position(|id| *id == after));
        return Ok(Box::new(ids.into_iter().skip(behind.map_or(0, |at| at + 1))));
    }
    L::ids(state, after).ok_or_else(|| Problem::new(Code::InvalidCursor, "the cursor is malformed"))
}

fn in_own_order<L: Listable>(state: &State, query: &ListQuery) -> Result<Page<Item<L::Item>>, Problem> {
    let after = query.cursor.map(|cursor| cursor.position);
    let mut items = Vec::new();
    let (mut last, mut more) = (None, false);
    let skipped = usize::from(after.is_some() && SeededBug::SkippedItem.is_on());
    for id in candidates::<L>(state, query, after)?.skip(skipped) {
        let Some(item) = fitting::<L>(state, query, id) else { continue };
        if items.len() >= query.limit {
            more = true;
            break;
        }
        items.push(shown(query, item));
        last = Some(id);
    }
    let count = query.count.then(|| count::<L>(state, query)).transpose()?;
    Ok(finish(state, query, items, last.filter(|_| more), count))
}

fn count<L: Listable>(state: &State, query: &ListQuery) -> Result<u64, Problem> {
    if query.tests.is_empty() {
        return Ok(L::total(state) as u64);
    }
    let ids = candidates::<L>(state, query, None)?;
    Ok(ids.filter(|id| fitting::<L>(state, query, *id).is_some()).count() as u64)
}

fn sorted<L: Listable>(state: &State, query: &ListQuery) -> Result<Page<Item<L::Item>>, Problem> {
    let mut all: Vec<(Vec<Key>, u64)> = Vec::new();
    for id in candidates::<L>(state, query, None)? {
        let Some((_, json)) = fitting::<L>(state, query, id) else { continue };
        all.push((query.sort.iter().map(|(field, _)| field.of(&json)).collect(), id));
    }
    // The sort is stable: equal items stay in the list's own order.
    all.sort_by(|(one, _), (other, _)| {
        let compared = one.iter().zip(other).zip(&query.sort);
        let mut orders = compared.map(
            |((one, other), (_, backwards))| {
                if *backwards { other.cmp(one) } else { one.cmp(other) }
            },
        );
        orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    let before = query.cursor.map_or(0, |cursor| usize::try_from(cursor.position).unwrap_or(usize::MAX));
    let mut rest = all.iter().skip(before);
    let mut items = Vec::new();
    for (_, id) in rest.by_ref().take(query.limit) {
        items.extend(fitting::<L>(state, query, *id).map(|item| shown(query, item)));
    }
    let next = rest.next().map(|_| before.saturating_add(items.len()) as u64);
    Ok(finish(state, query, items, next, query.count.then_some(all.len() as u64)))
}

/// Item, if it matches the filters.
fn fitting<L: Listable>(state: &State, query: &ListQuery, id: u64) -> Option<(L::Item, Value)> {
    let item = L::item(state, id)?;
    let as_json = !query.sort.is_empty()
        || !query.fields.is_empty()
        || query.tests.iter().any(super::query::Test::needs_json);
    let json = if as_json { serde_json::to_value(&item).unwrap_or_default() } else { Value::Null };
    query.tests.iter().all(|test| test.fits::<L>(&item, &json)).then_some((item, json))
}

fn shown<T>(query: &ListQuery, (item, json): (T, Value)) -> Item<T> {
    if query.fields.is_empty() {
        return Item::Whole(item);
    }
    let mut part = Map::new();
    for path in &query.fields {
        copy(&json, path, &mut part);
    }
    Item::Part(Value::Object(part))
}

/// Copies the value at a path to the same path of another object.
fn copy(from: &Value, path: &str, to: &mut Map<String, Value>) {
    let label = ["labels", "annotations"]
        .into_iter()
        .find_map(|head| Some((head, path.strip_prefix(head)?.strip_prefix('.')?)));
    match label.or_else(|| path.split_once('.')) {
        None => {
            if let Some(value) = from.get(path) {
                to.insert(path.to_owned(), value.clone());
            }
        }
        Some((head, rest)) => {
            let Some(inner) = from.get(head) else { return };
            let place = to.entry(head).or_insert_with(|| Value::Object(Map::new()));
            let Some(place) = place.as_object_mut() else { return };
            if label.is_none() {
                copy(inner, rest, place);
            } else if let Some(value) = inner.get(rest) {
                place.insert(rest.to_owned(), value.clone());
            }
        }
    }
}

fn finish<T>(
    state: &State,
    query: &ListQuery,
    items: Vec<T>,
    next: Option<u64>,
    count: Option<u64>,
) -> Page<T> {
    let revision = state.revision();
    let next = next.map(|position| Cursor { revision, query: query.hash, position }.encode());
    Page { items, revision, next, count }
}
