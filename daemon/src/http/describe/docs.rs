//! `/docs` and `/openapi.json`: descriptions of the API for people and programs.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use ipam_api::Code;
use ipam_api::brand::PRODUCT;
use ipam_api::problem::Retry;

use crate::http::describe::routes::{ALWAYS, Access, Body, Route, routes as table};

/// OpenAPI document. It is committed, and a test compares it with the table of routes.
const OPENAPI: &str = include_str!("../../../../api/openapi.json");

static API_PAGE: LazyLock<String> = LazyLock::new(api_page);
static PROBLEMS_PAGE: LazyLock<String> = LazyLock::new(problems_page);

pub(super) async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

pub(super) async fn api() -> Html<&'static str> {
    Html(API_PAGE.as_str())
}

pub(super) async fn problems() -> Html<&'static str> {
    Html(PROBLEMS_PAGE.as_str())
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{PRODUCT}: {title}</title>\n\
         <style>body{{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         table{{border-collapse:collapse}}td,th{{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}}\
         h2{{margin-top:2rem}}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn api_page() -> String {
    let mut body = String::from(
        "<p>OpenAPI document: <a href=\"/openapi.json\">/openapi.json</a>. Problem codes: \
         <a href=\"/docs/problems\">problems</a>.</p>\n",
    );
    let _ = writeln!(body, "<p>Any request may fail with {}.</p>", links(ALWAYS));
    for route in table() {
        describe(&mut body, &route);
    }
    page("The HTTP API", &body)
}

fn describe(body: &mut String, route: &Route) {
    let who = match route.access {
        Access::Public => "Public.".to_owned(),
        Access::Permission(verb, target) => format!("Requires permission to {verb} {target} resources."),
        Access::EachStep => "Requires the permissions of each step.".to_owned(),
        Access::JoinToken => "Requires a join token.".to_owned(),
        Access::MemberJoinToken => {
            "Requires a member's join token, or permission to write cluster resources.".to_owned()
        }
    };
    let summary = escaped(&route.summary);
    let _ = write!(body, "<h2><code>{} {}</code></h2>\n<p>{summary} {who}</p>\n", route.method, route.path);
    if let Some(request) = route.request {
        let _ = writeln!(body, "<p>Request body: <code>{request}</code>.</p>");
    }
    for condition in route.conditions {
        let _ = writeln!(body, "<p>May state a condition with the header <code>{condition}</code>.</p>");
    }
    for answer in &route.answers {
        let what = match answer.body {
            Body::Nothing => String::new(),
            Body::Json(name) | Body::Media(name) => format!(" <code>{name}</code>"),
        };
        let _ = writeln!(body, "<p>{}{what}</p>", answer.status);
    }
    if !route.query.is_empty() {
        body.push_str("<details><summary>Parameters</summary>\n<table>\n");
        for parameter in &route.query {
            let about = escaped(&parameter.about);
            let _ = writeln!(
                body,
                "<tr><td><code>{}</code></td><td>{}</td><td>{about}</td></tr>",
                parameter.name, parameter.kind
            );
        }
        body.push_str("</table>\n</details>\n");
    }
    if !route.problems.is_empty() {
        let _ = writeln!(body, "<p>May fail with {}.</p>", links(&route.problems));
    }
}

fn links(codes: &[Code]) -> String {
    let link = |code: &Code| format!("<a href=\"/docs/problems#{code}\">{code}</a>");
    codes.iter().map(link).collect::<Vec<_>>().join(", ")
}

fn problems_page() -> String {
    let mut body = String::from(
        "<p>Each error response has one of these codes (<code>application/problem+json</code>, RFC 9457).</p>\n",
    );
    for code in Code::ALL {
        let entry = code.entry();
        let retry = match entry.retry {
            Retry::Never => "Do not retry.",
            Retry::Same => "Retry unchanged.",
            Retry::After => "Retry later.",
            Retry::Changed => "Change the request before a retry.",
        };
        let _ = write!(
            body,
            "<h2 id=\"{0}\">{0}</h2>\n<p>{1}. HTTP {2}, CNI {3}, gRPC {4}, exit code {5}. {retry}</p>\n<p>{6}</p>\n",
            entry.code,
            escaped(entry.title),
            entry.http,
            entry.cni,
            entry.grpc,
            entry.exit,
            escaped(entry.help),
        );
    }
    page("Problems", &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_and_every_code_is_described() {
        for route in table() {
            assert!(API_PAGE.contains(&format!("<h2><code>{} {}</code></h2>", route.method, route.path)));
        }
        for code in Code::ALL {
            // The `type` of a problem links to this anchor.
            assert!(PROBLEMS_PAGE.contains(&format!("id=\"{code}\"")), "{code}");
        }
    }
}
