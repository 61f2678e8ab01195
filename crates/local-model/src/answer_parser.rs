//! Owns the meaning of an answer's text: which part is speech, which is thought, which asks for a tool.
//! Must not know how the text is made. Invariant: no letter of the answer is lost; a call that cannot be read is text.

use serde_json::Value;

/// A part of an answer, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerPart {
    Text(String),
    Reasoning(String),
    /// `arguments` is JSON text.
    Call {
        name: String,
        arguments: String,
    },
}

const CALL: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";
const THINK: &str = "<think>";
const THINK_END: &str = "</think>";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    /// Nothing but white space has come.
    Start,
    Text,
    Thinking,
    InCall,
    /// The answer begins like a JSON object, which may be a call without marks.
    Object,
}

/// Reads an answer as it comes.
pub(crate) struct AnswerParser {
    state: ParserState,
    pending: String,
    /// The names of the offered tools; a call without marks must name one of them.
    tools: Vec<String>,
}

impl AnswerParser {
    /// With `thinking` the prompt has already opened a thought.
    pub(crate) fn new(tools: Vec<String>, thinking: bool) -> Self {
        let state = if thinking { ParserState::Thinking } else { ParserState::Start };
        Self { state, pending: String::new(), tools }
    }

    /// Takes more of the answer and returns the parts that are complete enough to show.
    pub(crate) fn push(&mut self, text: &str) -> Vec<AnswerPart> {
        self.pending.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// The rest of the answer.
    pub(crate) fn finish(mut self) -> Vec<AnswerPart> {
        let rest = std::mem::take(&mut self.pending);
        let part = match self.state {
            ParserState::Start | ParserState::Text => AnswerPart::Text(rest),
            ParserState::Thinking => AnswerPart::Reasoning(rest),
            ParserState::InCall => read_call(&rest).unwrap_or(AnswerPart::Text(format!("{CALL}{rest}"))),
            ParserState::Object => match read_call(&rest) {
                Some(AnswerPart::Call { name, arguments }) if self.tools.contains(&name) => {
                    AnswerPart::Call { name, arguments }
                }
                _ => AnswerPart::Text(rest),
            },
        };
        let empty =
            matches!(&part, AnswerPart::Text(text) | AnswerPart::Reasoning(text) if text.trim().is_empty());
        if empty { Vec::new() } else { vec![part] }
    }

    /// One step; returns whether another may follow.
    fn step(&mut self, parts: &mut Vec<AnswerPart>) -> bool {
        match self.state {
            ParserState::Start => {
                let start = self.pending.trim_start().len();
                self.pending.drain(..self.pending.len() - start);
                self.state = match self.pending.chars().next() {
                    None => return false,
                    Some('{') if !self.tools.is_empty() => ParserState::Object,
                    Some(_) => ParserState::Text,
                };
                true
            }
            ParserState::Object => false,
            ParserState::Text => self.step_text(parts),
            ParserState::Thinking => {
                let done = self.pending.find(THINK_END);
                let shown = done.unwrap_or_else(|| safe_length(&self.pending, &[THINK_END]));
                self.emit(shown, AnswerPart::Reasoning, parts);
                if done.is_some() {
                    self.pending.drain(..THINK_END.len());
                    self.state = ParserState::Start;
                }
                done.is_some()
            }
            ParserState::InCall => {
                let Some(end) = self.pending.find(CALL_END) else { return false };
                let call: String = self.pending.drain(..end + CALL_END.len()).collect();
                let text = || AnswerPart::Text(format!("{CALL}{call}"));
                parts.push(read_call(&call[..end]).unwrap_or_else(text));
                self.state = ParserState::Start;
                true
            }
        }
    }

    fn step_text(&mut self, parts: &mut Vec<AnswerPart>) -> bool {
        let marks = [(CALL, ParserState::InCall), (THINK, ParserState::Thinking)];
        let found = marks
            .iter()
            .filter_map(|(mark, next)| Some((self.pending.find(mark)?, mark.len(), *next)))
            .min_by_key(|found| found.0);
        let shown = found.map_or_else(|| safe_length(&self.pending, &[CALL, THINK]), |found| found.0);
        self.emit(shown, AnswerPart::Text, parts);
        let Some((_, length, next)) = found else { return false };
        self.pending.drain(..length);
        self.state = next;
        true
    }

    fn emit(&mut self, length: usize, part: fn(String) -> AnswerPart, parts: &mut Vec<AnswerPart>) {
        if length > 0 {
            parts.push(part(self.pending.drain(..length).collect()));
        }
    }
}

/// How much of `text` cannot be the beginning of a mark.
fn safe_length(text: &str, marks: &[&str]) -> usize {
    let start = text.len().saturating_sub(THINK_END.len().max(CALL_END.len()));
    let may_begin =
        |at: &usize| text.is_char_boundary(*at) && marks.iter().any(|mark| mark.starts_with(&text[*at..]));
    (start..text.len()).find(may_begin).unwrap_or(text.len())
}

/// A call as the common templates have models write it.
fn read_call(text: &str) -> Option<AnswerPart> {
    let call: Value = serde_json::from_str(text.trim()).ok()?;
    let name = call.get("name")?.as_str()?.to_owned();
    let arguments = match call.get("arguments").or_else(|| call.get("parameters")) {
        None => "{}".to_owned(),
        // Some models quote their arguments.
        Some(Value::String(arguments)) => arguments.clone(),
        Some(arguments) => arguments.to_string(),
    };
    Some(AnswerPart::Call { name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of `answer`, with texts joined, when it comes in pieces of each size.
    fn check(answer: &str, thinking: bool, expected: &[AnswerPart]) {
        for size in [1, 2, 3, 7, 1000] {
            let mut parser = AnswerParser::new(vec!["read".to_owned()], thinking);
            let letters: Vec<char> = answer.chars().collect();
            let mut parts: Vec<AnswerPart> = Vec::new();
            let mut all: Vec<AnswerPart> = letters
                .chunks(size)
                .flat_map(|chunk| parser.push(&chunk.iter().collect::<String>()))
                .collect();
            all.extend(parser.finish());
            for part in all {
                match (parts.last_mut(), part) {
                    (Some(AnswerPart::Text(old)), AnswerPart::Text(new))
                    | (Some(AnswerPart::Reasoning(old)), AnswerPart::Reasoning(new)) => old.push_str(&new),
                    (_, part) => parts.push(part),
                }
            }
            assert_eq!(parts, expected, "{answer:?} in pieces of {size}");
        }
    }

    #[test]
    fn answers_are_cut_into_parts() {
        let text = |text: &str| AnswerPart::Text(text.to_owned());
        let thought = |text: &str| AnswerPart::Reasoning(text.to_owned());
        let call = |arguments: &str| AnswerPart::Call { name: "read".into(), arguments: arguments.into() };
        check("Hello <b> there", false, &[text("Hello <b> there")]);
        check("", false, &[]);
        check(
            "Let me see.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n\
             <tool_call>{\"name\": \"read\"}</tool_call>",
            false,
            &[text("Let me see.\n"), call(r#"{"path":"a"}"#), call("{}")],
        );
        check("<think>\nhm\n</think>\n\nYes", false, &[thought("\nhm\n"), text("Yes")]);
        check("hm</think>Yes", true, &[thought("hm"), text("Yes")]);
        check(r#"{"name": "read", "parameters": {"path": "b"}}"#, false, &[call(r#"{"path":"b"}"#)]);
        check(
            r#"{"name": "other", "parameters": {}}"#,
            false,
            &[text(r#"{"name": "other", "parameters": {}}"#)],
        );
        check("<tool_call>nonsense</tool_call>", false, &[text("<tool_call>nonsense</tool_call>")]);
        check(r#"<tool_call>{"name": "read", "arguments": {}}"#, false, &[call("{}")]);
        check("a <tool_c", false, &[text("a <tool_c")]);
    }
}
