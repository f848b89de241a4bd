//! The client against servers that only pretend.

use axum::Router;
use axum::extract::Request;
use tokio::net::{TcpListener, UnixListener};

use super::*;

/// Says what it was sent, line by line.
fn echo() -> Router {
    Router::new().fallback(|request: Request| async move {
        let header =
            |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let said = format!("{} {} {}", request.uri(), header("authorization"), header("comment"));
        ([("said", said.clone()), ("etag", "\"7\"".to_owned())], said)
    })
}

#[tokio::test]
async fn a_token_and_headers_go_to_every_kind_of_server_and_headers_come_back() {
    let dir = std::env::temp_dir().join(format!("ipam-api-client-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (socket, token) = (dir.join("s"), dir.join("token"));
    let _ = std::fs::remove_file(&socket);
    std::fs::write(&token, "s3cret\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let local = UnixListener::bind(&socket).unwrap();
    tokio::spawn(axum::serve(listener, echo()).into_future());
    tokio::spawn(axum::serve(local, echo()).into_future());
    let options = Options { token_file: Some(token), ..Options::default() };
    for server in [url, format!("unix:{}", socket.display())] {
        let client = Client::with(&[server], &options).unwrap();
        let call =
            Call::get("/v1/x?y=1").header("comment", "first").unwrap().header("Comment", "why").unwrap();
        let answer = client.send(call).await.unwrap();
        assert_eq!(answer.body, b"/v1/x?y=1 Bearer s3cret why");
        assert_eq!(answer.header("Said"), Some("/v1/x?y=1 Bearer s3cret why"));
        assert_eq!((answer.header("none"), answer.etag), (None, Some(7)));
        assert!(!format!("{client:?}").contains("s3cret"));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_would_break_a_header_is_refused() {
    for (name, value) in [("comment", "a\r\nhost: b"), ("comment", "a\0"), ("com ment", "a"), ("", "a")] {
        assert_eq!(Call::get("/").header(name, value).unwrap_err().code, Code::InvalidField);
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_server_without_tls_is_called_that() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, echo()).into_future());
    let client = Client::new(&[url]).unwrap();
    let problem = client.send(Call::get("/").within(Duration::from_millis(500))).await.unwrap_err();
    assert_eq!(problem.code, Code::Unreachable);
    assert!(problem.detail.contains("doesn't speak TLS"), "{problem}");
}
