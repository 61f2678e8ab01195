//! `chat/inlinePrompt`: a prompt whose answer an editor shows inside a file, backed by an ordinary chat.
//!
//! Invariants: a chat is made only where the named one does not exist, also not in the store; the history of the chat
//! that it continues is never sent to the client; the mark of such a chat is the beginning of its title, which the
//! store keeps.

use domain::command::{SessionInfo, SessionSettings, TurnLimits, UserPrompt};
use domain::link::Commands;
use domain::{Command, Failure, FailureKind, SessionId};

use crate::dialect_interface::Prompted;
use crate::from_wire;
use crate::prompting;
use crate::reply::Reply;
use crate::server::Server;
use crate::session_facts::{self, TITLE_MARK, is_inline};
use crate::wire::notifications::Opened;
use crate::wire::requests::{InlinePrompt, InlinePromptParams, Prompt, PromptParams};

/// Characters of the message that the title takes.
const TITLE_LENGTH: usize = 60;
const MAX_ID_LENGTH: usize = 256;

pub(crate) async fn prompt(server: &mut Server, params: InlinePromptParams, reply: Reply<InlinePrompt>) {
    let InlinePromptParams { source_chat_id, mut prompt } = params;
    // The response is that of `chat/prompt`.
    let reply: Reply<Prompt> = Reply::new(reply.into_responder());
    let session = server.session_for_prompt(prompt.chat_id.as_ref());
    if let Err(failure) = check(&session, &prompt) {
        let prompted = Prompted { session, is_new: false, outcome: Err(failure) };
        return server.dialect.answer_prompt(server, prompted, reply);
    }
    if server.has_session(&session) {
        if server.is_inline(&session) {
            set_agent(server, &mut prompt);
        }
        return prompting::prompt(server, prompt, reply).await;
    }
    let Some(commands) = server.engine.commands() else { return };
    let source = server.session_of(source_chat_id.as_ref());
    let settings = new_settings(server, &prompt, source.is_some());
    let (id, given) = (session.clone(), settings);
    server.engine.later(
        async move { find_or_make(&commands, id, source, given).await },
        move |server, found| match found {
            Ok(found) => begin(server, found, prompt, reply),
            Err(failure) => {
                let prompted = Prompted { session, is_new: false, outcome: Err(failure) };
                server.dialect.answer_prompt(server, prompted, reply);
            }
        },
    );
}

fn check(session: &SessionId, prompt: &PromptParams) -> Result<(), Failure> {
    let id = session.as_str();
    if prompt.chat_id.is_none() || id.trim().is_empty() || id.len() > MAX_ID_LENGTH {
        return Err(Failure::user("An inline prompt needs a chatId of 1 to 256 characters."));
    }
    if id.starts_with("subagent-") {
        return Err(Failure::user("Ids that begin with \"subagent-\" are not for clients."));
    }
    if prompt.message.trim().is_empty() {
        return Err(Failure::user("The prompt is empty.").hint("Send a message."));
    }
    Ok(())
}

/// The behavior of the configuration, where the client names none.
fn set_agent(server: &Server, prompt: &mut PromptParams) {
    if prompt.agent.is_none() && prompt.behavior.is_none() {
        prompt.agent = server.catalog.inline.behavior.clone();
    }
}

/// What a new inline chat begins with: the client's choice, then the configuration's; the rest is that of the chat that
/// it continues, or the default.
fn new_settings(server: &Server, prompt: &PromptParams, is_fork: bool) -> SessionSettings {
    let inline = &server.catalog.inline;
    let model = prompt.model.clone().or_else(|| inline.model.clone());
    let first_line = prompt.message.trim().lines().next().unwrap_or_default();
    let mut title: String = first_line.chars().take(TITLE_LENGTH).collect();
    if title.len() < first_line.len() {
        title.push('…');
    }
    let behavior = from_wire::behavior(prompt.behavior.clone(), prompt.agent.clone());
    SessionSettings {
        title: Some(format!("{TITLE_MARK}{title}")),
        model: model.and_then(|name| server.dialect.model(&server.catalog, name)),
        behavior: behavior.or_else(|| from_wire::behavior(None, inline.behavior.clone())),
        variant: prompt.variant.clone().or_else(|| inline.variant.clone()),
        // A fork does not take trust along unless the client says so.
        trust: prompt.trust.or(is_fork.then_some(false)),
    }
}

struct Found {
    info: SessionInfo,
    is_made: bool,
}

async fn find_or_make(
    commands: &Commands,
    id: SessionId,
    source: Option<SessionId>,
    settings: SessionSettings,
) -> Result<Found, Failure> {
    let load = |session: SessionId| {
        commands.call(move |reply| Command::Load { session, servers: Vec::new(), reply })
    };
    match load(id.clone()).await {
        Ok(info) => return Ok(Found { info, is_made: false }),
        Err(failure) if failure.kind == FailureKind::User => {}
        Err(failure) => return Err(failure),
    }
    let id = Some(id);
    let Some(session) = source else {
        let open = |reply| Command::Open { id, workspace: None, settings, servers: Vec::new(), reply };
        return Ok(Found { info: commands.call(open).await?, is_made: true });
    };
    let mut info = commands.call(|reply| Command::Fork { session, until: None, id, reply }).await?;
    let session = Some(info.id.clone());
    info.settings = commands.call(|reply| Command::Configure { session, change: settings, reply }).await?;
    Ok(Found { info, is_made: true })
}

/// Follows the chat from its newest fact on, and sends the prompt.
fn begin(server: &mut Server, found: Found, mut prompt: PromptParams, reply: Reply<Prompt>) {
    let Found { info, is_made } = found;
    let session = info.id.clone();
    server.follow(session.clone(), info.newest);
    server.set_model(&session, info.settings.model.as_deref());
    session_facts::tell_of_holder(server, &info);
    if is_inline(info.settings.title.as_deref()) {
        server.mark_inline(&session);
        set_agent(server, &mut prompt);
    }
    if is_made {
        let (chat_id, title) = (server.chat_key(&session), info.settings.title.unwrap_or_default());
        server.notify(&Opened { chat_id, title });
        // Kept in the chat already.
        (prompt.model, prompt.variant, prompt.trust) = (None, None, None);
    }
    let change = prompting::change(server, &prompt);
    let prompt = UserPrompt {
        text: prompt.message,
        parts: Vec::new(),
        contexts: from_wire::contexts(prompt.contexts.unwrap_or_default()),
        change,
        limits: TurnLimits::default(),
    };
    let Some(commands) = server.engine.commands() else { return };
    let chat = session.clone();
    server.engine.later(
        async move { commands.call(|reply| Command::Prompt { session, prompt, reply }).await },
        move |server, outcome| {
            let prompted = Prompted { session: chat, is_new: false, outcome };
            server.dialect.answer_prompt(server, prompted, reply);
        },
    );
}
