//! Subagents: agents that work on a task in a chat of their own, for one tool call of another chat.
//!
//! Must not know front-ends. Invariants: a subagent has no subagents; its calls are decided by the stricter of its own
//! rules and its parent's; what it costs counts as its parent's; it ends with the call that started it.

use std::sync::{Arc, LazyLock};

use domain::command::{Accepted, AcceptedStatus, Command, SessionSettings, TurnLimits, UserPrompt, reply};
use domain::event::Outcome;
use domain::item::ItemKind;
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Details, Origin};
use domain::{BoxFuture, Failure, ItemId, Reply, SessionId};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::attached_frontend::AttachedFrontend;
use crate::behavior;
use crate::session::actor::Message;
use crate::session::state::State;
use crate::session::{SUBAGENT_PREFIX, Session};
use crate::turn::Turn;

/// A summary for people is not longer than this.
const SUMMARY_CHARACTERS: usize = 80;

/// What a subagent has of the turn that started it.
pub(crate) struct Inherited {
    pub(crate) parent: Arc<Session>,
    pub(crate) limits: TurnLimits,
    /// What the parent's chat had cost before its turn.
    pub(crate) cost_before: f64,
}

/// A request to the router.
pub(crate) struct StartSubagent {
    pub(crate) id: SessionId,
    pub(crate) inherited: Inherited,
    pub(crate) frontend: Option<AttachedFrontend>,
    pub(crate) settings: SessionSettings,
    pub(crate) prompt: UserPrompt,
    pub(crate) accepted: Reply<Accepted>,
    pub(crate) ended: oneshot::Sender<EndedSubagent>,
    /// The router hands the chat's mailbox back.
    pub(crate) started: oneshot::Sender<mpsc::UnboundedSender<Message>>,
}

/// What is left of a subagent for its parent.
pub(crate) struct EndedSubagent {
    outcome: Outcome,
    answer: String,
    steps: u32,
}

impl EndedSubagent {
    pub(crate) fn new(outcome: Outcome, state: &State) -> Self {
        let text = |kind: &ItemKind| {
            let ItemKind::AgentMessage { text, .. } = kind else { return None };
            (!text.trim().is_empty()).then(|| text.clone())
        };
        let answer = state.items().iter().rev().find_map(|item| text(&item.kind)).unwrap_or_default();
        let steps = state.items().iter().map(|item| item.step).max().unwrap_or(0);
        Self { outcome, answer, steps }
    }
}

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
    session: Arc<Session>,
    frontend: Option<AttachedFrontend>,
    model: String,
    limits: TurnLimits,
    cost_before: f64,
}

static INPUT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "description": "The name of the agent."},
            "task": {
                "type": "string",
                "description": "What it should do and report. It knows nothing of this conversation.",
            },
            "activity": {"type": "string", "description": "Three or four words for people."},
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
        let agents = behavior::subagents(&session.workspace.settings);
        let lines: Vec<String> =
            agents.iter().map(|(name, description)| format!("- {name}: {description}")).collect();
        let description = format!(
            "Starts an agent that works on a task by itself and reports back. Use it for work whose details would \
             only fill this conversation, such as a search through many files. Several calls in one answer run at \
             the same time.\nAgents:\n{}",
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
        let model = turn.model.info().id;
        let (frontend, limits) = (turn.frontend.clone(), turn.limits.clone());
        Some(Self { spec, session, frontend, model, limits, cost_before: turn.cost_before })
    }

    fn agent(&self, input: &Value) -> Result<String, String> {
        let name = input["agent"].as_str().unwrap_or_default();
        let known = behavior::subagents(&self.session.workspace.settings);
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

    async fn start(&self, call: &Invocation) -> Result<ToolResult, Failure> {
        let agent = self.agent(&call.input).map_err(Failure::user)?;
        let id = session_id(&self.session.id, call.item);
        let text = call.input["task"].as_str().unwrap_or_default().to_owned();
        let (accepted, reply_to_prompt) = reply();
        let (ended, ending) = oneshot::channel();
        let (started, starting) = oneshot::channel();
        let settings = SessionSettings {
            title: Some(summary(&agent, &call.input)),
            model: Some(self.model_of(&agent)),
            behavior: Some(agent.clone()),
            ..SessionSettings::default()
        };
        let inherited = Inherited {
            parent: self.session.clone(),
            limits: self.limits.clone(),
            cost_before: self.cost_before,
        };
        let request = StartSubagent {
            id: id.clone(),
            inherited,
            frontend: self.frontend.clone().map(without_questions),
            settings,
            prompt: UserPrompt { text, ..UserPrompt::default() },
            accepted,
            ended,
            started,
        };
        self.session.subagents.send(request).map_err(|_| Failure::closed())?;
        let mailbox = starting.await.map_err(|_| Failure::closed())?;
        let ended = follow(&mailbox, reply_to_prompt, ending, call, &id).await;
        let (reply, _) = oneshot::channel();
        let _ = mailbox.send(Message { frontend: None, command: Command::Shutdown { reply } });
        let ended = ended?;
        let mut result = result_of(&ended);
        result.details = Some(self.details(&agent, id, ended.steps));
        Ok(result)
    }
}

/// Waits for the end of a subagent, and stops it with its call.
async fn follow(
    mailbox: &mpsc::UnboundedSender<Message>,
    accepted: impl Future<Output = Result<Accepted, Failure>>,
    mut ending: oneshot::Receiver<EndedSubagent>,
    call: &Invocation,
    id: &SessionId,
) -> Result<EndedSubagent, Failure> {
    let accepted = accepted.await?;
    if accepted.status != AcceptedStatus::Prompting {
        return Err(Failure::user("The agent could not be started: no model can answer it."));
    }
    let ended = tokio::select! {
        ended = &mut ending => ended,
        () = call.cancel.cancelled() => {
            let command = Command::Cancel { session: id.clone() };
            let _ = mailbox.send(Message { frontend: None, command });
            ending.await
        }
    };
    ended.map_err(|_| Failure::closed())
}

/// A front-end that does not show the chats of subagents cannot show their questions either.
fn without_questions(mut frontend: AttachedFrontend) -> AttachedFrontend {
    let abilities = &mut frontend.abilities;
    if !abilities.subagents {
        (abilities.approvals, abilities.questions, abilities.forms) = (false, false, false);
    }
    frontend
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
        let agent = self.agent(input)?;
        if input["task"].as_str().is_none_or(|task| task.trim().is_empty()) {
            return Err("The task is missing.".to_owned());
        }
        Ok(Review {
            summary: summary(&agent, input),
            details: Some(self.details(&agent, SessionId::new(""), 0)),
            harmless: true,
            ..Review::default()
        })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.start(&call).await.unwrap_or_else(|failure| ToolResult::error(failure.to_string()))
        })
    }
}
