//! From a fact to its stored form.
//!
//! Must not know SQL or files. Invariant: no text is copied; a record borrows from its fact.

use std::borrow::Cow;

use domain::ask::{Answer, Ask, AskKind, Choice};
use domain::command::SessionSettings;
use domain::event::{ContextUse, Fact, Notice, Outcome, PrefixBreak, SessionOpened, SessionUsage, Spent};
use domain::item::{Item, ItemKind, Part, PlanEntry, ProviderBlock};
use domain::model::Tokens;
use domain::{Failure, SessionId};
use serde::Serialize;

use super::convert::borrow_all;
use super::parts::{PartV1, PlanEntryV1, ProviderBlockV1};
use super::{
    AnswerV1, AskKindV1, AskV1, ChoiceV1, ContextUseV1, FailureV1, ItemGrewV1, ItemKindV1, ItemV1, NoticeV1,
    OutcomeV1, PrefixBreakV1, RecordV1, SessionOpenedV1, SettingsV1, SpentV1, TokensV1, UsageV1,
};

pub(crate) fn to_json(record: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(record).map_err(|_| {
        Failure::user("A fact of the chat cannot be stored; a path in it may not be UTF-8.")
            .hint("Rename folders and files whose names are not UTF-8.")
    })
}

impl RecordV1<'_> {
    /// The word that the column `kind` holds.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::SessionOpened(_) => "sessionOpened",
            Self::SessionChanged { .. } => "sessionChanged",
            Self::SessionClosed => "sessionClosed",
            Self::TurnStarted { .. } => "turnStarted",
            Self::TurnEnded { .. } => "turnEnded",
            Self::ItemStarted { .. } => "itemStarted",
            Self::ItemChanged { .. } => "itemChanged",
            Self::ItemGrew(_) => "itemGrew",
            Self::ItemEnded { .. } => "itemEnded",
            Self::HistoryReplaced { .. } => "historyReplaced",
            Self::AskRaised { .. } => "askRaised",
            Self::AskSettled { .. } => "askSettled",
            Self::UsageChanged { .. } => "usageChanged",
            Self::Notice { .. } => "notice",
            Self::TaintChanged { .. } => "taintChanged",
        }
    }
}

impl<'a> From<&'a Fact> for RecordV1<'a> {
    fn from(fact: &'a Fact) -> Self {
        match fact {
            Fact::SessionOpened(opened) => Self::SessionOpened(opened.into()),
            Fact::SessionChanged { change } => Self::SessionChanged { change: change.into() },
            Fact::TurnStarted { turn, model } => Self::TurnStarted { turn: turn.0, model: model.into() },
            Fact::TurnEnded { turn, outcome } => Self::TurnEnded { turn: turn.0, outcome: outcome.into() },
            Fact::ItemStarted { item } => Self::ItemStarted { item: item.into() },
            Fact::ItemChanged { item } => Self::ItemChanged { item: item.into() },
            Fact::ItemGrew { item, channel, offset, text } => Self::ItemGrew(ItemGrewV1 {
                item: item.0,
                channel: (*channel).into(),
                offset: *offset,
                text: text.into(),
            }),
            Fact::ItemEnded { item } => Self::ItemEnded { item: item.into() },
            Fact::HistoryReplaced { keep } => Self::HistoryReplaced { keep: keep.map(|keep| keep.0) },
            Fact::AskRaised { ask } => Self::AskRaised { ask: ask.into() },
            Fact::AskSettled { id, answer } => Self::AskSettled { id: id.0, answer: answer.into() },
            Fact::UsageChanged { usage } => Self::UsageChanged { usage: usage.into() },
            Fact::Notice { notice } => Self::Notice { notice: notice.into() },
            Fact::TaintChanged { taint } => {
                Self::TaintChanged { sources: taint.sources().into(), secrets: taint.secrets().into() }
            }
        }
    }
}

