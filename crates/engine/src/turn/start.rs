//! From a user's prompt to a running turn: contexts, the model, the message.
//!
//! Invariants: the reply leaves before the first event; where no model can answer, the chat shows why, in a turn that
//! ends like any other.

use std::sync::Arc;

use domain::command::{Accepted, AcceptedStatus, Context, TurnLimits, UserPrompt};
use domain::event::{Fact, Outcome};
use domain::item::{ItemKind, Part};
use domain::names::is_same_name;
use domain::note::Goal;
use domain::taint::Taint;
use domain::tool::{Resource, Scope, ToolServer};
use domain::{CancellationToken, Failure, FailureKind, Model, Reply, TurnId};
use serde_json::Value;
use session::AttachedFrontend;

use super::{Turn, goal, images, instructions};
use crate::hooks::{self, TurnHooks};
use crate::memory;
use crate::session::{Actor, Instructions, Session};
use crate::spending;
use crate::title;
use crate::tool_calls::context::EngineToolContext;
use crate::tool_calls::{approval, server_paths, taint};
use crate::undo;

/// Begins a turn with a prompt that is no slash command. `recorded`: what the model is sent, where that is known.
pub(crate) fn begin(
    actor: &mut Actor,
    id: TurnId,
    frontend: Option<AttachedFrontend>,
    prompt: UserPrompt,
    recorded: Option<Vec<Part>>,
    reply: Reply<Accepted>,
) {
    let UserPrompt { text, parts, contexts, change: _, limits } = prompt;
    let model = match choose_model(&actor.session) {
        Ok(model) => model,
        Err(failure) => return show_failure(actor, id, text, failure, reply),
    };
    let info = model.info();
    if let Err(failure) = check_limits(&actor.session, &limits, &info) {
        let _ = reply.send(Err(failure));
        return;
    }
    let accepted = Accepted { turn: id, model: info.id.clone(), status: AcceptedStatus::Prompting };
    let _ = reply.send(Ok(accepted));
    let is_first = !actor.session.state().has_user_message();
    let cancel = CancellationToken::new();
    // What was recorded has the size that models take already.
    let (parts, contexts) = match &recorded {
        None => images::as_contexts(parts, contexts),
        Some(_) => (parts, contexts),
    };
    let expanding = (!contexts.is_empty())
        .then(|| expand(actor, id, frontend.as_ref(), contexts, limits.listed_resources, &cancel));
    let message = recorded.unwrap_or_else(|| {
        [notes(&actor.session, &text, &info), parts, vec![Part::text(text.clone())]].concat()
    });
    let launch = Launch { id, model, frontend, cancel, limits, goal: None };
    match expanding {
        None => launch.with_message(actor, text.clone(), message),
        Some(expanding) => launch.after(actor, text.clone(), async move {
            Ok(images::each_once(expanding.await.into_iter().chain(message)))
        }),
    }
    if is_first {
        start_title_and_warn(&actor.session, &text, &info);
    }
}

/// A model to fail over to that cannot be used would otherwise be noticed only when it is needed.
fn check_limits(
    session: &Session,
    limits: &TurnLimits,
    model: &domain::model::ModelInfo,
) -> Result<(), Failure> {
    spending::check_price(limits, model)?;
    limits.failover.iter().try_for_each(|name| session.workspace.models.find(name).map(drop))
}

fn start_title_and_warn(session: &Arc<Session>, text: &str, info: &domain::model::ModelInfo) {
    if !session.is_subagent() {
        title::start(session, text, info);
    }
    if let Some(notice) = spending::budget_warning(&session.workspace.settings.budget, info) {
        session.commit(vec![Fact::Notice { notice }]);
    }
}

/// What the model must know about undos since its last answer, and about a fact that this prompt wanted kept.
fn notes(session: &Session, text: &str, model: &domain::model::ModelInfo) -> Vec<Part> {
    let undone = undo::note_for_model(session.state().items());
    let fact = memory::wish(session, text);
    if fact.is_some() {
        // The instructions of a new chat name what was in memory before: this fact is in the message.
        instructions::of(session, &session.instructions, model);
    }
    undone.into_iter().chain(fact.and_then(|fact| memory::keep_wish(session, fact))).collect()
}

/// What a turn is started with.
pub(crate) struct Launch {
    pub(crate) id: TurnId,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) frontend: Option<AttachedFrontend>,
    pub(crate) cancel: CancellationToken,
    pub(crate) limits: TurnLimits,
    /// A goal that this turn begins with, beside that of its limits.
    pub(crate) goal: Option<Goal>,
}

