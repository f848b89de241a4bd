//! How handlers ask the replicated state: who asks, how long, and what must be the case.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use ipam_api::brand::{HEADER_BUDGET_MS, HEADER_REQUEST_ID};
use ipam_api::limits::{BUDGET_MS_DEFAULT, BUDGET_MS_MAX};
use ipam_api::name::shown;
use ipam_api::{Code, Problem};
use ipam_raft::machine::command::{Expect, Text, Via};
use ipam_raft::machine::{Action, Applied, Command, Origin, State};

use super::App;
use super::query::Consistency;

/// Bytes of a request id that a caller may choose.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// Longest time by which an answer comes before the caller's patience ends.
const ANSWER_MARGIN_MS_MAX: u64 = 200;

/// The caller's name for the request, if it is a harmless one; else ours.
pub(super) fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(HEADER_REQUEST_ID).and_then(|value| value.to_str().ok());
    let harmless = |id: &&str| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'))
    };
    given.filter(harmless).map_or_else(|| uuid::Uuid::now_v7().simple().to_string(), ToOwned::to_owned)
}

/// When the caller stops waiting.
pub(super) fn deadline(headers: &HeaderMap) -> Result<Instant, Problem> {
    let budget_ms = match headers.get(HEADER_BUDGET_MS) {
        None => BUDGET_MS_DEFAULT,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse::<u64>().ok());
            number.ok_or_else(|| Problem::new(Code::InvalidField, "the header Budget-Ms is not a number"))?
        }
    };
    // Answered a little before the caller gives up: a clear refusal is worth more to it than silence.
    let margin_ms = (budget_ms / 10).min(ANSWER_MARGIN_MS_MAX);
    Ok(Instant::now() + Duration::from_millis(budget_ms.min(BUDGET_MS_MAX) - margin_ms.min(BUDGET_MS_MAX)))
}

/// What must be the case, by `If-Match` and `If-None-Match`.
pub(super) fn expect(headers: &HeaderMap) -> Result<Expect, Problem> {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().trim().to_owned();
    let matches = headers.get(IF_MATCH).map(text);
    let none_matches = headers.get(IF_NONE_MATCH).map(text);
    match (matches.as_deref(), none_matches.as_deref()) {
        (None, None) => Ok(Expect::Anything),
        (None, Some("*")) => Ok(Expect::Absent),
        (Some(etag), None) => etag.trim_matches('"').parse().map(Expect::Revision).map_err(|_| {
            Problem::new(Code::InvalidField, format!("If-Match {} is no revision", shown(etag)))
                .help("Send the ETag that you read, for example If-Match: \"1204\".")
        }),
        _ => Err(Problem::new(Code::InvalidField, "If-None-Match can only be *, and not beside If-Match")),
    }
}

/// Refuses a body that doesn't claim to be JSON.
pub(super) fn check_json(headers: &HeaderMap, body: &Bytes) -> Result<(), Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") || body.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, format!("the body's type is {}", shown(kind))))
}

impl App {
    /// Proposes an action and waits until it is carried out or refused.
    pub(super) async fn propose(
        &self,
        headers: &HeaderMap,
        via: Via,
        action: Action,
    ) -> Result<Applied, Problem> {
        action.check()?;
        let origin = Origin {
            principal: Text::from("anonymous"),
            via,
            request_id: Text::from(request_id(headers)),
            comment: None,
            not_after_ms: None,
        };
        let outcome = self.node.propose(Command { origin, action }, deadline(headers)?).await?;
        Ok(outcome?)
    }

    /// Reads the state: linearizable, or as this member has it, with its age.
    pub(super) async fn read(
        &self,
        headers: &HeaderMap,
        consistency: Consistency,
    ) -> Result<(State, Option<u64>), Problem> {
        match consistency {
            Consistency::Linearizable => Ok((self.node.read(deadline(headers)?).await?, None)),
            Consistency::Stale => {
                let (state, stale_ms) = self.node.stale();
                Ok((state, Some(stale_ms)))
            }
        }
    }
}
