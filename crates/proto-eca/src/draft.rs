//! The draft protocol (2025): one projection more for clients that speak it, and its prompt response.
//!
//! The draft has no approvals: a change that policy allows was applied and says `manualApproval: false`; one that needs
//! approval comes whole with `manualApproval: true` for the client to apply.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::command::{AcceptedStatus, Catalog};
use domain::event::{Channel, EventBody, Fact};
use domain::item::{Item, ItemKind};
use domain::tool_call::{Details, FileChange, ToolCall, ToolState};
use domain::{Abilities, AskId, Event, ItemId, Outcome, TextCursor};

use crate::dialect_interface::{Dialect, Projection, Prompted};
use crate::reply::Reply;
use crate::server::Server;
use crate::to_wire::message;
use crate::wire::ChatId;
use crate::wire::draft::{ChangedLines, CodeBlock, DraftBody, DraftContent, FileEdit, Metadata};
use crate::wire::notifications::{Notification, Outbound, ShowMessage};
use crate::wire::requests::{Prompt, PromptResult};

/// The dialect of the draft protocol.
pub(crate) struct Draft;

impl Dialect<Server> for Draft {
    fn name(&self) -> &'static str {
        "draft"
    }

    fn new_projection(&self) -> Box<dyn Projection> {
        Box::new(DraftProjection::default())
    }

    /// The client cannot approve, so the engine must not wait for it.
    fn adapt(&self, abilities: &mut Abilities) {
        (abilities.approvals, abilities.proposes_changes) = (false, true);
    }

    fn knows(&self, notification: &str) -> bool {
        [DraftContent::NAME, ShowMessage::NAME].contains(&notification)
    }

    /// The draft names models without their provider; an unknown model means the default.
    fn model(&self, catalog: &Catalog, name: String) -> Option<String> {
        let is_it =
            |id: &str| id == name || id.split_once('/').is_some_and(|(_, bare)| bare == name.as_str());
        catalog.models.iter().find(|model| is_it(&model.id)).map(|model| model.id.clone())
    }

    fn answer_prompt(&self, server: &mut Server, prompted: Prompted, reply: Reply<Prompt>) {
        let (status, result_message) = match &prompted.outcome {
            Ok(accepted) if accepted.status == AcceptedStatus::Prompting => {
                ("success", format!("The prompt was sent to {}.", accepted.model))
            }
            Ok(_) => ("connection-error", "The prompt could not be sent; the chat says why.".to_owned()),
            Err(failure) => ("connection-error", failure.to_string()),
        };
        let chat_id = server.chat_key(&prompted.session);
        server.respond(reply, Ok(PromptResult::Draft { chat_id, status, result_message }));
    }
}

/// What a draft client has been sent.
#[derive(Default)]
struct DraftProjection {
    cursors: HashMap<ItemId, TextCursor>,
    tokens: u64,
}

impl Projection for DraftProjection {
    fn project<'a>(&mut self, chat: ChatId<'a>, event: &'a Event) -> Vec<Outbound<'a>> {
        match &event.body {
            EventBody::Delta(delta) if delta.channel == Channel::Text => {
                self.append_text(chat, delta.item, delta.offset, &delta.text)
            }
            EventBody::Fact(recorded) => self.fact(chat, &recorded.fact),
            EventBody::Lost { failure } => {
                vec![text(chat, format!("{failure}").into(), Vec::new(), Some(self.tokens))]
            }
            EventBody::Delta(_) | EventBody::Progress { .. } | EventBody::Catalog(_) => Vec::new(),
        }
    }

    /// The draft has no approvals.
    fn call_id(&self, call: ItemId) -> String {
        call.to_string()
    }

    fn ask_of(&self, _call: &str) -> Option<AskId> {
        None
    }
}

