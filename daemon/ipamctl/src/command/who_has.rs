//! `ipamctl who-has`: holder of an address, or the reason why it has none.

use std::net::IpAddr;

use clap::Args;
use ipam_api::Name;
use ipam_api::address::parse_address;
use ipam_api::client::with_query;
use ipam_api::event::{AddressHistory, Event, EventPage};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::probe::Quarantine;
use ipam_api::resource::{Address, Allocation, Prefix};
use ipam_api::time::Timestamp;

use crate::client::requests::with_all;
use crate::client::session::Session;
use crate::command::events;
use crate::command::prefix::block;
use crate::command::quarantine;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// Arguments of `who-has`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamctl who-has 10.10.0.77
  ipamctl who-has 2001:db8:1::4e --network lab
  ipamctl who-has 10.10.0.77 --at 2026-11-19T22:13:10Z
  ipamctl who-has 10.10.0.77 --at 12h
  ipamctl who-has 10.10.0.77 --all
  ipamctl who-has 10.10.0.77 -o json")]
pub(crate) struct WhoHasArguments {
    /// Address to look up
    #[arg(value_parser = parse_address)]
    address: IpAddr,
    /// Show the holder at a time, as a timestamp or an age: 2026-11-19T22:13:10Z, 12h
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
}

/// Number of events below the holder, without `--all`.
const NEWEST: usize = 5;

/// Path of an address in the API.
pub(crate) fn path(session: &Session, address: IpAddr) -> String {
    within(session, format!("/v1/addresses/{address}"))
}

fn within(session: &Session, path: String) -> String {
    with_all(&path, [("network", session.settings.network.as_ref().map(ToString::to_string))])
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &WhoHasArguments) -> Result<(), Failure> {
    let history_path = within(session, format!("/v1/addresses/{}/history", arguments.address));
    if let Some(at) = &arguments.at {
        let at = events::moment(at, session.now())?;
        check_past(&at, session.now())?;
        let answer = session.read(&with_query(&history_path, "at", &at)).await?;
        let history: AddressHistory = answer.read()?;
        let holder = history.last_holder.as_ref().map(ToString::to_string).unwrap_or_default();
        let begins = begins_after(session, &history).await;
        return session.show(&answer.body, &holder, || {
            Ok(then(&history, begins)
                + &table(&history.events).render(session.headers, session.environment.width))
        });
    }
    let answer = session.read(&path(session, arguments.address)).await?;
    let address: Address = answer.read()?;
    let holder = address.allocation.as_ref().map(|allocation| allocation.endpoint.to_string());
    let holder = holder.unwrap_or_default();
    let found = quarantine_of(session, &address).await;
    session.show(&answer.body, &holder, || {
        Ok(shown(&address, found.as_ref(), session.now(), session.environment.width))
    })?;
    if !session.format.is_for_people() {
        return Ok(());
    }
    let wanted = if session.reading.all { usize::MAX } else { NEWEST };
    // The holder is shown even if the caller may not read the history, or if the member lacks it.
    match past(session, &history_path, wanted).await {
        Ok((events, more)) => {
            if !events.is_empty() {
                session.print(&format!(
                    "\n{}",
                    table(&events).render(session.headers, session.environment.width)
                ))?;
            }
            if more {
                session.say("there is more: --all");
            }
        }
        Err(failure) => session.say(&format!("history: {}", failure.text(false).unwrap_or_default())),
    }
    Ok(())
}

/// Evidence about a quarantined address, for people. Without the evidence, the state is still shown.
async fn quarantine_of(session: &Session, address: &Address) -> Option<Quarantine> {
    if address.state != "quarantined" || !session.format.is_for_people() {
        return None;
    }
    let path = quarantine::path(Some(&address.network), address.address);
    session.read(&path).await.ok()?.read().ok()
}

/// Refuses a moment in the future, with tolerance for a clock that is a little behind the servers'.
fn check_past(at: &str, now: Timestamp) -> Result<(), Failure> {
    const AHEAD_MS: u64 = 30_000;
    let future = at.parse::<Timestamp>().is_ok_and(|at| at.0 > now.0.saturating_add(AHEAD_MS));
    if !future {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{at} is in the future"),
        "Use a past time. Current holder: ipamctl who-has ADDRESS",
    ))
}

/// Start of the history, if it is after the requested time.
async fn begins_after(session: &Session, history: &AddressHistory) -> Option<Timestamp> {
    if !session.format.is_for_people() {
        return None;
    }
    let begins = match history.oldest_kept {
        Some(oldest) => oldest,
        // Nothing was deleted, so the history begins with the first event. Without permission it is unknown.
        None => {
            let first: EventPage = session.read("/v1/events?limit=1").await.ok()?.read().ok()?;
            first.items.first()?.at
        }
    };
    history.at.is_some_and(|at| at < begins).then_some(begins)
}

