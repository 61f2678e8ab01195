//! The syntax of PDF: objects as values, streams inflated. Reads what is there without the table of references, so that
//! broken files are read too.
//!
//! Invariants: every loop moves forward; nesting, the number of objects and the size of inflated data are bounded.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::ZlibDecoder;

const MAX_DEPTH: usize = 32;
const MAX_OBJECTS: usize = 200_000;
/// A file has one for each time that it was changed.
const MAX_TRAILERS: usize = 100;
/// Bytes of one inflated stream, and of all together.
const MAX_STREAM: u64 = 16 << 20;
const MAX_INFLATED: usize = 128 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object {
    Null,
    Number(f64),
    Name(Vec<u8>),
    Text(Vec<u8>),
    List(Vec<Object>),
    Dict(Dict),
    Reference(u32),
    /// A word that is no object: an operator of a content.
    Word(Vec<u8>),
}

pub(super) type Dict = HashMap<Vec<u8>, Object>;

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn name(&self) -> Option<&[u8]> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn list(&self) -> Option<&[Object]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    pub(super) fn reference(&self) -> Option<u32> {
        if let Self::Reference(number) = self { Some(*number) } else { None }
    }

    fn is_word(&self, wanted: &[u8]) -> bool {
        matches!(self, Self::Word(word) if word == wanted)
    }

    pub(super) fn dict(&self) -> Option<&Dict> {
        if let Self::Dict(dict) = self { Some(dict) } else { None }
    }
}

/// Reads objects from bytes, one after the other.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek(0) {
            if byte == b'%' {
                while self.peek(0).is_some_and(|byte| byte != b'\n' && byte != b'\r') {
                    self.at += 1;
                }
            } else if is_space(byte) {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// The next object or word; `None` at the end. References are joined from their three parts.
    pub(super) fn next(&mut self, depth: usize) -> Option<Object> {
        self.skip_space();
        let first = self.peek(0)?;
        if depth > MAX_DEPTH {
            self.at = self.bytes.len();
            return None;
        }
        match first {
            b'/' => Some(Object::Name(self.name())),
            b'(' => Some(Object::Text(self.literal())),
            b'<' if self.peek(1) == Some(b'<') => Some(self.dict(depth)),
            b'<' => Some(Object::Text(self.hexadecimal())),
            b'[' => Some(self.list(depth)),
            b')' | b'>' | b']' | b'{' | b'}' => {
                self.at += 1;
                Some(Object::Word(vec![first]))
            }
            _ => Some(self.number_or_word()),
        }
    }

    fn name(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut name = Vec::new();
        while let Some(byte) = self.peek(0).filter(|byte| !is_space(*byte) && !is_delimiter(*byte)) {
            let escaped = (byte == b'#')
                .then(|| Some(16 * hex_digit(self.peek(1)?)? + hex_digit(self.peek(2)?)?))
                .flatten();
            self.at += if escaped.is_some() { 3 } else { 1 };
            name.push(escaped.unwrap_or(byte));
        }
        name
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let (mut text, mut open) = (Vec::new(), 1);
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    text.extend(self.escaped());
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escaped(&mut self) -> Option<u8> {
        let byte = self.peek(0)?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            // A line that goes on.
            b'\r' | b'\n' => {
                if byte == b'\r' && self.peek(0) == Some(b'\n') {
                    self.at += 1;
                }
                return None;
            }
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit) = self.peek(0).filter(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                u8::try_from(code & 0xff).unwrap_or_default()
            }
            other => other,
        })
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut digits = Vec::new();
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            digits.extend(hex_digit(byte));
        }
        digits.chunks(2).map(|pair| 16 * pair[0] + pair.get(1).copied().unwrap_or_default()).collect()
    }

    fn list(&mut self, depth: usize) -> Object {
        self.at += 1;
        let mut list = Vec::new();
        while let Some(object) = self.next(depth + 1) {
            if object.is_word(b"]") {
                break;
            } else if object.is_word(b"R") {
                join_reference(&mut list);
            } else {
                list.push(object);
            }
        }
        Object::List(list)
    }

    fn dict(&mut self, depth: usize) -> Object {
        self.at += 2;
        let mut parts = Vec::new();
        while let Some(object) = self.next(depth + 1) {
            if object.is_word(b">") {
                self.at += usize::from(self.peek(0) == Some(b'>'));
                break;
            } else if object.is_word(b"R") {
                join_reference(&mut parts);
            } else {
                parts.push(object);
            }
        }
        let mut dict = Dict::new();
        let mut parts = parts.into_iter();
        while let Some(key) = parts.next() {
            if let (Object::Name(key), Some(value)) = (key, parts.next()) {
                dict.insert(key, value);
            }
        }
        Object::Dict(dict)
    }

    fn number_or_word(&mut self) -> Object {
        let start = self.at;
        while self.peek(0).is_some_and(|byte| !is_space(byte) && !is_delimiter(byte)) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok());
        match number.filter(|number| number.is_finite()) {
            Some(number) => Object::Number(number),
            None if word == b"null" => Object::Null,
            None => Object::Word(word.to_vec()),
        }
    }
}

