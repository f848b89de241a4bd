//! Admission by the head of a request: caller and role are checked before the body is read.
//!
//! Handlers and `apply` check again, with the body's contents. A request that is refused here gets no buffer
//! for its body, which bounds the memory that unauthenticated callers can occupy.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State as AppState};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ipam_api::access::{Target, Verb};
use ipam_api::name::shown;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Cause, Purpose, Refusal};

use crate::http::describe::routes::{Access, routes};
use crate::http::request::caller::deadline;
use crate::http::request::{ApiError, App, Identity, Notes, Offer};

/// Relation of the page that sends a request to the server, as browsers state it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Access rules by path and method: the table of routes, indexed.
#[derive(Debug, Clone)]
pub(super) struct AccessRules(Arc<BTreeMap<String, Vec<(&'static str, Access)>>>);

impl Default for AccessRules {
    fn default() -> Self {
        let mut paths: BTreeMap<String, Vec<(&'static str, Access)>> = BTreeMap::new();
        for route in routes() {
            paths.entry(route.path).or_default().push((route.method, route.access));
        }
        Self(Arc::new(paths))
    }
}

impl AccessRules {
    /// Access rule of a route; none if the router will answer 404 or 405.
    fn access(&self, method: &Method, path: &str) -> Option<Access> {
        let method = if method == Method::HEAD { Method::GET.as_str() } else { method.as_str() };
        self.0.get(path)?.iter().find(|(name, _)| *name == method).map(|(_, access)| *access)
    }
}

/// Passes on the requests that the table of roles allows, without touching their bodies.
pub(super) async fn admit(
    AppState((app, rules)): AppState<(App, AccessRules)>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let path = head.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let access = path.and_then(|path| rules.access(&head.method, path));
    match judge(&app, access, &head).await {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(problem) => ApiError(problem).into_response(),
    }
}

async fn judge(app: &App, access: Option<Access>, head: &Parts) -> Result<(), Problem> {
    let notes = Notes::of(head);
    let offer = head.extensions.get::<Offer>().cloned().unwrap_or_default();
    let access = match access {
        None | Some(Access::Public) => {
            if app.node.look(|state| offer.known_in(state)).is_ok_and(|known| known.is_some()) {
                notes.note_known();
            }
            return Ok(());
        }
        Some(access) => access,
    };
    let known = app.identify(&offer, deadline(&head.headers)?).await?;
    notes.note_known();
    let reads = [Method::GET, Method::HEAD].contains(&head.method)
        // A backup reads everything and blocks other backups, so no page of another site may start one.
        && !matches!(access, Access::Permission(_, Target::Backup));
    if !reads {
        check_page(&head.headers)?;
    }
    check_access(&known, access)
}

fn check_access(known: &Identity, access: Access) -> Result<(), Problem> {
    match access {
        Access::Public => Ok(()),
        Access::Permission(verb, target) => known.check((verb, target)),
        Access::EachStep => known.check_bearer(),
        Access::JoinToken if known.purpose == Purpose::Join => Ok(()),
        Access::JoinToken => Err(Refusal::from(Cause::NoJoinToken).into()),
        Access::MemberJoinToken if known.purpose == Purpose::JoinMember => Ok(()),
        Access::MemberJoinToken => known.check((Verb::Write, Target::Cluster)),
    }
}

/// Refuses cross-site requests of browsers with ambient rights. Such rights come from the browser's address
/// or its client certificate, not from the request.
fn check_page(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(AUTHORIZATION) {
        return Ok(());
    }
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or("?").to_owned();
    let foreign = |what: &str, value: &str| {
        let detail = format!("the request comes from a page of another site ({what} {})", shown(value));
        Err(Problem::new(Code::Forbidden, detail)
            .help("Ask without a browser, or with a token: Authorization: Bearer ipamd_…."))
    };
    for site in headers.get_all(&SEC_FETCH_SITE).iter().map(text) {
        if !matches!(site.as_str(), "same-origin" | "none") {
            return foreign("Sec-Fetch-Site", &site);
        }
    }
    let host = headers.get(HOST).map(text).unwrap_or_default();
    for origin in headers.get_all(ORIGIN).iter().map(text) {
        let own = origin.split_once("://").is_some_and(|(_, name)| name.eq_ignore_ascii_case(&host));
        if !own {
            return foreign("Origin", &origin);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(pairs: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:7440".parse().unwrap());
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        check_page(&headers).is_ok()
    }

    #[test]
    fn only_pages_of_this_server_use_the_rights_of_a_browser() {
        for own in [
            &[][..],
            &[("origin", "http://localhost:7440")],
            &[("origin", "https://LOCALHOST:7440"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
            // A page can't set this header without a preflight request, which is refused.
            &[("origin", "http://evil.example"), ("authorization", "Bearer ipamd_x")],
        ] {
            assert!(passes(own), "{own:?}");
        }
        for foreign in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "localhost:7440")],
            &[("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "something-new")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")],
            &[("origin", "http://localhost:7440"), ("origin", "http://evil.example")],
        ] {
            assert!(!passes(foreign), "{foreign:?}");
        }
    }

    #[test]
    fn access_rules_know_the_table_of_routes() {
        let rules = AccessRules::default();
        let write_pools = rules.access(&Method::POST, "/v1/pools");
        assert!(
            matches!(write_pools, Some(Access::Permission(Verb::Write, Target::Pool))),
            "{write_pools:?}"
        );
        assert!(matches!(rules.access(&Method::HEAD, "/livez"), Some(Access::Public)));
        assert!(rules.access(&Method::DELETE, "/v1/pools").is_none());
        assert!(rules.access(&Method::GET, "/nothing").is_none());
    }
}
