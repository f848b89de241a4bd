//! Destination of a secret: a file that only its owner can read, or standard output.

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
    /// File, created before the secret exists, because the secret can't be requested again.
    File { file: File, aside: PathBuf, path: PathBuf },
    /// Standard output.
    Output,
}

impl Destination {
    /// Opens the destination before the secret exists, so that the secret can't be lost.
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

    /// Writes the secret of an answer to the destination, and reports where it is.
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
                // The document that is printed must not contain the secret.
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
        // After a successful delivery, the temporary file no longer exists.
        if let Self::File { aside, .. } = self {
            std::fs::remove_file(aside).ok();
        }
    }
}
