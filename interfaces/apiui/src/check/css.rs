//! The text of a style sheet, checked with a small reader of its own. Owns which rules, selectors, properties and values
//! a `<style>` may hold; knows no syntax tree of the module.
//!
//! Invariant: a text that passes fetches nothing (no address can be spelled without `url`, `image`, `src(` or an escape)
//! and styles nothing outside the interface (every selector begins with the interface's own class, and no sibling
//! combinator leads out of it).

use super::lists::{CONSTANT_STYLES, FREE_STYLES};

/// What every selector, and every name of an animation, begins with.
const OWN: &str = "dragoman";

/// How deep conditions may be nested.
const DEPTH: usize = 4;

/// Whether a value can hold no address, escape or comment.
pub(super) fn is_addressless(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words = [
        "url",
        "image",
        "src(",
        "element(",
        "paint(",
        "attr(",
        "expression",
        "behavior",
        "binding",
        "import",
    ];
    !value.contains(['\\', '<', '@', '{', '}', ';'])
        && !value.contains("/*")
        && !words.iter().any(|word| lower.contains(word))
        && !value.chars().any(|character| character.is_control() && !character.is_ascii_whitespace())
}

/// Looks at a whole style sheet; the error says what is wrong.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.contains(['\\', '<']) {
        return Err("it holds `\\` or `<`".to_owned());
    }
    rules(&without_comments(text)?, DEPTH)
}

/// A comment becomes a space; text within quotes stays, even if it looks like a comment.
fn without_comments(text: &str) -> Result<String, String> {
    let mut kept = String::with_capacity(text.len());
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match quote {
            Some(mark) if mark == character => quote = None,
            Some(_) if matches!(character, '\n' | '\r' | '\u{c}') => {
                return Err("a quoted text does not end".to_owned());
            }
            Some(_) => {}
            None if matches!(character, '"' | '\'') => quote = Some(character),
            None if character == '/' && rest.as_str().starts_with('*') => {
                let Some((_, after)) = rest.as_str()[1..].split_once("*/") else {
                    return Err("a comment does not end".to_owned());
                };
                rest = after.chars();
                kept.push(' ');
                continue;
            }
            None => {}
        }
        kept.push(character);
    }
    if quote.is_some() { Err("a quoted text does not end".to_owned()) } else { Ok(kept) }
}

/// Whether round and square brackets match outside of quotes, so that a browser ends each rule where this reader does.
fn is_balanced(text: &str) -> bool {
    let (mut open, mut quote) = (Vec::new(), None);
    for character in text.chars() {
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, ')' | ']') if open.pop() != Some(character) => return false,
            (None, _) => {}
        }
    }
    open.is_empty() && quote.is_none()
}

/// A sequence of rules, each a head and a block.
fn rules(text: &str, depth: usize) -> Result<(), String> {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (head, block, after) = split_block(rest)?;
        let head = head.trim();
        if !is_balanced(head) {
            return Err(format!("the brackets of `{head}` do not match"));
        }
        match head.strip_prefix('@') {
            Some(condition) => at_rule(condition, block, depth)?,
            None => {
                selectors(head)?;
                declarations(block)?;
            }
        }
        rest = after.trim();
    }
    Ok(())
}

fn at_rule(condition: &str, block: &str, depth: usize) -> Result<(), String> {
    let (name, prelude) = condition
        .split_once(|character: char| character.is_whitespace() || character == '(')
        .unwrap_or((condition, ""));
    if depth == 0 {
        return Err("conditions are nested too deep".to_owned());
    }
    match name {
        "media" | "supports" | "container" if is_addressless(prelude) => rules(block, depth - 1),
        "keyframes" if prelude.trim().starts_with(OWN) && prelude.trim().chars().all(is_word) => {
            keyframes(block)
        }
        "keyframes" => Err(format!("the name of an animation must begin with `{OWN}`")),
        _ => Err(format!("`@{name}` is not on the list")),
    }
}

fn keyframes(text: &str) -> Result<(), String> {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (head, block, after) = split_block(rest)?;
        let is_moment = |part: &str| {
            let part = part.trim();
            matches!(part, "from" | "to")
                || part.strip_suffix('%').is_some_and(|number| number.parse::<f32>().is_ok())
        };
        if !head.split(',').all(is_moment) {
            return Err(format!("`{}` is no moment of an animation", head.trim()));
        }
        declarations(block)?;
        rest = after.trim();
    }
    Ok(())
}

/// The text before the first `{`, what is within its braces, and what follows.
fn split_block(text: &str) -> Result<(&str, &str, &str), String> {
    let (mut open, mut depth, mut quote) = (None, 0usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, ';') if open.is_none() => return Err("a `;` is outside of a rule".to_owned()),
            (None, '{') => {
                open = open.or(Some(at));
                depth += 1;
            }
            (None, '}') => match (open, depth) {
                (Some(open), 1) => return Ok((&text[..open], &text[open + 1..at], &text[at + 1..])),
                (_, 0) => return Err("a `}` closes nothing".to_owned()),
                _ => depth -= 1,
            },
            (None, _) => {}
        }
    }
    Err("a rule does not end".to_owned())
}

fn selectors(list: &str) -> Result<(), String> {
    let allowed = |character: char| {
        is_word(character) || character.is_whitespace() || ".:#>*()[]=\"',%^$|".contains(character)
    };
    if let Some(character) = list.chars().find(|character| !allowed(*character)) {
        return Err(format!("a selector holds `{character}`"));
    }
    for selector in split_outside_brackets(list, ',') {
        let selector = selector.trim();
        if !selector.strip_prefix('.').is_some_and(|rest| rest.starts_with(OWN)) {
            return Err(format!("the selector `{selector}` does not begin with `.{OWN}`"));
        }
    }
    Ok(())
}

fn declarations(block: &str) -> Result<(), String> {
    if !is_balanced(block) {
        return Err("the brackets of a value do not match".to_owned());
    }
    for declaration in split_outside_brackets(block, ';') {
        let declaration = declaration.trim();
        if declaration.is_empty() {
            continue;
        }
        let Some((name, value)) = declaration.split_once(':') else {
            return Err(format!("`{declaration}` is no declaration"));
        };
        let name = name.trim();
        let is_custom =
            name.strip_prefix("--").is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_word));
        let property = camel_case(name);
        let property = property.as_str();
        if !is_custom && !FREE_STYLES.contains(property) && !CONSTANT_STYLES.contains(property) {
            return Err(format!("the property `{name}` is not on the list"));
        }
        if !is_addressless(value) {
            return Err(format!("the value of `{name}` could hold an address"));
        }
    }
    Ok(())
}

/// Splits at the separator where it stands outside of round and square brackets and quotes.
fn split_outside_brackets(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, _) if character == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// `-webkit-line-clamp` → `WebkitLineClamp`, as React spells it.
fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut raise = false;
    for character in name.chars() {
        match character {
            '-' => raise = true,
            _ if raise => {
                out.push(character.to_ascii_uppercase());
                raise = false;
            }
            _ => out.push(character),
        }
    }
    out
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}
