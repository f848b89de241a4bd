//! Discovery of kinds that are not built in.

use std::collections::BTreeMap;

use kube::core::ApiResource;
use kube::discovery::{self, ApiGroup, Scope};
use kube::error::DiscoveryError;
use kube::{Client, Error};

/// Kinds of the API groups that were requested so far, as of one moment.
#[derive(Default)]
pub(crate) struct Kinds(BTreeMap<String, Option<ApiGroup>>);

impl Kinds {
    /// Resource of a kind in namespaces; none if the API server knows no such kind.
    ///
    /// # Errors
    /// Any answer but the documents of the discovery.
    pub(crate) async fn find(
        &mut self,
        client: &Client,
        group: &str,
        kind: &str,
    ) -> kube::Result<Option<ApiResource>> {
        self.find_in(client, group, kind, Some(&Scope::Namespaced)).await
    }

    /// Resource of a kind, in namespaces or not; none if the API server knows no such kind.
    ///
    /// # Errors
    /// Any answer but the documents of the discovery.
    pub(crate) async fn find_any(
        &mut self,
        client: &Client,
        group: &str,
        kind: &str,
    ) -> kube::Result<Option<ApiResource>> {
        self.find_in(client, group, kind, None).await
    }

    async fn find_in(
        &mut self,
        client: &Client,
        group: &str,
        kind: &str,
        scope: Option<&Scope>,
    ) -> kube::Result<Option<ApiResource>> {
        if !self.0.contains_key(group) {
            let found = match discovery::group(client, group).await {
                Ok(found) => Some(found),
                Err(Error::Discovery(DiscoveryError::MissingApiGroup(_))) => None,
                Err(error) => return Err(error),
            };
            self.0.insert(group.to_owned(), found);
        }
        let found = self.0.get(group).and_then(Option::as_ref).and_then(|group| group.recommended_kind(kind));
        let scoped = found.filter(|(_, capabilities)| scope.is_none_or(|scope| capabilities.scope == *scope));
        Ok(scoped.map(|(resource, _)| resource))
    }
}
