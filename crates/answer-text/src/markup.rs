//! The ways in which models write calls into text, and what must hold before one is believed.
//!
//! Pure. Invariant: either the whole text is calls of offered tools with complete inputs, or there is no call in it.

use std::borrow::Cow;
use std::sync::Arc;

use domain::ToolSpec;
use serde_json::{Map, Value};

use crate::json;

/// The name of a tool as a provider has to write it.
pub type WireName = fn(&str) -> Cow<'_, str>;

/// A call that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// As it was offered.
    pub name: String,
    pub input: Value,
}

/// The tools that may be called.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) wire_name: WireName,
}

impl Offered {
    /// The tool of exactly this name: as offered, with `functions.` before it, or bare where one tool alone has it.
    fn find(&self, name: &str) -> Option<&ToolSpec> {
        let name = name.trim();
        let name = name.strip_prefix("functions.").unwrap_or(name);
        let is_named = |spec: &&ToolSpec| {
            let offered = spec.offered_name();
            offered == name || (self.wire_name)(&offered) == name
        };
        if let Some(tool) = self.tools.iter().find(is_named) {
            return Some(tool);
        }
        let mut bare = self.tools.iter().filter(|spec| spec.name == name);
        bare.next().filter(|_| bare.next().is_none())
    }
}

/// The calls that `text` consists of, if it consists of calls.
pub(crate) fn calls(text: &str, offered: &Offered) -> Option<Vec<Call>> {
    let mut parser = Parser::new(text, offered);
    while !parser.at_end() {
        parser.item()?;
    }
    (!parser.calls.is_empty()).then_some(parser.calls)
}

/// Whether `text` consists of calls and has closed each wrapper that it opened.
pub(crate) fn is_closed(text: &str, offered: &Offered) -> bool {
    let mut parser = Parser::new(text, offered);
    while !parser.at_end() {
        if parser.item().is_none() {
            return false;
        }
    }
    !parser.calls.is_empty() && !parser.is_open
}

