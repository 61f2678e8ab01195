//! Messages on a stream of bytes: a length, a kind, and JSON.
//!
//! Must not know what messages mean. Invariants: nothing larger than [`LARGEST`] is read or written, and memory grows with
//! what came, not with what a peer announces; reading may be dropped between polls and loses nothing.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};

/// A prompt with images is the largest message.
pub(crate) const LARGEST: usize = 64 << 20;
/// A message before the peer has shown that it may attach.
pub(crate) const LARGEST_HELLO: usize = 16 << 10;

const HEAD: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The first message of each side.
    Hello = 1,
    Request = 2,
    Response = 3,
    /// A stored fact, as a line of an exported chat.
    Fact = 4,
    Event = 5,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Hello, Self::Request, Self::Response, Self::Fact, Self::Event]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

pub(crate) struct Frame {
    pub(crate) kind: Kind,
    body: Bytes,
}

impl Frame {
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.body).map_err(|_| malformed())
    }

    pub(crate) fn text(&self) -> io::Result<&str> {
        std::str::from_utf8(&self.body).map_err(|_| malformed())
    }
}

/// The message of the other side says nothing that can be understood.
pub(crate) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message that cannot be understood")
}

pub(crate) struct FrameReader<R> {
    inner: R,
    buffer: BytesMut,
    largest: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, buffer: BytesMut::new(), largest: LARGEST_HELLO }
    }

    /// The peer has shown that it may attach.
    pub(crate) fn trust(&mut self) {
        self.largest = LARGEST;
    }

    /// The line that a connection begins with, without its end.
    pub(crate) async fn line(&mut self, longest: usize) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return String::from_utf8(line[..end].to_vec()).map_err(|_| malformed());
            }
            if self.buffer.len() > longest {
                return Err(malformed());
            }
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next message; `None` where the stream ends between two.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.split_frame()? {
                return Ok(Some(frame));
            }
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    fn split_frame(&mut self) -> io::Result<Option<Frame>> {
        let Some(head) = self.buffer.first_chunk::<HEAD>() else { return Ok(None) };
        let [a, b, c, d, kind] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let kind = Kind::of(kind).ok_or_else(malformed)?;
        if length > self.largest {
            return Err(malformed());
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        Ok(Some(Frame { kind, body: self.buffer.split_to(length).freeze() }))
    }
}

pub(crate) struct FrameWriter<W: AsyncWrite> {
    inner: BufWriter<W>,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner: BufWriter::with_capacity(16 << 10, inner) }
    }

    pub(crate) async fn line(&mut self, line: &str) -> io::Result<()> {
        self.inner.write_all(format!("{line}\n").as_bytes()).await
    }

    pub(crate) async fn json<T: Serialize>(&mut self, kind: Kind, message: &T) -> io::Result<()> {
        let body = serde_json::to_vec(message).map_err(|_| malformed())?;
        self.bytes(kind, &body).await
    }

    pub(crate) async fn bytes(&mut self, kind: Kind, body: &[u8]) -> io::Result<()> {
        let length =
            u32::try_from(body.len()).ok().filter(|_| body.len() <= LARGEST).ok_or_else(malformed)?;
        self.inner.write_all(&length.to_le_bytes()).await?;
        self.inner.write_all(&[kind as u8]).await?;
        self.inner.write_all(body).await
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap();
        [&length.to_le_bytes()[..], &[kind], body].concat()
    }

    async fn read(bytes: &[u8]) -> io::Result<Vec<(Kind, String)>> {
        let mut reader = FrameReader::new(bytes);
        let mut all = Vec::new();
        while let Some(frame) = reader.next().await? {
            all.push((frame.kind, frame.text()?.to_owned()));
        }
        Ok(all)
    }

    #[tokio::test]
    async fn what_is_written_is_read_however_it_is_cut() {
        let mut written = Vec::new();
        let mut writer = FrameWriter::new(&mut written);
        writer.line("dragoman-link").await.unwrap();
        writer.bytes(Kind::Fact, b"one").await.unwrap();
        writer.json(Kind::Event, &"tw\"o").await.unwrap();
        writer.flush().await.unwrap();
        drop(writer);
        for cut in 0..written.len() {
            // Two pieces, the second after the first was read.
            let (first, second) = written.split_at(cut);
            let mut reader = FrameReader::new(AsyncReadExt::chain(first, second));
            assert_eq!(reader.line(64).await.unwrap(), "dragoman-link", "cut at {cut}");
            let one = reader.next().await.unwrap().unwrap();
            assert_eq!((one.kind, one.text().unwrap()), (Kind::Fact, "one"));
            let two = reader.next().await.unwrap().unwrap();
            assert_eq!((two.kind, two.decode::<String>().unwrap().as_str()), (Kind::Event, "tw\"o"));
            assert!(reader.next().await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn bytes_that_are_no_message_are_refused() {
        let announced = u32::try_from(LARGEST_HELLO + 1).unwrap().to_le_bytes();
        let too_large = [&announced[..], &[1]].concat();
        for (what, bytes, kind) in [
            ("an unknown kind", frame(9, b""), io::ErrorKind::InvalidData),
            ("more than a stranger may send", too_large, io::ErrorKind::InvalidData),
            ("an end within a message", frame(1, b"{}")[..6].to_vec(), io::ErrorKind::UnexpectedEof),
            ("an end within the head", vec![1, 0], io::ErrorKind::UnexpectedEof),
            ("no text", frame(1, &[0xff]), io::ErrorKind::InvalidData),
        ] {
            assert_eq!(read(&bytes).await.unwrap_err().kind(), kind, "{what}");
        }
        assert_eq!(read(&frame(5, b"x")).await.unwrap(), [(Kind::Event, "x".to_owned())]);
        let large = frame(1, &vec![b'a'; LARGEST_HELLO + 1]);
        let mut trusted = FrameReader::new(&large[..]);
        trusted.trust();
        assert!(trusted.next().await.unwrap().is_some(), "a peer that showed the secret may send more");
    }

    #[tokio::test]
    async fn a_first_line_has_an_end_and_a_length() {
        assert_eq!(FrameReader::new(&b"abc\nrest"[..]).line(8).await.unwrap(), "abc");
        for (bytes, kind) in [
            (&b"no end"[..], io::ErrorKind::UnexpectedEof),
            (b"far too long for a line", io::ErrorKind::InvalidData),
            (b"\xff\n", io::ErrorKind::InvalidData),
        ] {
            assert_eq!(FrameReader::new(bytes).line(8).await.unwrap_err().kind(), kind);
        }
    }
}
