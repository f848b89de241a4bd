//! HTTP requests of clients, and text that users type.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use ipam_api::address::{Family, parse_address, parse_cidr};
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::request::{AllocateRequest, ReleaseAttachmentRequest};
use ipam_api::resource::{EndpointKey, EndpointKind, Network, Pool, Reservation, Subnet};
use ipam_api::spiffe::SpiffeId;
use ipam_api::time::Timestamp;
use ipam_api::token::{JoinRequest, TokenRequest};
use ipam_api::{AddressRange, Problem, RangeSet, Selector, strict};
use ipam_machine::EventId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::parts::{choice, parts};

/// Maximum size of a problem's detail: it may quote input, but not all of it.
const DETAIL_BYTES_MAX: usize = 2048;

/// Reads the body of any request that is read strictly.
pub(crate) fn request(data: &[u8]) {
    let (kind, body) = choice(data);
    match kind % 8 {
        0 => strictly::<Network>(body),
        1 => strictly::<Subnet>(body),
        2 => strictly::<Pool>(body),
        3 => strictly::<Reservation>(body),
        4 => strictly::<AllocateRequest>(body),
        5 => strictly::<ReleaseAttachmentRequest>(body),
        6 => strictly::<TokenRequest>(body),
        _ => strictly::<JoinRequest>(body),
    }
}

fn strictly<T: DeserializeOwned + Serialize + PartialEq + Debug>(body: &[u8]) {
    match strict::from_slice::<T>(body) {
        Ok(value) => {
            let again = serde_json::to_vec(&value).unwrap_or_default();
            assert_eq!(strict::from_slice::<T>(&again).ok(), Some(value));
        }
        Err(problem) => brief(&problem),
    }
}

fn brief(problem: &Problem) {
    assert!(problem.detail.len() <= DETAIL_BYTES_MAX, "a complaint of {} bytes", problem.detail.len());
}

/// Reads a text as a value, as a query, or as headers.
pub(crate) fn text(data: &[u8]) {
    let (kind, rest) = choice(data);
    if kind == 13 {
        let pairs: Vec<_> = rest.split(|byte| *byte == b'\n').map(pair).collect();
        return ipamd::fuzzing::http::headers(&pairs);
    }
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind {
        0 => same::<Name>(text),
        1 => same::<ObjectName>(text),
        2 => same::<InterfaceName>(text),
        3 => same::<AddressRange>(text),
        4 => same::<Selector>(text),
        5 => same::<Timestamp>(text),
        6 => same::<EndpointKind>(text),
        7 => same::<EndpointKey>(text),
        8 => same::<EventId>(text),
        9 => again(text, parse_address),
        10 => again(text, parse_cidr),
        11 => ranges(text),
        12 => ipamd::fuzzing::http::query(text),
        14 => {
            if let Some(again) = ipamd::fuzzing::http::cursor(text) {
                assert_eq!(again, text);
            }
        }
        15 => drop(Timestamp::from_http_date(text)),
        16 => {
            if let Some(id) = SpiffeId::parse(text) {
                assert_eq!(id.as_str(), text);
                assert!(text.contains(&format!("//{}/", id.trust_domain())));
            }
        }
        _ => {}
    }
}

fn pair(line: &[u8]) -> (&[u8], &[u8]) {
    let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
    let (name, value) = line.split_at(at);
    (name, value.get(1..).unwrap_or_default())
}

fn same<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    again(text, str::parse::<T>);
}

fn again<T: Display + PartialEq + Debug, E>(text: &str, read: impl Fn(&str) -> Result<T, E>) {
    if let Ok(value) = read(text) {
        let shown = value.to_string();
        assert_eq!(read(&shown).ok().as_ref(), Some(&value), "{shown:?}");
    }
}

/// Checks that a set contains exactly the addresses of its ranges.
fn ranges(text: &str) {
    let all: Vec<AddressRange> = text.split(',').filter_map(|range| range.parse().ok()).collect();
    for family in Family::BOTH {
        let set = RangeSet::new(family, &all);
        let merged: Vec<AddressRange> = set.ranges().collect();
        assert_eq!(RangeSet::new(family, &merged), set);
        for range in all.iter().filter(|range| range.family() == family) {
            for end in [range.first(), range.last()] {
                assert!(set.contains(end));
            }
            for beside in [range.first().checked_sub(1), range.last().checked_add(1)].into_iter().flatten() {
                let peer_report = merged.iter().any(|range| (range.first()..=range.last()).contains(&beside));
                assert_eq!(set.contains(beside), peer_report);
            }
        }
    }
}

/// Applies a merge patch twice: the second time it changes nothing more.
pub(crate) fn merge(data: &[u8]) {
    let parts = parts(data);
    let object = |at: usize| -> Option<Map<String, Value>> {
        parts.get(at).and_then(|(_, bytes)| strict::object(bytes).ok())
    };
    let (Some(mut target), Some(patch)) = (object(0), object(1)) else { return };
    ipamd::fuzzing::http::merge(&mut target, patch.clone());
    let once = target.clone();
    for (key, wanted) in &patch {
        assert!(!wanted.is_null() || !once.contains_key(key), "{key} was to go");
    }
    ipamd::fuzzing::http::merge(&mut target, patch);
    assert_eq!(target, once);
    if let Ok(pool) = strict::from_object::<Pool>(once) {
        assert!(serde_json::to_vec(&pool).is_ok());
    }
}
