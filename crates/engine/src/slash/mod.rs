//! Slash commands: what `/name arguments` does in a chat. Each ends its turn like any other.

pub(crate) mod costs;

use domain::command::{
    Accepted, AcceptedStatus, SessionSettings, SlashArgument, SlashCommand, SlashOrigin, TurnLimits,
};
use domain::event::{Fact, Outcome};
use domain::item::{ItemKind, Part};
use domain::{CancellationToken, Failure, Reply, TurnId};
use serde_json::Value;

use crate::attached_frontend::AttachedFrontend;
use crate::session::Session;
use crate::session::actor::Actor;
use crate::session::fork;
use crate::turn::Turn;
use crate::turn::compaction;
use crate::turn::instructions;
use crate::turn::prompt::{self as prompting, Launch};

const INIT: &str = include_str!("../texts/init.md");

/// Commands of our own: name, description, argument.
const NATIVE: [(&str, &str, Option<&str>); 10] = [
    ("init", "Write or improve AGENTS.md for this project", None),
    ("compact", "Replace the history by a summary", Some("what to keep")),
    ("costs", "Tokens and money this chat has used", None),
    ("config", "The settings in force and where each comes from", None),
    ("doctor", "What is configured, reachable and missing", None),
    ("model", "Show the models, or switch to one", Some("provider/model")),
    ("resume", "List earlier chats of this workspace, or go on with one here", Some("number")),
    ("login", "How to sign in to a provider", Some("provider")),
    ("prompt-show", "The instructions the model is given", None),
    ("repo-map-show", "The tree of the workspace", None),
];

/// A command found in a prompt.
pub struct Slash {
    name: String,
    arguments: Vec<String>,
    kind: Kind,
}

enum Kind {
    Native,
    McpPrompt,
    Custom { text: String },
}

/// What can be typed now, filtered by name and description.
pub fn list(
    session: Option<&Session>,
    workspace: &crate::workspace::Workspace,
    query: &str,
) -> Vec<SlashCommand> {
    let mut commands: Vec<SlashCommand> = NATIVE
        .iter()
        .map(|(name, description, argument)| SlashCommand {
            name: (*name).into(),
            description: (*description).into(),
            origin: SlashOrigin::Native,
            arguments: argument
                .iter()
                .map(|name| SlashArgument { name: (*name).into(), description: None, required: false })
                .collect(),
        })
        .collect();
    for custom in workspace.texts.commands() {
        commands.push(SlashCommand {
            name: custom.name,
            description: custom.text.lines().next().unwrap_or_default().chars().take(80).collect(),
            origin: SlashOrigin::Custom,
            arguments: Vec::new(),
        });
    }
    let own = session.map(|session| session.own_sources.as_slice()).unwrap_or_default();
    for prompt in workspace.sources.iter().chain(own).flat_map(|source| source.prompts()) {
        commands.push(SlashCommand {
            name: prompt.name,
            description: prompt.description,
            origin: SlashOrigin::McpPrompt,
            arguments: prompt.arguments,
        });
    }
    let query = query.trim_start_matches('/').to_lowercase();
    commands.retain(|command| {
        command.name.to_lowercase().contains(&query) || command.description.to_lowercase().contains(&query)
    });
    commands
}

/// `None`: not a command, but a message that begins with a slash or has none.
pub fn parse(session: &Session, text: &str) -> Option<Slash> {
    let line = text.trim().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let arguments = split_arguments(rest);
    let custom = session.workspace.texts.commands().into_iter().find(|command| command.name == name);
    let kind = if NATIVE.iter().any(|(native, ..)| *native == name) {
        Kind::Native
    } else if let Some(command) = custom {
        Kind::Custom { text: fill(&command.text, rest, &arguments) }
    } else if session.sources().flat_map(|source| source.prompts()).any(|prompt| prompt.name == name) {
        Kind::McpPrompt
    } else {
        return None;
    };
    Some(Slash { name: name.to_owned(), arguments, kind })
}

pub async fn run(
    actor: &mut Actor,
    turn: TurnId,
    front: Option<AttachedFrontend>,
    text: String,
    slash: Slash,
    reply: Reply<Accepted>,
) {
    match &slash.kind {
        Kind::Native if slash.name == "compact" => compact(actor, turn, front, text, slash, reply),
        Kind::Native if slash.name != "init" => answer(actor, turn, text, slash, reply).await,
        _ => ask_model(actor, turn, front, text, slash, reply),
    }
}

