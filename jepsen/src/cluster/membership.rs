//! Membership: members that join, leave, replace others, or return without their data.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

use super::{Admin, Cause, Cluster, administrator};
use crate::nemesis::Change;

/// Time limit of a change, with the transfer of the state.
const CHANGE: Duration = Duration::from_secs(40);

/// Changes the membership and waits for the end of the change.
pub(crate) async fn change<C: Cluster>(cluster: &mut C, change: &Change) -> Result<Vec<String>> {
    let until = Instant::now() + CHANGE;
    match change {
        Change::Add => {
            let name = free_name(cluster);
            join(cluster, &name, until).await?;
            let admin = admin(cluster, until)?;
            admin.promote(&name).await?;
            Ok(vec![admin.describe(&name).await?])
        }
        Change::Remove { member } => {
            cluster.standing_mut(member)?.excuses.insert(Cause::Removal);
            admin(cluster, until)?.remove(member).await?;
            let end = cluster.see_off(member).await?;
            cluster.drop_member(member);
            Ok(vec![format!("{member} is removed, {end}")])
        }
        Change::Replace { member } => {
            let killed = cluster.kill(std::slice::from_ref(member)).await?;
            cluster.standing_mut(member)?.must_rejoin = true;
            let name = free_name(cluster);
            join(cluster, &name, until).await?;
            let admin = admin(cluster, until)?;
            admin.replace(member, &name).await?;
            cluster.drop_member(member);
            let described = admin.describe(&name).await?;
            Ok(killed.into_iter().chain([format!("{member} is replaced, {described}")]).collect())
        }
    }
}

/// Lets members without their data return as new ones.
pub(super) async fn rejoin_lost<C: Cluster>(cluster: &mut C, until: Instant) -> Result<()> {
    for name in cluster.names() {
        if cluster.standing(&name)?.must_rejoin {
            let rejoined = rejoin(cluster, &name, until).await;
            rejoined.with_context(|| {
                format!("{name} can't return{}", cluster.tails(std::slice::from_ref(&name)))
            })?;
        }
    }
    Ok(())
}

/// Follows the documented procedure after the loss of a data directory: removal, join under a new id.
async fn rejoin<C: Cluster>(cluster: &mut C, name: &str, until: Instant) -> Result<()> {
    cluster.kill(&[name.to_owned()]).await?;
    let admin = admin(cluster, until)?;
    admin.remove(name).await?;
    join(cluster, name, until).await?;
    admin.promote(name).await?;
    cluster.standing_mut(name)?.must_rejoin = false;
    let note = admin.describe(name).await?;
    cluster.notes().push(note);
    Ok(())
}

/// Starts a member with an empty disk, and waits until it has caught up as a learner.
async fn join<C: Cluster>(cluster: &mut C, name: &str, until: Instant) -> Result<()> {
    let admin = admin(cluster, until)?;
    cluster.start_joiner(name, &admin).await?;
    let is_there = || {
        cluster.reap()?;
        if cluster.is_started(name) { Ok(()) } else { bail!("{name} has ended") }
    };
    let caught_up = admin.caught_up(name, is_there).await;
    caught_up.with_context(|| cluster.tails(&[name.to_owned()]))
}

fn admin<C: Cluster>(cluster: &C, until: Instant) -> Result<Admin> {
    Ok(Admin { client: administrator(cluster)?, until })
}

/// First name without a member.
fn free_name<C: Cluster>(cluster: &C) -> String {
    let taken = cluster.names();
    let mut names = (1..).map(|number| format!("n{number}"));
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}
