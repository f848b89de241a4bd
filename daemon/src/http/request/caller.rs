//! Caller of a request, and its headers about identity, deadline and comment.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::request::Parts;
use ipam_api::access::{NodeKey, Role, Target, Verb};
use ipam_api::brand::{ANONYMOUS, HEADER_BUDGET_MS, HEADER_CHANGE_COMMENT, HEADER_REQUEST_ID, SECRET_PREFIX};
use ipam_api::limits::{BUDGET_MS_DEFAULT, BUDGET_MS_MAX, TEXT_CHARS_MAX};
use ipam_api::name::shown;
use ipam_api::{Code, Problem};
use ipam_machine::access::check_permission;
use ipam_machine::command::{Credential, Grant, Purpose, SecretHash, Text, secret_hash};
use ipam_machine::{State, model};
use ipam_raft::new_id;
use tokio::time::Instant;

use super::app::App;
use super::notes::Notes;
use super::peer::{ClientName, Peer};
use super::response::ApiError;
use crate::access::TokenStatus;

/// Maximum length of a request id from a caller, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// Maximum time by which a response precedes the caller's deadline, in milliseconds.
const ANSWER_MARGIN_MS_MAX: u64 = 200;
/// Maximum length of a secret that is examined, in bytes.
const SECRET_BYTES_MAX: usize = 256;

/// Caller of a request.
#[derive(Debug, Clone)]
pub(in crate::http) struct Caller {
    pub(in crate::http) request_id: Text,
    /// Deadline of the caller.
    pub(in crate::http) deadline: Instant,
    /// Comment of the caller on its change.
    pub(in crate::http) comment: Option<Text>,
    pub(in crate::http) notes: Notes,
    /// Leadership of the task that sends the request. Under another leadership the request has no effect.
    pub(in crate::http) leadership: Option<u64>,
    /// Address of the client of a request over the network.
    address: Option<IpAddr>,
    offer: Offer,
}

/// Credentials that a request presents, or the reason why they can't be used. Every request has them among
/// its extensions, read once.
#[derive(Debug, Clone)]
pub(in crate::http) struct Offer(Result<Presented, Problem>);

impl Default for Offer {
    fn default() -> Self {
        Self(Ok(Presented::Nothing))
    }
}

/// Presented credential.
#[derive(Debug, Clone)]
enum Presented {
    /// Identity known from the connection.
    Known {
        principal: Text,
        grant: Arc<Grant>,
    },
    Secret(SecretHash),
    /// No credential, although one is required.
    Nothing,
}

/// Part of this process that sends requests to its own member. No request from a socket has it.
#[derive(Debug, Clone)]
pub(in crate::http) struct LocalCaller {
    pub(in crate::http) principal: Text,
    pub(in crate::http) grant: Arc<Grant>,
    /// Leadership in which a leader-only task found the reason for its requests. None: any leader executes
    /// them, as it does for clients.
    pub(in crate::http) leadership: Option<u64>,
}

impl LocalCaller {
    pub(super) fn offer(&self) -> Offer {
        Offer(Ok(Presented::Known { principal: self.principal.clone(), grant: Arc::clone(&self.grant) }))
    }
}

/// Authenticated caller.
#[derive(Debug, Clone)]
pub(in crate::http) struct Identity {
    pub(in crate::http) principal: Text,
    pub(in crate::http) credential: Credential,
    pub(in crate::http) grant: Grant,
    pub(in crate::http) purpose: Purpose,
}

impl Caller {
    fn read(parts: &Parts) -> Result<Self, Problem> {
        let headers = &parts.headers;
        Ok(Self {
            request_id: Text::given(request_id(headers)),
            deadline: deadline(headers)?,
            comment: header_text(headers, HEADER_CHANGE_COMMENT, TEXT_CHARS_MAX)?,
            notes: Notes::of(parts),
            leadership: parts.extensions.get::<LocalCaller>().and_then(|local| local.leadership),
            address: parts.extensions.get::<Peer>().and_then(Peer::ip),
            offer: parts.extensions.get::<Offer>().cloned().unwrap_or_default(),
        })
    }

    /// Identifies the caller by a state. Returns none if the state has no such token.
    pub(in crate::http) fn known_in(&self, state: &State) -> Result<Option<Identity>, Problem> {
        self.offer.known_in(state)
    }

