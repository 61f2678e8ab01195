//! One turn: model → tool calls → model, until the model is done. A loop over answers, each a fold over events.
//!
//! Invariants: a turn always ends, whatever happened; a stop is seen at once in every state; finished tool calls are
//! never run again.

use std::sync::Arc;

use domain::command::{Settings, TurnLimits};
use domain::event::{Fact, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::model::{Model, Prompt, StopReason, Tokens};
use domain::tool::{Tool, ToolSpec};
use domain::tool_call::Origin;
use domain::{CancellationToken, Failure, FailureKind, TurnId};

use crate::answer::{self, Answered, Ending, Place};
use crate::calls::{self, CallsEnded};
use crate::compaction;
use crate::history::History;
use crate::journal::Recording;
use crate::loops::LoopDetector;
use crate::port::FrontHost;
use crate::shared::Shared;

/// A turn about to run.
pub struct Turn {
    pub shared: Arc<Shared>,
    pub id: TurnId,
    pub model: Arc<dyn Model>,
    /// The front-end whose prompt began it.
    pub host: Option<FrontHost>,
    pub cancel: CancellationToken,
    pub history: History,
    /// The system prompt of this chat and behavior, the same from turn to turn.
    pub system: Vec<Arc<str>>,
    pub max_steps: u32,
    pub limits: TurnLimits,
    /// What the chat had cost before.
    pub cost_before: f64,
    /// What began it, on its way to the journal: the request does not wait for the disk, what is told does.
    pub started: Option<Recording>,
}

/// A turn that has run. Its end is the chat's to record: whoever is told of it may send the next prompt at once.
pub struct Over {
    pub history: History,
    pub outcome: Outcome,
}

impl Turn {
    pub async fn run(mut self) -> Over {
        let outcome = self.steps().await;
        self.over(outcome)
    }

    pub fn over(mut self, outcome: Outcome) -> Over {
        self.history.open_turn = None;
        Over { history: self.history, outcome }
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
            if let Some(failure) = self.spent() {
                return Outcome::Failed { failure };
            }
            match self.step(step, &mut loops).await {
                Next::Go => {}
                Next::End(outcome) => return outcome,
            }
        }
        Outcome::MaxSteps
    }

    /// One model answer and the calls it asks for.
    async fn step(&mut self, step: u32, loops: &mut LoopDetector) -> Next {
        let started = self.started.take();
        if started.is_none() {
            self.shared.progress("Waiting model".into());
        }
        let tools = self.tools();
        let prompt = self.prompt(&tools);
        let naming = |name: &str| named(&tools, name);
        let place = Place { turn: self.id, step };
        let stream = self.model.stream(prompt);
        let answered = answer::receive(&self.shared, place, &naming, stream, started, &self.cancel).await;
        self.count(answered.tokens);
        let Answered { items, ending, .. } = answered;
        let (calls, others): (Vec<Item>, Vec<Item>) =
            items.into_iter().partition(|item| matches!(item.kind, ItemKind::ToolCall(_)));
        for item in others {
            self.history.put(item);
        }
        let stop = match ending {
            Ending::Model(StopReason::Cut { message }) => {
                Some(Outcome::Failed { failure: Failure::provider(message).hint("Ask to continue.") })
            }
            Ending::Model(StopReason::Refused { reason }) => Some(Outcome::Refused { reason }),
            Ending::Model(StopReason::MaxTokens) => Some(Outcome::MaxTokens),
            Ending::Model(StopReason::Done | StopReason::ToolCalls) => None,
            Ending::Stopped => Some(Outcome::Stopped),
            Ending::Failed(failure) => Some(Outcome::Failed { failure }),
        };
        if let Some(outcome) = stop {
            calls::drop_unrun(self, calls);
            return Next::End(outcome);
        }
        if calls.is_empty() {
            return self.after_text(step);
        }
        match calls::run(self, calls, &tools, loops).await {
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
        let Some(text) = self.shared.state().steer.take() else { return false };
        let kind = ItemKind::UserMessage { parts: vec![Part::text(text.clone())], text };
        let item = self.shared.item(self.id, step, kind);
        self.history.put(item.clone());
        self.shared.journal.note(Fact::ItemEnded { item });
        true
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let behavior = self.shared.state().settings.behavior.clone();
        crate::behavior::tools(&self.shared, behavior.as_deref(), &self.model.info())
    }

    fn prompt(&self, tools: &[Arc<dyn Tool>]) -> Prompt {
        let Settings { variant, .. } = self.shared.state().settings.clone();
        let specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
        Prompt {
            session: Some(self.shared.id.clone()),
            system: self.system.clone(),
            tools: specs.into(),
            entries: self.history.entries(),
            variant,
            output_schema: self.limits.output_schema.clone(),
            ..Prompt::default()
        }
    }

    /// A cap that forbids the next call to the model.
    fn spent(&self) -> Option<Failure> {
        let (settings, usage) = (&self.shared.surroundings.settings, self.shared.state().usage.clone());
        let chat = usage.session_cost.unwrap_or(0.0);
        let caps = [
            (self.limits.max_cost, chat - self.cost_before, "this turn", "--max-cost"),
            (settings.budget.chat, chat, "this chat", "budget.chat"),
        ];
        caps.into_iter().find_map(|(cap, spent, what, setting)| {
            let cap = cap.filter(|cap| spent >= *cap)?;
            let message = format!("{what} has used ${spent:.4} of ${cap:.4}.");
            Some(
                Failure::new(FailureKind::Quota, capitalised(&message))
                    .hint(format!("Raise {setting} to go on.")),
            )
        })
    }

    /// Tells what the call used and cost.
    fn count(&mut self, tokens: Option<Tokens>) {
        let Some(tokens) = tokens else { return };
        let info = self.model.info();
        let usage = {
            let mut state = self.shared.state();
            let usage = &mut state.usage;
            usage.last = tokens;
            usage.total += tokens;
            usage.last_cost = info.price.map(|price| price.of(&tokens));
            if let Some(cost) = usage.last_cost {
                usage.session_cost = Some(usage.session_cost.unwrap_or(0.0) + cost);
            }
            usage.context_limit = info.context_limit;
            usage.output_limit = info.output_limit;
            usage.clone()
        };
        self.history.usage = usage.clone();
        self.shared.journal.note(Fact::UsageChanged { usage });
    }

    async fn compact_if_needed(&mut self, step: u32) -> Result<(), Failure> {
        if compaction::is_due(&self.history, &self.model.info(), &self.shared.surroundings.settings) {
            compaction::run(self, step, None).await?;
        }
        Ok(())
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

enum Next {
    Go,
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
