//! Subagents: agents that work on a task in a chat of their own, for one tool call of another chat.
//!
//! Must not know front-ends. Invariants: a subagent has no subagents; its calls are decided by the stricter of its own
//! rules and its parent's; what it costs counts as its parent's; it ends with the turn that started it.

pub(crate) mod background;
pub(crate) mod relay;
mod worktree;

use std::sync::{Arc, LazyLock};

use domain::command::{Accepted, AcceptedStatus, Command, SessionSettings, TurnLimits, UserPrompt, reply};
use domain::event::Outcome;
use domain::ids::SUBAGENT_PREFIX;
use domain::item::Part;
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Details, Origin};
use domain::{BoxFuture, Failure, ItemId, SessionId, TurnId};
use serde_json::{Value, json};
use session::{AttachedFrontend, Message};
use tokio::sync::{mpsc, oneshot};

use crate::behavior;
use crate::session::{EndedSubagent, Inherited, Relay, Session, StartSubagent};
use crate::skills::KnownSkills;
use crate::turn::Turn;
use crate::workspace::Worktree;
use background::Background;

/// What the model learns of an agent in the background.
const STARTED: &str = "The agent works in the background. Its report comes as a message. Go on with other work, or end your answer \
                       to wait for it.";
/// A summary for people is not longer than this.
const SUMMARY_CHARACTERS: usize = 80;

/// The chat of the subagent that a call starts.
pub(crate) fn session_id(parent: &SessionId, call: ItemId) -> SessionId {
    SessionId::new(format!("{SUBAGENT_PREFIX}{parent}-{}", call.0))
}

/// Names the chat in the details of a call, where it is one that starts a subagent.
pub(crate) fn name_session(parent: &SessionId, call: ItemId, details: &mut Option<Details>) {
    if let Some(Details::Subagent { session, .. }) = details {
        *session = session_id(parent, call);
    }
}

/// The tool `spawn_agent` of a turn.
pub(crate) struct SpawnAgent {
    spec: ToolSpec,
    starter: Arc<Starter>,
    background: Arc<Background>,
}

/// What is needed to start a subagent.
struct Starter {
    session: Arc<Session>,
    turn: TurnId,
    frontend: Option<AttachedFrontend>,
    model: String,
    limits: TurnLimits,
    cost_before: f64,
    /// Of the turn: the agent may change them.
    skills: Arc<KnownSkills>,
}

/// `activity`, a few words for people, is accepted and not shown: the first request must stay small.
static INPUT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string"},
            "task": {"type": "string", "description": "It knows nothing of this chat"},
            "background": {"type": "boolean", "description": "Its report comes later"},
            "worktree": {"type": "boolean", "description": "In a git worktree of its own"},
        },
        "required": ["agent", "task"],
    })
});

impl SpawnAgent {
    /// `None` where there is nothing to start: in a subagent.
    pub(crate) fn of(turn: &Turn) -> Option<Self> {
        let session = turn.session.clone();
        if session.is_subagent() {
            return None;
        }
        let agents = behavior::subagents(&session.workspace.settings, &session.behavior());
        let lines: Vec<String> =
            agents.iter().map(|(name, description)| format!("- {name}: {description}")).collect();
        let description = format!(
            "Start an agent that does a task by itself and reports, such as a search through many files. Several may run at \
             once.\n{}",
            lines.join("\n")
        );
        let spec = ToolSpec {
            name: "spawn_agent".to_owned(),
            server: "eca".to_owned(),
            origin: Origin::Native,
            description,
            input_schema: INPUT.clone(),
            // What the agent does is decided call by call.
            effect: ToolEffect::Reads,
        };
        let starter = Starter {
            session,
            turn: turn.id,
            frontend: turn.frontend.clone(),
            model: turn.model.info().id,
            limits: turn.limits.clone(),
            cost_before: turn.cost_before,
            skills: turn.skills.clone(),
        };
        Some(Self { spec, starter: Arc::new(starter), background: turn.background.clone() })
    }

