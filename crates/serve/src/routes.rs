//! The routes below `/api`: they read the request, send a command and write the answer. docs/protocols/serve.md is their page.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Path, RawQuery};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post, put};
use domain::ask::Answer;
use domain::command::{AcceptedStatus, RollbackScope, SessionSettings, UserPrompt};
use domain::item::{ItemKind, PlanEntry};
use domain::store::ListPosition;
use domain::tool_call::Details;
use domain::{AskId, Fact, Failure, FailureKind, ItemId, SessionId};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use web::{ApiError, Input};

use crate::caller::Role;
use crate::chats::{Chats, RunningState, id_of, key_of};
use crate::stream;
use crate::to_wire::{
    Projection, answer_value, catalog_value, chat_value, summary_value, task_values, usage_value,
};

type Reply = Result<Response, ApiError>;

/// The longest prompt, in bytes.
const LONGEST_PROMPT: usize = 1 << 20;
const USUAL_LIST: usize = 50;
/// What the page of a server says to everybody.
const SHARING: &str = "All users of this server share its operating-system account: what one of them lets an agent do, it does \
    with the same files and rights as for all others.";
/// Looking at the programs that hold chats may take this long.
const RUNNING_DEADLINE: Duration = Duration::from_secs(3);

/// The largest body of a path, in bytes.
pub fn body_limit(path: &str) -> usize {
    if path == "/acp" { crate::http_editors::LARGEST_MESSAGE } else { 2 << 20 }
}

/// No path is open: nothing sends a browser here from elsewhere.
pub fn is_open(_path: &str) -> bool {
    false
}

/// A route of the API: what the document describes, and the least role of an account.
pub struct Route {
    pub method: &'static str,
    /// Below `/api/v1`, with places in braces.
    pub path: &'static str,
    pub role: Role,
}

const fn route(method: &'static str, path: &'static str, role: Role) -> Route {
    Route { method, path, role }
}

/// Every route below `/api/v1`. The guard decides about the commands; this table refuses sooner, with a plainer status.
pub const ROUTES: &[Route] = &[
    route("GET", "/openapi.json", Role::View),
    route("GET", "/state", Role::View),
    route("PUT", "/preferences", Role::View),
    route("GET", "/chats", Role::View),
    route("POST", "/chats", Role::Drive),
    route("GET", "/chats/{key}", Role::View),
    route("GET", "/chats/{key}/events", Role::View),
    route("POST", "/chats/{key}/prompt", Role::Drive),
    route("POST", "/chats/{key}/steer", Role::Drive),
    route("POST", "/chats/{key}/stop", Role::Drive),
    route("POST", "/chats/{key}/asks/{ask}", Role::Drive),
    route("PUT", "/chats/{key}/settings", Role::Drive),
    route("POST", "/chats/{key}/fork", Role::Drive),
    route("POST", "/chats/{key}/rollback", Role::Drive),
    route("GET", "/chats/{key}/cost", Role::View),
    route("GET", "/chats/{key}/tasks", Role::View),
];

/// The description of the API.
pub const OPENAPI: &str = include_str!("openapi.json");

impl Route {
    /// The route of a path below `/api/v1`.
    pub(crate) fn find(method: &str, path: &str) -> Option<&'static Self> {
        ROUTES.iter().find(|route| route.method == method && route.fits(path))
    }

    fn fits(&self, path: &str) -> bool {
        let (mut ours, mut theirs) = (self.path.split('/'), path.split('/'));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(place), Some(text)) if place.starts_with('{') && !text.is_empty() => {}
                (Some(word), Some(text)) if word == text => {}
                _ => return false,
            }
        }
    }
}

/// Whose chats a request is about.
pub(crate) trait ChatsSource: Clone + Send + Sync + 'static {
    fn chats(&self, parts: &Parts) -> impl Future<Output = Result<Chats, ApiError>> + Send;
}

impl ChatsSource for Chats {
    async fn chats(&self, _parts: &Parts) -> Result<Chats, ApiError> {
        Ok(self.clone())
    }
}

impl<S: ChatsSource> FromRequestParts<S> for Chats {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, source: &S) -> Result<Self, ApiError> {
        source.chats(parts).await
    }
}

impl Chats {
    /// Routes for pages that have shown their secret.
    pub fn api(&self) -> Router {
        let routes = routes(self.clone());
        Router::new().nest("/v1", routes.clone()).merge(routes)
    }
}

/// Exactly the routes of the table.
pub(crate) fn routes<S: ChatsSource>(source: S) -> Router {
    let routes = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, handler(route)));
    routes.with_state(source)
}

