//! One recorded answer of a model, and the calls in it, as a script. Pure.

use domain::ask::AskKind;
use domain::event::Outcome;
use domain::item::{Item, ItemKind, Part};
use domain::model::{StopReason, Tokens};
use domain::tool::{Review, ToolResult};
use domain::tool_call::{RejectedBy, ToolCall, ToolState};
use domain::{Ask, Failure, ItemId};

use super::turn_script::TurnEnd;
use crate::tool_calls::approval::{ApprovalDecision, Decision};
use crate::tool_calls::{REPEATED, input};

/// What is recorded of one item.
#[derive(Clone)]
pub(super) struct ItemRecord {
    /// As it was last.
    pub(super) last: Item,
    pub(super) changes: Vec<Item>,
    /// The turn itself ended it.
    pub(super) ended: bool,
}

#[derive(Default)]
pub(super) struct AnswerScript {
    pub(super) step: u32,
    pub(super) items: Vec<ItemRecord>,
    pub(super) tokens: Option<Tokens>,
    /// The call failed before anything came, and another model went on.
    pub(super) failed: Option<Failure>,
    /// Text that the user sent while it ran.
    pub(super) steering: Option<String>,
    /// A tool replaced the history by this text.
    pub(super) summary: Option<String>,
    pub(super) end: AnswerEnd,
    pub(super) calls: Vec<CallScript>,
    /// The calls ran one after the other, and some never ran.
    pub(super) in_sequence: bool,
}

#[derive(Clone, Default)]
pub(super) enum AnswerEnd {
    Model(StopReason),
    Fails(Failure),
    /// Nothing more is recorded.
    #[default]
    Hangs,
}

/// One call as the tool of a replay plays it.
#[derive(Clone)]
pub(super) struct CallScript {
    pub(super) item: ItemId,
    pub(super) server: String,
    pub(super) name: String,
    pub(super) review: Result<Review, String>,
    pub(super) decision: ApprovalDecision,
    pub(super) preparation: Preparation,
    pub(super) live_output: String,
    pub(super) run: Run,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preparation {
    Ends,
    /// A stop comes while it is prepared.
    WaitsForStop,
    Hangs,
}

#[derive(Clone)]
pub(super) enum Run {
    Ends(ToolResult),
    /// It ends when the turn is stopped.
    EndsAtStop(ToolResult),
    Hangs,
}

impl ItemRecord {
    pub(super) fn new(item: Item) -> Self {
        Self { last: item, changes: Vec::new(), ended: false }
    }

    fn call(&self) -> Option<&ToolCall> {
        if let ItemKind::ToolCall(call) = &self.last.kind { Some(call) } else { None }
    }

    fn has_run(&self) -> bool {
        self.changes.iter().any(|item| state_of(item) == Some(&ToolState::Running))
    }

    /// It was prepared, or refused, or more; not only streamed.
    fn has_advanced(&self) -> bool {
        let Some(call) = self.call() else { return false };
        if !self.changes.is_empty() {
            return true;
        }
        match &call.state {
            ToolState::Stopped { .. } => self.ended && is_prepared(call),
            state => self.ended && state.is_over(),
        }
    }

