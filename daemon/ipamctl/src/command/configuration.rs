//! Configuration files of network managers, rendered from the addresses of an endpoint.

use std::fs;
use std::path::Path;

use ipam_api::render::{Format, RenderedFile, render};
use ipam_api::resource::{EndpointKey, Interface};
use ipam_api::{Code, Problem};

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::{file, text};

/// Prints the files, or writes them below a root directory.
pub(crate) fn show(
    session: &Session,
    format: Format,
    key: &EndpointKey,
    interfaces: &[Interface],
    directory: Option<&Path>,
) -> Result<(), Failure> {
    let files = render(format, interfaces)
        .map_err(|error| Problem::new(Code::NotRenderable, format!("{key} as {format}: {error}")))?;
    for given in interfaces.iter().flat_map(|interface| &interface.addresses) {
        if given.lease.is_some() {
            let lease = text::lease(given.lease.as_ref());
            session.say(&format!("{} ({lease}) is leased; no file renews it", given.address.addr()));
        }
    }
    match directory {
        Some(directory) => files.iter().try_for_each(|file| write(session, directory, file)),
        None => session.print_bytes(printed(&files).as_bytes()),
    }
}

/// Joins files. A single one is printed as it is, so that the shell can write it to its path.
fn printed(files: &[RenderedFile]) -> String {
    match files {
        [single] => single.content.clone(),
        _ => {
            let parts =
                files.iter().map(|file| format!("# {} mode {:o}\n{}", file.path, file.mode, file.content));
            parts.collect::<Vec<_>>().join("\n")
        }
    }
}

fn write(session: &Session, directory: &Path, rendered: &RenderedFile) -> Result<(), Failure> {
    let path = directory.join(rendered.path.trim_start_matches('/'));
    if !session.writing.dry_run {
        let failed = |error: std::io::Error| {
            Failure::usage(format!("can't write {}: {error}", path.display()), "Choose another --output-dir.")
        };
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        file::replace(&path, &rendered.content, rendered.mode).map_err(failed)?;
    }
    session.say(&format!("{} {}", path.display(), session.tense("written")));
    Ok(())
}
