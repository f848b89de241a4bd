//! Server side of the peer port: admits peers, with one connection per peer and purpose.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::{PREFACES_PER_ADDRESS_MAX, PREFACES_WAITING_MAX};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::complaints::Complaints;
use super::host::Host;
use super::port::{Call, PeerPort};
use super::preface::{Handshake, Opening, Purpose, Refusal, Reply, receive, reply};
use super::stream::PeerStream;
use super::tls::Caller;
use super::{serving, snapshot};
use crate::connection_limit::{ConnectionLimit, Permit};
use crate::simulation::pausable;

/// Pause while the system has no more connections to accept.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Connection of an admitted caller.
struct Session {
    handshake: Handshake,
    stream: PeerStream,
}

/// Result of a server task: the session of an admitted caller, or none.
type Ended = Option<Session>;

/// Serves peers until it is dropped, and their connections with it.
pub(crate) async fn serve<H: Host>(port: PeerPort, host: H) {
    let proof = port.proof();
    let complaints = Arc::new(Complaints::default());
    let prefaces = ConnectionLimit::new(PREFACES_WAITING_MAX, PREFACES_PER_ADDRESS_MAX);
    let mut tasks: JoinSet<Ended> = JoinSet::new();
    // A member has one connection for each purpose. The newest connection replaces the older one, whose other
    // end may have vanished silently. This also bounds the number of connections.
    let mut sessions: BTreeMap<(u64, Purpose), AbortHandle> = BTreeMap::new();
    loop {
        tokio::select! {
            accepted = port.accept() => match accepted {
                Ok(call) => match admit(&call, &prefaces) {
                    Ok(place) => {
                        let caller = call.caller();
                        let received = call.receive(proof.clone());
                        let meeting = meet(received, caller, host.clone(), complaints.clone(), place);
                        tasks.spawn(pausable(meeting));
                    }
                    Err(why) => complain(&complaints, &call.caller(), &why),
                },
                Err(error) => {
                    complain(&complaints, "any", &format!("a connection couldn't be taken: {error}"));
                    sleep(EXHAUSTED_PAUSE).await;
                }
            },
            Some(ended) = tasks.join_next() => match ended {
                Ok(Some(session)) => {
                    let key = (session.handshake.from.member_id, session.handshake.purpose);
                    let entertaining = entertain(session, host.clone(), complaints.clone());
                    let entertained = tasks.spawn(pausable(entertaining));
                    if let Some(older) = sessions.insert(key, entertained) {
                        older.abort();
                    }
                }
                Err(error) if error.is_panic() => tracing::error!(%error, "serving a peer has failed"),
                Ok(None) | Err(_) => sessions.retain(|_, session| !session.is_finished()),
            },
        }
    }
}

/// Admits a caller that may send its handshake.
fn admit(call: &Call, prefaces: &ConnectionLimit) -> Result<Permit, String> {
    call.check_user().map_err(|error| error.to_string())?;
    prefaces.enter(call.address()).map_err(|_| "too many callers at once".to_owned())
}

/// Reads a caller's handshake. Returns the session if the caller is admitted.
async fn meet<H: Host>(
    received: impl Future<Output = io::Result<(PeerStream, Caller)>>,
    from: String,
    host: H,
    complaints: Arc<Complaints>,
    _place: Permit,
) -> Ended {
    let met = async {
        let (mut stream, caller) = received.await?;
        let opening = receive(&mut stream).await?;
        if let Some(why) = caller.objection(&opening) {
            complain(&complaints, &from, &why);
            reply(&mut stream, Reply::Refused(Refusal::Stranger { why })).await?;
            return Ok(None);
        }
        let handshake = match opening {
            Opening::Hello => {
                reply(&mut stream, Reply::Hello(host.hello())).await?;
                return Ok(None);
            }
            Opening::Member(handshake) => handshake,
        };
        if let Err(refusal) = host.admit(&handshake).await {
            let what = format!(
                "{} (member {}) was sent away: {refusal}",
                handshake.from.name, handshake.from.member_id
            );
            complain(&complaints, &from, &what);
            reply(&mut stream, Reply::Refused(refusal)).await?;
            return Ok(None);
        }
        reply(&mut stream, Reply::Welcome).await?;
        Ok::<_, io::Error>(Some(Session { handshake, stream }))
    };
    met.await.unwrap_or_else(|error| {
        complain(&complaints, &from, &error.to_string());
        None
    })
}

async fn entertain<H: Host>(session: Session, host: H, complaints: Arc<Complaints>) -> Ended {
    let Session { handshake, stream } = session;
    let here = host.clone();
    let serve = async {
        match handshake.purpose {
            Purpose::Append => serving::in_order(host, stream).await,
            Purpose::Control | Purpose::Journal => serving::as_they_come(host, stream).await,
            Purpose::Snapshot => snapshot::receive(&host, stream).await,
        }
    };
    let served = tokio::select! {
        served = serve => {
            if matches!(handshake.purpose, Purpose::Append | Purpose::Control) && was_closed(&served) {
                here.connection_closed(handshake.from.member_id);
            }
            served
        }
        () = here.expelled(handshake.from.member_id) => Ok(()),
    };
    if let Err(error) = served {
        let peer = format!("{} {:?}", handshake.from.name, handshake.purpose);
        let what = error.to_string();
        if let Some(left_out) = complaints.news(&peer, &what) {
            let (peer, purpose) = (&handshake.from.name, handshake.purpose);
            tracing::info!(peer, ?purpose, what, left_out, "a peer's connection ended");
        }
    }
    None
}

/// True if the caller's system ended the connection, rather than silence or an invalid frame.
fn was_closed(served: &io::Result<()>) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    served.as_ref().err().is_none_or(|error| {
        matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
    })
}

fn complain(complaints: &Complaints, caller: &str, what: &str) {
    if let Some(left_out) = complaints.news(caller, what) {
        tracing::warn!(caller, what, left_out, "a caller on the peer port");
    }
}
