//! Answers of the kernel's socket diagnosis (`inet_diag`) about listening sockets.
//!
//! A message is `nlmsghdr` (length u32, type u16, flags u16, sequence u32, port u32) and, for a socket,
//! `inet_diag_msg`: 4 bytes of family and state, 48 of addresses whose last 8 are the cookie (two u32,
//! the low one first), then expiry, receive queue, send queue, user and inode, u32 each. All in the
//! byte order of the machine. The receive queue of a listening socket is its accept queue.

/// Bytes of the header of a message.
const HEADER: usize = 16;
/// Messages begin at multiples of this.
const ALIGN: usize = 4;
const COOKIE: usize = HEADER + 44;
const RECEIVE_QUEUE: usize = HEADER + 56;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const SOCKET: u16 = 20;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// A listening socket.
    Listener {
        /// `SO_COOKIE` of the socket.
        cookie: u64,
        /// Connections that wait to be accepted.
        waiting: u32,
    },
    /// No more sockets.
    Done,
    /// The kernel refused, with its errno.
    Refused(i32),
    /// Something else.
    Other,
}

/// The messages of one packet that answer the question number `sequence`. What is cut off is left out.
pub(crate) fn messages(packet: &[u8], sequence: u32) -> impl Iterator<Item = Message> + '_ {
    let mut rest = packet;
    std::iter::from_fn(move || {
        loop {
            let length = usize::try_from(u32_at(rest, 0)?).ok()?;
            let message = rest.get(..length).filter(|_whole| length >= HEADER)?;
            let next = length.checked_next_multiple_of(ALIGN)?;
            rest = rest.get(next..).unwrap_or_default();
            if u32_at(message, 8)? == sequence {
                return Some(read(message));
            }
        }
    })
}

fn read(message: &[u8]) -> Message {
    let kind = message.get(4..6).and_then(|bytes| bytes.try_into().ok());
    match kind.map(u16::from_ne_bytes) {
        Some(SOCKET) => listener(message).unwrap_or(Message::Other),
        Some(DONE) => Message::Done,
        Some(ERROR) => u32_at(message, HEADER).map_or(Message::Other, |code| {
            Message::Refused(code.cast_signed().saturating_neg())
        }),
        _ => Message::Other,
    }
}

fn listener(message: &[u8]) -> Option<Message> {
    let (low, high) = (u32_at(message, COOKIE)?, u32_at(message, COOKIE + ALIGN)?);
    Some(Message::Listener {
        cookie: u64::from(low) | u64::from(high) << 32,
        waiting: u32_at(message, RECEIVE_QUEUE)?,
    })
}

fn u32_at(bytes: &[u8], place: usize) -> Option<u32> {
    let end = place.checked_add(size_of::<u32>())?;
    let bytes = bytes.get(place..end)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER + body.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes
    }

    fn socket(cookie: u64, waiting: u32) -> Vec<u8> {
        let mut body = vec![0; 72];
        body[44..52].copy_from_slice(&cookie.to_le_bytes());
        body[56..60].copy_from_slice(&waiting.to_ne_bytes());
        body
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn listeners_end_and_refusals_are_told_apart_and_old_answers_skipped() {
        let packet = [
            message(SOCKET, 7, &socket(0x1_0000_0002, 5)),
            message(SOCKET, 6, &socket(3, 9)),
            message(DONE, 7, &[0; 4]),
            message(ERROR, 7, &(-13_i32).to_ne_bytes()),
            message(99, 7, &[]),
        ]
        .concat();
        let told: Vec<Message> = messages(&packet, 7).collect();
        assert_eq!(
            told,
            [
                Message::Listener {
                    cookie: 0x1_0000_0002,
                    waiting: 5
                },
                Message::Done,
                Message::Refused(13),
                Message::Other
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_end(packet: Vec<u8>, sequence: u32) {
            prop_assert!(messages(&packet, sequence).count() <= packet.len());
        }
    }
}
