//! The one table of routes: what there is, who may ask, what is sent and answered.
//!
//! The OpenAPI and the pages under `/docs` are made from it, and tests hold it to the router.

mod backup;
mod controllers;
mod leases;
mod maps;
mod members;
mod parameters;
mod prefixes;

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use self::parameters::{Parameter, fresh, of_list, of_writes, parameter};
use super::list::Shape;

/// One method at one path.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) access: Access,
    pub(super) summary: String,
    pub(super) query: Vec<Parameter>,
    /// The name of the type that is sent, if something is.
    pub(super) request: Option<&'static str>,
    /// What is answered when all is well.
    pub(super) answers: Vec<Answer>,
    /// What else is answered, beside what any request may meet.
    pub(super) problems: Vec<Code>,
}

/// Who may ask.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    /// Whoever comes.
    Public,
    /// Whoever may do that.
    Deed(Verb, Target),
    /// Whoever may do each of the steps.
    EachStep,
    /// Whoever has a join token.
    JoinToken,
    /// Whoever has a member's join token, or may change the cluster.
    MemberJoinToken,
}

/// A status, and the name or media type of what comes with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Body,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    Nothing,
    /// JSON of a type.
    Json(&'static str),
    /// Something else.
    Media(&'static str),
}

/// What any request may be refused with.
pub(super) const ALWAYS: &[Code] = &[
    Code::InvalidFilter,
    Code::InvalidField,
    Code::Unauthenticated,
    Code::TokenExpired,
    Code::Forbidden,
    Code::TooManyRequests,
    Code::NoLeader,
    Code::Overloaded,
    Code::DeadlineExceeded,
    Code::ShuttingDown,
    Code::Internal,
];
/// What any change may be refused with, too.
const CHANGES: &[Code] = &[
    Code::MalformedBody,
    Code::UnsupportedMediaType,
    Code::TooLarge,
    Code::TooSlow,
    Code::LimitExceeded,
    Code::IdempotencyKeyReused,
    Code::StorageFull,
];

impl Route {
    fn new(
        method: &'static str,
        path: impl Into<String>,
        access: Access,
        summary: impl Into<String>,
    ) -> Self {
        let query = if method == "GET" { Vec::new() } else { of_writes() };
        let problems = if method == "GET" { Vec::new() } else { CHANGES.to_vec() };
        let (path, summary) = (path.into(), summary.into());
        Self { method, path, access, summary, query, request: None, answers: Vec::new(), problems }
    }

    fn get(path: impl Into<String>, target: Target, summary: impl Into<String>) -> Self {
        Self::new("GET", path, Access::Deed(Verb::Read, target), summary)
    }

    fn public(path: &str, summary: &str) -> Self {
        Self::new("GET", path, Access::Public, summary)
    }

    fn query(mut self, more: Vec<Parameter>) -> Self {
        self.query.extend(more);
        self
    }

    fn takes(mut self, name: &'static str) -> Self {
        self.request = Some(name);
        self.problems.extend([Code::UnknownField]);
        self
    }

    fn gives(mut self, status: u16, body: Body) -> Self {
        self.answers.push(Answer { status, body });
        self
    }

    fn json(self, status: u16, name: &'static str) -> Self {
        self.gives(status, Body::Json(name))
    }

    fn text(self, media: &'static str) -> Self {
        self.gives(200, Body::Media(media))
    }

    fn refuses(mut self, codes: &[Code]) -> Self {
        self.problems.extend_from_slice(codes);
        self
    }
}

/// What is called how, of a kind of named resources.
struct Named {
    plural: &'static str,
    one: &'static str,
    target: Target,
    shape: &'static Shape,
    intention: &'static str,
    view: &'static str,
    page: &'static str,
}

const NAMED: [Named; 6] = [
    Named {
        plural: "networks",
        one: "network",
        target: Target::Network,
        shape: &super::network::SHAPE,
        intention: "Network",
        view: "NetworkView",
        page: "NetworkPage",
    },
    Named {
        plural: "subnets",
        one: "subnet",
        target: Target::Subnet,
        shape: &super::subnet::SHAPE,
        intention: "Subnet",
        view: "SubnetView",
        page: "SubnetPage",
    },
    Named {
        plural: "pools",
        one: "pool",
        target: Target::Pool,
        shape: &super::pool::SHAPE,
        intention: "Pool",
        view: "PoolView",
        page: "PoolPage",
    },
    Named {
        plural: "reservations",
        one: "reservation",
        target: Target::Reservation,
        shape: &super::reservation::SHAPE,
        intention: "Reservation",
        view: "ReservationView",
        page: "ReservationPage",
    },
    Named {
        plural: "nodes",
        one: "node",
        target: Target::Node,
        shape: &super::node::SHAPE,
        intention: "Node",
        view: "NodeView",
        page: "NodePage",
    },
    Named {
        plural: "namespaces",
        one: "namespace",
        target: Target::Namespace,
        shape: &super::namespace::SHAPE,
        intention: "Namespace",
        view: "NamespaceView",
        page: "NamespacePage",
    },
];

const OF_LISTS: &[Code] = &[Code::InvalidCursor, Code::CursorExpired, Code::RevisionNotReached];
const OF_READS: &[Code] = &[Code::NotFound, Code::RevisionNotReached];
const OF_RULES: &[Code] = &[
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
const OF_ALLOCATING: &[Code] = &[
    Code::NotFound,
    Code::FamilyMismatch,
    Code::Terminating,
    Code::PoolExhausted,
    Code::NoPoolSelected,
    Code::NoPoolFits,
    Code::GenerationUnconfirmed,
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
const OF_RELEASES: &[Code] = &[Code::NotFound, Code::AllocationChanged, Code::ForeignNode];

fn named(kind: &Named) -> [Route; 6] {
    let Named { plural, one, target, shape, intention, view, page } = kind;
    let place = if matches!(target, Target::Node | Target::Namespace) { "{realm}/{name}" } else { "{name}" };
    let (all, item) = (format!("/v1/{plural}"), format!("/v1/{plural}/{place}"));
    let write = Access::Deed(Verb::Write, *target);
    let drain = match target {
        Target::Pool => {
            vec![parameter(
                "drain",
                "boolean",
                "If it is in use, lets it end: it gives nothing more and goes once it is empty.",
            )]
        }
        _ => vec![parameter("drain", "boolean", "Pools only.")],
    };
    [
        Route::get(&all, *target, format!("Lists {plural}."))
            .query(of_list(shape))
            .json(200, page)
            .refuses(OF_LISTS),
        Route::new("POST", &all, write, format!("Creates a {one}."))
            .takes(intention)
            .json(201, view)
            .refuses(OF_RULES),
        Route::get(&item, *target, format!("Shows a {one}."))
            .query(fresh())
            .json(200, view)
            .refuses(OF_READS),
        Route::new("PUT", &item, write, format!("Creates or replaces a {one}."))
            .takes(intention)
            .json(200, view)
            .json(201, view)
            .gives(204, Body::Nothing)
            .refuses(OF_RULES),
        Route::new("PATCH", &item, write, format!("Changes some fields of a {one} (RFC 7396)."))
            .takes("MergePatch")
            .json(200, view)
            .gives(204, Body::Nothing)
            .refuses(OF_RULES),
        Route::new("DELETE", &item, Access::Deed(Verb::Delete, *target), format!("Removes a {one}."))
            .query(drain)
            .json(202, view)
            .gives(204, Body::Nothing)
            .refuses(&[Code::NotFound, Code::InUse, Code::ManagedElsewhere, Code::RevisionMismatch]),
    ]
}

/// Everything that can be asked.
pub(super) fn routes() -> Vec<Route> {
    let mut all: Vec<Route> = NAMED.iter().flat_map(named).collect();
    all.extend(maps::routes());
    all.extend(maps::changes_of_pools());
    all.extend(holding());
    all.extend(controllers::routes());
    all.extend(prefixes::routes());
    all.extend(leases::routes());
    all.extend(telling());
    all.extend(tokens());
    all.extend(backup::routes());
    all.extend(members::routes());
    all
}

fn holding() -> [Route; 12] {
    let endpoint = "/v1/endpoints/{kind}/{realm}/{namespace}/{name}";
    let network = || parameter("network", "string", "The address's network; `default` if nothing is said.");
    [
        Route::get("/v1/endpoints", Target::Endpoint, "Lists endpoints.")
            .query(of_list(&super::endpoint::SHAPE))
            .json(200, "EndpointPage")
            .refuses(OF_LISTS),
        Route::get(endpoint, Target::Endpoint, "Shows an endpoint with all that it holds.")
            .query(fresh())
            .json(200, "EndpointView")
            .refuses(OF_READS),
        Route::new(
            "DELETE",
            endpoint,
            Access::Deed(Verb::Release, Target::Endpoint),
            "Takes back all that an endpoint holds.",
        )
        .json(200, "Released")
        .refuses(OF_RELEASES),
        Route::get("/v1/allocations", Target::Allocation, "Lists allocations, the oldest first.")
            .query(of_list(&super::allocation::SHAPE))
            .json(200, "AllocationPage")
            .refuses(OF_LISTS),
        Route::new(
            "POST",
            "/v1/allocations",
            Access::Deed(Verb::Allocate, Target::Allocation),
            "Gives addresses: all that are asked for, or none.",
        )
        .takes("AllocateRequest")
        .json(200, "Allocated")
        .json(201, "Allocated")
        .json(202, "Allocated")
        .refuses(OF_ALLOCATING),
        Route::new(
            "POST",
            "/v1/allocations/explain",
            Access::Deed(Verb::Read, Target::Allocation),
            "Says what a request would get, and why; gives nothing.",
        )
        .takes("AllocateRequest")
        .json(200, "Explanation"),
        Route::get("/v1/allocations/{id}", Target::Allocation, "Shows an allocation.")
            .query(fresh())
            .json(200, "Allocation")
            .refuses(OF_READS),
        Route::new(
            "DELETE",
            "/v1/allocations/{id}",
            Access::Deed(Verb::Release, Target::Allocation),
            "Takes an allocation back, and no newer one of the same address.",
        )
        .json(200, "Released")
        .refuses(OF_RELEASES),
        Route::new(
            "POST",
            "/v1/attachments/release",
            Access::Deed(Verb::Release, Target::Attachment),
            "Takes back what an attachment holds.",
        )
        .takes("ReleaseAttachmentRequest")
        .json(200, "Released")
        .refuses(OF_RELEASES),
        Route::get(
            "/v1/attachments/{realm}/{node}/{config}/{container}/{interface}",
            Target::Attachment,
            "Shows an attachment.",
        )
        .query(fresh())
        .json(200, "Attachment")
        .refuses(&[Code::NotFound, Code::RevisionNotReached, Code::ForeignNode]),
        Route::get("/v1/addresses/{ip}", Target::Address, "Shows all that is known of one address.")
            .query(vec![parameter("consistency", "consistency", "How fresh the answer must be."), network()])
            .json(200, "Address")
            .refuses(OF_READS),
        Route::get("/v1/addresses/{ip}/history", Target::Event, "Shows who had an address, and when.")
            .query(vec![
                parameter("consistency", "consistency", "How fresh the answer must be."),
                network(),
                parameter("at", "string", "Who had it at that moment."),
                parameter("since", "string", "Only what came after that moment."),
                parameter("after", "string", "The `next` of the page before."),
                parameter("limit", "integer", "Events of one page."),
            ])
            .json(200, "AddressHistory")
            .refuses(&[Code::NotFound, Code::InvalidCursor, Code::RevisionCompacted]),
    ]
}

fn telling() -> Vec<Route> {
    let text = |name: &str, about: &str| parameter(name, "string", about);
    let events = vec![
        parameter("consistency", "consistency", "How fresh the answer must be."),
        text("after", "Only what came after this event."),
        parameter("limit", "integer", "Events of one page."),
        parameter("reverse", "boolean", "The newest first."),
        text("kind", "Only about such things, divided by commas."),
        text("pool", "Only about this pool."),
        text("network", "Only about this network."),
        text("address", "Only about this address."),
        text("endpoint", "Only about this endpoint."),
        text("principal", "Only what this one did."),
        text("since", "Only what came after that moment."),
        text("until", "Only what came before that moment."),
    ];
    vec![
        Route::new(
            "POST",
            "/v1/transactions",
            Access::EachStep,
            "Makes several changes in one step, all or none.",
        )
        .takes("TransactionRequest")
        .json(200, "TransactionAnswer")
        .refuses(OF_RULES)
        .refuses(OF_ALLOCATING),
        Route::get(
            "/v1/events",
            Target::Event,
            "Tells what has happened: as a page, or as a stream for whoever accepts text/event-stream.",
        )
        .query(events)
        .json(200, "EventPage")
        .refuses(&[Code::RevisionCompacted, Code::InvalidCursor]),
        Route::get(
            "/v1/cluster",
            Target::Cluster,
            "Shows the cluster as this member sees it. Needs no leader.",
        )
        .query(fresh())
        .json(200, "Cluster"),
        Route::get("/metrics", Target::Metrics, "Metrics of this member.")
            .text("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        Route::public("/version", "Says what runs here.").json(200, "Version"),
        Route::public("/livez", "Answers while the process lives.").text("text/plain; charset=utf-8"),
        Route::public("/readyz", "Says whether clients should come here.").text("text/plain; charset=utf-8"),
        Route::public("/openapi.json", "This description.").text("application/json"),
        Route::public("/docs", "This description, for people.").text("text/html; charset=utf-8"),
        Route::public("/docs/problems", "What can go wrong, and what helps.")
            .text("text/html; charset=utf-8"),
    ]
}

fn tokens() -> [Route; 6] {
    let deed = |verb| Access::Deed(verb, Target::Token);
    let item = "/v1/tokens/{name}";
    [
        Route::get("/v1/tokens", Target::Token, "Lists tokens, without their secrets.")
            .query(of_list(&super::token::SHAPE))
            .json(200, "TokenPage")
            .refuses(OF_LISTS),
        Route::new(
            "POST",
            "/v1/tokens",
            deed(Verb::Write),
            "Makes a token. The answer has its secret, once.",
        )
        .takes("TokenRequest")
        .json(201, "Token")
        .refuses(&[Code::AlreadyExists]),
        Route::get(item, Target::Token, "Shows a token, without its secret.")
            .query(fresh())
            .json(200, "Token")
            .refuses(OF_READS),
        Route::new("DELETE", item, deed(Verb::Delete), "Revokes a token.")
            .gives(204, Body::Nothing)
            .refuses(&[Code::NotFound, Code::RevisionMismatch]),
        Route::new(
            "POST",
            "/v1/tokens/{name}/rotate",
            deed(Verb::Write),
            "Gives a token another secret; the old one is worth nothing from then on.",
        )
        .json(200, "Token")
        .refuses(&[Code::NotFound, Code::RevisionMismatch]),
        Route::new("POST", "/v1/join", Access::JoinToken, "Turns a join token into a node's token, once.")
            .takes("JoinRequest")
            .json(200, "Token")
            .json(201, "Token")
            .refuses(&[Code::AlreadyExists]),
    ]
}
