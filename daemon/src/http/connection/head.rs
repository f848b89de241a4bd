//! Rejection of ambiguous request heads, which a proxy could read otherwise (request smuggling).

use axum::extract::Request;
use axum::http::Version;
use axum::http::header::{HOST, HeaderMap};
use axum::http::uri::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ipam_api::limits::URI_BYTES_MAX;
use ipam_api::{Code, Problem};

use crate::http::request::ApiError;

/// Passes on what is unambiguous.
pub(in crate::http) async fn strict(request: Request, next: Next) -> Response {
    match check(request.version(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => ApiError(problem).into_response(),
    }
}

pub(in crate::http) fn check(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refused =
        |why: &str| Err(Problem::new(Code::MalformedBody, why).help("Send a request as RFC 9112 has it."));
    let path_bytes = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if path_bytes > URI_BYTES_MAX {
        let detail = format!("the path has {path_bytes} bytes, where {URI_BYTES_MAX} are allowed");
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next(), uri.authority()) {
        (_, Some(_), _) => refused("the request has two hosts"),
        (Some(host), None, Some(authority)) if host != authority.as_str() => {
            refused("the request's address and its Host differ")
        }
        (None, _, _) if version >= Version::HTTP_11 => refused("the request has no Host"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(version: Version, uri: &str, hosts: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        check(version, &uri.parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn one_host_and_no_other_is_named() {
        assert!(judged(Version::HTTP_11, "/v1/pools", &["a"]));
        assert!(judged(Version::HTTP_11, "http://a:1/v1/pools", &["a:1"]));
        assert!(judged(Version::HTTP_10, "/v1/pools", &[]));
        assert!(!judged(Version::HTTP_11, "/v1/pools", &[]));
        assert!(!judged(Version::HTTP_11, "/v1/pools", &["a", "a"]));
        assert!(!judged(Version::HTTP_11, "http://b/v1/pools", &["a"]));
        assert!(!judged(Version::HTTP_11, &format!("/{}", "x".repeat(URI_BYTES_MAX)), &["a"]));
    }
}
