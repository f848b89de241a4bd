//! `ipamctl events`: past events, and new events as they happen.

use std::time::Duration;

use clap::Args;
use ipam_api::address::parse_address;
use ipam_api::client::with_query;
use ipam_api::event::{Event, EventPage};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::name::Name;
use ipam_api::screen::clean;
use ipam_api::time::Timestamp;

use crate::client::requests::with_all;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::table::Table;
use crate::output::{interrupt, json, text};

/// Number of newest events that are shown by default.
const NEWEST: usize = 50;
/// Time for which an interrupted `--follow` tries to reconnect to a server.
const PATIENCE: Duration = Duration::from_secs(600);

/// Filters of events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ipamctl events --since 20m
  ipamctl events --pool web --follow
  ipamctl events --address 10.10.0.77 --all
  ipamctl events --kind pool,subnet --since 7d -o json
  ipamctl events --after 1099511627970 --follow")]
pub(crate) struct EventsArguments {
    /// Start of the time range, as an age or a timestamp: 20m, 7d, 2026-11-20T11:30:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// End of the time range, as an age or a timestamp
    #[arg(long, value_name = "WHEN", conflicts_with = "follow")]
    until: Option<String>,
    /// Start after this position: a revision, or REVISION.NUMBER of an event
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// Only events of these kinds: address, network, subnet, pool, reservation, token, journal
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only events of this pool and its addresses
    #[arg(long)]
    pool: Option<Name>,
    /// Only events of this address
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    address: Option<std::net::IpAddr>,
    /// Only events of this endpoint: kind/name, kind/namespace/name or kind/realm/namespace/name
    #[arg(long, value_name = "ENDPOINT")]
    endpoint: Option<String>,
    /// Only events caused by this principal
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Follow new events until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

/// Runs the command.
pub(crate) async fn run(session: &Session, arguments: &EventsArguments) -> Result<(), Failure> {
    let path = path(session, arguments)?;
    if arguments.follow {
        let again = "ipamctl events --follow".to_owned();
        return follow(session, Followed { path, after: arguments.after.clone(), again }, |_| true).await;
    }
    let from_somewhere = arguments.since.is_some() || arguments.after.is_some() || session.reading.all;
    let wanted = session.reading.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let path = with_all(&path, [("after", arguments.after.clone())]);
    let (events, revision, more) = if from_somewhere {
        pages(session, &path, wanted.unwrap_or(usize::MAX)).await?
    } else {
        // The newest events, in chronological order.
        let newest = with_query(&path, "reverse", "true");
        let (mut events, revision, more) = pages(session, &newest, wanted.unwrap_or(NEWEST)).await?;
        events.reverse();
        (events, revision, more)
    };
    let items = events.iter().map(serde_json::value::to_raw_value).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| Failure::usage(error.to_string(), "Choose another format."))?;
    let names: Vec<String> = events.iter().map(Event::id).collect();
    session.show_table(&json::joined(&items, revision), &names.join("\n"), || table(&events))?;
    let footer = text::footer(events.len(), "event", "events", revision);
    match (more, from_somewhere) {
        (false, _) => session.tell(&footer),
        (true, true) => {
            let last = events.last().map(Event::id).unwrap_or_default();
            session.tell(&format!("{footer} · there are more: --after {last}"));
        }
        (true, false) => session.tell(&format!("the newest {footer} · there are more: --all, or --since 1h")),
    }
    Ok(())
}

/// A stream of events to follow.
pub(crate) struct Followed {
    /// Path of the events in the API.
    pub(crate) path: String,
    /// Position after which the stream starts.
    pub(crate) after: Option<String>,
    /// Command that resumes the stream, once `--after` is appended.
    pub(crate) again: String,
}

/// Prints new events that `keep` accepts, one per line.
pub(crate) async fn follow(
    session: &Session,
    followed: Followed,
    keep: impl Fn(&Event) -> bool,
) -> Result<(), Failure> {
    let Followed { path, after, again } = followed;
    let mut stream = session.client.events(&path, after, PATIENCE);
    let people = session.format.is_for_people();
    if people && session.headers {
        session.print(&line(["REVISION", "WHEN", "WHAT", "OBJECT", "BY", "DETAIL"].map(str::to_owned)))?;
    }
    loop {
        if let Some(last) = stream.last() {
            // Sets the message that Ctrl-C prints.
            interrupt::say_instead(format!("stopped at {last}.  continue: {again} --after {last}"));
        }
        let event = tokio::select! {
            event = stream.next() => event.map_err(|problem| session.failure(problem))?,
            // The position advances without events, too, so the message is updated each second.
            () = tokio::time::sleep(Duration::from_secs(1)) => continue,
        };
        if !keep(&event) {
            continue;
        }
        match session.format {
            Format::Table | Format::Wide => session.print(&line(row(&event)))?,
            Format::Name => session.print(&event.id())?,
            _ => {
                let item = serde_json::to_vec(&event).unwrap_or_default();
                session.data(&item)?;
            }
        }
    }
}

