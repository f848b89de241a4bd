//! What networks, subnets, pools and reservations have in common: read, create, change, delete.

use ipam_api::client::{Answer, Call, Expect};
use ipam_api::resource::Resource;
use ipam_api::{Code, Name, strict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::Format;
use crate::context::{Context, Listed};
use crate::fail::Failure;

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
    /// Its name.
    fn name(intention: &Self::Intention) -> &Name;
}

/// A resource of a noun.
pub(crate) type Read<N> = Resource<<N as Noun>::Intention, <N as Noun>::Status>;

/// Just the name of anything that has one.
#[derive(Deserialize)]
struct Named {
    name: String,
}

fn path<N: Noun>(name: &Name) -> String {
    format!("/v1/{}/{name}", N::PLURAL)
}

/// Reads one. A name that doesn't exist comes with the one that was probably meant.
pub(crate) async fn fetch<N: Noun>(context: &Context, name: &Name) -> Result<(Read<N>, Answer), Failure> {
    match context.read(&path::<N>(name)).await {
        Ok(answer) => Ok((answer.read()?, answer)),
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
    let meant = strict::nearest(name, listed.items.iter().map(|named| named.name.as_str()));
    failure.meant(meant.map(str::to_owned))
}

/// Reads all that `keep` wants.
pub(crate) async fn list<N: Noun>(
    context: &Context,
    keep: impl Fn(&Read<N>) -> bool,
) -> Result<Listed<Read<N>>, Failure> {
    context.list(&format!("/v1/{}", N::PLURAL), keep).await
}

/// Prints a list where it isn't for people; says whether it did.
pub(crate) fn print_plain<N: Noun>(context: &Context, listed: &Listed<Read<N>>) -> Result<bool, Failure> {
    match context.format {
        Format::Json => context.print_bytes(&listed.json)?,
        Format::Name => {
            for item in &listed.items {
                context.print(N::name(&item.intention).as_str())?;
            }
        }
        Format::Table | Format::Wide => return Ok(false),
    }
    Ok(true)
}

/// Creates one.
pub(crate) async fn create<N: Noun>(context: &Context, intention: &N::Intention) -> Result<(), Failure> {
    let name = N::name(intention);
    let call = Call::post(format!("/v1/{}", N::PLURAL)).json(intention)?;
    let repeat = format!(
        "the same command again; \"already exists\" then means that it worked (ipamctl {} show {name})",
        N::WORD
    );
    let answer = context.write(call, repeat).await?;
    let revision = answer.etag.or(answer.revision).unwrap_or_default();
    context.done(&answer, name.as_str(), &format!("{} {name} created at revision {revision}", N::WORD))
}

/// Reads one, changes it, and writes it back unless somebody else was faster; then begins again.
pub(crate) async fn edit<N: Noun>(
    context: &Context,
    name: &Name,
    change: impl Fn(&mut N::Intention, &N::Status) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut tries = 1;
    loop {
        let (found, read) = fetch::<N>(context, name).await?;
        let mut wanted = found.intention.clone();
        change(&mut wanted, &found.status)?;
        let Some(body) = changed(&read.body, &found.intention, &wanted)? else {
            let sentence = format!("{} {name} is already so; nothing was changed", N::WORD);
            return context.done(&read, name.as_str(), &sentence);
        };
        let call = Call::put(path::<N>(name)).json(&body)?.expect(Expect::Revision(found.meta.revision));
        let repeat = "the same command again; what is already so stays so";
        match context.write(call, repeat).await {
            Ok(answer) => {
                let revision = answer.etag.or(answer.revision).unwrap_or_default();
                let sentence = format!("{} {name} changed at revision {revision}", N::WORD);
                return context.done(&answer, name.as_str(), &sentence);
            }
            Err(failure) if failure.code() == Some(Code::RevisionMismatch) && tries < EDITS_MAX => tries += 1,
            Err(failure) => return Err(failure),
        }
    }
}

/// The body with the change in it; none if nothing differs. Fields that this program doesn't know (a newer
/// server's) stay as they were read: an edit must not take away what it can't see.
fn changed<T: Serialize>(body: &[u8], old: &T, new: &T) -> Result<Option<Value>, Failure> {
    let object = |value: &T| serde_json::to_value(value).map_err(unreadable);
    let (old, new) = (object(old)?, object(new)?);
    if old == new {
        return Ok(None);
    }
    let mut whole: Value = serde_json::from_slice(body).map_err(unreadable)?;
    if let (Value::Object(whole), Value::Object(old), Value::Object(new)) = (&mut whole, old, new) {
        whole.retain(|key, _| key != "meta" && key != "status" && !old.contains_key(key));
        whole.extend(new);
    }
    Ok(Some(whole))
}

fn unreadable(error: serde_json::Error) -> Failure {
    ipam_api::Problem::new(Code::Internal, error.to_string()).into()
}

/// Deletes one, or makes it go away once nothing is held.
pub(crate) async fn delete<N: Noun>(context: &Context, name: &Name, drain: bool) -> Result<(), Failure> {
    let query = if drain { "?drain=true" } else { "" };
    let repeat = "the same command again; \"not found\" then means that it worked";
    let deleted = context.write(Call::delete(format!("{}{query}", path::<N>(name))), repeat).await;
    let answer = match deleted {
        Ok(answer) => answer,
        Err(failure) => return Err(suggest(context, failure, N::PLURAL, name.as_str()).await),
    };
    // Nothing was left to wait for when the answer is empty.
    let sentence = if drain && !answer.body.is_empty() {
        format!("{} {name} gives out nothing more and goes away with its last address", N::WORD)
    } else {
        format!("{} {name} deleted", N::WORD)
    };
    context.done(&answer, name.as_str(), &sentence)
}

#[cfg(test)]
mod tests {
    use ipam_api::resource::Network;

    use super::*;

    #[test]
    fn an_edit_keeps_what_it_does_not_know() {
        let body = br#"{"name":"a","description":"x","colour":"red","meta":{"revision":7},"status":{}}"#;
        let old: Network = strict::from_slice(br#"{"name":"a","description":"x"}"#).unwrap();
        let mut new = old.clone();
        assert!(changed(body, &old, &new).unwrap().is_none());
        new.description = "y".to_owned();
        let sent = changed(body, &old, &new).unwrap().unwrap();
        assert_eq!(
            sent,
            serde_json::json!({"name":"a","description":"y","colour":"red","labels":{},"annotations":{}})
        );
    }
}