fn handler<S: ChatsSource>(route: &Route) -> MethodRouter<S> {
    match (route.method, route.path) {
        ("GET", "/openapi.json") => get(openapi),
        ("GET", "/state") => get(state),
        ("PUT", "/preferences") => put(preferences),
        ("GET", "/chats") => get(list),
        ("POST", "/chats") => post(new_chat),
        ("GET", "/chats/{key}") => get(chat),
        ("GET", "/chats/{key}/events") => get(events),
        ("POST", "/chats/{key}/prompt") => post(prompt),
        ("POST", "/chats/{key}/steer") => post(steer),
        ("POST", "/chats/{key}/stop") => post(stop),
        ("POST", "/chats/{key}/asks/{ask}") => post(answer),
        ("PUT", "/chats/{key}/settings") => put(settings),
        ("POST", "/chats/{key}/fork") => post(fork),
        ("POST", "/chats/{key}/rollback") => post(roll_back),
        ("GET", "/chats/{key}/cost") => get(cost),
        ("GET", "/chats/{key}/tasks") => get(tasks),
        // The test of the document finds a route without a handler.
        _ => MethodRouter::new(),
    }
}

async fn openapi() -> Response {
    web::file(OPENAPI.as_bytes().into(), "application/json")
}

fn done() -> Reply {
    Ok(web::json(&json!({})))
}

/// The pairs of a query; of two with the same name the first counts.
fn pairs(query: Option<String>) -> HashMap<String, String> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let mut found = HashMap::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        found.entry(decode(name)).or_insert_with(|| decode(value));
    }
    found
}

pub(crate) fn refused(failure: Failure) -> ApiError {
    let (status, kind) = match failure.kind {
        FailureKind::User => (StatusCode::BAD_REQUEST, "invalid"),
        FailureKind::Taken => (StatusCode::CONFLICT, "taken"),
        FailureKind::Config => (StatusCode::UNPROCESSABLE_ENTITY, "config"),
        FailureKind::Auth => (StatusCode::UNPROCESSABLE_ENTITY, "auth"),
        FailureKind::Quota => (StatusCode::TOO_MANY_REQUESTS, "quota"),
        FailureKind::Provider => (StatusCode::BAD_GATEWAY, "provider"),
        FailureKind::Tool => (StatusCode::UNPROCESSABLE_ENTITY, "tool"),
        FailureKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
    };
    let error = ApiError::new(status, kind, failure.message);
    match failure.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The chat of a path. One that is not stored is not made by asking for it.
async fn stored(chats: &Chats, key: &str) -> Result<SessionId, ApiError> {
    let missing = || ApiError::not_found("There is no such chat.").hint("Open one from the list.");
    let id = id_of(key).ok_or_else(missing)?;
    if chats.exists(&id).await.map_err(refused)? { Ok(id) } else { Err(missing()) }
}

async fn state(chats: Chats) -> Reply {
    let catalog = chats.catalog().await.map_err(refused)?;
    let mut value = json!({
        "version": chats.version(),
        "folders": chats.folders(),
        "catalog": catalog_value(&catalog),
        "theme": chats.theme().await,
    });
    if let Some(crate::Scope { guard, caller }) = chats.scope() {
        let spent = guard.ledger().spent(&caller.name).await.map_err(refused)?;
        value["account"] = json!({
            "name": caller.name, "role": caller.role.as_str(), "budgetUsd": caller.budget, "spentUsd": spent,
        });
        value["sharing"] = json!(SHARING);
    }
    Ok(web::json(&value))
}

#[derive(Deserialize)]
struct PreferencesInput {
    theme: String,
}

async fn preferences(chats: Chats, Input(input): Input<PreferencesInput>) -> Reply {
    if !["light", "dark", "auto"].contains(&input.theme.as_str()) {
        return Err(ApiError::invalid("A theme is `light`, `dark` or `auto`."));
    }
    chats.set_theme(input.theme).await.map_err(refused)?;
    done()
}

async fn list(chats: Chats, RawQuery(query): RawQuery) -> Reply {
    let query = pairs(query);
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<u64>().ok());
    let text = query.get("search").map(|text| text.trim()).filter(|text| !text.is_empty());
    let after = match (number("afterTime"), query.get("after").and_then(|key| id_of(key))) {
        (Some(updated_at), Some(id)) => Some(ListPosition { updated_at, id }),
        (None, Some(id)) => chats.position(&id).await.map_err(refused)?,
        (_, None) => None,
    };
    let limit = number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL_LIST);
    let is_here = query.get("here").is_some_and(|text| text == "true");
    let listed = chats.list(text, after, limit, is_here).await.map_err(refused)?;
    // A list without the running state is better than none, or one that waits for a program that hangs.
    let running = tokio::time::timeout(RUNNING_DEADLINE, chats.running()).await;
    let running = running.ok().and_then(Result::ok).unwrap_or_default();
    let values = listed.chats.iter().map(|(chat, excerpt)| {
        let mut value = summary_value(chat);
        value["excerpt"] = json!(excerpt);
        if let Some(running) = running.iter().find(|running| running.id == chat.id) {
            let (state, waits_for) = match &running.state {
                RunningState::Idle => ("idle", None),
                RunningState::Answering => ("answering", None),
                RunningState::Waiting(what) => ("waiting", Some(what)),
            };
            value["running"] = json!({
                "state": state, "waitsFor": waits_for, "holder": running.holder, "costUsd": running.cost,
            });
        }
        value
    });
    let values: Vec<Value> = values.collect();
    Ok(web::json(&json!({"chats": values, "isWhole": listed.is_whole})))
}

