//! Who founds the cluster.

use std::net::SocketAddr;

use ipam_api::limits::MEMBERS_MAX;
use ipam_api::name::{Name, shown};
use ipam_raft::node::InitialMember;

use super::{ConfigError, FileMember, wrong};

/// The founding members: from flags if there are any, else from the file, else this one alone. For a member that
/// joins they only say where others are.
pub(super) fn members(
    flags: &[String],
    file: Vec<FileMember>,
    name: &Name,
    peer_listen: SocketAddr,
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
    if pairs.is_empty() && !founds {
        return Ok(Vec::new());
    }
    if pairs.is_empty() {
        return Ok(vec![InitialMember { name: name.clone(), peer_address: peer_listen.to_string() }]);
    }
    let mut members: Vec<InitialMember> = Vec::new();
    for (member, peer) in pairs {
        let member = Name::new(&member).map_err(|problem| wrong("initial_members", &problem.detail))?;
        if peer.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
            return Err(wrong(
                "initial_members",
                &format!("{} of {member} is no address with a port", shown(&peer)),
            ));
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
