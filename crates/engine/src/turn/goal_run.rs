//! The goal of a running turn, and the calls that check it. Plain data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::CancellationToken;
use domain::item::Part;
use domain::note::{Goal, GoalState};
use domain::tool_call::{Origin, ToolCall, ToolState};
use tokio::time::Instant;

/// Marks the calls that check a goal: their ids begin with it, in the place of a provider's.
pub(super) const CHECK_ID: &str = "dragoman-goal-check-";
/// The goal of a running turn.
pub(crate) struct GoalRun {
    pub(super) goal: Goal,
    pub(super) since: Instant,
    pub(super) is_time_up: Arc<AtomicBool>,
    /// The time is no longer of interest.
    pub(super) is_reached: Arc<AtomicBool>,
    /// The item of the check that runs, or ran last.
    pub(super) check: AtomicU64,
}

/// Ends with the turn, and so does the clock.
pub(super) struct Clock(tokio::task::JoinHandle<()>);

impl Drop for Clock {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl GoalRun {
    /// How many answers are left.
    pub(crate) fn steps_left(&self) -> u32 {
        self.goal.max_steps.saturating_sub(self.goal.steps).max(1)
    }

    /// Stops the turn when the time is spent.
    pub(super) fn start_clock(&self, cancel: &CancellationToken) -> Clock {
        let left = Duration::from_millis(self.goal.max_millis.saturating_sub(self.goal.millis));
        let (cancel, is_time_up) = (cancel.clone(), self.is_time_up.clone());
        let is_reached = self.is_reached.clone();
        Clock(tokio::spawn(async move {
            tokio::time::sleep(left).await;
            if !is_reached.load(Ordering::Relaxed) {
                is_time_up.store(true, Ordering::Relaxed);
                cancel.cancel();
            }
        }))
    }

    /// The goal with what was used until the end of a step.
    pub(super) fn after(&self, step: u32, state: GoalState) -> Goal {
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (steps, millis) = (self.goal.steps + step, self.goal.millis.saturating_add(millis));
        Goal { steps, millis, state, ..self.goal.clone() }
    }
}

/// Whether a call is the check of a goal.
pub(crate) fn is_check(call: &ToolCall) -> bool {
    call.call_id.starts_with(CHECK_ID) && call.origin == Origin::Native
}

/// The id of a provider's call, which must not look like one of a check.
pub(super) fn foreign_id(call_id: String) -> String {
    if call_id.starts_with(CHECK_ID) { String::new() } else { call_id }
}

/// Whether a check says that the goal is reached.
pub(super) fn succeeded(call: &ToolCall) -> bool {
    call.state == ToolState::Done && !call.error && !goes_on(call)
}

/// A command that takes too long goes on as a job, and its result says so in the last line: how it ends is not known.
fn goes_on(call: &ToolCall) -> bool {
    let Some(Part::Text { text }) = call.result.first() else { return false };
    text.lines().next_back().is_some_and(|line| line.starts_with('[') && line.contains("it goes on as "))
}