#[derive(Deserialize, Default)]
struct SettingsInput {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    behavior: Option<String>,
}

impl From<SettingsInput> for SessionSettings {
    /// Trust is set where Dragoman runs, never by a page.
    fn from(input: SettingsInput) -> Self {
        let SettingsInput { title, model, behavior } = input;
        SessionSettings { title, model, behavior, ..SessionSettings::default() }
    }
}

#[derive(Deserialize)]
struct NewChatInput {
    /// One of the folders of the server.
    #[serde(default)]
    folder: Option<std::path::PathBuf>,
    #[serde(flatten)]
    settings: SettingsInput,
}

async fn new_chat(chats: Chats, Input(input): Input<NewChatInput>) -> Reply {
    let info = chats.new_chat(input.folder, input.settings.into()).await.map_err(refused)?;
    Ok((StatusCode::CREATED, web::json(&chat_value(&info))).into_response())
}

/// The chat as it is now, in the form of the stream's first event.
async fn chat(chats: Chats, Path(key): Path<String>) -> Reply {
    let id = stored(&chats, &key).await?;
    let info = chats.load(&id).await.map_err(refused)?;
    let all = domain::replay::read(chats.commands(), &id).await.map_err(refused)?;
    let mut entries = stream::entries(all, &mut Projection::default());
    entries.iter_mut().for_each(add_text);
    Ok(web::json(&json!({"chat": chat_value(&info), "entries": entries})))
}

/// The words of an entry beside its data, for readers that do not know its form.
fn add_text(entry: &mut Value) {
    let text = ["text", "summary", "message"].iter().find_map(|name| entry["data"][*name].as_str());
    if let Some(text) = text.map(str::to_owned) {
        entry["text"] = json!(text);
    }
}

async fn events(chats: Chats, Path(key): Path<String>) -> Reply {
    let id = stored(&chats, &key).await?;
    Ok(web::events(stream::open(&chats, id).await.map_err(refused)?))
}

#[derive(Deserialize)]
struct PromptInput {
    text: String,
    #[serde(flatten)]
    settings: SettingsInput,
}

async fn prompt(chats: Chats, Path(key): Path<String>, Input(input): Input<PromptInput>) -> Reply {
    let id = stored(&chats, &key).await?;
    check_text(&input.text)?;
    let prompt = UserPrompt { text: input.text, change: input.settings.into(), ..UserPrompt::default() };
    let accepted = chats.prompt(&id, prompt).await.map_err(refused)?;
    let status = match accepted.status {
        AcceptedStatus::Prompting => "prompting",
        AcceptedStatus::Login => "login",
        AcceptedStatus::Error => "error",
    };
    let value = json!({"turn": accepted.turn.to_string(), "model": accepted.model, "status": status});
    Ok((StatusCode::ACCEPTED, web::json(&value)).into_response())
}

fn check_text(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid("The text is empty.").hint("Write what to do."));
    }
    if text.len() > LONGEST_PROMPT {
        return Err(ApiError::invalid("The text is longer than 1 MiB.").hint("Name a file instead."));
    }
    Ok(())
}

#[derive(Deserialize)]
struct SteerInput {
    /// `null` takes back text that was not read yet.
    text: Option<String>,
}

