//! Owns the embedded model as one of the domain's models: a stream like any other, computed on a thread of its own.
//! Knows nothing of its callers. Invariants: nothing is read before the first prompt; prompts are answered one at a time,
//! in order; a dropped stream stops its computation within one layer of one pass.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use domain::Failure;
use domain::model::{
    BlockKind, Model, ModelEvent, ModelInfo, ModelStream, Price, Prompt, StopReason, Tokens,
};
use futures_util::Stream;
use tokio::sync::mpsc;

use crate::answer_parser::{AnswerParser, AnswerPart};
use crate::completions::Completions;
use crate::conversation::{self, FittedPrompt};
use crate::engine::{Engine, FileFacts};
use crate::error::ModelError;
use crate::generation::{AnswerEnd, AnswerOptions};
use crate::install::DEFAULT;
use crate::memory;
use crate::sampler::Sampling;
use crate::saved_prefix::{FEWEST_TOKENS, SavedPrefixes};
use crate::session::{AnswerReport, Limits, Session};
use crate::tool_chat;

/// Tokens an answer may have where the prompt does not say: a quarter of the window, between these.
const ANSWER_TOKENS: (usize, usize) = (512, 4096);
/// Tokens of one completion in an editor.
const FILL_TOKENS: usize = 256;
/// Small models repeat whole phrases; a penalty on the next word of a repeated phrase keeps most answers from looping.
const REPETITION_PENALTY: f32 = 1.15;
/// Larger models, those that use tools, must be able to repeat lines of code.
const TOOL_REPETITION_PENALTY: f32 = 1.0;
/// Events that wait for a slow reader before the computation does.
const EVENT_QUEUE: usize = 64;

/// A model file behind the domain's `Model`.
pub struct LocalModel {
    id: String,
    path: PathBuf,
    limits: Limits,
    worker: Mutex<Option<Sender<Job>>>,
    waiting: Arc<AtomicUsize>,
    facts: OnceLock<Option<FileFacts>>,
}

type StreamItem = Result<ModelEvent, Failure>;

struct Job {
    prompt: Prompt,
    events: mpsc::Sender<StreamItem>,
    stop: Arc<AtomicBool>,
    _slot: QueueSlot,
}

impl LocalModel {
    /// The model in `path`, listed as `local/<id>`. Nothing is opened yet.
    pub fn new(id: &str, path: impl Into<PathBuf>, limits: Limits) -> LocalModel {
        LocalModel {
            id: format!("local/{id}"),
            path: path.into(),
            limits,
            worker: Mutex::new(None),
            waiting: Arc::default(),
            facts: OnceLock::new(),
        }
    }

    /// The facts of the file, read once. Those of the default model are known without it.
    fn facts(&self) -> FileFacts {
        let default = FileFacts { window: self.limits.window, tools: false, fills_middle: false };
        if is_default(&self.path) {
            return default;
        }
        self.facts.get_or_init(|| FileFacts::read(&self.path)).unwrap_or(default)
    }

    /// Hands a job to the worker thread, which is started for the first one and again should it have died.
    fn submit(&self, mut job: Job) -> Result<(), Failure> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = worker.as_ref() {
            match jobs.send(job) {
                Ok(()) => return Ok(()),
                Err(returned) => job = returned.0,
            }
        }
        let (jobs, queue) = channel();
        let (path, limits) = (self.path.clone(), self.limits);
        let spawned = std::thread::Builder::new()
            .name("local-model".into())
            .spawn(move || run_worker(&path, limits, queue));
        spawned.map_err(|error| Failure::internal(format!("The embedded model got no thread: {error}.")))?;
        // The thread that was just started holds the other end.
        let _ = jobs.send(job);
        *worker = Some(jobs);
        Ok(())
    }
}

