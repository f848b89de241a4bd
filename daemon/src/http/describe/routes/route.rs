//! Route: method, path, access rule, request type and responses.

use std::fmt;

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{Parameter, fresh, of_list, of_writes};
use crate::http::list::{Listable, list};
use crate::http::request::App;

/// A route with its handler.
pub(super) type Handled = (Route, MethodRouter<App>);

/// One method at one path.
#[derive(Debug)]
pub(in crate::http) struct Route {
    pub(in crate::http) method: &'static str,
    pub(in crate::http) path: String,
    pub(in crate::http) access: Access,
    pub(in crate::http) summary: String,
    pub(in crate::http) query: Vec<Parameter>,
    /// Conditions on the resource that the request may state, as headers.
    pub(in crate::http) conditions: &'static [Condition],
    /// Name of the request type, if the request has a body.
    pub(in crate::http) request: Option<&'static str>,
    /// Successful responses.
    pub(in crate::http) answers: Vec<Answer>,
    /// Problems, besides those that any request may get.
    pub(in crate::http) problems: Vec<Code>,
}

/// Required rights.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Access {
    /// Every caller.
    Public,
    /// A caller with this permission.
    Permission(Verb, Target),
    /// A caller with the permissions of all steps.
    EachStep,
    /// A caller with a join token.
    JoinToken,
    /// A caller with a member's join token, or with the right to change the cluster.
    MemberJoinToken,
}

/// A header that states a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Condition {
    IfMatch,
    IfNoneMatch,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IfMatch => "If-Match",
            Self::IfNoneMatch => "If-None-Match",
        })
    }
}

/// Status of a successful response, and the type of its body.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Answer {
    pub(in crate::http) status: u16,
    pub(in crate::http) body: Body,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Body {
    Nothing,
    /// JSON of a type.
    Json(&'static str),
    /// Another media type.
    Media(&'static str),
}

/// Problems that any request may get.
pub(in crate::http) const ALWAYS: &[Code] = &[
    Code::InvalidFilter,
    Code::InvalidField,
    Code::Unauthenticated,
    Code::TokenExpired,
    Code::Forbidden,
    Code::TooLarge,
    Code::TooManyRequests,
    Code::NoLeader,
    Code::Overloaded,
    Code::DeadlineExceeded,
    Code::ShuttingDown,
    Code::Internal,
];
/// Additional problems that any change may get.
pub(super) const CHANGES: &[Code] = &[
    Code::MalformedBody,
    Code::UnsupportedMediaType,
    Code::TooSlow,
    Code::LimitExceeded,
    Code::ConflictingFields,
    Code::IdempotencyKeyReused,
    Code::StorageFull,
];

impl Route {
    pub(super) fn new(
        method: &'static str,
        path: impl Into<String>,
        access: Access,
        summary: impl Into<String>,
    ) -> Self {
        let query = if method == "GET" { Vec::new() } else { of_writes() };
        let problems = if method == "GET" { Vec::new() } else { CHANGES.to_vec() };
        let (path, summary) = (path.into(), summary.into());
        Self {
            method,
            path,
            access,
            summary,
            query,
            conditions: &[],
            request: None,
            answers: Vec::new(),
            problems,
        }
    }

    pub(super) fn get(path: impl Into<String>, target: Target, summary: impl Into<String>) -> Self {
        Self::new("GET", path, Access::Permission(Verb::Read, target), summary)
    }

    pub(super) fn public(path: &str, summary: &str) -> Self {
        Self::new("GET", path, Access::Public, summary)
    }

    pub(super) fn post(
        path: impl Into<String>,
        permission: (Verb, Target),
        summary: impl Into<String>,
    ) -> Self {
        Self::new("POST", path, Access::Permission(permission.0, permission.1), summary)
    }

    pub(super) fn delete(
        path: impl Into<String>,
        permission: (Verb, Target),
        summary: impl Into<String>,
    ) -> Self {
        Self::new("DELETE", path, Access::Permission(permission.0, permission.1), summary)
    }

    /// A list with its pages, whose type is `page`.
    pub(super) fn list<L: Listable>(summary: impl Into<String>, page: &'static str) -> Handled {
        Self::get(L::SHAPE.path, L::target(), summary)
            .query(of_list(L::SHAPE))
            .json(200, page)
            .refuses(&[Code::InvalidCursor, Code::CursorExpired, Code::RevisionNotReached])
            .refuses(if L::SHAPE.addressed { &[Code::CidrHasHostBits] } else { &[] })
            .to(list::<L>)
    }

    /// A single resource of the type `body`, which may not exist.
    pub(super) fn one(
        path: impl Into<String>,
        target: Target,
        summary: impl Into<String>,
        body: &'static str,
    ) -> Self {
        Self::get(path, target, summary)
            .query(fresh())
            .json(200, body)
            .refuses(&[Code::NotFound, Code::RevisionNotReached])
    }

    /// Ties the route to its handler.
    pub(super) fn to<T: 'static>(self, handler: impl Handler<T, App>) -> Handled {
        let handler = match self.method {
            "GET" => routing::get(handler),
            "POST" => routing::post(handler),
            "PUT" => routing::put(handler),
            "PATCH" => routing::patch(handler),
            _ => routing::delete(handler),
        };
        (self, handler)
    }

    pub(super) fn query(mut self, more: Vec<Parameter>) -> Self {
        self.query.extend(more);
        self
    }

    /// Adds the conditions that a request may state, and the refusal of a failed condition.
    pub(super) fn only(mut self, conditions: &'static [Condition]) -> Self {
        self.conditions = conditions;
        self.refuses(&[Code::RevisionMismatch])
    }

    pub(super) fn takes(mut self, name: &'static str) -> Self {
        self.request = Some(name);
        self.problems.extend([Code::UnknownField]);
        self
    }

    pub(super) fn gives(mut self, status: u16, body: Body) -> Self {
        self.answers.push(Answer { status, body });
        self
    }

    pub(super) fn json(self, status: u16, name: &'static str) -> Self {
        self.gives(status, Body::Json(name))
    }

    pub(super) fn text(self, media: &'static str) -> Self {
        self.gives(200, Body::Media(media))
    }

    pub(super) fn refuses(mut self, codes: &[Code]) -> Self {
        self.problems.extend_from_slice(codes);
        self
    }
}

pub(super) const OF_READS: &[Code] = &[Code::NotFound, Code::RevisionNotReached];
pub(super) const OF_RULES: &[Code] = &[
    Code::NotFound,
    Code::CidrHasHostBits,
    Code::RangeReversed,
    Code::FamilyMismatch,
    Code::OutsideSubnet,
    Code::GatewayInRange,
    Code::Overlap,
    Code::InUse,
    Code::Terminating,
    Code::ImmutableField,
    Code::ManagedElsewhere,
    Code::AlreadyExists,
    Code::RevisionMismatch,
];
pub(super) const OF_ALLOCATING: &[Code] = &[
    Code::NotFound,
    Code::FamilyMismatch,
    Code::Terminating,
    Code::PoolExhausted,
    Code::NoPoolSelected,
    Code::NoPoolFits,
    Code::EpochUnconfirmed,
    Code::PoolDisabled,
    Code::AddressTaken,
    Code::AddressOutsidePools,
    Code::AddressReserved,
    Code::AddressCooling,
    Code::AddressQuarantined,
    Code::QuotaExceeded,
    Code::AttachmentReleased,
    Code::BootUnconfirmed,
    Code::AllocationChanged,
    Code::ForeignNode,
];
pub(super) const OF_RELEASES: &[Code] = &[Code::NotFound, Code::AllocationChanged, Code::ForeignNode];
