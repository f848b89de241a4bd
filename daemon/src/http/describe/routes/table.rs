//! All routes.

use axum::Router;
use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, parameter};
use super::route::{Access, Body, Condition, Handled, OF_ALLOCATING, OF_READS, OF_RELEASES, OF_RULES, Route};
use super::{
    agents, backup, collection, controllers, host_policies, leases, maps, members, named, pods, prefixes,
    workloads,
};
use crate::http::allocation::{
    address, allocate, attachment, bulk, configuration, controller, endpoint, explain,
};
use crate::http::cluster::{health, status, token};
use crate::http::describe::docs;
use crate::http::event::{history, pages};
use crate::http::list::show_by_id;
use crate::http::request::App;
use crate::http::request::response::OPEN_METRICS;
use crate::http::transaction::transact::transact;

/// All routes with their handlers.
fn table() -> Vec<Handled> {
    let mut all: Vec<Handled> = named::routes();
    all.extend(maps::routes());
    all.extend(maps::changes_of_pools());
    all.extend(holding());
    let [scale, end] = controllers::routes();
    all.extend([scale.to(controller::scale), end.to(controller::end)]);
    all.extend(prefixes::routes());
    all.extend(host_policies::routes());
    all.extend(leases::routes());
    all.extend(agents::routes());
    all.extend(collection::routes());
    all.extend(workloads::routes());
    all.extend(pods::routes());
    all.extend(telling());
    all.extend(tokens());
    all.extend(backup::routes());
    all.extend(members::routes());
    all
}

/// Descriptions of all routes.
pub(in crate::http) fn routes() -> Vec<Route> {
    table().into_iter().map(|(route, _)| route).collect()
}

/// Router of all routes.
pub(in crate::http) fn handlers() -> Router<App> {
    table().into_iter().fold(Router::new(), |all, (route, handler)| all.route(&route.path, handler))
}

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

fn holding() -> [Handled; 15] {
    let path = "/v1/endpoints/{kind}/{realm}/{namespace}/{name}";
    let network = || parameter("network", "name", "Network of the address; default: `default`.");
    [
        Route::list::<endpoint::Endpoints>("Lists endpoints.", "EndpointPage"),
        Route::one(path, Target::Endpoint, "Shows an endpoint with its allocations.", "EndpointView")
            .to(endpoint::show),
        Route::one(
            format!("{path}/configuration/{{format}}"),
            Target::Endpoint,
            "Renders the addresses of an endpoint as configuration files of a network manager.",
            "HostConfiguration",
        )
        .refuses(&[Code::NotRenderable])
        .to(configuration::show),
        Route::delete(path, (Verb::Release, Target::Endpoint), "Releases all allocations of an endpoint.")
            .json(200, "Released")
            .refuses(OF_RELEASES)
            .to(endpoint::release),
        Route::list::<allocate::Allocations>("Lists allocations, oldest first.", "AllocationPage"),
        Route::post(
            "/v1/allocations",
            (Verb::Allocate, Target::Allocation),
            "Allocates addresses: all that the request names, or none.",
        )
        .takes("AllocateRequest")
        .json(200, "Allocated")
        .json(201, "Allocated")
        .json(202, "Allocated")
        .refuses(OF_ALLOCATING)
        .to(allocate::allocate),
        Route::post(
            "/v1/allocations/bulk",
            (Verb::Allocate, Target::Allocation),
            "Allocates addresses to many endpoints: to all of them, or to none.",
        )
        .takes("BulkAllocateRequest")
        .json(200, "BulkAllocated")
        .json(201, "BulkAllocated")
        .refuses(OF_ALLOCATING)
        .to(bulk::allocate_many),
        Route::post(
            "/v1/allocations/release",
            (Verb::Release, Target::Allocation),
            "Releases many allocations: all of them, or none.",
        )
        .takes("BulkReleaseRequest")
        .json(200, "BulkReleased")
        .refuses(OF_RELEASES)
        .to(bulk::release_many),
        Route::post(
            "/v1/allocations/explain",
            (Verb::Read, Target::Allocation),
            "Explains the pool selection of a request without allocating.",
        )
        .takes("AllocateRequest")
        .query(vec![parameter(
            "all_skipped",
            "boolean",
            "Lists all skipped default pools, not only the first for each reason.",
        )])
        .json(200, "Explanation")
        .to(explain::of_allocation),
        Route::one("/v1/allocations/{id}", Target::Allocation, "Shows an allocation.", "Allocation")
            .to(show_by_id::<allocate::Allocations>),
        Route::delete(
            "/v1/allocations/{id}",
            (Verb::Release, Target::Allocation),
            "Releases an allocation; a newer one of the same address is not affected.",
        )
        .json(200, "Released")
        .refuses(OF_RELEASES)
        .to(allocate::release),
        Route::post(
            "/v1/attachments/release",
            (Verb::Release, Target::Attachment),
            "Releases the allocations of an attachment.",
        )
        .takes("ReleaseAttachmentRequest")
        .json(200, "Released")
        .refuses(OF_RELEASES)
        .to(attachment::release),
        Route::one(
            "/v1/attachments/{realm}/{node}/{config}/{container}/{interface}",
            Target::Attachment,
            "Shows an attachment.",
            "Attachment",
        )
        .refuses(&[Code::ForeignNode])
        .to(attachment::show),
        Route::get("/v1/addresses/{ip}", Target::Address, "Shows the state and the holder of an address.")
            .query(vec![parameter("consistency", "consistency", "Read consistency."), network()])
            .json(200, "Address")
            .refuses(OF_READS)
            .to(address::show),
        Route::get("/v1/addresses/{ip}/history", Target::Event, "Shows the holders of an address over time.")
            .query(vec![
                parameter("consistency", "consistency", "Read consistency."),
                network(),
                parameter("at", "time", "Returns the holder at this time."),
                parameter("since", "time", "Returns events after this time."),
                parameter("after", "event", "`next` of the previous page."),
                parameter("limit", "limit", "Events per page."),
            ])
            .json(200, "AddressHistory")
            .refuses(&[Code::NotFound, Code::InvalidCursor, Code::RevisionCompacted])
            .to(history::show),
    ]
}

