//! The lowest layer: the defaults.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::layer::Object;
use crate::tree::Node;

static DEFAULTS: LazyLock<(Object, Node)> = LazyLock::new(|| {
    let values = match defaults() {
        Value::Object(values) => values,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
    };
    let node = Node::from_map(&values, 0);
    (values, node)
});

pub(crate) fn values() -> &'static Object {
    &DEFAULTS.0
}

pub(crate) fn tree() -> &'static Node {
    &DEFAULTS.1
}

fn defaults() -> Value {
    json!({
        "defaultAgent": "agent",
        "agent": {"agent": {}, "plan": {}},
        "welcomeMessage": "Welcome to Dragoman!\n\nType '/' for commands\n\n",
        "toolCall": {
            "approval": {
                "byDefault": "ask",
                "allow": {
                    "eca__directory_tree": {},
                    "eca__read_file": {},
                    "eca__grep": {},
                    "eca__glob": {},
                    "eca__preview_file_change": {},
                    "eca__editor_diagnostics": {},
                    "eca__editor_definition": {},
                    "eca__editor_references": {},
                    "eca__skill": {},
                    "eca__recall": {},
                    "eca__ask_user": {},
                    "eca__task": {},
                    "eca__compact_chat": {},
                },
            },
            "readFile": {"maxLines": 2000},
            "outputTruncation": {"sizeKb": 50},
            "toolSearch": {"abovePercent": 10, "aboveTokens": 8000, "byProvider": true},
        },
        "acp": {"v2": true},
        "chat": {"title": true, "autoSyncSystemPrompt": false, "defaultTrust": false, "verifyChanges": true, "theme": "auto", "viMode": false, "inline": false, "mouse": "on", "screenReader": false, "reducedMotion": false, "notify": ["bell", "osc9"], "notifyWhen": "away"},
        "memory": {"enabled": true, "writeMode": "agent"},
        "autoCompactPercentage": 85,
        "maxSteps": 200,
        "goal": {"maxSteps": 50, "maxMinutes": 30},
        "streamSilenceSeconds": 120,
        "mcpTimeoutSeconds": 60,
        "editorTimeoutSeconds": 10,
        "lspTimeoutSeconds": 30,
        "concurrency": 256,
        "sandbox": "on",
        "undo": {"fileMegabytes": 64, "totalMegabytes": 2048},
        "worker": {"approve": ["edit", "sandboxed"], "timeoutSeconds": 3600, "maxAttempts": 5, "submodules": false, "lfs": false},
        "logLevel": "warn",
        "includeParentAgentsFiles": false,
    })
}
