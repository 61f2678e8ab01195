//! The protocol's messages as plain data, exactly as its document writes them, and the names of its ten methods.
//!
//! Knows no engine. Invariants: members are camelCase; what is optional is left out, never null; unknown members are
//! ignored.

use serde::{Deserialize, Serialize};

pub(crate) mod method {
    // The document gives these to the agent as caller; an editor that drives calls them itself.
    pub(crate) const GET_THREADS: &str = "getThreads";
    pub(crate) const CREATE_THREAD: &str = "createThread";
    pub(crate) const OPEN_THREAD: &str = "openThread";
    pub(crate) const GET_THREAD_ENTRIES: &str = "getThreadEntries";
    pub(crate) const SEND_MESSAGE: &str = "sendMessage";
    // And these to the client.
    pub(crate) const STREAM_MESSAGE_CHUNK: &str = "streamMessageChunk";
    pub(crate) const READ_TEXT_FILE: &str = "readTextFile";
    pub(crate) const READ_BINARY_FILE: &str = "readBinaryFile";
    pub(crate) const STAT: &str = "stat";
    pub(crate) const GLOB_SEARCH: &str = "globSearch";
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadMetadata {
    pub id: String,
    pub title: String,
    /// RFC 3339.
    pub modified_at: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum ThreadEntry {
    Message(Message),
    ReadFile { path: String, content: String },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    pub role: Role,
    pub chunks: Vec<MessageChunk>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    User,
    Assistant,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum MessageChunk {
    Text { chunk: String },
}

impl MessageChunk {
    pub(crate) fn text(chunk: impl Into<String>) -> Self {
        Self::Text { chunk: chunk.into() }
    }
}

impl Message {
    pub(crate) fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, chunks: vec![MessageChunk::text(text)] }
    }

    /// All chunks, joined.
    pub(crate) fn whole(&self) -> String {
        self.chunks.iter().map(|MessageChunk::Text { chunk }| chunk.as_str()).collect()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Threads {
    pub threads: Vec<ThreadMetadata>,
}

/// The result of `createThread`, and the parameters of `openThread` and `getThreadEntries`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Thread {
    pub thread_id: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entries {
    pub entries: Vec<ThreadEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SendMessage {
    pub thread_id: String,
    pub message: Message,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StreamMessageChunk {
    pub thread_id: String,
    pub chunk: MessageChunk,
}

/// `lineOffset` counts lines skipped, from 0.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadTextFile {
    pub thread_id: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_limit: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadBinaryFile {
    pub thread_id: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_limit: Option<u64>,
}

/// `content` is text, or base64 for binary files; `version` changes when the content changes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileContent {
    pub version: u64,
    pub content: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stat {
    pub thread_id: String,
    pub path: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileStat {
    pub exists: bool,
    pub is_directory: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GlobSearch {
    pub thread_id: String,
    pub pattern: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Matches {
    pub matches: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Reads and writes the same JSON.
    fn check<T: Serialize + serde::de::DeserializeOwned>(json: Value) {
        let read: T = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
    }

    #[test]
    fn every_structure_of_the_document_is_read_and_written_as_it_stands() {
        check::<ThreadMetadata>(
            json!({"id": "thread-123", "title": "My Conversation", "modifiedAt": "2024-07-30T12:00:00Z"}),
        );
        check::<ThreadEntry>(json!({
            "type": "message", "role": "user", "chunks": [{"type": "text", "chunk": "Hello, world!"}],
        }));
        check::<ThreadEntry>(
            json!({"type": "readFile", "path": "/path/to/file.txt", "content": "File content goes here."}),
        );
        check::<Message>(
            json!({"role": "assistant", "chunks": [{"type": "text", "chunk": "This is a response."}]}),
        );
        check::<MessageChunk>(json!({"type": "text", "chunk": "This is a piece of the message."}));
        check::<Threads>(json!({"threads": []}));
        check::<Thread>(json!({"threadId": "t"}));
        check::<Entries>(json!({"entries": []}));
        check::<SendMessage>(json!({"threadId": "t", "message": {"role": "user", "chunks": []}}));
        check::<StreamMessageChunk>(json!({"threadId": "t", "chunk": {"type": "text", "chunk": "a"}}));
        check::<ReadTextFile>(json!({"threadId": "t", "path": "p"}));
        check::<ReadTextFile>(json!({"threadId": "t", "path": "p", "lineOffset": 0, "lineLimit": 9}));
        check::<ReadBinaryFile>(json!({"threadId": "t", "path": "p", "byteOffset": 4, "byteLimit": 2}));
        check::<FileContent>(json!({"version": 9_007_199_254_740_991_u64, "content": "x"}));
        check::<Stat>(json!({"threadId": "t", "path": "p"}));
        check::<FileStat>(json!({"exists": true, "isDirectory": false}));
        check::<GlobSearch>(json!({"threadId": "t", "pattern": "**/*.rs"}));
        check::<Matches>(json!({"matches": ["a", "b"]}));
    }

    #[test]
    fn only_text_is_a_chunk() {
        for wrong in [json!({"type": "image", "chunk": "x"}), json!({"chunk": "x"}), json!("x")] {
            assert!(serde_json::from_value::<MessageChunk>(wrong).is_err());
        }
        assert!(serde_json::from_value::<Role>(json!("system")).is_err());
    }
}
