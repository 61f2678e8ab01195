//! What a client sends with a command: which of it is refused, and what the audit log says about it.
//!
//! Must not know callers' chats. Invariant: what the administrator does not name is refused.

use domain::ask::Answer;
use domain::command::{Context, ServerSpec, ServerTransport, SessionSettings};
use domain::ids::SUBAGENT_PREFIX;
use domain::tool::ServerAction;
use domain::{Command, Failure, SessionId};
use serde_json::Value;

use crate::caller::Role;
use crate::policy::Policy;

/// The longest id of a chat that a client chooses, in bytes.
const LONGEST_ID: usize = 200;
/// The longest title or name, in bytes.
const LONGEST_NAME: usize = 1_000;

/// Commands in a prompt that show or change what belongs to the server.
const SERVER_COMMANDS: [&str; 5] = ["/login", "/config", "/doctor", "/hooks", "/prompt-show"];

/// What the log says about a command beside its chat; no text that a person wrote.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others need no more words")]
pub(crate) fn detail_of(command: &Command) -> Option<String> {
    match command {
        Command::Answer { ask, answer, .. } => Some(format!("{ask} {}", answer_word(answer))),
        Command::Rollback { from, scope, .. } => {
            let from = from.map_or_else(|| "all".to_owned(), |item| item.to_string());
            Some(format!("from {from}, {scope:?}"))
        }
        Command::Prompt { prompt, .. } => Some(format!("{} bytes", prompt.text.len())),
        Command::ServerAction { name, action, .. } => {
            Some(format!("{} {name}", if matches!(action, ServerAction::Start) { "start" } else { "stop" }))
        }
        _ => None,
    }
}

fn answer_word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Allow { remember: true } => "allowed for the chat",
        Answer::Allow { remember: false } => "allowed",
        Answer::Deny { .. } => "denied",
        Answer::Text { .. } | Answer::Form { .. } => "answered",
        Answer::Cancelled => "cancelled",
    }
}

/// The word before the members of a command, for the log.
pub(crate) fn name_of(command: &Command) -> String {
    let text = format!("{command:?}");
    text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// An id that a client chooses for a new chat. Lists and the audit log carry it.
pub(crate) fn check_id(id: &SessionId) -> Result<(), Failure> {
    let text = id.as_str();
    let is_plain = !text.chars().any(char::is_control) && !text.starts_with(SUBAGENT_PREFIX);
    if text.is_empty() || text.len() > LONGEST_ID || !is_plain {
        return Err(Failure::user(format!(
            "A chat cannot have this id: it has at most {LONGEST_ID} bytes without control characters and does not begin with \
             {SUBAGENT_PREFIX:?}."
        ))
        .hint("Leave it out: the server chooses one."));
    }
    Ok(())
}

/// Trust is the server's: a client that asks for it is refused, one that asks for none changes nothing. Lists of all
/// accounts carry titles and names, so they are short.
pub(crate) fn check_change(settings: &mut SessionSettings) -> Result<(), Failure> {
    let SessionSettings { title, model, behavior, variant, .. } = &*settings;
    if [title, model, behavior, variant].into_iter().flatten().any(|text| text.len() > LONGEST_NAME) {
        return Err(Failure::user(format!(
            "A title, and the name of a model or a behavior, has at most {LONGEST_NAME} bytes."
        )));
    }
    if settings.trust == Some(true) {
        return Err(Failure::user("A client of a server cannot turn trust on.")
            .hint("Each call is approved by a person, or by the server's own rules."));
    }
    settings.trust = None;
    Ok(())
}

/// Settings that choose an agent, in the spellings of all clients: a prompt may choose one too.
const AGENT_SETTINGS: [&str; 4] = ["chatAgent", "chatBehavior", "defaultAgent", "defaultBehavior"];

/// Refuses settings of a client that are not allowed. Those without a value say nothing and are taken out.
pub(crate) fn check_settings(options: &mut Option<Value>, allowed: &[String]) -> Result<(), Failure> {
    let Some(given) = options.as_mut() else { return Ok(()) };
    let refused = |what: &str| {
        Failure::user(format!("This server takes no {what} from a client."))
            .hint("Leave it out, or ask the administrator to allow it with --allow-setting NAME.")
    };
    if !says_nothing(given) {
        let Some(members) = given.as_object_mut() else { return Err(refused("settings")) };
        members.retain(|_, value| !says_nothing(value));
        let is_allowed = |name: &String, value: &Value| {
            allowed.contains(name) || (AGENT_SETTINGS.contains(&name.as_str()) && value.is_string())
        };
        return match members.iter().find(|(name, value)| !is_allowed(name, value)) {
            Some((name, _)) => Err(refused(&format!("setting {name:?}"))),
            None => Ok(()),
        };
    }
    *options = None;
    Ok(())
}

/// Whether a value is null, or an object of such values.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(says_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

pub(crate) fn check_servers(servers: &[ServerSpec], policy: &Policy) -> Result<(), Failure> {
    for server in servers {
        if !policy.servers.contains(&server.name) {
            return Err(Failure::user(format!(
                "This server starts no MCP server {:?} for a client.",
                server.name
            ))
            .hint("Ask the administrator to allow it with --allow-mcp NAME."));
        }
        let ServerTransport::Stdio { env, .. } = &server.transport else { continue };
        if let Some((name, _)) = env.iter().find(|(name, _)| !policy.environment.contains(name)) {
            return Err(Failure::user(format!("This server takes no variable {name:?} from a client."))
                .hint("Ask the administrator to allow it with --allow-env NAME."));
        }
    }
    Ok(())
}

/// Slash commands about the server itself are its administrator's; logins are nobody's.
pub(crate) fn check_server_command(text: &str, role: Role) -> Result<(), Failure> {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_refused = word == SERVER_COMMANDS[0] || SERVER_COMMANDS.contains(&word) && role < Role::Admin;
    if is_refused {
        return Err(Failure::user(format!("{word} is about the server and not for this role."))
            .hint("Ask the administrator of the server."));
    }
    Ok(())
}

/// The server would fetch such a page at once, also from itself and its own network, without a question or a rule.
pub(crate) fn check_contexts(contexts: &[Context]) -> Result<(), Failure> {
    if contexts.iter().any(|context| matches!(context, Context::Web { .. })) {
        return Err(Failure::user("This server fetches no page that a client attaches.")
            .hint("Write the address in the prompt: the agent fetches it by a call that is approved."));
    }
    Ok(())
}

/// Settings and logins of MCP servers are the server's.
pub(crate) fn check_server_action(action: &ServerAction) -> Result<(), Failure> {
    if matches!(action, ServerAction::Start | ServerAction::Stop) {
        return Ok(());
    }
    Err(Failure::user("A client of a server does not change its settings or logins.")
        .hint("Use `dragoman mcp` where the server runs."))
}
