//! One recorded answer of a model, and the calls in it, as a script. Pure.

use std::collections::HashSet;

use domain::ask::AskKind;
use domain::event::Outcome;
use domain::item::{Item, ItemKind, Part};
use domain::model::{StopReason, Tokens};
use domain::note::Note;
use domain::tool::{Review, ToolResult};
use domain::tool_call::{RejectedBy, ToolCall, ToolState};
use domain::{Ask, Failure, ItemId};
use engine::approval::{ApprovalDecision, Decision};
use engine::recorded::{REPEATED, STOPPED_BY_USER, parse_input};

use super::turn_end::TurnEnd;

/// What is recorded of one item.
#[derive(Clone)]
pub(super) struct ItemRecord {
    /// As it was last.
    pub(super) last: Item,
    pub(super) changes: Vec<Item>,
    /// The turn itself ended it.
    pub(super) ended: bool,
    /// The places of its first change after it was streamed, and of its end.
    pub(super) advanced_at: Option<usize>,
    pub(super) ended_at: Option<usize>,
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
    /// What Dragoman told the model after it.
    pub(super) notes: Vec<Note>,
    /// A tool replaced the history by this text.
    pub(super) summary: Option<String>,
    pub(super) end: AnswerEnd,
    pub(super) calls: Vec<CallScript>,
    /// Tools whose calls came to their turn one after the other: their servers and names.
    pub(super) one_by_one: HashSet<(String, String)>,
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
    /// The user stops this call alone.
    StoppedAlone(ToolResult),
    Hangs,
}

