//! Requests to an API server.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipam_api::client::{Options, http, reason};
use ipam_api::limits::{KUBERNETES_ANSWER_BYTES_MAX, TOKEN_BYTES_MAX};
use ipam_api::problem::Problem;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::access::Access;
use super::error::ApiError;
use super::lines::Lines;
use super::list::{Status, unreadable};

/// Media types of an object, or of the events of a watch: only metadata, where the server can do that.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// Media types of a list. The API server refuses those of an object for a list, and vice versa.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// Bytes of the answer to a write that are read: the written object.
const WRITTEN_BYTES_MAX: usize = 64 << 10;
/// Bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 16 << 10;
/// Longest pause that an API server may request.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Client of one API server.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    /// URL of the server without a slash at its end.
    base: String,
    token_file: Option<PathBuf>,
}

impl Client {
    /// Prepares the client, without a connection.
    ///
    /// # Errors
    /// `invalid-field` for a CA file that can't be used.
    pub fn new(access: &Access) -> Result<Self, Problem> {
        let options = Options { ca_file: access.ca_file.clone(), ..Options::default() };
        let base = access.server.trim_end_matches('/').to_owned();
        Ok(Self { http: http(&options)?, base, token_file: access.token_file.clone() })
    }

    /// Reads an object.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, ApiError> {
        self.read(path, JSON, within).await
    }

    /// Reads the metadata of an object. `T` is the type of the object, since servers may send all of it.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn metadata<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, ApiError> {
        self.read(path, METADATA, within).await
    }

    /// Reads a list of metadata, as [`Self::metadata`] reads an object.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn list<T: DeserializeOwned>(&self, path: &str, within: Duration) -> Result<T, ApiError> {
        self.read(path, METADATA_LIST, within).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        accept: &'static str,
        within: Duration,
    ) -> Result<T, ApiError> {
        let request = self.request(Method::GET, path).await?.header(ACCEPT, accept).timeout(within);
        let body = body(answer(request).await?, KUBERNETES_ANSWER_BYTES_MAX).await?;
        serde_json::from_slice(&body).map_err(|error| unreadable(&error))
    }

    /// Creates an object.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn create(&self, path: &str, object: &Value, within: Duration) -> Result<(), ApiError> {
        self.write(Method::POST, path, JSON, object, within).await
    }

    /// Changes fields of an object (RFC 7396).
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn patch(&self, path: &str, fields: &Value, within: Duration) -> Result<(), ApiError> {
        self.write(Method::PATCH, path, MERGE_PATCH, fields, within).await
    }

    async fn write(
        &self,
        method: Method,
        path: &str,
        media_type: &'static str,
        content: &Value,
        within: Duration,
    ) -> Result<(), ApiError> {
        let request = self.request(method, path).await?.header(CONTENT_TYPE, media_type);
        let request = request.header(ACCEPT, JSON).body(content.to_string()).timeout(within);
        // The body is read to its end, so that the connection can serve the next request.
        body(answer(request).await?, WRITTEN_BYTES_MAX).await.map(drop)
    }

    /// Opens a watch on metadata, which ends after `within`.
    ///
    /// # Errors
    /// See [`ApiError`].
    pub async fn watch(&self, path: &str, head: Duration, within: Duration) -> Result<Lines, ApiError> {
        let request = self.request(Method::GET, path).await?.header(ACCEPT, METADATA);
        match tokio::time::timeout(head, answer(request)).await {
            Ok(response) => Ok(Lines::new(response?, within)),
            Err(_) => Err(ApiError::Unreachable("timed out".to_owned())),
        }
    }

    async fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let Some(file) = self.token_file.clone() else { return Ok(request) };
        let token = tokio::task::spawn_blocking(move || token(&file)).await;
        let token = token.map_err(|error| ApiError::Token(error.to_string()))??;
        Ok(request.header(AUTHORIZATION, token))
    }
}

fn token(file: &Path) -> Result<HeaderValue, ApiError> {
    let wrong = |why: &dyn std::fmt::Display| ApiError::Token(format!("{}: {why}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| wrong(&error))?;
    opened.take(TOKEN_BYTES_MAX).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(&"it has no token"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| wrong(&error))?;
    value.set_sensitive(true);
    Ok(value)
}

async fn answer(request: RequestBuilder) -> Result<Response, ApiError> {
    let response = request.send().await.map_err(|error| ApiError::Unreachable(reason(&error)))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = seconds.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    // A proxy may answer in another form.
    let text = body(response, ERROR_BYTES_MAX).await.unwrap_or_default();
    let object: Status = serde_json::from_slice(&text).unwrap_or_default();
    Err(object.refusal(status.as_u16(), retry_after))
}

async fn body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, ApiError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= bytes_max => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(ApiError::TooLong(bytes_max)),
            Ok(None) => return Ok(body),
            Err(error) => return Err(ApiError::Unreachable(reason(&error))),
        }
    }
}
