//! One recorded turn as a script: the message, the answers of models, the calls, the questions and the end. Pure.
//!
//! Invariant: a script says where the record stops, so that a replay stops there too.

use std::collections::{BTreeMap, HashMap, VecDeque};

use domain::command::SessionSettings;
use domain::event::{Fact, Outcome, SessionUsage};
use domain::item::{Item, ItemKind, Part};
use domain::model::Tokens;
use domain::note::NoteAbout;
use domain::{Answer, AskId, AskKind, Failure, ItemId, Recorded, ToolState, TurnId};
use engine::recorded::{AGENT_PREFIX, is_of_agent};
use session::state::State;

use super::answer_script::{self, AnswerScript, ItemRecord};
use super::compare::{FAILOVER, added_calls, is_of_hook, item_of};
use super::note_limits;
use super::turn_end::{TurnEnd, Unreplayable};

const PANICKED: &str = "The turn broke off because of a mistake in Dragoman; the journal does not say where.";
const BY_HOOK: &str = "A hook changed the course of the turn, and hooks do not run in a replay.";
const STOPPED_AND_KILLED: &str =
    "The turn was stopped, and the process died before it ended; the journal does not say at which moment.";
const BY_AGENT: &str = "An external agent ran the turn; its own tools are not recorded.";
const NO_MESSAGE: &str = "The process ended before the message of the turn was stored.";

pub(super) struct TurnScript {
    pub(super) id: TurnId,
    pub(super) model: String,
    pub(super) text: String,
    /// `None`: a command that answers by itself, or `/compact`.
    pub(super) message: Option<Vec<Part>>,
    pub(super) output: Option<OutputScript>,
    pub(super) pieces: VecDeque<Piece>,
    /// Settings that changed while it ran.
    pub(super) changes: VecDeque<SessionSettings>,
    /// By the item that waited.
    pub(super) answers: HashMap<Option<ItemId>, VecDeque<RecordedAnswer>>,
    /// Questions of the tools themselves, by the item of the call.
    pub(super) questions: HashMap<ItemId, VecDeque<AskKind>>,
    /// The models it went on with after failures.
    pub(super) failovers: Vec<String>,
    pub(super) max_steps: Option<u32>,
    /// The window of its model.
    pub(super) context_limit: Option<u64>,
    pub(super) end: TurnEnd,
}

pub(super) enum Piece {
    Answer(Box<AnswerScript>),
    /// `text`: `None` where the turn ended before the summary was whole.
    Summary {
        text: Option<String>,
        tokens: Tokens,
    },
}

/// What a slash command did that answers by itself.
#[derive(Clone, Default)]
pub(super) struct OutputScript {
    pub(super) facts: Vec<Fact>,
    pub(super) text: Option<String>,
}

pub(super) struct RecordedAnswer {
    pub(super) answer: Answer,
    /// Nothing more was done after it: a stop was the answer, or came with it.
    pub(super) is_last: bool,
}

