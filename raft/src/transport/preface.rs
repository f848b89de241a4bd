//! Handshake of every connection between peers: identities, cluster and purpose.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use ipam_api::limits::{PREFACE_BYTES_MAX, PREFACE_MS_MAX};
use ipam_api::name::shown;
use ipam_api::place::{PeerAddress, is_client_url};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::codec::FramedRead;

use super::frame::{Frames, decode, encode, invalid};
use crate::types::Member;

/// Magic bytes by which a caller that isn't a peer is recognised at once.
const MAGIC: [u8; 8] = *b"ipamd-pr";
/// Version of the peer protocol.
pub(crate) const PROTOCOL_VERSION: u16 = 1;

/// Purpose of a connection. Each purpose has a separate connection, so that none waits behind another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// Log entries, pipelined.
    Append,
    /// Votes, heartbeats, leadership transfers, forwarded proposals, read indexes.
    Control,
    Snapshot,
    /// Segments of the journal, in pieces.
    Journal,
}

/// One end of a connection between members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerIdentity {
    pub(crate) name: String,
    pub(crate) member_id: u64,
    pub(crate) disk_id: String,
}

/// The two ends of a call, and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handshake {
    pub(crate) cluster_id: String,
    pub(crate) from: PeerIdentity,
    pub(crate) to: PeerIdentity,
    /// The caller's present URL for clients; the membership may be older.
    pub(crate) client_url: String,
    pub(crate) purpose: Purpose,
    /// Present address of the caller for peers. Sent after the opening, where older members ignore it.
    #[serde(skip)]
    pub(crate) peer_address: Option<String>,
}

/// Request of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Opening {
    /// Requests the member's identity; the connection has no other use.
    Hello,
    /// Requests a connection between two members.
    Member(Handshake),
}

/// A member's answer to a hello request: its name and standing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) member: Member,
    pub(crate) standing: Standing,
}

/// The standing of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// Its disk belongs to no cluster.
    Pristine {
        /// Sorted names of the initial members in its configuration.
        initial_members: Vec<String>,
    },
    /// The member has decided to found this cluster.
    Founding { cluster_id: String },
    /// The member belongs to this cluster.
    Member {
        cluster_id: String,
        member_id: u64,
        /// The members that it knows: id, name, disk id.
        knows: Vec<(u64, String, String)>,
    },
    /// Its disk belongs to no cluster, and holds a restored state for a new one.
    Restored {
        /// Sorted names of the initial members in its configuration.
        initial_members: Vec<String>,
        /// The state: its backup and its epoch.
        state: String,
    },
}

impl Standing {
    /// The founders of a cluster, if it belongs to none yet.
    pub(crate) fn initial_members(&self) -> Option<&[String]> {
        match self {
            Self::Pristine { initial_members } | Self::Restored { initial_members, .. } => {
                Some(initial_members)
            }
            Self::Founding { .. } | Self::Member { .. } => None,
        }
    }
}

/// Reason for refusing a connection. Variants are only ever appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Refusal {
    /// The peer speaks another version.
    #[error("it speaks version {mine} of the peer protocol, not {PROTOCOL_VERSION}")]
    Version { mine: u16 },
    /// The peer belongs to another cluster.
    #[error("it belongs to cluster {mine}")]
    WrongCluster { mine: String },
    /// Another member than the called one answers.
    #[error("another member answers there: {} (member {}, disk {})", mine.name, mine.member_id, mine.disk_id)]
    WrongTarget { mine: PeerIdentity },
    /// The caller isn't the member that it claims to be.
    #[error("{why}")]
    Stranger { why: String },
    /// The called member can't serve the caller now.
    #[error("{why}")]
    NotReady { why: String },
    /// The caller was a member, and was removed.
    #[error("{why}")]
    Removed { why: String },
}

#[derive(Serialize, Deserialize)]
struct Preface {
    magic: [u8; 8],
    version: u16,
    opening: Vec<u8>,
}

/// The answer to an opening.
#[derive(Serialize, Deserialize)]
pub(super) enum Reply {
    /// The name and standing of the member that was called.
    Hello(Hello),
    /// The caller is admitted.
    Welcome,
    /// The caller is refused.
    Refused(Refusal),
}

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The peer refused.
    #[error(transparent)]
    Refused(Refusal),
    /// The peer was silent, or violated the protocol.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// Requests the identity of the peer.
pub(crate) async fn ask_hello<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Result<Hello, DialError> {
    match open(stream, &Opening::Hello).await? {
        Reply::Hello(hello) => Ok(hello),
        Reply::Refused(refusal) => Err(DialError::Refused(refusal)),
        Reply::Welcome => Err(DialError::Broken(invalid("a welcome, where a name was asked for"))),
    }
}

/// Opens a connection between members.
pub(crate) async fn present<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    handshake: Handshake,
) -> Result<(), DialError> {
    match open(stream, &Opening::Member(handshake)).await? {
        Reply::Welcome => Ok(()),
        Reply::Refused(refusal) => Err(DialError::Refused(refusal)),
        Reply::Hello(_) => Err(DialError::Broken(invalid("a name, where a welcome was asked for"))),
    }
}

async fn open<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, opening: &Opening) -> io::Result<Reply> {
    let mut bytes = postcard::to_stdvec(opening).map_err(invalid)?;
    if let Opening::Member(Handshake { peer_address: Some(peer_address), .. }) = opening {
        // Appended to the fields of the first version, so that older members ignore it.
        bytes = postcard::to_extend(peer_address, bytes).map_err(invalid)?;
    }
    let preface = Preface { magic: MAGIC, version: PROTOCOL_VERSION, opening: bytes };
    say(stream, &encode(&preface)?).await?;
    decode(&first_frame(stream).await?)
}