    /// Starts the agent and waits for its report, or leaves that to the turn.
    async fn start(&self, call: Invocation) -> Result<ToolResult, Failure> {
        let is_background = call.input["background"].as_bool().unwrap_or(false);
        if !is_background {
            return self.starter.run(&call).await;
        }
        let agent = self.starter.agent(&call.input).map_err(Failure::user)?;
        let details = self.starter.details(&agent, session_id(&self.starter.session.id, call.item), 0);
        if !self.background.reserve() {
            let text =
                format!("{} agents work in the background already. Wait for a report.", background::MOST);
            return Err(Failure::user(text));
        }
        let starter = self.starter.clone();
        let title = summary(&agent, &call.input);
        self.background.spawn(async move {
            let result = starter.run(&call).await;
            let result = result.unwrap_or_else(|failure| ToolResult::error(failure.to_string()));
            format!("<report agent=\"{title}\">\n{}\n</report>", text_of(&result))
        });
        let mut result = ToolResult::text(STARTED);
        result.details = Some(details);
        Ok(result)
    }
}

impl Starter {
    fn agent(&self, input: &Value) -> Result<String, String> {
        let name = input["agent"].as_str().unwrap_or_default();
        let known = behavior::subagents(&self.session.workspace.settings, &self.session.behavior());
        if known.iter().any(|(known, _)| known == name) {
            return Ok(name.to_owned());
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        Err(format!("There is no agent {name:?}. There are: {}.", names.join(", ")))
    }

    fn details(&self, agent: &str, session: SessionId, step: u32) -> Details {
        let settings = &self.session.workspace.settings;
        let max_steps = u32::try_from(settings.max_steps(agent)).unwrap_or(u32::MAX);
        Details::Subagent { session, name: agent.to_owned(), model: self.model_of(agent), step, max_steps }
    }

    fn model_of(&self, agent: &str) -> String {
        let own = self.session.workspace.settings.behavior_model(agent);
        own.map_or_else(|| self.model.clone(), str::to_owned)
    }

    /// From the call to the report.
    async fn run(&self, call: &Invocation) -> Result<ToolResult, Failure> {
        let agent = self.agent(&call.input).map_err(Failure::user)?;
        let worktree = worktree::create(&self.session, &agent, &call.input).await?;
        let ended = self.run_in(call, &agent, worktree.as_ref()).await;
        self.skills.forget();
        let kept = match &worktree {
            Some(worktree) => worktree::release(&self.session, worktree).await,
            None => None,
        };
        let mut result = match ended {
            Ok(ended) => {
                let mut result = result_of(&ended);
                let id = session_id(&self.session.id, call.item);
                result.details = Some(self.details(&agent, id, ended.steps));
                result
            }
            Err(failure) => ToolResult::error(failure.to_string()),
        };
        result.parts.extend(kept.map(Part::text));
        Ok(result)
    }

    async fn run_in(
        &self,
        call: &Invocation,
        agent: &str,
        worktree: Option<&Worktree>,
    ) -> Result<EndedSubagent, Failure> {
        let id = session_id(&self.session.id, call.item);
        let (accepted, reply_to_prompt) = reply();
        let (ended, ending) = oneshot::channel();
        let (started, starting) = oneshot::channel();
        let request = StartSubagent {
            id: id.clone(),
            inherited: self.inherited(agent, call.item),
            frontend: self.frontend.clone(),
            settings: SessionSettings {
                title: Some(summary(agent, &call.input)),
                model: Some(self.model_of(agent)),
                behavior: Some(agent.to_owned()),
                ..SessionSettings::default()
            },
            workspace: worktree.map(|worktree| worktree.workspace.clone()),
            prompt: self.prompt(agent, &call.input, worktree),
            accepted,
            ended,
            started,
        };
        self.session.subagents.send(request).map_err(|_| Failure::closed())?;
        let mailbox = starting.await.map_err(|_| Failure::closed())?;
        let child = Child { mailbox, id };
        follow(&child, reply_to_prompt, ending, call).await
    }

    fn inherited(&self, agent: &str, call: ItemId) -> Inherited {
        let sees_subagents = self.frontend.as_ref().is_none_or(|frontend| frontend.abilities.subagents);
        let relay = Relay { turn: self.turn, call, agent: agent.to_owned() };
        Inherited {
            parent: self.session.clone(),
            limits: self.limits.clone(),
            cost_before: self.cost_before,
            relay: (!sees_subagents).then_some(relay),
        }
    }

    fn prompt(&self, agent: &str, input: &Value, worktree: Option<&Worktree>) -> UserPrompt {
        let mut text = input["task"].as_str().unwrap_or_default().to_owned();
        text.extend(worktree.map(worktree::note));
        let own = self.session.workspace.settings.behaviors.get(agent);
        let limits = TurnLimits { max_cost: own.and_then(|own| own.max_cost), ..TurnLimits::default() };
        UserPrompt { text, limits, ..UserPrompt::default() }
    }
}

/// The chat of a subagent that runs. It ends with its owner, whatever happens to that.
struct Child {
    mailbox: mpsc::UnboundedSender<Message>,
    id: SessionId,
}

impl Child {
    fn stop(&self) {
        let command = Command::Cancel { session: self.id.clone() };
        let _ = self.mailbox.send(Message { frontend: None, command });
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop();
        let (reply, _) = oneshot::channel();
        let _ = self.mailbox.send(Message { frontend: None, command: Command::Shutdown { reply } });
    }
}

/// Waits for the end of a subagent, and stops it with its call.
async fn follow(
    child: &Child,
    accepted: impl Future<Output = Result<Accepted, Failure>>,
    mut ending: oneshot::Receiver<EndedSubagent>,
    call: &Invocation,
) -> Result<EndedSubagent, Failure> {
    let accepted = accepted.await?;
    if accepted.status != AcceptedStatus::Prompting {
        return Err(Failure::user("The agent could not be started: no model can answer it."));
    }
    let ended = tokio::select! {
        ended = &mut ending => ended,
        () = call.cancel.cancelled() => {
            child.stop();
            ending.await
        }
    };
    ended.map_err(|_| Failure::closed())
}

fn result_of(ended: &EndedSubagent) -> ToolResult {
    let why = match &ended.outcome {
        Outcome::Done => {
            let answer = if ended.answer.is_empty() { "(no answer)" } else { &ended.answer };
            return ToolResult::text(answer);
        }
        Outcome::Stopped | Outcome::Interrupted => "It was stopped.".to_owned(),
        Outcome::MaxTokens => "It reached the output limit of its model.".to_owned(),
        Outcome::MaxSteps => "It reached its limit of steps.".to_owned(),
        Outcome::Repeating => "It repeated itself.".to_owned(),
        Outcome::Refused { reason } => format!("Its model refused: {reason}"),
        Outcome::Failed { failure } => failure.to_string(),
    };
    ToolResult::error(format!("The agent did not finish. {why}\n{}", ended.answer).trim_end().to_owned())
}

fn text_of(result: &ToolResult) -> String {
    let texts = result.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn summary(agent: &str, input: &Value) -> String {
    let text = |name: &str| input[name].as_str().filter(|text| !text.trim().is_empty());
    let what = text("activity").or_else(|| text("task")).unwrap_or_default();
    let line = what.lines().next().unwrap_or_default();
    format!("{agent}: {}", line.chars().take(SUMMARY_CHARACTERS).collect::<String>())
}

impl Tool for SpawnAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        let agent = self.starter.agent(input)?;
        if input["task"].as_str().is_none_or(|task| task.trim().is_empty()) {
            return Err("The task is missing.".to_owned());
        }
        Ok(Review {
            summary: summary(&agent, input),
            details: Some(self.starter.details(&agent, SessionId::new(""), 0)),
            harmless: true,
            ..Review::default()
        })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.start(call).await.unwrap_or_else(|failure| ToolResult::error(failure.to_string()))
        })
    }
}