/// Path of the events in the API, with all filters.
fn path(session: &Session, arguments: &EventsArguments) -> Result<String, Failure> {
    if arguments.endpoint.is_none() {
        session.without("events", &[Part::Realm, Part::Namespace])?;
    }
    let endpoint = arguments.endpoint.as_deref().map(|text| session.endpoint_key(text)).transpose()?;
    let kinds = (!arguments.kind.is_empty()).then(|| arguments.kind.join(","));
    let moment = |when: &Option<String>| when.as_deref().map(|when| moment(when, session.now())).transpose();
    let said = [
        ("kind", kinds),
        ("pool", arguments.pool.as_ref().map(ToString::to_string)),
        ("network", session.settings.network.as_ref().map(ToString::to_string)),
        ("address", arguments.address.map(|address| address.to_string())),
        ("endpoint", endpoint.map(|endpoint| endpoint.to_string())),
        ("principal", arguments.principal.clone()),
        ("since", moment(&arguments.since)?),
        ("until", moment(&arguments.until)?),
    ];
    Ok(with_all("/v1/events", said))
}

/// Converts an age or a timestamp to a timestamp of the API.
pub(crate) fn moment(when: &str, now: Timestamp) -> Result<String, Failure> {
    if let Ok(ago) = text::parse_duration(when) {
        return Ok(Timestamp(now.0.saturating_sub(text::milliseconds(ago))).to_string());
    }
    let moment = when.parse::<Timestamp>();
    moment.map(|moment| moment.to_string()).map_err(|_| {
        Failure::usage(
            format!("{} is neither a duration nor a timestamp", ipam_api::name::shown(when)),
            "Use 20m, 2h, 7d, or 2026-11-20T11:30:00Z.",
        )
    })
}

/// Reads up to `wanted` events, page by page. Returns the events, the revision, and true if there are more.
pub(crate) async fn pages(
    session: &Session,
    path: &str,
    wanted: usize,
) -> Result<(Vec<Event>, u64, bool), Failure> {
    let mut events = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let limit = wanted.saturating_sub(events.len()).clamp(1, PAGE_ITEMS_MAX);
        let parameters = [("limit", Some(limit.to_string())), ("after", after.clone())];
        let query = with_all(&without(path, after.is_some()), parameters);
        let page: EventPage = session.read(&query).await?.read()?;
        events.extend(page.items);
        match page.next {
            Some(next) if events.len() < wanted => after = Some(next),
            next => return Ok((events, page.revision, next.is_some())),
        }
    }
}

/// Removes the parameter `after` from a path, if there is a newer position.
fn without(path: &str, newer: bool) -> String {
    match path.split_once("after=") {
        Some((before, rest)) if newer => {
            let rest = rest.split_once('&').map_or("", |(_, rest)| rest);
            format!("{before}{rest}").trim_end_matches(['&', '?']).to_owned()
        }
        _ => path.to_owned(),
    }
}

fn table(events: &[Event]) -> Table {
    let rows: Vec<[String; 6]> = events.iter().map(row).collect();
    Table::of(&rows)
        .text("REVISION", |[place, ..]| place)
        .text("WHEN", |[_, when, ..]| when)
        .text("WHAT", |[_, _, what, ..]| what)
        .text("OBJECT", |[.., object, _, _]| object)
        .spare("BY", 1, |[.., by, _]| by)
        .spare("DETAIL", 2, |[.., detail]| detail)
        .table()
}

fn row(event: &Event) -> [String; 6] {
    let place = if event.number == 0 { event.revision.to_string() } else { event.id() };
    let whose = event.endpoint.as_ref().map(ToString::to_string).or_else(|| event.owner.clone());
    let object = match whose.filter(|whose| *whose != event.object) {
        Some(whose) => format!("{} → {whose}", event.object),
        None => event.object.clone(),
    };
    [
        place,
        text::moment(event.at),
        event.event_type.clone(),
        printable(&object),
        printable(&by(event)),
        detail(event),
    ]
}

