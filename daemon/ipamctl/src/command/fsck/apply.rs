//! `--apply`: executes the actions of a report, each only if the state is still the observed one.

use std::net::IpAddr;

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::probe::Quarantine;
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
    /// True unless the state is another one by now.
    fits: bool,
    document: Value,
}

/// Executes the actions.
pub(super) async fn apply(session: &Session, items: Vec<Finding>) -> Result<(), Failure> {
    reclaim::check_no_key(session)?;
    let number = items.len();
    let actions: Vec<Action> =
        items.into_iter().map(|item| item.action).filter(|action| *action != Action::None).collect();
    let without = number - actions.len();
    if !actions.is_empty() {
        let summary = [format!(
            "{} of the report will be executed, each if it still fits; {without} have no action.",
            text::plural(actions.len() as u64, "line", "lines")
        )];
        confirm::moderate(session, &summary, "Execute them?").await?;
    }
    let mut targets = Vec::new();
    let mut ends = Vec::new();
    for action in actions {
        match action {
            Action::None => {}
            Action::Reclaim { node, network, address, allocation } => {
                targets.push(Target { node, network, address, allocation });
            }
            Action::EndQuarantine { .. } => ends.push(action),
        }
    }
    let outcome = reclaim::silent(session, targets).await;
    let dry_run = session.writing.dry_run;
    let mut done: Vec<Done> =
        outcome.fates.iter().map(|(target, fate)| reclaimed(target, *fate, dry_run)).collect();
    let mut failure = outcome.failure;
    for action in ends {
        if failure.is_some() {
            break;
        }
        match end_quarantine(session, &action).await {
            Ok(one) => done.extend(one),
            Err(error) => failure = Some(error),
        }
    }
    tell(session, &done)?;
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

/// Ends a quarantine, if it is the observed one: of the same host, and since the same time.
async fn end_quarantine(session: &Session, action: &Action) -> Result<Option<Done>, Failure> {
    let Action::EndQuarantine { network, address, mac, since } = action else { return Ok(None) };
    let path = quarantine::path(Some(network), *address);
    let found: Option<Quarantine> = match session.read(&path).await {
        Ok(answer) => Some(answer.read()?),
        Err(failure) if failure.code() == Some(Code::NotFound) => None,
        Err(failure) => return Err(failure),
    };
    let fits = found.is_some_and(|found| (found.mac, found.since) == (*mac, *since));
    let is_ended = fits
        && match session.write(Call::delete(path), reclaim::again()).await {
            Ok(_) => true,
            Err(failure) if failure.code() == Some(Code::NotFound) => false,
            Err(failure) => return Err(failure),
        };
    let (words, result) = match (is_ended, session.writing.dry_run) {
        (true, false) => ("ended", "ended"),
        (true, true) => ("would be ended", "ended"),
        (false, false) => ("left alone", "left-alone"),
        (false, true) => ("would be left alone", "left-alone"),
    };
    let document =
        json!({"action": "end-quarantine", "network": network, "address": address, "result": result});
    Ok(Some(Done { address: *address, action: "end quarantine", words, fits: is_ended, document }))
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
