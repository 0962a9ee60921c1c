//! The part of RFC 6455 that exec needs: the handshake, and frames in both directions. It does no I/O.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text that both peers append to the key (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The maximum length of a client's payload.
const MAX_PAYLOAD: usize = 1024 * 1024;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation,
    Data,
    Close,
    Ping,
    Pong,
}

/// A frame of a client, unmasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientFrame {
    pub(crate) opcode: Opcode,
    pub(crate) payload: Vec<u8>,
}

/// The client violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid WebSocket frame, or payload longer than 1 MiB")]
pub(crate) struct NotAFrame;

/// `Sec-WebSocket-Accept` for a client's `Sec-WebSocket-Key`.
pub(crate) fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()))
}

/// Removes the first frame from the received bytes; `None` if it is incomplete.
pub(crate) fn take(received: &mut Vec<u8>) -> Result<Option<ClientFrame>, NotAFrame> {
    let [first, second, ..] = *received.as_slice() else { return Ok(None) };
    if second & 0x80 == 0 {
        // A client must mask every frame (section 5.1).
        return Err(NotAFrame);
    }
    let bytes = |from: usize, count: usize| -> Option<u64> {
        let slice = received.get(from..from + count)?;
        Some(slice.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)))
    };
    let (length, head) = match second & 0x7f {
        126 => (bytes(2, 2), 4),
        127 => (bytes(2, 8), 10),
        short => (Some(u64::from(short)), 2),
    };
    let Some(length) = length else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_PAYLOAD).ok_or(NotAFrame)?;
    let start = head + 4;
    if received.len() < start + length {
        return Ok(None);
    }
    let opcode = match first & 0x0f {
        0 => Opcode::Continuation,
        1 | 2 => Opcode::Data,
        8 => Opcode::Close,
        9 => Opcode::Ping,
        10 => Opcode::Pong,
        _ => return Err(NotAFrame),
    };
    let rest = received.split_off(start + length);
    let frame = std::mem::replace(received, rest);
    let mask = &frame[head..start];
    let payload = frame[start..].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Ok(Some(ClientFrame { opcode, payload }))
}

/// A frame of the server: not fragmented and not masked.
pub(crate) fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let code = match opcode {
        Opcode::Continuation => 0,
        Opcode::Data => 2,
        Opcode::Close => 8,
        Opcode::Ping => 9,
        Opcode::Pong => 10,
    };
    let mut out = vec![0x80 | code];
    match payload.len() {
        short @ 0..=125 => out.push(u8::try_from(short).unwrap_or_default()),
        middle @ 126..=0xffff => {
            out.push(126);
            out.extend(u16::try_from(middle).unwrap_or_default().to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut out = vec![0x80 | opcode];
        if payload.len() < 126 {
            out.push(0x80 | u8::try_from(payload.len()).unwrap());
        } else {
            out.push(0xfe);
            out.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
        out.extend(mask);
        out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        out
    }

    #[test]
    fn the_example_of_the_rfc_is_accepted() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn frames_can_be_split_anywhere() {
        let long = vec![7; 300];
        let all = [masked(2, b"abc"), masked(2, &long), masked(8, b"")].concat();
        let (mut arrived, mut taken) = (Vec::new(), Vec::new());
        for byte in all {
            arrived.push(byte);
            while let Some(frame) = take(&mut arrived).unwrap() {
                taken.push(frame);
            }
        }
        assert_eq!(taken.len(), 3);
        assert_eq!((taken[0].payload.as_slice(), taken[1].payload.len()), (b"abc".as_slice(), 300));
        assert_eq!(taken[2].opcode, Opcode::Close);
    }

    #[test]
    fn unmasked_and_long_frames_are_refused() {
        assert_eq!(take(&mut vec![0x82, 0x01, 0]), Err(NotAFrame));
        let mut long = vec![0x82, 0xff];
        long.extend(u64::MAX.to_be_bytes());
        assert_eq!(take(&mut long), Err(NotAFrame));
    }

    #[test]
    fn lengths_have_the_shortest_encoding() {
        assert_eq!(frame(Opcode::Data, b"a"), [0x82, 1, b'a']);
        assert_eq!(&frame(Opcode::Data, &[0; 200])[..4], [0x82, 126, 0, 200]);
        assert_eq!(&frame(Opcode::Data, &vec![0; 70_000])[..2], [0x82, 127]);
    }
}
