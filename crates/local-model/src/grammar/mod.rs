//! Owns the rules of an answer: JSON of a schema, or free text in which each call of a tool fits that tool's schema.
//! Must not know tokens or logits. Invariant: text that was accepted can be completed; outside of calls and schemas all text is
//! accepted.

mod machine;
mod schema;

use std::sync::Arc;

use domain::tool::ToolSpec;
use serde_json::Value;

use machine::{Frame, Place, Stack};
use schema::{Member, Members, Node, NodeId, Nodes, quoted};

/// What models that were trained with marks write around a call.
const CALL: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";
const THINK: &str = "<think>";
const THINK_END: &str = "</think>";
/// Ways to read one text that are followed at the same time.
const MOST_READINGS: usize = 1_000;
/// Bytes of free text that are looked back at for the beginning of a call.
const LOOK_BACK: usize = 256;

/// The tools of a prompt and the schema of its answer, compiled.
#[derive(Debug)]
pub(crate) struct Rules {
    nodes: Nodes,
    tools: Vec<CompiledTool>,
    schema: Option<NodeId>,
}

#[derive(Debug)]
struct CompiledTool {
    /// The name that the model was offered, and the tool's own.
    names: [String; 2],
    /// A whole call, with `arguments` and with `parameters`.
    calls: [NodeId; 2],
}

impl Rules {
    /// `None` where an answer is free.
    pub(crate) fn new(tools: &[ToolSpec], schema: Option<&Value>) -> Option<Arc<Self>> {
        if tools.is_empty() && schema.is_none() {
            return None;
        }
        let mut nodes = Nodes::new();
        let schema = schema.map(|schema| nodes.compile(schema));
        let tools = tools.iter().map(|tool| compile_tool(&mut nodes, tool)).collect();
        Some(Arc::new(Self { nodes, tools, schema }))
    }

    fn call(&self) -> impl Iterator<Item = Vec<Frame>> {
        let end = Frame::Mark { text: CALL_END, at: 0 };
        self.tools.iter().map(move |tool| vec![end.clone(), Frame::Value(tool.calls[0])])
    }

    fn calls(&self) -> Vec<Stack> {
        self.call().map(Stack::new).collect()
    }

    /// A call whose mark is still to come.
    fn marked_calls(&self) -> Vec<Stack> {
        let mark = Frame::Mark { text: CALL, at: 0 };
        self.call().map(|frames| Stack::new(frames.into_iter().chain([mark.clone()]).collect())).collect()
    }

    /// The rest of a call without marks, of which the name has come.
    fn named_calls(&self, name: &str) -> Vec<Stack> {
        let named = self.tools.iter().find(|tool| tool.names.iter().any(|known| known == name));
        let named = named.into_iter().flat_map(|tool| &tool.calls);
        named.map(|&node| Stack::new(vec![Frame::Object { node, used: 1, place: Place::After }])).collect()
    }
}

fn compile_tool(nodes: &mut Nodes, tool: &ToolSpec) -> CompiledTool {
    let name = tool.offered_name();
    let literal = nodes.add(Node::Literal(Value::from(name.as_str()).to_string().into_bytes().into()));
    let mut schema = tool.input_schema.clone();
    if let Value::Object(map) = &mut schema {
        // Arguments are an object, whatever else the schema says.
        map.insert("type".to_owned(), "object".into());
    }
    let arguments = nodes.compile(&schema);
    let has_required = schema["required"].as_array().is_some_and(|names| !names.is_empty());
    let call = |key: &str| {
        let list = vec![
            Member { name: quoted("name"), node: literal, is_required: true },
            Member { name: quoted(key), node: arguments, is_required: has_required },
        ];
        Node::Object(Members { list, others: None, is_ordered: true })
    };
    let calls = ["arguments", "parameters"].map(call).map(|call| nodes.add(call));
    CompiledTool { names: [name, tool.name.clone()], calls }
}

/// An answer as far as it has come.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    rules: Arc<Rules>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// Free text, of which the end is kept.
    Free { tail: Vec<u8>, is_thinking: bool },
    /// A call, in all readings that are possible.
    Call(Vec<Stack>),
    /// The answer of the schema, or a call before it.
    Answer(Vec<Stack>),
    /// Nothing more may come but the end, or one more call.
    Done(Vec<Stack>),
}

