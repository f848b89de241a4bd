//! Asking before something hurts.
//!
//! Three levels: *mild* is done and told, *moderate* asks `[y/N]`, *severe* wants the name typed. Where
//! nobody can be asked, the word has to be on the command line: `--yes` or `--confirm NAME`.

use std::io::{BufRead as _, Write as _};

use crate::context::Context;
use crate::fail::Failure;

/// Asks about something moderate: `summary` says what it will touch, with counts.
pub(crate) async fn moderate(context: &Context, summary: &[String], question: &str) -> Result<(), Failure> {
    if context.yes {
        return Ok(());
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
    let answer = ask(format!("{question} [y/N] ")).await?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Declined) }
}

/// Asks about something severe: its name has to be said again.
pub(crate) async fn severe(
    context: &Context,
    name: &str,
    given: Option<&str>,
    summary: &[String],
) -> Result<(), Failure> {
    if let Some(given) = given {
        if given == name {
            return Ok(());
        }
        return Err(Failure::usage(
            format!("--confirm {given} doesn't name what is to be deleted: {name}"),
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
    let answer = ask(format!("Type the name {name} to go on: ")).await?;
    if answer.trim() == name { Ok(()) } else { Err(Failure::Declined) }
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
