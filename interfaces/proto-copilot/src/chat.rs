//! `chat`: an answer by a model where there is one, otherwise from what is known here; by its time in any case.
//!
//! Invariant: there are always 2 to 4 suggestions, and each works when it is sent: as a wish to `customize` where an
//! interface is open, as a question to `chat` where none is.

use apiui::customize::{Outcome, RefusalKind, wish};
use apiui::plan::Plan;
use domain::Command;
use domain::command::Completion;
use rpc::Fault;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::from_wire;
use crate::server::{Job, Server};
use crate::to_wire;
use crate::wire::{ChatContext, ChatParams, ChatResult};

/// The longest message that is answered.
const MESSAGE_LIMIT: usize = 256 << 10;
/// The longest answer of a model that is handed on.
const ANSWER_LIMIT: usize = 32 << 10;
/// Kept back to answer without the model.
const RESERVE: Duration = Duration::from_millis(200);

pub(crate) async fn chat(
    server: &Server,
    bytes: OwnedSemaphorePermit,
    since: Instant,
    params: Option<Box<RawValue>>,
) -> Result<ChatResult, Fault> {
    let params: ChatParams = from_wire::decode(params.as_deref())?;
    if params.message.trim().is_empty() {
        return Err(Fault::invalid_params("message is empty. Send what you want to know."));
    }
    if params.message.len() > MESSAGE_LIMIT {
        let most = MESSAGE_LIMIT >> 10;
        return Err(to_wire::too_large(format!("The message is longer than {most} KB. Send a shorter one.")));
    }
    let context = params.context.unwrap_or_default();
    // Made beforehand: after a slow model there is no time left.
    let own = params.message.clone();
    let own = tokio::task::spawn_blocking(move || offline_answer(&own, context));
    let answered = match server.admit(bytes, since, server.limits.chat).await {
        Some(job) => ask(server, &job, &params.message, context).await,
        None => None,
    };
    let message = match answered {
        Some(message) => message,
        None => own.await.map_err(|error| Fault::internal(error.to_string()))?,
    };
    Ok(ChatResult { message, suggestions: suggestions(&params.message, context) })
}

/// The model's answer, if there is a model and it is in time.
async fn ask(server: &Server, job: &Job, message: &str, context: ChatContext) -> Option<String> {
    let deadline = job.left().checked_sub(RESERVE)?;
    let completion = Completion {
        purpose: "chat".to_owned(),
        system: system(context),
        messages: vec![message.to_owned()],
        output_schema: None,
        middle: None,
        model: None,
        no_local: false,
        gate: Default::default(),
        deadline,
    };
    let call = async {
        let commands = server.model.commands().await?;
        commands.call(|reply| Command::Complete { completion, deltas: None, reply }).await
    };
    let completed = match tokio::time::timeout(deadline, call).await {
        Ok(Ok(completed)) => completed,
        Ok(Err(failure)) => {
            tracing::info!(%failure, "chat is answered without a model");
            return None;
        }
        Err(_) => {
            tracing::info!("chat is answered without a model, which took too long");
            return None;
        }
    };
    let text: String = completed.text.trim().chars().take(ANSWER_LIMIT).collect();
    (!text.is_empty()).then_some(text)
}

fn system(context: ChatContext) -> String {
    format!(
        "You answer questions of a person who turns API specifications into user interfaces with Dragoman. Answer in \
         plain text, in a few sentences, in the person's language. You cannot do anything yourself: the host generates \
         and changes interfaces.\nFacts:\n- {FORMATS}\n- {CHANGES}\n- {CREDENTIALS}\n- {}",
        next_step(context)
    )
}

const FORMATS: &str = "OpenAPI 3.0 and 3.1, Swagger 2.0 and GraphQL (SDL or introspection JSON) are supported, as JSON \
    or YAML, up to 50 MB. RAML, WSDL, AsyncAPI and HTML pages are not. You can provide a specification as a file, by \
    its address or by pasting it.";