/// Reads the request of a caller.
///
/// # Errors
/// If the request is late or isn't from a peer; an unknown version has been answered already.
pub(crate) async fn receive<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<Opening> {
    let preface: Preface = decode(&first_frame(stream).await?)?;
    if preface.magic != MAGIC {
        return Err(invalid("it doesn't speak the protocol of peers"));
    }
    if preface.version != PROTOCOL_VERSION {
        reply(stream, Reply::Refused(Refusal::Version { mine: PROTOCOL_VERSION })).await?;
        return Err(invalid(format!("it speaks version {} of the peer protocol", preface.version)));
    }
    let (mut opening, more) = postcard::take_from_bytes(&preface.opening).map_err(invalid)?;
    if let Opening::Member(handshake) = &mut opening
        && !more.is_empty()
    {
        handshake.peer_address = Some(postcard::from_bytes(more).map_err(invalid)?);
    }
    if let Opening::Member(handshake) = &opening {
        check_places(handshake)?;
    }
    Ok(opening)
}

/// Refuses a caller with a malformed address or URL: they enter the membership, logs and terminals.
fn check_places(handshake: &Handshake) -> io::Result<()> {
    if !is_client_url(&handshake.client_url) {
        return Err(invalid(format!("{} is not a client URL", shown(&handshake.client_url))));
    }
    match &handshake.peer_address {
        Some(address) if PeerAddress::parse(address).is_none() => {
            Err(invalid(format!("{} is not a peer address", shown(address))))
        }
        _ => Ok(()),
    }
}

/// Answers a caller.
pub(super) async fn reply<S: AsyncWrite + Unpin>(stream: &mut S, reply: Reply) -> io::Result<()> {
    say(stream, &encode(&reply)?).await
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, frame: &[u8]) -> io::Result<()> {
    stream.write_all(frame).await?;
    stream.flush().await
}

/// Reads the small first frame of one side. Nothing may follow it before it is answered, so no byte is lost
/// with the reader's buffer.
async fn first_frame<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<bytes::Bytes> {
    let mut frames = FramedRead::new(stream, Frames::up_to(PREFACE_BYTES_MAX));
    let frame = match timeout(Duration::from_millis(PREFACE_MS_MAX), frames.next()).await {
        Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no word in time")),
        Ok(None) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up without a word")),
        Ok(Some(frame)) => frame?,
    };
    if frames.read_buffer().is_empty() { Ok(frame) } else { Err(invalid("more than the first word")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str) -> PeerIdentity {
        PeerIdentity { name: name.to_owned(), member_id: 1, disk_id: "d".repeat(36) }
    }

    #[tokio::test]
    async fn both_sides_agree_on_who_calls_whom() {
        let (mut here, mut there) = tokio::io::duplex(1 << 16);
        let handshake = Handshake {
            cluster_id: "c".to_owned(),
            from: identity("n1"),
            to: identity("n2"),
            client_url: "http://n1".to_owned(),
            purpose: Purpose::Control,
            peer_address: Some("n1:7441".to_owned()),
        };
        let sent = handshake.clone();
        let caller = tokio::spawn(async move { present(&mut here, sent).await });
        assert_eq!(receive(&mut there).await.unwrap(), Opening::Member(handshake));
        let refused = Refusal::WrongCluster { mine: "other".to_owned() };
        reply(&mut there, Reply::Refused(refused)).await.unwrap();
        let Err(DialError::Refused(refusal)) = caller.await.unwrap() else { panic!("it was refused") };
        assert_eq!(refusal, Refusal::WrongCluster { mine: "other".to_owned() });
    }

    #[test]
    fn unknown_fields_of_a_newer_preface_are_ignored() {
        let (from, to) = (identity("n1"), identity("n2"));
        let (cluster_id, client_url) = ("c".to_owned(), "http://n1".to_owned());
        let purpose = Purpose::Append;
        let opening =
            Opening::Member(Handshake { cluster_id, from, to, client_url, purpose, peer_address: None });
        let mut bytes = postcard::to_stdvec(&opening).unwrap();
        bytes.extend(postcard::to_stdvec("n1:7441").unwrap());
        assert_eq!(postcard::from_bytes::<Opening>(&bytes).unwrap(), opening);
    }

    #[tokio::test]
    async fn another_version_is_told_which_one_is_spoken() {
        let (mut here, mut there) = tokio::io::duplex(1 << 16);
        let preface = Preface { magic: MAGIC, version: 9, opening: Vec::new() };
        here.write_all(&encode(&preface).unwrap()).await.unwrap();
        assert!(receive(&mut there).await.is_err());
        let reply: Reply = decode(&first_frame(&mut here).await.unwrap()).unwrap();
        assert!(matches!(reply, Reply::Refused(Refusal::Version { mine: PROTOCOL_VERSION })));
    }

    #[tokio::test]
    async fn garbage_is_no_preface() {
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0, 0, 0, 4, 1, 2, 3, 4], &[0xff; 40]] {
            let (mut here, mut there) = tokio::io::duplex(1 << 16);
            here.write_all(garbage).await.unwrap();
            drop(here);
            assert!(receive(&mut there).await.is_err());
        }
    }
}
