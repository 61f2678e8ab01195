//! How many chunks a second pass through a model stream: decoded from memory, and read over HTTP from the fake model.
//!
//! `cargo bench -p llm`. Prints a table of processor time (the fake model's not counted), which another job on the
//! machine changes little, beside wall time, which it does; asserts nothing.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark talks to the person who runs it")]

use std::time::{Duration, Instant};

use domain::model::{Model, ModelEvent, ModelInfo, Models, Prompt};
use futures_util::StreamExt;
use llm::format::{Dialect, Events, Target, Thinking};
use llm::{Api, KeySource, ProviderConfig, Registry, RegistrySettings};
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

/// What was measured of a run.
struct Measured {
    deltas: usize,
    wall: Duration,
    processor: Duration,
}

/// Processor time of all threads of this process but the fake model's. Only Linux tells; elsewhere it is zero.
fn processor() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanos = threads.filter_map(|thread| {
        let read = |file: &str| std::fs::read_to_string(thread.path().join(file)).ok();
        let ours = !read("comm")?.starts_with("fake");
        let used: u64 = read("schedstat")?.split(' ').next()?.parse().ok()?;
        ours.then_some(used)
    });
    Duration::from_nanos(nanos.sum())
}

fn measured(run: impl FnOnce() -> usize) -> Measured {
    let (begun, used) = (Instant::now(), processor());
    let deltas = run();
    Measured { deltas, wall: begun.elapsed(), processor: processor().saturating_sub(used) }
}

fn decode(api: Api, bytes: &[u8], text_tool_calls: bool) -> usize {
    let info = ModelInfo::default();
    let dialect = Dialect { text_tool_calls, ..Dialect::PLAIN };
    let target =
        Target { id: "a/b", model: "b", info: &info, thinking: Thinking::None, temperature: true, dialect };
    let mut decoder = api.decoder(&Prompt::default(), &target);
    let (mut framing, mut out, mut deltas) = (api.framing(), Events::new(), 0);
    for piece in bytes.chunks(READ) {
        framing.push(piece).unwrap();
        while let Some(event) = framing.next_event().unwrap() {
            decoder.push(event, &mut out).unwrap();
        }
        while let Some(event) = out.pop_front() {
            deltas += usize::from(matches!(event, ModelEvent::BlockDelta { .. }));
        }
    }
    deltas
}

fn model(api: Api, url: &str) -> std::sync::Arc<dyn Model> {
    let provider = ProviderConfig {
        name: "fake".into(),
        api: Some(api),
        url: Some(url.to_owned()),
        key: Some(KeySource::fixed("k")),
        ..ProviderConfig::default()
    };
    let registry =
        Registry::new(RegistrySettings { providers: vec![provider], ..RegistrySettings::default() }).unwrap();
    registry.find("fake/m").unwrap()
}

async fn read(model: &dyn Model) -> usize {
    let mut deltas = 0;
    let mut stream = model.stream(Prompt::default());
    while let Some(event) = stream.next().await {
        deltas += usize::from(matches!(event.unwrap(), ModelEvent::BlockDelta { .. }));
    }
    deltas
}

fn row(what: &str, measured: &Measured) {
    let per = |time: Duration| time.as_nanos() as f64 / measured.deltas as f64;
    let (wall, processor) = (per(measured.wall), per(measured.processor));
    println!(
        "{what:<34} {processor:>7.0} ns processor {:>10.0} /s   {wall:>7.0} ns wall {:>10.0} /s",
        1e9 / processor,
        1e9 / wall
    );
}

fn main() {
    tls::install();
    let runtime = |name: &str| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name(name).enable_all().build().unwrap()
    };
    let (ours, theirs) = (runtime("ours"), runtime("fake"));
    for api in Api::ALL {
        let bytes = theirs.block_on(theirs.spawn(recorded(api))).unwrap();
        row(&format!("{} decoded", api.name()), &measured(|| decode(api, &bytes, false)));
        if api == Api::OpenAiChat {
            row(&format!("{} decoded and repaired", api.name()), &measured(|| decode(api, &bytes, true)));
        }
        let fake = theirs.block_on(FakeModel::start());
        let model = model(api, fake.url());
        fake.answer(Answer::text("warm")).answer(Answer::flood(CHUNKS, "word "));
        ours.block_on(read(model.as_ref()));
        row(&format!("{} over HTTP", api.name()), &measured(|| ours.block_on(read(model.as_ref()))));
    }
}