impl TurnScript {
    /// `facts` begin with the start of the turn and stop with its end. `title`: the place of the chat's title in them.
    pub(super) fn read(
        facts: &[Recorded],
        usage: &SessionUsage,
        title: Option<usize>,
    ) -> Result<Self, Unreplayable> {
        let ends = (facts.first().map(|first| &first.fact), facts.last().map(|last| &last.fact));
        let (Some(Fact::TurnStarted { turn, model }), Some(Fact::TurnEnded { outcome, .. })) = ends else {
            return Err(Unreplayable(NO_MESSAGE));
        };
        let (body, end) = split(refuse_agents(model, facts)?, outcome);
        let items = records(body);
        refuse_hooks(outcome, &items)?;
        if end == TurnEnd::Killed && items.values().any(was_stopped) {
            return Err(Unreplayable(STOPPED_AND_KILLED));
        }
        let first =
            items.values().find(|record| !is_of_hook(&record.last)).ok_or(Unreplayable(NO_MESSAGE))?;
        let (text, message) = match &first.last.kind {
            ItemKind::UserMessage { text, parts } => (text.clone(), Some(parts.clone())),
            ItemKind::Command { text } => (text.clone(), None),
            _ => return Err(Unreplayable(NO_MESSAGE)),
        };
        let mut script = Self {
            id: *turn,
            model: model.clone(),
            text,
            message,
            output: None,
            pieces: VecDeque::new(),
            changes: VecDeque::new(),
            answers: answers(body),
            questions: questions(body),
            failovers: Vec::new(),
            max_steps: None,
            context_limit: context_limit(body).or(usage.context_limit),
            end,
        };
        if script.message.is_none() && !is_compaction(&script.text) {
            script.output = Some(command_output(body, first.last.id, title));
            return Ok(script);
        }
        let changes = body.iter().enumerate().filter(|(at, _)| title != Some(*at));
        script.changes = changes.filter_map(|(_, recorded)| change_of(&recorded.fact)).collect();
        script.read_pieces(body, items, usage, first_id(body));
        if script.end == TurnEnd::Itself(Outcome::MaxSteps) {
            let steps = script.pieces.iter().filter_map(Piece::step);
            script.max_steps = steps.max();
        }
        Ok(script)
    }

    fn read_pieces(
        &mut self,
        body: &[Recorded],
        mut items: BTreeMap<ItemId, ItemRecord>,
        usage: &SessionUsage,
        first: Option<ItemId>,
    ) {
        let mut reader = PieceReader { pieces: Vec::new(), usage: usage.clone(), summary_tokens: None };
        for Recorded { fact, .. } in body {
            match fact {
                Fact::UsageChanged { usage } => reader.add_usage(usage),
                Fact::Notice { notice } => {
                    if let Some((failure, next)) = failed_over(&notice.text) {
                        self.failovers.push(next);
                        reader.add_failure(failure);
                    }
                }
                _ => {
                    let Some(id) = item_of(fact).map(|item| item.id) else { continue };
                    // Each item is where it first appears; the opening message is no piece.
                    let Some(record) = items.remove(&id).filter(|_| Some(id) != first) else { continue };
                    reader.add_item(record);
                }
            }
        }
        let asks = body.iter().filter_map(|recorded| match &recorded.fact {
            Fact::AskRaised { ask } => Some(ask.clone()),
            _ => None,
        });
        let asks: Vec<_> = asks.collect();
        let mut pieces = reader.pieces;
        pieces.extend(reader.summary_tokens.map(|tokens| Piece::Summary { text: None, tokens }));
        let last = pieces.iter().rposition(|piece| matches!(piece, Piece::Answer(_)));
        let count = pieces.len();
        for (at, piece) in pieces.iter_mut().enumerate() {
            if let Piece::Answer(answer) = piece {
                let is_last = Some(at) == last && at + 1 == count;
                answer_script::finish(answer, is_last, &self.end, &asks);
            }
        }
        self.pieces = pieces.into();
    }
}

impl Piece {
    fn step(&self) -> Option<u32> {
        match self {
            Self::Answer(answer) => Some(answer.step),
            Self::Summary { .. } => None,
        }
    }
}

struct PieceReader {
    pieces: Vec<Piece>,
    usage: SessionUsage,
    /// A summary by a model was paid for.
    summary_tokens: Option<Tokens>,
}

impl PieceReader {
    fn add_usage(&mut self, now: &SessionUsage) {
        for spent in added_calls(&self.usage, now) {
            match spent.purpose.as_str() {
                "answers" => match self.open_answer() {
                    Some(answer) if answer.tokens.is_none() => answer.tokens = Some(spent.tokens),
                    _ => {
                        let step = self.last_step() + 1;
                        self.push(AnswerScript { tokens: Some(spent.tokens), ..AnswerScript::new(step) });
                    }
                },
                "compact" => self.summary_tokens = Some(spent.tokens),
                _ => {}
            }
        }
        self.usage = now.clone();
    }

