//! `/v1/addresses/{ip}/history`: holders of an address over time.

use std::net::IpAddr;

use axum::extract::Path;
use ipam_api::Problem;
use ipam_api::access::{Target, Verb};
use ipam_api::address::parse_address;
use ipam_api::event::AddressHistory;
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use ipam_machine::command::Kind;
use ipam_machine::state::Occupant;
use ipam_machine::{Event, EventId, EventKind, State};
use ipam_raft::{EventPage, EventQuery};

use super::item;
use super::query::{HistoryQuery, moment};
use crate::http::request::{ApiError, ApiResponse, App, Read};

/// State of an address, and its holder at that time or before.
struct Standing {
    word: &'static str,
    holder: Option<EndpointKey>,
}

pub(in crate::http) async fn show(
    Path(ip): Path<String>,
    read: Read<HistoryQuery>,
) -> Result<ApiResponse<AddressHistory>, ApiError> {
    let address = parse_address(&ip)?;
    let at_ms = read.query.at.as_deref().map(moment).transpose()?;
    let asked = read.query.page(address, at_ms)?;
    let freshness = (read.query.consistency, read.query.at_least_revision);
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Event), freshness).await?;
    let page = read.app.node.events(asked.clone()).await?;
    let standing = match at_ms {
        Some(at_ms) => Some(standing(&read.app, &state, address, &asked, at_ms).await?),
        None => None,
    };
    let (word, holder) = standing.map_or((None, None), |found| (Some(found.word.to_owned()), found.holder));
    let history = AddressHistory {
        address,
        network: read.query.network,
        at: at_ms.map(Timestamp),
        state: word,
        last_holder: holder,
        events: page.events.iter().map(item::event).collect(),
        next: page.next.map(|next| next.to_string()),
        oldest_kept: page.complete_since_ms.map(Timestamp),
        revision: page.revision,
    };
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(history, page.revision) })
}

/// State of an address at a time, by its events and the present prefixes.
async fn standing(
    app: &App,
    state: &State,
    address: IpAddr,
    asked: &EventQuery,
    at_ms: u64,
) -> Result<Standing, Problem> {
    let found = standing_by_events(app, state, address, asked, at_ms).await?;
    Ok(with_prefixes(found, state, address, asked, at_ms))
}

/// Completes a state that only events determine, because no event of an address records a delegation.
///
/// A present prefix holds its addresses since its delegation. Prefixes that ended before are not considered.
fn with_prefixes(
    found: Standing,
    state: &State,
    address: IpAddr,
    asked: &EventQuery,
    at_ms: u64,
) -> Standing {
    let network = network_id(state, asked);
    let prefix = network.and_then(|network| state.prefix_at(network.into(), address));
    let chain = prefix.map(|(id, _)| state.prefix_chain(id)).unwrap_or_default();
    let mut rows = chain.into_iter().filter_map(|id| state.prefixes.get(id));
    match found.word != "quarantined" && rows.any(|row| row.created_wall_ms <= at_ms) {
        true => Standing { word: "allocated", ..found },
        false => found,
    }
}

/// State of an address at a time: after the last event with that wall time or an earlier one.
async fn standing_by_events(
    app: &App,
    state: &State,
    address: IpAddr,
    asked: &EventQuery,
    at_ms: u64,
) -> Result<Standing, Problem> {
    let mut before = EventQuery { after: None, limit: 1, ..asked.clone() };
    before.filter.since_ms = None;
    let (last, page) = first(app, before).await?;
    if let Some(last) = last {
        let holder = match last.kind.endpoint() {
            Some(endpoint) => Some(endpoint.clone()),
            None => holder_before(app, asked, last.id()).await?,
        };
        return Ok(Standing { word: word_after(&last.kind), holder });
    }
    if page.complete_since_ms.is_some_and(|since_ms| at_ms < since_ms) {
        return Ok(before_what_is_kept(state, address, asked, at_ms));
    }
    // No kept event precedes the time, so the next event, or else the present state, determines the state.
    let mut after = EventQuery { after: None, reverse: false, limit: 1, ..asked.clone() };
    (after.filter.since_ms, after.filter.until_ms) = (Some(at_ms.saturating_add(1)), None);
    let (next, _) = first(app, after).await?;
    Ok(match next.map(|event| event.kind) {
        Some(
            EventKind::Released { of, .. }
            | EventKind::Attached(of)
            | EventKind::Detached(of)
            | EventKind::Collided { of, .. },
        ) => Standing { word: "allocated", holder: Some(of.endpoint) },
        Some(EventKind::Cooled { .. }) => Standing { word: "cooling", holder: None },
        Some(EventKind::QuarantineEnded { .. }) => Standing { word: "quarantined", holder: None },
        Some(_) => Standing { word: "free", holder: None },
        None => now(state, address, asked),
    })
}