impl Progress {
    pub(crate) fn new(rules: Arc<Rules>, is_thinking: bool) -> Self {
        let state = match rules.schema {
            None => State::Free { tail: Vec::new(), is_thinking },
            Some(node) => {
                let mut readings = vec![Stack::new(vec![Frame::Value(node)])];
                readings.extend(rules.marked_calls());
                State::Answer(readings)
            }
        };
        Self { rules, state }
    }

    /// The next tokens are restricted.
    pub(crate) fn is_restricted(&self) -> bool {
        !matches!(self.state, State::Free { .. })
    }

    /// The answer may end here.
    pub(crate) fn may_end(&self) -> bool {
        match &self.state {
            State::Free { .. } | State::Done(_) => true,
            State::Call(readings) | State::Answer(readings) => readings.iter().any(Stack::may_end),
        }
    }

    /// Whether `bytes` may come next.
    pub(crate) fn allows(&self, bytes: &[u8]) -> bool {
        self.clone().push(bytes)
    }

    /// Takes what has come. `false`: it may not, and the state is lost.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.push_byte(byte))
    }

    fn push_byte(&mut self, byte: u8) -> bool {
        let is_answer = matches!(self.state, State::Answer(_) | State::Done(_));
        match &mut self.state {
            State::Free { tail, is_thinking } => {
                tail.push(byte);
                if tail.len() > 2 * LOOK_BACK {
                    tail.drain(..LOOK_BACK);
                }
                if let Some(readings) = found(&self.rules, tail, is_thinking) {
                    self.state = State::Call(readings);
                }
                true
            }
            State::Done(_) if byte.is_ascii_whitespace() => true,
            State::Call(readings) | State::Answer(readings) | State::Done(readings) => {
                let mut next = Vec::new();
                for stack in std::mem::take(readings) {
                    self.rules.nodes.step(stack, byte, &mut next);
                }
                next.truncate(MOST_READINGS);
                let is_done = next.iter().any(Stack::is_done);
                let is_possible = !next.is_empty();
                match is_done {
                    true => self.finish(byte, is_answer),
                    false if is_answer => self.state = State::Answer(next),
                    false => self.state = State::Call(next),
                }
                is_possible
            }
        }
    }

    /// A call or the whole answer is complete with `byte`.
    fn finish(&mut self, byte: u8, is_answer: bool) {
        let is_call = byte == b'>';
        self.state = match is_answer {
            false => State::Free { tail: Vec::new(), is_thinking: false },
            true if is_call => State::Done(self.rules.marked_calls()),
            true => State::Done(Vec::new()),
        };
    }
}

/// The readings of a call that begins at the end of free text.
fn found(rules: &Rules, tail: &[u8], is_thinking: &mut bool) -> Option<Vec<Stack>> {
    match tail.last()? {
        b'>' if tail.ends_with(THINK.as_bytes()) => *is_thinking = true,
        b'>' if tail.ends_with(THINK_END.as_bytes()) => *is_thinking = false,
        b'>' if !*is_thinking && tail.ends_with(CALL.as_bytes()) => {
            return Some(rules.calls()).filter(|calls| !calls.is_empty());
        }
        b'"' if !*is_thinking => {
            let calls = rules.named_calls(&call_without_marks(tail)?);
            return Some(calls).filter(|calls| !calls.is_empty());
        }
        _ => {}
    }
    None
}

/// The name in `{"name": "…"` at the end of a text, where it begins the answer, a line or a fenced block.
fn call_without_marks(tail: &[u8]) -> Option<String> {
    let start = tail.iter().rposition(|&byte| byte == b'{')?;
    let (before, object) = tail.split_at(start);
    let line = before.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    if !line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let object: Vec<u8> = object.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let name = object.strip_prefix(b"{\"name\":\"")?.strip_suffix(b"\"")?;
    let is_plain = !name.is_empty() && !name.contains(&b'"');
    is_plain.then(|| String::from_utf8(name.to_vec()).ok()).flatten()
}

#[cfg(test)]
mod tests;