    /// The credentials that the request presents.
    pub(in crate::http) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Names the caller that slots of this member are counted for: the principal; without one, the address.
    pub(in crate::http) fn slot_holder(&self, known: &Identity) -> String {
        match self.address {
            Some(address) if *known.principal == *ANONYMOUS => format!("{ANONYMOUS} at {address}"),
            _ => known.principal.to_string(),
        }
    }
}

impl Offer {
    /// Reads the credentials of a request.
    pub(in crate::http) fn read(headers: &HeaderMap, peer: Option<&Peer>, app: &App) -> Self {
        Self(presented(headers, peer, app))
    }

    /// Name by which a caller's requests in progress are counted. It is determined before any lookup, so that
    /// refusing a caller is cheap.
    pub(in crate::http) fn caller(&self, peer: Option<&Peer>) -> String {
        match (&self.0, peer) {
            (Ok(Presented::Secret(hash)), _) => {
                let digits: Vec<String> = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                format!("token {}", digits.concat())
            }
            (Ok(Presented::Known { principal, .. }), None) => format!("local {principal}"),
            (_, Some(Peer::Socket { uid })) => format!("uid {uid}"),
            (_, Some(Peer::Tcp { address, .. })) => format!("address {}", address.ip()),
            (_, None) => "unknown".to_owned(),
        }
    }

    /// Identifies the caller by a state. Returns none if the state has no such token.
    pub(in crate::http) fn known_in(&self, state: &State) -> Result<Option<Identity>, Problem> {
        let (principal, credential) = match self.0.as_ref().map_err(Problem::clone)? {
            Presented::Nothing => {
                return Err(Problem::new(Code::Unauthenticated, "the request has no credentials")
                    .help("Send a token: Authorization: Bearer ipamd_…; ipamctl takes --token-file."));
            }
            Presented::Known { principal, grant } => {
                (principal.clone(), Credential::Known(grant.as_ref().clone()))
            }
            Presented::Secret(hash) => match state.token_by_secret(hash) {
                None => return Ok(None),
                Some((id, token)) => {
                    check_end(token, state)?;
                    (principal_of(token), Credential::Token { id })
                }
            },
        };
        let (grant, purpose) = state.grant(&credential)?;
        Ok(Some(Identity { principal, credential, grant, purpose }))
    }
}

impl Identity {
    /// Refuses a token that is only for joining.
    pub(in crate::http) fn check_bearer(&self) -> Result<(), Problem> {
        if self.purpose == Purpose::Bearer {
            return Ok(());
        }
        Err(Problem::new(Code::Forbidden, "a join token is valid for joining only"))
    }

    /// Refuses lists to nodes, which read only single resources of their own.
    pub(in crate::http) fn check_lists(&self, target: Target) -> Result<(), Problem> {
        match &self.grant.node {
            None => Ok(()),
            Some(node) => {
                let detail = format!("node {node} may read {target} resources of its own only, and no list");
                Err(Problem::new(Code::Forbidden, detail))
            }
        }
    }

    /// Refuses an action that the table of roles doesn't allow.
    pub(in crate::http) fn check(&self, (verb, target): (Verb, Target)) -> Result<(), Problem> {
        self.check_bearer()?;
        Ok(check_permission(&self.grant, &self.principal, verb, target)?)
    }
}

pub(super) fn unknown_token() -> Problem {
    Problem::new(Code::Unauthenticated, "the token is not known, or was revoked")
        .help("Get a new one: ipamctl token create, by an administrator.")
}

/// Principal of a token: its name, or the node's key for a node's token, whose name has no meaning.
/// Slashes distinguish node keys from token names.
fn principal_of(token: &model::Token) -> Text {
    match &token.grant.node {
        Some(node) if token.grant.role == Role::Node => Text::given(format!("node/{node}")),
        _ => Text::given(token.name.as_str()),
    }
}

/// Refuses an expired token by the state's log time, as `apply` does: one clock for all members. The leader
/// advances log time when a token expires in an idle cluster.
fn check_end(token: &model::Token, state: &State) -> Result<(), Problem> {
    match token.expires_ms {
        Some(until_ms) if until_ms <= state.log_time_ms() => {
            Err(Problem::new(Code::TokenExpired, format!("the token {} has expired", token.name)))
        }
        _ => Ok(()),
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        Self::read(parts).map_err(ApiError)
    }
}

