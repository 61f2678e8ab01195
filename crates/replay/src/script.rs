//! A journal as a script: what the user did, in order, and what each turn was given. Pure.
//!
//! Must not know engines. Invariant: every fact that a replay compares belongs to one segment or to the beginning that is
//! taken as it is.

use std::ops::Range;

use domain::command::SessionSettings;
use domain::event::{Fact, Outcome, SessionUsage};
use domain::item::ItemKind;
use domain::model::Tokens;
use domain::{AskId, ItemId, Recorded};
use engine::recorded::{is_relayed, shorten_title};
use session::state::State;

use super::compare::{added_calls, item_of};
use super::outcome::Limit;
use super::turn_end::Unreplayable;
use super::turn_script::TurnScript;

pub(super) struct Script {
    /// The number of facts at the beginning that are taken as they are: the opening of the chat, the items of a fork.
    pub(super) given: usize,
    pub(super) segments: Vec<Segment>,
    pub(super) title: Option<TitleScript>,
}

pub(super) enum Segment {
    Configure(SessionSettings),
    Rollback {
        keep: Option<ItemId>,
    },
    Turn(Box<TurnScript>),
    /// Facts that are taken as they are, and why where that is worth a word.
    Adopted {
        facts: Range<usize>,
        limit: Option<Limit>,
    },
}

/// The title that the engine gave the chat.
#[derive(Clone)]
pub(super) struct TitleScript {
    /// `None`: the call to a model brought none.
    pub(super) text: Option<String>,
    /// The model that made it, and what it used; `None`: a rule made it.
    pub(super) call: Option<(String, Tokens)>,
}

/// The facts of a chat in which no turn is open.
pub(super) fn closed(facts: &[Recorded]) -> Vec<Recorded> {
    let mut state = State::default();
    facts.iter().for_each(|recorded| state.fold(recorded.number, &recorded.fact));
    let first = state.newest() + 1;
    let closing = (first..).zip(state.closing_facts(Outcome::Interrupted));
    let closing = closing.map(|(number, fact)| Recorded { number, at: 0, fact });
    without_relayed(facts.iter().cloned().chain(closing))
}

/// Calls of subagents are in the chat of their parent for people alone: the journal of the subagent replays them.
fn without_relayed(facts: impl Iterator<Item = Recorded>) -> Vec<Recorded> {
    let (mut items, mut asks): (Vec<ItemId>, Vec<AskId>) = Default::default();
    let mut kept = Vec::new();
    for recorded in facts {
        if let Some(item) = item_of(&recorded.fact).filter(|item| is_relayed(item)) {
            items.push(item.id);
            continue;
        }
        match &recorded.fact {
            Fact::AskRaised { ask } if ask.item.is_some_and(|item| items.contains(&item)) => {
                asks.push(ask.id)
            }
            Fact::AskSettled { id, .. } if asks.contains(id) => {}
            _ => kept.push(recorded),
        }
    }
    kept
}

/// `facts` have no open turn.
pub(super) fn read(facts: &[Recorded]) -> Script {
    let given = given(facts);
    let (title, title_at) = find_title(facts);
    let mut script = Script { given, segments: Vec::new(), title };
    let mut usage = SessionUsage::default();
    facts[..given].iter().for_each(|recorded| note_usage(&mut usage, &recorded.fact));
    let mut at = given;
    while let Some(Recorded { fact, .. }) = facts.get(at) {
        let mut next = at + 1;
        match fact {
            Fact::TurnStarted { turn, .. } => {
                let is_end =
                    |fact: &Fact| matches!(fact, Fact::TurnEnded { turn: ended, .. } if ended == turn);
                let length = facts[at..].iter().position(|recorded| is_end(&recorded.fact));
                next = length.map_or(facts.len(), |length| at + length + 1);
                let title = title_at.and_then(|title| title.checked_sub(at));
                script.segments.push(match TurnScript::read(&facts[at..next], &usage, title) {
                    Ok(turn) => Segment::Turn(Box::new(turn)),
                    Err(Unreplayable(reason)) => {
                        let limit = Limit { turn: *turn, reason };
                        Segment::Adopted { facts: at..next, limit: Some(limit) }
                    }
                });
            }
            Fact::SessionChanged { change } if title_at != Some(at) => {
                script.segments.push(Segment::Configure(change.clone()));
            }
            Fact::HistoryReplaced { keep } => script.segments.push(Segment::Rollback { keep: *keep }),
            Fact::ItemStarted { .. } | Fact::ItemChanged { .. } | Fact::ItemEnded { .. } => {
                script.segments.push(Segment::Adopted { facts: at..next, limit: None });
            }
            Fact::SessionOpened(_)
            | Fact::SessionChanged { .. }
            | Fact::TurnEnded { .. }
            | Fact::ItemGrew { .. }
            | Fact::AskRaised { .. }
            | Fact::AskSettled { .. }
            | Fact::UsageChanged { .. }
            | Fact::Notice { .. }
            | Fact::TaintChanged { .. } => {}
        }
        facts[at..next].iter().for_each(|recorded| note_usage(&mut usage, &recorded.fact));
        at = next;
    }
    script
}

fn note_usage(usage: &mut SessionUsage, fact: &Fact) {
    if let Fact::UsageChanged { usage: now } = fact {
        *usage = now.clone();
    }
}

fn given(facts: &[Recorded]) -> usize {
    let Some(Fact::SessionOpened(opened)) = facts.first().map(|first| &first.fact) else { return 0 };
    if opened.parent.is_none() {
        return 1;
    }
    let is_copied = |fact: &Fact| matches!(fact, Fact::ItemEnded { .. } | Fact::TaintChanged { .. });
    1 + facts[1..].iter().take_while(|recorded| is_copied(&recorded.fact)).count()
}

/// The title that was not set by the user, and the place of its fact.
fn find_title(facts: &[Recorded]) -> (Option<TitleScript>, Option<usize>) {
    let Some(text) = first_message(facts) else { return (None, None) };
    let call = title_call(facts);
    let by_rule = shorten_title(text);
    let is_title = |fact: &Fact| {
        let Fact::SessionChanged { change } = fact else { return false };
        let only = SessionSettings { title: change.title.clone(), ..SessionSettings::default() };
        change.title.is_some()
            && *change == only
            && (call.is_some() || change.title.as_ref() == Some(&by_rule))
    };
    let at = facts.iter().position(|recorded| is_title(&recorded.fact));
    let text = at.and_then(|at| match &facts[at].fact {
        Fact::SessionChanged { change } => change.title.clone(),
        _ => None,
    });
    let title = (text.is_some() || call.is_some()).then_some(TitleScript { text, call });
    (title, at)
}

fn first_message(facts: &[Recorded]) -> Option<&str> {
    facts.iter().find_map(|recorded| {
        let Fact::ItemEnded { item } = &recorded.fact else { return None };
        let ItemKind::UserMessage { text, .. } = &item.kind else { return None };
        Some(text.as_str())
    })
}

fn title_call(facts: &[Recorded]) -> Option<(String, Tokens)> {
    let mut usage = SessionUsage::default();
    for recorded in facts {
        let Fact::UsageChanged { usage: now } = &recorded.fact else { continue };
        let added = added_calls(&usage, now).into_iter().find(|spent| spent.purpose == "title");
        if let Some(spent) = added {
            return Some((spent.model, spent.tokens));
        }
        usage = now.clone();
    }
    None
}