/// Tags around calls: opening, closing, whether the closing may be missing at the end of the text.
const WRAPPERS: [(&str, &str); 19] = [
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_call>", "</tool_call>"),
    ("<toolcall>", "</toolcall>"),
    ("<function_calls>", "</function_calls>"),
    ("<function_call>", "</function_call>"),
    ("<functioncall>", "</functioncall>"),
    ("<functions>", "</functions>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<tools>", "</tools>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ("[TOOL_CALLS]", "[/TOOL_CALLS]"),
    ("[TOOL_CALL]", "[/TOOL_CALL]"),
    ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    ("<|python_tag|>", "<|eom_id|>"),
    ("```json", "```"),
    ("```", "```"),
];

/// End marks that the server of a model should have removed.
const ENDS: [&str; 7] =
    ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|end|>", "<|endoftext|>", "<｜end▁of▁sentence｜>"];

struct Parser<'a> {
    rest: &'a str,
    offered: &'a Offered,
    calls: Vec<Call>,
    /// How many wrappers are open.
    depth: u32,
    /// The text ended inside of a wrapper.
    is_open: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, offered: &'a Offered) -> Self {
        Self { rest: text.trim_start(), offered, calls: Vec::new(), depth: 0, is_open: false }
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        json::eat(&mut self.rest, token)
    }

    /// The text up to `end`, which is taken too.
    fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    /// Nothing follows but the marks of an end, or a result that the model made up itself.
    fn at_end(&mut self) -> bool {
        while ENDS.iter().any(|end| self.eat(end)) {}
        self.skip();
        self.rest.is_empty() || (!self.calls.is_empty() && self.rest.starts_with("<tool_response>"))
    }

    fn item(&mut self) -> Option<()> {
        self.skip();
        for (open, close) in WRAPPERS {
            if self.eat(open) {
                return self.wrapped(open, close);
            }
        }
        self.call()
    }

    fn wrapped(&mut self, open: &str, close: &str) -> Option<()> {
        if open == "```" {
            let info = self.rest.split('\n').next()?;
            self.rest = &self.rest[info.len()..];
        }
        let before = self.calls.len();
        self.depth += 1;
        while !self.eat(close) {
            self.skip();
            // A missing end is forgiven where the text ends; nothing in it can be incomplete then.
            if self.at_end() {
                self.is_open = true;
                break;
            }
            self.item()?;
        }
        self.depth -= 1;
        (self.calls.len() > before).then_some(())
    }

    /// One call in any notation.
    fn call(&mut self) -> Option<()> {
        self.skip();
        if self.rest.starts_with(['{', '[']) {
            let (value, rest) = json::value(self.rest)?;
            self.rest = rest.trim_start().strip_prefix([',', ';']).unwrap_or(rest);
            return self.read_json(value);
        }
        if self.eat("<function=") {
            let name = self.until(">")?.trim_matches('"');
            return self.body(name, "</function>");
        }
        if self.eat("<function name=") || self.eat("<invoke name=") || self.eat("<tool_call name=") {
            let quote = self.rest.chars().next().filter(|c| "\"'".contains(*c))?;
            self.rest = &self.rest[1..];
            let name = self.until(if quote == '"' { "\"" } else { "'" })?;
            self.until(">")?;
            let close = ["</function>", "</invoke>", "</tool_call>"]
                .into_iter()
                .find(|end| self.rest.contains(end))?;
            return self.body(name, close);
        }
        if self.eat("<|tool_call_begin|>") {
            let name = self.until("<|tool_call_argument_begin|>")?.trim();
            // `functions.name:0`
            let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
            return self.body(name, "<|tool_call_end|>");
        }
        if self.eat("<｜tool▁call▁begin｜>") {
            return self.deepseek();
        }
        self.named_line()
    }

    fn deepseek(&mut self) -> Option<()> {
        let head = self.until("<｜tool▁sep｜>")?.trim();
        if head != "function" {
            return self.body(head, "<｜tool▁call▁end｜>");
        }
        let name = self.until("\n")?.trim();
        let body = self.until("<｜tool▁call▁end｜>")?.trim();
        let body = body.strip_prefix("```json").and_then(|body| body.strip_suffix("```")).unwrap_or(body);
        let (input, rest) = json::value(body)?;
        if !rest.trim().is_empty() {
            return None;
        }
        self.add(name, input)
    }

    /// `name`, then its input: JSON, or `<arg_key>` and `<arg_value>` pairs; only inside a wrapper.
    fn named_line(&mut self) -> Option<()> {
        if self.depth == 0 {
            return None;
        }
        let end = self.rest.find(['\n', '<', '{', '['])?;
        let (name, rest) = self.rest.split_at(end);
        self.offered.find(name)?;
        self.rest = rest;
        self.eat("[ARGS]");
        self.skip();
        if self.rest.starts_with('{') {
            let (input, rest) = json::value(self.rest)?;
            self.rest = rest;
            return self.add(name, input);
        }
        let mut input = Map::new();
        while self.eat("<arg_key>") {
            let key = self.until("</arg_key>")?.trim();
            if !self.eat("<arg_value>") {
                return None;
            }
            let value = self.until("</arg_value>")?;
            self.parameter(name, key, value, &mut input)?;
        }
        self.add(name, Value::Object(input))
    }

    /// The text between a call's tags: JSON, or a tag for each parameter.
    fn body(&mut self, name: &str, close: &str) -> Option<()> {
        self.skip();
        let mut input = Map::new();
        if self.rest.starts_with('{') {
            let (value, rest) = json::value(self.rest)?;
            self.rest = rest;
            let is_closed = self.eat(close);
            self.is_open |= !is_closed;
            return if is_closed || self.at_end() { self.add(name, value) } else { None };
        }
        while !self.eat(close) {
            let key = if self.eat("<parameter=") {
                self.until(">")?.trim().trim_matches('"')
            } else if self.eat("<parameter name=\"") || self.eat("<parameter name='") {
                let key = &self.rest[..self.rest.find(['"', '\''])?];
                self.until(">")?;
                key
            } else {
                return None;
            };
            let value = self.until("</parameter>")?;
            self.parameter(name, key, value, &mut input)?;
        }
        self.add(name, Value::Object(input))
    }

    /// A parameter's text as the type that the tool's schema gives it.
    fn parameter(&self, name: &str, key: &str, text: &str, input: &mut Map<String, Value>) -> Option<()> {
        let schema = &self.offered.find(name)?.input_schema["properties"][key];
        let kind = schema["type"].as_str().unwrap_or("string");
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let value = if kind == "string" {
            Value::String(text.to_owned())
        } else {
            let (value, rest) = json::value(text)?;
            if !rest.trim().is_empty() {
                return None;
            }
            value
        };
        input.insert(key.to_owned(), value).is_none().then_some(())
    }

    /// `{"name": …, "arguments": …}` in all its spellings, alone or in a list.
    fn read_json(&mut self, value: Value) -> Option<()> {
        match value {
            Value::Array(list) if !list.is_empty() => {
                list.into_iter().try_for_each(|value| self.read_json(value))
            }
            Value::Object(mut map) => {
                if let Some(list) = map.remove("tool_calls") {
                    return if map.is_empty() { self.read_json(list) } else { None };
                }
                if let Some(Value::Object(function)) = map.get("function") {
                    let function = Value::Object(function.clone());
                    let known =
                        map.keys().all(|key| ["function", "type", "id", "index"].contains(&key.as_str()));
                    return if known { self.read_json(function) } else { None };
                }
                let (mut name, mut input) = (None, None);
                for (key, value) in map {
                    match (key.as_str(), value) {
                        ("name" | "tool" | "tool_name" | "function", Value::String(text))
                            if name.is_none() =>
                        {
                            name = Some(text);
                        }
                        ("arguments" | "parameters" | "args" | "input" | "params", value)
                            if input.is_none() =>
                        {
                            input = Some(value);
                        }
                        ("id" | "type" | "call_id" | "index", _) => {}
                        _ => return None,
                    }
                }
                self.add(&name?, input.unwrap_or_else(|| Value::Object(Map::new())))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// Believes a call: its tool is offered, its input is an object with everything the tool requires.
    fn add(&mut self, name: &str, input: Value) -> Option<()> {
        let tool = self.offered.find(name)?;
        let input = match input {
            // Arguments written as a string that holds the object.
            Value::String(text) => {
                let (value, rest) = json::value(&text)?;
                rest.trim().is_empty().then_some(value)?
            }
            Value::Null => Value::Object(Map::new()),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other,
        };
        let given = input.as_object()?;
        let mut required =
            tool.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if required.any(|key| !given.contains_key(key)) {
            return None;
        }
        let properties = tool.input_schema["properties"].as_object();
        if properties.is_some_and(|known| given.keys().any(|key| !known.contains_key(key))) {
            return None;
        }
        self.calls.push(Call { name: tool.offered_name(), input });
        Some(())
    }
}
