//! Output of `ipamctl status`.

use ipam_api::Code;
use ipam_api::cluster::Member;

use super::judge::{Diagnosis, Health, Seen, leads};
use crate::client::session::Session;
use crate::output::screen::Tone;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// Codes of problems with the credentials or the permissions of the caller.
const WHO_ASKS: [Code; 3] = [Code::Unauthenticated, Code::TokenExpired, Code::Forbidden];

/// Renders the output with the colours and the width of a session.
pub(super) fn text(diagnosis: &Diagnosis<'_>, session: &Session) -> String {
    render(diagnosis, session.environment.width, |word, tone| session.paint(word, tone))
}

/// Renders the output.
pub(super) fn render(
    diagnosis: &Diagnosis<'_>,
    width: Option<usize>,
    paint: impl Fn(&str, Tone) -> String,
) -> String {
    let cluster = &diagnosis.best.cluster;
    let mut fields = Fields::default();
    let id = if cluster.id.is_empty() { "not founded yet" } else { &cluster.id };
    fields.line("cluster", format!("{id}   epoch {}   feature level {}", cluster.epoch, cluster.level));
    health(&mut fields, diagnosis, paint);
    fields.line("state", format!("revision {}   term {}", cluster.revision, cluster.term));
    fields.raw("");
    fields.raw(&members(diagnosis).render(true, width));
    fields.raw("");
    let counts = &cluster.addresses;
    fields.line(
        "addresses",
        format!(
            "{} allocated · {} cooling · {} quarantined · {} free   in {}",
            text::count(counts.allocated),
            text::count(counts.cooling),
            text::count(counts.quarantined),
            text::count(counts.free),
            text::plural(cluster.pools, "pool", "pools")
        ),
    );
    attention(&mut fields, diagnosis);
    fields.text()
}

fn health(fields: &mut Fields, diagnosis: &Diagnosis<'_>, paint: impl Fn(&str, Tone) -> String) {
    let cluster = &diagnosis.best.cluster;
    let (voters, answering) = diagnosis.voters();
    let needed = voters / 2 + 1;
    let some = format!(
        "{} of {voters} {}",
        answering.len(),
        if answering.len() == 1 { "members answers" } else { "members answer" }
    );
    let leader = cluster.leader.as_deref().unwrap_or("-");
    let line = match diagnosis.health {
        Health::NoLeader => {
            let word = paint(&format!("NO LEADER for {}", text::roughly(cluster.stale_ms)), Tone::Bad);
            let names =
                if answering.is_empty() { String::new() } else { format!(" ({})", answering.join(", ")) };
            format!("{word}   {some}{names}; {needed} are needed")
        }
        Health::Ok | Health::Degraded => {
            let can_lose = answering.len().saturating_sub(needed);
            let word = if diagnosis.is_well() {
                paint("OK       ", Tone::Good)
            } else {
                paint("DEGRADED ", Tone::Attention)
            };
            format!("{word} {some} · leader {leader} · can lose {can_lose}")
        }
        Health::Diverged => format!("{}   {some} · leader {leader}", paint("STATES DIFFER", Tone::Bad)),
        Health::Mixed => format!("{}   the servers belong to different clusters", paint("MIXED", Tone::Bad)),
    };
    fields.line("health", line);
    if diagnosis.health == Health::NoLeader {
        let (by, revision, ago) = (&cluster.answered_by, cluster.revision, text::roughly(cluster.stale_ms));
        fields
            .line("", format!("Shown below: the state of {by} alone, as of revision {revision}, {ago} ago."));
        let help = "No changes are possible without a leader; reads work with --consistency stale.";
        fields.line("", help);
    }
}

fn members(diagnosis: &Diagnosis<'_>) -> Table {
    let led = diagnosis.health != Health::NoLeader;
    // Without a leader, the former leader is a voter like the others.
    let role = |member: &Member| {
        if !led && member.role == "leader" { "voter".to_owned() } else { member.role.clone() }
    };
    let behind = |member: &Member| member.behind.filter(|_| led && member.role != "leader");
    let disk_free = |seen: &Seen<'_>| seen.answer.ok().and_then(|own| own.disk_free_bytes).map(text::bytes);
    Table::of(&diagnosis.members)
        .text("MEMBER", |seen| &seen.member.name)
        .text("ROLE", |seen| role(seen.member))
        .spare("ADDRESS", 1, |seen| text::dash(address(&seen.member.client_url)))
        .spare("VERSION", 4, |seen| text::or_dash(seen.version.as_ref()))
        .spare("LEVEL", 5, |seen| text::or_dash(seen.member.level.as_ref()))
        .spare("REVISION", 3, |seen| text::or_dash(seen.answer.ok().map(|own| own.revision).as_ref()))
        .spare("BEHIND", 2, |seen| text::or_dash(behind(seen.member).as_ref()))
        .spare("DISK FREE", 5, |seen| text::or_dash(disk_free(seen).as_ref()))
        .text("STATE", state)
        .table()
}

/// Address of a member without scheme and trailing slash.
fn address(url: &str) -> &str {
    url.trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/')
}

fn state(seen: &Seen<'_>) -> String {
    match seen.answer {
        Ok(_) if seen.member.quarantined.is_some() => "quarantined, serves no requests".to_owned(),
        Ok(own) if leads(own) => "ok".to_owned(),
        Ok(own) => format!("sees no leader for {}, term {}", text::roughly(own.stale_ms), own.term),
        Err(_) if seen.answers_leader => "answers the leader".to_owned(),
        Err(why) => format!("no answer: {why}"),
    }
}

/// Adds a line for each problem, with the first command to use.
fn attention(fields: &mut Fields, diagnosis: &Diagnosis<'_>) {
    let mut lines = Vec::new();
    for (one, other) in &diagnosis.diverged {
        lines.push(format!(
            "members {one} and {other} have different states at the same log index; stop one of them and report it"
        ));
    }
    for (server, id) in &diagnosis.others {
        lines.push(format!("{server} belongs to cluster {id}; remove it from --server or IPAM_SERVERS"));
    }
    for seen in &diagnosis.members {
        let name = &seen.member.name;
        if let Some(why) = &seen.member.quarantined {
            lines.push(format!("{name} serves no requests:   {why}"));
        }
        match seen.answer {
            Ok(own) if own.disk_room.as_deref().is_some_and(|room| room != "enough") => {
                lines.push(format!("free disk space on {name}:   df -h   (on that machine)"));
            }
            Ok(_) => {}
            Err(_) if seen.answers_leader => {}
            Err(why) if why.contains("certificate") => {
                lines.push(format!("check the certificate of {name}:   {why}"));
            }
            Err(why) if WHO_ASKS.iter().any(|code| why.starts_with(code.entry().code)) => {
                lines.push(format!("authenticate to {name}:   --token-file or --cert-file"));
            }
            Err(_) => {
                lines.push(format!("start ipamd on {name}:   systemctl status ipamd   (on that machine)"));
            }
        }
    }
    for (server, why) in &diagnosis.strangers {
        lines.push(format!("{server} does not answer ({why}) and is not the address of a member"));
    }
    if lines.is_empty() {
        return;
    }
    fields.raw("");
    fields.raw(&format!("needs attention ({})", lines.len()));
    for line in lines {
        fields.raw(&format!("  {line}"));
    }
}
