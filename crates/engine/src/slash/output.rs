//! The text that a command answers with.
//!
//! Invariant: nothing here is sent to a model.

use std::collections::HashMap;
use std::sync::Arc;

use domain::command::SessionSettings;
use domain::event::Fact;
use domain::store::{ListFilter, SearchQuery, SessionSummary};
use domain::taint::Taint;
use domain::{Failure, TurnId};
use session::fork;

use super::native::{CommandKind, Native, ParsedCommand};
use super::{aside, choices, costs, export, goal, jobs, lists, share};
use crate::behavior;
use crate::chat_list;
use crate::session::Session;

/// Chats that `/resume` lists.
const LISTED_CHATS: usize = 20;

const SYNCED: &str = "From the next answer on this chat has the rules and instructions as they are now. The provider reads \
                      the chat anew with it, which costs more once.";

pub(super) async fn of(
    session: &Session,
    turn: TurnId,
    command: &ParsedCommand,
    system_prompt: &[Arc<str>],
) -> Result<String, Failure> {
    let texts = &session.workspace.texts;
    let argument = command.arguments.first().map(String::as_str);
    let CommandKind::Native(native) = command.kind else { return Ok(String::new()) };
    Ok(match native {
        Native::Costs => costs::text(session).await,
        Native::Config => texts.config(),
        Native::Doctor => texts.doctor().await,
        Native::Login => texts.login(argument).await,
        Native::Model => return switch_model(session, argument).await,
        Native::Agent => return switch_agent(session, argument).await,
        Native::Resume => resume_or_list(session, turn, argument).await?,
        Native::Chats => list_chats(session, &command.arguments.join(" ")).await?,
        Native::Aside => aside::answer(session, system_prompt, &command.arguments.join(" ")).await?,
        Native::SyncSystemPrompt => SYNCED.to_owned(),
        Native::Memory => crate::memory::answer(session, &command.name, &command.arguments).await?,
        Native::Goal => goal::answer(session, turn, &command.rest)?,
        Native::Elsewhere(text) => text.to_owned(),
        Native::Undo => crate::undo::undo(session, &command.arguments).await?,
        Native::Redo => crate::undo::redo(session, &command.arguments).await?,
        Native::Taint => show_or_clear_taint(session, argument).await?,
        Native::PromptShow => system_prompt.join("\n\n"),
        Native::RepoMapShow => session.workspace.files.repo_map(&session.roots).await,
        Native::Hooks => lists::hooks(session),
        Native::Rules => lists::rules(session),
        Native::Subagents => lists::subagents(session),
        Native::Plugins => texts.plugins(),
        Native::PluginTask(task) => plugin_hint(task, argument.unwrap_or("NAME")),
        Native::Skills => lists::skills(session),
        Native::Context => crate::context_use::text(session.state().usage()),
        Native::Fork => export::fork_chat(session).await?,
        Native::Jobs => jobs::answer(session, &command.arguments).await?,
        Native::Export => export::write(session, argument)?,
        Native::Plan => return switch_agent(session, Some("plan")).await,
        Native::Effort | Native::Rename | Native::Trust => return choose(session, native, command).await,
        Native::Todos => lists::todos(session),
        Native::Tools => lists::tools(session),
        Native::Sandbox => texts.sandbox().await,
        Native::Stats => return stats(session, argument).await,
        Native::Share => share::write(session, argument)?,
        // These ask the model.
        Native::Init | Native::Compact | Native::SkillCreate => String::new(),
    })
}

fn plugin_hint(task: &str, name: &str) -> String {
    format!(
        "Run `dragoman plugins {task} {name}` in a terminal: it shows what comes or goes before you agree."
    )
}

/// What the user chooses for this chat.
async fn choose(session: &Session, native: Native, command: &ParsedCommand) -> Result<String, Failure> {
    let argument = command.arguments.first().map(String::as_str);
    if native == Native::Effort {
        choices::effort(session, argument).await
    } else if native == Native::Rename {
        choices::rename(session, &command.rest).await
    } else {
        choices::trust(session, argument).await
    }
}

