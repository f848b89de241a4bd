//! Members of the cluster and their changes: each change shows its effect first.

use ipam_api::Name;
use ipam_api::client::Call;
use ipam_api::cluster::{Danger, Member, MemberChange, Members, ReplaceRequest, TransferRequest};

use crate::client::confirm;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

const PATH: &str = "/v1/cluster/members";

/// Lists the members.
pub(super) async fn list(session: &Session) -> Result<(), Failure> {
    let answer = session.read(PATH).await?;
    let members: Members = answer.read()?;
    let names: Vec<&str> = members.items.iter().map(|member| member.name.as_str()).collect();
    session.show_table(&answer.body, &names.join("\n"), || table(&members.items))?;
    let voters = text::plural(members.voters, "voter", "voters");
    session.tell(&format!("{voters} · {} must agree · can lose {}", members.needed, members.can_lose));
    Ok(())
}

fn table(members: &[Member]) -> Table {
    Table::of(members)
        .text("NAME", |member| &member.name)
        .spare("ID", 1, |member| member.id)
        .text("ROLE", |member| &member.role)
        .spare("ADDRESS", 2, |member| text::dash(&member.client_url))
        .spare("PEER ADDRESS", 3, |member| text::dash(&member.peer_address))
        .text("BEHIND", |member| text::or_dash(member.behind.filter(|_| member.role != "leader").as_ref()))
        .text("ANSWERS", |member| match (member.answers, member.silent_ms) {
            (None, _) => "-".to_owned(),
            (Some(true), _) => "yes".to_owned(),
            (Some(false), Some(silent_ms)) => format!("no, for {}", text::roughly(silent_ms)),
            (Some(false), None) => "not yet".to_owned(),
        })
        .table()
}

/// Transfers leadership.
pub(super) async fn transfer_leader(session: &Session, to: Option<Name>) -> Result<(), Failure> {
    let call = Call::post("/v1/cluster/transfer-leader").json(&TransferRequest { to })?;
    change(session, call, "leader", "leadership was transferred").await
}

/// Promotes a learner.
pub(super) async fn promote(session: &Session, name: &Name) -> Result<(), Failure> {
    let call = Call::post(format!("{PATH}/{name}/promote"));
    change(session, call, name.as_str(), &format!("{name} has a vote")).await
}

/// Removes a member.
pub(super) async fn remove(session: &Session, name: &Name) -> Result<(), Failure> {
    let done = format!("{name} was removed; it refuses to start again with its old data");
    change(session, Call::delete(format!("{PATH}/{name}")), name.as_str(), &done).await
}

/// Replaces a member with a learner.
pub(super) async fn replace(session: &Session, old: &Name, new: Name) -> Result<(), Failure> {
    let done = format!("{new} replaced {old}; {old} refuses to start again with its old data");
    let call = Call::post(format!("{PATH}/{old}/replace")).json(&ReplaceRequest { with: new })?;
    change(session, call, old.as_str(), &done).await
}

/// Previews a change, prints its effect, asks for confirmation where necessary, and executes the change.
async fn change(session: &Session, call: Call, name: &str, done: &str) -> Result<(), Failure> {
    let preview = session.preview(call.clone()).await?;
    let plan: MemberChange = preview.read()?;
    if !plan.changes {
        return session.done(&preview, name, "already done; nothing was changed");
    }
    if session.writing.dry_run {
        let shown = session.data(&preview.body)?;
        return if shown { Ok(()) } else { session.print(&summary(&plan).join("\n")) };
    }
    match plan.danger {
        Danger::Mild => {}
        Danger::Moderate => confirm::moderate(session, &summary(&plan), "Go on?").await?,
        Danger::Severe => confirm::severe(session, name, &summary(&plan)).await?,
    }
    // A repetition finds the completed steps done.
    let again = Again::Same("run the same command again; completed steps are not repeated".to_owned());
    let answer = session.write(call.repeatable().slow(), again).await?;
    let changed: MemberChange = answer.read()?;
    let under_way = "the change is committed and continues in the background: ipamctl cluster members";
    session.done(&answer, name, if changed.done { done } else { under_way })
}

/// Steps of a change, and the number of failures that the cluster survives after it.
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
        lines.push("The failure of one more voter loses the quorum.".to_owned());
    }
    lines
}