    /// It was prepared and would have run, but the turn was stopped.
    fn was_dropped(&self) -> bool {
        let Some(call) = self.call() else { return false };
        matches!(call.state, ToolState::Stopped { .. }) && self.ended && is_prepared(call) && !self.has_run()
    }
}

fn state_of(item: &Item) -> Option<&ToolState> {
    if let ItemKind::ToolCall(call) = &item.kind { Some(&call.state) } else { None }
}

fn is_prepared(call: &ToolCall) -> bool {
    !call.summary.is_empty() || call.details.is_some() || !call.locations.is_empty()
}

/// Whether a hook gave the call other arguments than the model.
pub(super) fn has_other_input(call: &ToolCall) -> bool {
    is_prepared(call) && input::parse(&call.input_text).ok() != call.input
}

impl AnswerScript {
    pub(super) fn new(step: u32) -> Self {
        Self { step, ..Self::default() }
    }
}

/// Fills in how the answer ended and what its calls did. `is_last`: nothing of the turn comes after it.
pub(super) fn finish(answer: &mut AnswerScript, is_last: bool, end: &TurnEnd, asks: &[Ask]) {
    answer.items.sort_by_key(|record| record.last.id);
    answer.end = end_of(answer, is_last, end);
    let calls: Vec<ItemRecord> = answer.items.iter().filter(|record| is_reviewed(record)).cloned().collect();
    let ran: Vec<bool> = calls.iter().map(ItemRecord::has_run).collect();
    let waits = |at: usize| asks.iter().any(|ask| ask.item == Some(calls[at].last.id));
    // Calls that never ran although one before them ran or waited for an answer.
    let left = |at: usize| {
        let is_open = calls[at].was_dropped() || !calls[at].ended;
        !ran[at] && !waits(at) && is_open && (0..at).any(|before| ran[before] || waits(before))
    };
    answer.in_sequence = (0..calls.len()).any(left);
    let in_sequence = answer.in_sequence;
    answer.calls = (0..calls.len())
        .map(|at| {
            let later_ran = in_sequence && ran[at + 1..].contains(&true);
            script_of(&calls[at], asks, later_ran, end)
        })
        .collect();
    hold_preparation(answer, &calls, &ran, end, asks);
    if let (Some(summary), Some(call)) = (answer.summary.clone(), answer.calls.last_mut())
        && let Run::Ends(result) = &mut call.run
    {
        result.compact = Some(summary);
    }
}

/// Where nothing is recorded of the calls but that they were asked for, they are prepared until the turn ends.
fn hold_preparation(
    answer: &mut AnswerScript,
    calls: &[ItemRecord],
    ran: &[bool],
    end: &TurnEnd,
    asks: &[Ask],
) {
    if ran.contains(&true) || !matches!(answer.end, AnswerEnd::Model(_)) {
        return;
    }
    match end {
        TurnEnd::Itself(Outcome::Stopped) => {
            let is_asked = |record: &&ItemRecord| asks.iter().any(|ask| ask.item == Some(record.last.id));
            let dropped = calls.iter().any(ItemRecord::was_dropped);
            if dropped
                && !calls.iter().any(|record| is_asked(&record))
                && let Some(last) = answer.calls.last_mut()
            {
                last.preparation = Preparation::WaitsForStop;
            }
        }
        TurnEnd::Itself(_) => {}
        TurnEnd::Aborted | TurnEnd::Killed => {
            let known = calls.iter().rposition(|record| record.has_advanced()).map_or(0, |at| at + 1);
            if let Some(call) = answer.calls.get_mut(known) {
                call.preparation = Preparation::Hangs;
            }
        }
    }
}

fn end_of(answer: &AnswerScript, is_last: bool, end: &TurnEnd) -> AnswerEnd {
    if let Some(failure) = &answer.failed {
        return AnswerEnd::Fails(failure.clone());
    }
    let is_whole = AnswerEnd::Model(StopReason::Done);
    let has_calls = answer.items.iter().any(|record| record.call().is_some());
    let has_advanced = answer.items.iter().any(ItemRecord::has_advanced);
    if !is_last || has_advanced || answer.steering.is_some() {
        return is_whole;
    }
    match end {
        TurnEnd::Itself(outcome) if has_calls || *outcome != Outcome::Stopped => end_by(outcome),
        // The count comes when the answer is over.
        TurnEnd::Killed | TurnEnd::Aborted if answer.tokens.is_some() => is_whole,
        TurnEnd::Itself(_) | TurnEnd::Killed | TurnEnd::Aborted => AnswerEnd::Hangs,
    }
}

/// The end of an answer that ended its turn.
pub(super) fn end_by(outcome: &Outcome) -> AnswerEnd {
    match outcome {
        Outcome::Done => AnswerEnd::Model(StopReason::Done),
        Outcome::MaxTokens => AnswerEnd::Model(StopReason::MaxTokens),
        Outcome::Refused { reason } => AnswerEnd::Model(StopReason::Refused { reason: reason.clone() }),
        Outcome::Failed { failure } => AnswerEnd::Fails(failure.clone()),
        Outcome::Stopped | Outcome::MaxSteps | Outcome::Repeating | Outcome::Interrupted => AnswerEnd::Hangs,
    }
}

/// A call whose arguments can be read; the engine answers the others by itself.
fn is_reviewed(record: &ItemRecord) -> bool {
    record.call().is_some_and(|call| input::parse(&call.input_text).is_ok())
}

fn script_of(record: &ItemRecord, asks: &[Ask], later_ran: bool, end: &TurnEnd) -> CallScript {
    let blank = Box::new(crate::turn::answer::new_call(
        String::new(),
        String::new(),
        String::new(),
        domain::tool_call::Origin::Native,
    ));
    let call = record.call().unwrap_or(&blank);
    let first = record.changes.first().unwrap_or(&record.last);
    let reviewed = if let ItemKind::ToolCall(first) = &first.kind { first } else { &blank };
    CallScript {
        item: record.last.id,
        server: call.server.clone(),
        name: call.name.clone(),
        review: review_of(record, call, reviewed, asks),
        decision: decision_of(record, call, asks),
        preparation: Preparation::Ends,
        live_output: call.live_output.clone(),
        run: run_of(record, call, reviewed, later_ran, end),
    }
}

fn review_of(
    record: &ItemRecord,
    call: &ToolCall,
    reviewed: &ToolCall,
    asks: &[Ask],
) -> Result<Review, String> {
    let is_proposal = call.manual_approval;
    if record.ended && call.state == ToolState::Done && record.changes.is_empty() && !is_proposal {
        return Err(first_text(call));
    }
    let keys = approval_of(record, asks).map(|(_, keys)| keys).unwrap_or_default();
    Ok(Review {
        summary: reviewed.summary.clone(),
        details: reviewed.details.clone(),
        locations: reviewed.locations.clone(),
        keys,
        harmless: true,
        ..Review::default()
    })
}

fn approval_of(record: &ItemRecord, asks: &[Ask]) -> Option<(String, Vec<String>)> {
    asks.iter().filter(|ask| ask.item == Some(record.last.id)).find_map(|ask| match &ask.kind {
        AskKind::Approval { reason, keys } => Some((reason.clone(), keys.clone())),
        AskKind::Question { .. } | AskKind::Form { .. } => None,
    })
}

fn decision_of(record: &ItemRecord, call: &ToolCall, asks: &[Ask]) -> ApprovalDecision {
    let decision = |decision, reason: String| ApprovalDecision {
        decision,
        reason,
        unasked: false,
        contained: false,
        once: false,
        by_hook: false,
    };
    if let Some((reason, keys)) = approval_of(record, asks) {
        return ApprovalDecision { once: keys.is_empty(), ..decision(Decision::Ask, reason) };
    }
    let denied = |unasked| ApprovalDecision { unasked, ..decision(Decision::Deny, refusal_reason(call)) };
    match &call.state {
        ToolState::Rejected { by: RejectedBy::Policy } => denied(false),
        ToolState::Rejected { by: RejectedBy::Unasked } => denied(true),
        ToolState::Rejected { by: RejectedBy::Hook } => ApprovalDecision { by_hook: true, ..denied(false) },
        // A change that the client applies by itself.
        ToolState::Done if record.changes.is_empty() && call.manual_approval => denied(true),
        _ => decision(Decision::Allow, String::new()),
    }
}

fn refusal_reason(call: &ToolCall) -> String {
    ApprovalDecision::reason_in(&first_text(call)).unwrap_or_default().to_owned()
}

fn first_text(call: &ToolCall) -> String {
    let text = call.result.iter().find_map(|part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image { .. } => None,
    });
    text.unwrap_or_default()
}

fn run_of(record: &ItemRecord, call: &ToolCall, reviewed: &ToolCall, later_ran: bool, end: &TurnEnd) -> Run {
    let mut parts = call.result.clone();
    // The engine adds this by itself.
    if parts.last() == Some(&Part::text(REPEATED)) {
        parts.pop();
    }
    let result = ToolResult {
        parts,
        error: call.error,
        details: call.details.clone().filter(|details| reviewed.details.as_ref() != Some(details)),
        locations: if call.locations == reviewed.locations { Vec::new() } else { call.locations.clone() },
        ..ToolResult::default()
    };
    match &call.state {
        _ if !record.ended && !later_ran => Run::Hangs,
        ToolState::Stopped { .. } if *end == TurnEnd::Itself(Outcome::Stopped) => Run::EndsAtStop(result),
        _ => Run::Ends(result),
    }
}
