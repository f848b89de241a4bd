//! Quorum reads of single objects, which no cache answers.

use std::collections::BTreeSet;

use ipam_api::limits::KUBERNETES_PAGE_ITEMS;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta};
use kube::core::ApiResource;
use kube::{Api, Client};

/// Annotation with the uid by which a node knows a static pod.
const HASH: &str = "kubernetes.io/config.hash";

/// Answer to a quorum read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The object exists with these uids. A static pod has two.
    Uids(BTreeSet<String>),
    /// The API server reports that there is no such object.
    Missing,
}

impl Presence {
    /// True if the object with this uid no longer exists. Without a uid, any object of the name counts.
    pub(crate) fn lacks(&self, uid: Option<&str>) -> bool {
        match self {
            Self::Missing => true,
            Self::Uids(found) => uid.is_some_and(|uid| !found.contains(uid)),
        }
    }
}

type Metadata = PartialObjectMeta<DynamicObject>;

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<Metadata> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

/// Reads an object. The request has no resource version, so a quorum of etcd answers.
///
/// # Errors
/// Any answer but the object or the statement that it does not exist.
pub(crate) async fn read(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
) -> kube::Result<Presence> {
    match api(client, resource, namespace).get(name).await {
        // An object without a uid is no object.
        Ok(object) => match object.metadata.uid.as_deref() {
            None | Some("") => Err(unreadable("an object without a uid")),
            Some(_) => Ok(Presence::Uids(uids(object).collect())),
        },
        // A proxy may answer 404 for an API server that it does not reach.
        Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => {
            Ok(Presence::Missing)
        }
        Err(error) => Err(error),
    }
}

/// Uids of all objects of a namespace.
///
/// # Errors
/// Any answer but the complete list.
pub(crate) async fn list_uids(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
) -> kube::Result<BTreeSet<String>> {
    let api = api(client, resource, Some(namespace));
    let mut found = BTreeSet::new();
    let mut page = ListParams::default().limit(KUBERNETES_PAGE_ITEMS);
    loop {
        let list = api.list(&page).await?;
        if list.metadata.resource_version.as_deref().unwrap_or_default().is_empty() {
            return Err(unreadable("a list without a version"));
        }
        found.extend(list.items.into_iter().flat_map(uids));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page.continue_token = Some(token),
            None => return Ok(found),
        }
    }
}

fn uids(object: Metadata) -> impl Iterator<Item = String> {
    let hash = object.metadata.annotations.and_then(|mut annotations| annotations.remove(HASH));
    object.metadata.uid.into_iter().chain(hash)
}

fn unreadable(what: &str) -> kube::Error {
    kube::Error::Service(what.into())
}

/// True for the name of an object of Kubernetes. Other names are not part of a path.
pub(crate) fn is_name(text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= 253
        && is_edge(text.chars().next())
        && is_edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_uid_shows_that_the_first_is_gone() {
        let found = Presence::Uids(["a".to_owned()].into());
        assert!(!found.lacks(Some("a")) && found.lacks(Some("b")) && !found.lacks(None));
        assert!(Presence::Missing.lacks(Some("a")) && Presence::Missing.lacks(None));
    }

    #[test]
    fn only_names_of_kubernetes_are_read() {
        for (name, is_one) in [("web-0", true), ("a.b", true), ("..", false), ("a/b", false), ("A", false)] {
            assert_eq!(is_name(name), is_one, "{name}");
        }
    }
}
