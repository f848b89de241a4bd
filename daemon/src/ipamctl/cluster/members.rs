//! The members of the cluster, and changes of them: each says first what it will do.

use ipam_api::Name;
use ipam_api::client::Call;
use ipam_api::cluster::{Danger, Member, MemberChange, Members, ReplaceRequest, TransferRequest};

use crate::confirm;
use crate::context::Context;
use crate::exchange::Again;
use crate::fail::Failure;
use crate::output::format::Format;
use crate::output::table::Table;
use crate::output::text;

const PATH: &str = "/v1/cluster/members";

/// `members`.
pub(super) async fn list(context: &Context) -> Result<(), Failure> {
    let answer = context.read(PATH).await?;
    if context.data(&answer.body)? {
        return Ok(());
    }
    let members: Members = answer.read()?;
    if matches!(context.format, Format::Name) {
        let names: Vec<&str> = members.items.iter().map(|member| member.name.as_str()).collect();
        return context.print(&names.join("\n"));
    }
    context.print_table(&table(&members.items))?;
    context.say(&format!(
        "{} · {} must agree · can lose {}",
        text::plural(members.voters, "voter", "voters"),
        members.needed,
        members.can_lose
    ));
    Ok(())
}

fn table(members: &[Member]) -> Table {
    let mut table = Table::new()
        .text("NAME")
        .spare("ID", 1)
        .text("ROLE")
        .spare("ADDRESS", 2)
        .spare("PEER ADDRESS", 3)
        .text("BEHIND")
        .text("ANSWERS");
    for member in members {
        let answers = match (member.answers, member.silent_ms) {
            (None, _) => "-".to_owned(),
            (Some(true), _) => "yes".to_owned(),
            (Some(false), Some(silent_ms)) => format!("no, for {}", text::roughly(silent_ms)),
            (Some(false), None) => "not yet".to_owned(),
        };
        table.row([
            member.name.clone(),
            member.id.to_string(),
            member.role.clone(),
            text::dash(&member.client_url),
            text::dash(&member.peer_address),
            text::or_dash(member.behind.filter(|_| member.role != "leader").as_ref()),
            answers,
        ]);
    }
    table
}

/// `transfer-leader`.
pub(super) async fn transfer_leader(context: &Context, to: Option<Name>) -> Result<(), Failure> {
    let call = Call::post("/v1/cluster/transfer-leader").json(&TransferRequest { to })?;
    change(context, call, "leader", "leadership was handed over").await
}

/// `promote`.
pub(super) async fn promote(context: &Context, name: &Name) -> Result<(), Failure> {
    let call = Call::post(format!("{PATH}/{name}/promote"));
    change(context, call, name.as_str(), &format!("{name} has a vote")).await
}

/// `remove`.
pub(super) async fn remove(context: &Context, name: &Name) -> Result<(), Failure> {
    let done = format!("{name} was removed; if it comes back it refuses to start and says so");
    change(context, Call::delete(format!("{PATH}/{name}")), name.as_str(), &done).await
}

/// `replace`.
pub(super) async fn replace(context: &Context, old: &Name, new: Name) -> Result<(), Failure> {
    let done = format!("{new} is in the place of {old}; if {old} comes back it refuses to start and says so");
    let call = Call::post(format!("{PATH}/{old}/replace")).json(&ReplaceRequest { with: new })?;
    change(context, call, old.as_str(), &done).await
}

/// Finds out what a change would do, says so, asks where it may hurt, and does it.
async fn change(context: &Context, call: Call, name: &str, done: &str) -> Result<(), Failure> {
    let preview = context.preview(call.clone()).await?;
    let plan: MemberChange = preview.read()?;
    if !plan.changes {
        return context.done(&preview, name, "it is so already; there is nothing to do");
    }
    if context.writing.dry_run {
        let shown = context.data(&preview.body)?;
        return if shown { Ok(()) } else { context.print(&summary(&plan).join("\n")) };
    }
    match plan.danger {
        Danger::Mild => {}
        Danger::Moderate => confirm::moderate(context, &summary(&plan), "Go on?").await?,
        Danger::Severe => confirm::severe(context, name, &summary(&plan)).await?,
    }
    // The same again finds that it is so already.
    let again = Again::Same("the same command again; what is done is not done twice".to_owned());
    let answer = context.write(call.repeatable().slow(), again).await?;
    let changed: MemberChange = answer.read()?;
    let under_way = "it is decided and goes on by itself; look again: ipamctl cluster members";
    context.done(&answer, name, if changed.done { done } else { under_way })
}

/// What will happen, and what can fail after it.
fn summary(plan: &MemberChange) -> Vec<String> {
    let mut lines: Vec<String> =
        plan.steps.iter().zip(1..).map(|(step, number)| format!("{number}. {step}")).collect();
    if plan.voters_before == plan.voters_after {
        lines.push(format!("voters     {} (no change)", plan.voters_after.join(" ")));
    } else {
        lines.push(format!("voters     {} → {}", plan.voters_before.join(" "), plan.voters_after.join(" ")));
    }
    lines.push(format!("can lose   {} before, {} after", plan.can_lose_before, plan.can_lose_after));
    if plan.can_lose_after == 0 {
        lines.push("When one more voter stops, nothing can be changed until it is back.".to_owned());
    }
    lines
}
