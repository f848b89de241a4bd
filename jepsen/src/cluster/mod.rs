//! Cluster under test: faults of members that are the same for live and for simulated ones.
//!
//! [`Cluster`] has the operations that differ between both, such as the start of a process. This module
//! builds on them: changes of the membership, damaged files, recovery, and the view of nemeses.

mod admin;
mod corruption;
mod costs;
mod damage;
mod membership;
mod recovery;
mod restart;
mod restore;
mod system;
mod transfer;
mod view;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use ipam_api::client::Client;

pub(crate) use self::admin::Admin;
pub(crate) use self::corruption::{corrupt, wipe};
pub(crate) use self::costs::{Costs, Intensity};
pub(crate) use self::damage::{damage, damage_all_rows, possible};
pub(crate) use self::membership::change;
pub(crate) use self::recovery::ready;
pub(crate) use self::restart::restart;
pub(crate) use self::restore::{BackupFile, restore};
pub(crate) use self::transfer::transfer;
pub(crate) use self::view::shown;
use crate::nemesis::{Corruption, Fault, Link};
use crate::random::Random;

/// Cause of the end of a member's process by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Its disk failed.
    Disk,
    /// Its data is damaged.
    Damage,
    /// It was removed from its cluster.
    Removal,
    /// Any other cause, which no fault explains.
    Other,
}

/// Consequences of faults for a member.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    /// True if its data is lost: it returns as a new member.
    pub(crate) must_rejoin: bool,
    /// Ends that a fault explains.
    pub(crate) excuses: BTreeSet<Cause>,
}

impl Standing {
    /// Records an end; returns true if a fault explains it.
    pub(crate) fn note_end(&mut self, cause: Cause) -> bool {
        self.must_rejoin |= cause == Cause::Damage;
        self.excuses.contains(&cause)
    }
}

/// Members, live or simulated.
pub(crate) trait Cluster: Send + Sync {
    /// Names of the members, in order.
    fn names(&self) -> Vec<String>;

    /// Hosts with agents or clients.
    fn hosts(&self) -> Vec<String>;

    /// Client of members, with the rights of an administrator.
    ///
    /// # Errors
    /// If a name is no member's, or there is none.
    fn client_of(&self, names: &[String]) -> Result<Client>;

    /// Data directory of a member.
    ///
    /// # Errors
    /// If there is no such member.
    fn data_dir(&self, name: &str) -> Result<PathBuf>;

    /// Standing of a member.
    ///
    /// # Errors
    /// If there is no such member.
    fn standing(&self, name: &str) -> Result<&Standing>;

    /// Mutable standing of a member.
    ///
    /// # Errors
    /// If there is no such member.
    fn standing_mut(&mut self, name: &str) -> Result<&mut Standing>;

    /// True if the process of a member was started, and its end was not seen.
    fn is_started(&self, name: &str) -> bool;

    /// True if a member that is started can answer: it is not stopped by a signal.
    fn answers(&self, name: &str) -> bool {
        self.is_started(name)
    }

    /// True if the machine of a member has power.
    fn has_power(&self, _name: &str) -> bool {
        true
    }

    /// Active faults, in the order of their injection.
    fn active(&self) -> &[Fault];

    /// Mutable list of the active faults.
    fn active_mut(&mut self) -> &mut Vec<Fault>;

    /// Evidence of a recovery, for the fault that is healed.
    fn notes(&mut self) -> &mut Vec<String>;

    /// Source of choices.
    fn random(&mut self) -> &mut Random;

    /// Ends of a member's process that no fault explains.
    fn unexplained_ends(&self, name: &str) -> usize;

    /// Damages a file of a stopped member; returns a description, or none if there is no such file.
    ///
    /// # Errors
    /// If there is no such member, or its file can't be written.
    fn damage(&mut self, name: &str, corruption: Corruption) -> Result<Option<String>> {
        damage(&self.data_dir(name)?, corruption, self.random())
    }

    /// The ends of the logs of members, for an error.
    fn tails(&self, _names: &[String]) -> String {
        String::new()
    }

    /// Records processes that have ended.
    ///
    /// # Errors
    /// If their state can't be read.
    fn reap(&mut self) -> Result<()>;

    /// Cuts links.
    fn cut(&mut self, links: &[Link]);

    /// Mends links.
    fn mend(&mut self, links: &[Link]);

    /// Removes a former member whose process has ended.
    fn drop_member(&mut self, name: &str);

    /// Begins a fault; returns the evidence that it took hold.
    fn begin(&mut self, fault: &Fault) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Ends a fault; returns further evidence. Members that it has stopped start later.
    fn end(&mut self, fault: &Fault) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Ends processes at once; returns the ends of those that ran.
    fn kill(&mut self, names: &[String]) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Starts the process of a member.
    fn start(&mut self, name: &str) -> impl Future<Output = Result<()>> + Send;

    /// Ends the process of a member gracefully; returns its end, none if it had ended before.
    fn stop(&mut self, name: &str) -> impl Future<Output = Result<Option<String>>> + Send;

    /// True if the program of a member knows the next feature level.
    fn is_upgraded(&self, name: &str) -> bool;

    /// Gives a member the program of the next feature level for all its later starts.
    ///
    /// # Errors
    /// If there is no such member.
    fn upgrade(&mut self, name: &str) -> Result<()>;

    /// Empties the disk of a stopped member, which founds a cluster at its next start.
    ///
    /// # Errors
    /// If there is no such member, or its disk can't be emptied.
    fn make_founder(&mut self, name: &str) -> Result<()>;

    /// Writes a backup into the empty data directory of a stopped member.
    fn write_data(&mut self, name: &str, file: &Path) -> impl Future<Output = Result<()>> + Send;

    /// Starts a member that joins with an empty disk, also one that was a member before.
    fn start_joiner(&mut self, name: &str, admin: &Admin) -> impl Future<Output = Result<()>> + Send;

    /// Waits until the process of a removed member ends by itself, or ends it; returns its end.
    fn see_off(&mut self, name: &str) -> impl Future<Output = Result<String>> + Send;
}

/// True if an active fault keeps a member from running.
fn is_held_down<C: Cluster>(cluster: &C, name: &str) -> bool {
    cluster.active().iter().any(|fault| fault.kind.holds_down(name))
}

/// Client of all members that answer and have their data.
pub(crate) fn administrator<C: Cluster>(cluster: &C) -> Result<Client> {
    let is_able = |name: &String| {
        cluster.answers(name) && cluster.standing(name).is_ok_and(|standing| !standing.must_rejoin)
    };
    cluster.client_of(&cluster.names().into_iter().filter(is_able).collect::<Vec<_>>())
}

/// Client of one member.
fn control<C: Cluster>(cluster: &C, name: &str) -> Result<Client> {
    cluster.client_of(&[name.to_owned()])
}
