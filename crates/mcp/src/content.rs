//! Turns the answers of servers into parts for a model: text, images, resources; bounded, with a note for each omission.
//!
//! Invariant: the parts of one answer hold at most so much text and so many images, whatever the server sent.

use std::sync::Arc;

use domain::Part;
use domain::tool::ToolResult;
use domain::tool_call::Details;
use serde_json::value::RawValue;

use crate::text::{sanitize, single_line, strip_controls};
use crate::wire::{Block, CallResult, PromptResult, ReadResult, ResourceContent};

/// Of all text of one answer.
const MAX_TEXT_BYTES: usize = 64 << 10;
const MAX_IMAGES: usize = 8;
/// In base64; what the model APIs take.
const MAX_IMAGE_BYTES: usize = 5 << 20;
const MAX_JSON_BYTES: usize = 256 << 10;
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(crate) fn from_call(result: CallResult) -> ToolResult {
    let mut parts = Parts::default();
    for block in &result.content {
        parts.push_block(block);
    }
    // Any JSON value: objects in older revisions, lists and scalars in newer ones.
    let json = result.structured_content.map(|json| json.to_string());
    if let (true, Some(json)) = (result.content.is_empty(), &json) {
        parts.push_text(json);
    }
    let details =
        json.filter(|json| json.len() <= MAX_JSON_BYTES).map(|json| Details::Json { jsons: vec![json] });
    let mut parts = parts.finish();
    if parts.is_empty() {
        parts.push(Part::text(if result.is_error {
            "The tool failed without a message."
        } else {
            "The tool returned no content."
        }));
    }
    ToolResult { parts, error: result.is_error, details, ..ToolResult::default() }
}

pub(crate) fn from_resource(result: ReadResult) -> Vec<Part> {
    let mut parts = Parts::default();
    result.contents.into_iter().for_each(|content| parts.push_resource(content));
    parts.finish()
}

/// The content of one message that a server sends to a model: a block or several.
pub(crate) fn from_message(content: &RawValue) -> Vec<Part> {
    let mut parts = Parts::default();
    match serde_json::from_str::<Vec<Box<RawValue>>>(content.get()) {
        Ok(blocks) => blocks.iter().for_each(|block| parts.push_block(block)),
        Err(_) => parts.push_block(content),
    }
    parts.finish()
}

/// The messages of a prompt as one message of the user's.
pub(crate) fn from_prompt(result: PromptResult) -> Vec<Part> {
    let mut parts = Parts::default();
    for message in &result.messages {
        if message.role == "assistant" {
            parts.push_text("[as the assistant said]");
        }
        parts.push_block(&message.content);
    }
    parts.finish()
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
    fn push_block(&mut self, block: &RawValue) {
        match serde_json::from_str(block.get()) {
            Ok(Block::Text { text }) => self.push_text(&text),
            Ok(Block::Image { data, mime_type }) => self.push_image(data, &mime_type),
            Ok(Block::Audio { mime_type }) => self.push_note(&format!("audio ({mime_type}) was left out")),
            Ok(Block::Resource { resource }) => self.push_resource(resource),
            Ok(Block::ResourceLink { uri, name, description }) => {
                let about = description.map(|text| format!(" – {text}")).unwrap_or_default();
                self.push_note(&format!("resource {name} {uri}{about}"));
            }
            Ok(Block::Unknown) => self.push_note("content of an unknown kind was left out"),
            Err(_) => self.push_note("content that could not be read was left out"),
        }
    }

    fn push_resource(&mut self, resource: ResourceContent) {
        let ResourceContent { uri, mime_type, text, blob } = resource;
        let mime = mime_type.unwrap_or_default();
        match (text, blob) {
            (Some(text), _) => {
                self.push_note(&format!("resource {uri}"));
                self.push_text(&text);
            }
            (None, Some(blob)) if mime.starts_with("image/") => self.push_image(blob, &mime),
            (None, Some(blob)) => {
                self.push_note(&format!(
                    "resource {uri} ({mime}, {} bytes in base64) was left out",
                    blob.len()
                ));
            }
            (None, None) => self.push_note(&format!("resource {uri} is empty")),
        }
    }

    fn push_text(&mut self, text: &str) {
        let room = MAX_TEXT_BYTES - self.text;
        let shown = &text[..text.floor_char_boundary(room)];
        self.missing += text.len() - shown.len();
        if !shown.is_empty() {
            self.text += shown.len();
            self.parts.push(Part::text(strip_controls(shown)));
        }
    }

    fn push_note(&mut self, note: &str) {
        self.push_text(&format!("[{}]", single_line(note, 2_000)));
    }

    fn push_image(&mut self, data: String, mime: &str) {
        let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if !IMAGE_TYPES.contains(&mime) {
            self.push_note(&format!("an image of the type {} was left out", sanitize(mime, 100)));
        } else if data.is_empty() || !data.bytes().all(base64) {
            self.push_note("an image that is no base64 was left out");
        } else if data.len() > MAX_IMAGE_BYTES || self.images == MAX_IMAGES {
            self.push_note("an image was left out: it is too large or one too many");
        } else {
            self.images += 1;
            self.parts.push(Part::Image { mime: mime.to_owned(), data: Arc::from(data) });
        }
    }

    fn finish(mut self) -> Vec<Part> {
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
        from_call(serde_json::from_str(&result.to_string()).unwrap())
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
        let text = "ä".repeat(MAX_TEXT_BYTES);
        let result =
            call(json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": text}]}));
        let texts = texts(&result.parts);
        assert_eq!(texts[0].len(), MAX_TEXT_BYTES);
        assert!(texts[1].starts_with("[Only the first 65536 of 262144 bytes"), "{}", texts[1]);
    }

    #[test]
    fn structured_content_is_kept_for_people_and_told_where_nothing_else_is() {
        let result = call(json!({"content": [], "structuredContent": {"a": 1}, "isError": true}));
        assert_eq!(texts(&result.parts), ["{\"a\":1}"]);
        assert_eq!(result.details, Some(Details::Json { jsons: vec!["{\"a\":1}".into()] }));
        assert!(result.error);
        assert_eq!(texts(&call(json!({})).parts), ["The tool returned no content."]);
    }
}
