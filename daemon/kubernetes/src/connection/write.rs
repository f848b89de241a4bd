//! Writes of single objects.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ApiResource;
use kube::{Api, Client, Error};
use serde_json::{Map, Value, json};

/// Object that is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) resource: &'a ApiResource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

impl Target<'_> {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, self.resource),
            None => Api::all_with(client.clone(), self.resource),
        }
    }

    /// Changes the status, unless another uid has the name.
    ///
    /// # Errors
    /// Any refusal.
    pub(crate) async fn patch_status(&self, client: &Client, change: Value) -> kube::Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"uid": self.uid}, "status": change}));
        self.check(&self.api(client).patch_status(self.name, &PatchParams::default(), &patch).await?)
    }

    /// Changes metadata, unless another uid has the name or another writer came first.
    ///
    /// # Errors
    /// Any refusal; 409 after another writer.
    pub(crate) async fn patch_metadata(
        &self,
        client: &Client,
        version: &str,
        change: Map<String, Value>,
    ) -> kube::Result<()> {
        let mut metadata = change;
        metadata.insert("uid".to_owned(), self.uid.into());
        metadata.insert("resourceVersion".to_owned(), version.into());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.check(&self.api(client).patch(self.name, &PatchParams::default(), &patch).await?)
    }

    /// Creates the object. The uid is not used.
    ///
    /// # Errors
    /// Any refusal; 409 if the name is in use.
    pub(crate) async fn create(&self, client: &Client, object: Value) -> kube::Result<()> {
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::SerdeError)?;
        self.check(&self.api(client).create(&PostParams::default(), &object).await?)
    }

    /// Deletes the object, unless another uid has the name. A missing object counts as deleted.
    ///
    /// # Errors
    /// Any refusal.
    pub(crate) async fn delete(&self, client: &Client) -> kube::Result<()> {
        let preconditions = Preconditions { uid: Some(self.uid.to_owned()), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.api(client).delete(self.name, &parameters).await {
            Ok(answer) => answer.either(
                |object| self.check(&object),
                |status| if status.is_success() { Ok(()) } else { Err(unconfirmed(self.name)) },
            ),
            Err(Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Refuses an answer without the object, which did not come from the API server. Otherwise a caller would
    /// wait for an event of a write that never happened.
    fn check(&self, object: &DynamicObject) -> kube::Result<()> {
        if object.metadata.name.as_deref() == Some(self.name) {
            return Ok(());
        }
        Err(unconfirmed(self.name))
    }

    /// Reads the object from a quorum; none if the API server reports that it does not exist.
    ///
    /// # Errors
    /// Any other answer.
    pub(crate) async fn get(&self, client: &Client) -> kube::Result<Option<DynamicObject>> {
        match self.api(client).get(self.name).await {
            Ok(object) => self.check(&object).map(|()| Some(object)),
            // A proxy may answer 404 for an API server that it does not reach.
            Err(Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Change of the finalizers of an object.
pub(crate) fn finalizers(all: Vec<String>) -> Map<String, Value> {
    [("finalizers".to_owned(), all.into())].into_iter().collect()
}

fn unconfirmed(name: &str) -> Error {
    Error::Service(format!("the answer does not confirm {name}").into())
}
