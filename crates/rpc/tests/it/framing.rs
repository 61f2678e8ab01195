//! Bytes → frames: sloppy and broken input as data, every chunking, memory.

use crate::support::{frame, scale};
use proptest::prelude::*;
use rpc::Framing;
use rpc::framing::{CHUNK, Decoder, Frame, Refusal};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Got {
    Message(String),
    Refused(Refusal),
}

fn message(text: &str) -> Got {
    Got::Message(text.to_owned())
}

fn decode(framing: Framing, limit: usize, chunks: &[&[u8]]) -> Vec<Got> {
    let mut decoder = Decoder::new(framing, limit);
    let mut got = Vec::new();
    for chunk in chunks {
        let mut rest = *chunk;
        while !rest.is_empty() {
            let space = decoder.space();
            let count = rest.len().min(space.len());
            space[..count].copy_from_slice(&rest[..count]);
            decoder.filled(count);
            rest = &rest[count..];
            while let Some(frame) = decoder.next_frame() {
                got.push(note(frame));
            }
            assert!(decoder.capacity() <= limit + 2 * CHUNK, "holds {} bytes", decoder.capacity());
        }
    }
    got.extend(decoder.finish().map(note));
    got
}

fn note(frame: Frame<'_>) -> Got {
    match frame {
        Frame::Message(body) => Got::Message(String::from_utf8_lossy(body).into_owned()),
        Frame::Refused { refusal, .. } => Got::Refused(refusal),
    }
}

#[track_caller]
fn check(framing: Framing, input: &str, expected: &[Got]) {
    let input = input.as_bytes();
    assert_eq!(decode(framing, 100, &[input]), expected);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode(framing, 100, &bytes), expected, "byte by byte");
}

#[test]
fn headers_of_real_and_sloppy_clients() {
    let header = |input: &str, expected: &[Got]| check(Framing::Header, input, expected);
    header("Content-Length: 2\r\n\r\n{}", &[message("{}")]);
    header("Content-Length: 3\r\n\r\n{}\nContent-Length: 2\r\n\r\n[]", &[message("{}\n"), message("[]")]);
    header("content-LENGTH:2\n\n{}", &[message("{}")]);
    header("X-Extra: 1\r\nContent-Length : 2 \r\nAnother_One: a:b\r\n\r\n{}", &[message("{}")]);
    header("Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", &[message("{}")]);
    header("\u{feff}Content-Length: 2\r\n\r\n{}", &[message("{}")]);
    header("Content-Length: 2\r\n\r\n{}\r\n\r\nContent-Length: 2\r\n\r\n[]", &[message("{}"), message("[]")]);
    header("Content-Length: 0\r\n\r\n", &[message("")]);
    for good in ["", "; charset=utf-8", ";charset=UTF8", "; charset=\"utf-8\"", "; x=y; Charset = Utf-8"] {
        let input =
            format!("Content-Type: application/vscode-jsonrpc{good}\r\nContent-Length: 2\r\n\r\n{{}}");
        header(&input, &[message("{}")]);
    }
}

#[test]
fn broken_headers_cost_one_message() {
    let lost = Got::Refused(Refusal::Header);
    let tail = "Content-Length: 2\r\n\r\n[]";
    let long = "A: b\r\n".repeat(2000);
    for broken in [
        "hello\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n",
        "Content-Type: text/plain\r\n\r\n{}",
        "Content-Length: two\r\n\r\n{}",
        "Content-Length: -2\r\n\r\n{}",
        "Content-Length:\r\n\r\n{}",
        "Content-Length: 99999999999999999999\r\n\r\n{}",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "Content-Length: two\r\n\r\n{\"text\":\"Content-Length: 7\",\"more\":\"content-length: \"}",
        "{}\r\n\r\n",
        &long,
        "}",
        "\u{e9}\"}}",
        &format!("Content-Length: {}2\r\n\r\n{{}}", " ".repeat(10_000)),
        &"x".repeat(20_000),
    ] {
        check(Framing::Header, &format!("{broken}{tail}"), &[lost.clone(), message("[]")]);
    }
    // A length that is too short leaves a rest, one that is too long swallows the next header.
    check(
        Framing::Header,
        &format!("Content-Length: 1\r\n\r\n{{}}\n{tail}"),
        &[message("{"), lost.clone(), message("[]")],
    );
    check(
        Framing::Header,
        &format!("Content-Length: 9\r\n\r\n{{}}{tail}{tail}"),
        &[message("{}Content"), lost, message("[]")],
    );
}

