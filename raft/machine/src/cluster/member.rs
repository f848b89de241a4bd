//! Members of the cluster. The rows are the desired membership; the leader adapts the Raft membership.

use ipam_api::access::{Target, Verb};
use ipam_api::limits::MEMBERS_MAX;
use ipam_api::name::Name;

use crate::access::check_permission;
use crate::apply::step::Step;
use crate::command::{
    Answer, Cause, ChangeMembers, Credential, JoinMember, KnownMember, Purpose, Refusal, Text,
};
use crate::event::EventKind;
use crate::state::State;
use crate::state::id::{Id, TokenId};
use crate::state::row::{Member, MemberStanding, Token};
use crate::value::refuse_if;

impl State {
    /// Member with a name, if any; removed members have no name.
    #[must_use]
    pub fn member_named(&self, name: &Name) -> Option<(u64, &Member)> {
        self.members.iter().find(|(_, row)| row.name == *name && row.standing != MemberStanding::Removed)
    }

    /// Ids of the desired voters.
    #[must_use]
    pub fn voters(&self) -> Vec<u64> {
        let voters = self.members.iter().filter(|(_, row)| row.standing == MemberStanding::Voter);
        voters.map(|(id, _)| id).collect()
    }

    /// Removes all members: a new cluster must not contain those of the old one.
    pub fn reset_members(&mut self) {
        let ids: Vec<u64> = self.members.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.erase::<Member>(id);
        }
    }
}

impl Step<'_> {
    /// Adds a member. A repeated request with the same data directory returns the same id: the first answer
    /// may have been lost.
    pub(crate) fn join_member(&mut self, request: &JoinMember) -> Result<Answer, Refusal> {
        let token = self.check_may_join()?;
        if let Some((id, row)) = self.state.members.iter().find(|(_, row)| row.disk_id == request.disk_id) {
            return again(id, row, request);
        }
        let unnoted = || request.known.iter().filter(|known| !self.is_noted(known.id));
        if let Some(known) = unnoted().find(|known| known.disk_id == request.disk_id) {
            return Err(Cause::DirectoryOfFounder { id: known.id, name: known.name.clone() }.into());
        }
        if token.as_ref().is_some_and(|(_, token)| token.used_for.is_some()) {
            return Err(Cause::MemberTokenUsed.into());
        }
        let taken = unnoted().find(|known| known.name == request.name);
        let taken = taken.map(|known| known.id).or(self.state.member_named(&request.name).map(|(id, _)| id));
        if let Some(id) = taken {
            return Err(Cause::MemberNameTaken { id, name: request.name.clone() }.into());
        }
        let living = self.state.members.iter().filter(|(_, row)| row.standing != MemberStanding::Removed);
        refuse_if(living.count() + unnoted().count() >= MEMBERS_MAX, || Cause::TooManyMembers)?;
        let revision = self.state.tick();
        self.note_members(&request.known, revision);
        let id = self.state.members.last().map_or(0, |(id, _)| id) + 1;
        let row = Member {
            name: request.name.clone(),
            disk_id: Text::clone(&request.disk_id),
            peer_address: Text::clone(&request.peer_address),
            client_url: Text::clone(&request.client_url),
            standing: MemberStanding::Learner,
            joined: revision,
        };
        self.put_member(id, row);
        if let Some((token_id, token)) = token {
            let used = Token { used_for: Some(Id::new(revision)), ..token };
            self.state.write(token_id, used);
        }
        Ok(Answer::Members { ids: vec![id] })
    }

    /// Promotes and removes members, if the voters are the expected ones.
    pub(crate) fn change_members(&mut self, request: &ChangeMembers) -> Result<Answer, Refusal> {
        let mut voters = self.state.voters();
        let noted = |known: &&KnownMember| !self.is_noted(known.id);
        voters.extend(request.known.iter().filter(noted).filter(|known| known.votes).map(|known| known.id));
        voters.sort_unstable();
        refuse_if(voters != request.voters, || Cause::MembersChanged)?;
        for id in request.promote.iter().chain(&request.remove) {
            let known = request.known.iter().any(|known| known.id == *id);
            refuse_if(!known && self.state.members.get(*id).is_none(), || Cause::NoMember { id: *id })?;
        }
        let gone =
            |id: &u64| self.state.members.get(*id).is_some_and(|row| row.standing == MemberStanding::Removed);
        if let Some(id) = request.promote.iter().find(|id| gone(id) || request.remove.contains(id)) {
            return Err(Cause::MemberRemoved { id: *id }.into());
        }
        voters.extend(&request.promote);
        voters.retain(|id| !request.remove.contains(id));
        refuse_if(voters.is_empty(), || Cause::LastVoter)?;
        let revision = self.state.tick();
        self.note_members(&request.known, revision);
        let mut ids = self.set_standing(&request.promote, MemberStanding::Voter);
        ids.extend(self.set_standing(&request.remove, MemberStanding::Removed));
        Ok(Answer::Members { ids })
    }

    /// Refuses callers that may neither change the cluster nor have a token for joining. Returns the token.
    fn check_may_join(&self) -> Result<Option<(TokenId, Token)>, Refusal> {
        let (grant, purpose) = self.rights.as_ref().map_err(Clone::clone)?;
        match (purpose, self.credential) {
            (Purpose::JoinMember, Credential::Token { id }) => {
                Ok(self.state.tokens.get(*id).map(|token| (*id, token.clone())))
            }
            _ => {
                check_permission(grant, &self.origin.principal, Verb::Write, Target::Cluster)?;
                Ok(None)
            }
        }
    }

    fn is_noted(&self, id: u64) -> bool {
        self.state.members.get(id).is_some()
    }

    /// Writes rows for the known members that have none yet.
    fn note_members(&mut self, known: &[KnownMember], revision: u64) {
        for known in known {
            if self.is_noted(known.id) {
                continue;
            }
            let row = Member {
                name: known.name.clone(),
                disk_id: Text::clone(&known.disk_id),
                peer_address: Text::clone(&known.peer_address),
                client_url: Text::clone(&known.client_url),
                standing: if known.votes { MemberStanding::Voter } else { MemberStanding::Learner },
                joined: revision,
            };
            self.state.write(known.id, row);
        }
    }

    /// Sets the standing of members. Returns the ids of the members whose standing changed.
    fn set_standing(&mut self, ids: &[u64], standing: MemberStanding) -> Vec<u64> {
        let mut changed = Vec::new();
        for id in ids {
            let row = self.state.members.named(*id);
            if row.standing != standing {
                self.put_member(*id, Member { standing, ..row.clone() });
                changed.push(*id);
            }
        }
        changed
    }

    fn put_member(&mut self, id: u64, row: Member) {
        self.emit(EventKind::Member { id, name: row.name.clone(), standing: row.standing });
        self.state.write(id, row);
    }
}

/// Returns the answer to a repeated join of a known data directory.
fn again(id: u64, row: &Member, request: &JoinMember) -> Result<Answer, Refusal> {
    if row.standing == MemberStanding::Removed {
        return Err(Cause::DirectoryOfRemoved { id, name: row.name.clone() }.into());
    }
    refuse_if(row.name != request.name, || Cause::DirectoryOfAnother { id, name: row.name.clone() })?;
    Ok(Answer::Members { ids: vec![id] })
}
