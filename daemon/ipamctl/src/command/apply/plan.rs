//! Changes after which the servers have what the files say.

use std::collections::BTreeMap;

use ipam_api::name::ResourceName;
use serde_json::{Value, json};

use super::documents::Document;
use super::kind::{Kind, Spec};
use crate::output::diff::{self, Difference, ranges};

/// A resource as the servers have it.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) kind: Kind,
    pub(super) name: ResourceName,
    pub(super) spec: Spec,
    pub(super) revision: u64,
    /// Addresses held in it.
    pub(super) held: u64,
}

impl Current {
    /// The manager that keeps it in another place.
    pub(super) fn managed_by(&self) -> Option<&str> {
        self.spec.get("managed_by").and_then(Value::as_str)
    }
}

/// One thing to do, or to know.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// It isn't there yet.
    Create(Document),
    /// It is there and differs.
    Update { document: Document, current: Current, differences: Vec<Difference> },
    /// It is no longer in the files.
    Delete(Current),
    /// The same, but addresses of it are held: it goes away with the last one.
    Drain(Current),
    /// It is no longer in the files, and stays.
    Keep(Current),
}

impl Change {
    /// The word for it.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Change::Create(_) => "create",
            Change::Update { .. } => "change",
            Change::Delete(_) => "delete",
            Change::Drain(_) => "drain",
            Change::Keep(_) => "keep",
        }
    }

    /// The resource that it is about.
    pub(super) fn resource(&self) -> (Kind, &ResourceName) {
        match self {
            Change::Create(document) | Change::Update { document, .. } => (document.kind, &document.name),
            Change::Delete(found) | Change::Drain(found) | Change::Keep(found) => (found.kind, &found.name),
        }
    }

    /// The place in the files that wants it, if it is there.
    pub(super) fn place(&self) -> Option<&str> {
        match self {
            Change::Create(document) | Change::Update { document, .. } => Some(&document.place),
            _ => None,
        }
    }
}

/// All that has to change, in the order in which it can be done: what goes makes room for what comes.
#[derive(Debug, Default)]
pub(super) struct Plan(pub(super) Vec<Change>);

impl Plan {
    /// Compares files with what there is. What `manager` has and the files haven't is kept or, with `prune`,
    /// goes.
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

    /// The transaction that does all of it, or nothing.
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
                    // What the file was made from counts, if it says: then it must not undo what came after.
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

/// Order of changes. Removals come first, the highest kind before the others. Then come new and different
/// resources, the lowest kind first, and of one kind those that only give addresses away before those that take them.
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

/// The fields in which they differ. The network of a pool is its subnet's, also where a file doesn't say it.
fn differences(document: &Document, current: &Current) -> Vec<Difference> {
    let mut found = diff::between(&current.spec, &document.spec);
    found.retain(|one| !(document.kind == Kind::Pool && one.field == "network" && one.to.is_null()));
    found
}