fn presented(headers: &HeaderMap, peer: Option<&Peer>, app: &App) -> Result<Presented, Problem> {
    let known = |principal: String, grant: Grant| Presented::Known {
        principal: Text::given(principal),
        grant: Arc::new(grant),
    };
    if headers.contains_key(AUTHORIZATION) {
        let secret_hash = bearer(headers)?;
        return match app.access.token(&secret_hash) {
            Some(TokenStatus::Known { principal, grant }) => Ok(Presented::Known { principal, grant }),
            Some(TokenStatus::Expired { principal }) => {
                Err(Problem::new(Code::TokenExpired, format!("the token {principal} has expired")))
            }
            None => Ok(Presented::Secret(secret_hash)),
        };
    }
    Ok(match peer {
        Some(Peer::Socket { uid }) if app.access.is_trusted(*uid) => {
            known(format!("uid/{uid}"), Grant::of(Role::Admin))
        }
        Some(Peer::Tcp { certificate: Some(ClientName::Node { realm, name }), .. }) => {
            let node = NodeKey { realm: realm.clone(), name: name.clone() };
            known(format!("node/{node}"), Grant::of_node(node))
        }
        Some(Peer::Tcp { certificate: Some(ClientName::Client { name }), .. }) => {
            match app.access.role_of_client(name) {
                Some(role) => known(format!("client/{name}"), Grant::of(role)),
                None => Presented::Nothing,
            }
        }
        Some(Peer::Tcp { address, .. })
            if app.access.is_open() && address.ip().is_loopback() && !is_local_host(headers) =>
        {
            return Err(Problem::new(Code::Forbidden, "the request was meant for another host")
                .help("Ask by address or as localhost, or give out tokens: access.require_tokens."));
        }
        _ if app.access.is_open() => known(ANONYMOUS.to_owned(), Grant::of(Role::Admin)),
        _ => Presented::Nothing,
    })
}

/// True if the request's `Host` is a name of this machine. A page in a local browser may use its own name for
/// loopback (DNS rebinding), where no token is needed.
fn is_local_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

fn bearer(headers: &HeaderMap) -> Result<SecretHash, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, more) = (values.next().and_then(|value| value.to_str().ok()), values.next());
    let secret = value
        .filter(|_| more.is_none())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim());
    match secret {
        Some(secret) if secret.starts_with(SECRET_PREFIX) && secret.len() <= SECRET_BYTES_MAX => {
            Ok(secret_hash(secret))
        }
        _ => Err(Problem::new(Code::Unauthenticated, "the Authorization header has no ipamd token")
            .help("Send it as Authorization: Bearer ipamd_….")),
    }
}

/// Text of an optional header. It must be short, without control characters that would break log lines.
pub(in crate::http) fn header_text(
    headers: &HeaderMap,
    name: &str,
    chars_max: usize,
) -> Result<Option<Text>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).ok().map(str::trim);
    match text {
        Some(text)
            if text.chars().count() <= chars_max
                && !text.chars().any(char::is_control)
                && !text.is_empty() =>
        {
            Ok(Some(Text::given(text)))
        }
        _ => Err(Problem::new(
            Code::InvalidField,
            format!(
                "the header {name} must be text of 1 to {chars_max} characters without control characters"
            ),
        )),
    }
}

/// Request id of the caller if it is short and printable, else a generated one.
pub(in crate::http) fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(HEADER_REQUEST_ID).and_then(|value| value.to_str().ok());
    let harmless = |id: &&str| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'))
    };
    given.filter(harmless).map_or_else(|| new_id().simple().to_string(), ToOwned::to_owned)
}

/// Deadline of the caller.
pub(in crate::http) fn deadline(headers: &HeaderMap) -> Result<Instant, Problem> {
    let budget_ms = match headers.get(HEADER_BUDGET_MS) {
        None => BUDGET_MS_DEFAULT,
        Some(value) => {
            let text = value.to_str().unwrap_or_default();
            text.parse::<u64>().map_err(|_| {
                Problem::new(
                    Code::InvalidField,
                    format!("the header Budget-Ms is {}, not a number", shown(text)),
                )
            })?
        }
    };
    // The response must come before the caller gives up: an explicit refusal is better than a timeout.
    let margin_ms = (budget_ms / 10).min(ANSWER_MARGIN_MS_MAX);
    Ok(Instant::now() + Duration::from_millis(budget_ms.min(BUDGET_MS_MAX) - margin_ms.min(BUDGET_MS_MAX)))
}
