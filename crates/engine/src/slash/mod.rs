//! Slash commands: what `/name arguments` does in a chat.
//!
//! Must not know front-ends. Invariant: every command runs as a turn of its own, beside the actor, so that a stop ends
//! it at once.

mod agent_commands;
pub(crate) mod aside;
mod choices;
mod costs;
mod export;
mod goal;
mod jobs;
mod lists;
mod native;
mod output;
mod share;

use domain::command::{Accepted, AcceptedStatus, SlashArgument, SlashCommand, SlashOrigin, TurnLimits};
use domain::event::{Fact, Outcome};
use domain::item::{ItemKind, Part};
use domain::names::is_same_name;
use domain::slash_commands::{self, SLASH_COMMANDS};
use domain::taint::Taint;
use domain::{CancellationToken, Failure, Model, Reply, TurnId};
use serde_json::Value;
use session::AttachedFrontend;
use std::sync::Arc;

use crate::decisions::CommandOutput;
use crate::own_text::own_text;
use crate::session::{Actor, Session};
use crate::turn::start::{self, Launch};
use crate::turn::{compaction, instructions};
use crate::workspace::Workspace;
use goal::GoalRequest;
pub(crate) use native::ParsedCommand;
use native::{CommandKind, NATIVE, Native};

const INIT: &str = include_str!("../texts/init.md");
const SKILL_CREATE: &str = include_str!("../texts/skill_create.md");

/// The commands of the table that every front-end lists.
fn native_commands() -> impl Iterator<Item = SlashCommand> {
    let listed = SLASH_COMMANDS.iter().filter(|command| command.is_listed_everywhere());
    listed.map(|command| SlashCommand {
        name: command.name.into(),
        description: command.description.into(),
        origin: SlashOrigin::Native,
        arguments: command
            .argument
            .iter()
            .map(|name| SlashArgument { name: (*name).into(), description: None, required: false })
            .collect(),
    })
}

/// What can be typed now, filtered by name and description.
pub(crate) fn list(session: Option<&Session>, workspace: &Workspace, query: &str) -> Vec<SlashCommand> {
    let native = native_commands();
    let custom = workspace.texts.commands().into_iter().map(|custom| SlashCommand {
        description: custom
            .description
            .as_deref()
            .unwrap_or_else(|| custom.text.lines().next().unwrap_or_default())
            .chars()
            .take(80)
            .collect(),
        arguments: named_places(&custom.text)
            .into_iter()
            .map(|name| SlashArgument { name: name.to_owned(), description: None, required: true })
            .collect(),
        name: custom.name,
        origin: SlashOrigin::Custom,
    });
    let skills = workspace.texts.skills().into_iter().map(|skill| SlashCommand {
        description: skill.description.chars().take(80).collect(),
        name: skill.name,
        origin: SlashOrigin::Skill,
        arguments: Vec::new(),
    });
    let own = session.map(|session| session.own_sources.as_slice()).unwrap_or_default();
    let sources = workspace.sources.iter().chain(own);
    let prompts = sources.flat_map(|source| source.prompts()).map(|prompt| SlashCommand {
        name: prompt.name,
        description: prompt.description,
        origin: SlashOrigin::McpPrompt,
        arguments: prompt.arguments,
    });
    let of_agent = session.map(agent_commands::list).unwrap_or_default();
    let is_free = |command: &SlashCommand| !of_agent.iter().any(|taken| taken.name == command.name);
    let query = query.trim_start_matches('/').to_lowercase();
    let has_alias = |command: &SlashCommand| {
        let spec = slash_commands::by_name(&command.name).filter(|_| command.origin == SlashOrigin::Native);
        spec.is_some_and(|spec| spec.aliases.iter().any(|alias| alias.starts_with(&query)))
    };
    let fits = |command: &SlashCommand| {
        command.name.to_lowercase().contains(&query)
            || command.description.to_lowercase().contains(&query)
            || has_alias(command)
    };
    let own = native.chain(custom).chain(skills).chain(prompts).filter(is_free);
    own.chain(of_agent.iter().cloned()).filter(fits).collect()
}

/// `None`: a message, even where it begins with a slash.
pub(crate) fn parse(session: &Session, text: &str) -> Option<ParsedCommand> {
    let line = text.trim().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if agent_commands::list(session).iter().any(|command| command.name == name) {
        return None;
    }
    let arguments = split_arguments(rest);
    let native = find_native(name);
    let alias = slash_commands::by_alias(name).and_then(|spec| Some((spec.name, find_native(spec.name)?)));
    let custom = || session.workspace.texts.commands().into_iter().find(|command| command.name == name);
    let kind = if let Some(native) = native {
        CommandKind::Native(native)
    } else if let Some(command) = custom() {
        CommandKind::Custom(fill(&command.text, rest, &arguments))
    } else if let Some(skill) = session.workspace.texts.skills().into_iter().find(|skill| skill.name == name)
    {
        CommandKind::Skill(
            format!("{}\n\n{}", crate::skills::text(&skill), rest.trim()).trim_end().to_owned(),
        )
    } else if session
        .sources()
        .flat_map(|source| source.prompts())
        .any(|prompt| is_same_name(&prompt.name, name))
    {
        CommandKind::McpPrompt
    } else {
        // The names of other assistants yield to what the user has.
        let (name, native) = alias?;
        let (name, kind) = (name.to_owned(), CommandKind::Native(native));
        return Some(ParsedCommand { name, arguments, rest: rest.to_owned(), kind });
    };
    Some(ParsedCommand { name: name.to_owned(), arguments, rest: rest.to_owned(), kind })
}

