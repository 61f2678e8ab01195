//! `dragoman ps`: the chats that programs hold at this moment, from their leases and journals. No engine is started.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use config::Environment;
use domain::{AskKind, Failure, SessionId, Store};
use serde_json::{Value, json};
use terminal::text::{clean_line, shorten};

use crate::{lifetime, stores};

/// Facts read at a time.
const PAGE: usize = 1024;

/// A chat that a program holds.
pub(crate) struct RunningChat {
    pub(crate) id: SessionId,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) title: Option<String>,
    /// Program and process id.
    pub(crate) holder: String,
    model: Option<String>,
    pub(crate) activity: Activity,
    /// US dollars.
    pub(crate) cost: Option<f64>,
    updated_at: u64,
}

/// What was read of a chat that is held.
#[derive(Default)]
pub(crate) struct SeenChat {
    state: engine::State,
    updated_at: u64,
    turn_model: Option<String>,
}

pub(crate) type SeenChats = HashMap<SessionId, SeenChat>;

pub(crate) enum Activity {
    Idle,
    Answering,
    /// With what it waits for.
    Waiting(String),
}

pub(crate) fn run(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    lifetime::run(async {
        let store = stores::open(&environment)?;
        let chats = running(store.as_ref()).await?;
        let text = if json {
            let chats: Vec<Value> = chats.iter().map(to_json).collect();
            format!("{:#}\n", json!({"chats": chats}))
        } else if chats.is_empty() {
            "No program holds a chat at this moment.\n".to_owned()
        } else {
            chats.iter().map(lines).collect()
        };
        crate::output::print(domain::visible_text(&text).as_bytes())
    })
}

/// The chats that living processes of this machine hold, the newest first.
pub(crate) async fn running(store: &dyn Store) -> Result<Vec<RunningChat>, Failure> {
    running_since(store, &mut SeenChats::new()).await
}

/// The same for a caller that looks again and again: only what is new is read.
pub(crate) async fn running_since(
    store: &dyn Store,
    seen: &mut SeenChats,
) -> Result<Vec<RunningChat>, Failure> {
    let mut chats = Vec::new();
    let mut kept = SeenChats::new();
    // A program may hold many chats and is asked once.
    let mut alive: HashMap<String, bool> = HashMap::new();
    for held in store.held().await? {
        let Some(address) = held.address else { continue };
        if !alive.contains_key(&address) {
            let asked = address.clone();
            let is_alive = tokio::task::spawn_blocking(move || link::is_alive(&asked)).await;
            alive.insert(address.clone(), is_alive.unwrap_or(false));
        }
        if alive.get(&address) != Some(&true) {
            continue;
        }
        let mut known = seen.remove(&held.session).unwrap_or_default();
        chats.extend(look_at(store, held.session.clone(), held.holder, &mut known).await?);
        kept.insert(held.session, known);
    }
    *seen = kept;
    chats.sort_by_key(|chat| std::cmp::Reverse(chat.updated_at));
    Ok(chats)
}

/// Reads the facts that were added since the last look.
async fn look_at(
    store: &dyn Store,
    id: SessionId,
    holder: String,
    seen: &mut SeenChat,
) -> Result<Option<RunningChat>, Failure> {
    loop {
        let page = store.read(&id, seen.state.newest(), PAGE).await?;
        if page.is_empty() {
            break;
        }
        for recorded in page {
            seen.updated_at = recorded.at;
            if let domain::Fact::TurnStarted { model, .. } = &recorded.fact
                && !model.is_empty()
            {
                seen.turn_model = Some(model.clone());
            }
            seen.state.fold(recorded.number, &recorded.fact);
        }
    }
    let state = &seen.state;
    if state.newest() == 0 {
        return Ok(None);
    }
    let asked = state.open_asks().next().map(|ask| match &ask.kind {
        AskKind::Approval { .. } => "an approval of the user",
        AskKind::Question { .. } | AskKind::Form { .. } => "an answer of the user",
    });
    let activity = match (state.open_turn(), asked) {
        (None, _) => Activity::Idle,
        (Some(_), None) => Activity::Answering,
        (Some(_), Some(what)) => Activity::Waiting(what.to_owned()),
    };
    let settings = state.settings();
    Ok(Some(RunningChat {
        folders: state.workspace().to_vec(),
        title: settings.title.clone(),
        holder,
        model: seen.turn_model.clone().or_else(|| settings.model.clone()),
        activity,
        cost: state.usage().session_cost,
        updated_at: seen.updated_at,
        id,
    }))
}

fn to_json(chat: &RunningChat) -> Value {
    let (state, waiting_for) = match &chat.activity {
        Activity::Idle => ("idle", None),
        Activity::Answering => ("answering", None),
        Activity::Waiting(what) => ("waiting", Some(what)),
    };
    json!({
        "id": chat.id.as_str(),
        "title": chat.title,
        "folders": chat.folders,
        "holder": chat.holder,
        "model": chat.model,
        "state": state,
        "waitingFor": waiting_for,
        "costUsd": chat.cost,
        "updatedAt": chat.updated_at,
    })
}

fn lines(chat: &RunningChat) -> String {
    let title = chat.title.as_deref().map(clean_line).unwrap_or_else(|| "untitled".to_owned());
    let activity = match &chat.activity {
        Activity::Idle => "idle".to_owned(),
        Activity::Answering => "answering".to_owned(),
        Activity::Waiting(what) => format!("waits for {what}"),
    };
    let cost = chat.cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
    let folder = chat.folders.first().map(|folder| folder.display().to_string()).unwrap_or_default();
    let model = chat.model.as_deref().unwrap_or("no model yet");
    format!(
        "{}  {activity}  {model}  {cost}\n    {} in {}: {}\n",
        clean_line(chat.id.as_str()),
        clean_line(&chat.holder),
        clean_line(&folder),
        shorten(&title, 60)
    )
}
