//! `ipamctl version`: versions of this program and of every server.

use futures::future::join_all;
use ipam_api::client::Call;
use ipam_api::cluster::Version;
use serde_json::json;

use crate::client::session::Session;
use crate::command::status::{DEADLINE, reason};
use crate::output::error::Failure;
use crate::output::table::Table;

/// The version of this program.
const OURS: &str = env!("CARGO_PKG_VERSION");

/// Runs the command. A server that doesn't answer is shown, and is no failure.
pub(crate) async fn run(session: &Session) -> Result<(), Failure> {
    let asked = join_all(session.settings.servers.iter().map(|server| ask(session, server))).await;
    let servers: Vec<serde_json::Value> = asked
        .iter()
        .map(|(server, answer)| match answer {
            Ok(version) => json!({"server": server, "version": version}),
            Err(why) => json!({"server": server, "error": why}),
        })
        .collect();
    let json = json!({"ipamctl": OURS, "servers": servers}).to_string();
    let lines = asked.iter().map(|(server, answer)| match answer {
        Ok(version) => [server.clone(), version.version.clone(), format!("feature level {}", version.level)],
        Err(why) => [server.clone(), "-".to_owned(), format!("no answer: {why}")],
    });
    let own = ["ipamctl".to_owned(), OURS.to_owned(), String::new()];
    let table = Table::untitled(std::iter::once(own).chain(lines));
    session.show(json.as_bytes(), OURS, || Ok(table.render(false, None)))?;
    if !session.format.is_for_people() {
        return Ok(());
    }
    for version in asked.iter().filter_map(|(_, answer)| answer.as_ref().ok()) {
        if far_apart(OURS, &version.version) {
            session.say(&format!(
                "warning: ipamctl {OURS} and server {} are more than one minor version apart",
                version.version
            ));
            break;
        }
    }
    Ok(())
}

async fn ask(session: &Session, server: &str) -> (String, Result<Version, String>) {
    let call = Call::get("/version").within(session.reading.timeout.min(DEADLINE));
    let answer = session.ask_one(server, call).await.and_then(|answer| answer.read::<Version>());
    (server.to_owned(), answer.map_err(|problem| reason(server, &problem)))
}

/// True if two versions differ by more than one minor step.
fn far_apart(ours: &str, theirs: &str) -> bool {
    let parts = |text: &str| -> Option<(u64, u64)> {
        let mut numbers = text.split('.').map(|part| part.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    match (parts(ours), parts(theirs)) {
        (Some((major, minor)), Some((their_major, their_minor))) => {
            major != their_major || minor.abs_diff(their_minor) > 1
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_minor_step_is_fine() {
        assert!(!far_apart("0.4.2", "0.5.0"));
        assert!(far_apart("0.4.2", "0.6.0"));
        assert!(far_apart("1.4.2", "0.4.2"));
        assert!(!far_apart("0.4.2", "built here"));
    }
}
