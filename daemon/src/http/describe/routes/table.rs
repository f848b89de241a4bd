//! All routes.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, of_list, parameter};
use super::route::{Access, Body, OF_ALLOCATING, OF_LISTS, OF_READS, OF_RELEASES, OF_RULES, Route};
use super::{backup, controllers, leases, maps, members, named, prefixes};
use crate::http::allocation::{allocate, endpoint};
use crate::http::cluster::token;

/// Everything that can be asked.
pub(in crate::http) fn routes() -> Vec<Route> {
    let mut all: Vec<Route> = named::routes().collect();
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
            .query(of_list(&endpoint::SHAPE))
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
            .query(of_list(&allocate::SHAPE))
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
        .query(vec![parameter(
            "all_skipped",
            "boolean",
            "Names all default pools that are skipped, and not only the first for each reason.",
        )])
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

fn tokens() -> [Route; 7] {
    let deed = |verb| Access::Deed(verb, Target::Token);
    let item = "/v1/tokens/{name}";
    [
        Route::get("/v1/tokens", Target::Token, "Lists tokens, without their secrets.")
            .query(of_list(&token::SHAPE))
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
        Route::new(
            "POST",
            "/v1/tokens/self/renew",
            deed(Verb::Renew),
            "Lets a node's token that was made by joining, and is presented, live for its whole time again.",
        )
        .json(200, "Token"),
        Route::new("POST", "/v1/join", Access::JoinToken, "Turns a join token into a node's token, once.")
            .takes("JoinRequest")
            .json(200, "Token")
            .json(201, "Token")
            .refuses(&[Code::AlreadyExists]),
    ]
}
