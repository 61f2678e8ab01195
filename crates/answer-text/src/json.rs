//! JSON as models write it: trailing commas, single quotes, Python's words, raw line ends in strings.
//!
//! Invariant: what is incomplete is refused, never completed: a call cut short must not run.

use serde_json::{Map, Number, Value};

const DEEPEST: u32 = 64;

/// The value at the start of `text` and what follows it.
pub(crate) fn value(text: &str) -> Option<(Value, &str)> {
    let mut reader = Reader { rest: text };
    let value = reader.value(0)?;
    Some((value, reader.rest))
}

/// Takes `token` from the start of `rest`, with the white space before it.
pub(crate) fn eat(rest: &mut &str, token: &str) -> bool {
    *rest = rest.trim_start();
    rest.strip_prefix(token).map(|after| *rest = after).is_some()
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        eat(&mut self.rest, token)
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        self.skip();
        if depth > DEEPEST {
            return None;
        }
        match self.rest.chars().next()? {
            '{' => self.object(depth),
            '[' => self.list(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            c if c.is_ascii_digit() || c == '-' => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<Value> {
        self.eat("{");
        let mut map = Map::new();
        loop {
            if self.eat("}") {
                return Some(Value::Object(map));
            }
            self.skip();
            let key = match self.rest.chars().next()? {
                quote @ ('"' | '\'') => self.string(quote)?,
                _ => self.bare_key()?,
            };
            if !self.eat(":") || map.contains_key(&key) {
                return None;
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            if !self.eat(",") {
                return self.eat("}").then_some(Value::Object(map));
            }
        }
    }

    fn list(&mut self, depth: u32) -> Option<Value> {
        self.eat("[");
        let mut list = Vec::new();
        loop {
            if self.eat("]") {
                return Some(Value::Array(list));
            }
            list.push(self.value(depth + 1)?);
            if !self.eat(",") {
                return self.eat("]").then_some(Value::Array(list));
            }
        }
    }

    fn bare_key(&mut self) -> Option<String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let (key, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!key.is_empty()).then(|| key.to_owned())
    }

    fn string(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        chars.next();
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' => {
                    let (_, escaped) = chars.next()?;
                    match escaped {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'b' => text.push('\u{8}'),
                        'f' => text.push('\u{c}'),
                        'u' => text.push(unicode(&mut chars)?),
                        '"' | '\'' | '\\' | '/' => text.push(escaped),
                        // `\d` of a pattern that its writer did not escape twice.
                        other => text.extend(['\\', other]),
                    }
                }
                other => text.push(other),
            }
        }
        None
    }

    fn number(&mut self) -> Option<Value> {
        let end = self.rest.find(|c: char| !"+-.eE0123456789".contains(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse::<Number>().ok().map(Value::Number)
    }

    fn word(&mut self) -> Option<Value> {
        let words = [
            ("true", Value::Bool(true)),
            ("True", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("False", Value::Bool(false)),
            ("null", Value::Null),
            ("None", Value::Null),
        ];
        words.into_iter().find(|(word, _)| self.eat(word)).map(|(_, value)| value)
    }
}

/// `XXXX`, and the other half of a pair.
fn unicode(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let mut unit = || -> Option<u32> {
        (0..4).try_fold(0, |number, _| Some(number * 16 + chars.next()?.1.to_digit(16)?))
    };
    let first = unit()?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    if (chars.next()?.1, chars.next()?.1) != ('\\', 'u') {
        return None;
    }
    let mut unit = || -> Option<u32> {
        (0..4).try_fold(0, |number, _| Some(number * 16 + chars.next()?.1.to_digit(16)?))
    };
    let second = unit()?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_models_write_is_read() {
        for (text, expected) in [
            (r#"{"a": 1, "b": [true, null,],}"#, json!({"a": 1, "b": [true, null]})),
            (r#"{'a': 'it\'s', "b": None}"#, json!({"a": "it's", "b": null})),
            ("{\"a\": \"two\nlines\"}", json!({"a": "two\nlines"})),
            (r#"{a: True, b_2: -1.5e3}"#, json!({"a": true, "b_2": -1500.0})),
            (r#"{"a": "\ud83e\udd80 \u00fc \d"}"#, json!({"a": "🦀 ü \\d"})),
        ] {
            assert_eq!(value(text), Some((expected, "")), "{text}");
        }
        assert_eq!(value("{} rest"), Some((json!({}), " rest")));
    }

    #[test]
    fn what_is_incomplete_or_unclear_is_refused() {
        for text in [
            "",
            "{",
            r#"{"a": "#,
            r#"{"a": "b"#,
            r#"{"a": "b""#,
            r#"{"a": 1 "b": 2}"#,
            "[1,",
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": "\ud83e"}"#,
            "{\"a\": foo}",
            "{: 1}",
            r#"{"a" 1}"#,
            "nope",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
        assert_eq!(value(&"[".repeat(100_000)), None);
    }
}