impl Launch {
    /// Runs a turn that begins with a message of the user.
    pub(crate) fn with_message(self, actor: &mut Actor, text: String, parts: Vec<Part>) {
        if hooks::hear_requests(&actor.session) {
            return self.after(actor, text, async move { Ok(parts) });
        }
        let (id, model) = (self.id, self.model.info().id);
        let item = actor.session.new_item(id, 0, ItemKind::UserMessage { text, parts });
        let mut facts = vec![Fact::TurnStarted { turn: id, model }, Fact::ItemEnded { item }];
        facts.extend(self.opening_notes(actor));
        // Not awaited: the request does not wait for the disk; only what clients see does.
        actor.session.commit(facts);
        let turn = self.turn(actor);
        actor.session.steering.open();
        actor.run_turn(id, turn.cancel.clone(), turn.run());
    }

    /// The same where the message must be gathered first, from pages and servers that may be slow. A stop ends that too.
    pub(crate) fn after(
        self,
        actor: &mut Actor,
        text: String,
        gathering: impl Future<Output = Result<Vec<Part>, Failure>> + Send + 'static,
    ) {
        let (id, model) = (self.id, self.model.info().id);
        let started = Fact::TurnStarted { turn: id, model };
        actor.session.commit(std::iter::once(started).chain(self.opening_notes(actor)).collect());
        let turn = self.turn(actor);
        actor.session.steering.open();
        actor.run_turn(id, turn.cancel.clone(), async move {
            if !hooks::hear_requests(&turn.session) {
                turn.session.show_progress("Reading the contexts");
            }
            let gathered = tokio::select! {
                gathered = gathering => gathered,
                () = turn.cancel.cancelled() => Ok(vec![Part::text(text.clone())]),
            };
            let (kind, failure) = match gathered {
                Ok(parts) => match hooks::open_request(&turn, &text, parts).await {
                    Ok(parts) => (ItemKind::UserMessage { text, parts }, None),
                    // A blocked prompt is shown, and no model ever gets it.
                    Err(failure) => (ItemKind::Command { text }, Some(failure)),
                },
                Err(failure) => {
                    (ItemKind::UserMessage { parts: vec![Part::text(text.clone())], text }, Some(failure))
                }
            };
            let item = turn.session.new_item(id, 0, kind);
            turn.session.commit(vec![Fact::ItemEnded { item }]);
            match failure {
                None => turn.run().await,
                // A goal that the prompt brought rests.
                Some(failure) => goal::conclude(&turn, Outcome::Failed { failure }),
            }
        });
    }

    /// What the model is told beside the message: a goal, instructions that have changed.
    fn opening_notes(&self, actor: &Actor) -> Vec<Fact> {
        let goal = self.goal.clone().or_else(|| goal::asked_for(&actor.session, &self.limits));
        let goal = goal.map(goal::opening_note);
        let change = instructions::change(&actor.session, &actor.session.instructions, &self.model.info());
        let fact = |note| {
            let item = actor.session.new_item(self.id, 0, ItemKind::Note(Box::new(note)));
            Fact::ItemEnded { item }
        };
        goal.into_iter().chain(change).map(fact).collect()
    }

    /// A turn on the history as it is.
    pub(crate) fn turn(self, actor: &mut Actor) -> Turn {
        let Launch { id, model, frontend, cancel, limits, goal: _ } = self;
        let (session, instructions) = (actor.session.clone(), actor.session.instructions.clone());
        if session.workspace.settings.chat.auto_sync_system_prompt {
            instructions.forget();
        }
        let Instructions { system, fetched_rules } = instructions::of(&session, &instructions, &model.info());
        if !session.is_subagent() {
            session.mention_changed_settings();
        }
        let most = session.workspace.settings.max_steps(&session.behavior());
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let goal = goal::of_turn(&session);
        let of_goal = goal.as_ref().map(goal::GoalRun::steps_left);
        let max_steps = [limits.max_steps, of_goal].into_iter().flatten().fold(most, u32::min);
        let cost_before = session.state().usage().session_cost.unwrap_or(0.0);
        let editor = frontend.as_ref().map(AttachedFrontend::editor);
        let failed_models = Vec::new();
        let hooks = TurnHooks::default();
        Turn {
            session,
            id,
            model,
            frontend,
            editor,
            cancel,
            system,
            instructions,
            fetched_rules,
            max_steps,
            limits,
            cost_before,
            failed_models,
            hooks,
            is_warned_of_length: false,
            background: Arc::default(),
            skills: Arc::default(),
            goal,
        }
    }
}

