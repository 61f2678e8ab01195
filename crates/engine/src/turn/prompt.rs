//! From a prompt to a running turn: settings, commands, contexts, the model; the reply before the first event.
//!
//! Invariant: whatever goes wrong here is said in the chat, and the turn that says it ends like any other.

use std::sync::Arc;

use domain::command::{Accepted, AcceptedStatus, Context, TurnLimits, UserPrompt};
use domain::event::{Fact, Outcome};
use domain::item::{ItemKind, Part};
use domain::tool::{Resource, Scope};
use domain::{CancellationToken, Failure, FailureKind, Model, Reply, TurnId};

use crate::attached_frontend::AttachedFrontend;
use crate::session::Session;
use crate::session::actor::Actor;
use crate::session::title;
use crate::slash;
use crate::spending;
use crate::tool_calls::context::CallContext;
use crate::turn::Turn;
use crate::turn::instructions;

pub async fn begin(
    actor: &mut Actor,
    front: Option<AttachedFrontend>,
    prompt: UserPrompt,
    reply: Reply<Accepted>,
) {
    actor.turns_made += 1;
    let id = TurnId(actor.turns_made);
    let UserPrompt { text, parts, contexts, change, limits } = prompt;
    if !change.is_empty()
        && let Err(failure) = actor.configure(change).await
    {
        let _ = reply.send(Err(failure));
        return;
    }
    if let Some(slash) = slash::parse(&actor.session, &text) {
        slash::run(actor, id, front, text, slash, reply).await;
        return;
    }
    let model = match choose_model(actor) {
        Ok(model) => model,
        Err(failure) => return refuse(actor, id, text, failure, reply),
    };
    if let Some(failure) = spending::unpriced(&limits, &model.info()) {
        let _ = reply.send(Err(failure));
        return;
    }
    let unheld = spending::unheld(&actor.session.workspace.settings.budget, &model.info());
    let model_id = model.info().id;
    let accepted = Accepted { turn: id, model: model_id.clone(), status: AcceptedStatus::Prompting };
    let _ = reply.send(Ok(accepted));
    let first = !has_messages(actor);
    let cancel = CancellationToken::new();
    let reading = (!contexts.is_empty()).then(|| expand(actor, id, front.as_ref(), contexts, &cancel));
    let said = [parts, vec![Part::text(text.clone())]].concat();
    let launched = Launch { id, model, front, cancel, limits };
    match reading {
        None => launch(actor, launched, text.clone(), said),
        Some(reading) => launch_after(actor, launched, text.clone(), async move {
            Ok(reading.await.into_iter().chain(said).collect())
        }),
    }
    if first {
        title::start(&actor.session, &text, &model_id);
        if let Some(notice) = unheld {
            actor.session.journal.note(Fact::Notice { notice });
        }
    }
}

/// What a turn is started with.
pub struct Launch {
    pub id: TurnId,
    pub model: Arc<dyn Model>,
    pub front: Option<AttachedFrontend>,
    pub cancel: CancellationToken,
    pub limits: TurnLimits,
}

/// Runs a turn that begins with a message of the user's.
pub fn launch(actor: &mut Actor, launch: Launch, text: String, parts: Vec<Part>) {
    let (id, model) = (launch.id, launch.model.info().id);
    let item = actor.session.item(id, 0, ItemKind::UserMessage { text, parts });
    let begun = vec![Fact::TurnStarted { turn: id, model }, Fact::ItemEnded { item: item.clone() }];
    // Not awaited: the request does not wait for the disk, what is told does.
    drop(actor.session.journal.record(begun));
    let mut turn = turn(actor, launch);
    turn.history.put(item);
    actor.spawn(turn);
}

/// The same where the message must be gathered first, from pages and servers that may be slow: a stop ends that too.
pub fn launch_after(
    actor: &mut Actor,
    launch: Launch,
    text: String,
    gathering: impl Future<Output = Result<Vec<Part>, Failure>> + Send + 'static,
) {
    let (id, model) = (launch.id, launch.model.info().id);
    drop(actor.session.journal.record(vec![Fact::TurnStarted { turn: id, model }]));
    let turn = turn(actor, launch);
    actor.spawn_with(turn, move |mut turn| async move {
        turn.session.progress("Reading the contexts".into());
        let gathered = tokio::select! {
            gathered = gathering => gathered,
            () = turn.cancel.cancelled() => Ok(vec![Part::text(text.clone())]),
        };
        let (parts, failure) = match gathered {
            Ok(parts) => (parts, None),
            Err(failure) => (vec![Part::text(text.clone())], Some(failure)),
        };
        let item = turn.session.item(id, 0, ItemKind::UserMessage { text, parts });
        turn.history.put(item.clone());
        turn.session.journal.note(Fact::ItemEnded { item });
        match failure {
            None => turn.run().await,
            Some(failure) => turn.over(Outcome::Failed { failure }),
        }
    });
}

