//! Common requests of named resources: the same six operations.

use std::collections::BTreeSet;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ipam_api::access::{Target, Verb};
use ipam_api::address::AddressRange;
use ipam_api::name::{ResourceName, shown};
use ipam_api::resource::{Labels, Resource};
use ipam_api::{Code, Problem, strict};
use ipam_machine::command::{Delete, Expect, Kind, Stored};
use ipam_machine::{Action, Answer, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::list::{Listable, Shape, Test, ids_by_name};
use crate::http::request::merge_patch::merge;
use crate::http::request::{ApiError, ApiResponse, Consistency, DeleteQuery, Proposed, Read, Write, in_path};

/// Number of merge attempts after conflicts.
pub(in crate::http) const TRIES_MAX: usize = 32;
/// Maximum number of names compared for a suggestion.
const NAMES_COMPARED_MAX: usize = 10_000;

/// One kind of named resource, between HTTP and the machine.
pub(in crate::http) trait NamedResource: Send + Sync + 'static {
    /// Kind of the resource.
    const KIND: Kind;
    /// The spec as JSON has it.
    type Spec: Serialize + DeserializeOwned + Send;
    /// The status as JSON has it.
    type Status: Serialize + Send;
    /// The resource as the machine has it.
    type Row;
    /// Fields, filters and orders of the list.
    const SHAPE: &'static Shape;

    fn name(spec: &Self::Spec) -> ResourceName;
    /// Spec in the form of the log.
    fn put(spec: Self::Spec, expect: Expect) -> Action;
    fn labels(spec: &Self::Spec) -> &Labels;
    /// Checks fields that the state machine does not interpret.
    fn check(_: &Self::Spec) -> Result<(), Problem> {
        Ok(())
    }
    /// Addresses of the resource, for the filters `contains` and `within`.
    fn ranges(_: &View<Self>) -> Vec<AddressRange> {
        Vec::new()
    }
    /// Ids of all resources that can match, if an index can narrow them down; in the order of names.
    fn narrowed_ids(_: &State, _: &[Test]) -> Option<Vec<u64>> {
        None
    }
    fn row(state: &State, id: u64) -> Option<&Self::Row>;
    /// The row that a write has stored.
    fn stored(stored: Stored) -> Option<Self::Row>;
    /// View of the resource: the row's spec with `meta` and `status`.
    fn view(state: &State, row: &Self::Row) -> View<Self>;

    /// View of a resource of the state.
    fn show(state: &State, id: u64) -> Option<View<Self>> {
        Self::row(state, id).map(|row| Self::view(state, row))
    }
}

pub(super) type View<K> = Resource<<K as NamedResource>::Spec, <K as NamedResource>::Status>;

/// Implements the part of [`NamedResource`] that is the same for all kinds. Parameters: the kind, its status
/// type, its table, its write action, and a function that returns the name of a spec.
macro_rules! of_kind {
    ($kind:ident, $status:ident, $table:ident, $put:ident, $name:expr) => {
        $crate::http::resource::named::of_kind!(resource: $kind, $status, $table, $put, $name);
    };
    ($module:ident: $kind:ident, $status:ident, $table:ident, $put:ident, $name:expr) => {
        const KIND: ipam_machine::command::Kind = ipam_machine::command::Kind::$kind;
        const SHAPE: &'static crate::http::list::Shape = &SHAPE;
        type Spec = ipam_api::$module::$kind;
        type Status = ipam_api::$module::$status;
        type Row = ipam_machine::model::$kind;

        fn name(spec: &Self::Spec) -> ipam_api::name::ResourceName {
            let name: fn(&Self::Spec) -> ipam_api::name::ResourceName = $name;
            name(spec)
        }

        fn put(spec: Self::Spec, expect: ipam_machine::command::Expect) -> ipam_machine::Action {
            let spec = to_log(spec);
            ipam_machine::Action::$put(ipam_machine::command::Put { spec, expect })
        }

        fn labels(spec: &Self::Spec) -> &ipam_api::resource::Labels {
            &spec.labels
        }

        fn row(state: &ipam_machine::State, id: u64) -> Option<&Self::Row> {
            state.$table.get(id.into())
        }

        fn stored(stored: ipam_machine::command::Stored) -> Option<Self::Row> {
            match stored {
                ipam_machine::command::Stored::$kind(row) => Some(row),
                _ => None,
            }
        }
    };
}
pub(super) use of_kind;

impl<K: NamedResource> Listable for K {
    type Item = View<K>;
    const SHAPE: &'static Shape = <K as NamedResource>::SHAPE;

