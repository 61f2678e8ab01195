//! ECA's messages as plain data. This file: the values that several messages share.
//!
//! Knows no engine and no chat. Invariants: the same types read the messages of every generation of clients (unknown
//! members ignored, `null` and absent alike); costs are strings, statuses numbers, arguments objects, because real
//! clients break otherwise; what is absent is left out, never null, unless a client reads the null.

pub(crate) mod completion;
pub(crate) mod contents;
pub(crate) mod draft;
pub(crate) mod history;
pub(crate) mod jobs;
pub(crate) mod memory;
pub(crate) mod notifications;
pub(crate) mod providers;
pub(crate) mod requests;
pub(crate) mod servers;

use serde::{Deserialize, Serialize};

/// A chat's id as a client wrote it. Clients of autumn 2025 send the number of a tab.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum ChatKey {
    Text(String),
    Number(i64),
}

/// A chat's id as it is written into contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ChatId<'a> {
    Text(&'a str),
    Number(i64),
}

/// An empty object, `{}`: the parameters or the result of many methods.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Empty {}

/// Every context of the three generations of clients; `kind` says which members count.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Context {
    #[serde(rename = "type")]
    pub kind: String,
    pub path: Option<String>,
    pub lines_range: Option<LinesRange>,
    pub selection: Option<Selection>,
    pub cursor: Option<LinePosition>,
    pub url: Option<String>,
    pub position: Option<Range>,
    pub uri: Option<String>,
    pub name: Option<String>,
    pub label: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub server: Option<String>,
    pub content: Option<String>,
    pub text: Option<String>,
    pub language: Option<String>,
    pub media_type: Option<String>,
    pub base64: Option<String>,
}

/// A context that can be added to a prompt, as the responses to queries carry it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum OfferedContext {
    File {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        lines_range: Option<LinesRange>,
    },
    Directory {
        path: String,
    },
    Web {
        url: String,
    },
    RepoMap,
    Cursor {
        path: String,
        position: Range,
    },
    McpResource {
        server: String,
        uri: String,
        name: String,
        description: String,
        mime_type: String,
    },
    Code {
        content: String,
        language: String,
    },
    Text {
        name: String,
        text: String,
    },
    Image {
        media_type: String,
        base64: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct LinesRange {
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selection {
    pub start_line: u32,
    pub end_line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct LinePosition {
    pub line: u32,
    pub character: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Range {
    pub start: LinePosition,
    pub end: LinePosition,
}

impl ChatKey {
    pub(crate) fn as_id(&self) -> ChatId<'_> {
        match self {
            Self::Text(id) => ChatId::Text(id),
            Self::Number(number) => ChatId::Number(*number),
        }
    }
}

impl ChatId<'_> {
    pub(crate) fn to_key(self) -> ChatKey {
        match self {
            Self::Text(id) => ChatKey::Text(id.to_owned()),
            Self::Number(number) => ChatKey::Number(number),
        }
    }
}