/// The model of the chat, else the default one.
pub(crate) fn choose_model(session: &Session) -> Result<Arc<dyn Model>, Failure> {
    let models = &session.workspace.models;
    let of_behavior = || session.workspace.settings.behavior_model(&session.behavior()).map(str::to_owned);
    let chosen = session.state().settings().model.clone();
    let chosen = chosen.or_else(of_behavior);
    let name = chosen.or_else(|| models.default_model()).ok_or_else(|| {
        Failure::auth("No model is configured.").hint(
            "Start Ollama or LM Studio with a model, or run `dragoman models pull` for one that runs inside Dragoman, or \
             run `dragoman login anthropic`, or set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY.",
        )
    })?;
    models.find(&name)
}

/// Shows in the chat why the prompt cannot be answered.
pub(crate) fn show_failure(
    actor: &mut Actor,
    turn: TurnId,
    text: String,
    failure: Failure,
    reply: Reply<Accepted>,
) {
    let status =
        if failure.kind == FailureKind::Auth { AcceptedStatus::Login } else { AcceptedStatus::Error };
    let session = &actor.session;
    let model = session.state().settings().model.clone().unwrap_or_default();
    let _ = reply.send(Ok(Accepted { turn, model: model.clone(), status }));
    // A list of chats must show which is which.
    title::set(session, title::shorten(&text));
    let parts = vec![Part::text(text.clone())];
    let item = session.new_item(turn, 0, ItemKind::UserMessage { text, parts });
    session.commit(vec![
        Fact::TurnStarted { turn, model },
        Fact::ItemEnded { item },
        Fact::TurnEnded { turn, outcome: Outcome::Failed { failure } },
    ]);
}

/// Contexts as parts of the message. A context that cannot be read is replaced by the reason.
fn expand(
    actor: &Actor,
    turn: TurnId,
    frontend: Option<&AttachedFrontend>,
    contexts: Vec<Context>,
    is_listed_only: bool,
    cancel: &CancellationToken,
) -> impl Future<Output = Vec<Part>> + Send + use<> {
    let session = actor.session.clone();
    session.add_taint(&taint::of_contexts(&contexts, session.workspace.is_trusted));
    let scope = Scope {
        session: session.id.clone(),
        roots: session.roots.clone(),
        read_only: false,
        remembered: Arc::from([]),
        forbidden_paths: approval::forbidden_paths_of(&session).into(),
        tainted: false,
        secret_read: false,
    };
    let editor = frontend.map(AttachedFrontend::editor);
    let context = Arc::new(EngineToolContext::new(session.clone(), turn, None, editor, cancel.clone()));
    async move {
        let mut parts = Vec::new();
        for attached in &contexts {
            let expanded = match attached {
                Context::McpResource(resource) => read_resource(&session, resource, is_listed_only).await,
                Context::File { .. }
                | Context::Directory { .. }
                | Context::Web { .. }
                | Context::RepoMap
                | Context::Cursor { .. }
                | Context::Code { .. }
                | Context::Text { .. }
                | Context::Image { .. } => {
                    session.workspace.files.expand(attached, &scope, context.clone()).await
                }
            };
            match expanded {
                Ok(expanded) => {
                    let mut taint = Taint::default();
                    taint::add_visible_secrets(&expanded, &mut taint);
                    session.add_taint(&taint);
                    parts.extend(expanded);
                }
                Err(failure) => parts.push(Part::text(format!("(A context could not be added: {failure})"))),
            }
        }
        parts
    }
}

async fn read_resource(
    session: &Session,
    resource: &Resource,
    is_listed_only: bool,
) -> Result<Vec<Part>, Failure> {
    let Resource { server, uri, .. } = resource;
    let named = server_paths::paths_of(&Value::String(uri.clone()), &session.roots);
    if approval::is_forbidden(session, &named) {
        return Err(Failure::user(format!("A rule forbids reading {uri}.")));
    }
    for source in session.sources() {
        let known = source.servers().into_iter().find(|known| is_same_name(&known.name, server));
        if let Some(ToolServer { name: server, .. }) = &known {
            if is_listed_only {
                source.first_lists().await;
                let is_same = |listed: &Resource| (&listed.server, &listed.uri) == (server, uri);
                if !source.resources().iter().any(is_same) {
                    return Err(Failure::user(format!("The server {server} does not list {uri}.")));
                }
            }
            let open = Part::text(format!("<resource server=\"{server}\" uri=\"{uri}\">"));
            let parts = source.resource(server, uri).await?;
            return Ok([vec![open], parts, vec![Part::text("</resource>")]].concat());
        }
    }
    Err(Failure::user(format!("There is no server {server} that could give {uri}.")))
}