    fn add_failure(&mut self, failure: Failure) {
        let step = self.last_step() + 1;
        self.push(AnswerScript { failed: Some(failure), ..AnswerScript::new(step) });
    }

    fn add_item(&mut self, record: ItemRecord) {
        let step = record.last.step;
        match &record.last.kind {
            ItemKind::Compaction { summary, .. } => match self.summary_tokens.take() {
                Some(tokens) => self.pieces.push(Piece::Summary { text: Some(summary.clone()), tokens }),
                None => {
                    let summary = summary.clone();
                    if let Some(answer) = self.open_answer() {
                        answer.summary = Some(summary);
                    }
                }
            },
            ItemKind::Note(note) if note.about == NoteAbout::Review => {}
            ItemKind::UserMessage { text, .. } => {
                let text = text.clone();
                match self.open_answer() {
                    Some(answer) => answer.steering = Some(text),
                    // The answer brought nothing, not even a count.
                    None => self.push(AnswerScript { steering: Some(text), ..AnswerScript::new(step) }),
                }
            }
            ItemKind::AgentMessage { .. }
            | ItemKind::Reasoning { .. }
            | ItemKind::ToolCall(_)
            | ItemKind::Citation { .. }
            | ItemKind::SystemText { .. } => {
                if is_of_hook(&record.last) {
                    return;
                }
                match self.open_answer().filter(|answer| answer.step == step && answer.failed.is_none()) {
                    Some(answer) => answer.items.push(record),
                    None => self.push(AnswerScript { items: vec![record], ..AnswerScript::new(step) }),
                }
            }
            ItemKind::Note(note) => {
                let note = (**note).clone();
                match self.open_answer() {
                    Some(answer) => answer.notes.push(note),
                    None => self.push(AnswerScript { notes: vec![note], ..AnswerScript::new(step) }),
                }
            }
            ItemKind::Command { .. } | ItemKind::Hook(_) | ItemKind::Flag { .. } => {}
        }
    }

    fn open_answer(&mut self) -> Option<&mut AnswerScript> {
        match self.pieces.last_mut() {
            Some(Piece::Answer(answer)) if answer.failed.is_none() => Some(answer),
            _ => None,
        }
    }

    fn last_step(&self) -> u32 {
        self.pieces.iter().rev().find_map(Piece::step).unwrap_or(0)
    }

    fn push(&mut self, answer: AnswerScript) {
        self.pieces.push(Piece::Answer(Box::new(answer)));
    }
}

/// The facts of a turn in which no agent worked, neither from the start nor after another model failed.
fn refuse_agents<'a>(model: &str, facts: &'a [Recorded]) -> Result<&'a [Recorded], Unreplayable> {
    let mut items = facts.iter().filter_map(|recorded| item_of(&recorded.fact));
    let is_refused = model.starts_with(AGENT_PREFIX) || items.any(is_of_agent);
    if is_refused { Err(Unreplayable(BY_AGENT)) } else { Ok(facts) }
}

/// The facts that the turn itself made, and how it came to its end. The rest was made when the chat was loaded again.
fn split<'a>(facts: &'a [Recorded], outcome: &Outcome) -> (&'a [Recorded], TurnEnd) {
    let end = match outcome {
        Outcome::Interrupted => TurnEnd::Killed,
        Outcome::Stopped if facts.iter().any(|recorded| was_aborted(&recorded.fact)) => TurnEnd::Aborted,
        _ => return (&facts[..facts.len() - 1], TurnEnd::Itself(outcome.clone())),
    };
    let is_closing = |fact: &Fact| {
        matches!(fact, Fact::ItemEnded { .. } | Fact::AskSettled { answer: Answer::Cancelled, .. })
    };
    let last = facts.len() - 1;
    let tail = facts[..last].iter().rev().take_while(|recorded| is_closing(&recorded.fact)).count();
    let mut state = State::default();
    facts[..last - tail].iter().for_each(|recorded| state.fold(recorded.number, &recorded.fact));
    for at in last - tail..last {
        let closing = state.closing_facts(outcome.clone());
        if closing.iter().eq(facts[at..].iter().map(|recorded| &recorded.fact)) {
            return (&facts[..at], end);
        }
        state.fold(facts[at].number, &facts[at].fact);
    }
    (&facts[..last], end)
}

