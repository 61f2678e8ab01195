//! One turn: model → tool calls → model, until the model is done. A loop over answers, each a fold over events.
//!
//! Invariants: a turn always ends, whatever happened; a stop is seen at once in every state; finished tool calls are
//! never run again.

pub(crate) mod answer;
pub(crate) mod compaction;
pub(crate) mod instructions;
pub(crate) mod loops;
pub(crate) mod prompt;

use std::sync::Arc;

use domain::command::{SessionSettings, TurnLimits};
use domain::event::{Fact, Level, Notice, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::model::{Model, Prompt, StopReason, Tokens};
use domain::tool::{Tool, ToolSpec};
use domain::tool_call::Origin;
use domain::{CancellationToken, Failure, FailureKind, TurnId};

use crate::tool_calls::context::EditorHandle;
use crate::tool_calls::{self, CallsEnded};
use crate::turn::answer::{Answered, Ending, Place};

use crate::session::Session;
use crate::session::state::History;
use crate::spending;
use crate::turn::loops::LoopDetector;

/// A turn about to run.
pub struct Turn {
    pub session: Arc<Session>,
    pub id: TurnId,
    pub model: Arc<dyn Model>,
    /// The front-end whose prompt began it.
    pub host: Option<EditorHandle>,
    pub cancel: CancellationToken,
    pub history: History,
    /// The system prompt of this chat and behavior, the same from turn to turn.
    pub system: Vec<Arc<str>>,
    pub max_steps: u32,
    pub limits: TurnLimits,
    /// What the chat had cost before.
    pub cost_before: f64,
    /// Models that failed in this turn.
    pub failed: Vec<String>,
}

/// A turn that has run. Its end is the chat's to record: whoever is told of it may send the next prompt at once.
pub struct FinishedTurn {
    pub history: History,
    pub outcome: Outcome,
}

impl Turn {
    pub async fn run(mut self) -> FinishedTurn {
        let outcome = self.steps().await;
        self.over(outcome)
    }

    pub fn over(mut self, outcome: Outcome) -> FinishedTurn {
        self.history.open_turn = None;
        FinishedTurn { history: self.history, outcome }
    }

    async fn steps(&mut self) -> Outcome {
        let mut loops = LoopDetector::default();
        for step in 1..=self.max_steps {
            if let Err(failure) = self.compact_if_needed(step).await {
                return Outcome::Failed { failure };
            }
            if self.cancel.is_cancelled() {
                return Outcome::Stopped;
            }
            loop {
                if let Some(failure) = spending::refused(&self.session, &self.limits, self.cost_before).await
                {
                    return Outcome::Failed { failure };
                }
                match self.step(step, &mut loops).await {
                    Next::Go => break,
                    Next::Again => {}
                    Next::End(outcome) => return outcome,
                }
            }
        }
        Outcome::MaxSteps
    }

    /// One model answer and the calls it asks for.
    async fn step(&mut self, step: u32, loops: &mut LoopDetector) -> Next {
        self.session.progress("Waiting model".into());
        let tools = self.tools();
        let prompt = self.prompt(&tools);
        let naming = |name: &str| named(&tools, name);
        let place = Place { turn: self.id, step };
        spending::begins(&self.session, &self.model.info().id, &prompt);
        let stream = self.model.stream(prompt);
        let answered = answer::receive(&self.session, place, &naming, stream, &self.cancel).await;
        self.count(answered.tokens);
        let Answered { items, ending, .. } = answered;
        if let Ending::Failed(failure) = &ending
            && items.is_empty()
            && self.fail_over(failure)
        {
            return Next::Again;
        }
        let (calls, others): (Vec<Item>, Vec<Item>) =
            items.into_iter().partition(|item| matches!(item.kind, ItemKind::ToolCall(_)));
        for item in others {
            self.history.put(item);
        }
        let stop = ended_by(ending);
        if let Some(outcome) = stop {
            tool_calls::drop_unrun(self, calls);
            return Next::End(outcome);
        }
        if calls.is_empty() {
            return self.after_text(step);
        }
        match tool_calls::run(self, calls, &tools, loops).await {
            CallsEnded::Go { compact } => {
                if let Some(summary) = compact {
                    compaction::replace(self, summary);
                }
                self.take_steer(step);
                Next::Go
            }
            CallsEnded::Stop(outcome) => Next::End(outcome),
        }
    }

    /// The model has nothing more to do, unless the user said something meanwhile.
    fn after_text(&mut self, step: u32) -> Next {
        if self.take_steer(step) { Next::Go } else { Next::End(Outcome::Done) }
    }

    /// What the user said while the turn ran becomes a message of theirs.
    fn take_steer(&mut self, step: u32) -> bool {
        let Some(text) = self.session.state().steer.take() else { return false };
        let kind = ItemKind::UserMessage { parts: vec![Part::text(text.clone())], text };
        let item = self.session.item(self.id, step, kind);
        self.history.put(item.clone());
        self.session.journal.note(Fact::ItemEnded { item });
        true
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let behavior = self.session.state().settings.behavior.clone();
        crate::behavior::tools(&self.session, behavior.as_deref(), &self.model.info())
    }

    fn prompt(&self, tools: &[Arc<dyn Tool>]) -> Prompt {
        let SessionSettings { variant, behavior, .. } = self.session.state().settings.clone();
        let behavior = behavior.unwrap_or_default();
        let settings = &self.session.workspace.settings;
        let of_behavior = || {
            let variant = settings.behavior_variant(&behavior)?.to_owned();
            self.model.info().variants.contains(&variant).then_some(variant)
        };
        let variant = variant.or_else(of_behavior);
        let prompts = settings.prompts(&behavior);
        let specs: Vec<ToolSpec> = tools.iter().map(|tool| described(tool.spec(), prompts)).collect();
        Prompt {
            session: Some(self.session.id.clone()),
            system: self.system.clone(),
            tools: specs.into(),
            entries: self.history.entries(),
            variant,
            output_schema: self.limits.output_schema.clone(),
            ..Prompt::default()
        }
    }

    /// Tells what the call used and cost.
    fn count(&mut self, tokens: Option<Tokens>) {
        if let Some(tokens) = tokens {
            self.history.usage = spending::answered(&self.session, &self.model.info(), tokens);
        }
    }

    /// The next model of the failover list, where another model can help and nothing was said yet.
    fn fail_over(&mut self, failure: &Failure) -> bool {
        let helps = matches!(failure.kind, FailureKind::Auth | FailureKind::Quota | FailureKind::Provider);
        if !helps {
            return false;
        }
        let failed = self.model.info().id;
        self.failed.push(failed.clone());
        let own = &self.limits.failover;
        let list = if own.is_empty() { &self.session.workspace.settings.failover } else { own };
        let models = &self.session.workspace.models;
        let mut left = list.iter().filter(|name| !self.failed.contains(name));
        let usable = |model: &Arc<dyn Model>| spending::unpriced(&self.limits, &model.info()).is_none();
        let Some(next) = left.find_map(|name| models.find(name).ok().filter(usable)) else { return false };
        let text = format!("{failed} failed: {failure} Going on with {}.", next.info().id);
        tracing::warn!(session = %self.session.id, failed, next = next.info().id, "going on with another model");
        self.session.journal.note(Fact::Notice { notice: Notice { level: Level::Warning, text } });
        self.model = next;
        true
    }

    async fn compact_if_needed(&mut self, step: u32) -> Result<(), Failure> {
        let behavior = self.session.state().settings.behavior.clone().unwrap_or_default();
        let percentage = self.session.workspace.settings.auto_compact_percentage(&behavior);
        if compaction::is_due(&self.history, &self.model.info(), percentage) {
            compaction::run(self, step, None).await?;
        }
        Ok(())
    }
}

/// The outcome of a turn that an answer ends; `None`: the model is done or wants its calls run.
fn ended_by(ending: Ending) -> Option<Outcome> {
    match ending {
        Ending::Model(StopReason::Cut { message }) => {
            Some(Outcome::Failed { failure: Failure::provider(message).hint("Ask to continue.") })
        }
        Ending::Model(StopReason::Refused { reason }) => Some(Outcome::Refused { reason }),
        Ending::Model(StopReason::MaxTokens) => Some(Outcome::MaxTokens),
        Ending::Model(StopReason::Done | StopReason::ToolCalls) => None,
        Ending::Stopped => Some(Outcome::Stopped),
        Ending::Failed(failure) => Some(Outcome::Failed { failure }),
    }
}

enum Next {
    Go,
    /// The same step with another model.
    Again,
    End(Outcome),
}

/// The server, bare name and origin of an offered name.
fn named(tools: &[Arc<dyn Tool>], offered: &str) -> (String, String, Origin) {
    if let Some(tool) = tools.iter().find(|tool| tool.spec().offered_name() == offered) {
        let spec = tool.spec();
        return (spec.server.clone(), spec.name.clone(), spec.origin);
    }
    match offered.split_once("__") {
        Some((server, name)) if server != "eca" => (server.into(), name.into(), Origin::Mcp),
        Some((_, name)) => ("eca".into(), name.into(), Origin::Native),
        None => ("eca".into(), offered.into(), Origin::Native),
    }
}

/// The tool with the description that the user wrote for it.
fn described(spec: &ToolSpec, prompts: &config::Prompts) -> ToolSpec {
    let own = instructions::own_text(prompts.tool(&spec.name, &spec.offered_name()));
    let mut spec = spec.clone();
    spec.description = own.unwrap_or(spec.description);
    spec
}
