//! One mechanism for everything the engine must ask a person: approvals, questions, elicitations.
//!
//! Invariant: an ask is settled exactly once; the first answer wins and later ones change nothing.

use serde_json::Value;

use crate::ids::{AskId, ItemId, TurnId};

#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    pub id: AskId,
    pub turn: TurnId,
    /// The item that waits for the answer, a tool call for instance.
    pub item: Option<ItemId>,
    pub kind: AskKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum AskKind {
    /// May this tool call run? The call itself is the item the ask names.
    Approval {
        /// Why policy asks, as a sentence.
        reason: String,
        /// What "remember for this session" would remember; empty when it cannot be remembered.
        keys: Vec<String>,
    },
    /// A question of the model or of a command to the user.
    Question {
        text: String,
        options: Vec<Choice>,
        freeform: bool,
        /// The address that the user is asked to open; the first option says that this was done. Also part of the text.
        url: Option<String>,
    },
    /// A form described by a JSON schema (MCP elicitation).
    Form { text: String, schema: Value },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    pub label: String,
    pub description: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// `remember`: for the rest of this session.
    Allow {
        remember: bool,
    },
    Deny {
        remember: bool,
        /// The user's reason, passed on to the model.
        reason: Option<String>,
    },
    Text {
        text: String,
    },
    Form {
        data: Value,
    },
    /// Nobody answered: stopped, timed out, declined, or nobody can.
    Cancelled,
}