/// Formats a line of an endless table, with column widths that suit most values.
fn line([place, when, what, object, by, detail]: [String; 6]) -> String {
    format!("{place:<18}  {when:<20}  {what:<17}  {object:<44}  {by:<16}  {detail}").trim_end().to_owned()
        + "\n"
}

/// Principal of an event; for the CNI plugin, `cni` with the name of the node.
pub(crate) fn by(event: &Event) -> String {
    let principal = &event.by.principal;
    // The node's name suffices for people; the data contains its realm.
    let node = principal.strip_prefix("node/").and_then(|node| node.rsplit('/').next());
    match event.by.via.as_str() {
        "cni" => format!("cni {}", node.unwrap_or(principal)),
        _ => principal.clone(),
    }
}

/// Reason and details of an event.
pub(crate) fn detail(event: &Event) -> String {
    let mut facts: Vec<String> = event.comment.iter().cloned().collect();
    facts.extend(event.reason.clone());
    if !event.macs.is_empty() {
        facts.push(format!("answered by {}", text::joined(&event.macs)));
    }
    for change in &event.changes {
        let or_nothing = |text: &str| if text.is_empty() { "nothing".to_owned() } else { text.to_owned() };
        facts.push(format!("{}: {} → {}", change.field, or_nothing(&change.from), or_nothing(&change.to)));
    }
    printable(&facts.join(" · "))
}

/// Replaces control characters such as newlines, since other users may have written the text.
pub(crate) fn printable(text: &str) -> String {
    clean(text).replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use ipam_api::event::By;

    use super::*;

    fn event() -> Event {
        serde_json::from_value(serde_json::json!({
            "revision": 48211970, "number": 1, "at": "2026-11-20T11:33:02.000Z", "type": "pool.changed",
            "object": "web", "kind": "pool",
            "by": {"principal": "admin", "via": "http", "request_id": "r"}, "comment": "NET-4711",
            "changes": [{"field": "ranges", "from": "", "to": "10.10.0.200-10.10.0.229"},
                        {"field": "description", "from": "a", "to": "b\u{1b}[31m\nforged"}],
        }))
        .unwrap()
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let text = line(row(&event()));
        assert_eq!(text.lines().count(), 1);
        assert!(!text.trim_end().chars().any(char::is_control), "{text:?}");
        assert!(
            text.starts_with("48211970.1          2026-11-20T11:33:02Z  pool.changed       web "),
            "{text}"
        );
        assert!(text.contains("NET-4711 · ranges: nothing → 10.10.0.200-10.10.0.229 · description: a → b"));
    }

    #[test]
    fn a_socket_is_named_by_its_user() {
        let by = |principal: &str, via: &str| {
            let event = event();
            by(&Event { by: By { principal: principal.into(), via: via.into(), ..event.by }, ..event })
        };
        assert_eq!(by("uid/0", "cni"), "cni uid/0");
        assert_eq!(by("node/prod-eu/worker-3", "cni"), "cni worker-3");
        assert_eq!(by("uid/0", "http"), "uid/0");
    }

    #[test]
    fn whose_a_prefix_is_stands_beside_it() {
        let event = Event { object: "10.1.0.0/28".into(), owner: Some("default/trench-a".into()), ..event() };
        assert!(line(row(&event)).contains(" 10.1.0.0/28 → default/trench-a "));
    }

    #[test]
    fn moments_are_said_as_people_say_them() {
        let now = Timestamp(1_795_173_247_000);
        assert_eq!(moment("20m", now).unwrap(), "2026-11-20T10:54:07.000Z");
        assert_eq!(moment("2026-11-20T11:30:00Z", now).unwrap(), "2026-11-20T11:30:00.000Z");
        assert!(moment("noon", now).is_err());
    }

    #[test]
    fn a_newer_place_replaces_the_first() {
        assert_eq!(without("/v1/events?after=5", true), "/v1/events");
        assert_eq!(without("/v1/events?after=5&pool=web", true), "/v1/events?pool=web");
        assert_eq!(without("/v1/events?pool=web&after=5", true), "/v1/events?pool=web");
        assert_eq!(without("/v1/events?after=5", false), "/v1/events?after=5");
    }
}