impl Model for LocalModel {
    fn stream(&self, prompt: Prompt) -> ModelStream {
        let (events, received) = mpsc::channel(EVENT_QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let slot = QueueSlot::enter(&self.waiting);
        if slot.ahead > 0 {
            let text = "The embedded model answers one prompt at a time; another comes first.".to_owned();
            let _ = events.try_send(Ok(ModelEvent::Waiting { text }));
        }
        if let Err(failure) =
            self.submit(Job { prompt, events: events.clone(), stop: stop.clone(), _slot: slot })
        {
            let _ = events.try_send(Err(failure));
        }
        Box::pin(AnswerStream { received, stop, finished: false })
    }

    fn info(&self) -> ModelInfo {
        let facts = self.facts();
        let window = self.limits.window.min(facts.window);
        ModelInfo {
            id: self.id.clone(),
            context_limit: Some(window as u64),
            output_limit: Some(answer_tokens(window) as u64),
            price: Some(Price::default()),
            tools: facts.tools,
            fills_middle: facts.fills_middle,
            ..ModelInfo::default()
        }
    }
}

/// One place in the queue, given back when the job is done or lost.
struct QueueSlot {
    ahead: usize,
    waiting: Arc<AtomicUsize>,
}

impl QueueSlot {
    fn enter(waiting: &Arc<AtomicUsize>) -> QueueSlot {
        QueueSlot { ahead: waiting.fetch_add(1, Ordering::Relaxed), waiting: waiting.clone() }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The reader's end: dropping it stops the computation.
struct AnswerStream {
    received: mpsc::Receiver<StreamItem>,
    stop: Arc<AtomicBool>,
    finished: bool,
}

impl Stream for AnswerStream {
    type Item = StreamItem;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let event = std::task::ready!(self.received.poll_recv(context));
        let event = match event {
            None if self.finished => None,
            None => Some(Err(Failure::internal("The embedded model failed. Send the prompt again."))),
            event => event,
        };
        self.finished |= matches!(event, Some(Err(_) | Ok(ModelEvent::Ended { .. })));
        Poll::Ready(event)
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A loaded model and what it remembers.
struct Loaded {
    engine: Arc<Engine>,
    session: Session,
    completions: Completions,
    saved: Option<SavedPrefixes>,
}

/// The worker thread: answers until the model is dropped. The file is opened for the first prompt.
fn run_worker(path: &Path, limits: Limits, queue: Receiver<Job>) {
    let mut loaded: Option<Loaded> = None;
    for job in queue {
        let failure = match load(&mut loaded, path, limits) {
            Ok(loaded) if job.prompt.middle.is_some() => fill(loaded, limits, &job).err(),
            Ok(loaded) => answer(loaded, &job, is_default(path)).err(),
            Err(error) => Some(error),
        };
        if let Some(error) = failure {
            let _ = job.events.blocking_send(Err(to_failure(&error)));
        }
    }
}

fn load<'a>(
    loaded: &'a mut Option<Loaded>,
    path: &Path,
    limits: Limits,
) -> Result<&'a mut Loaded, ModelError> {
    if loaded.is_none() {
        memory::check(path)?;
        let engine = Arc::new(Engine::open(path)?);
        let session = Session::new(engine.clone(), limits);
        let saved = SavedPrefixes::of(path);
        let completions = Completions::default();
        return Ok(loaded.insert(Loaded { engine, session, completions, saved }));
    }
    loaded.as_mut().ok_or(ModelError::EmptyPrompt)
}

/// Fills the middle of a text, in a session beside that of the chats.
fn fill(loaded: &mut Loaded, limits: Limits, job: &Job) -> Result<(), ModelError> {
    let Some(middle) = &job.prompt.middle else { return Err(ModelError::EmptyPrompt) };
    let limit = job.prompt.max_output.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(FILL_TOKENS);
    let mut blocks = Blocks { job, next: 0, open: None, called: false };
    let engine = &loaded.engine;
    let text = |text: &str| blocks.add(AnswerPart::Text(text.to_owned()));
    let outcome = loaded.completions.fill(engine, limits, middle, limit.min(FILL_TOKENS), &job.stop, text)?;
    blocks.close();
    blocks.end(&outcome);
    Ok(())
}

fn answer_tokens(window: usize) -> usize {
    (window / 4).clamp(ANSWER_TOKENS.0, ANSWER_TOKENS.1)
}

fn is_default(path: &Path) -> bool {
    path.file_stem().and_then(|stem| stem.to_str()) == Some(DEFAULT.id)
}

fn answer(loaded: &mut Loaded, job: &Job, is_default: bool) -> Result<(), ModelError> {
    let Loaded { engine, session, saved, .. } = loaded;
    let asked = job.prompt.max_output.and_then(|limit| usize::try_from(limit).ok());
    let limit = asked.unwrap_or_else(|| answer_tokens(session.window())).clamp(1, session.window() / 2);
    let FittedPrompt { tokens, lost_tools } =
        conversation::fit(engine, &job.prompt, session.window() - limit)?;
    let has_tools = engine.offers_tools() && !lost_tools;
    let offered = if has_tools { job.prompt.tools.clone() } else { Arc::default() };
    let thinking = engine.decode(&tokens[tokens.len().saturating_sub(4)..]).trim_end().ends_with("<think>");
    let options = AnswerOptions::new(limit, sampling(engine, &job.prompt)).with_rules(
        &offered,
        job.prompt.output_schema.as_ref(),
        thinking,
    );
    let opening = match saved {
        Some(saved) if has_tools => restore_opening(engine, session, saved, &job.prompt, &tokens),
        _ => 0,
    };
    let mut blocks = Blocks { job, next: 0, open: None, called: false };
    let mut parser = AnswerParser::new(offered, job.prompt.is_sequential, thinking);
    let outcome = session.answer_with(&tokens, options, &job.stop, |text| {
        parser.push(text).into_iter().for_each(|part| blocks.add(part));
        if parser.is_over() {
            job.stop.store(true, Ordering::Relaxed);
        }
    })?;
    parser.finish().into_iter().for_each(|part| blocks.add(part));
    blocks.close();
    blocks.warn(session.window(), lost_tools, outcome.ended, is_default);
    blocks.end(&outcome);
    if let Some(saved) = saved.as_ref().filter(|_| opening > 0) {
        // Without it the next chat only begins later.
        let _ = saved.save(session, &tokens[..opening]);
    }
    Ok(())
}

fn sampling(engine: &Engine, prompt: &Prompt) -> Sampling {
    let penalty = if engine.offers_tools() { TOOL_REPETITION_PENALTY } else { REPETITION_PENALTY };
    Sampling {
        temperature: prompt.temperature.unwrap_or(0.0).clamp(0.0, 2.0) as f32,
        top_p: 0.95,
        repetition_penalty: penalty,
        ..Sampling::default()
    }
}

/// How many tokens at the beginning of `tokens` are instructions and tools of Dragoman alone; zero where the session knows
/// them. What was saved of them is taken over.
fn restore_opening(
    engine: &Engine,
    session: &mut Session,
    saved: &SavedPrefixes,
    prompt: &Prompt,
    tokens: &[u32],
) -> usize {
    if session.known(tokens) >= FEWEST_TOKENS {
        return 0;
    }
    let Some(opening) = tool_chat::opening(engine, prompt) else { return 0 };
    let common = opening.iter().zip(tokens).take_while(|(one, other)| one == other).count();
    saved.restore(session, &tokens[..common]);
    common
}

/// Sends the parts of an answer as blocks, one open at a time.
struct Blocks<'a> {
    job: &'a Job,
    next: u32,
    open: Option<BlockKind>,
    /// The answer asks for a tool.
    called: bool,
}

impl Blocks<'_> {
    fn send(&self, event: ModelEvent) {
        // A reader that is gone wants nothing more.
        if self.job.events.blocking_send(Ok(event)).is_err() {
            self.job.stop.store(true, Ordering::Relaxed);
        }
    }