fn find_native(name: &str) -> Option<Native> {
    NATIVE.iter().find(|(known, _)| *known == name).map(|(_, native)| *native)
}

/// What a running turn is told: the text of a custom command or skill in place of its name. Other commands wait for the
/// end of the turn.
pub(crate) fn steered(session: &Session, text: String) -> Result<String, Failure> {
    match parse(session, &text).map(|command| command.kind) {
        None => Ok(text),
        Some(CommandKind::Custom(filled) | CommandKind::Skill(filled)) => Ok(filled),
        Some(CommandKind::Native(_) | CommandKind::McpPrompt) => {
            Err(Failure::user("A command does not run while the chat is answering.")
                .hint("Send it when the answer is there."))
        }
    }
}

pub(crate) fn run(
    actor: &mut Actor,
    turn: TurnId,
    frontend: Option<AttachedFrontend>,
    text: String,
    command: ParsedCommand,
    reply: Reply<Accepted>,
) {
    let goal = goal_request(&actor.session, &command);
    if goal.is_none() && !asks_model(&command.kind) {
        return answer(actor, turn, text, command, reply);
    }
    let model = match start::choose_model(&actor.session) {
        Ok(model) => model,
        Err(failure) => return start::show_failure(actor, turn, text, failure, reply),
    };
    accept(turn, &model.info().id, reply);
    let (cancel, limits) = (CancellationToken::new(), TurnLimits::default());
    let launch = Launch { id: turn, model, frontend, cancel, limits, goal: None };
    if let Some(GoalRequest { goal, parts }) = goal {
        return Launch { goal: Some(goal), ..launch }.with_message(actor, text, parts);
    }
    match command.kind {
        CommandKind::Native(Native::Compact) => compact(actor, launch, text, &command.arguments),
        CommandKind::Native(Native::SkillCreate) => {
            let own = own_text(actor.session.prompts().skill_create.as_ref());
            let request = own.unwrap_or_else(|| SKILL_CREATE.to_owned());
            let request = format!("{}\n\n{}", request.trim(), command.arguments.join(" "));
            launch.with_message(actor, text, vec![Part::text(request.trim_end())]);
        }
        CommandKind::Native(_) => {
            let own = own_text(actor.session.prompts().init.as_ref());
            launch.with_message(actor, text, vec![Part::text(own.unwrap_or_else(|| INIT.to_owned()))]);
        }
        CommandKind::Custom(filled) | CommandKind::Skill(filled) => {
            launch.with_message(actor, text, vec![Part::text(filled)])
        }
        CommandKind::McpPrompt => {
            let session = actor.session.clone();
            let mut taint = Taint::default();
            taint.add_source(format!("the prompt {} of an MCP server", command.name));
            session.add_taint(&taint);
            launch.after(actor, text, async move { mcp_prompt(&session, &command).await });
        }
    }
}

/// What `/goal` asks of the model; a replay has it from the journal.
fn goal_request(session: &Session, command: &ParsedCommand) -> Option<GoalRequest> {
    let is_goal = matches!(command.kind, CommandKind::Native(Native::Goal));
    let is_live = !session.decisions.is_recorded();
    (is_goal && is_live).then(|| goal::request(session, &command.rest)).flatten()
}

/// Whether a command becomes a message to the model; the others answer by themselves.
fn asks_model(kind: &CommandKind) -> bool {
    match kind {
        CommandKind::Native(native) => {
            matches!(native, Native::Init | Native::Compact | Native::SkillCreate)
        }
        CommandKind::McpPrompt | CommandKind::Custom(_) | CommandKind::Skill(_) => true,
    }
}

fn accept(turn: TurnId, model: &str, reply: Reply<Accepted>) {
    let _ = reply.send(Ok(Accepted { turn, model: model.to_owned(), status: AcceptedStatus::Prompting }));
}

/// Begins a turn with the typed line, which is shown to the user and never sent to a model.
fn show_command(session: &Session, turn: TurnId, model: String, text: String) {
    let item = session.new_item(turn, 0, ItemKind::Command { text });
    session.commit(vec![Fact::TurnStarted { turn, model }, Fact::ItemEnded { item }]);
}