/// The command stands for a prompt.
fn ask_model(
    actor: &mut Actor,
    turn: TurnId,
    front: Option<AttachedFrontend>,
    text: String,
    slash: Slash,
    reply: Reply<Accepted>,
) {
    let model = match prompting::choose_model(actor) {
        Ok(model) => model,
        Err(failure) => return prompting::refuse(actor, turn, text, failure, reply),
    };
    let model_id = model.info().id;
    let _ = reply.send(Ok(Accepted { turn, model: model_id, status: AcceptedStatus::Prompting }));
    let (cancel, limits) = (CancellationToken::new(), TurnLimits::default());
    let launched = Launch { id: turn, model, front, cancel, limits };
    match slash.kind {
        Kind::Custom { text: filled } => prompting::launch(actor, launched, text, vec![Part::text(filled)]),
        Kind::McpPrompt => {
            let session = actor.session.clone();
            prompting::launch_after(actor, launched, text, async move { mcp_prompt(&session, &slash).await });
        }
        Kind::Native => {
            let behavior = actor.session.state().settings.behavior.clone().unwrap_or_default();
            let own =
                instructions::own_text(actor.session.workspace.settings.prompts(&behavior).init.as_ref());
            let request = own.unwrap_or_else(|| INIT.to_owned());
            prompting::launch(actor, launched, text, vec![Part::text(request)]);
        }
    }
}

/// Runs beside the actor, like a turn, because the model is asked.
fn compact(
    actor: &mut Actor,
    id: TurnId,
    front: Option<AttachedFrontend>,
    text: String,
    slash: Slash,
    reply: Reply<Accepted>,
) {
    let model = match prompting::choose_model(actor) {
        Ok(model) => model,
        Err(failure) => return prompting::refuse(actor, id, text, failure, reply),
    };
    let model_id = model.info().id;
    let _ = reply.send(Ok(Accepted { turn: id, model: model_id.clone(), status: AcceptedStatus::Prompting }));
    let shown = shown_only(actor, id, text);
    drop(
        actor
            .session
            .journal
            .record(vec![Fact::TurnStarted { turn: id, model: model_id }, Fact::ItemEnded { item: shown }]),
    );
    let mut turn = Turn {
        session: actor.session.clone(),
        id,
        model,
        host: front.as_ref().map(AttachedFrontend::host),
        cancel: CancellationToken::new(),
        history: actor.history.take().unwrap_or_default(),
        system: Vec::new(),
        max_steps: 1,
        limits: TurnLimits::default(),
        cost_before: 0.0,
        failed: Vec::new(),
    };
    turn.history.open_turn = Some(id);
    let wish = Some(slash.arguments.join(" ")).filter(|wish| !wish.is_empty());
    actor.spawn_with(turn, move |mut turn| async move {
        let outcome = match compaction::run(&mut turn, 0, wish.as_deref()).await {
            Ok(()) => {
                let usage = turn.session.state().usage.clone();
                turn.session.journal.note(Fact::UsageChanged { usage });
                Outcome::Done
            }
            Err(_) if turn.cancel.is_cancelled() => Outcome::Stopped,
            Err(failure) => Outcome::Failed { failure },
        };
        turn.over(outcome)
    });
}

/// A command that answers by itself: its text is for people, the model never sees it.
async fn answer(actor: &mut Actor, turn: TurnId, text: String, slash: Slash, reply: Reply<Accepted>) {
    let model = actor.session.state().settings.model.clone().unwrap_or_default();
    let _ = reply.send(Ok(Accepted { turn, model: model.clone(), status: AcceptedStatus::Prompting }));
    let said = match slash.arguments.first() {
        Some(wanted) if slash.name == "resume" => fork::taken_over(actor, turn, wanted).await,
        _ => said(actor, &slash).await.map(|output| (Vec::new(), output)),
    };
    let shown = shown_only(actor, turn, text);
    let (taken_over, output, outcome) = match said {
        Ok((taken_over, output)) => (taken_over, output, Outcome::Done),
        Err(failure) => (Vec::new(), String::new(), Outcome::Failed { failure }),
    };
    let mut facts = vec![Fact::TurnStarted { turn, model }, Fact::ItemEnded { item: shown }];
    facts.extend(taken_over);
    if !output.is_empty() {
        let item = actor.session.item(turn, 0, ItemKind::SystemText { text: output });
        facts.push(Fact::ItemEnded { item });
    }
    facts.push(Fact::TurnEnded { turn, outcome });
    drop(actor.session.journal.record(facts));
}