    /// What the user should know about the answer.
    fn warn(&self, window: usize, lost_tools: bool, ended: AnswerEnd, is_default: bool) {
        // A program reads an answer of a schema, and words beside it would be no JSON.
        if self.job.prompt.output_schema.is_some() {
            return;
        }
        let lost = lost_tools.then(|| {
            format!("The window of this model ({window} tokens) has no room for tools; it answered without.")
        });
        let repeated = (ended == AnswerEnd::Repeating)
            .then(|| "The embedded model began to repeat itself, so its answer was stopped.".to_owned());
        let weak = is_default.then(|| {
            format!(
                "local/{} gave this answer; it only talks, and gets facts wrong. `dragoman models pull` lists better ones.",
                DEFAULT.id
            )
        });
        lost.into_iter().chain(repeated).chain(weak).for_each(|text| self.send(ModelEvent::Warning { text }));
    }

    fn add(&mut self, part: AnswerPart) {
        let (kind, text) = match part {
            AnswerPart::Text(text) => (BlockKind::Text, text),
            AnswerPart::Reasoning(text) => (BlockKind::Reasoning, text),
            AnswerPart::Call { name, arguments } => {
                self.called = true;
                // Each call is a block of its own, whatever came before.
                self.close();
                (
                    BlockKind::ToolCall { call_id: format!("local-{}-{:x}", self.next, unique()), name },
                    arguments,
                )
            }
        };
        if self.open.as_ref() != Some(&kind) {
            self.close();
            self.send(ModelEvent::BlockStarted { block: self.next, kind: kind.clone() });
            self.open = Some(kind);
        }
        self.send(ModelEvent::BlockDelta { block: self.next, text });
    }

    /// The last events of an answer.
    fn end(&self, outcome: &AnswerReport) {
        self.send(ModelEvent::Usage(Tokens {
            input: (outcome.prompt_tokens - outcome.reused_tokens) as u64,
            cache_read: outcome.reused_tokens as u64,
            output: outcome.answer_tokens as u64,
            ..Tokens::default()
        }));
        let reason = match outcome.ended {
            AnswerEnd::Full => StopReason::MaxTokens,
            AnswerEnd::Finished | AnswerEnd::Repeating | AnswerEnd::Stopped if self.called => {
                StopReason::ToolCalls
            }
            AnswerEnd::Finished | AnswerEnd::Repeating | AnswerEnd::Stopped => StopReason::Done,
        };
        self.send(ModelEvent::Ended { reason });
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.send(ModelEvent::BlockEnded { block: self.next, provider: None });
            self.next += 1;
        }
    }
}

/// A number that no other call of this process has.
fn unique() -> usize {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed)
}

fn to_failure(error: &ModelError) -> Failure {
    match error {
        ModelError::TooLong { .. } | ModelError::EmptyPrompt | ModelError::TooLittleMemory { .. } => {
            Failure::user(error.to_string())
        }
        ModelError::Unreadable { .. } => Failure::config(error.to_string())
            .hint("Run `dragoman models pull smollm2` to fetch the default model."),
        ModelError::NotGguf(_)
        | ModelError::Damaged(_)
        | ModelError::Unsupported(_)
        | ModelError::Template(_) => Failure::config(error.to_string()),
    }
}