/// Whether a call was ended in the name of a tool that did not stop.
fn was_aborted(fact: &Fact) -> bool {
    use domain::ToolState::Stopped;
    let Fact::ItemEnded { item } = fact else { return false };
    let ItemKind::ToolCall(call) = &item.kind else { return false };
    match call.state {
        Stopped { unknown } => unknown || (call.error && call.input.is_none()),
        _ => false,
    }
}

/// The items of a turn by id, each with what is recorded of it.
fn records(body: &[Recorded]) -> BTreeMap<ItemId, ItemRecord> {
    let mut records: BTreeMap<ItemId, ItemRecord> = BTreeMap::new();
    for (at, Recorded { fact, .. }) in body.iter().enumerate() {
        if let Fact::ItemGrew { item, channel, text, .. } = fact {
            let known = records.get_mut(item);
            if let Some(whole) = known.and_then(|record| record.last.channel_text_mut(*channel)) {
                whole.push_str(text);
            }
            continue;
        }
        let Some(item) = item_of(fact) else { continue };
        let record = records.entry(item.id).or_insert_with(|| ItemRecord::new(item.clone()));
        record.last = item.clone();
        match fact {
            Fact::ItemChanged { .. } => {
                record.changes.push(item.clone());
                record.advanced_at.get_or_insert(at);
            }
            Fact::ItemEnded { .. } => {
                record.ended = true;
                record.advanced_at.get_or_insert(at);
                record.ended_at = Some(at);
            }
            _ => {}
        }
    }
    records
}

fn refuse_hooks(outcome: &Outcome, items: &BTreeMap<ItemId, ItemRecord>) -> Result<(), Unreplayable> {
    note_limits::refuse(items)?;
    if let Outcome::Failed { failure } = outcome {
        if failure.message.starts_with("The turn broke off because of a mistake in Dragoman") {
            return Err(Unreplayable(PANICKED));
        }
        if ["Turn stopped by hook", "Request blocked by hook"]
            .iter()
            .any(|it| failure.message.starts_with(it))
        {
            return Err(Unreplayable(BY_HOOK));
        }
    }
    let by_hook = |record: &ItemRecord| match &record.last.kind {
        ItemKind::SystemText { text } => text.starts_with("Compaction blocked by hook"),
        ItemKind::ToolCall(call) => answer_script::has_other_input(call),
        _ => false,
    };
    if items.values().any(by_hook) { Err(Unreplayable(BY_HOOK)) } else { Ok(()) }
}

fn is_compaction(text: &str) -> bool {
    text.split_whitespace().next() == Some("/compact")
}

/// The window that the last answer of the turn was counted against.
fn context_limit(body: &[Recorded]) -> Option<u64> {
    body.iter().rev().find_map(|recorded| match &recorded.fact {
        Fact::UsageChanged { usage } => usage.context_limit,
        _ => None,
    })
}

fn first_id(body: &[Recorded]) -> Option<ItemId> {
    let items = body.iter().filter_map(|recorded| item_of(&recorded.fact));
    items.filter(|item| !is_of_hook(item)).map(|item| item.id).min()
}

fn change_of(fact: &Fact) -> Option<SessionSettings> {
    let Fact::SessionChanged { change } = fact else { return None };
    Some(change.clone())
}

/// `a failed: reason Going on with b.`
fn failed_over(text: &str) -> Option<(Failure, String)> {
    let (failed, next) = text.rsplit_once(FAILOVER)?;
    let (_, reason) = failed.split_once(" failed: ")?;
    Some((Failure::provider(reason), next.strip_suffix('.')?.to_owned()))
}

