//! A text file as bytes and as text at once: which encoding it has, and how a change of the text is a change of bytes.
//!
//! Invariant: [`Document::splice`] copies every byte outside the changed ranges from the original; nothing is decoded
//! and encoded again. Knows no line ends and no disk.

use std::ops::Range;

/// Stands in [`Document::text`] for a byte that is not UTF-8: one byte long, so that offsets stay the same.
const STRAY: char = '\u{1a}';

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Utf8,
    /// UTF-8 with some invalid bytes.
    Utf8Stray,
    Utf16Le,
    Utf16Be,
    Latin1,
}

#[derive(Clone, Debug)]
pub struct Document {
    bytes: Vec<u8>,
    encoding: Encoding,
    /// Length of the byte order mark.
    mark: usize,
    text: String,
}

/// The bytes are no text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binary;

/// A change: this range of the text becomes that.
pub type Splice = (Range<usize>, String);

impl Document {
    pub fn read(bytes: Vec<u8>) -> Result<Self, Binary> {
        let (encoding, mark) = detect(&bytes)?;
        let body = &bytes[mark..];
        let text = match encoding {
            Encoding::Utf8 => String::from_utf8(body.to_vec()).map_err(|_| Binary)?,
            Encoding::Utf8Stray => stray_text(body),
            Encoding::Latin1 => body.iter().map(|&byte| char::from(byte)).collect(),
            Encoding::Utf16Le => utf16_text(body, u16::from_le_bytes).ok_or(Binary)?,
            Encoding::Utf16Be => utf16_text(body, u16::from_be_bytes).ok_or(Binary)?,
        };
        Ok(Self { bytes, encoding, mark, text })
    }

    /// A new file, or text that a client gave.
    pub fn from_text(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), encoding: Encoding::Utf8, mark: 0, text: text.to_owned() }
    }

    /// The same file after a change that [`Self::splice`] made.
    pub(crate) fn after(&self, bytes: Vec<u8>, text: String) -> Self {
        Self { bytes, text, ..*self }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// UTF-8 without a byte order mark: what a client's text can stand for.
    pub fn is_plain(&self) -> bool {
        self.encoding == Encoding::Utf8 && self.mark == 0
    }

    /// The text as it is shown: bytes that are no text as the replacement character.
    pub fn shown(&self) -> String {
        match self.encoding {
            Encoding::Utf8Stray => String::from_utf8_lossy(&self.bytes[self.mark..]).into_owned(),
            Encoding::Utf8 | Encoding::Utf16Le | Encoding::Utf16Be | Encoding::Latin1 => self.text.clone(),
        }
    }

    /// The whole file with the changes made. They must be in order and must not overlap.
    pub fn splice(&self, changes: &[Splice]) -> Result<Vec<u8>, String> {
        let mut out = Vec::with_capacity(self.bytes.len());
        let (mut text_at, mut byte_at) = (0, self.mark);
        out.extend_from_slice(&self.bytes[..self.mark]);
        for (range, new) in changes {
            let start = byte_at + self.width(&self.text[text_at..range.start]);
            let end = start + self.width(&self.text[range.clone()]);
            out.extend_from_slice(&self.bytes[byte_at..start]);
            self.encode(new, &mut out)?;
            (text_at, byte_at) = (range.end, end);
        }
        out.extend_from_slice(&self.bytes[byte_at..]);
        Ok(out)
    }

    /// How many bytes of the file a piece of the text is.
    fn width(&self, text: &str) -> usize {
        match self.encoding {
            Encoding::Utf8 | Encoding::Utf8Stray => text.len(),
            Encoding::Latin1 => text.chars().count(),
            Encoding::Utf16Le | Encoding::Utf16Be => text.chars().map(char::len_utf16).sum::<usize>() * 2,
        }
    }

    fn encode(&self, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        match self.encoding {
            Encoding::Utf8 | Encoding::Utf8Stray => out.extend_from_slice(text.as_bytes()),
            Encoding::Utf16Le => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Encoding::Utf16Be => out.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Encoding::Latin1 => {
                for char in text.chars() {
                    let byte = u8::try_from(u32::from(char)).map_err(|_| {
                        format!("The file is Latin-1, which cannot hold `{char}`. Write that character another way.")
                    })?;
                    out.push(byte);
                }
            }
        }
        Ok(())
    }
}

fn detect(bytes: &[u8]) -> Result<(Encoding, usize), Binary> {
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        return Ok((eight_bit(&bytes[3..])?, 3)).map(|(encoding, mark)| match encoding {
            Encoding::Latin1 => (Encoding::Utf8Stray, mark),
            other @ Encoding::Utf8
            | other @ Encoding::Utf8Stray
            | other @ Encoding::Utf16Le
            | other @ Encoding::Utf16Be => (other, mark),
        });
    }
    match bytes {
        [0xff, 0xfe, ..] => return Ok((Encoding::Utf16Le, 2)),
        [0xfe, 0xff, ..] => return Ok((Encoding::Utf16Be, 2)),
        _ => {}
    }
    if bytes.contains(&0) {
        return unmarked_utf16(bytes).map(|encoding| (encoding, 0)).ok_or(Binary);
    }
    eight_bit(bytes).map(|encoding| (encoding, 0))
}

fn eight_bit(bytes: &[u8]) -> Result<Encoding, Binary> {
    if bytes.contains(&0) {
        return Err(Binary);
    }
    if std::str::from_utf8(bytes).is_ok() {
        return Ok(Encoding::Utf8);
    }
    let controls = bytes.iter().filter(|byte| **byte < 0x20 && !b"\t\n\r\x0c\x1b".contains(byte)).count();
    if controls * 10 > bytes.len() {
        return Err(Binary);
    }
    let (mut wide, mut stray) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        stray += chunk.invalid().len();
    }
    Ok(if wide >= stray { Encoding::Utf8Stray } else { Encoding::Latin1 })
}

/// Text in a European language or source code, without a mark: every other byte is zero.
fn unmarked_utf16(bytes: &[u8]) -> Option<Encoding> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let pairs = bytes.len() / 2;
    let zero_at = |offset: usize| bytes.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zero_at(0), zero_at(1));
    match (even, odd) {
        (0, odd) if odd * 10 >= pairs * 9 => Some(Encoding::Utf16Le),
        (even, 0) if even * 10 >= pairs * 9 => Some(Encoding::Utf16Be),
        _ => None,
    }
}

fn stray_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| STRAY));
    }
    text
}

fn utf16_text(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<String, _>>().ok()
}