/// A turn on what the history now holds.
fn turn(actor: &mut Actor, launch: Launch) -> Turn {
    let Launch { id, model, front, cancel, limits } = launch;
    let mut history = actor.history.take().unwrap_or_default();
    history.open_turn = Some(id);
    let system = instructions::of(actor, &model.info());
    let behavior = actor.session.state().settings.behavior.clone().unwrap_or_default();
    let most = actor.session.workspace.settings.max_steps(&behavior);
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let max_steps = limits.max_steps.map_or(most, |own| own.min(most));
    let cost_before = actor.session.state().usage.session_cost.unwrap_or(0.0);
    Turn {
        session: actor.session.clone(),
        id,
        model,
        host: front.as_ref().map(AttachedFrontend::host),
        cancel,
        history,
        system,
        max_steps,
        limits,
        cost_before,
        failed: Vec::new(),
    }
}

pub fn choose_model(actor: &Actor) -> Result<Arc<dyn Model>, Failure> {
    let models = &actor.session.workspace.models;
    let settings = actor.session.state().settings.clone();
    let of_behavior = || {
        let behavior = settings.behavior.as_deref().unwrap_or_default();
        actor.session.workspace.settings.behavior_model(behavior).map(str::to_owned)
    };
    let chosen = settings.model.clone().or_else(of_behavior);
    let name = chosen.or_else(|| models.default_model()).ok_or_else(|| {
        Failure::auth("No model is configured.").hint(
            "Run `dragoman login anthropic`, set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or fetch a small \
             model that runs here: `dragoman models pull smollm2`.",
        )
    })?;
    models.find(&name)
}

fn has_messages(actor: &Actor) -> bool {
    actor.history.as_ref().is_some_and(|history| {
        history.items.iter().any(|item| matches!(item.kind, ItemKind::UserMessage { .. }))
    })
}

/// The prompt cannot be answered: the chat says why.
pub fn refuse(actor: &mut Actor, turn: TurnId, text: String, failure: Failure, reply: Reply<Accepted>) {
    let status =
        if failure.kind == FailureKind::Auth { AcceptedStatus::Login } else { AcceptedStatus::Error };
    let model = actor.session.state().settings.model.clone().unwrap_or_default();
    let _ = reply.send(Ok(Accepted { turn, model: model.clone(), status }));
    // A list of chats must tell it from others.
    title::name(&actor.session, title::by_rule(&text));
    let parts = vec![Part::text(text.clone())];
    let item = actor.session.item(turn, 0, ItemKind::UserMessage { text, parts });
    if let Some(history) = &mut actor.history {
        history.put(item.clone());
    }
    drop(actor.session.journal.record(vec![
        Fact::TurnStarted { turn, model },
        Fact::ItemEnded { item },
        Fact::TurnEnded { turn, outcome: Outcome::Failed { failure } },
    ]));
}

/// Contexts as parts of the message. One that cannot be read says so instead.
fn expand(
    actor: &Actor,
    turn: TurnId,
    front: Option<&AttachedFrontend>,
    contexts: Vec<Context>,
    cancel: &CancellationToken,
) -> impl Future<Output = Vec<Part>> + Send + use<> {
    let session = actor.session.clone();
    let scope = Scope {
        session: session.id.clone(),
        roots: session.roots.clone(),
        read_only: false,
        remembered: Arc::from([]),
    };
    let port = Arc::new(CallContext::new(
        session.clone(),
        turn,
        None,
        front.map(AttachedFrontend::host),
        cancel.clone(),
    ));
    async move {
        let mut parts = Vec::new();
        for context in &contexts {
            let expanded = match context {
                Context::McpResource(resource) => read_resource(&session, resource).await,
                _ => session.workspace.files.expand(context, &scope, port.clone()).await,
            };
            match expanded {
                Ok(expanded) => parts.extend(expanded),
                Err(failure) => parts.push(Part::text(format!("(A context could not be added: {failure})"))),
            }
        }
        parts
    }
}

async fn read_resource(session: &Session, resource: &Resource) -> Result<Vec<Part>, Failure> {
    let Resource { server, uri, .. } = resource;
    for source in session.sources() {
        if source.servers().iter().any(|known| known.name == *server) {
            let open = Part::text(format!("<resource server=\"{server}\" uri=\"{uri}\">"));
            let parts = source.resource(server, uri).await?;
            return Ok([vec![open], parts, vec![Part::text("</resource>")]].concat());
        }
    }
    Err(Failure::user(format!("There is no server {server} that could give {uri}.")))
}
