//! `--apply`: executes the actions of a report, each only if the state is still the observed one.

use std::net::IpAddr;

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::probe::Quarantine;
use ipam_api::reclaim::ReclaimReason;
use ipam_api::resource::Allocation;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::finding::{Action, Finding};
use crate::client::confirm;
use crate::client::session::Session;
use crate::command::quarantine;
use crate::command::reclaim::{self, Fate, Target};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Result of one action.
struct Done {
    address: IpAddr,
    action: &'static str,
    words: &'static str,
    /// True if the state was still the observed one.
    fits: bool,
    document: Value,
}

/// Executes the actions. Actions that take the newer side are executed only with `takes_newer`.
pub(super) async fn apply(session: &Session, items: Vec<Finding>, takes_newer: bool) -> Result<(), Failure> {
    reclaim::check_no_key(session)?;
    let actions: Vec<Action> = items.into_iter().map(|item| item.action).collect();
    let number = |wanted: fn(&Action) -> bool| actions.iter().filter(|action| wanted(action)).count();
    let (without, on_request) = (number(|action| *action == Action::None), number(Action::takes_newer));
    let held_back = if takes_newer { 0 } else { on_request };
    let executed = actions.len() - without - held_back;
    if executed > 0 {
        let summary = [format!(
            "{} of the report will be executed, each if it still fits; {without} have no action, and \
             {held_back} need --take-newer.",
            text::plural(executed as u64, "line", "lines")
        )];
        confirm::moderate(session, &summary, "Execute them?").await?;
    }
    let mut targets = Vec::new();
    let mut singles = Vec::new();
    for action in actions {
        match action {
            Action::None => {}
            Action::Reclaim { node, network, address, allocation } => {
                targets.push(Target { node, network, address, allocation });
            }
            Action::ReleaseColliding { .. } if !takes_newer => {}
            Action::ReleaseColliding { .. } | Action::EndQuarantine { .. } => singles.push(action),
        }
    }
    let outcome = reclaim::all(session, ReclaimReason::NodeSilent, targets).await;
    let dry_run = session.writing.dry_run;
    let mut done: Vec<Done> =
        outcome.fates.iter().map(|(target, fate)| reclaimed(target, *fate, dry_run)).collect();
    let mut failure = outcome.failure;
    for action in singles {
        if failure.is_some() {
            break;
        }
        match single(session, action).await {
            Ok(one) => done.extend(one),
            Err(error) => failure = Some(error),
        }
    }
    tell(session, &done)?;
    if held_back > 0 {
        session.tell(&format!(
            "{} left: add --take-newer to release the older side",
            text::plural(held_back as u64, "mismatched line", "mismatched lines")
        ));
    }
    match failure {
        Some(failure) => Err(failure),
        None if done.iter().all(|one| one.fits) => Ok(()),
        None => Err(Failure::Found),
    }
}

fn reclaimed(target: &Target, fate: Fate, dry_run: bool) -> Done {
    Done {
        address: target.address,
        action: "reclaim",
        words: fate.words(dry_run),
        fits: matches!(fate, Fate::Released | Fate::Kept),
        document: json!({"action": "reclaim", "network": target.network, "address": target.address,
                         "node": target.node, "allocation": target.allocation, "result": fate}),
    }
}

/// Executes an action that needs a request of its own, if the state is still the observed one.
async fn single(session: &Session, action: Action) -> Result<Option<Done>, Failure> {
    match action {
        Action::EndQuarantine { network, address, mac, since } => {
            let path = quarantine::path(Some(&network), address);
            let found: Option<Quarantine> = read(session, &path).await?;
            let fits = found.is_some_and(|found| (found.mac, found.since) == (mac, since));
            let fits = fits && delete(session, path).await?;
            let result = if fits { "ended" } else { "left-alone" };
            let document = json!({"action": "end-quarantine", "network": network, "address": address,
                                  "result": result});
            let words = words(session, fits, ["ended", "would be ended"]);
            Ok(Some(Done { address, action: "end quarantine", words, fits, document }))
        }
        Action::ReleaseColliding { network, address, allocation, mac } => {
            let path = format!("/v1/allocations/{allocation}");
            let found: Option<Allocation> = read(session, &path).await?;
            let fits = found.is_some_and(|found| found.colliding == Some(mac));
            let fits = fits && delete(session, path).await?;
            let result = if fits { "released" } else { "left-alone" };
            let document = json!({"action": "release-colliding", "network": network, "address": address,
                                  "allocation": allocation, "result": result});
            let words = words(session, fits, ["released", "would be released"]);
            Ok(Some(Done { address, action: "release", words, fits, document }))
        }
        Action::None | Action::Reclaim { .. } => Ok(None),
    }
}

/// Reads the subject of an action; none if it no longer exists.
async fn read<T: DeserializeOwned>(session: &Session, path: &str) -> Result<Option<T>, Failure> {
    match session.read(path).await {
        Ok(answer) => Ok(Some(answer.read()?)),
        Err(failure) if failure.code() == Some(Code::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Deletes the subject of an action; false if it no longer exists.
async fn delete(session: &Session, path: String) -> Result<bool, Failure> {
    match session.write(Call::delete(path), reclaim::again()).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.code() == Some(Code::NotFound) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Describes the result of an action. `done` and `foretold` describe a success and its dry run.
fn words(session: &Session, fits: bool, [done, foretold]: [&'static str; 2]) -> &'static str {
    match (fits, session.writing.dry_run) {
        (true, false) => done,
        (true, true) => foretold,
        (false, false) => "left alone",
        (false, true) => "would be left alone",
    }
}

fn tell(session: &Session, done: &[Done]) -> Result<(), Failure> {
    let dry_run = session.writing.dry_run;
    let items: Vec<&Value> = done.iter().map(|one| &one.document).collect();
    let document = json!({"items": items, "dry_run": dry_run});
    let names: Vec<String> = done.iter().filter(|one| one.fits).map(|one| one.address.to_string()).collect();
    if !session.format.is_for_people() || !done.is_empty() {
        session.show_table(document.to_string().as_bytes(), &names.join("\n"), || {
            Table::of(done)
                .text("ADDRESS", |one| one.address)
                .text("ACTION", |one| one.action)
                .text("RESULT", |one| one.words)
                .table()
        })?;
    }
    let tried = if dry_run { "   (a dry run: nothing was changed)" } else { "" };
    let misfits = done.len() - names.len();
    session.tell(&format!(
        "{} {}, {misfits} no longer fit{tried}",
        text::plural(names.len() as u64, "line", "lines"),
        session.tense("executed")
    ));
    Ok(())
}
