//! Destination of a secret: a file that only its owner can read, or to standard output.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ipam_api::Name;
use ipam_api::client::Answer;
use serde_json::Value;

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::file;

/// Destination of a secret.
pub(super) enum Destination {
    /// Into a file, which is there already when the secret comes: there is no second one.
    File { file: File, aside: PathBuf, path: PathBuf },
    /// To standard output.
    Output,
}

impl Destination {
    /// Makes sure that the secret can be kept, before there is one.
    pub(super) fn open(session: &Session, path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|_| !session.writing.dry_run) else { return Ok(Self::Output) };
        let mut name = path.file_name().map(std::ffi::OsStr::to_owned).unwrap_or_default();
        name.push(".new");
        let aside = path.with_file_name(name);
        let help = "No token was created. Choose another file with --to-file.";
        let file = file::create(&aside, file::PRIVATE)
            .map_err(|error| Failure::file(&aside, "written", error, help))?;
        Ok(Self::File { file, aside, path: path.to_owned() })
    }

    /// Hands over the secret of an answer, and says what to do with it.
    pub(super) fn deliver(
        mut self,
        session: &Session,
        name: &Name,
        answer: &Answer,
        sentence: &str,
    ) -> Result<(), Failure> {
        let mut body: Value = answer.read()?;
        let secret = body.get("secret").and_then(Value::as_str).map(str::to_owned);
        if session.writing.dry_run {
            return session.done(answer, name.as_str(), sentence);
        }
        let Some(secret) = secret else {
            return Err(Failure::usage(
                format!("{sentence}, but the response has no secret"),
                format!("Create another secret: ipamctl token rotate {name}."),
            ));
        };
        match &mut self {
            Self::File { file, aside, path } => {
                let keep = || -> std::io::Result<()> {
                    writeln!(file, "{secret}")?;
                    file.sync_all()?;
                    std::fs::rename(aside, &*path)
                };
                keep().map_err(|error| {
                    Failure::usage(
                        format!("{sentence}, but {} can't be written: {error}", path.display()),
                        format!("The secret is lost; create another one: ipamctl token rotate {name}"),
                    )
                })?;
                // What is printed now has no secret in it.
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("secret");
                }
                if !session.data(body.to_string().as_bytes())? {
                    session.say(&format!("{sentence}; its secret is in {}", path.display()));
                }
                Ok(())
            }
            Self::Output => {
                if session.data(&answer.body)? {
                    return Ok(());
                }
                session.say(sentence);
                session.print(&secret)?;
                if session.environment.terminal {
                    session.say(&format!(
                        "The secret cannot be shown again. Store it in a file with mode 0600 (--token-file, \
                         IPAM_TOKEN_FILE); if it is lost: ipamctl token rotate {name}"
                    ));
                }
                Ok(())
            }
        }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // Gone already where the secret was delivered.
        if let Self::File { aside, .. } = self {
            std::fs::remove_file(aside).ok();
        }
    }
}
