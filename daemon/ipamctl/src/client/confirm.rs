//! Confirmation prompts before destructive changes.
//!
//! Three levels: a *mild* change is executed and reported, a *moderate* change asks `[y/N]`, and a *severe*
//! change requires the name to be typed. Without a terminal, the confirmation must be on the command line:
//! `--yes` or `--confirm NAME`.

use std::io::BufRead as _;

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::screen::{self, Tone};

/// Asks for confirmation of a moderate change: `summary` lists the affected objects, with counts.
pub(crate) async fn moderate(session: &Session, summary: &[String], question: &str) -> Result<(), Failure> {
    if session.writing.yes {
        return Ok(());
    }
    if session.writing.dry_run {
        return tell(session, summary);
    }
    let otherwise =
        "Nothing was changed: no terminal for a confirmation prompt. Repeat with --yes to proceed.";
    let answer = ask(session, summary, format!("{question} [y/N] "), otherwise).await?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Declined) }
}

/// Asks for confirmation of a severe change: the user types the name of the object.
pub(crate) async fn severe(session: &Session, name: &str, summary: &[String]) -> Result<(), Failure> {
    if session.writing.dry_run {
        return tell(session, summary);
    }
    if let Some(given) = &session.writing.confirm {
        if given == name {
            return Ok(());
        }
        return Err(Failure::usage(
            format!("--confirm {given} does not match {name}"),
            "Nothing was changed.",
        ));
    }
    let otherwise =
        format!("Nothing was changed. Repeat with --confirm {name} to proceed (--yes is not sufficient).");
    let answer = ask(session, summary, format!("Type the name {name} to confirm: "), &otherwise).await?;
    if answer.trim() == name { Ok(()) } else { Err(Failure::Declined) }
}

/// Prints what a dry run would affect, without a prompt.
fn tell(session: &Session, summary: &[String]) -> Result<(), Failure> {
    for line in summary {
        session.say(line);
    }
    Ok(())
}

/// Prefix of a prompt that concerns a production cluster.
fn mark(session: &Session) -> String {
    let production = session.settings.production.as_ref();
    production.map(|name| session.paint(&format!("[production: {name}] "), Tone::Bad)).unwrap_or_default()
}

/// Prints a summary, prompts, and reads a line from the terminal. `otherwise` is the remedy without a
/// terminal.
async fn ask(
    session: &Session,
    summary: &[String],
    question: String,
    otherwise: &str,
) -> Result<String, Failure> {
    if !session.interactive {
        return Err(Failure::usage(summary.join(" "), otherwise));
    }
    for line in summary {
        screen::line(line);
    }
    let question = mark(session) + &question;
    // A separate thread reads the terminal, because Ctrl-C must end the wait.
    let read = tokio::task::spawn_blocking(move || {
        screen::say(&question);
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok::<String, std::io::Error>(line)
    });
    match read.await {
        Ok(line) => Ok(line?),
        Err(_) => Err(Failure::Declined),
    }
}