impl DraftProjection {
    fn fact<'a>(&mut self, chat: ChatId<'a>, fact: &'a Fact) -> Vec<Outbound<'a>> {
        match fact {
            Fact::ItemGrew { item, channel: Channel::Text, offset, text } => {
                self.append_text(chat, *item, *offset, text)
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => self.item(chat, item, false),
            Fact::ItemEnded { item } => self.item(chat, item, true),
            Fact::UsageChanged { usage } => {
                self.tokens = usage.last.all();
                Vec::new()
            }
            Fact::TurnEnded { outcome, .. } => {
                self.cursors.clear();
                vec![text(chat, outcome_text(outcome), Vec::new(), Some(self.tokens))]
            }
            Fact::Notice { notice } => vec![Outbound::Message(message(notice))],
            Fact::SessionOpened(_)
            | Fact::SessionChanged { .. }
            | Fact::TurnStarted { .. }
            | Fact::ItemGrew { .. }
            | Fact::HistoryReplaced { .. }
            | Fact::AskRaised { .. }
            | Fact::AskSettled { .. }
            | Fact::TaintChanged { .. } => Vec::new(),
        }
    }

    fn append_text<'a>(
        &mut self,
        chat: ChatId<'a>,
        id: ItemId,
        offset: u64,
        piece: &'a str,
    ) -> Vec<Outbound<'a>> {
        let rest = self.cursors.entry(id).or_default().advance(offset, piece);
        rest.map(|rest| text(chat, rest.into(), Vec::new(), None)).into_iter().collect()
    }

    fn item<'a>(&mut self, chat: ChatId<'a>, item: &'a Item, ended: bool) -> Vec<Outbound<'a>> {
        match &item.kind {
            ItemKind::AgentMessage { text: whole, .. } => {
                let mut out = self.append_text(chat, item.id, 0, whole);
                let blocks = if ended { code_blocks(whole) } else { Vec::new() };
                if !blocks.is_empty() {
                    out.push(text(chat, "".into(), blocks, None));
                }
                out
            }
            ItemKind::ToolCall(call) if ended => changed(chat, call).into_iter().collect(),
            ItemKind::SystemText { text: it } if ended => {
                vec![text(chat, Cow::Owned(format!("{it}\n")), Vec::new(), None)]
            }
            ItemKind::Note(note) if ended => {
                vec![text(chat, Cow::Owned(format!("{}\n", note.text)), Vec::new(), None)]
            }
            ItemKind::UserMessage { .. }
            | ItemKind::Note(_)
            | ItemKind::Reasoning { .. }
            | ItemKind::ToolCall(_)
            | ItemKind::Citation { .. }
            | ItemKind::Compaction { .. }
            | ItemKind::Command { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Hook(_)
            | ItemKind::Flag { .. } => Vec::new(),
        }
    }
}

fn text<'a>(
    chat_id: ChatId<'a>,
    text: Cow<'a, str>,
    code_blocks: Vec<CodeBlock<'a>>,
    end: Option<u64>,
) -> Outbound<'a> {
    Outbound::Draft(DraftContent {
        chat_id,
        content: DraftBody::Text { text, code_blocks },
        is_complete: end.is_some(),
        metadata: end.map(|tokens_used| Metadata { tokens_used }),
    })
}

fn outcome_text(outcome: &Outcome) -> Cow<'static, str> {
    match outcome {
        Outcome::Done => "".into(),
        Outcome::Stopped | Outcome::Interrupted => "Stopped.".into(),
        Outcome::MaxTokens => "The model reached its output limit.".into(),
        Outcome::MaxSteps => "Stopped: too many steps.".into(),
        Outcome::Repeating => "Stopped: the same call over and over.".into(),
        Outcome::Refused { reason } => format!("The model refused: {reason}").into(),
        Outcome::Failed { failure } => failure.to_string().into(),
    }
}

/// A call that changed a file, or proposes to.
fn changed<'a>(chat_id: ChatId<'a>, call: &'a ToolCall) -> Option<Outbound<'a>> {
    let Some(Details::FileChange(change)) = &call.details else {
        let refused = matches!(call.state, ToolState::Rejected { .. });
        let sentence = format!(
            "{} was not run: it needs approval, which this client cannot give. Allow it in toolCall.approval.allow.\n",
            call.name
        );
        return refused.then(|| text(chat_id, sentence.into(), Vec::new(), None));
    };
    if call.state != ToolState::Done || call.error {
        return None;
    }
    let Some(edit) = change_of(change) else {
        let what = if call.manual_approval { "was not made" } else { "was made" };
        let sentence = format!(
            "{}: this change {what}. It cannot be shown as a proposal, because it is large or holds characters that \
             hide text:\n\n```diff\n{}\n```\n",
            call.summary,
            change.diff.replace("```", "` ` `"),
        );
        return Some(text(chat_id, sentence.into(), Vec::new(), None));
    };
    let content = DraftBody::FileChange {
        description: Cow::Borrowed(&call.summary),
        manual_approval: call.manual_approval,
        file: change.path.display().to_string(),
        changes: vec![edit],
    };
    Some(Outbound::Draft(DraftContent { chat_id, content, is_complete: false, metadata: None }))
}

/// One change: the lines between what both texts begin and end with. `None`: its texts are not at hand.
fn change_of(change: &FileChange) -> Option<FileEdit> {
    let new = change.new_text.as_deref()?;
    let Some(old) = change.old_text.as_deref() else {
        // A file whose old text was too large to keep is not new.
        let is_new = change.diff.starts_with("--- /dev/null") || change.diff.is_empty();
        return is_new.then(|| FileEdit::Create { content: new.to_owned() });
    };
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let content: String = new[head..new.len() - tail].concat();
    let range = ChangedLines { start_line: head + 1, end_line: (old.len() - tail).max(head) };
    Some(if content.is_empty() { FileEdit::Delete { range } } else { FileEdit::Change { content, range } })
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
    use serde_json::{json, to_value};

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
            to_value(change_of(&FileChange {
                path: "f".into(),
                diff: String::new(),
                lines_added: 0,
                lines_removed: 0,
                old_text: old.map(str::to_owned),
                new_text: Some(new.to_owned()),
            }))
            .unwrap()
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