async fn resume_or_list(session: &Session, turn: TurnId, wanted: Option<&str>) -> Result<String, Failure> {
    match wanted {
        Some(wanted) => resume(session, turn, wanted).await,
        None => list_chats(session, "").await,
    }
}

/// `/stats 7`: the figures of the last days.
async fn stats(session: &Session, argument: Option<&str>) -> Result<String, Failure> {
    let days = argument.map_or(Some(30), |days| days.parse::<u16>().ok().filter(|days| *days > 0));
    let Some(days) = days else {
        return Err(Failure::user("`/stats` takes a number of days.").hint("For instance: `/stats 7`."));
    };
    session.workspace.texts.stats(session.store.as_ref(), days).await
}

/// `/taint`: what the chat has read that could misuse it; `/taint clear` is the user's word that nothing of it did.
async fn show_or_clear_taint(session: &Session, argument: Option<&str>) -> Result<String, Failure> {
    let taint = session.state().taint().clone();
    match argument {
        Some("clear") => {
            let taint = Taint::default();
            session.commit(vec![Fact::TaintChanged { taint }]).on_disk().await?;
            Ok("This chat no longer counts as tainted. What it reads from now on marks it again.".into())
        }
        Some(_) => Err(Failure::user("`/taint` shows the marks of this chat, `/taint clear` removes them.")),
        None if taint.is_empty() => Ok("This chat is not tainted, and it has read no secrets.".into()),
        None => Ok(describe_taint(&taint)),
    }
}

fn describe_taint(taint: &Taint) -> String {
    let list = |entries: &[String]| entries.iter().map(|entry| format!("- {entry}\n")).collect::<String>();
    let mut text = String::new();
    if taint.is_tainted() {
        text.push_str("This chat is tainted: it has read text that strangers may have written.\n");
        text.push_str(&list(taint.sources()));
    }
    if !taint.secrets().is_empty() {
        text.push_str("It has read secrets:\n");
        text.push_str(&list(taint.secrets()));
    }
    text.push_str(
        "A tainted chat asks each time before it changes what runs later (configuration, hooks, CI), and, once it has \
         read secrets, before it uses the network. `/taint clear` removes the marks.",
    );
    text
}

async fn switch_model(session: &Session, name: Option<&str>) -> Result<String, Failure> {
    let models = &session.workspace.models;
    let Some(name) = name else {
        let current = session.state().settings().model.clone().or_else(|| models.default_model());
        let list: Vec<String> = models.list().into_iter().map(|info| format!("- {}", info.id)).collect();
        return Ok(format!("Now: {}\n\n{}", current.unwrap_or_else(|| "none".into()), list.join("\n")));
    };
    models.find(name)?;
    let change = SessionSettings { model: Some(name.to_owned()), ..SessionSettings::default() };
    session.commit(vec![Fact::SessionChanged { change }]).on_disk().await?;
    Ok(format!("This chat now uses {name}."))
}

async fn switch_agent(session: &Session, name: Option<&str>) -> Result<String, Failure> {
    let settings = &session.workspace.settings;
    let now = session.behavior();
    let Some(name) = name else {
        let names: Vec<String> = behavior::names(settings).iter().map(|name| format!("- {name}")).collect();
        return Ok(format!("Now: {now}\n\n{}", names.join("\n")));
    };
    let mut change = SessionSettings { behavior: Some(name.to_owned()), ..SessionSettings::default() };
    behavior::settle(&mut change, Some(now.as_str()), settings)?;
    let name = change.behavior.clone().unwrap_or_default();
    session.commit(vec![Fact::SessionChanged { change }]).on_disk().await?;
    Ok(format!("This chat now works as {name}."))
}

