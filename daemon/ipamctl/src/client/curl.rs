//! `--debug`: each request as a curl command line.

use ipam_api::client::{Call, Options};

use crate::settings::idempotency::quoted;

/// Formats a request as a curl command, with `$TOKEN` in place of the token.
pub(crate) fn line(server: &str, call: &Call, options: &Options) -> String {
    let mut words = vec!["curl".to_owned(), "-sS".to_owned()];
    if call.method() != "GET" {
        words.extend(["-X".to_owned(), call.method().to_owned()]);
    }
    if let Some(socket) = server.strip_prefix("unix:") {
        words.extend(["--unix-socket".to_owned(), quoted(socket)]);
    }
    let base = if server.starts_with("unix:") { "http://localhost" } else { server.trim_end_matches('/') };
    words.push(quoted(&format!("{base}{}", call.path())));
    if options.token_file.is_some() {
        words.extend(["-H".to_owned(), "\"Authorization: Bearer $TOKEN\"".to_owned()]);
    }
    for (flag, file) in
        [("--cacert", &options.ca_file), ("--cert", &options.certificate_file), ("--key", &options.key_file)]
    {
        if let Some(file) = file {
            words.extend([flag.to_owned(), quoted(&file.display().to_string())]);
        }
    }
    for (name, value) in call.headers() {
        words.extend(["-H".to_owned(), quoted(&format!("{name}: {value}"))]);
    }
    if let Some(body) = call.body() {
        words.extend(["-d".to_owned(), quoted(&String::from_utf8_lossy(body))]);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use ipam_api::client::Expect;

    use super::*;

    #[test]
    fn it_can_be_typed_and_keeps_the_token() {
        let call = Call::put("/v1/pools/web").json(&serde_json::json!({"name": "web"})).unwrap();
        let call = call.expect(Expect::Revision(7)).header("change-comment", "it's new").unwrap();
        let options = Options {
            ca_file: Some("/etc/ca.pem".into()),
            token_file: Some("/secret/token".into()),
            ..Options::default()
        };
        assert_eq!(
            line("https://n1:7440/", &call, &options),
            r#"curl -sS -X PUT https://n1:7440/v1/pools/web -H "Authorization: Bearer $TOKEN" --cacert /etc/ca.pem -H 'if-match: "7"' -H 'content-type: application/json' -H 'change-comment: it'\''s new' -d '{"name":"web"}'"#
        );
        let read = Call::get("/v1/pools?limit=5");
        assert_eq!(line("http://n1", &read, &Options::default()), "curl -sS 'http://n1/v1/pools?limit=5'");
    }
}
