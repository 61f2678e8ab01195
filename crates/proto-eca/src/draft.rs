//! The draft protocol (2025): one projection more for clients that speak it, and its prompt response.
//!
//! The draft has no approvals: a change that policy allows was applied and says `manualApproval: false`; one that needs
//! approval comes whole with `manualApproval: true` for the client to apply.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::event::{Channel, EventBody, Fact};
use domain::item::{Item, ItemKind};
use domain::tool_call::{Details, FileChange, ToolCall, ToolState};
use domain::{Event, ItemId, Outcome};
use serde::Serialize;
use serde_json::{Value, json};

use crate::wire::Out;

/// What a draft client has been shown.
#[derive(Default)]
pub(crate) struct DraftProjection {
    sent: HashMap<ItemId, usize>,
    tokens: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DraftContent<'a> {
    pub chat_id: &'a str,
    pub content: DraftBody<'a>,
    pub is_complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub tokens_used: u64,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum DraftBody<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        code_blocks: Vec<CodeBlock<'a>>,
    },
    FileChange {
        description: Cow<'a, str>,
        manual_approval: bool,
        file: String,
        changes: Vec<Value>,
    },
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CodeBlock<'a> {
    pub code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'a str>,
}

impl DraftProjection {
    pub(crate) fn project<'a>(&mut self, event: &'a Event) -> Vec<Out<'a>> {
        let chat = event.session.as_ref().map_or("", |session| session.as_str());
        match &event.body {
            EventBody::Delta(delta) if delta.channel == Channel::Text => {
                self.grow(chat, delta.item, delta.offset, &delta.text)
            }
            EventBody::Fact(recorded) => self.fact(chat, &recorded.fact),
            EventBody::Lost { failure } => {
                vec![text(chat, format!("{failure}").into(), Vec::new(), Some(self.tokens))]
            }
            EventBody::Delta(_) | EventBody::Progress { .. } | EventBody::Catalog(_) => Vec::new(),
        }
    }

    fn fact<'a>(&mut self, chat: &'a str, fact: &'a Fact) -> Vec<Out<'a>> {
        match fact {
            Fact::ItemGrew { item, channel: Channel::Text, offset, text } => {
                self.grow(chat, *item, *offset, text)
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => self.item(chat, item, false),
            Fact::ItemEnded { item } => self.item(chat, item, true),
            Fact::UsageChanged { usage } => {
                self.tokens = usage.last.all();
                Vec::new()
            }
            Fact::TurnEnded { outcome, .. } => {
                self.sent.clear();
                vec![text(chat, said(outcome), Vec::new(), Some(self.tokens))]
            }
            Fact::Notice { notice } => vec![crate::to_wire::message(notice)],
            Fact::SessionOpened(_)
            | Fact::SessionChanged { .. }
            | Fact::TurnStarted { .. }
            | Fact::ItemGrew { .. }
            | Fact::HistoryReplaced { .. }
            | Fact::AskRaised { .. }
            | Fact::AskSettled { .. } => Vec::new(),
        }
    }

    fn grow<'a>(&mut self, chat: &'a str, id: ItemId, offset: u64, whole: &'a str) -> Vec<Out<'a>> {
        let sent = self.sent.entry(id).or_default();
        let Some(skip) = usize::try_from(offset).ok().and_then(|offset| sent.checked_sub(offset)) else {
            return Vec::new();
        };
        match whole.get(skip..) {
            Some(rest) if !rest.is_empty() => {
                *sent += rest.len();
                vec![text(chat, rest.into(), Vec::new(), None)]
            }
            _ => Vec::new(),
        }
    }

    fn item<'a>(&mut self, chat: &'a str, item: &'a Item, ended: bool) -> Vec<Out<'a>> {
        match &item.kind {
            ItemKind::AgentMessage { text: whole, .. } => {
                let mut out = self.grow(chat, item.id, 0, whole);
                let blocks = if ended { code_blocks(whole) } else { Vec::new() };
                if !blocks.is_empty() {
                    out.push(text(chat, "".into(), blocks, None));
                }
                out
            }
            ItemKind::ToolCall(call) if ended => changed(chat, call).into_iter().collect(),
            ItemKind::SystemText { text: said } if ended => {
                vec![text(chat, Cow::Owned(format!("{said}\n")), Vec::new(), None)]
            }
            _ => Vec::new(),
        }
    }
}

