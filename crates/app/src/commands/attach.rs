//! `dragoman attach`: a window on a chat that another program holds, in the terminal or as lines of JSON.

use std::process::ExitCode;

use clap::Args;
use config::Environment;
use domain::command::{Command, WorkspaceSpec};
use domain::event::EventBody;
use domain::link::Engine;
use domain::{Abilities, Failure, Follower, SessionId};

use super::ps::{self, RunningChat};
use super::{chat, failed};
use crate::attaching::refusal_inside_tool_call;
use crate::cli::{ChatArguments, Level};
use crate::workspaces::Workspaces;
use crate::{lifetime, logging, stores, working_folder};

#[derive(Args)]
pub(crate) struct AttachArguments {
    /// The id of the chat, or its beginning; `dragoman ps` lists them. Without it: the only one that runs.
    pub(crate) chat: Option<String>,
    /// Print what is in the chat and what happens in it, one JSON object a line, as `chats export` does.
    #[arg(long)]
    pub(crate) json: bool,
    /// The colors: `auto`, `dark`, `light`, `high-contrast`, `colorblind` or a theme of yours.
    #[arg(long, value_name = "NAME")]
    pub(crate) theme: Option<String>,
    /// Draw at the end of the terminal's own text; its scrollback keeps the chat.
    #[arg(long)]
    pub(crate) inline: bool,
}

pub(crate) fn run(arguments: AttachArguments, level: Option<Level>) -> ExitCode {
    if let Some(failure) = refusal_inside_tool_call("attaches to chats") {
        return failed(&failure);
    }
    let environment = Environment::from_process();
    let mut chosen = None;
    let looked = lifetime::run(async {
        let store = stores::open(&environment)?;
        chosen = Some(choose(ps::running(store.as_ref()).await?, arguments.chat.as_deref())?);
        Ok(())
    });
    let Some(RunningChat { id, folders, .. }) = chosen else { return looked };
    // Where this process takes over, the settings of the chat's own folder count.
    let folder = folders.into_iter().next().filter(|folder| folder.is_dir());
    if arguments.json {
        return follow(environment, level, folder, id);
    }
    let AttachArguments { theme, inline, .. } = arguments;
    let session = Some(id.to_string());
    chat::run(ChatArguments { session, cwd: folder, theme, inline, ..ChatArguments::default() }, level)
}

fn choose(running: Vec<RunningChat>, wanted: Option<&str>) -> Result<RunningChat, Failure> {
    let hint = "`dragoman ps` lists the chats that run.";
    if let Some(wanted) = wanted {
        let exact = running.iter().position(|chat| chat.id.as_str() == wanted);
        let mut running = running;
        if let Some(at) = exact {
            return Ok(running.swap_remove(at));
        }
        running.retain(|chat| chat.id.as_str().starts_with(wanted));
        return match running.len() {
            1 => Ok(running.swap_remove(0)),
            0 => Err(Failure::user(format!("No program holds a chat {}.", domain::visible_line(wanted)))
                .hint(format!("{hint} `dragoman chat --session ID` opens a stored one."))),
            _ => Err(Failure::user("Several chats begin so.").hint(hint)),
        };
    }
    let here = working_folder::current_folder();
    let all = running.len();
    let mut of_folder: Vec<RunningChat> = Vec::new();
    let mut others = Vec::new();
    for chat in running {
        let is_here = chat.folders.iter().any(|folder| here.contains(folder));
        if is_here { of_folder.push(chat) } else { others.push(chat) }
    }
    let mut candidates = if of_folder.is_empty() { others } else { of_folder };
    match candidates.len() {
        1 => Ok(candidates.swap_remove(0)),
        0 => Err(Failure::user("No program holds a chat at this moment.")
            .hint("`dragoman chat --continue` opens the newest one of this folder.")),
        _ => Err(Failure::user(format!("{all} chats run.")).hint(format!("Name one: {hint}"))),
    }
}

/// Prints the chat and what happens in it until a signal comes.
fn follow(
    environment: Environment,
    level: Option<Level>,
    folder: Option<std::path::PathBuf>,
    id: SessionId,
) -> ExitCode {
    logging::start_quietly(&environment, level);
    lifetime::run(async move {
        working_folder::change_folder(folder.as_deref())?;
        let engine = Workspaces::open(environment)?;
        let printed = lifetime::until_signal(print_chat(&engine, id)).await;
        lifetime::shut_down(engine).await;
        printed.unwrap_or(Ok(()))
    })
}

async fn print_chat(engine: &Engine, id: SessionId) -> Result<(), Failure> {
    let abilities = Abilities { client: "attach --json".to_owned(), ..Abilities::default() };
    let link = engine.attach(abilities).await?;
    let workspace = WorkspaceSpec { roots: working_folder::current_folder(), options: None };
    link.commands.call(|reply| Command::Enter { workspace, reply }).await?;
    let session = id.clone();
    let info = link.commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
    let head = serde_json::json!({
        "type": "dragoman-chat", "version": 1, "id": id.as_str(),
        "attachedTo": info.attached_to, "heldBy": info.held_by,
    });
    if !print_line(&head.to_string())? {
        return Ok(());
    }
    let mut follower = Follower::new(link.commands.clone(), link.events);
    follower.follow(id, 0);
    while let Some(event) = follower.next().await {
        if let EventBody::Fact(recorded) = &event.body
            && !print_line(&store::export_line(recorded)?)?
        {
            break;
        }
    }
    Ok(())
}

/// `false`: a reader that has gone ends the program.
fn print_line(line: &str) -> Result<bool, Failure> {
    crate::output::print_part(format!("{}\n", domain::visible_json(line)))
}
