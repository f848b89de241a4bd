//! Changes that make the servers match the files.

use std::collections::BTreeMap;

use ipam_api::name::ResourceName;
use serde_json::{Value, json};

use super::documents::Document;
use super::kind::{Kind, Spec};
use crate::output::diff::{self, Difference, ranges};

/// Present resource of the servers.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) kind: Kind,
    pub(super) name: ResourceName,
    pub(super) spec: Spec,
    pub(super) revision: u64,
    /// Number of addresses held in the resource.
    pub(super) held: u64,
}

impl Current {
    /// Manager of the resource.
    pub(super) fn managed_by(&self) -> Option<&str> {
        self.spec.get("managed_by").and_then(Value::as_str)
    }
}

/// Change of one resource, or the decision to keep it.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// The resource doesn't exist yet.
    Create(Document),
    /// The resource exists and differs.
    Update { document: Document, current: Current, differences: Vec<Difference> },
    /// The resource is absent from the files, and is deleted.
    Delete(Current),
    /// The pool is absent from the files, and is deleted when its last address is released.
    Drain(Current),
    /// The resource is absent from the files, and stays.
    Keep(Current),
}

impl Change {
    /// Name of the action.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Change::Create(_) => "create",
            Change::Update { .. } => "change",
            Change::Delete(_) => "delete",
            Change::Drain(_) => "drain",
            Change::Keep(_) => "keep",
        }
    }

    /// Resource that the change concerns.
    pub(super) fn resource(&self) -> (Kind, &ResourceName) {
        match self {
            Change::Create(document) | Change::Update { document, .. } => (document.kind, &document.name),
            Change::Delete(found) | Change::Drain(found) | Change::Keep(found) => (found.kind, &found.name),
        }
    }

    /// Position of the resource in the files; none if the files lack it.
    pub(super) fn place(&self) -> Option<&str> {
        match self {
            Change::Create(document) | Change::Update { document, .. } => Some(&document.place),
            _ => None,
        }
    }
}

/// All changes in the order of their execution. Removals come first, since they free addresses and names.
#[derive(Debug, Default)]
pub(super) struct Plan(pub(super) Vec<Change>);

impl Plan {
    /// Compares files with the present resources. A resource of `manager` that the files lack is kept, or
    /// removed with `prune`.
    pub(super) fn of(
        documents: Vec<Document>,
        current: &[Current],
        manager: Option<&str>,
        prune: bool,
    ) -> Self {
        let known: BTreeMap<(Kind, &ResourceName), &Current> =
            current.iter().map(|found| ((found.kind, &found.name), found)).collect();
        let wanted: Vec<(Kind, ResourceName)> =
            documents.iter().map(|document| (document.kind, document.name.clone())).collect();
        let left: Vec<&Current> = current
            .iter()
            .filter(|found| manager.is_some() && found.managed_by() == manager)
            .filter(|found| !wanted.contains(&(found.kind, found.name.clone())))
            .collect();
        let mut changes = Vec::new();
        for found in left.iter().copied() {
            changes.push(match found.kind {
                _ if !prune => Change::Keep(found.clone()),
                Kind::Pool if found.held > 0 && goes_away(found) => continue,
                Kind::Pool if found.held > 0 => Change::Drain(found.clone()),
                _ => Change::Delete(found.clone()),
            });
        }
        for document in documents {
            match known.get(&(document.kind, &document.name)) {
                None => changes.push(Change::Create(document)),
                Some(found) => {
                    let differences = differences(&document, found);
                    if !differences.is_empty() {
                        let current = (*found).clone();
                        changes.push(Change::Update { document, current, differences });
                    }
                }
            }
        }
        changes.sort_by_key(order);
        Self(changes)
    }

    /// All changes, in order.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Change> {
        self.0.iter().filter(|change| !matches!(change, Change::Keep(_)))
    }

    /// Number of changes.
    pub(super) fn len(&self) -> usize {
        self.steps().count()
    }

    /// Transaction with all changes, all or none.
    pub(super) fn transaction(&self) -> Value {
        let (mut conditions, mut steps) = (Vec::new(), Vec::new());
        for change in &self.0 {
            let (kind, name) = change.resource();
            let path = format!("{}/{name}", kind.path());
            match change {
                Change::Create(document) => {
                    conditions.push(json!({"path": path, "absent": true}));
                    steps.push(json!({"method": "PUT", "path": path, "body": document.spec}));
                }
                Change::Update { document, current, .. } => steps.push(json!({
                    "method": "PUT",
                    "path": path,
                    "body": document.spec,
                    // A revision in the file takes precedence: later changes must not be overwritten.
                    "if_match": document.revision.unwrap_or(current.revision).to_string(),
                })),
                Change::Delete(current) => {
                    let revision = current.revision.to_string();
                    steps.push(json!({"method": "DELETE", "path": path, "if_match": revision}));
                }
                Change::Drain(current) => {
                    let mut body = current.spec.clone();
                    body.insert("terminating".to_owned(), true.into());
                    let revision = current.revision.to_string();
                    steps.push(json!({"method": "PUT", "path": path, "body": body, "if_match": revision}));
                }
                Change::Keep(_) => {}
            }
        }
        json!({"if": conditions, "steps": steps})
    }
}

fn goes_away(pool: &Current) -> bool {
    pool.spec.get("terminating") == Some(&Value::Bool(true))
}

/// Order of changes. Removals come first, dependents before the kinds that they depend on. Updates and
/// creations follow, dependents last. Within a kind, updates that add no ranges precede all other changes.
fn order(change: &Change) -> (u8, u8, bool, ResourceName) {
    let (kind, name) = change.resource();
    let (rank, name) = (kind as u8, name.clone());
    match change {
        Change::Keep(_) => (0, rank, false, name),
        Change::Delete(_) | Change::Drain(_) => (1, u8::MAX - rank, false, name),
        Change::Update { document, current, .. } => (2, rank, grows(document, current), name),
        Change::Create(_) => (2, rank, true, name),
    }
}

fn grows(document: &Document, current: &Current) -> bool {
    let (old, new) = (ranges(current.spec.get("ranges")), ranges(document.spec.get("ranges")));
    new.iter().any(|range| !old.iter().any(|known| known.contains(range)))
}

/// Fields in which a document differs. A pool document without a network has the network of its subnet.
fn differences(document: &Document, current: &Current) -> Vec<Difference> {
    let mut found = diff::between(&current.spec, &document.spec);
    found.retain(|one| !(document.kind == Kind::Pool && one.field == "network" && one.to.is_null()));
    found
}
