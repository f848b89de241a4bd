//! A request that reads: its caller and its parameters.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ipam_api::Problem;
use ipam_api::access::{Target, Verb};
use ipam_machine::State;
use serde::de::DeserializeOwned;

use super::app::App;
use super::caller::Caller;
use super::query::{Asked, Freshness, ReadQuery};
use super::response::ApiError;

/// A request that reads.
pub(in crate::http) struct Read<Q = ReadQuery> {
    pub(in crate::http) app: App,
    pub(in crate::http) caller: Caller,
    pub(in crate::http) query: Q,
}

impl Read {
    /// Reads the state for a caller with this permission, at the requested consistency.
    ///
    /// Also returns its age, if it may be stale.
    pub(in crate::http) async fn state(
        &self,
        permission: (Verb, Target),
    ) -> Result<(State, Option<u64>), Problem> {
        self.state_at(permission, self.query).await
    }
}

impl<Q> Read<Q> {
    /// Like [`Read::state`], for requests with other parameters.
    pub(in crate::http) async fn state_at(
        &self,
        permission: (Verb, Target),
        freshness: impl Into<Freshness>,
    ) -> Result<(State, Option<u64>), Problem> {
        self.app.read(&self.caller, permission, freshness).await
    }
}

impl<Q: DeserializeOwned + Send> FromRequestParts<App> for Read<Q> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let Asked(query) = Asked::from_request_parts(parts, app).await?;
        Ok(Self { app: app.clone(), caller, query })
    }
}