/// State at a time before the kept history. Only the present holder can have held it then.
fn before_what_is_kept(state: &State, address: IpAddr, asked: &EventQuery, at_ms: u64) -> Standing {
    let network = network_id(state, asked);
    let allocation = match network.and_then(|network| state.occupant(network.into(), address)) {
        Some(Occupant::Allocation(id)) => state.allocations.get(id),
        _ => None,
    };
    match allocation.filter(|row| row.created_wall_ms <= at_ms) {
        Some(row) => {
            let holder = state.endpoints.get(row.endpoint).map(|endpoint| endpoint.key.clone());
            Standing { word: "allocated", holder }
        }
        None => Standing { word: "compacted", holder: None },
    }
}

/// State by the present occupant; used only if no event has followed.
fn now(state: &State, address: IpAddr, asked: &EventQuery) -> Standing {
    match network_id(state, asked).and_then(|network| state.occupant(network.into(), address)) {
        Some(Occupant::Allocation(id)) => {
            let endpoint = state.allocations.get(id).and_then(|row| state.endpoints.get(row.endpoint));
            Standing { word: "allocated", holder: endpoint.map(|row| row.key.clone()) }
        }
        Some(Occupant::Cooling(_)) => Standing { word: "cooling", holder: None },
        Some(Occupant::Quarantine(_)) => Standing { word: "quarantined", holder: None },
        None => Standing { word: "free", holder: None },
    }
}

/// Id of the network that the history is about, if it exists.
fn network_id(state: &State, asked: &EventQuery) -> Option<u64> {
    asked.filter.network.as_ref().and_then(|name| state.id_of(Kind::Network, name))
}

fn word_after(what: &EventKind) -> &'static str {
    match what {
        EventKind::Allocated(_)
        | EventKind::Attached(_)
        | EventKind::Detached(_)
        | EventKind::Collided { .. } => "allocated",
        EventKind::Quarantined { .. } => "quarantined",
        EventKind::Released { cools: true, .. } => "cooling",
        _ => "free",
    }
}

/// Holder of the address before an event that names no holder.
async fn holder_before(app: &App, asked: &EventQuery, id: EventId) -> Result<Option<EndpointKey>, Problem> {
    let mut before = EventQuery { after: Some(id), limit: 1, ..asked.clone() };
    before.filter.since_ms = None;
    loop {
        let (event, _) = first(app, before.clone()).await?;
        match event {
            None => return Ok(None),
            Some(event) => match event.kind.endpoint() {
                Some(endpoint) => return Ok(Some(endpoint.clone())),
                None => before.after = Some(event.id()),
            },
        }
    }
}

/// The first event of a query, through as many pages as it takes.
async fn first(app: &App, mut query: EventQuery) -> Result<(Option<Event>, EventPage), Problem> {
    loop {
        let mut page = app.node.events(query.clone()).await?;
        if let Some(event) = page.events.pop() {
            return Ok((Some(event), page));
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok((None, page)),
        }
    }
}

#[cfg(test)]
mod tests {
    use ipam_machine::command::Expect;
    use ipam_machine::{Action, At, apply, fixtures};
    use ipam_raft::EventFilter;
    use serde_json::{from_value, json};