    fn target() -> Target {
        K::KIND.target()
    }

    fn total(state: &State) -> usize {
        state.count(K::KIND)
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        ids_by_name(state, K::KIND, after)
    }

    fn narrowed(state: &State, tests: &[Test]) -> Option<Vec<u64>> {
        if K::KIND.is_in_realm() {
            return None;
        }
        if let Some(ids) = K::narrowed_ids(state, tests) {
            return Some(ids);
        }
        let names = tests.iter().find_map(|test| test.texts("name"))?;
        let names: BTreeSet<ResourceName> =
            names.iter().filter_map(|name| ResourceName::new(name).ok()).collect();
        Some(names.iter().filter_map(|name| state.id_of(K::KIND, name)).collect())
    }

    fn item(state: &State, id: u64) -> Option<View<K>> {
        K::show(state, id)
    }

    fn labels(item: &View<K>) -> Option<&Labels> {
        Some(K::labels(&item.spec))
    }

    fn ranges(item: &View<K>) -> Vec<AddressRange> {
        K::ranges(item)
    }
}

pub(in crate::http) async fn show<K: NamedResource>(
    Path(name): Path<Vec<String>>,
    read: Read,
) -> Result<ApiResponse<View<K>>, ApiError> {
    let name = name_in_path(K::KIND, &name.join("/"))?;
    let (state, stale_ms) = read.state((Verb::Read, K::KIND.target())).await?;
    let view = view::<K>(&state, &name).ok_or_else(|| unknown(&state, K::KIND, &name))?;
    Ok(ApiResponse { stale_ms, ..view })
}

pub(in crate::http) async fn create<K: NamedResource>(mut write: Write) -> Result<Response, ApiError> {
    let object = write.object()?;
    write.manage_as(&object);
    let spec = read::<K>(object)?;
    let done = write.carry_out(K::put(spec, Expect::Absent)).await?;
    Ok(stored::<K>(&write, done).await?)
}

pub(in crate::http) async fn put<K: NamedResource>(
    Path(name): Path<Vec<String>>,
    mut write: Write,
) -> Result<Response, ApiError> {
    let object = write.object()?;
    write.manage_as(&object);
    let expect = expected(&write, &object)?;
    let spec = read::<K>(object)?;
    let (own, name) = (K::name(&spec), name.join("/"));
    if own.as_str() != name {
        let detail = format!("the body names {own} and the path {}", shown(&name));
        return Err(Problem::new(Code::ConflictingFields, detail).at("/name").into());
    }
    let done = write.carry_out(K::put(spec, expect)).await?;
    Ok(stored::<K>(&write, done).await?)
}

/// Reads a spec strictly, and checks it.
pub(in crate::http) fn read<K: NamedResource>(object: Map<String, Value>) -> Result<K::Spec, Problem> {
    let spec = strict::from_object(object)?;
    K::check(&spec)?;
    Ok(spec)
}

/// Precondition of a write: that of the headers, else `meta.revision` of the body.
fn expected(write: &Write, body: &Map<String, Value>) -> Result<Expect, Problem> {
    Ok(match write.expect()? {
        Expect::Anything => revision_in(body).map_or(Expect::Anything, Expect::Revision),
        said => said,
    })
}

pub(in crate::http) fn revision_in(body: &Map<String, Value>) -> Option<u64> {
    body.get("meta")?.get("revision")?.as_u64()
}

pub(in crate::http) async fn patch<K: NamedResource>(
    Path(name): Path<Vec<String>>,
    mut write: Write,
) -> Result<Response, ApiError> {
    let (name, change) = (name_in_path(K::KIND, &name.join("/"))?, write.object()?);
    write.manage_as(&change);
    let expect = expected(&write, &change)?;
    let done = merge_and_put::<K>(&write, &name, &change, expect).await?;
    Ok(stored::<K>(&write, done).await?)
}

/// Merges a change into a resource and writes it.
///
/// Tries again if another write intervenes, unless the request names a revision.
pub(super) async fn merge_and_put<K: NamedResource>(
    write: &Write,
    name: &ResourceName,
    change: &Map<String, Value>,
    expect: Expect,
) -> Result<Proposed, Problem> {
    let permission = (Verb::Write, K::KIND.target());
    let mut tries_left = TRIES_MAX;
    loop {
        let (state, _) = write.app.read(&write.caller, permission, Consistency::Linearizable).await?;
        if let Some(done) = write.kept(&state)? {
            return Ok(done);
        }
        let (spec, read_at) = merged::<K>(&state, name, change.clone())?;
        let expecting = if expect == Expect::Anything { Expect::Revision(read_at) } else { expect };
        tries_left -= 1;
        match write.carry_out(K::put(spec, expecting)).await {
            Err(problem)
                if problem.code == Code::RevisionMismatch && expect == Expect::Anything && tries_left > 0 => {
            }
            done => return done,
        }
    }
}

