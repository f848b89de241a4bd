//! Asking before something hurts.
//!
//! Three levels: *mild* is done and told, *moderate* asks `[y/N]`, *severe* wants the name typed. Where
//! nobody can be asked, the word has to be on the command line: `--yes` or `--confirm NAME`.

use std::io::{BufRead as _, Write as _};

use crate::context::Context;
use crate::fail::Failure;
use crate::output::Tone;

/// Asks about something moderate: `summary` says what it will touch, with counts.
pub(crate) async fn moderate(context: &Context, summary: &[String], question: &str) -> Result<(), Failure> {
    if context.writing.yes {
        return Ok(());
    }
    if context.writing.dry_run {
        return tell(context, summary);
    }
    if !context.interactive {
        return Err(Failure::usage(
            summary.join(" "),
            "Nobody can be asked here, so nothing was changed; say --yes to do it all the same.",
        ));
    }
    for line in summary {
        crate::say(line);
    }
    let answer = ask(format!("{}{question} [y/N] ", mark(context))).await?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Declined) }
}

/// Asks about something severe: its name has to be said again.
pub(crate) async fn severe(context: &Context, name: &str, summary: &[String]) -> Result<(), Failure> {
    if context.writing.dry_run {
        return tell(context, summary);
    }
    if let Some(given) = &context.writing.confirm {
        if given == name {
            return Ok(());
        }
        return Err(Failure::usage(
            format!("--confirm {given} doesn't name what this is about: {name}"),
            "Nothing was changed.",
        ));
    }
    if !context.interactive {
        return Err(Failure::usage(
            summary.join(" "),
            format!(
                "Nothing was changed; say --confirm {name} to do it all the same (--yes is not enough here)."
            ),
        ));
    }
    for line in summary {
        crate::say(line);
    }
    let answer = ask(format!("{}Type the name {name} to go on: ", mark(context))).await?;
    if answer.trim() == name { Ok(()) } else { Err(Failure::Declined) }
}

/// What a dry run would touch is told, and nobody is asked.
fn tell(context: &Context, summary: &[String]) -> Result<(), Failure> {
    for line in summary {
        context.say(line);
    }
    Ok(())
}

/// What stands before a question about production.
fn mark(context: &Context) -> String {
    match &context.settings.production {
        Some(name) => context.paint(&format!("[production: {name}] "), Tone::Bad),
        None => String::new(),
    }
}

/// Reads a line from the terminal, on a thread of its own: Ctrl-C must end the wait.
async fn ask(question: String) -> Result<String, Failure> {
    let read = tokio::task::spawn_blocking(move || {
        {
            // Unlocked again before the wait: what is said on Ctrl-C needs the stream.
            let mut prompt = std::io::stderr().lock();
            prompt.write_all(question.as_bytes())?;
            prompt.flush()?;
        }
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok::<String, std::io::Error>(line)
    });
    match read.await {
        Ok(line) => Ok(line?),
        Err(_) => Err(Failure::Declined),
    }
}
