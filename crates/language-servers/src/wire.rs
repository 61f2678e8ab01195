//! The messages of the Language Server Protocol that are used here, as serde reads them.
//!
//! Plain data. Invariant: members that are missing or unknown are tolerated; nothing here is trusted.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::position::uri_of;

/// 0-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WirePosition {
    pub line: u32,
    pub character: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct WireRange {
    pub start: WirePosition,
    pub end: WirePosition,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireLocation {
    #[serde(alias = "targetUri")]
    pub uri: String,
    #[serde(alias = "targetSelectionRange")]
    pub range: WireRange,
}

/// The result of a search for places.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum WirePlaces {
    Many(Vec<WireLocation>),
    One(WireLocation),
    None(()),
}

impl WirePlaces {
    pub(crate) fn into_vec(self) -> Vec<WireLocation> {
        match self {
            Self::Many(places) => places,
            Self::One(place) => vec![place],
            Self::None(()) => Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct WireDiagnostic {
    #[serde(default)]
    pub range: WireRange,
    #[serde(default)]
    pub severity: Option<u8>,
    #[serde(default)]
    pub code: Option<Value>,
    #[serde(default)]
    pub source: Option<String>,
    /// A string, or an object with `value`.
    pub message: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PublishedDiagnostics {
    pub uri: String,
    pub diagnostics: Vec<WireDiagnostic>,
}

/// The result of `textDocument/diagnostic`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DiagnosticReport {
    pub items: Vec<WireDiagnostic>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Progress {
    pub token: Value,
    pub value: ProgressValue,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ProgressValue {
    #[serde(default)]
    pub kind: String,
}

/// A notification of rust-analyzer.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerStatus {
    #[serde(default)]
    pub quiescent: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InitializeResult {
    pub capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Capabilities {
    pub position_encoding: Option<String>,
    pub diagnostic_provider: Option<Value>,
    pub definition_provider: Option<Value>,
    pub references_provider: Option<Value>,
}

/// The parameters of `initialize`. A server behind the wall cannot see the id of this process, and would take it for
/// dead: none is sent.
pub(crate) fn initialize(folder: &Path) -> Value {
    let uri = uri_of(folder);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    json!({
        "processId": null,
        "clientInfo": {"name": "dragoman", "version": env!("CARGO_PKG_VERSION")},
        "rootPath": folder,
        "rootUri": uri,
        "workspaceFolders": [{"uri": uri, "name": name}],
        "initializationOptions": {"disableAutomaticTypingAcquisition": true},
        "capabilities": {
            "general": {"positionEncodings": ["utf-32", "utf-16"]},
            "window": {"workDoneProgress": true},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeWatchedFiles": {"dynamicRegistration": true}
            },
            "textDocument": {
                "synchronization": {"didSave": true},
                "publishDiagnostics": {"versionSupport": true},
                "diagnostic": {"dynamicRegistration": false},
                "definition": {"linkSupport": true},
                "references": {}
            },
            "experimental": {"serverStatusNotification": true}
        }
    })
}
