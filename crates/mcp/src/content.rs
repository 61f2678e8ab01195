//! What servers answer, as parts for a model: text, images, resources; bounded, with a note where something is missing.
//!
//! Invariant: the parts of one answer hold at most so much text and so many images, whatever the server sent.

use std::sync::Arc;

use domain::Part;
use domain::tool::ToolResult;
use domain::tool_call::Details;
use serde_json::value::RawValue;

use crate::text::{clean, line, tidy};
use crate::wire::{Block, CallResult, PromptResult, ReadResult, ResourceContent};

/// Of all text of one answer.
const MOST_TEXT: usize = 64 << 10;
const MOST_IMAGES: usize = 8;
/// In base64; what the model APIs take.
const LARGEST_IMAGE: usize = 5 << 20;
const LARGEST_JSON: usize = 256 << 10;
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(crate) fn of_call(result: CallResult) -> ToolResult {
    let mut parts = Parts::default();
    for block in &result.content {
        parts.block(block);
    }
    let json = result.structured_content.and_then(|json| serde_json::to_string(&json).ok());
    if let (true, Some(json)) = (result.content.is_empty(), &json) {
        parts.text(json);
    }
    let details =
        json.filter(|json| json.len() <= LARGEST_JSON).map(|json| Details::Json { jsons: vec![json] });
    let mut parts = parts.done();
    if parts.is_empty() {
        parts.push(Part::text(if result.is_error {
            "The tool failed and said nothing."
        } else {
            "The tool said nothing."
        }));
    }
    ToolResult { parts, error: result.is_error, details, ..ToolResult::default() }
}

pub(crate) fn of_resource(result: ReadResult) -> Vec<Part> {
    let mut parts = Parts::default();
    result.contents.into_iter().for_each(|content| parts.resource(content));
    parts.done()
}

/// The messages of a prompt as one message of the user's.
pub(crate) fn of_prompt(result: PromptResult) -> Vec<Part> {
    let mut parts = Parts::default();
    for message in &result.messages {
        if message.role == "assistant" {
            parts.text("[as the assistant said]");
        }
        parts.block(&message.content);
    }
    parts.done()
}

/// Collects within the bounds.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    text: usize,
    images: usize,
    /// Bytes of text that found no room.
    missing: usize,
}

impl Parts {
    fn block(&mut self, block: &RawValue) {
        match serde_json::from_str(block.get()) {
            Ok(Block::Text { text }) => self.text(&text),
            Ok(Block::Image { data, mime_type }) => self.image(data, &mime_type),
            Ok(Block::Audio { mime_type }) => self.note(&format!("audio ({mime_type}) was left out")),
            Ok(Block::Resource { resource }) => self.resource(resource),
            Ok(Block::ResourceLink { uri, name, description }) => {
                let about = description.map(|text| format!(" – {text}")).unwrap_or_default();
                self.note(&format!("resource {name} {uri}{about}"));
            }
            Ok(Block::Unknown) => self.note("content of an unknown kind was left out"),
            Err(_) => self.note("content that could not be read was left out"),
        }
    }

    fn resource(&mut self, resource: ResourceContent) {
        let ResourceContent { uri, mime_type, text, blob } = resource;
        let mime = mime_type.unwrap_or_default();
        match (text, blob) {
            (Some(text), _) => {
                self.note(&format!("resource {uri}"));
                self.text(&text);
            }
            (None, Some(blob)) if mime.starts_with("image/") => self.image(blob, &mime),
            (None, Some(blob)) => {
                self.note(&format!("resource {uri} ({mime}, {} bytes in base64) was left out", blob.len()));
            }
            (None, None) => self.note(&format!("resource {uri} is empty")),
        }
    }

    fn text(&mut self, text: &str) {
        let room = MOST_TEXT - self.text;
        let shown = &text[..text.floor_char_boundary(room)];
        self.missing += text.len() - shown.len();
        if !shown.is_empty() {
            self.text += shown.len();
            self.parts.push(Part::text(clean(shown)));
        }
    }

    fn note(&mut self, note: &str) {
        self.text(&format!("[{}]", line(note, 2_000)));
    }

    fn image(&mut self, data: String, mime: &str) {
        let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if !IMAGE_TYPES.contains(&mime) {
            self.note(&format!("an image of the type {} was left out", tidy(mime, 100)));
        } else if data.is_empty() || !data.bytes().all(base64) {
            self.note("an image that is no base64 was left out");
        } else if data.len() > LARGEST_IMAGE || self.images == MOST_IMAGES {
            self.note("an image was left out: it is too large or one too many");
        } else {
            self.images += 1;
            self.parts.push(Part::Image { mime: mime.to_owned(), data: Arc::from(data) });
        }
    }

    fn done(mut self) -> Vec<Part> {
        if self.missing > 0 {
            let (shown, all) = (self.text, self.text + self.missing);
            self.parts.push(Part::text(format!(
                "[Only the first {shown} of {all} bytes are shown. Ask for less at once, if the tool can do that.]"
            )));
        }
        self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn call(result: Value) -> ToolResult {
        of_call(serde_json::from_str(&result.to_string()).unwrap())
    }

    fn texts(parts: &[Part]) -> Vec<&str> {
        parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image { .. } => None,
            })
            .collect()
    }

    #[test]
    fn every_kind_of_content_is_shown_or_named() {
        let result = call(json!({"content": [
            {"type": "text", "text": "hello\u{1b}[2J"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "image", "mimeType": "image/svg+xml", "data": "aGk="},
            {"type": "image", "mimeType": "image/png", "data": "not base64!"},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/zip", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "image/png", "blob": "aGk="}},
            {"type": "resource_link", "uri": "file:///d", "name": "d"},
            {"type": "hologram"},
            {"type": "text"},
            7,
        ]}));
        let texts = texts(&result.parts).join("\n");
        let images = result.parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
        assert_eq!(images, 2);
        for expected in [
            "hello",
            "svg",
            "no base64",
            "audio/wav",
            "inside",
            "application/zip",
            "file:///d",
            "unknown kind",
        ] {
            assert!(texts.contains(expected), "{expected} in {texts}");
        }
        assert!(!texts.contains('\u{1b}'));
    }

    #[test]
    fn a_huge_answer_is_cut_with_a_note() {
        let text = "ä".repeat(MOST_TEXT);
        let result =
            call(json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": text}]}));
        let texts = texts(&result.parts);
        assert_eq!(texts[0].len(), MOST_TEXT);
        assert!(texts[1].starts_with("[Only the first 65536 of 262144 bytes"), "{}", texts[1]);
    }

    #[test]
    fn structured_content_is_kept_for_people_and_told_where_nothing_else_is() {
        let result = call(json!({"content": [], "structuredContent": {"a": 1}, "isError": true}));
        assert_eq!(texts(&result.parts), ["{\"a\":1}"]);
        assert_eq!(result.details, Some(Details::Json { jsons: vec!["{\"a\":1}".into()] }));
        assert!(result.error);
        assert_eq!(texts(&call(json!({})).parts), ["The tool said nothing."]);
    }
}