fn compact(actor: &mut Actor, launch: Launch, text: String, arguments: &[String]) {
    show_command(&actor.session, launch.id, launch.model.info().id, text);
    let wish = Some(arguments.join(" ")).filter(|wish| !wish.is_empty());
    let turn = launch.turn(actor);
    actor.run_turn(turn.id, turn.cancel.clone(), async move {
        match compaction::run(&turn, wish.as_deref(), "manual").await {
            Ok(()) => Outcome::Done,
            Err(_) if turn.cancel.is_cancelled() => Outcome::Stopped,
            Err(failure) => Outcome::Failed { failure },
        }
    });
}

/// Commits what a command did; its items are new ones of this turn.
async fn show_output(session: &Session, turn: TurnId, output: CommandOutput) -> Result<String, Failure> {
    let facts = output.facts.into_iter().map(|mut fact| {
        if let Fact::ItemEnded { item } = &mut fact {
            item.id = session.log.next_item();
            item.turn = turn;
        }
        fact
    });
    session.commit(facts.collect());
    output.text.await
}

/// A command that answers by itself: its text is for people, the model never sees it.
fn answer(actor: &mut Actor, turn: TurnId, text: String, command: ParsedCommand, reply: Reply<Accepted>) {
    let session = actor.session.clone();
    let model = session.state().settings().model.clone().unwrap_or_default();
    accept(turn, &model, reply);
    show_command(&session, turn, model, text);
    let cancel = CancellationToken::new();
    if let CommandKind::Native(Native::SyncSystemPrompt) = command.kind {
        session.instructions.forget();
    }
    let system_prompt = match command.kind {
        CommandKind::Native(Native::PromptShow | Native::Aside) => {
            let model: Option<Arc<dyn Model>> = start::choose_model(&session).ok();
            let info = model.map(|model| model.info()).unwrap_or_default();
            instructions::of(&session, &session.instructions, &info).system
        }
        CommandKind::Native(_) | CommandKind::McpPrompt | CommandKind::Custom(_) | CommandKind::Skill(_) => {
            Vec::new()
        }
    };
    actor.run_turn(turn, cancel.clone(), async move {
        let output = async {
            match session.decisions.command_output(turn) {
                Some(output) => show_output(&session, turn, output).await,
                None => output::of(&session, turn, &command, &system_prompt).await,
            }
        };
        let output = tokio::select! {
            output = output => output,
            () = cancel.cancelled() => return Outcome::Stopped,
        };
        match output {
            Ok(text) => {
                if !text.is_empty() {
                    let item = session.new_item(turn, 0, ItemKind::SystemText { text });
                    session.commit(vec![Fact::ItemEnded { item }]);
                }
                Outcome::Done
            }
            Err(failure) => Outcome::Failed { failure },
        }
    });
}

async fn mcp_prompt(session: &Session, command: &ParsedCommand) -> Result<Vec<Part>, Failure> {
    for source in session.sources() {
        let Some(prompt) = source.prompts().into_iter().find(|prompt| prompt.name == command.name) else {
            continue;
        };
        let arguments: serde_json::Map<String, Value> = prompt
            .arguments
            .iter()
            .zip(&command.arguments)
            .map(|(argument, value)| (argument.name.clone(), Value::String(value.clone())))
            .collect();
        return source.prompt(&command.name, Value::Object(arguments)).await;
    }
    Err(Failure::user(format!("There is no prompt {}.", command.name)))
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

/// The names of `{{name}}` in a text, in the order of their first places.
fn named_places(template: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for piece in template.split("{{").skip(1) {
        let Some((name, _)) = piece.split_once("}}") else { continue };
        let name = name.trim();
        let is_name =
            !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '-');
        if is_name && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// `$ARGS` or `$ARGUMENTS` is the whole line, `$ARG1`, `$1` … one argument, `{{name}}` the next one.
fn fill(template: &str, rest: &str, arguments: &[String]) -> String {
    let mut template = template.to_owned();
    for (at, name) in named_places(&template.clone()).into_iter().enumerate() {
        let value = arguments.get(at).map(String::as_str).unwrap_or_default();
        template = template.replace(&format!("{{{{{name}}}}}"), value);
        template = template.replace(&format!("{{{{ {name} }}}}"), value);
    }
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
    fn every_command_of_the_engine_does_something() {
        for command in SLASH_COMMANDS {
            assert_eq!(find_native(command.name).is_some(), command.is_of_engine(), "/{}", command.name);
        }
        for (name, _) in NATIVE {
            assert!(slash_commands::by_name(name).is_some(), "/{name} is not in the table");
        }
    }

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
        assert_eq!(fill("{{a}} to {{ b }}, {{a}}{{c}}", "", &arguments), "one to two three, one");
        assert_eq!(fill("{{ not a name! }} {{", "", &arguments), "{{ not a name! }} {{");
    }
}
