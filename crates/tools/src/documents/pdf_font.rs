//! From the codes of a PDF font to letters: its map to Unicode, else the usual encoding of simple fonts.
//!
//! Knows no page. Invariant: a code without a letter is left out, never guessed from another font.

use std::collections::HashMap;

use super::pdf_syntax::{Dict, File, Object, Reader, is_name};

/// Entries of a map.
const MAX_ENTRIES: usize = 100_000;
/// The share of the size that a letter of unknown width takes.
const USUAL_WIDTH: f64 = 0.5;

/// The letters 0x80 to 0x9f of Windows' encoding.
const WINDOWS: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// Names of letters that are longer than one letter.
const NAMES: [(&str, &str); 40] = [
    ("space", " "),
    ("hyphen", "-"),
    ("period", "."),
    ("comma", ","),
    ("colon", ":"),
    ("semicolon", ";"),
    ("parenleft", "("),
    ("parenright", ")"),
    ("bracketleft", "["),
    ("bracketright", "]"),
    ("slash", "/"),
    ("quoteright", "’"),
    ("quoteleft", "‘"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotesingle", "'"),
    ("endash", "–"),
    ("emdash", "—"),
    ("bullet", "•"),
    ("ellipsis", "…"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ff", "ff"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("equal", "="),
    ("plus", "+"),
    ("percent", "%"),
    ("ampersand", "&"),
    ("germandbls", "ß"),
];

#[derive(Default)]
pub(super) struct Font {
    letters: HashMap<u32, String>,
    widths: HashMap<u32, f64>,
    default_width: Option<f64>,
    /// Bytes of a code.
    length: usize,
    /// Codes without an entry are letters of the usual encoding.
    is_simple: bool,
}

impl Font {
    pub(super) fn read(file: &mut File<'_>, dict: &Dict) -> Self {
        let is_composite = is_name(dict, b"Subtype", b"Type0");
        let mut font =
            Self { length: if is_composite { 2 } else { 1 }, is_simple: !is_composite, ..Self::default() };
        if let Object::Dict(encoding) = file.get(dict, b"Encoding") {
            font.read_differences(file.get(encoding, b"Differences"));
        }
        match is_composite {
            true => font.read_composite_widths(file, dict),
            false => font.read_widths(file, dict),
        }
        if let Some(Object::Reference(number)) = dict.get(&b"ToUnicode"[..])
            && let Some(map) = file.stream(*number)
        {
            font.read_map(&map);
        }
        font
    }

    fn read_differences(&mut self, differences: &Object) {
        let Object::List(list) = differences else { return };
        let mut code = 0;
        for entry in list.iter().take(MAX_ENTRIES) {
            if let Some(number) = entry.number() {
                code = number.clamp(0.0, 255.0) as u32;
            } else if let Some(name) = entry.name() {
                self.letters.extend(letter_of(name).map(|letter| (code, letter)));
                code += 1;
            }
        }
    }

    fn read_widths(&mut self, file: &File<'_>, dict: &Dict) {
        let first = file.get(dict, b"FirstChar").number().unwrap_or(0.0).clamp(0.0, 65535.0) as u32;
        let Object::List(list) = file.get(dict, b"Widths") else { return };
        for (code, width) in (first..).zip(list.iter().take(MAX_ENTRIES)) {
            self.widths.extend(file.resolve(width).number().map(|width| (code, width / 1000.0)));
        }
    }

    fn read_composite_widths(&mut self, file: &File<'_>, dict: &Dict) {
        let Object::List(fonts) = file.get(dict, b"DescendantFonts") else { return };
        let Some(own) = fonts.first().and_then(|font| file.resolve(font).dict()) else { return };
        self.default_width = Some(file.get(own, b"DW").number().unwrap_or(1000.0) / 1000.0);
        let Object::List(list) = file.get(own, b"W") else { return };
        let mut entries = list.iter().map(|entry| file.resolve(entry)).take(MAX_ENTRIES);
        while let Some(Object::Number(first)) = entries.next() {
            let first = first.clamp(0.0, 65535.0) as u32;
            match entries.next() {
                Some(Object::List(widths)) => {
                    let widths = (first..).zip(widths.iter().filter_map(Object::number));
                    self.widths.extend(widths.map(|(code, width)| (code, width / 1000.0)));
                }
                Some(Object::Number(last)) => {
                    let Some(Object::Number(width)) = entries.next() else { return };
                    let codes = first..=(last.clamp(0.0, 65535.0) as u32);
                    self.widths.extend(codes.map(|code| (code, width / 1000.0)));
                }
                _ => return,
            }
        }
    }

    /// The map to Unicode: single codes, and ranges of them.
    fn read_map(&mut self, map: &[u8]) {
        let mut reader = Reader::new(map, 0);
        let mut before = Vec::new();
        while let Some(object) = reader.next(0) {
            let Object::Word(word) = object else {
                before.push(object);
                continue;
            };
            match word.as_slice() {
                b"endcodespacerange" => {
                    if let Some(Object::Text(code)) = before.first() {
                        self.length = code.len().clamp(1, 2);
                    }
                }
                b"endbfchar" => before.chunks_exact(2).for_each(|pair| self.add_code(&pair[0], &pair[1])),
                b"endbfrange" => {
                    before.chunks_exact(3).for_each(|row| self.add_range(&row[0], &row[1], &row[2]))
                }
                _ => {}
            }
            before.clear();
        }
    }

    fn add_code(&mut self, code: &Object, letter: &Object) {
        if let (Some(code), Object::Text(letter)) = (code_of(code), letter)
            && self.letters.len() < MAX_ENTRIES
        {
            self.letters.insert(code, utf16(letter));
        }
    }

    fn add_range(&mut self, first: &Object, last: &Object, letters: &Object) {
        let (Some(first), Some(last)) = (code_of(first), code_of(last)) else { return };
        for (code, nth) in (first..=last).zip(0_u32..).take(MAX_ENTRIES) {
            if self.letters.len() >= MAX_ENTRIES {
                return;
            }
            let letter = match letters.list() {
                Some(list) => list.get(nth as usize).and_then(Object::text).map(utf16),
                None => letters.text().and_then(|letter| following(&utf16(letter), nth)),
            };
            self.letters.extend(letter.map(|letter| (code, letter)));
        }
    }

    /// The letters of a text, and how wide it is in parts of the font's size.
    pub(super) fn decode(&self, text: &[u8]) -> (String, f64) {
        let (mut letters, mut width) = (String::new(), 0.0);
        for code in text.chunks(self.length.max(1)) {
            let code = code.iter().fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
            match self.letters.get(&code) {
                Some(letter) => letters.push_str(letter),
                None if self.is_simple => letters.extend(usual_letter(code)),
                None => {}
            }
            width += self.widths.get(&code).copied().or(self.default_width).unwrap_or(USUAL_WIDTH);
        }
        (letters, width)
    }
}

fn code_of(object: &Object) -> Option<u32> {
    let Object::Text(bytes) = object else { return None };
    (bytes.len() <= 2).then(|| bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte)))
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> =
        bytes.chunks(2).map(|pair| pair.iter().fold(0, |unit, byte| unit << 8 | u16::from(*byte))).collect();
    String::from_utf16_lossy(&units)
}

/// The letter that is `nth` places after the last one of a text.
fn following(text: &str, nth: u32) -> Option<String> {
    let last = text.chars().last()?;
    let next = char::from_u32(u32::from(last).checked_add(nth)?)?;
    Some(text[..text.len() - last.len_utf8()].to_owned() + &next.to_string())
}

fn usual_letter(code: u32) -> Option<char> {
    match code {
        0x80..=0x9f => WINDOWS.chars().nth((code - 0x80) as usize).filter(|letter| !letter.is_control()),
        _ => char::from_u32(code).filter(|letter| !letter.is_control() && code < 256),
    }
}

fn letter_of(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(letter.to_string());
    }
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, letter)| (*letter).to_owned());
    let by_code = || {
        let digits = name.strip_prefix("uni").or_else(|| name.strip_prefix('u'))?;
        char::from_u32(u32::from_str_radix(digits.get(..4)?, 16).ok()?).map(|letter| letter.to_string())
    };
    known.or_else(by_code)
}