async fn steer(chats: Chats, Path(key): Path<String>, Input(input): Input<SteerInput>) -> Reply {
    let id = stored(&chats, &key).await?;
    input.text.as_deref().map(check_text).transpose()?;
    chats.steer(&id, input.text).await.map_err(refused)?;
    done()
}

async fn stop(chats: Chats, Path(key): Path<String>, Input(_): Input<Value>) -> Reply {
    let id = stored(&chats, &key).await?;
    chats.stop(&id).await.map_err(refused)?;
    done()
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum AnswerInput {
    Allow {
        #[serde(default)]
        remember: bool,
    },
    Deny {
        #[serde(default)]
        remember: bool,
        #[serde(default)]
        reason: Option<String>,
    },
    Text {
        text: String,
    },
    Form {
        data: Value,
    },
    Cancelled,
}

impl From<AnswerInput> for Answer {
    fn from(input: AnswerInput) -> Self {
        match input {
            AnswerInput::Allow { remember } => Self::Allow { remember },
            AnswerInput::Deny { remember, reason } => Self::Deny { remember, reason },
            AnswerInput::Text { text } => Self::Text { text },
            AnswerInput::Form { data } => Self::Form { data },
            AnswerInput::Cancelled => Self::Cancelled,
        }
    }
}

async fn answer(
    chats: Chats,
    Path((key, ask)): Path<(String, String)>,
    Input(input): Input<AnswerInput>,
) -> Reply {
    let id = stored(&chats, &key).await?;
    let ask = AskId::parse(&ask).ok_or_else(|| ApiError::not_found("There is no such question."))?;
    let answer = Answer::from(input);
    let settled = chats.answer(&id, ask, answer.clone()).await.map_err(refused)?;
    let is_first = settled == answer;
    Ok(web::json(&json!({"answer": answer_value(&settled), "isFirst": is_first})))
}

async fn settings(chats: Chats, Path(key): Path<String>, Input(input): Input<SettingsInput>) -> Reply {
    let id = stored(&chats, &key).await?;
    chats.configure(&id, input.into()).await.map_err(refused)?;
    let info = chats.load(&id).await.map_err(refused)?;
    Ok(web::json(&chat_value(&info)))
}

#[derive(Deserialize)]
struct ForkInput {
    /// The last item that the new chat has; without it: all.
    #[serde(default)]
    until: Option<String>,
}

async fn fork(chats: Chats, Path(key): Path<String>, Input(input): Input<ForkInput>) -> Reply {
    let id = stored(&chats, &key).await?;
    let until = input.until.as_deref().map(item).transpose()?;
    let info = chats.fork(&id, until).await.map_err(refused)?;
    Ok((StatusCode::CREATED, web::json(&json!({"key": key_of(&info.id), "id": info.id.as_str()})))
        .into_response())
}

fn item(text: &str) -> Result<ItemId, ApiError> {
    ItemId::parse(text).ok_or_else(|| ApiError::invalid("An item is named `item-` and a number."))
}

#[derive(Deserialize)]
struct RollbackInput {
    /// The first item that goes.
    from: String,
    scope: Scope,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Scope {
    Messages,
    Files,
    Both,
}

async fn roll_back(chats: Chats, Path(key): Path<String>, Input(input): Input<RollbackInput>) -> Reply {
    let id = stored(&chats, &key).await?;
    let scope = match input.scope {
        Scope::Messages => RollbackScope::Messages,
        Scope::Files => RollbackScope::Files,
        Scope::Both => RollbackScope::Both,
    };
    chats.roll_back(&id, Some(item(&input.from)?), scope).await.map_err(refused)?;
    done()
}

async fn cost(chats: Chats, Path(key): Path<String>) -> Reply {
    let id = stored(&chats, &key).await?;
    let info = chats.load(&id).await.map_err(refused)?;
    Ok(web::json(&usage_value(&info.usage)))
}

/// The newest task list of the chat.
async fn tasks(chats: Chats, Path(key): Path<String>) -> Reply {
    let id = stored(&chats, &key).await?;
    let all = domain::replay::read(chats.commands(), &id).await.map_err(refused)?;
    let visible = domain::replay::visible_facts(all);
    let newest = visible.iter().rev().find_map(|recorded| task_list(&recorded.fact));
    Ok(web::json(&json!({"tasks": task_values(newest.unwrap_or_default())})))
}

fn task_list(fact: &Fact) -> Option<&[PlanEntry]> {
    let (Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item }) = fact else {
        return None;
    };
    let ItemKind::ToolCall(call) = &item.kind else { return None };
    let Some(Details::Tasks { entries }) = &call.details else { return None };
    Some(entries)
}
