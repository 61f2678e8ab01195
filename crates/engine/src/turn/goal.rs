//! A goal: the turn goes on until a command succeeds, or the model's own audit says that a condition holds, or a budget is
//! spent.
//!
//! The goal is the newest note about one in the history, so it survives the process. Must not know front-ends. Invariants: the
//! command is a tool call like any other, so rules, sandbox, undo and journal hold for it; nothing counts as done before an
//! audit compared it with the request; a goal always ends: reached, spent, paused or off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::command::TurnLimits;
use domain::event::{Fact, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::note::{Goal, GoalState, Note, NoteAbout};
use domain::tool_call::{Details, Origin, ToolCall, ToolState};
use domain::{Failure, FailureKind};
use serde_json::json;
use tokio::time::Instant;

pub(crate) use super::goal_run::GoalRun;
use super::goal_run::{CHECK_ID, is_check, succeeded};
use super::loops::LoopDetector;
use super::next::Next;
use super::state::Turn;
use crate::session::Session;
use crate::tool_calls::approval::ApprovalDecision;
use crate::tool_calls::{self, CallsEnd};
use crate::tool_search::ToolList;

/// What the command may take, in milliseconds.
const CHECK_MILLIS: u64 = 600_000;

const AUDIT: &str = "Before this counts as done, audit it: compare everything that the user asked for, point by point, with \
    what is there now. Look at files and run checks where you are not sure. Then answer: what was done, what was verified, and \
    what was not. End with one line: `GOAL: DONE`, or `GOAL: NOT DONE:` and what is missing.";

/// A new goal with the budget of the settings.
pub(crate) fn new(settings: &config::Settings, condition: &str, is_command: bool) -> Goal {
    Goal {
        condition: condition.to_owned(),
        is_command,
        max_steps: u32::try_from(settings.goal.max_steps).unwrap_or(u32::MAX),
        max_millis: settings.goal.max_minutes.saturating_mul(60_000),
        steps: 0,
        millis: 0,
        state: GoalState::Active,
    }
}

/// The goal that a prompt brings along.
pub(super) fn asked_for(session: &Session, limits: &TurnLimits) -> Option<Goal> {
    limits.until.as_deref().map(|line| new(&session.workspace.settings, line, true))
}

/// The goal of a chat, in whatever state it is.
pub(crate) fn current(items: &[Item]) -> Option<&Goal> {
    items.iter().rev().find_map(|item| {
        let NoteAbout::Goal(goal) = &item.note()?.about else { return None };
        Some(&**goal)
    })
}

/// The note with which work toward a goal begins.
pub(crate) fn opening_note(goal: Goal) -> Note {
    let Goal { condition, max_steps, max_millis, .. } = &goal;
    let minutes = max_millis / 60_000;
    let (text, message) = match goal.is_command {
        true => (
            format!("Goal: `{condition}` succeeds (at most {max_steps} steps, {minutes} minutes)."),
            format!(
                "Work until this command succeeds: `{condition}`. It is run for you each time you end your answer, and you \
                 get its output; you may also run it yourself. Do not weaken it to make it succeed."
            ),
        ),
        false => (
            format!("Goal: {condition} (at most {max_steps} steps, {minutes} minutes)"),
            format!(
                "Work until this holds: {condition}\nWhen you end your answer, you will be asked whether it does."
            ),
        ),
    };
    Note::for_model(NoteAbout::Goal(Box::new(goal)), text, message)
}

/// The goal that a turn of this chat goes on with.
pub(crate) fn of_turn(session: &Session) -> Option<GoalRun> {
    if session.decisions.is_recorded()
        || session.is_subagent()
        || crate::behavior::forbids_changes(session, &session.behavior())
    {
        return None;
    }
    let goal = current(session.state().items()).filter(|goal| goal.is_open())?.clone();
    Some(GoalRun {
        goal,
        since: Instant::now(),
        is_time_up: Arc::default(),
        is_reached: Arc::default(),
        check: AtomicU64::new(0),
    })
}

/// The model is done: what the goal says about that. `None`: the turn may end.
pub(super) async fn at_end(
    turn: &mut Turn,
    step: u32,
    tools: &ToolList,
    loops: &mut LoopDetector,
) -> Option<Next> {
    let run = turn.goal.as_ref()?;
    let is_command = run.goal.is_command;
    let state = current(turn.session.state().items()).map(|goal| goal.state)?;
    if !matches!(state, GoalState::Active | GoalState::Audited) {
        return None;
    }
    // The check may take long; text for the turn is read after it.
    turn.session.steering.open();
    if state == GoalState::Audited {
        match (audit_verdict(turn), is_command) {
            // The check succeeded, and a model that cannot keep to a form had its say.
            (Some(true), false) | (None, true) => return reach(turn, step),
            (Some(true), true) if !has_changed_since_check(turn) => return reach(turn, step),
            (Some(true), true) => {}
            (Some(false), _) => {
                let text = "The audit found that something is missing.";
                return go_on(turn, step, GoalState::Active, text, "Go on with what is missing.");
            }
            (None, false) => {
                return audit(turn, step, "The answer does not say whether the goal is reached.");
            }
        }
    }
    if !is_command {
        return audit(turn, step, "Is the goal reached?");
    }
    match run_check(turn, step, tools, loops).await {
        Check::Succeeded => audit(turn, step, "The check of the goal succeeded."),
        Check::Failed => {
            let text = "The check of the goal did not succeed yet.";
            go_on(turn, step, GoalState::Active, text, "The goal is not reached yet. Go on.")
        }
        Check::Ends(outcome) => Some(Next::End(outcome)),
    }
}

enum Check {
    Succeeded,
    Failed,
    Ends(Outcome),
}

async fn run_check(turn: &Turn, step: u32, tools: &ToolList, loops: &mut LoopDetector) -> Check {
    let Some(run) = &turn.goal else { return Check::Failed };
    let id = turn.session.log.next_item();
    run.check.store(id.0, Ordering::Relaxed);
    let call_id = format!("{CHECK_ID}{}", id.0);
    let mut call = ToolCall::new(call_id, "eca".into(), "shell_command".into(), Origin::Native);
    call.input_text =
        json!({"command": run.goal.condition, "timeout": CHECK_MILLIS, "ends_at_limit": true}).to_string();
    let item = Item { id, turn: turn.id, step, parent: None, kind: ItemKind::ToolCall(Box::new(call)) };
    turn.session.commit(vec![Fact::ItemStarted { item: item.clone() }]);
    if let CallsEnd::Stop(outcome) = tool_calls::run(turn, vec![item], tools, loops).await {
        return Check::Ends(outcome);
    }
    let state = turn.session.state();
    let ended = state.items().iter().rev().find(|item| item.id == id);
    let Some(ItemKind::ToolCall(call)) = ended.map(|item| &item.kind) else { return Check::Failed };
    match call.state {
        ToolState::Rejected { .. } | ToolState::Stopped { .. } => {
            let why = call.result.iter().find_map(|part| match part {
                Part::Text { text } => Some(text.clone()),
                Part::Image { .. } => None,
            });
            let why = why.unwrap_or_default();
            let why = ApprovalDecision::reason_in(&why).unwrap_or(&why);
            let message = format!("The check of the goal was not run. {why}");
            let failure = Failure::user(message.trim_end()).hint("Allow the command, or set another goal.");
            Check::Ends(Outcome::Failed { failure })
        }
        _ if succeeded(call) => Check::Succeeded,
        ToolState::Preparing | ToolState::Waiting { .. } | ToolState::Running | ToolState::Done => {
            Check::Failed
        }
    }
}

/// Whether a file was changed after the last check.
fn has_changed_since_check(turn: &Turn) -> bool {
    let state = turn.session.state();
    let calls = state.items().iter().rev().filter_map(Item::tool_call);
    let mut since = calls.take_while(|call| !is_check(call));
    // Agents of other vendors do not always say what they changed.
    let changes = ["apply_patch", "edit_file", "write_file", "move_file", "delete_file"];
    since.any(|call| {
        let is_change = matches!(call.details, Some(Details::FileChange(_)));
        !call.error && (is_change || changes.contains(&call.name.as_str()))
    })
}

/// What the last answer says about the goal; `None`: nothing.
fn audit_verdict(turn: &Turn) -> Option<bool> {
    let state = turn.session.state();
    let mut answers = state.items().iter().rev().take_while(|item| item.note().is_none());
    answers.find_map(|item| {
        let ItemKind::AgentMessage { text, .. } = &item.kind else { return None };
        verdict_in(text)
    })
}

fn verdict_in(answer: &str) -> Option<bool> {
    let plain =
        |line: &str| line.trim_matches(|it: char| it.is_whitespace() || "*_`#->".contains(it)).to_uppercase();
    let line = answer.lines().rev().map(plain).find(|line| line.starts_with("GOAL:"))?;
    let verdict = line
        .trim_start_matches("GOAL:")
        .trim_start_matches(|it: char| it.is_whitespace() || "*_`".contains(it));
    if verdict.starts_with("NOT DONE") {
        return Some(false);
    }
    verdict.starts_with("DONE").then_some(true)
}

fn audit(turn: &Turn, step: u32, opening: &str) -> Option<Next> {
    let condition = turn.goal.as_ref().map(|run| run.goal.condition.clone()).unwrap_or_default();
    let text = format!("{opening} The result is compared with the request.");
    let message = format!("{opening}\nThe goal: {condition}\n{AUDIT}");
    go_on(turn, step, GoalState::Audited, &text, &message)
}

/// The turn goes on with a text for the model.
fn go_on(turn: &Turn, step: u32, state: GoalState, text: &str, message: &str) -> Option<Next> {
    let goal = turn.goal.as_ref()?.after(step, state);
    let text = format!("{text} ({} of {} steps)", goal.steps, goal.max_steps);
    turn.add_note(step, Note::for_model(NoteAbout::Goal(Box::new(goal)), text, message));
    Some(Next::Step)
}

fn reach(turn: &Turn, step: u32) -> Option<Next> {
    let run = turn.goal.as_ref()?;
    run.is_reached.store(true, Ordering::Relaxed);
    let goal = run.after(step, GoalState::Reached);
    let text = format!("The goal is reached, in {}.", used(&goal));
    turn.add_note(step, Note::for_people(NoteAbout::Goal(Box::new(goal)), text));
    // Nothing more is read by this turn, unless a hook has it go on.
    turn.session.steering.take_or_close().map(|text| turn.add_message(step, text))
}

/// Says in the chat what became of a goal that the turn did not reach.
pub(crate) fn conclude(turn: &Turn, outcome: Outcome) -> Outcome {
    let Some(run) = &turn.goal else { return outcome };
    let (is_open, step) = {
        let state = turn.session.state();
        let is_open = current(state.items()).is_some_and(Goal::is_open);
        let steps = state.items().iter().rev().take_while(|item| item.turn == turn.id).map(|item| item.step);
        (is_open, steps.max().unwrap_or(0))
    };
    if !is_open {
        return outcome;
    }
    let is_time_up = run.is_time_up.load(Ordering::Relaxed);
    // The chat's own limit of steps may be lower.
    let has_no_step = run.goal.steps + step >= run.goal.max_steps;
    let is_spent = is_time_up || (outcome == Outcome::MaxSteps && has_no_step);
    let state = if is_spent { GoalState::Spent } else { GoalState::Paused };
    let goal = run.after(step, state);
    let text = match is_spent {
        true => format!("The goal is not reached: {} are spent.", used(&goal)),
        false => "The goal is not reached and is paused. `/goal resume` continues it.".to_owned(),
    };
    turn.add_note(step, Note::for_people(NoteAbout::Goal(Box::new(goal)), text.clone()));
    match (is_spent, outcome) {
        (true, _) => {
            let failure = Failure::new(FailureKind::Quota, text);
            Outcome::Failed { failure: failure.hint("`/goal resume` continues with a new budget.") }
        }
        // Nothing has checked it, so the turn is not done.
        (false, Outcome::Done) => {
            let failure = Failure::user("The turn ended, and nothing has checked its goal.");
            Outcome::Failed { failure: failure.hint("`/goal resume` continues it.") }
        }
        (false, outcome) => outcome,
    }
}

fn used(goal: &Goal) -> String {
    let minutes = goal.millis.div_ceil(60_000);
    let plural = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    format!("{} and {}", plural(goal.steps.into(), "step"), plural(minutes, "minute"))
}

/// `/goal` alone: the goal and what was used for it.
pub(crate) fn describe(goal: Option<&Goal>) -> String {
    let Some(goal) = goal else {
        return "This chat has no goal. `/goal make test` works until that command succeeds; `/goal all examples run` until \
                an audit says so."
            .to_owned();
    };
    let condition = match goal.is_command {
        true => format!("the command `{}` succeeds", goal.condition),
        false => goal.condition.clone(),
    };
    let state = match goal.state {
        GoalState::Active | GoalState::Audited => "The next prompt continues it, and so does `/goal resume`.",
        GoalState::Paused => "It is paused. `/goal resume` continues it.",
        GoalState::Reached => "It is reached.",
        GoalState::Spent => "Its budget is spent. `/goal resume` continues with a new one.",
        GoalState::Off => "It is off.",
    };
    let (most, minutes) = (goal.max_steps, goal.max_millis / 60_000);
    format!("Goal: {condition}\n{state}\nUsed: {} of {most} steps and {minutes} minutes.", used(goal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_goes_on_as_a_job_has_not_succeeded() {
        let mut call = ToolCall::new(String::new(), "eca".into(), "shell_command".into(), Origin::Native);
        call.state = ToolState::Done;
        for (text, is_success) in [
            ("ok", true),
            ("line\n[still running after 600 s; it goes on as job-1. Call background_job …]", false),
            ("[silent, perhaps waiting for input; it goes on as job-1. …]", false),
            ("it goes on as before", true),
        ] {
            call.result = vec![Part::text(text)];
            assert_eq!(succeeded(&call), is_success, "{text}");
        }
    }

    #[test]
    fn the_last_line_about_the_goal_counts() {
        for (answer, verdict) in [
            ("All is well.\nGOAL: DONE", Some(true)),
            ("**GOAL: DONE**", Some(true)),
            ("`GOAL: NOT DONE:` the docs", Some(false)),
            ("GOAL: DONE\nbut then\n- goal: not done: x", Some(false)),
            ("GOAL: done.", Some(true)),
            ("The GOAL: DONE line is missing", None),
            ("GOAL: perhaps", None),
            ("", None),
        ] {
            assert_eq!(verdict_in(answer), verdict, "{answer}");
        }
    }
}
