//! Owns the parts of an answer of the embedded model: speech, thought, tool calls. How calls are written is known to
//! `answer_text`, as for every provider. Invariant: no letter of the answer is lost but the white space before it.

use std::borrow::Cow;
use std::sync::Arc;

use answer_text::{AnswerText, Call, CallReader, Segment};
use domain::tool::ToolSpec;

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

/// Reads an answer as it comes.
pub(crate) struct AnswerParser {
    calls: CallReader,
    answer: AnswerText,
    segments: Vec<Segment>,
    /// One call in an answer: the answer is over with it.
    is_sequential: bool,
    /// Nothing but white space has come.
    is_blank: bool,
    is_over: bool,
}

impl AnswerParser {
    /// With `thinking` the prompt has already opened a thought.
    pub(crate) fn new(tools: Arc<[ToolSpec]>, is_sequential: bool, thinking: bool) -> Self {
        let calls = CallReader::new(tools, own_name);
        let answer = calls.begin(true, thinking);
        Self { calls, answer, segments: Vec::new(), is_sequential, is_blank: true, is_over: false }
    }

    /// Takes more of the answer and returns the parts that are complete enough to show.
    pub(crate) fn push(&mut self, text: &str) -> Vec<AnswerPart> {
        let text = if self.is_blank { text.trim_start() } else { text };
        self.is_blank &= text.is_empty();
        self.answer.push(text.to_owned(), &mut self.segments);
        // A call can be complete only where something closes.
        if self.is_sequential && text.contains(['}', ']', '>', '`']) {
            let held = self.answer.held();
            self.is_over |= held.is_some_and(|held| self.calls.closed_calls(held).is_some());
        }
        self.segments.drain(..).map(shown).collect()
    }

    /// A whole call stands there, and the answer may have no more than one.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The rest of the answer.
    pub(crate) fn finish(mut self) -> Vec<AnswerPart> {
        let held = self.answer.finish(&mut self.segments);
        let calls = held.as_deref().and_then(|held| self.calls.calls(held));
        if let (Some(held), None) = (held, &calls) {
            self.segments.push(Segment::Text(held));
        }
        let called = calls
            .into_iter()
            .flatten()
            .map(|Call { name, input }| AnswerPart::Call { name, arguments: input.to_string() });
        let is_empty = |part: &AnswerPart| matches!(part, AnswerPart::Text(text) | AnswerPart::Reasoning(text) if text.is_empty());
        self.segments.into_iter().map(shown).chain(called).filter(|part| !is_empty(part)).collect()
    }
}

/// Templates write the names of tools as they are.
fn own_name(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

fn shown(segment: Segment) -> AnswerPart {
    match segment {
        Segment::Text(text) => AnswerPart::Text(text),
        Segment::Reasoning(text) => AnswerPart::Reasoning(text),
    }
}

#[cfg(test)]
mod tests {
    use domain::tool::ToolEffect;
    use domain::tool_call::Origin;
    use serde_json::json;

    use super::*;

    fn tools() -> Arc<[ToolSpec]> {
        Arc::from([ToolSpec {
            name: "read_file".to_owned(),
            server: "eca".to_owned(),
            origin: Origin::Native,
            description: String::new(),
            input_schema: json!({
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            }),
            effect: ToolEffect::Reads,
        }])
    }

    /// The parts of `answer`, with texts joined, when it comes in pieces of each size.
    fn check(answer: &str, thinking: bool, expected: &[AnswerPart]) {
        for size in [1, 2, 3, 7, 1000] {
            let mut parser = AnswerParser::new(tools(), false, thinking);
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

    fn text(text: &str) -> AnswerPart {
        AnswerPart::Text(text.to_owned())
    }

    fn call(path: &str) -> AnswerPart {
        AnswerPart::Call { name: "eca__read_file".into(), arguments: json!({"path": path}).to_string() }
    }

    #[test]
    fn calls_in_every_form_are_read() {
        for form in [
            "<tool_call>\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
            "<tool_call>{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}",
            "```json\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
            "```json\n{\n  \"name\": \"read_file\",\n  \"arguments\": {\n    \"path\": \"a\"\n  }\n}\n```\n",
            "{\"name\": \"eca__read_file\", \"arguments\": \"{\\\"path\\\": \\\"a\\\"}\"}",
            "<|python_tag|>{\"name\": \"eca__read_file\", \"parameters\": {\"path\": \"a\"}}",
            "[TOOL_CALLS][{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}]",
            "<function=eca__read_file>\n<parameter=path>\na\n</parameter>\n</function>",
            "<tools>\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n</tools>",
        ] {
            check(form, false, &[call("a")]);
            // A bare object counts only alone: it may be an example.
            if !form.starts_with('{') {
                check(&format!("I read it.\n{form}"), false, &[text("I read it.\n"), call("a")]);
            }
        }
        let two = "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n\
             <tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"b\"}}</tool_call>";
        check(two, false, &[call("a"), call("b")]);
    }

    #[test]
    fn other_text_stays_text() {
        for other in [
            "Hello <b> there",
            "<tool_call>nonsense</tool_call>",
            r#"{"name": "other", "parameters": {}}"#,
            r#"{"name": "read_file", "arguments": {"file": "a"}}"#,
            "a <tool_c",
            "```json\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n```\nThis is an example.",
        ] {
            check(other, false, &[text(other)]);
        }
        check("", false, &[]);
        check(" \n", false, &[]);
        let thought = |text: &str| AnswerPart::Reasoning(text.to_owned());
        check("<think>\nhm\n</think>\n\nYes", false, &[thought("hm"), text("Yes")]);
        check("hm</think>Yes", true, &[thought("hm"), text("Yes")]);
    }

    /// A model that goes on talking after its call is stopped there, so the call counts.
    #[test]
    fn an_answer_with_one_call_is_over_with_it() {
        for (answer, rest) in [
            ("```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```", "\nThis reads it."),
            (
                "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
                "\nI wait.",
            ),
            ("{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}", " That is it."),
        ] {
            let mut parser = AnswerParser::new(tools(), true, false);
            let mut parts = Vec::new();
            let whole = format!("{answer}{rest}");
            let mut taken = 0;
            for letter in whole.chars() {
                parts.extend(parser.push(&letter.to_string()));
                taken += letter.len_utf8();
                if parser.is_over() {
                    break;
                }
            }
            assert_eq!(taken, answer.len(), "{answer:?}");
            parts.extend(parser.finish());
            assert_eq!(parts, [call("a")], "{answer:?}");
        }
        let mut parser = AnswerParser::new(tools(), true, false);
        parser.push("```json\n{\"a\": {\"b\": 1}}\n```");
        assert!(!parser.is_over());
    }
}
