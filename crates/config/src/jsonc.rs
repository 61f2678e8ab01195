//! One raw text of settings: JSON with comments → a JSON object, or what is wrong with it and where.
//! A text is taken as a whole or not at all.

use std::io;
use std::path::Path;

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use platform::project_files;
use serde_json::{Map, Number, Value};

/// A settings file is written by hand; more than this is a mistake or an attack.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// So many keys and list entries take well under a second to read.
const MAX_VALUES: usize = 20_000;

/// Why a text cannot be used, e.g. `line 3, column 14: expected comma`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceError(pub(crate) String);

/// The text of a file, `None` when there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, SourceError> {
    decode(project_files::read_named(path, MAX_FILE_BYTES))
}

/// The same for a file of a project: a link that leads out of it is refused.
pub(crate) fn read_beneath(root: &Path, path: &Path) -> Result<Option<String>, SourceError> {
    decode(project_files::read_beneath(root, path, MAX_FILE_BYTES))
}

fn decode(read: io::Result<Vec<u8>>) -> Result<Option<String>, SourceError> {
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(SourceError(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        Err(error) => return Err(SourceError(format!("it cannot be read ({error})"))),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let (line, column) = position(error.as_bytes(), error.utf8_error().valid_up_to());
        SourceError(format!("line {line}, column {column}: this is no UTF-8 text"))
    })?;
    Ok(Some(text))
}

/// The object that the text holds. An empty text is an empty object.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, SourceError> {
    let text = strip_byte_order_mark(text);
    match ast(text)? {
        None => Ok(Map::new()),
        Some(Ast::Object(object)) => match convert(Ast::Object(object), text, &mut 0)? {
            Value::Object(map) => Ok(map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Ok(Map::new())
            }
        },
        Some(other) => Err(error_at(text, other.start(), "settings must be an object in braces")),
    }
}

/// The place of a value in a text that `parse` accepted: line and column, counted from one.
pub(crate) fn locate<'p>(text: &str, path: impl IntoIterator<Item = &'p str>) -> Option<(usize, usize)> {
    let text = strip_byte_order_mark(text);
    let ast = ast(text).ok()??;
    let mut value = &ast;
    for key in path {
        value = &value.as_object()?.properties.iter().find(|property| property.name.as_str() == key)?.value;
    }
    Some(position(text.as_bytes(), value.start()))
}

/// Some editors put a byte order mark first.
fn strip_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn ast(text: &str) -> Result<Option<Ast<'_>>, SourceError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    let parsed = parsed
        .map_err(|error| error_at(text, error.range().start, &lower_first(&error.kind().to_string())))?;
    Ok(parsed.value)
}

/// `count` is the number of values so far.
fn convert(ast: Ast, text: &str, count: &mut usize) -> Result<Value, SourceError> {
    *count += 1;
    if *count > MAX_VALUES {
        return Err(error_at(text, ast.start(), &format!("there are more than {MAX_VALUES} values")));
    }
    Ok(match ast {
        Ast::NullKeyword(_) => Value::Null,
        Ast::BooleanLit(literal) => Value::Bool(literal.value),
        Ast::StringLit(literal) => Value::String(literal.value.into_owned()),
        Ast::NumberLit(literal) => {
            let number: Result<Number, _> = serde_json::from_str(literal.value);
            Value::Number(number.map_err(|_| error_at(text, literal.range.start, "this is no number"))?)
        }
        Ast::Array(array) => {
            let elements = array.elements.into_iter().map(|element| convert(element, text, count));
            Value::Array(elements.collect::<Result<_, _>>()?)
        }
        Ast::Object(object) => {
            let mut map = Map::new();
            for property in object.properties {
                let at = property.name.start();
                let name = match property.name {
                    ObjectPropName::String(literal) => literal.value.into_owned(),
                    ObjectPropName::Word(literal) => literal.value.to_owned(),
                };
                let value = convert(property.value, text, count)?;
                // The second would silently replace the first: a deny rule could vanish.
                if map.contains_key(&name) {
                    return Err(error_at(text, at, &format!("duplicate key “{name}”")));
                }
                map.insert(name, value);
            }
            Value::Object(map)
        }
    })
}

fn error_at(text: &str, offset: usize, what: &str) -> SourceError {
    let (line, column) = position(text.as_bytes(), offset);
    SourceError(format!("line {line}, column {column}: {what}"))
}

fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (line, column)
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_lowercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_read() {
        let text =
            "\u{feff}// one\n{ /* two */ \"a\": [1, 2.5, -3e2,], \"b\": {\"c\": null, \"d\": \"é\\n\"}, }";
        let want = serde_json::json!({"a": [1, 2.5, -300.0], "b": {"c": null, "d": "é\n"}});
        assert_eq!(Value::Object(parse(text).unwrap()), want);
        assert_eq!(parse(" \n// nothing\n").unwrap(), Map::new());
    }

    #[test]
    fn what_is_broken_is_named_by_line_and_column() {
        let rows = [
            ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9: expected comma"),
            ("{\"a\": ", "line 1, column 7: expected value after colon in object property"),
            ("{\"a\": 1", "line 1, column 1: unterminated object"),
            ("[1]", "line 1, column 1: settings must be an object in braces"),
            ("{\"a\": 'x'}", "line 1, column 7: single-quoted strings are not allowed"),
            ("{\"é\": 1,\n \"é\": 2}", "line 2, column 2: duplicate key “é”"),
            ("{} {}", "line 1, column 4: text cannot contain more than one JSON value"),
            ("{\"a\": 1e999}", "line 1, column 7: this is no number"),
        ];
        for (text, want) in rows {
            assert_eq!(parse(text), Err(SourceError(want.into())), "{text}");
        }
    }

    #[test]
    fn the_place_of_a_key() {
        let text = "{\n \"a\": {\"b.c\": [1], // x\n   \"d\": true}}";
        assert_eq!(locate(text, ["a", "b.c"]), Some((2, 15)));
        assert_eq!(locate(text, ["a", "d"]), Some((3, 9)));
        assert_eq!(locate(text, ["a", "x"]), None);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = format!("{{\"a\": {}", "[".repeat(100_000));
        assert!(parse(&text).is_err());
    }
}
