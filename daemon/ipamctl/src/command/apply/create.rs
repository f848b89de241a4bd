//! Creation of resources of one kind from files.

use clap::Args;
use ipam_api::client::Call;

use super::documents::{self, Document};
use super::kind::Kind;
use super::run::FileArguments;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::output::error::Failure;

/// Arguments of `create` with files.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    files: FileArguments,
}

/// Creates the host policies of files, one after the other.
pub(crate) async fn create(session: &Session, arguments: &CreateArguments) -> Result<(), Failure> {
    let documents = arguments.files.read(session).await?;
    if let Some(Document { kind, name, place, .. }) =
        documents.iter().find(|document| document.kind != Kind::HostPolicy)
    {
        return Err(Failure::usage(
            format!("{place}: {} {name} is not a host policy", kind.word()),
            "Apply resources of several kinds with ipamctl apply -f.",
        ));
    }
    for document in documents {
        let call = Call::post(document.kind.path()).json(&document.spec)?;
        let answer = session.write(call, Again::ByKey).await?;
        let (word, name) = (document.kind.word(), &document.name);
        let sentence = format!("{word} {name} {}{}", session.tense("created"), session.at_revision(&answer));
        session.done(&answer, name.as_str(), &sentence)?;
    }
    Ok(())
}

impl FileArguments {
    /// Documents of the files. A separate thread reads them, so that Ctrl-C ends the wait for standard input.
    pub(super) async fn read(&self, session: &Session) -> Result<Vec<Document>, Failure> {
        let manager = session.writing.manager.clone();
        let paths = self.files.clone();
        let read = tokio::task::spawn_blocking(move || documents::read(&paths, manager.as_deref()));
        read.await.map_err(|_| Failure::Declined)?
    }
}
