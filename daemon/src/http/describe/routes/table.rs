//! All routes.

use axum::Router;
use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, parameter};
use super::route::{Access, Body, Condition, Handled, OF_ALLOCATING, OF_READS, OF_RELEASES, OF_RULES, Route};
use super::{backup, controllers, leases, maps, members, named, prefixes};
use crate::http::allocation::{address, allocate, attachment, controller, endpoint, explain};
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
    all.extend(leases::routes());
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

fn holding() -> [Handled; 12] {
    let path = "/v1/endpoints/{kind}/{realm}/{namespace}/{name}";
    let network = || parameter("network", "name", "The address's network; `default` if nothing is said.");
    [
        Route::list::<endpoint::Endpoints>("Lists endpoints.", "EndpointPage"),
        Route::one(path, Target::Endpoint, "Shows an endpoint with all that it holds.", "EndpointView")
            .to(endpoint::show),
        Route::delete(path, (Verb::Release, Target::Endpoint), "Takes back all that an endpoint holds.")
            .json(200, "Released")
            .refuses(OF_RELEASES)
            .to(endpoint::release),
        Route::list::<allocate::Allocations>("Lists allocations, the oldest first.", "AllocationPage"),
        Route::post(
            "/v1/allocations",
            (Verb::Allocate, Target::Allocation),
            "Gives addresses: all that are asked for, or none.",
        )
        .takes("AllocateRequest")
        .json(200, "Allocated")
        .json(201, "Allocated")
        .json(202, "Allocated")
        .refuses(OF_ALLOCATING)
        .to(allocate::allocate),
        Route::post(
            "/v1/allocations/explain",
            (Verb::Read, Target::Allocation),
            "Says what a request would get, and why; gives nothing.",
        )
        .takes("AllocateRequest")
        .query(vec![parameter(
            "all_skipped",
            "boolean",
            "Names all default pools that are skipped, and not only the first for each reason.",
        )])
        .json(200, "Explanation")
        .to(explain::of_allocation),
        Route::one("/v1/allocations/{id}", Target::Allocation, "Shows an allocation.", "Allocation")
            .to(show_by_id::<allocate::Allocations>),
        Route::delete(
            "/v1/allocations/{id}",
            (Verb::Release, Target::Allocation),
            "Takes an allocation back, and no newer one of the same address.",
        )
        .json(200, "Released")
        .refuses(OF_RELEASES)
        .to(allocate::release),
        Route::post(
            "/v1/attachments/release",
            (Verb::Release, Target::Attachment),
            "Takes back what an attachment holds.",
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
        Route::get("/v1/addresses/{ip}", Target::Address, "Shows all that is known of one address.")
            .query(vec![parameter("consistency", "consistency", "How fresh the answer must be."), network()])
            .json(200, "Address")
            .refuses(OF_READS)
            .to(address::show),
        Route::get("/v1/addresses/{ip}/history", Target::Event, "Shows who had an address, and when.")
            .query(vec![
                parameter("consistency", "consistency", "How fresh the answer must be."),
                network(),
                parameter("at", "time", "Who had it at that moment."),
                parameter("since", "time", "Only what came after that moment."),
                parameter("after", "event", "The `next` of the page before."),
                parameter("limit", "limit", "Events of one page."),
            ])
            .json(200, "AddressHistory")
            .refuses(&[Code::NotFound, Code::InvalidCursor, Code::RevisionCompacted])
            .to(history::show),
    ]
}

fn telling() -> Vec<Handled> {
    let events = vec![
        parameter("consistency", "consistency", "How fresh the answer must be."),
        parameter("after", "event", "Only what came after this event."),
        parameter("limit", "limit", "Events of one page."),
        parameter("reverse", "boolean", "The newest first."),
        parameter("kind", "kinds of events", "Only about such things, divided by commas."),
        parameter("pool", "name", "Only about this pool."),
        parameter("network", "name", "Only about this network."),
        parameter("address", "address", "Only about this address."),
        parameter("endpoint", "endpoint", "Only about this endpoint."),
        parameter("principal", "principal", "Only what this one did."),
        parameter("since", "time", "Only what came after that moment."),
        parameter("until", "time", "Only what came before that moment."),
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
            "Shows the cluster as this member sees it. Needs no leader.",
        )
        .query(fresh())
        .json(200, "Cluster")
        .to(status::show),
        Route::get("/metrics", Target::Metrics, "Metrics of this member.")
            .text(OPEN_METRICS)
            .to(health::metrics),
        Route::public("/version", "Says what runs here.").json(200, "Version").to(status::version),
        Route::public("/livez", "Answers while the process lives.").text(TEXT).to(async || "ok\n"),
        Route::public("/readyz", "Says whether clients should come here.").text(TEXT).to(health::ready),
        Route::public("/openapi.json", "This description.").text("application/json").to(docs::openapi),
        Route::public("/docs", "This description, for people.").text(HTML).to(docs::api),
        Route::public("/docs/problems", "What can go wrong, and what helps.").text(HTML).to(docs::problems),
    ]
}

fn tokens() -> [Handled; 7] {
    let permission = |verb| (verb, Target::Token);
    let item = "/v1/tokens/{name}";
    [
        Route::list::<token::Tokens>("Lists tokens, without their secrets.", "TokenPage"),
        Route::post("/v1/tokens", permission(Verb::Write), "Makes a token. The answer has its secret, once.")
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
            "Gives a token another secret; the old one is worth nothing from then on.",
        )
        .json(200, "Token")
        .only(&[Condition::IfMatch])
        .refuses(&[Code::NotFound])
        .to(token::rotate),
        Route::post(
            "/v1/tokens/self/renew",
            permission(Verb::Renew),
            "Lets a node's token that was made by joining, and is presented, live for its whole time again.",
        )
        .json(200, "Token")
        .to(token::renew),
        Route::new("POST", "/v1/join", Access::JoinToken, "Turns a join token into a node's token, once.")
            .takes("JoinRequest")
            .json(200, "Token")
            .json(201, "Token")
            .refuses(&[Code::AlreadyExists])
            .to(token::join),
    ]
}