impl<'a> From<&'a SessionOpened> for SessionOpenedV1<'a> {
    fn from(opened: &'a SessionOpened) -> Self {
        Self {
            workspace: opened.workspace.iter().map(|folder| folder.as_path().into()).collect(),
            settings: (&opened.settings).into(),
            parent: opened.parent.as_ref().map(SessionId::as_str).map(Into::into),
            client: (&opened.client).into(),
        }
    }
}

impl<'a> From<&'a SessionSettings> for SettingsV1<'a> {
    fn from(settings: &'a SessionSettings) -> Self {
        Self {
            title: text(&settings.title),
            model: text(&settings.model),
            behavior: text(&settings.behavior),
            variant: text(&settings.variant),
            trust: settings.trust,
        }
    }
}

fn text(value: &Option<String>) -> Option<Cow<'_, str>> {
    value.as_deref().map(Cow::Borrowed)
}

impl<'a> From<&'a Outcome> for OutcomeV1<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::Stopped => Self::Stopped,
            Outcome::MaxTokens => Self::MaxTokens,
            Outcome::MaxSteps => Self::MaxSteps,
            Outcome::Repeating => Self::Repeating,
            Outcome::Refused { reason } => Self::Refused { reason: reason.into() },
            Outcome::Failed { failure } => Self::Failed { failure: failure.into() },
            Outcome::Interrupted => Self::Interrupted,
        }
    }
}

impl<'a> From<&'a Failure> for FailureV1<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self {
            kind: failure.kind.into(),
            message: (&failure.message).into(),
            hint: text(&failure.hint),
            retry_after: failure.retry_after,
        }
    }
}

impl<'a> From<&'a Item> for ItemV1<'a> {
    fn from(item: &'a Item) -> Self {
        Self {
            id: item.id.0,
            turn: item.turn.0,
            step: item.step,
            parent: item.parent.map(|parent| parent.0),
            kind: (&item.kind).into(),
        }
    }
}

impl<'a> From<&'a ItemKind> for ItemKindV1<'a> {
    fn from(kind: &'a ItemKind) -> Self {
        match kind {
            ItemKind::UserMessage { text, parts } => {
                Self::UserMessage { text: text.into(), parts: borrow_all(parts) }
            }
            ItemKind::AgentMessage { text, interrupted, provider } => Self::AgentMessage {
                text: text.into(),
                interrupted: *interrupted,
                provider: provider.as_ref().map(Into::into),
            },
            ItemKind::Reasoning { text, millis, provider } => Self::Reasoning {
                text: text.into(),
                millis: *millis,
                provider: provider.as_ref().map(Into::into),
            },
            ItemKind::ToolCall(call) => Self::ToolCall(Box::new((&**call).into())),
            ItemKind::Citation { title, url } => Self::Citation { title: title.into(), url: url.into() },
            ItemKind::Compaction { summary, kept } => {
                Self::Compaction { summary: summary.into(), kept: borrow_all(kept) }
            }
            ItemKind::Command { text } => Self::Command { text: text.into() },
            ItemKind::SystemText { text } => Self::SystemText { text: text.into() },
            ItemKind::Hook(run) => Self::HookRun {
                name: (&run.name).into(),
                status: run.status,
                output: (&run.output).into(),
                error: (&run.error).into(),
                call: run.call.map(|call| call.0),
            },
            ItemKind::Flag { text } => Self::Bookmark { text: text.into() },
            ItemKind::Note(note) => Self::Note {
                about: (&note.about).into(),
                text: (&note.text).into(),
                parts: borrow_all(&note.parts),
            },
        }
    }
}

impl<'a> From<&'a Part> for PartV1<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Text { text } => Self::Text { text: text.into() },
            Part::Image { mime, data } => Self::Image { mime: mime.into(), data: (&**data).into() },
        }
    }
}

