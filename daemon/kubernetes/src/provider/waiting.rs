//! Claims that wait: events of their pools report when a claim is served.

use std::time::Duration;

use futures::StreamExt as _;
use ipam_api::client::{Call, with_query};
use ipam_api::event::{Event, EventPage};
use ipam_api::limits::{CLUSTER_API_EVENTS_AT_ONCE, CLUSTER_API_EVENTS_MS, PAGE_ITEMS_MAX};
use ipam_api::name::Name;
use ipam_api::resource::EndpointKind;
use ipam_api::{Code, Problem};

use super::grant::REQUEST;
use super::shared::Shared;
use super::views::Views;
use crate::cluster_api::{Key, claim_of_prefix};
use crate::servers::Servers;

const INTERVAL: Duration = Duration::from_millis(CLUSTER_API_EVENTS_MS);

/// Follows the events of pools on which claims wait, for as long as the provider runs.
///
/// The state machine serves the oldest claim when it frees an address. The provider learns of this only by
/// the events.
pub(super) async fn follow_waiting(shared: &Shared<impl Servers>) {
    let mut last: Option<Name> = None;
    loop {
        let turn = next(&shared.views(), last.as_ref());
        let Some((pool, _)) = turn.last() else {
            last = None;
            shared.waiting.notified().await;
            continue;
        };
        last = Some(pool.clone());
        let reads = turn.into_iter().map(async |(pool, after)| {
            let events = read(shared, &pool, after).await;
            (pool, events)
        });
        let pages: Vec<_> =
            futures::stream::iter(reads).buffer_unordered(CLUSTER_API_EVENTS_AT_ONCE).collect().await;
        let (mut has_news, mut has_more) = (false, false);
        for (pool, page) in pages {
            match page {
                Ok(page) => {
                    has_more |= page.next.is_some();
                    has_news |= apply(&mut shared.views(), shared.settings.realm.as_str(), &pool, page);
                }
                // The events since the position are no longer available.
                Err(problem) if problem.code == Code::RevisionCompacted => {
                    retry_all(&mut shared.views(), &pool);
                    has_news = true;
                }
                Err(problem) => shared.refused(&problem),
            }
        }
        if has_news {
            shared.claims.notify_one();
        }
        if !has_more {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// Pools to read in this turn, beginning after the last pool of the previous turn.
fn next(views: &Views, last: Option<&Name>) -> Vec<(Name, String)> {
    let after = views.waiting.iter().filter(|(pool, _)| last.is_none_or(|last| *pool > last));
    let before = views.waiting.iter().filter(|(pool, _)| last.is_some_and(|last| *pool <= last));
    let all = after.chain(before).take(CLUSTER_API_EVENTS_AT_ONCE);
    all.map(|(pool, waiting)| (pool.clone(), waiting.after.clone())).collect()
}

async fn read(shared: &Shared<impl Servers>, pool: &Name, after: String) -> Result<EventPage, Problem> {
    let path = with_query("/v1/events", "pool", pool.as_str());
    let path = with_query(&with_query(&path, "after", &after), "limit", &PAGE_ITEMS_MAX.to_string());
    shared.servers.send(Call::get(path).within(REQUEST)).await?.read()
}

/// Tries the claims again that events concern. Returns true if there are any.
///
/// A page may end inside of a revision, or be empty, and yet not be the last.
fn apply(views: &mut Views, realm: &str, pool: &Name, page: EventPage) -> bool {
    let Some(waiting) = views.waiting.get_mut(pool) else { return false };
    waiting.go_on(page.next.unwrap_or_else(|| page.revision.to_string()));
    if page.items.iter().any(|event| event.kind == "pool") {
        return retry_all(views, pool);
    }
    let served: Vec<Key> = page.items.iter().filter_map(|event| claim(event, realm)).collect();
    let served: Vec<Key> = served.into_iter().filter(|key| waiting.claims.contains(key)).collect();
    for key in &served {
        views.retry(key.clone());
    }
    !served.is_empty()
}

fn retry_all(views: &mut Views, pool: &Name) -> bool {
    let claims = views.waiting.remove(pool).unwrap_or_default().claims;
    let has_any = !claims.is_empty();
    for key in claims {
        views.retry(key);
    }
    has_any
}

/// Claim that an event is about.
fn claim(event: &Event, realm: &str) -> Option<Key> {
    if let Some(endpoint) = &event.endpoint {
        let is_claim = endpoint.kind == EndpointKind::Claim && endpoint.realm.as_str() == realm;
        return is_claim.then(|| (endpoint.namespace.clone(), endpoint.name.clone()));
    }
    let (of, owner) = event.owner.as_deref()?.split_once('/')?;
    claim_of_prefix(owner).filter(|_| of == realm)
}