/// Events of an address, newest first, and true if there are more.
async fn past(session: &Session, path: &str, wanted: usize) -> Result<(Vec<Event>, bool), Failure> {
    let mut events = Vec::new();
    let path = with_query(path, "limit", &wanted.min(PAGE_ITEMS_MAX).to_string());
    let mut query = path.clone();
    loop {
        let history: AddressHistory = session.read(&query).await?.read()?;
        events.extend(history.events);
        match history.next {
            Some(next) if events.len() < wanted => query = with_query(&path, "after", &next),
            next => return Ok((events, next.is_some())),
        }
    }
}

/// State of an address at a moment.
fn then(history: &AddressHistory, begins: Option<Timestamp>) -> String {
    let mut fields = Fields::default();
    let state = history.state.as_deref().unwrap_or("unknown");
    // The holder is known even if its allocation precedes the history.
    let state = if begins.is_some() && state != "allocated" { "unknown" } else { state };
    let at = history.at.map(text::moment).unwrap_or_default();
    fields.line(&history.address.to_string(), format!("{state:<12} network {} · at {at}", history.network));
    fields.some(if state == "allocated" { "holder" } else { "last holder" }, history.last_holder.as_ref());
    if let Some(begins) = begins {
        let begins = text::moment(begins);
        fields.line("history", format!("begins at {begins}; earlier events are not available"));
    } else if let Some(oldest) = history.oldest_kept {
        fields.line("kept since", text::moment(oldest));
    }
    fields.text() + "\n"
}

fn table(events: &[Event]) -> Table {
    Table::of(events)
        .text("WHEN", |event| text::moment(event.at))
        .text("WHAT", |event| event.event_type.strip_prefix("address.").unwrap_or(&event.event_type))
        .text("WHO HELD IT", |event| text::or_dash(event.endpoint.as_ref()))
        .spare("BY", 1, |event| events::printable(&events::by(event)))
        .spare("WHY", 2, events::detail)
        .table()
}

/// Renders the text with lines of at most `width` columns.
fn shown(address: &Address, quarantine: Option<&Quarantine>, now: Timestamp, width: Option<usize>) -> String {
    let mut fields = Fields::default();
    let mut places = vec![format!("network {}", address.network)];
    places.extend(address.subnet.as_ref().map(|subnet| format!("subnet {subnet}")));
    places.extend(address.pool.as_ref().map(|pool| format!("pool {pool}")));
    let state = if address.state == "unmanaged" { "in no pool" } else { &address.state };
    fields.line(&address.address.to_string(), format!("{state:<12} {}", places.join(" · ")));
    if let Some(allocation) = &address.allocation {
        held(&mut fields, allocation, now, width);
    }
    let prefix = |prefix: &Prefix| {
        let Prefix { id, path, realm, .. } = prefix;
        format!("{} of {path}   realm {realm}   ipamctl prefix show {id}", block(prefix))
    };
    fields.some("prefix", address.prefix.as_ref().map(prefix));
    let reservation = |name: &Name| format!("{name}   ipamctl reservation show {name}");
    fields.some("reservation", address.reservation.as_ref().map(reservation));
    let holder = address.allocation.as_ref().map(|allocation| &allocation.endpoint);
    if let Some(endpoint) = &address.recorded_for {
        let is_other = holder.is_some_and(|holder| holder != endpoint);
        let conflict = if is_other { "   CONFLICT: another endpoint holds it" } else { "" };
        fields.line("recorded for", format!("{endpoint}{conflict}"));
    }
    if let Some(left) = address.cooling_ms {
        let then = match (&address.reservation, &address.pool) {
            (Some(reservation), _) => format!("then reservation {reservation} keeps it"),
            (None, Some(_)) => "it becomes free then".to_owned(),
            (None, None) => "no pool contains it then".to_owned(),
        };
        fields.line("cooling", format!("for {} more; {then}", text::roughly(left)));
    }
    match address.state.as_str() {
        "excluded" => {
            fields.line("excluded", "gateway, first or last address of the subnet, or excluded by the pool")
        }
        "quarantined" => match quarantine {
            Some(found) => quarantine::lines(&mut fields, found, now),
            None => fields.line("quarantined", "in use on the link by an unknown host"),
        },
        "unmanaged" if address.subnet.is_none() => fields.line("", "outside all subnets"),
        "unmanaged" => fields.line("", "in the subnet, but in no pool"),
        _ => {}
    }
    fields.text()
}

fn held(fields: &mut Fields, allocation: &Allocation, now: Timestamp, width: Option<usize>) {
    let mut facts = vec![format!("{}   interface {}", allocation.endpoint, allocation.interface)];
    facts.extend(allocation.mac.as_ref().map(|mac| format!("mac {mac}")));
    facts.extend(allocation.hostname.as_ref().map(|name| format!("called {name}")));
    facts.extend(allocation.node.as_ref().map(|node| format!("node {node}")));
    facts.push(format!("allocation {}", allocation.id));
    facts.push(match text::lease(allocation.lease.as_ref()) {
        none if none.is_empty() => allocation.lifecycle.to_string(),
        until => format!("{} {until}", allocation.lifecycle),
    });
    facts.push(format!(
        "since {} ({})",
        text::moment(allocation.created_at),
        text::age(allocation.created_at, now)
    ));
    if !allocation.created_by.is_empty() {
        facts.push(format!("by {}", allocation.created_by));
    }
    // The holder has the first line; the rest fills lines of the terminal's width.
    let width = width.unwrap_or(120).saturating_sub(13).max(20);
    let mut label = "holder";
    let mut line = String::new();
    for (index, fact) in facts.iter().enumerate() {
        let fits = line.chars().count() + 3 + fact.chars().count() <= width;
        if !line.is_empty() && (index == 1 || !fits) {
            fields.line(label, &line);
            (label, line) = ("", String::new());
        }
        if !line.is_empty() {
            line.push_str(" · ");
        }
        line.push_str(fact);
    }
    fields.line(label, line);
    fields.line_if("description", &allocation.description);
    fields.line_if("on the wire", &on_the_wire(allocation));
}