fn command_output(body: &[Recorded], command: ItemId, title: Option<usize>) -> OutputScript {
    let mut output = OutputScript::default();
    for (at, Recorded { fact, .. }) in body.iter().enumerate() {
        match fact {
            Fact::ItemEnded { item: Item { id, .. } } if *id == command => {}
            Fact::ItemEnded { item: Item { kind: ItemKind::SystemText { text }, .. } } => {
                // A text before it belongs to items that were taken over from another chat.
                if let Some(before) = output.text.replace(text.clone()) {
                    output.facts.push(system_text(&before, fact));
                }
            }
            Fact::ItemEnded { .. } => output.facts.push(fact.clone()),
            Fact::SessionChanged { .. } if title != Some(at) => output.facts.push(fact.clone()),
            _ => {}
        }
    }
    output
}

fn system_text(text: &str, like: &Fact) -> Fact {
    let mut fact = like.clone();
    if let Fact::ItemEnded { item } = &mut fact {
        item.kind = ItemKind::SystemText { text: text.to_owned() };
    }
    fact
}

/// The answers of a person to the questions of the turn, by the item that waited.
fn answers(body: &[Recorded]) -> HashMap<Option<ItemId>, VecDeque<RecordedAnswer>> {
    let mut answers: HashMap<Option<ItemId>, VecDeque<RecordedAnswer>> = HashMap::new();
    let mut raised: HashMap<AskId, Option<ItemId>> = HashMap::new();
    for (at, Recorded { fact, .. }) in body.iter().enumerate() {
        match fact {
            Fact::AskRaised { ask } => {
                raised.insert(ask.id, ask.item);
            }
            Fact::AskSettled { id, answer } => {
                let item = raised.get(id).copied().flatten();
                // The tool that asked went on with the answer before a stop came.
                let was_used = |fact: &Fact| *answer != Answer::Cancelled && ends_by_itself(fact, item);
                let is_last =
                    !body[at + 1..].iter().any(|later| shows_work(&later.fact) || was_used(&later.fact));
                answers
                    .entry(item)
                    .or_default()
                    .push_back(RecordedAnswer { answer: answer.clone(), is_last });
            }
            _ => {}
        }
    }
    answers
}

/// Whether the turn was still at work when it made this fact.
fn shows_work(fact: &Fact) -> bool {
    match fact {
        Fact::ItemStarted { .. }
        | Fact::ItemChanged { .. }
        | Fact::AskRaised { .. }
        | Fact::UsageChanged { .. } => true,
        Fact::AskSettled { answer, .. } => *answer != Answer::Cancelled,
        // Text for the running turn is taken before the next call to the model.
        Fact::ItemEnded { item } => matches!(item.kind, ItemKind::UserMessage { .. }),
        _ => false,
    }
}

/// Whether the call of this item came to its own end.
fn ends_by_itself(fact: &Fact, item: Option<ItemId>) -> bool {
    let Fact::ItemEnded { item: ended } = fact else { return false };
    let ItemKind::ToolCall(call) = &ended.kind else { return false };
    Some(ended.id) == item && call.state == ToolState::Done
}

fn questions(body: &[Recorded]) -> HashMap<ItemId, VecDeque<AskKind>> {
    let mut questions: HashMap<ItemId, VecDeque<AskKind>> = HashMap::new();
    for Recorded { fact, .. } in body {
        if let Fact::AskRaised { ask } = fact
            && let Some(item) = ask.item
            && !matches!(ask.kind, AskKind::Approval { .. })
        {
            questions.entry(item).or_default().push_back(ask.kind.clone());
        }
    }
    questions
}

/// Whether the turn itself ended the item because of a stop.
fn was_stopped(record: &ItemRecord) -> bool {
    record.ended
        && match &record.last.kind {
            ItemKind::ToolCall(call) => matches!(call.state, ToolState::Stopped { .. }),
            ItemKind::AgentMessage { interrupted, .. } => *interrupted,
            _ => false,
        }
}
