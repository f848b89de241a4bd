//! Requests that all named resources have: read, create, change, delete.

use ipam_api::client::{Answer, Call, Expect};
use ipam_api::name::ResourceName;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Name, strict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::list::Listing;
use crate::client::requests::Again;
use crate::client::resource_type::{Read, ResourceType};
use crate::client::session::Session;
use crate::output::diff;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// Maximum number of attempts of an edit that conflicts with newer revisions.
const EDITS_MAX: usize = 5;

/// Just the name of anything that has one.
#[derive(Deserialize)]
struct Named {
    realm: Option<String>,
    name: String,
}

impl Named {
    fn whole(&self) -> String {
        match &self.realm {
            Some(realm) => format!("{realm}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

fn path<N: ResourceType>(name: &ResourceName) -> String {
    format!("{}/{name}", N::PATH)
}

/// Reads a resource. For an unknown name, the failure suggests the most similar existing name.
pub(crate) async fn fetch<N: ResourceType>(
    session: &Session,
    name: impl Into<ResourceName>,
) -> Result<(Read<N>, Answer), Failure> {
    let name = name.into();
    let read = session.read(&path::<N>(&name)).await;
    let answer = suggest(session, read, N::PLURAL, name.as_str()).await?;
    session.check_placed(&format!("{} {name}", N::WORD), N::PLURAL, &answer.body)?;
    Ok((answer.read()?, answer))
}

/// Shows a resource; `shown` renders its text for people.
pub(crate) async fn show<N: ResourceType>(
    session: &Session,
    name: impl Into<ResourceName>,
    shown: fn(&Read<N>) -> String,
) -> Result<(), Failure> {
    let name = name.into();
    let (found, answer) = fetch::<N>(session, &name).await?;
    session.show(&answer.body, name.as_str(), || Ok(shown(&found)))
}

/// Adds the metadata at the end of a resource's text.
pub(crate) fn metadata_lines<N: ResourceType>(fields: &mut Fields, found: &Read<N>) {
    let (description, labels, managed_by) = found.spec.metadata();
    fields.line_if("description", description);
    fields.line_if("labels", &text::labels(labels));
    fields.line_if("managed by", managed_by.unwrap_or_default());
    let meta = &found.meta;
    fields.line("changed", format!("{} by {}", text::moment(meta.updated_at), text::dash(&meta.updated_by)));
}

/// Adds the most similar existing name to a `not-found` failure.
pub(crate) async fn suggest<T>(
    session: &Session,
    result: Result<T, Failure>,
    plural: &str,
    name: &str,
) -> Result<T, Failure> {
    suggest_among(session, result, plural, name, |found: &Named| Some(found.whole())).await
}

/// Like [`suggest`], for a list whose items get their names from `called`.
pub(crate) async fn suggest_among<T, Item: DeserializeOwned>(
    session: &Session,
    result: Result<T, Failure>,
    plural: &str,
    name: &str,
    called: impl Fn(&Item) -> Option<String>,
) -> Result<T, Failure> {
    let failure = match result {
        Err(failure) if failure.code() == Some(Code::NotFound) => failure,
        other => return other,
    };
    // A failure to read the list must not replace the original failure.
    let Ok(listed) = session.list(&format!("/v1/{plural}"), None, |_| true).await else {
        return Err(failure);
    };
    let names: Vec<String> = listed.items.iter().filter_map(called).collect();
    let meant = strict::nearest(name, names.iter().map(String::as_str));
    Err(failure.meant(meant.map(str::to_owned)))
}

/// Begins the text of a resource with its heading.
pub(crate) fn heading<N: ResourceType>(found: &Read<N>, network: Option<&Name>) -> Fields {
    let mut fields = Fields::default();
    let name = found.spec.name();
    fields.raw(&text::heading(N::WORD, name.as_str(), &found.meta, network.map(Name::as_str)));
    fields
}

/// Shows a list with the items that `keep` accepts; `filters` restrict it on the servers.
pub(crate) async fn show_list<N: ResourceType>(
    session: &Session,
    filters: Vec<(&'static str, String)>,
    keep: impl Fn(&Read<N>) -> bool,
    table: fn(&[Read<N>], bool, Timestamp) -> Table,
) -> Result<(), Failure> {
    let name = |found: &Read<N>| found.spec.name().to_string();
    session.show_list(Listing { words: (N::WORD, N::PLURAL), filters, name, table }, keep).await
}

/// Creates a resource.
pub(crate) async fn create<N: ResourceType>(session: &Session, spec: &N) -> Result<(), Failure> {
    let name = spec.name();
    let call = Call::post(N::PATH).json(spec)?;
    let answer = session.write(call, Again::ByKey).await?;
    let sentence = format!("{} {name} {}{}", N::WORD, session.tense("created"), session.at_revision(&answer));
    session.done(&answer, name.as_str(), &sentence)
}

/// Reads a resource, changes it and writes it back; retries if its revision has changed meanwhile.
pub(crate) async fn edit<N: ResourceType>(
    session: &Session,
    name: impl Into<ResourceName>,
    change: impl Fn(&mut N, &N::Status) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let name = &name.into();
    let mut tries = 1;
    loop {
        let (found, read) = fetch::<N>(session, name).await?;
        let mut wanted = found.spec.clone();
        change(&mut wanted, &found.status)?;
        let (old, new) = (fields(&found.spec)?, fields(&wanted)?);
        let differences = diff::between(&old, &new);
        if differences.is_empty() {
            let sentence = format!("{} {name} already has these values; nothing was changed", N::WORD);
            return session.done(&read, name.as_str(), &sentence);
        }
        // The patch has only the changed fields, so fields of a newer server, unknown here, are preserved.
        let call = Call::patch(path::<N>(name)).json(&diff::patch(&old, &new))?;
        let call = call.expect(Expect::Revision(found.meta.revision));
        let again =
            Again::Same("run the same command again; it changes nothing that is already applied".to_owned());
        match session.write(call, again).await {
            Ok(answer) => {
                if session.writing.dry_run && session.format.is_for_people() {
                    session.print(&diff::lines(&differences).join("\n"))?;
                }
                let (changed, at) = (session.tense("changed"), session.at_revision(&answer));
                let sentence = format!("{} {name} {changed}{at}", N::WORD);
                return session.done(&answer, name.as_str(), &sentence);
            }
            Err(failure) if failure.code() == Some(Code::RevisionMismatch) && tries < EDITS_MAX => tries += 1,
            Err(failure) => return Err(failure),
        }
    }
}

/// Converts a spec to a map of its fields.
fn fields<T: Serialize>(spec: &T) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(spec).map_err(unreadable)? {
        Value::Object(fields) => Ok(fields),
        other => Ok(Map::from_iter([(String::new(), other)])),
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    ipam_api::Problem::new(Code::Internal, error.to_string()).into()
}

/// Deletes a resource. With `drain`, a resource in use is deleted when its last address is released.
pub(crate) async fn delete<N: ResourceType>(
    session: &Session,
    name: impl Into<ResourceName>,
    drain: bool,
) -> Result<(), Failure> {
    let name = &name.into();
    session.check_named(N::WORD, N::PLURAL, name.as_str()).await?;
    let mut call = Call::delete(path::<N>(name));
    if drain {
        call = call.query("drain", "true");
    }
    let deleted = session.write(call, Again::ByKey).await;
    let answer = suggest(session, deleted, N::PLURAL, name.as_str()).await?;
    // An empty answer means that the resource was deleted at once.
    let sentence = if drain && !answer.body.is_empty() {
        let then = "no new allocations, deleted when its last address is released";
        let undo = format!("ipamctl {} set {name} --no-drain", N::WORD);
        let is = if session.writing.dry_run { "would be" } else { "is" };
        format!("{} {name} {is} terminating: {then}.   undo: {undo}", N::WORD)
    } else {
        format!("{} {name} {}", N::WORD, session.tense("deleted"))
    };
    session.done(&answer, name.as_str(), &sentence)
}
