//! Requests to the editor: diagnostics, definitions, references, and questions to the user.
//!
//! Invariant: every call of the engine is answered once; an editor that does not answer is not waited for.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::host::{HostReply, HostRequest};
use domain::{Answer, Ask, AskKind, Command, Failure, HostCall, SessionId};
use rpc::Outgoing;

use crate::forms;
use crate::from_wire;
use crate::server::Server;
use crate::wire::LinePosition;
use crate::wire::notifications::{
    ASK_QUESTION, DiagnosticsParams, DiagnosticsResult, GET_DEFINITION, GET_DIAGNOSTICS, GET_REFERENCES,
    LocationParams, LocationsResult, QuestionOption, QuestionParams, QuestionResult,
};

/// A person may take this long to answer a question in the editor.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Between two questions to an editor that starts a language server.
const STARTING_PAUSE: Duration = Duration::from_millis(500);
/// Characters of an editor's reason that the model reads.
const MAX_REASON_LENGTH: usize = 500;

/// Asks the editor; its answer goes to the engine.
pub(crate) fn handle_request(server: &mut Server, request: HostRequest) {
    let HostRequest { call, deadline, reply, .. } = request;
    let outgoing = server.outgoing().clone();
    tokio::spawn(async move {
        let _ = reply.send(ask_editor(&outgoing, call, deadline).await);
    });
}

async fn ask_editor(outgoing: &Outgoing, call: HostCall, deadline: Duration) -> Result<HostReply, Failure> {
    match call {
        HostCall::Diagnostics { path } => diagnostics(outgoing, path.as_deref(), deadline).await,
        HostCall::Definition { path, position } => {
            let position = LinePosition { line: position.line, character: position.character };
            let params = LocationParams { uri: uri(&path), position, include_declaration: None };
            locations(outgoing, GET_DEFINITION, &params, deadline).await
        }
        HostCall::References { path, position, include_declaration } => {
            let position = LinePosition { line: position.line, character: position.character };
            let include_declaration = Some(include_declaration);
            let params = LocationParams { uri: uri(&path), position, include_declaration };
            locations(outgoing, GET_REFERENCES, &params, deadline).await
        }
        HostCall::ReadText { .. }
        | HostCall::ReadLines { .. }
        | HostCall::ReadBytes { .. }
        | HostCall::WriteText { .. }
        | HostCall::Stat { .. }
        | HostCall::Glob { .. }
        | HostCall::Terminal(_) => Err(Failure::user("This editor cannot do that.")),
    }
}

fn uri(path: &Path) -> String {
    platform::file_uri::from_path(path)
}

async fn diagnostics(
    outgoing: &Outgoing,
    path: Option<&Path>,
    deadline: Duration,
) -> Result<HostReply, Failure> {
    let request = outgoing.request(GET_DIAGNOSTICS, &DiagnosticsParams { uri: path.map(uri) }, deadline);
    let result: DiagnosticsResult = request
        .decode()
        .await
        .map_err(|error| Failure::user(format!("The editor gave no answer: {error}.")))?;
    match result.diagnostics {
        Some(list) => Ok(HostReply::Diagnostics(list.into_iter().map(from_wire::diagnostic).collect())),
        None => Err(Failure::user(result.message.unwrap_or_else(|| "The editor has no diagnostics.".into()))),
    }
}

/// Asks again while the editor starts a language server.
async fn locations(
    outgoing: &Outgoing,
    method: &'static str,
    params: &LocationParams,
    deadline: Duration,
) -> Result<HostReply, Failure> {
    let until = Instant::now() + deadline;
    let result = loop {
        let left = until.saturating_duration_since(Instant::now());
        let result: LocationsResult =
            outgoing.request(method, params, left).decode().await.map_err(|error| {
                Failure::user(format!("The editor gave no answer: {error}. Use grep instead."))
            })?;
        let is_starting = result.status.as_deref() == Some("starting");
        if !is_starting || Instant::now() + STARTING_PAUSE >= until {
            break result;
        }
        tokio::time::sleep(STARTING_PAUSE).await;
    };
    let why: String = result.message.unwrap_or_default().chars().take(MAX_REASON_LENGTH).collect();
    let problem = match result.status.as_deref() {
        Some("error") => format!("The editor could not look: {}.", why.trim()),
        Some("starting") => "The editor's language server is still starting.".to_owned(),
        Some("no-server") => format!("The editor has no language server for this file. {}", why.trim()),
        _ => String::new(),
    };
    if !problem.is_empty() {
        return Err(Failure::user(format!("{} Use grep instead.", problem.trim_end())));
    }
    let ranges = result.locations.unwrap_or_default().into_iter().map(|location| domain::host::SourceRange {
        path: from_wire::path(&location.uri),
        start: from_wire::position(location.range.start),
        end: from_wire::position(location.range.end),
    });
    Ok(HostReply::Locations(ranges.collect()))
}

/// Sends a question to the editor, or a form field by field; the answer goes to the engine.
pub(crate) fn ask_user(server: &mut Server, session: &SessionId, ask: &Ask) {
    let Some(commands) = server.engine.commands() else { return };
    let (outgoing, chat_id) = (server.outgoing().clone(), server.chat_key(session));
    let tool_call_id = ask.item.map(|item| server.call_id(session, item));
    let asking = move |question: String, options: Vec<QuestionOption>, allow_freeform: bool| {
        let (chat_id, tool_call_id) = (chat_id.clone(), tool_call_id.clone());
        let params = QuestionParams { chat_id, question, options, allow_freeform, tool_call_id };
        let request = outgoing.request(ASK_QUESTION, &params, QUESTION_TIMEOUT);
        async move {
            match request.decode::<QuestionResult>().await {
                Ok(QuestionResult { answer: Some(text), cancelled }) if cancelled != Some(true) => Some(text),
                _ => None,
            }
        }
    };
    let (session, id, kind) = (session.clone(), ask.id, ask.kind.clone());
    tokio::spawn(async move {
        let answer = match kind {
            AskKind::Question { text, options, freeform, .. } => {
                let options = options
                    .into_iter()
                    .map(|choice| QuestionOption { label: choice.label, description: choice.description });
                let text = asking(text, options.collect(), freeform).await;
                text.map_or(Answer::Cancelled, |text| Answer::Text { text })
            }
            AskKind::Form { text, schema } => forms::ask(&text, &schema, asking).await,
            AskKind::Approval { .. } => return,
        };
        let _ = commands.send(Command::answer(session, id, answer)).await;
    });
}