#[test]
fn refused_messages_are_skipped() {
    let large = Got::Refused(Refusal::TooLarge);
    for length in [101, 5000, 200_000] {
        let body = "x".repeat(length);
        let input = format!("Content-Length: {length}\r\n\r\n{body}Content-Length: 2\r\n\r\n{{}}");
        check(Framing::Header, &input, &[large.clone(), message("{}")]);
        check(Framing::Newline, &format!("{body}\n{{}}\n"), &[large.clone(), message("{}")]);
    }
    check(
        Framing::Newline,
        &format!("{}\r\n{{}}\n", "x".repeat(100)),
        &[message(&"x".repeat(100)), message("{}")],
    );
    check(
        Framing::Header,
        "Content-Type: application/json; charset=utf-16\r\nContent-Length: 4\r\n\r\nabcdContent-Length: 2\r\n\r\n{}",
        &[Got::Refused(Refusal::Charset), message("{}")],
    );
}

#[test]
fn lines_of_real_and_sloppy_clients() {
    let newline = |input: &str, expected: &[Got]| check(Framing::Newline, input, expected);
    newline("{}\n[]\n", &[message("{}"), message("[]")]);
    newline("{}\r\n\r\n\n  \n[]\n", &[message("{}"), message("[]")]);
    newline("{}\n[]", &[message("{}"), message("[]")]);
    newline("{}\n  ", &[message("{}")]);
}

#[test]
fn memory_follows_the_messages() {
    let limit = 8 << 20;
    for framing in [Framing::Header, Framing::Newline] {
        let mut decoder = Decoder::new(framing, limit);
        let input = [frame(framing, &vec![b'x'; limit]), frame(framing, b"{}")].concat();
        let mut most = 0;
        for chunk in input.chunks(CHUNK) {
            decoder.space()[..chunk.len()].copy_from_slice(chunk);
            decoder.filled(chunk.len());
            most = most.max(decoder.capacity());
            while decoder.next_frame().is_some() {}
        }
        assert!(most <= limit + 2 * CHUNK, "{framing:?}: {most}");
        decoder.space();
        assert!(decoder.capacity() <= 2 * CHUNK, "{framing:?} keeps {}", decoder.capacity());
    }
    // A length alone reserves nothing.
    let mut decoder = Decoder::new(Framing::Header, 1 << 30);
    let header = b"Content-Length: 1000000000\r\n\r\n";
    decoder.space()[..header.len()].copy_from_slice(header);
    decoder.filled(header.len());
    assert!(decoder.next_frame().is_none());
    decoder.space();
    assert!(decoder.capacity() <= 2 * CHUNK);
}

fn bodies() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zé{}\":, \\\\-]{1,60}", 1..8)
}

fn cut<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    at.sort_unstable();
    at.push(input.len());
    let mut from = 0;
    at.into_iter().map(|to| &input[std::mem::replace(&mut from, to)..to]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500 * scale() as u32))]

    #[test]
    fn every_chunking_gives_the_same_messages(
        bodies in bodies(),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        header in any::<bool>(),
    ) {
        let framing = if header { Framing::Header } else { Framing::Newline };
        let input: Vec<u8> = bodies.iter().flat_map(|body| frame(framing, body.as_bytes())).collect();
        let expected: Vec<Got> =
            bodies.iter().filter(|body| header || !body.trim_ascii().is_empty()).map(|body| message(body)).collect();
        prop_assert_eq!(decode(framing, 1000, &cut(&input, &cuts)), expected);
    }

    #[test]
    fn every_chunking_of_rubbish_gives_the_same_frames(
        parts in prop::collection::vec(
            prop_oneof![
                Just("Content-Length: 5\r\n\r\n".to_owned()),
                Just("content-length: 3\n\n".to_owned()),
                Just("Content-Length: 300\r\n\r\n".to_owned()),
                Just("Content-Type: a; charset=latin1\r\n".to_owned()),
                "[a-zA-Z:\r\n{}é-]{0,40}",
            ],
            0..12,
        ),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        header in any::<bool>(),
    ) {
        let framing = if header { Framing::Header } else { Framing::Newline };
        let input = parts.concat();
        let whole = decode(framing, 100, &[input.as_bytes()]);
        prop_assert_eq!(decode(framing, 100, &cut(input.as_bytes(), &cuts)), whole);
    }
}
