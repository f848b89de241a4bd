//! What named resources have in common: read, create, change, delete.

use ipam_api::client::{Answer, Call, Expect};
use ipam_api::name::ResourceName;
use ipam_api::resource::Resource;
use ipam_api::time::Timestamp;
use ipam_api::{Code, strict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::difference;
use crate::exchange::Again;
use crate::fail::Failure;
use crate::list::Listing;
use crate::output::table::Table;

/// How often a change is tried again when somebody else was faster.
const EDITS_MAX: usize = 5;

/// A resource that has a name of its own.
pub(crate) trait Noun {
    /// What somebody wants.
    type Intention: Serialize + DeserializeOwned + Clone;
    /// What is the case.
    type Status: DeserializeOwned;
    /// The word for one.
    const WORD: &'static str;
    /// The word for many.
    const PLURAL: &'static str;
    /// Where they are.
    const PATH: &'static str;
    /// Its name.
    fn name(intention: &Self::Intention) -> ResourceName;
}

/// A resource of a noun.
pub(crate) type Read<N> = Resource<<N as Noun>::Intention, <N as Noun>::Status>;

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

fn path<N: Noun>(name: &ResourceName) -> String {
    format!("{}/{name}", N::PATH)
}

/// Reads one. A name that doesn't exist comes with the one that was probably meant.
pub(crate) async fn fetch<N: Noun>(
    context: &Context,
    name: impl Into<ResourceName>,
) -> Result<(Read<N>, Answer), Failure> {
    let name = name.into();
    match context.read(&path::<N>(&name)).await {
        Ok(answer) => {
            context.check_placed(&format!("{} {name}", N::WORD), N::PLURAL, &answer.body)?;
            Ok((answer.read()?, answer))
        }
        Err(failure) => Err(suggest(context, failure, N::PLURAL, name.as_str()).await),
    }
}

/// Adds the name that was probably meant to a `not-found`.
pub(crate) async fn suggest(context: &Context, failure: Failure, plural: &str, name: &str) -> Failure {
    if failure.code() != Some(Code::NotFound) {
        return failure;
    }
    // Looking for a better word must not replace the answer by another failure.
    let Ok(listed) = context.list::<Named>(&format!("/v1/{plural}"), |_| true).await else { return failure };
    let names: Vec<String> = listed.items.iter().map(Named::whole).collect();
    let meant = strict::nearest(name, names.iter().map(String::as_str));
    failure.meant(meant.map(str::to_owned))
}

/// Shows all that `keep` wants.
pub(crate) async fn show_list<N: Noun + 'static>(
    context: &Context,
    filters: Vec<(&'static str, String)>,
    keep: impl Fn(&Read<N>) -> bool,
    table: fn(&[Read<N>], bool, Timestamp) -> Table,
) -> Result<(), Failure> {
    let name = |found: &Read<N>| N::name(&found.intention).to_string();
    let listing = Listing { path: N::PATH, filters, name, table, words: (N::WORD, N::PLURAL) };
    context.show_list(listing, keep).await
}

/// Creates one.
pub(crate) async fn create<N: Noun>(context: &Context, intention: &N::Intention) -> Result<(), Failure> {
    let name = N::name(intention);
    let call = Call::post(N::PATH).json(intention)?;
    let answer = context.write(call, Again::ByKey).await?;
    let sentence = format!("{} {name} {}{}", N::WORD, context.tense("created"), context.at_revision(&answer));
    context.done(&answer, name.as_str(), &sentence)
}

/// Reads one, changes it, and writes it back unless somebody else was faster; then begins again.
pub(crate) async fn edit<N: Noun>(
    context: &Context,
    name: impl Into<ResourceName>,
    change: impl Fn(&mut N::Intention, &N::Status) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let name = &name.into();
    let mut tries = 1;
    loop {
        let (found, read) = fetch::<N>(context, name).await?;
        let mut wanted = found.intention.clone();
        change(&mut wanted, &found.status)?;
        let (old, new) = (fields(&found.intention)?, fields(&wanted)?);
        let differences = difference::between(&old, &new);
        if differences.is_empty() {
            let sentence = format!("{} {name} is already so; nothing was changed", N::WORD);
            return context.done(&read, name.as_str(), &sentence);
        }
        // Only what changes is sent: what this program doesn't know (a newer server's fields) stays as it is.
        let call = Call::patch(path::<N>(name)).json(&difference::patch(&old, &new))?;
        let call = call.expect(Expect::Revision(found.meta.revision));
        let again = Again::Same("the same command again; what is already so stays so".to_owned());
        match context.write(call, again).await {
            Ok(answer) => {
                if context.writing.dry_run && context.format.is_for_people() {
                    context.print(&difference::lines(&differences).join("\n"))?;
                }
                let (changed, at) = (context.tense("changed"), context.at_revision(&answer));
                let sentence = format!("{} {name} {changed}{at}", N::WORD);
                return context.done(&answer, name.as_str(), &sentence);
            }
            Err(failure) if failure.code() == Some(Code::RevisionMismatch) && tries < EDITS_MAX => tries += 1,
            Err(failure) => return Err(failure),
        }
    }
}

/// An intention, field by field.
fn fields<T: Serialize>(intention: &T) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(intention).map_err(unreadable)? {
        Value::Object(fields) => Ok(fields),
        other => Ok(Map::from_iter([(String::new(), other)])),
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    ipam_api::Problem::new(Code::Internal, error.to_string()).into()
}

/// Deletes one, or makes it go away once nothing is held.
pub(crate) async fn delete<N: Noun>(
    context: &Context,
    name: impl Into<ResourceName>,
    drain: bool,
) -> Result<(), Failure> {
    let name = &name.into();
    context.check_named(N::WORD, N::PLURAL, name.as_str()).await?;
    let mut call = Call::delete(path::<N>(name));
    if drain {
        call = call.query("drain", "true");
    }
    let deleted = context.write(call, Again::ByKey).await;
    let answer = match deleted {
        Ok(answer) => answer,
        Err(failure) => return Err(suggest(context, failure, N::PLURAL, name.as_str()).await),
    };
    // Nothing was left to wait for when the answer is empty.
    let sentence = if drain && !answer.body.is_empty() {
        format!("{} {name} gives out nothing more and goes away with its last address", N::WORD)
    } else {
        format!("{} {name} {}", N::WORD, context.tense("deleted"))
    };
    context.done(&answer, name.as_str(), &sentence)
}