    use super::*;
    use crate::http::allocation::{allocate, prefix};
    use crate::http::resource::named::NamedResource as _;
    use crate::http::resource::pool::Pools;
    use crate::http::resource::subnet::Subnets;

    fn done(state: &mut State, wall_ms: u64, action: Action) {
        let at = At { log_time_ms: 1, wall_ms, leadership: 0 };
        apply(state, at, &fixtures::command(action)).0.unwrap();
    }

    /// `10.0.0.1`, held by `host/a` since 1000.
    fn state() -> State {
        let mut state = State::new();
        let lan = json!({"name": "lan", "network": "default", "cidr": "10.0.0.0/24"});
        let web = json!({
            "name": "web", "subnet": "lan", "strategy": "sequential", "cooling_ms": 0, "default": true,
        });
        let request = json!({
            "endpoint": {"kind": "host", "name": "a"}, "lifecycle": "held", "interfaces": [{"name": "eth0"}],
        });
        done(&mut state, 1, Subnets::put(from_value(lan).unwrap(), Expect::Anything));
        done(&mut state, 1, Pools::put(from_value(web).unwrap(), Expect::Anything));
        let to_command = allocate::to_command(from_value(request).unwrap()).unwrap();
        done(&mut state, 1000, Action::Allocate(to_command));
        state
    }

    fn asked() -> EventQuery {
        let network = Some("default".parse().unwrap());
        EventQuery { filter: EventFilter { network, ..EventFilter::default() }, ..EventQuery::default() }
    }

    #[test]
    fn before_what_is_kept_only_who_holds_it_still_is_known() {
        let state = state();
        let standing = |address: &str, at_ms: u64| {
            let standing = before_what_is_kept(&state, address.parse().unwrap(), &asked(), at_ms);
            (standing.word, standing.holder.map(|holder| holder.name.to_string()))
        };
        assert_eq!(standing("10.0.0.1", 1000), ("allocated", Some("a".to_owned())));
        assert_eq!(standing("10.0.0.1", 5000), ("allocated", Some("a".to_owned())));
        assert_eq!(standing("10.0.0.1", 999), ("compacted", None));
        assert_eq!(standing("10.0.0.2", 5000), ("compacted", None));
    }

    #[test]
    fn an_address_is_allocated_from_the_first_delegation_on() {
        let mut state = state();
        let mut delegate = |wall_ms: u64, request: serde_json::Value| {
            done(&mut state, wall_ms, prefix::action_of(from_value(request).unwrap()).unwrap());
        };
        delegate(2000, json!({"pool": "web", "owner": "rack", "length": 28}));
        delegate(3000, json!({"pool": "web", "through": [{"owner": "rack"}], "owner": "host", "length": 32}));
        let address = state.prefixes.iter().last().unwrap().1.cidr.addr();
        let words = |at_ms: u64| {
            let without = [
                now(&state, address, &asked()),
                before_what_is_kept(&state, address, &asked(), at_ms),
                Standing { word: "quarantined", holder: None },
            ];
            without.map(|found| with_prefixes(found, &state, address, &asked(), at_ms).word)
        };
        assert_eq!(words(1999), ["free", "compacted", "quarantined"]);
        for at_ms in [2000, 2999, 3000] {
            assert_eq!(words(at_ms), ["allocated", "allocated", "quarantined"], "at {at_ms}");
        }
    }

    #[test]
    fn the_state_after_an_event_of_a_foreign_host_is_known() {
        let (network, pool) = ("default".parse().unwrap(), "web".parse().unwrap());
        let address = "10.0.0.9".parse().unwrap();
        let by: ipam_api::access::NodeKey = from_value(json!({"realm": "default", "name": "n1"})).unwrap();
        let mac = from_value(json!("02:00:00:00:00:09")).unwrap();
        let begun = EventKind::Quarantined {
            network: Clone::clone(&network),
            address,
            pool: Clone::clone(&pool),
            mac,
            by: by.clone(),
        };
        assert_eq!(word_after(&begun), "quarantined");
        let ended = EventKind::QuarantineEnded { network, address, pool, by: Some(by) };
        assert_eq!(word_after(&ended), "free");
    }
}
