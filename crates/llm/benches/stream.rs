//! How many chunks a second pass through a model stream: decoded from memory, and read over HTTP from the fake model.
//!
//! `cargo bench -p llm`. Prints a table; asserts nothing about time.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark talks to the person who runs it")]

use std::time::{Duration, Instant};

use domain::model::{ModelEvent, ModelInfo, Models, Prompt};
use futures_util::StreamExt;
use llm::format::{Dialect, Events, Target, Thinking};
use llm::{Api, KeySource, ProviderConfig, Registry, Settings};
use testkit::{Answer, FakeModel};

const CHUNKS: usize = 200_000;
const READ: usize = 16 * 1024;

/// The bytes of one answer as a format's server streams them.
async fn recorded(api: Api) -> Vec<u8> {
    let fake = FakeModel::start().await;
    fake.answer(Answer::flood(CHUNKS, "word "));
    let (path, body) = match api {
        Api::OpenAiResponses => ("/v1/responses", "{}"),
        Api::OpenAiChat => ("/chat/completions", "{}"),
        Api::Anthropic => ("/v1/messages", "{}"),
        Api::Gemini => ("/models/m:streamGenerateContent", "{}"),
        Api::Ollama => ("/api/chat", "{}"),
        Api::Bedrock => ("/model/m/converse-stream", "{}"),
    };
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client
        .post(format!("{}{path}", fake.url()))
        .body(body)
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap()
        .to_vec()
}

fn decode(api: Api, bytes: &[u8], repair: bool) -> (usize, Duration) {
    let info = ModelInfo::default();
    let dialect = Dialect { repair, ..Dialect::PLAIN };
    let target =
        Target { id: "a/b", model: "b", info: &info, thinking: Thinking::None, temperature: true, dialect };
    let mut decoder = api.decoder(&Prompt::default(), &target);
    let (mut framing, mut out, mut deltas) = (api.framing(), Events::new(), 0);
    let begun = Instant::now();
    for piece in bytes.chunks(READ) {
        framing.push(piece).unwrap();
        while let Some(event) = framing.next_event().unwrap() {
            decoder.push(event, &mut out).unwrap();
        }
        while let Some(event) = out.pop_front() {
            deltas += usize::from(matches!(event, ModelEvent::BlockDelta { .. }));
        }
    }
    (deltas, begun.elapsed())
}

async fn over_http(api: Api) -> (usize, Duration) {
    let fake = FakeModel::start().await;
    fake.answer(Answer::text("warm")).answer(Answer::flood(CHUNKS, "word "));
    let provider = ProviderConfig {
        name: "fake".into(),
        api: Some(api),
        url: Some(fake.url().to_owned()),
        key: Some(KeySource::fixed("k")),
        ..ProviderConfig::default()
    };
    let registry = Registry::new(Settings { providers: vec![provider], ..Settings::default() }).unwrap();
    let model = registry.find("fake/m").unwrap();
    let mut deltas = 0;
    let mut taken = Duration::ZERO;
    for _ in 0..2 {
        let begun = Instant::now();
        deltas = 0;
        let mut stream = model.stream(Prompt::default());
        while let Some(event) = stream.next().await {
            deltas += usize::from(matches!(event.unwrap(), ModelEvent::BlockDelta { .. }));
        }
        taken = begun.elapsed();
    }
    (deltas, taken)
}

fn row(what: &str, (deltas, taken): (usize, Duration)) {
    let per = taken.as_nanos() as f64 / deltas as f64;
    println!("{what:<34} {deltas:>8} chunks {:>12.0} /s {per:>9.0} ns each", 1e9 / per);
}

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for api in Api::ALL {
        let bytes = runtime.block_on(recorded(api));
        row(&format!("{} decoded", api.name()), decode(api, &bytes, false));
        if matches!(api, Api::OpenAiChat) {
            row(&format!("{} decoded and repaired", api.name()), decode(api, &bytes, true));
        }
        row(&format!("{} over HTTP", api.name()), runtime.block_on(over_http(api)));
    }
}
