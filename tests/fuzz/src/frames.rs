//! Frames of the gate socket: what is taken is written back as the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_abi::message::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::decode(bytes) {
        let frame = message.encode();
        assert_eq!(Message::decode(frame.bytes()), Ok(message));
    }
});
