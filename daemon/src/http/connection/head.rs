//! Rejection of ambiguous request heads, which a proxy could read differently (request smuggling).

use axum::extract::Request;
use axum::http::header::{HOST, HeaderMap};
use axum::http::request::Parts;
use axum::http::uri::Uri;
use axum::http::{HeaderValue, Method, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ipam_api::limits::{HEADERS_MAX, URI_BYTES_MAX};
use ipam_api::{Code, Problem};

use crate::http::request::ApiError;

/// Passes on unambiguous requests and refuses all others.
pub(in crate::http) async fn strict(request: Request, next: Next) -> Response {
    if request.method() == Method::CONNECT {
        return ApiError(Problem::new(Code::MethodNotAllowed, "CONNECT is for proxies")).into_response();
    }
    match check(request.version(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => ApiError(problem).into_response(),
    }
}

/// Copies `:authority` of an HTTP/2 request to `Host`, unless the request has that header. Later checks then
/// find the server name in one place.
pub(super) fn name_host(head: &mut Parts) {
    let authority = head.uri.authority().filter(|_| head.version == Version::HTTP_2);
    if let (Some(authority), false) = (authority, head.headers.contains_key(HOST))
        && let Ok(host) = HeaderValue::try_from(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
}

pub(in crate::http) fn check(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |why: &str| {
        Err(Problem::new(Code::MalformedBody, why).help("Send a request as RFC 9112 or RFC 9113 has it."))
    };
    // The parser refuses HTTP/1.1 requests with too many headers earlier.
    if headers.len() > HEADERS_MAX {
        let detail = format!("the request has {} headers, where {HEADERS_MAX} are allowed", headers.len());
        return Err(Problem::new(Code::TooLarge, detail));
    }
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
        assert!(!judged(Version::HTTP_2, "/v1/pools", &[]));
        assert!(!judged(Version::HTTP_2, "http://b/v1/pools", &["a"]));
    }

    #[test]
    fn the_number_of_headers_is_limited() {
        let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("a"))]);
        for more in 1..=HEADERS_MAX {
            assert!(check(Version::HTTP_2, &Uri::from_static("/"), &headers).is_ok(), "{more}");
            headers.append("x", HeaderValue::from_static(""));
        }
        let problem = check(Version::HTTP_2, &Uri::from_static("/"), &headers).unwrap_err();
        assert_eq!(problem.code, Code::TooLarge);
    }

    #[test]
    fn the_authority_of_http2_is_the_host() {
        let named = |version: Version, uri: &str, host: Option<&str>| {
            let mut request = axum::http::Request::builder().version(version).uri(uri);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let (mut head, ()) = request.body(()).unwrap().into_parts();
            name_host(&mut head);
            head.headers.get(HOST).map(|host| host.to_str().unwrap().to_owned())
        };
        assert_eq!(named(Version::HTTP_2, "http://a:1/", None).as_deref(), Some("a:1"));
        assert_eq!(named(Version::HTTP_2, "http://a:1/", Some("b")).as_deref(), Some("b"));
        assert_eq!(named(Version::HTTP_2, "/", None), None);
        // HTTP/1.1 gets no `Host` from its URI; `check` refuses the request.
        assert_eq!(named(Version::HTTP_11, "http://a:1/", None), None);
    }
}
