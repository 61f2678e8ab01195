//! Mutated frames, a million at full scale: no panic, no hang, bounded memory, and the connection goes on.

use crate::support::*;
use rpc::framing::{CHUNK, Decoder};
use rpc::{CancelMethod, End, Framing, PeerOptions};

/// xorshift64*: the same frames on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}

const BODIES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"h\u00e9llo","n":[1,2.5e3,null,true]}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"typed","params":{"chatId":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"stop","params":{"chatId":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"a":[]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"drop","params":null}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"echo"}]"#,
];

const SPLINTERS: &[&[u8]] = &[
    b"Content-Length: ",
    b"\r\n\r\n",
    b"\n",
    b"\r\n",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"\"",
    b"\\u",
    b"\\ud800",
    b"null",
    b"-",
    b"1e999",
    b"99999999999",
    b"\xff\xfe",
    b"\0",
    b"charset=utf-16",
    b"Content-Type: x; charset=latin1\r\n",
    b"\xef\xbb\xbf",
    b",",
    b":",
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at, random.below(256) as u8),
            3 => bytes.truncate(at),
            4 => {
                let splinter = SPLINTERS[random.below(SPLINTERS.len())];
                bytes.splice(at..at, splinter.iter().copied());
            }
            _ => {
                let end = at + random.below(bytes.len() - at + 1).min(50);
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
}

fn body(random: &mut Random) -> Vec<u8> {
    BODIES[random.below(BODIES.len())].as_bytes().to_vec()
}

fn settings(framing: Framing) -> PeerOptions {
    let cancel = Some(CancelMethod { method: "$/cancelRequest", parameter: "id" });
    PeerOptions { framing, cancel, message_limit: 300, ..PeerOptions::header() }
}

/// Any byte of the stream may be wrong: the decoder stays bounded and the peer reads to the end.
#[tokio::test]
async fn mutated_streams() {
    let per_connection = 1000;
    for connection in 0..50 * scale() as u64 {
        let mut random = Random(0x9E37_79B9 + connection);
        let framing = if connection % 2 == 0 { Framing::Header } else { Framing::Newline };
        let mut client = Client::start(settings(framing));
        let mut decoder = Decoder::new(framing, 300);
        let mut stream = Vec::new();
        for _ in 0..per_connection {
            let mut bytes = frame(framing, &body(&mut random));
            mutate(&mut random, &mut bytes);
            stream.extend(bytes);
        }
        feed(&mut decoder, &mut random, &stream);
        let ended = client.peer.as_ref().unwrap().ended();
        let end = client.exchange(&stream, true, |_| false, ended).await;
        assert_eq!(end, Some(End::Input), "connection {connection}");
    }
}

fn feed(decoder: &mut Decoder, random: &mut Random, stream: &[u8]) {
    let mut rest = stream;
    while !rest.is_empty() {
        let count = rest.len().min(1 + random.below(200));
        decoder.space()[..count].copy_from_slice(&rest[..count]);
        decoder.filled(count);
        while decoder.next_frame().is_some() {}
        assert!(decoder.capacity() <= 300 + 2 * CHUNK);
        rest = &rest[count..];
    }
}

/// Whole frames with mutated bodies: whatever they hold, the next request is answered.
#[tokio::test]
async fn mutated_bodies() {
    let per_connection = 1000;
    for connection in 0..50 * scale() as u64 {
        let mut random = Random(0xB529_7A4D + connection);
        let framing = if connection % 2 == 0 { Framing::Header } else { Framing::Newline };
        let mut client = Client::start(settings(framing));
        let mut stream = Vec::new();
        for _ in 0..per_connection {
            let mut bytes = body(&mut random);
            mutate(&mut random, &mut bytes);
            if framing == Framing::Newline {
                bytes.retain(|byte| *byte != b'\n');
            }
            stream.extend(frame(framing, &bytes));
        }
        stream.extend(frame(framing, br#"{"jsonrpc":"2.0","id":"the last one","method":"nothing"}"#));
        let end = std::future::pending::<()>();
        client.exchange(&stream, false, |answer| answer.contains("the last one"), end).await;
    }
}