/// `12 0 R`: the two numbers before the word become a reference.
fn join_reference(parts: &mut Vec<Object>) {
    let number = parts.len().checked_sub(2).and_then(|at| parts[at].number());
    if let Some(number) = number.filter(|number| (0.0..f64::from(u32::MAX)).contains(number)) {
        parts.truncate(parts.len() - 2);
        // The range was checked above.
        parts.push(Object::Reference(number as u32));
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// All objects of a file by their numbers, and where the data of streams stands.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    objects: HashMap<u32, Object>,
    streams: HashMap<u32, usize>,
    inflated: usize,
}

impl<'a> File<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let mut file = Self { bytes, objects: HashMap::new(), streams: HashMap::new(), inflated: 0 };
        file.read_plain_objects();
        file.read_packed_objects();
        file
    }

    /// Finds `N G obj` wherever it stands; a later one with the same number replaces an earlier one.
    fn read_plain_objects(&mut self) {
        let mut at = 0;
        while let Some(found) = find(self.bytes, b" obj", at) {
            at = found + 4;
            let Some(number) = number_before(&self.bytes[..found]) else { continue };
            let mut reader = Reader::new(self.bytes, at);
            let Some(object) = reader.next(0) else { break };
            if self.objects.len() >= MAX_OBJECTS {
                break;
            }
            self.streams.remove(&number);
            if matches!(object, Object::Dict(_)) {
                reader.skip_space();
                if self.bytes[reader.at..].starts_with(b"stream") {
                    let mut data = reader.at + 6;
                    data += usize::from(self.bytes.get(data) == Some(&b'\r'));
                    data += usize::from(self.bytes.get(data) == Some(&b'\n'));
                    self.streams.insert(number, data);
                    reader.at = self.stream_end(object.dict(), data);
                }
            }
            at = reader.at.max(at);
            self.objects.insert(number, object);
        }
    }

    /// Objects that are compressed in streams of objects.
    fn read_packed_objects(&mut self) {
        let is_packed = |object: &Object| object.dict().is_some_and(|dict| is_name(dict, b"Type", b"ObjStm"));
        let packed: Vec<u32> =
            self.objects.iter().filter(|(_, object)| is_packed(object)).map(|(number, _)| *number).collect();
        for number in packed {
            let Some(dict) = self.object(number).and_then(Object::dict).cloned() else { continue };
            let count = dict.get(&b"N"[..]).and_then(Object::number).unwrap_or(0.0).clamp(0.0, 1e5) as usize;
            let first =
                dict.get(&b"First"[..]).and_then(Object::number).unwrap_or(0.0).clamp(0.0, 1e9) as usize;
            let Some(data) = self.stream(number) else { continue };
            let mut head = Reader::new(&data, 0);
            for _ in 0..count {
                let (Some(own), Some(offset)) = (head.next(0), head.next(0)) else { break };
                let (Some(own), Some(offset)) = (own.number(), offset.number()) else { break };
                let at = first.saturating_add(offset.clamp(0.0, 1e9) as usize);
                if let Some(object) = Reader::new(&data, at).next(0)
                    && self.objects.len() < MAX_OBJECTS
                {
                    self.objects.entry(own.clamp(0.0, 4e9) as u32).or_insert(object);
                }
            }
        }
    }

    /// By the word of a trailer, or of the dictionary that stands for one.
    pub(super) fn is_encrypted(&self) -> bool {
        let says_so = |dict: &Dict| dict.contains_key(&b"Encrypt"[..]);
        let in_objects = self.objects.values().filter_map(Object::dict).any(says_so);
        let trailers = memchr::memmem::find_iter(self.bytes, b"trailer").take(MAX_TRAILERS);
        let mut trailers = trailers.filter_map(|at| Reader::new(self.bytes, at + 7).next(0));
        in_objects || trailers.any(|trailer| trailer.dict().is_some_and(says_so))
    }

    pub(super) fn object(&self, number: u32) -> Option<&Object> {
        self.objects.get(&number)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, &Object)> {
        self.objects.iter().map(|(number, object)| (*number, object))
    }

    /// The object itself, behind its references.
    pub(super) fn resolve<'o>(&'o self, object: &'o Object) -> &'o Object {
        let mut object = object;
        for _ in 0..MAX_DEPTH {
            let Object::Reference(number) = object else { return object };
            match self.object(*number) {
                Some(next) => object = next,
                None => return &Object::Null,
            }
        }
        &Object::Null
    }

    pub(super) fn get<'o>(&'o self, dict: &'o Dict, key: &[u8]) -> &'o Object {
        dict.get(key).map_or(&Object::Null, |object| self.resolve(object))
    }

    /// The data of a stream; `None` where it has a filter that texts do not have.
    pub(super) fn stream(&mut self, number: u32) -> Option<Vec<u8>> {
        let dict = self.object(number)?.dict()?.clone();
        let start = *self.streams.get(&number)?;
        let end = self.stream_end(Some(&dict), start);
        let raw = &self.bytes[start.min(self.bytes.len())..end.min(self.bytes.len())];
        let filter = self.get(&dict, b"Filter");
        let one = std::slice::from_ref(filter);
        let filters: Vec<&[u8]> = filter.list().unwrap_or(one).iter().filter_map(Object::name).collect();
        match filters.as_slice() {
            _ if self.inflated >= MAX_INFLATED => None,
            [] => {
                self.inflated += raw.len();
                Some(raw.to_vec())
            }
            [b"FlateDecode"] => {
                let mut data = Vec::new();
                // What was inflated before an error is text all the same.
                let _ = ZlibDecoder::new(raw).take(MAX_STREAM).read_to_end(&mut data);
                self.inflated += data.len();
                Some(data)
            }
            _ => None,
        }
    }

    /// By the length that the stream states, if its end is there, else by looking for the end.
    fn stream_end(&self, dict: Option<&Dict>, start: usize) -> usize {
        let stated = dict.map(|dict| self.get(dict, b"Length")).and_then(Object::number);
        let stated = stated.map(|length| start.saturating_add(length.clamp(0.0, 4e9) as usize));
        let is_right = |end: &usize| {
            let rest = self.bytes.get(*end..).unwrap_or_default();
            find(&rest[..rest.len().min(20)], b"endstream", 0).is_some()
        };
        stated.filter(is_right).or_else(|| find(self.bytes, b"endstream", start)).unwrap_or(self.bytes.len())
    }
}

pub(super) fn is_name(dict: &Dict, key: &[u8], name: &[u8]) -> bool {
    matches!(dict.get(key), Some(Object::Name(own)) if own == name)
}

/// The number of an object, from the bytes before its word: `12 0`.
fn number_before(bytes: &[u8]) -> Option<u32> {
    let (_, before) = last_number(bytes)?;
    let end = before.iter().rposition(|byte| !is_space(*byte))? + 1;
    last_number(&before[..end]).map(|(number, _)| number)
}

/// The digits at the end, and what is before them.
fn last_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let start = bytes.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let number = std::str::from_utf8(&bytes[start..]).ok()?.parse().ok()?;
    Some((number, &bytes[..start]))
}

pub(super) fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find(bytes.get(from..)?, wanted).map(|at| from + at)
}