impl<'a> From<&'a ProviderBlock> for ProviderBlockV1<'a> {
    fn from(block: &'a ProviderBlock) -> Self {
        Self {
            format: (&block.format).into(),
            model: (&block.model).into(),
            data: Cow::Borrowed(&block.data),
        }
    }
}

impl<'a> From<&'a PlanEntry> for PlanEntryV1<'a> {
    fn from(entry: &'a PlanEntry) -> Self {
        Self { text: (&entry.text).into(), status: entry.status.into(), priority: text(&entry.priority) }
    }
}

impl<'a> From<&'a Ask> for AskV1<'a> {
    fn from(ask: &'a Ask) -> Self {
        Self {
            id: ask.id.0,
            turn: ask.turn.0,
            item: ask.item.map(|item| item.0),
            kind: match &ask.kind {
                AskKind::Approval { reason, keys } => {
                    AskKindV1::Approval { reason: reason.into(), keys: keys.into() }
                }
                AskKind::Question { text: asked, options, freeform, url } => AskKindV1::Question {
                    text: asked.into(),
                    options: borrow_all(options),
                    freeform: *freeform,
                    url: text(url),
                },
                AskKind::Form { text, schema } => {
                    AskKindV1::Form { text: text.into(), schema: Cow::Borrowed(schema) }
                }
            },
        }
    }
}

impl<'a> From<&'a Choice> for ChoiceV1<'a> {
    fn from(choice: &'a Choice) -> Self {
        Self { label: (&choice.label).into(), description: text(&choice.description) }
    }
}

impl<'a> From<&'a Answer> for AnswerV1<'a> {
    fn from(answer: &'a Answer) -> Self {
        match answer {
            Answer::Allow { remember } => Self::Allow { remember: *remember },
            Answer::Deny { remember, reason } => Self::Deny { remember: *remember, reason: text(reason) },
            Answer::Text { text } => Self::Text { text: text.into() },
            Answer::Form { data } => Self::Form { data: Cow::Borrowed(data) },
            Answer::Cancelled => Self::Cancelled,
        }
    }
}

impl<'a> From<&'a SessionUsage> for UsageV1<'a> {
    fn from(usage: &'a SessionUsage) -> Self {
        Self {
            last: (&usage.last).into(),
            total: (&usage.total).into(),
            last_cost: usage.last_cost,
            session_cost: usage.session_cost,
            context_limit: usage.context_limit,
            output_limit: usage.output_limit,
            context: usage.context.map(Into::into),
            spent: borrow_all(&usage.spent),
            breaks: borrow_all(&usage.breaks),
        }
    }
}

impl From<ContextUse> for ContextUseV1 {
    fn from(context: ContextUse) -> Self {
        Self {
            system_prompt: context.system_prompt,
            rules: context.rules,
            skills: context.skills,
            instructions: context.instructions,
            tool_definitions: context.tool_definitions,
            tool_calls: context.tool_calls,
            conversation: context.conversation,
        }
    }
}

impl From<&Tokens> for TokensV1 {
    fn from(tokens: &Tokens) -> Self {
        let Tokens { input, cache_read, cache_write, output, reasoning } = *tokens;
        Self { input, cache_read, cache_write, output, reasoning }
    }
}

impl<'a> From<&'a Spent> for SpentV1<'a> {
    fn from(spent: &'a Spent) -> Self {
        Self {
            purpose: (&spent.purpose).into(),
            model: (&spent.model).into(),
            calls: spent.calls,
            tokens: (&spent.tokens).into(),
            cost: spent.cost,
        }
    }
}

impl<'a> From<&'a PrefixBreak> for PrefixBreakV1<'a> {
    fn from(prefix_break: &'a PrefixBreak) -> Self {
        Self { reason: (&prefix_break.reason).into(), tokens: prefix_break.tokens, cost: prefix_break.cost }
    }
}

impl<'a> From<&'a Notice> for NoticeV1<'a> {
    fn from(notice: &'a Notice) -> Self {
        Self { level: notice.level.into(), text: (&notice.text).into() }
    }
}
