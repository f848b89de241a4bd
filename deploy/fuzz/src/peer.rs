//! Messages of other members, and of strangers at the peer port.

use ipam_raft::fuzzing::transport;

use crate::parts::choice;

/// Number of bytes by which a connection's buffer may exceed the received bytes.
const AHEAD_BYTES: usize = 1 << 20;

/// Connection: the handshakes of both sides, and frames.
pub(crate) fn stream(data: &[u8]) {
    let (piece, data) = choice(data);
    let _ = transport::opening(data);
    transport::reply(data);
    let whole = transport::frames(data, data.len());
    let pieces = transport::frames(data, usize::from(piece));
    assert_eq!(whole.is_ok(), pieces.is_ok(), "it depends on how the bytes arrive");
    let (Ok((frames, rest, _)), Ok((same, same_rest, capacity))) = (whole, pieces) else { return };
    assert_eq!((&frames, &rest), (&same, &same_rest), "it depends on how the bytes arrive");
    assert!(capacity <= 2 * data.len() + AHEAD_BYTES, "a buffer of {capacity} bytes");
    let bytes: usize = frames.iter().map(|frame| frame.len() + 4).sum();
    assert_eq!(bytes + rest.len(), data.len());
    for frame in frames {
        for kind in 0..transport::MESSAGES {
            let _ = transport::message(kind, &frame);
        }
    }
}

/// One message of any kind, or the opening of a connection.
pub(crate) fn message(data: &[u8]) {
    let (kind, body) = choice(data);
    if kind == transport::MESSAGES {
        if let Ok(stream) = transport::preface(body)
            && body.len() < transport::OPENING_BYTES_MAX / 2
        {
            let _ = transport::opening(&stream);
        }
        return;
    }
    let frame = [&[1], body].concat();
    if let Some(once) = transport::message(kind, &frame) {
        assert!(once.len() <= frame.len(), "it grows when it is passed on");
        assert_eq!(transport::message(kind, &once).as_ref(), Some(&once));
    }
}
