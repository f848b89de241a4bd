//! `/v1/tokens` and `/v1/join`: credentials of callers.

use axum::extract::Path;
use axum::http::StatusCode;
use ipam_api::access::{Target, Verb};
use ipam_api::brand::SECRET_PREFIX;
use ipam_api::name::Name;
use ipam_api::time::Timestamp;
use ipam_api::token::{JoinRequest, Purpose, Token, TokenRequest, TokenStatus};
use ipam_api::{Code, Problem};
use ipam_machine::command::{self, CreateToken, Delete, Grant, Kind, Stored, Text, secret_hash};
use ipam_machine::{Action, Answer, Applied, State, model};

use crate::access::parse_hash;
use crate::http::convert::meta;
use crate::http::list::{Listable, Row, Shape, ids_by_name};
use crate::http::request::{ApiError, ApiResponse, Read, Write, in_path};

const READ: (Verb, Target) = (Verb::Read, Target::Token);

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/tokens",
    own: &[
        Row::text("name", "name"),
        Row::text("purpose", "purpose"),
        Row::text("role", "role"),
        Row::text("expires_at", "status.expires_at").unshown(),
        Row::flag("used", "status.used").unshown(),
        Row::shown(&["node", "replace", "realms", "labels", "allow_shared", "description", "meta"]),
        Row::number("id", "meta.id"),
        Row::shown(&["meta.revision"]),
        Row::text("created_at", "meta.created_at"),
        Row::text("created_by", "meta.created_by"),
        Row::shown(&["meta.updated_at", "meta.updated_by", "status", "status.expires_at", "status.used"]),
    ],
    named: false,
    addressed: false,
};

/// Tokens, without their secrets.
pub(in crate::http) struct Tokens;

impl Listable for Tokens {
    type Item = Token;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Token
    }

    fn total(state: &State) -> usize {
        state.count(Kind::Token)
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        ids_by_name(state, Kind::Token, after)
    }

    fn item(state: &State, id: u64) -> Option<Token> {
        state.tokens.get(id.into()).map(token)
    }
}

pub(in crate::http) async fn show(
    Path(name): Path<String>,
    read: Read,
) -> Result<ApiResponse<Token>, ApiError> {
    let (state, stale_ms) = read.state(READ).await?;
    let found = find(&state, &name)?;
    Ok(ApiResponse {
        stale_ms,
        etag: Some(found.meta.revision),
        ..ApiResponse::new(token(found), state.revision())
    })
}

pub(in crate::http) async fn create(write: Write) -> Result<ApiResponse<Token>, ApiError> {
    let request: TokenRequest = write.read()?;
    let secret = new_secret();
    let action = Action::CreateToken(CreateToken {
        name: request.name,
        purpose: match request.purpose {
            Purpose::Bearer => command::Purpose::Bearer,
            Purpose::Join => command::Purpose::Join,
            Purpose::JoinMember => command::Purpose::JoinMember,
        },
        grant: Grant {
            role: request.role,
            node: request.node,
            realms: request.realms,
            labels: request.labels,
            allow_shared: request.allow_shared,
        },
        ttl_ms: request.ttl_ms,
        description: Text::given(request.description),
        secret_hash: secret_hash(&secret),
        replaces: request.replace,
    });
    let applied = write.propose(action).await?;
    Ok(made(applied, Some(secret))?)
}

pub(in crate::http) async fn rotate(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<Token>, ApiError> {
    let secret = new_secret();
    let action = Action::RotateToken {
        name: name_of(&name)?,
        secret_hash: secret_hash(&secret),
        expect: write.expect()?,
    };
    let applied = write.propose(action).await?;
    Ok(made(applied, Some(secret))?)
}

pub(in crate::http) async fn delete(Path(name): Path<String>, write: Write) -> Result<StatusCode, ApiError> {
    let action = Action::Delete(Delete {
        kind: Kind::Token,
        name: (&name_of(&name)?).into(),
        expect: write.expect()?,
        drain: false,
    });
    write.propose(action).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::http) async fn renew(write: Write) -> Result<ApiResponse<Token>, ApiError> {
    let applied = write.propose(Action::RenewToken).await?;
    Ok(made(applied, None)?)
}

pub(in crate::http) async fn join(write: Write) -> Result<ApiResponse<Token>, ApiError> {
    let request: JoinRequest = write.read()?;
    let secret_hash = parse_hash(&request.secret_hash)
        .ok_or_else(|| Problem::new(Code::InvalidField, "secret_hash must be 64 hexadecimal digits"))?;
    let action = Action::Join { node: request.node, secret_hash };
    let applied = write.propose(action).await?;
    Ok(made(applied, None)?)
}

/// Response to the creation of a token. A repetition comes without the secret, which isn't stored.
fn made(applied: Applied, secret: Option<String>) -> Result<ApiResponse<Token>, Problem> {
    let Applied { revision, answer, .. } = applied;
    let Answer::Stored { created, resource, .. } = answer else {
        return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for"));
    };
    let Stored::Token(row) = *resource else {
        return Err(Problem::new(Code::Internal, "the machine stored something else than a token"));
    };
    // A repetition within this member still has the secret; a repetition by the client never does.
    let secret = secret.filter(|secret| row.secret_hash == secret_hash(secret));
    let body = Token { secret, ..token(&row) };
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let location = created.then(|| format!("/v1/tokens/{}", row.name));
    Ok(ApiResponse { status, location, etag: Some(row.meta.revision), ..ApiResponse::new(body, revision) })
}

/// Secret of 244 random bits, with a prefix by which scanners recognise a leaked secret.
fn new_secret() -> String {
    format!("{SECRET_PREFIX}{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

fn name_of(name: &str) -> Result<Name, Problem> {
    in_path("token", name, Name::new)
}

fn find<'a>(state: &'a State, name: &str) -> Result<&'a model::Token, Problem> {
    let name = name_of(name)?;
    let found = state.id_of(Kind::Token, &name).and_then(|id| state.tokens.get(id.into()));
    found.ok_or_else(|| Problem::new(Code::NotFound, format!("token {name} does not exist")))
}

/// Description of a token. For a token created by joining, it names the node and the join token.
fn description(row: &model::Token) -> String {
    match (&row.grant.node, &row.joined_with) {
        (Some(node), Some(with)) => format!("node {node}, joined with {with}"),
        _ => row.description.to_string(),
    }
}

fn token(row: &model::Token) -> Token {
    Token {
        name: row.name.clone(),
        purpose: match row.purpose {
            command::Purpose::Bearer => Purpose::Bearer,
            command::Purpose::Join => Purpose::Join,
            command::Purpose::JoinMember => Purpose::JoinMember,
        },
        role: row.grant.role,
        node: row.grant.node.clone(),
        replace: row.replaces,
        realms: row.grant.realms.clone(),
        labels: row.grant.labels.clone(),
        allow_shared: row.grant.allow_shared,
        description: description(row),
        meta: meta(&row.meta),
        status: TokenStatus { expires_at: row.expires_wall_ms.map(Timestamp), used: row.used_for.is_some() },
        secret: None,
    }
}