/// The typed line, echoed to the user and never sent to a model.
fn shown_only(actor: &Actor, turn: TurnId, text: String) -> domain::Item {
    actor.session.item(turn, 0, ItemKind::Command { text })
}

async fn said(actor: &mut Actor, slash: &Slash) -> Result<String, Failure> {
    let session = actor.session.clone();
    let workspace = &session.workspace;
    let argument = slash.arguments.first().map(String::as_str);
    Ok(match slash.name.as_str() {
        "costs" => crate::slash::costs::text(&session).await,
        "config" => workspace.texts.config(),
        "doctor" => workspace.texts.doctor().await,
        "login" => workspace.texts.login(argument).await,
        "model" => return model(actor, argument).await,
        "resume" => fork::listed(&session).await?,
        "prompt-show" => {
            let info = prompting::choose_model(actor).map(|model| model.info()).unwrap_or_default();
            instructions::of(actor, &info).join("\n\n")
        }
        "repo-map-show" => workspace.files.repo_map(&session.roots).await,
        other => return Err(Failure::user(format!("There is no command /{other}."))),
    })
}

async fn model(actor: &mut Actor, name: Option<&str>) -> Result<String, Failure> {
    let models = actor.session.workspace.models.clone();
    let Some(name) = name else {
        let now = actor.session.state().settings.model.clone().or_else(|| models.default_model());
        let list: Vec<String> = models.list().into_iter().map(|info| format!("- {}", info.id)).collect();
        return Ok(format!("Now: {}\n\n{}", now.unwrap_or_else(|| "none".into()), list.join("\n")));
    };
    models.find(name)?;
    actor.configure(SessionSettings { model: Some(name.to_owned()), ..SessionSettings::default() }).await?;
    Ok(format!("This chat now uses {name}."))
}

async fn mcp_prompt(session: &Session, slash: &Slash) -> Result<Vec<Part>, Failure> {
    for source in session.sources() {
        let Some(prompt) = source.prompts().into_iter().find(|prompt| prompt.name == slash.name) else {
            continue;
        };
        let arguments: serde_json::Map<String, Value> = prompt
            .arguments
            .iter()
            .zip(&slash.arguments)
            .map(|(argument, value)| (argument.name.clone(), Value::String(value.clone())))
            .collect();
        return source.prompt(&slash.name, Value::Object(arguments)).await;
    }
    Err(Failure::user(format!("There is no prompt {}.", slash.name)))
}

/// `a "b c" d` is three arguments.
fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => current.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(character);
                current.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => arguments.extend(current.take()),
            (None, c) => current.get_or_insert_default().push(c),
        }
    }
    arguments.extend(current);
    arguments
}

/// `$ARGS` or `$ARGUMENTS` is the whole line, `$ARG1`, `$1` … one argument.
fn fill(template: &str, rest: &str, arguments: &[String]) -> String {
    let mut text = template.replace("$ARGUMENTS", rest.trim()).replace("$ARGS", rest.trim());
    for (at, argument) in arguments.iter().enumerate().rev() {
        text = text.replace(&format!("$ARG{}", at + 1), argument).replace(&format!("${}", at + 1), argument);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_a_shell_would() {
        assert_eq!(split_arguments(r#" a "b c"  'd "e' "" "#), ["a", "b c", "d \"e", ""]);
        assert!(split_arguments("  ").is_empty());
    }

    #[test]
    fn a_template_takes_its_arguments() {
        let arguments = split_arguments("one \"two three\"");
        assert_eq!(
            fill("x $ARG1 y $2 z $ARGS", "one \"two three\"", &arguments),
            "x one y two three z one \"two three\""
        );
    }
}