fn telling() -> Vec<Handled> {
    let events = vec![
        parameter("consistency", "consistency", "Read consistency."),
        parameter("after", "event", "Returns events after this one."),
        parameter("limit", "limit", "Events per page."),
        parameter("reverse", "boolean", "Returns the newest events first."),
        parameter("kind", "kinds of events", "Kinds of objects, separated by commas."),
        parameter("pool", "name", "Returns events of this pool."),
        parameter("network", "name", "Returns events of this network."),
        parameter("address", "address", "Returns events of this address."),
        parameter("endpoint", "endpoint", "Returns events of this endpoint."),
        parameter("principal", "principal", "Returns events of this principal's requests."),
        parameter("since", "time", "Returns events after this time."),
        parameter("until", "time", "Returns events before this time."),
    ];
    vec![
        Route::new("POST", "/v1/transactions", Access::EachStep, "Applies several changes atomically.")
            .takes("TransactionRequest")
            .json(200, "TransactionAnswer")
            .refuses(OF_RULES)
            .refuses(OF_ALLOCATING)
            .to(transact),
        Route::get(
            "/v1/events",
            Target::Event,
            "Returns events as a page, or as a stream with Accept: text/event-stream.",
        )
        .query(events)
        .json(200, "EventPage")
        .refuses(&[Code::RevisionCompacted, Code::InvalidCursor])
        .to(pages::list_or_stream),
        Route::get(
            "/v1/cluster",
            Target::Cluster,
            "Shows the cluster as seen by this member; requires no leader.",
        )
        .query(fresh())
        .json(200, "Cluster")
        .to(status::show),
        Route::get("/metrics", Target::Metrics, "Metrics of this member.")
            .text(OPEN_METRICS)
            .to(health::metrics),
        Route::public("/version", "Shows the version of this member.")
            .json(200, "Version")
            .to(status::version),
        Route::public("/livez", "Liveness probe: succeeds while the process runs.")
            .text(TEXT)
            .to(async || "ok\n"),
        Route::public("/readyz", "Readiness probe: succeeds if this member can serve requests.")
            .text(TEXT)
            .to(health::ready),
        Route::public("/openapi.json", "Returns this OpenAPI document.")
            .text("application/json")
            .to(docs::openapi),
        Route::public("/docs", "Returns this description as a web page.").text(HTML).to(docs::api),
        Route::public("/docs/problems", "Lists all problem codes with their remedies.")
            .text(HTML)
            .to(docs::problems),
    ]
}

fn tokens() -> [Handled; 7] {
    let permission = |verb| (verb, Target::Token);
    let item = "/v1/tokens/{name}";
    [
        Route::list::<token::Tokens>("Lists tokens, without their secrets.", "TokenPage"),
        Route::post(
            "/v1/tokens",
            permission(Verb::Write),
            "Creates a token. Only this response contains its secret.",
        )
        .takes("TokenRequest")
        .json(201, "Token")
        .refuses(&[Code::AlreadyExists])
        .to(token::create),
        Route::one(item, Target::Token, "Shows a token, without its secret.", "Token").to(token::show),
        Route::delete(item, permission(Verb::Delete), "Revokes a token.")
            .gives(204, Body::Nothing)
            .only(&[Condition::IfMatch])
            .refuses(&[Code::NotFound])
            .to(token::delete),
        Route::post(
            "/v1/tokens/{name}/rotate",
            permission(Verb::Write),
            "Replaces the secret of a token; the old secret is invalid from then on.",
        )
        .json(200, "Token")
        .only(&[Condition::IfMatch])
        .refuses(&[Code::NotFound])
        .to(token::rotate),
        Route::post(
            "/v1/tokens/self/renew",
            permission(Verb::Renew),
            "Renews the presented node token, which was created by joining, for its full validity.",
        )
        .json(200, "Token")
        .to(token::renew),
        Route::new("POST", "/v1/join", Access::JoinToken, "Exchanges a join token for a node token, once.")
            .takes("JoinRequest")
            .json(200, "Token")
            .json(201, "Token")
            .refuses(&[Code::AlreadyExists])
            .to(token::join),
    ]
}