/// `/resume` and `/chats`: the other chats of the workspace, to be named by number or id. A title leaves some out.
async fn list_chats(session: &Session, title: &str) -> Result<String, Failure> {
    let chats = other_chats(session).await?;
    let title = title.to_lowercase();
    let fits =
        |chat: &SessionSummary| chat.title.as_deref().unwrap_or("untitled").to_lowercase().contains(&title);
    let lines: Vec<String> = (1..)
        .zip(chats)
        .filter(|(_, chat)| fits(chat))
        .map(|(number, chat)| {
            format!("{number}. {} ({})", chat.title.unwrap_or_else(|| "untitled".into()), chat.id)
        })
        .collect();
    if lines.is_empty() {
        return Ok("There are no other chats of this workspace.".into());
    }
    Ok(format!("{}\n\nGo on with one of them here: /resume 1", lines.join("\n")))
}

/// `/resume 2`: the items of the other chat become the beginning of this one.
async fn resume(session: &Session, turn: TurnId, wanted: &str) -> Result<String, Failure> {
    if session.state().has_user_message() {
        return Err(Failure::user("This chat has messages of its own.")
            .hint("Begin a new chat and resume there, or open the other one."));
    }
    let chats = other_chats(session).await?;
    let numbered = wanted.parse::<usize>().ok().and_then(|number| chats.get(number.checked_sub(1)?));
    let chat = match numbered.or_else(|| chats.iter().find(|chat| chat.id.as_str() == wanted)) {
        Some(chat) => chat,
        None => return find_chats(session, wanted).await,
    };
    let (items, taint) = fork::items_of(session.store.as_ref(), &chat.id).await?;
    let mut new_ids = HashMap::new();
    let facts = items.into_iter().map(|mut item| {
        let id = session.log.next_item();
        new_ids.insert(item.id, id);
        item.parent = item.parent.and_then(|parent| new_ids.get(&parent).copied());
        (item.id, item.turn) = (id, turn);
        Fact::ItemEnded { item }
    });
    // First, so that the text is never there without its mark.
    session.add_taint(&taint);
    session.commit(facts.collect());
    let title = chat.title.clone().unwrap_or_else(|| "untitled".into());
    Ok(format!("This chat goes on where {title} was. The other one stays as it is."))
}

/// `/resume race condition`: the chats of this workspace in which these words were said.
async fn find_chats(session: &Session, words: &str) -> Result<String, Failure> {
    let query = SearchQuery {
        text: words.to_owned(),
        workspace: Some(session.roots.to_vec()),
        limit: Some(LISTED_CHATS),
    };
    let mut hits = session.store.search(query).await?;
    hits.retain(|hit| is_of_workspace(session, &hit.chat));
    if hits.is_empty() {
        return Err(Failure::user(format!(
            "There is no chat {words} in this workspace, and none with these words."
        ))
        .hint("/resume lists the chats with their numbers."));
    }
    let lines: Vec<String> = hits
        .into_iter()
        .map(|hit| {
            let title = hit.chat.title.unwrap_or_else(|| "untitled".into());
            format!("- {title} ({}): {}", hit.chat.id, hit.excerpt)
        })
        .collect();
    Ok(format!("{}\n\nGo on with one of them here: /resume ID", lines.join("\n")))
}

/// A chat that also has another folder is not one of this workspace: its reader may have no right to that folder.
fn is_of_workspace(session: &Session, chat: &SessionSummary) -> bool {
    chat.workspace.iter().all(|folder| session.roots.contains(folder))
}

async fn other_chats(session: &Session) -> Result<Vec<SessionSummary>, Failure> {
    let filter = ListFilter {
        workspace: Some(session.roots.to_vec()),
        limit: Some(LISTED_CHATS + 1),
        ..ListFilter::default()
    };
    let chats = chat_list::list(session.store.as_ref(), filter).await?;
    Ok(chats
        .into_iter()
        .filter(|chat| chat.id != session.id)
        .filter(|chat| is_of_workspace(session, chat))
        .take(LISTED_CHATS)
        .collect())
}