/// Stations that answer for an allocated address; empty if none was heard.
pub(crate) fn on_the_wire(allocation: &Allocation) -> String {
    match (allocation.station, allocation.colliding) {
        (Some(station), Some(other)) => format!("COLLISION: {station} answers, and so does {other}"),
        (None, Some(other)) => format!("COLLISION: {other} answers, too"),
        (Some(station), None) => format!("{station} answers"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20 11:14:07 UTC.
    const NOW: Timestamp = Timestamp(1_795_173_247_000);

    fn address(rest: serde_json::Value) -> Address {
        let mut value = serde_json::json!({"address": "10.10.0.77", "network": "default", "revision": 9});
        value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn allocated() -> Address {
        address(serde_json::json!({
            "subnet": "lan-10", "pool": "web", "state": "allocated",
            "allocation": {
                "id": 48190233, "address": "10.10.0.77/24", "network": "default", "subnet": "lan-10",
                "pool": "web", "interface": "eth0", "node": "worker-3", "lifecycle": "attached",
                "endpoint": {"kind": "pod", "realm": "prod-eu", "namespace": "web", "name": "frontend-6c9f4"},
                "checked": true, "created_at": "2026-11-19T22:14:07.000Z", "created_by": "cni"
            }
        }))
    }

    #[test]
    fn the_holder_at_120_columns() {
        assert_eq!(
            shown(&allocated(), None, NOW, Some(120)),
            "10.10.0.77   allocated    network default · subnet lan-10 · pool web\n\
             holder       pod/prod-eu/web/frontend-6c9f4   interface eth0\n             \
             node worker-3 · allocation 48190233 · attached · since 2026-11-19T22:14:07Z (13h) · by cni\n"
        );
    }

    #[test]
    fn the_holder_at_80_columns() {
        let text = shown(&allocated(), None, NOW, Some(80));
        assert_eq!(
            text,
            "10.10.0.77   allocated    network default · subnet lan-10 · pool web\n\
             holder       pod/prod-eu/web/frontend-6c9f4   interface eth0\n             \
             node worker-3 · allocation 48190233 · attached\n             \
             since 2026-11-19T22:14:07Z (13h) · by cni\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_future_time_is_refused() {
        let at = |ahead_ms: u64| Timestamp(NOW.0 + ahead_ms).to_string();
        let failure = check_past(&at(3_600_000), NOW).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.text(false).unwrap().contains("is in the future"));
        assert!(check_past(&at(1_000), NOW).is_ok(), "clocks differ");
        assert!(check_past(&at(0), NOW).is_ok());
    }

    #[test]
    fn a_state_before_the_history_is_unknown() {
        let history: AddressHistory = serde_json::from_value(serde_json::json!({
            "address": "10.10.0.77", "network": "default", "at": "2026-11-19T22:13:10Z", "state": "free",
            "events": [], "revision": 9
        }))
        .unwrap();
        assert!(then(&history, None).contains("free"));
        let text = then(&history, Some(NOW));
        assert!(text.contains("unknown") && text.contains("history      begins at "), "{text}");
        assert!(!text.contains("free"), "{text}");
    }

    #[test]
    fn an_unassigned_address_has_no_holder() {
        let cooling = address(serde_json::json!({"state": "cooling", "pool": "web", "cooling_ms": 9_400}));
        assert_eq!(
            shown(&cooling, None, NOW, None),
            "10.10.0.77   cooling      network default · pool web\n\
             cooling      for 9s more; it becomes free then\n"
        );
        let kept = serde_json::json!({"state": "cooling", "pool": "web", "cooling_ms": 9_400,
                                      "reservation": "printers"});
        assert!(
            shown(&address(kept), None, NOW, None).contains("9s more; then reservation printers keeps it")
        );
        let outside = address(serde_json::json!({"state": "cooling", "cooling_ms": 9_400}));
        assert!(shown(&outside, None, NOW, None).contains("for 9s more; no pool contains it then"));
        let reserved = address(serde_json::json!({"state": "reserved", "reservation": "printers"}));
        assert_eq!(
            shown(&reserved, None, NOW, None),
            "10.10.0.77   reserved     network default\n\
             reservation  printers   ipamctl reservation show printers\n"
        );
        let unmanaged = address(serde_json::json!({"state": "unmanaged"}));
        assert_eq!(
            shown(&unmanaged, None, NOW, None),
            "10.10.0.77   in no pool   network default\n             \
             outside all subnets\n"
        );
    }
}
