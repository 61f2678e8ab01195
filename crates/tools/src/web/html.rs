//! Cuts HTML into tags and text, in one pass whatever the page does. Knows nothing of how it is shown.
//!
//! Invariant: time is linear in the length; what is no tag is text; scripts, styles and comments are neither.

use std::borrow::Cow;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// With character references resolved.
    Text(Cow<'a, str>),
    /// In lower case.
    Open {
        name: String,
        attributes: Vec<(String, String)>,
    },
    Close {
        name: String,
    },
}

pub(super) struct Tokens<'a> {
    rest: &'a str,
}

/// Elements whose content is no text of the page.
const UNSEEN: &[&str] =
    &["script", "style", "iframe", "noembed", "noframes", "template", "svg", "object", "canvas"];
/// Attributes that are looked at; a tag may have any number of others.
const WANTED: &[&str] = &["href", "src", "alt", "start"];

impl<'a> Tokens<'a> {
    pub(super) fn new(page: &'a str) -> Self {
        Self { rest: page }
    }

    fn text(&mut self, end: usize) -> Token<'a> {
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Text(unescape(text))
    }

    /// What stands behind `mark`, or nothing.
    fn skip_past(&mut self, mark: &str) {
        self.rest = self.rest.find(mark).map_or("", |at| &self.rest[at + mark.len()..]);
    }

    fn tag(&mut self) -> Token<'a> {
        let closes = self.rest.starts_with("</");
        self.rest = &self.rest[if closes { 2 } else { 1 }..];
        let name =
            self.take_while(|char| !char.is_whitespace() && char != '>' && char != '/').to_ascii_lowercase();
        let attributes = self.attributes();
        if closes {
            return Token::Close { name };
        }
        if UNSEEN.contains(&name.as_str()) {
            self.skip_element(&name);
            return Token::Close { name };
        }
        Token::Open { name, attributes }
    }

    /// Up to the end of the tag.
    fn attributes(&mut self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        loop {
            self.take_while(|char| char.is_whitespace() || char == '/');
            if self.rest.is_empty() {
                return found;
            }
            if let Some(rest) = self.rest.strip_prefix('>') {
                self.rest = rest;
                return found;
            }
            let name = self.take_while(|char| !char.is_whitespace() && !"=>/".contains(char));
            if name.is_empty() {
                // A stray `=`.
                self.take_one();
                continue;
            }
            self.take_while(char::is_whitespace);
            let value = match self.rest.strip_prefix('=') {
                Some(rest) => {
                    self.rest = rest;
                    self.value()
                }
                None => "",
            };
            if let Some(name) = WANTED.iter().find(|wanted| wanted.eq_ignore_ascii_case(name)) {
                found.push(((*name).to_owned(), unescape(value).into_owned()));
            }
        }
    }

    fn value(&mut self) -> &'a str {
        self.take_while(char::is_whitespace);
        for quote in ['"', '\''] {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                let end = rest.find(quote).unwrap_or(rest.len());
                self.rest = rest.get(end + 1..).unwrap_or_default();
                return &rest[..end];
            }
        }
        self.take_while(|char| !char.is_whitespace() && char != '>')
    }

    /// Drops everything up to the end tag of an element.
    fn skip_element(&mut self, name: &str) {
        let bytes = self.rest.as_bytes();
        let mut from = 0;
        while let Some(offset) = memchr::memmem::find(&bytes[from..], b"</") {
            let at = from + offset + 2;
            if bytes.get(at..at + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            {
                self.rest = &self.rest[at + name.len()..];
                return self.skip_past(">");
            }
            from = at;
        }
        self.rest = "";
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|char| !keep(char)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn take_one(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while !self.rest.is_empty() {
            let Some(after) = self.rest.strip_prefix('<') else {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                return Some(self.text(end));
            };
            if after.starts_with("!--") {
                self.skip_past("-->");
            } else if after.starts_with(['!', '?']) {
                self.skip_past(">");
            } else if after
                .strip_prefix('/')
                .unwrap_or(after)
                .starts_with(|char: char| char.is_ascii_alphabetic())
            {
                return Some(self.tag());
            } else {
                return Some(self.text(1));
            }
        }
        None
    }
}

/// The references that pages use; others stay as they are written.
const NAMED: &[(&str, char)] = &[
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("hellip", '…'),
    ("mdash", '—'),
    ("ndash", '–'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("times", '×'),
    ("deg", '°'),
    ("larr", '←'),
    ("rarr", '→'),
    ("uarr", '↑'),
    ("darr", '↓'),
    ("harr", '↔'),
    ("rArr", '⇒'),
    ("le", '≤'),
    ("ge", '≥'),
    ("ne", '≠'),
    ("plusmn", '±'),
    ("micro", 'µ'),
    ("para", '¶'),
    ("sect", '§'),
    ("euro", '€'),
    ("pound", '£'),
    ("yen", '¥'),
    ("cent", '¢'),
    ("auml", 'ä'),
    ("ouml", 'ö'),
    ("uuml", 'ü'),
    ("Auml", 'Ä'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("szlig", 'ß'),
    ("eacute", 'é'),
    ("egrave", 'è'),
    ("agrave", 'à'),
    ("aacute", 'á'),
    ("ccedil", 'ç'),
    ("ntilde", 'ñ'),
    ("oacute", 'ó'),
    ("iacute", 'í'),
    ("uacute", 'ú'),
    ("aring", 'å'),
    ("oslash", 'ø'),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("check", '✓'),
    ("lbrace", '{'),
    ("rbrace", '}'),
    ("lbrack", '['),
    ("rbrack", ']'),
    ("lpar", '('),
    ("rpar", ')'),
    ("num", '#'),
    ("colon", ':'),
    ("semi", ';'),
    ("comma", ','),
    ("period", '.'),
    ("excl", '!'),
    ("quest", '?'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("equals", '='),
    ("vert", '|'),
    ("grave", '`'),
    ("ast", '*'),
    ("plus", '+'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("commat", '@'),
    ("lowbar", '_'),
    ("Tab", '\t'),
    ("NewLine", '\n'),
];
const LONGEST_REFERENCE: usize = 12;

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(LONGEST_REFERENCE).position(|byte| byte == b';');
        match end.and_then(|end| Some((referred(rest.get(..end)?)?, end))) {
            // A joiner or a soft hyphen shows nothing.
            Some((char, end)) => {
                out.push(char);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn referred(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMED.iter().find(|(known, _)| *known == name).map(|(_, char)| *char);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code).filter(|char| *char == '\n' || *char == '\t' || !char.is_control())
}
