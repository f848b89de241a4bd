//! Founding members of the cluster.

use ipam_api::limits::MEMBERS_MAX;
use ipam_api::name::{Name, shown};
use ipam_api::place::{PEER_ADDRESS_FORM, PeerAddress};
use ipam_raft::node::InitialMember;
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};

/// A founding member, as the file names it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileMember {
    pub(super) name: String,
    pub(super) peer: String,
}

/// Returns the founding members: from flags if there are any, else from the file; none by default.
/// For a member that joins a cluster, they only provide addresses.
pub(super) fn members(
    flags: &[String],
    file: Vec<FileMember>,
    name: &Name,
    founds: bool,
) -> Result<Vec<InitialMember>, ConfigError> {
    let pairs: Vec<(String, String)> = if flags.is_empty() {
        file.into_iter().map(|member| (member.name, member.peer)).collect()
    } else {
        flags
            .iter()
            .map(|flag| {
                let pair = flag.split_once('=');
                let (name, peer) =
                    pair.ok_or_else(|| wrong("member", &format!("{} is not NAME=ADDRESS", shown(flag))))?;
                Ok((name.to_owned(), peer.to_owned()))
            })
            .collect::<Result<_, ConfigError>>()?
    };
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let mut members: Vec<InitialMember> = Vec::new();
    for (member, peer) in pairs {
        let member = Name::new(&member).map_err(|problem| wrong("initial_members", &problem.detail))?;
        if PeerAddress::parse(&peer).is_none() {
            let why = format!("{} of {member} is not a peer address; {PEER_ADDRESS_FORM}", shown(&peer));
            return Err(wrong("initial_members", &why));
        }
        if members.iter().any(|other| other.name == member || other.peer_address == peer) {
            return Err(wrong("initial_members", &format!("{member} or its address {peer} is there twice")));
        }
        members.push(InitialMember { name: member, peer_address: peer });
    }
    if members.len() > MEMBERS_MAX {
        return Err(wrong(
            "initial_members",
            &format!("{} members; at most {MEMBERS_MAX} are allowed", members.len()),
        ));
    }
    if founds && !members.iter().any(|member| member.name == *name) {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        return Err(wrong(
            "initial_members",
            &format!(
                "this member, {name}, is not among {}; set `name` (IPAMD_NAME, --name) to one of them",
                names.join(", ")
            ),
        ));
    }
    Ok(members)
}
