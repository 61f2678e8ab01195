//! What a turn holds. Plain data: everything that works for a turn takes it, and the loop in `turn` runs it.

use std::sync::Arc;

use domain::command::TurnLimits;
use domain::model::Model;
use domain::{CancellationToken, TurnId};
use session::{AttachedFrontend, EditorHandle};

use super::goal_run::GoalRun;
use crate::hooks::TurnHooks;
use crate::session::{KnownInstructions, Session};
use crate::skills::KnownSkills;
use crate::subagents::background::Background;
use crate::workspace::NamedText;

pub(crate) struct Turn {
    pub(crate) session: Arc<Session>,
    pub(crate) id: TurnId,
    pub(crate) model: Arc<dyn Model>,
    /// The front-end whose prompt began it.
    pub(crate) frontend: Option<AttachedFrontend>,
    pub(crate) editor: Option<EditorHandle>,
    pub(crate) cancel: CancellationToken,
    /// The same from turn to turn of a chat and behavior.
    pub(crate) system: Vec<Arc<str>>,
    pub(crate) instructions: KnownInstructions,
    /// Rules that the model reads when it comes to their files.
    pub(crate) fetched_rules: Arc<[NamedText]>,
    pub(crate) max_steps: u32,
    pub(crate) limits: TurnLimits,
    /// What the chat had cost before.
    pub(crate) cost_before: f64,
    pub(crate) failed_models: Vec<String>,
    pub(crate) hooks: TurnHooks,
    pub(crate) is_warned_of_length: bool,
    /// Subagents that work meanwhile.
    pub(crate) background: Arc<Background>,
    pub(crate) skills: Arc<KnownSkills>,
    pub(crate) goal: Option<GoalRun>,
}
