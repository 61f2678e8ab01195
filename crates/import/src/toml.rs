//! Reads the tables of a TOML file of another program. No dates (they are texts here), no check of repeated keys: the files are
//! those that another program already accepts.
//!
//! Invariant: what is not understood is an error with its line, never a guess.

use serde_json::{Map, Value, json};

/// Tables and lists deeper than this are refused.
const MAX_DEPTH: usize = 16;

/// The whole file as one object.
pub(crate) fn read(text: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { text, at: 0 };
    let (mut root, mut table) = (json!({}), Vec::new());
    loop {
        reader.skip_blank();
        match reader.peek() {
            None => break,
            Some('[') => {
                let is_list = reader.text[reader.at..].starts_with("[[");
                reader.at += if is_list { 2 } else { 1 };
                table = reader.key()?;
                reader.expect(if is_list { "]]" } else { "]" })?;
                let place = reader.place(&mut root, &table)?;
                if is_list {
                    let last = Value::Object(Map::new());
                    if let Some(list) = place.as_array_mut() {
                        list.push(last);
                    } else {
                        *place = Value::Array(vec![last]);
                    }
                }
            }
            Some(_) => {
                let key = reader.key()?;
                reader.expect("=")?;
                let value = reader.value(0)?;
                let place = reader.place(&mut root, &[table.as_slice(), key.as_slice()].concat())?;
                *place = value;
            }
        }
        reader.end_line()?;
    }
    root.as_object_mut().map(std::mem::take).ok_or_else(|| reader.problem())
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn problem(&self) -> String {
        let line =
            self.text.as_bytes()[..self.at.min(self.text.len())].iter().filter(|it| **it == b'\n').count();
        format!("line {} is not understood", line + 1)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Spaces, line ends and comments.
    fn skip_blank(&mut self) {
        loop {
            self.at += self.rest().len() - self.rest().trim_start().len();
            if self.peek() != Some('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        self.skip_spaces();
        match self.rest().starts_with(mark) {
            true => {
                self.at += mark.len();
                Ok(())
            }
            false => Err(self.problem()),
        }
    }

    /// Nothing but a comment may follow on this line.
    fn end_line(&mut self) -> Result<(), String> {
        self.skip_spaces();
        match self.peek() {
            None | Some('\n' | '#') => Ok(()),
            Some('\r') if self.rest().starts_with("\r\n") => Ok(()),
            Some(_) => Err(self.problem()),
        }
    }

    /// `a.b."c d"`.
    fn key(&mut self) -> Result<Vec<String>, String> {
        let mut parts = Vec::new();
        loop {
            self.skip_spaces();
            let part = match self.peek() {
                Some('"' | '\'') => self.string()?,
                _ => {
                    let is_bare = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
                    let end = self.rest().find(|it| !is_bare(it)).unwrap_or(self.rest().len());
                    let bare = self.rest()[..end].to_owned();
                    self.at += end;
                    bare
                }
            };
            if part.is_empty() || parts.len() == MAX_DEPTH {
                return Err(self.problem());
            }
            parts.push(part);
            self.skip_spaces();
            if self.peek() != Some('.') {
                return Ok(parts);
            }
            self.at += 1;
        }
    }

    /// The value at a path, made where it is missing; of a list of tables the last one.
    fn place<'v>(&self, root: &'v mut Value, path: &[String]) -> Result<&'v mut Value, String> {
        let mut place = root;
        for part in path {
            if let Value::Array(list) = place {
                place = list.last_mut().ok_or_else(|| self.problem())?;
            }
            let object = place.as_object_mut().ok_or_else(|| self.problem())?;
            place = object.entry(part.as_str()).or_insert_with(|| json!({}));
        }
        Ok(place)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        self.skip_spaces();
        match self.peek() {
            _ if depth > MAX_DEPTH => Err(self.problem()),
            Some('"' | '\'') => Ok(self.string()?.into()),
            Some('[') => {
                self.at += 1;
                let mut list = Vec::new();
                loop {
                    self.skip_blank();
                    if self.peek() == Some(']') {
                        break;
                    }
                    list.push(self.value(depth + 1)?);
                    self.skip_blank();
                    if self.peek() == Some(']') {
                        break;
                    }
                    self.expect(",")?;
                }
                self.at += 1;
                Ok(list.into())
            }
            Some('{') => self.inline_table(depth),
            _ => self.bare_value(),
        }
    }

    fn inline_table(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut table = json!({});
        loop {
            self.skip_blank();
            if self.peek() == Some('}') {
                break;
            }
            let key = self.key()?;
            self.expect("=")?;
            let value = self.value(depth + 1)?;
            *self.place(&mut table, &key)? = value;
            self.skip_blank();
            if self.peek() == Some('}') {
                break;
            }
            self.expect(",")?;
        }
        self.at += 1;
        Ok(table)
    }

    /// A number, a switch, or a date, which stays a text.
    fn bare_value(&mut self) -> Result<Value, String> {
        let is_bare = |it: char| it.is_ascii_alphanumeric() || "+-._:".contains(it);
        let end = self.rest().find(|it| !is_bare(it)).unwrap_or(self.rest().len());
        let text = self.rest()[..end].to_owned();
        if text.is_empty() {
            return Err(self.problem());
        }
        self.at += end;
        let number = text.replace('_', "");
        Ok(serde_json::from_str(number.trim_start_matches('+')).unwrap_or_else(|_| text.into()))
    }

    fn string(&mut self) -> Result<String, String> {
        for (mark, is_literal) in [("\"\"\"", false), ("'''", true), ("\"", false), ("'", true)] {
            if !self.rest().starts_with(mark) {
                continue;
            }
            let begin = self.at + mark.len();
            let end = self.end_of_string(begin, mark, is_literal).ok_or_else(|| self.problem())?;
            let inner = &self.text[begin..end];
            self.at = end + mark.len();
            if mark.len() == 1 && inner.contains('\n') {
                return Err(self.problem());
            }
            // A line end right behind the opening mark does not belong to a text of several lines.
            let inner = if mark.len() == 3 {
                inner.trim_start_matches('\r').strip_prefix('\n').unwrap_or(inner)
            } else {
                inner
            };
            return if is_literal {
                Ok(inner.to_owned())
            } else {
                unescape(inner).ok_or_else(|| self.problem())
            };
        }
        Err(self.problem())
    }

    fn end_of_string(&self, begin: usize, mark: &str, is_literal: bool) -> Option<usize> {
        let mut at = begin;
        loop {
            let rest = self.text.get(at..)?;
            if rest.starts_with(mark) {
                return Some(at);
            }
            let mut chars = rest.chars();
            let first = chars.next()?;
            at += first.len_utf8();
            if first == '\\' && !is_literal {
                at += chars.next()?.len_utf8();
            }
        }
    }
}

/// The escapes of a basic string.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let kind = after.chars().next()?;
        rest = &after[kind.len_utf8()..];
        match kind {
            'b' => plain.push('\u{8}'),
            't' => plain.push('\t'),
            'n' => plain.push('\n'),
            'f' => plain.push('\u{c}'),
            'r' => plain.push('\r'),
            'e' => plain.push('\u{1b}'),
            '"' | '\\' => plain.push(kind),
            'u' | 'U' => {
                let digits = if kind == 'u' { 4 } else { 8 };
                let code = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
                plain.push(char::from_u32(code)?);
                rest = &rest[digits..];
            }
            // A backslash at the end of a line joins it with the next one.
            '\n' | '\r' | ' ' | '\t' => rest = rest.trim_start(),
            _ => return None,
        }
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lists_and_texts_are_read() {
        let text = "title = 'a \\ b' # here\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\n  \"-y\", # yes\n  'x,y',\n]\n\
                    env = { \"A B\" = \"1,2\", C.D = 3 }\n[mcp_servers.\"two words\"]\ntext = \"\"\"\none\\\n   two\"\"\"\nsince = 1979-05-27\n\
                    [[list]]\na = 1_000\n[[list]]\na = -2.5\nb = true\r\n";
        let expected = json!({
            "title": "a \\ b",
            "mcp_servers": {
                "files": {"command": "npx", "args": ["-y", "x,y"], "env": {"A B": "1,2", "C": {"D": 3}}},
                "two words": {"text": "onetwo", "since": "1979-05-27"},
            },
            "list": [{"a": 1000}, {"a": -2.5, "b": true}],
        });
        assert_eq!(read(text).map(Value::Object), Ok(expected));
        assert_eq!(read("a = \"\\u00e9\\t\\\"\"").map(Value::Object), Ok(json!({"a": "é\t\""})));
        assert_eq!(read(""), Ok(Map::new()));
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_line() {
        for (text, line) in [
            ("a = 1\nb", 2),
            ("a = \"x\ny\"", 2),
            ("[a\nb = 1", 1),
            ("a = [1 2]", 1),
            ("a = 1 2", 1),
            ("\n\na = \"\"\"\n", 3),
            ("a = \"\\q\"", 1),
            ("a = 1\na.b = 2", 2),
            ("a =", 1),
        ] {
            assert_eq!(read(text), Err(format!("line {line} is not understood")), "{text}");
        }
        assert!(read(&format!("a = {}", "[".repeat(100_000))).is_err(), "no deep recursion");
        for end in 0.."a = { b = ['\u{e9}', \"\\u00e9\"] }".len() {
            let _ = "a = { b = ['\u{e9}', \"\\u00e9\"] }".get(..end).map(read);
        }
    }
}