impl ItemRecord {
    pub(super) fn new(item: Item) -> Self {
        Self { last: item, changes: Vec::new(), ended: false, advanced_at: None, ended_at: None }
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

    /// The turn was stopped before the call was prepared.
    fn was_never_prepared(&self) -> bool {
        let Some(call) = self.call() else { return false };
        matches!(call.state, ToolState::Stopped { .. })
            && self.ended
            && self.changes.is_empty()
            && !is_prepared(call)
    }

    /// It ran or waited until the turn was stopped.
    fn was_stopped(&self) -> bool {
        let is_stopped = self.call().is_some_and(|call| matches!(call.state, ToolState::Stopped { .. }));
        is_stopped && self.ended && !self.changes.is_empty()
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
    is_prepared(call) && parse_input(&call.input_text).ok() != call.input
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
        let record = &calls[at];
        let is_open = record.was_dropped() || record.was_never_prepared() || !record.ended;
        !ran[at] && !waits(at) && is_open && (0..at).any(|before| ran[before] || waits(before))
    };
    answer.one_by_one = one_by_one(&calls);
    let is_one_left = (0..calls.len()).any(left);
    answer.calls = (0..calls.len())
        .map(|at| {
            let later_ran = is_one_left && ran[at + 1..].contains(&true);
            script_of(&calls[at], asks, later_ran, end)
        })
        .collect();
    hold_preparation(answer, &calls, end, asks);
    if let (Some(summary), Some(call)) = (answer.summary.clone(), answer.calls.last_mut())
        && let Run::Ends(result) = &mut call.run
    {
        result.compact = Some(summary);
    }
}

/// The tools that do not only read, as far as the order of the record shows: a call after one of them, or before one, came to
/// its turn when the other had ended.
fn one_by_one(calls: &[ItemRecord]) -> HashSet<(String, String)> {
    let name = |at: usize| calls[at].call().map(|call| (call.server.clone(), call.name.clone()));
    let is_together = |at: usize| match (calls[at].ended_at, calls[at + 1].advanced_at) {
        (Some(ended), Some(advanced)) => advanced < ended,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    let pairs = || 0..calls.len().saturating_sub(1);
    let reading: HashSet<_> =
        pairs().filter(|at| is_together(*at)).flat_map(|at| [name(at), name(at + 1)]).flatten().collect();
    let mut found = HashSet::new();
    for at in pairs().filter(|at| !is_together(*at)) {
        let (one, other) = (name(at), name(at + 1));
        let later = other.filter(|other| !reading.contains(other));
        found.extend(later.or_else(|| one.filter(|one| !reading.contains(one))));
    }
    found
}

/// Where the record says of a call only that the model asked for it, it is prepared until the turn ends.
fn hold_preparation(answer: &mut AnswerScript, calls: &[ItemRecord], end: &TurnEnd, asks: &[Ask]) {
    if !matches!(answer.end, AnswerEnd::Model(_)) {
        return;
    }
    match end {
        TurnEnd::Itself(Outcome::Stopped) => {
            let is_asked = |record: &ItemRecord| asks.iter().any(|ask| ask.item == Some(record.last.id));
            let is_held = |record: &ItemRecord| record.was_never_prepared() || record.was_dropped();
            if calls.iter().any(|record| record.was_stopped() || (is_held(record) && is_asked(record))) {
                return;
            }
            let first = calls.iter().position(ItemRecord::was_never_prepared);
            let last = calls.iter().any(ItemRecord::was_dropped).then(|| calls.len().saturating_sub(1));
            if let Some(call) = first.or(last).and_then(|at| answer.calls.get_mut(at)) {
                call.preparation = Preparation::WaitsForStop;
            }
        }
        TurnEnd::Itself(_) => {}
        TurnEnd::Aborted | TurnEnd::Killed => {
            let known = calls.iter().rposition(|record| record.has_advanced()).map_or(0, |at| at + 1);
            let is_free = calls[..known].iter().all(|record| record.ended);
            if let Some(call) = answer.calls.get_mut(known).filter(|_| is_free) {
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
    if !is_last || has_advanced || answer.steering.is_some() || !answer.notes.is_empty() {
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
    record.call().is_some_and(|call| parse_input(&call.input_text).is_ok())
}

fn script_of(record: &ItemRecord, asks: &[Ask], later_ran: bool, end: &TurnEnd) -> CallScript {
    let blank = Box::new(ToolCall::new(
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
        reviewable: false,
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
    // The engine adds these by itself.
    let mut take = |text: &str| parts.pop_if(|last| *last == Part::text(text)).is_some();
    take(REPEATED);
    let is_stopped_alone = take(STOPPED_BY_USER);
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
        ToolState::Stopped { .. } if is_stopped_alone => Run::StoppedAlone(result),
        _ => Run::Ends(result),
    }
}

#[cfg(test)]
mod tests {
    use domain::TurnId;
    use domain::tool_call::Origin;

    use super::*;

    /// A call as the journal has it: the states of its changes, and its last state where it ended.
    fn record(
        id: u64,
        name: &str,
        changes: &[ToolState],
        last: ToolState,
        at: (Option<usize>, Option<usize>),
    ) -> ItemRecord {
        let item = |state: ToolState| {
            let mut call = ToolCall::new(String::new(), "eca".into(), name.into(), Origin::Native);
            (call.state, call.input_text) = (state, "{}".into());
            let kind = ItemKind::ToolCall(Box::new(call));
            Item { id: ItemId(id), turn: TurnId(1), step: 1, parent: None, kind }
        };
        let changes = changes.iter().cloned().map(item).collect();
        ItemRecord { last: item(last), changes, ended: at.1.is_some(), advanced_at: at.0, ended_at: at.1 }
    }

    fn script(items: Vec<ItemRecord>, end: &TurnEnd) -> AnswerScript {
        let mut answer = AnswerScript { items, ..AnswerScript::new(1) };
        finish(&mut answer, true, end, &[]);
        answer
    }

    fn preparations(answer: &AnswerScript) -> Vec<Preparation> {
        answer.calls.iter().map(|call| call.preparation).collect()
    }

    #[test]
    fn a_call_whose_turn_never_came_is_held_back() {
        use Preparation::{Ends, Hangs, WaitsForStop};
        let stopped = ToolState::Stopped { unknown: false };
        let running = [ToolState::Running];
        let ran = |id, name, from, to| record(id, name, &running, ToolState::Done, (Some(from), Some(to)));
        let cut = |id, name, from, to| record(id, name, &running, stopped.clone(), (Some(from), Some(to)));
        let unseen = |id, name, at| record(id, name, &[], stopped.clone(), (Some(at), Some(at)));
        let open = |id, name| record(id, name, &[], ToolState::Preparing, (None, None));
        let runs = |id, name, from| record(id, name, &running, ToolState::Running, (Some(from), None));
        let (stop, done) = (TurnEnd::Itself(Outcome::Stopped), TurnEnd::Itself(Outcome::Done));
        let killed = TurnEnd::Killed;
        for (items, end, one_by_one, expected) in [
            // The stop came while the first one ran.
            (vec![cut(1, "a", 1, 2), unseen(2, "b", 3)], &stop, vec!["b"], vec![Ends, Ends]),
            // It came while the second one was prepared.
            (vec![ran(1, "a", 1, 2), unseen(2, "b", 3)], &stop, vec!["b"], vec![Ends, WaitsForStop]),
            // The process died while the first one ran, or while the second one was prepared.
            (vec![runs(1, "a", 1), open(2, "b")], &killed, vec!["b"], vec![Ends, Ends]),
            (vec![ran(1, "a", 1, 2), open(2, "b")], &killed, vec!["b"], vec![Ends, Hangs]),
            // Both ran at the same time, and one of the same kind was to run after another.
            (vec![runs(1, "a", 1), runs(2, "b", 2)], &killed, vec![], vec![Ends, Ends]),
            (vec![ran(1, "a", 1, 3), ran(2, "b", 2, 4)], &done, vec![], vec![Ends, Ends]),
            (vec![ran(1, "a", 1, 3), ran(2, "a", 2, 4), ran(3, "w", 5, 6)], &done, vec!["w"], vec![Ends; 3]),
            (vec![ran(1, "w", 1, 2), ran(2, "a", 3, 5), ran(3, "a", 4, 6)], &done, vec!["w"], vec![Ends; 3]),
        ] {
            let answer = script(items, end);
            let names: Vec<&str> = answer.one_by_one.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!(names, one_by_one, "{end:?}");
            assert_eq!(preparations(&answer), expected, "{end:?} {one_by_one:?}");
        }
    }
}