fn text<'a>(
    chat_id: &'a str,
    text: Cow<'a, str>,
    code_blocks: Vec<CodeBlock<'a>>,
    end: Option<u64>,
) -> Out<'a> {
    Out::Draft(DraftContent {
        chat_id,
        content: DraftBody::Text { text, code_blocks },
        is_complete: end.is_some(),
        metadata: end.map(|tokens_used| Metadata { tokens_used }),
    })
}

fn said(outcome: &Outcome) -> Cow<'static, str> {
    match outcome {
        Outcome::Done => "".into(),
        Outcome::Stopped | Outcome::Interrupted => "Stopped.".into(),
        Outcome::MaxTokens => "The model reached its output limit.".into(),
        Outcome::MaxSteps => "Stopped: too many steps.".into(),
        Outcome::Refused { reason } => format!("The model refused: {reason}").into(),
        Outcome::Failed { failure } => failure.to_string().into(),
    }
}

/// A call that changed a file, or proposes to.
fn changed<'a>(chat_id: &'a str, call: &'a ToolCall) -> Option<Out<'a>> {
    let Some(Details::FileChange(change)) = &call.details else {
        let refused = matches!(call.state, ToolState::Rejected { .. });
        let told = format!(
            "{} was not run: it needs approval, which this client cannot give. Allow it in toolCall.approval.allow.\n",
            call.name
        );
        return refused.then(|| text(chat_id, told.into(), Vec::new(), None));
    };
    if call.state != ToolState::Done || call.error {
        return None;
    }
    let content = DraftBody::FileChange {
        description: Cow::Borrowed(&call.summary),
        manual_approval: call.manual_approval,
        file: change.path.display().to_string(),
        changes: vec![change_of(change)],
    };
    Some(Out::Draft(DraftContent { chat_id, content, is_complete: false, metadata: None }))
}

/// One change: the lines between what both texts begin and end with.
fn change_of(change: &FileChange) -> Value {
    let new = change.new_text.as_deref().unwrap_or_default();
    let Some(old) = change.old_text.as_deref() else {
        return json!({"kind": "create", "content": new});
    };
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let content: String = new[head..new.len() - tail].concat();
    let range = json!({"startLine": head + 1, "endLine": (old.len() - tail).max(head)});
    if content.is_empty() {
        json!({"kind": "delete", "range": range})
    } else {
        json!({"kind": "change", "content": content, "range": range})
    }
}

/// Fenced blocks of a Markdown text.
fn code_blocks(text: &str) -> Vec<CodeBlock<'_>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("```") {
        let after = &rest[open + 3..];
        let Some(line_end) = after.find('\n') else { break };
        let language = after[..line_end].trim();
        let body = &after[line_end + 1..];
        let Some(close) = body.find("```") else { break };
        let language = (!language.is_empty()).then_some(language);
        blocks.push(CodeBlock { code: &body[..close], language });
        rest = &body[close + 3..];
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_code_is_found() {
        let text = "a\n```rust\nfn f() {}\n```\nb\n```\nx\n```\n```open";
        let blocks = code_blocks(text);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0], CodeBlock { code: "fn f() {}\n", language: Some("rust") });
        assert_eq!(blocks[1], CodeBlock { code: "x\n", language: None });
    }

    #[test]
    fn a_change_is_the_lines_that_differ() {
        let change = |old: Option<&str>, new: &str| {
            change_of(&FileChange {
                path: "f".into(),
                diff: String::new(),
                lines_added: 0,
                lines_removed: 0,
                old_text: old.map(str::to_owned),
                new_text: Some(new.to_owned()),
            })
        };
        assert_eq!(change(None, "x"), json!({"kind": "create", "content": "x"}));
        assert_eq!(
            change(Some("a\nb\nc\n"), "a\nX\nY\nc\n"),
            json!({"kind": "change", "content": "X\nY\n", "range": {"startLine": 2, "endLine": 2}})
        );
        assert_eq!(
            change(Some("a\nb\nc\n"), "a\nc\n"),
            json!({"kind": "delete", "range": {"startLine": 2, "endLine": 2}})
        );
    }
}