const CHANGES: &str = "Without a language model you can ask for: search bars and filters, sorting, rows per page, \
    showing, hiding, renaming and moving columns, cards or tables, dark or light, the title, removing and restoring \
    views, read-only, grouping. With a model free changes are possible too: charts, new screens, other wording.";
const MODEL: &str = "To add a model, give Dragoman a key, for example as the environment variable ANTHROPIC_API_KEY or \
    OPENAI_API_KEY, or a provider in its configuration file (`dragoman config show` says which files are read), and \
    start it again. Generating needs no model.";
const CREDENTIALS: &str = "Credentials are typed into the interface's sign-in panel and are never in the code. All \
    calls of the interface go through the host's `request` function, or to the API's own address.";

/// What can be done next.
fn next_step(context: ChatContext) -> &'static str {
    match (context.has_active_spec, context.has_active_interface) {
        (_, true) => "An interface is open: say what should change, for example “Use the dark theme”.",
        (true, false) => "A specification is open: generate its interface, then say what should change.",
        (false, false) => {
            "Nothing is open yet: provide a specification, and its interface is generated at once."
        }
    }
}

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Topic {
    Formats,
    Model,
    Credentials,
    Start,
    Changes,
    Wish,
    Other,
}

/// The first topic with a word that is in the message.
const TOPICS: [(Topic, &[&str]); 5] = [
    (
        Topic::Model,
        &["model", "llm", "provider", "api key", "api-key", "openai", "anthropic", "claude", "gpt"],
    ),
    (
        Topic::Formats,
        &["format", "openapi", "swagger", "graphql", "raml", "wsdl", "asyncapi", "yaml", "support"],
    ),
    (
        Topic::Credentials,
        &["credential", "password", "token", "sign in", "login", "log in", "secret", "safe", "auth"],
    ),
    (Topic::Start, &["generate", "start", "begin", "upload", "paste", "first step", "how do i use", "url"]),
    (Topic::Changes, &["change", "customi", "what can", "help", "modify", "edit", "able to"]),
];

fn topic(message: &str) -> Topic {
    // An empty plan understands exactly the wishes that every interface understands.
    let outcome = match wish(&Plan::default(), message, &[]) {
        Outcome::Refused(refusal) => refusal.kind == RefusalKind::NotFound,
        Outcome::Edited { .. } | Outcome::Clarify { .. } => true,
    };
    if outcome && !message.trim_end().ends_with('?') {
        return Topic::Wish;
    }
    let lower = message.to_lowercase();
    let found = TOPICS.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word)));
    found.map_or(Topic::Other, |(topic, _)| *topic)
}

fn offline_answer(message: &str, context: ChatContext) -> String {
    match topic(message) {
        Topic::Formats => format!("{FORMATS} {}", next_step(context)),
        Topic::Model => MODEL.to_owned(),
        Topic::Credentials => CREDENTIALS.to_owned(),
        Topic::Changes => format!("{CHANGES} {}", next_step(context)),
        Topic::Start => format!("{} No model is needed for that.", next_step(context)),
        Topic::Wish if context.has_active_interface => {
            "That is a change to the open interface: send it as its customization, and it is made.".to_owned()
        }
        Topic::Wish => format!("That is a change to an interface, and none is open. {}", next_step(context)),
        Topic::Other => format!(
            "I turn API specifications into user interfaces and change them in plain language. {} Without a language \
             model I cannot say more about this; ask me about formats, changes, credentials, or how to add a model.",
            next_step(context)
        ),
    }
}

/// Wishes that every interface takes.
const WISHES: [&str; 4] =
    ["Use the dark theme", "Show as cards", "Make it read-only", "Change the title to “My interface”"];
/// Questions that are answered without a model.
const QUESTIONS: [&str; 4] = [
    "What formats do you support?",
    "How do I start?",
    "What can I change without a model?",
    "How do I add a model?",
];

fn suggestions(message: &str, context: ChatContext) -> Vec<String> {
    let all = if context.has_active_interface { WISHES } else { QUESTIONS };
    let asked = |suggestion: &&str| !suggestion.eq_ignore_ascii_case(message.trim());
    all.into_iter().filter(asked).take(3).map(str::to_owned).collect()
}