/// A resource with a change merged into it, and the revision at which it was read.
pub(in crate::http) fn merged<K: NamedResource>(
    state: &State,
    name: &ResourceName,
    change: Map<String, Value>,
) -> Result<(K::Spec, u64), Problem> {
    let present = state.id_of(K::KIND, name).and_then(|id| K::show(state, id));
    let present = present.ok_or_else(|| unknown(state, K::KIND, name))?;
    let Ok(Value::Object(object)) = serde_json::to_value(&present.spec) else {
        return Err(Problem::new(Code::Internal, "the resource can't be written as JSON"));
    };
    Ok((merge_into::<K>(object, name, change)?, present.meta.revision))
}

/// A spec with a change merged into it.
pub(in crate::http) fn merge_into<K: NamedResource>(
    mut object: Map<String, Value>,
    name: &ResourceName,
    mut change: Map<String, Value>,
) -> Result<K::Spec, Problem> {
    change.remove("meta");
    change.remove("status");
    merge(&mut object, change);
    let spec = read::<K>(object)?;
    if K::name(&spec) != *name {
        let detail = format!("{} {name} keeps its name", K::KIND);
        return Err(Problem::new(Code::ImmutableField, detail).at("/name"));
    }
    Ok(spec)
}

/// Response to a write: the stored resource, or no content if the write deleted it.
pub(super) async fn stored<K: NamedResource>(write: &Write, done: Proposed) -> Result<Response, Problem> {
    let state = write.after(&done).await;
    let Answer::Stored { created, resource, .. } = done.applied.answer else {
        // The write made an empty pool terminate, which deleted the pool.
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let row = K::stored(*resource)
        .ok_or_else(|| Problem::new(Code::Internal, "the machine stored something else than was sent"))?;
    let view = K::view(&state, &row);
    let location = created.then(|| format!("{}/{}", <K as NamedResource>::SHAPE.path, K::name(&view.spec)));
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let etag = Some(view.meta.revision);
    Ok(ApiResponse { status, location, etag, ..ApiResponse::new(view, done.applied.revision) }
        .into_response())
}

pub(in crate::http) async fn delete<K: NamedResource>(
    Path(name): Path<Vec<String>>,
    write: Write<DeleteQuery>,
) -> Result<Response, ApiError> {
    let name = name_in_path(K::KIND, &name.join("/"))?;
    let delete =
        Delete { kind: K::KIND, name: name.clone(), expect: write.expect()?, drain: write.query.drain };
    let done = write.carry_out(Action::Delete(delete)).await?;
    if !matches!(done.applied.answer, Answer::Draining { .. }) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let state = write.after(&done).await;
    Ok(match view::<K>(&state, &name) {
        Some(view) => ApiResponse { status: StatusCode::ACCEPTED, ..view }.into_response(),
        // The pool was empty, and has been deleted meanwhile.
        None => StatusCode::ACCEPTED.into_response(),
    })
}

fn view<K: NamedResource>(state: &State, name: &ResourceName) -> Option<ApiResponse<View<K>>> {
    let resource = K::show(state, state.id_of(K::KIND, name)?)?;
    let etag = Some(resource.meta.revision);
    Some(ApiResponse { etag, ..ApiResponse::new(resource, state.revision()) })
}

/// Reads a name in a path. An invalid name is `not-found`, since no resource can have it.
pub(super) fn name_in_path(kind: Kind, name: &str) -> Result<ResourceName, Problem> {
    in_path(kind, name, ResourceName::new)
}

/// Problem of a name that no resource of the kind has.
pub(in crate::http) fn unknown(state: &State, kind: Kind, name: &ResourceName) -> Problem {
    let mut names = state.names(kind, None).take(NAMES_COMPARED_MAX).map(|(known, _)| known.as_str());
    let detail = format!("{kind} {name} does not exist");
    match strict::nearest(name.as_str(), names.by_ref()) {
        Some(near) => Problem::new(Code::NotFound, format!("{detail}; did you mean {near}?"))
            .with(|context| context.similar.push(near.to_owned())),
        None => Problem::new(Code::NotFound, detail),
    }
}
