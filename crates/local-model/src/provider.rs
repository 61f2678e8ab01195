//! Owns the embedded model as one of the domain's models: a stream like any other, computed on a thread of its own.
//! Knows nothing of who asks. Invariants: nothing is read before the first prompt; prompts are answered one at a time,
//! in order; a dropped stream stops its computation within one layer of one pass.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use domain::Failure;
use domain::model::{
    BlockKind, Model, ModelEvent, ModelInfo, ModelStream, Price, Prompt, StopReason, Tokens,
};
use futures_util::Stream;
use tokio::sync::mpsc;

use crate::conversation;
use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::sampler::Sampling;
use crate::session::{Ended, Limits, Session};

/// Tokens an answer may have where the prompt does not say.
const ANSWER: usize = 512;
/// Events that wait for a slow reader before the computation does.
const QUEUE: usize = 64;

/// A model file behind the domain's `Model`.
pub struct LocalModel {
    id: String,
    path: PathBuf,
    limits: Limits,
    worker: Mutex<Option<Sender<Job>>>,
    waiting: Arc<AtomicUsize>,
}

type Event = Result<ModelEvent, Failure>;

struct Job {
    prompt: Prompt,
    events: mpsc::Sender<Event>,
    stop: Arc<AtomicBool>,
    _turn: Turn,
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
        }
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
        let spawned =
            std::thread::Builder::new().name("local-model".into()).spawn(move || serve(&path, limits, queue));
        spawned.map_err(|error| Failure::internal(format!("The embedded model got no thread: {error}.")))?;
        // The thread that was just started holds the other end.
        let _ = jobs.send(job);
        *worker = Some(jobs);
        Ok(())
    }
}

impl Model for LocalModel {
    fn stream(&self, prompt: Prompt) -> ModelStream {
        let (events, received) = mpsc::channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let turn = Turn::take(&self.waiting);
        if turn.ahead > 0 {
            let text = "The embedded model answers one prompt at a time; another comes first.".to_owned();
            let _ = events.try_send(Ok(ModelEvent::Waiting { text }));
        }
        if let Err(failure) =
            self.submit(Job { prompt, events: events.clone(), stop: stop.clone(), _turn: turn })
        {
            let _ = events.try_send(Err(failure));
        }
        Box::pin(Answer { received, stop, finished: false })
    }

    fn info(&self) -> ModelInfo {
        ModelInfo {
            id: self.id.clone(),
            context_limit: Some(self.limits.window as u64),
            output_limit: Some(ANSWER as u64),
            price: Some(Price::default()),
            ..ModelInfo::default()
        }
    }
}

/// One place in the queue, given back when the job is done or lost.
struct Turn {
    ahead: usize,
    waiting: Arc<AtomicUsize>,
}

impl Turn {
    fn take(waiting: &Arc<AtomicUsize>) -> Turn {
        Turn { ahead: waiting.fetch_add(1, Ordering::Relaxed), waiting: waiting.clone() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The reader's end: dropping it stops the computation.
struct Answer {
    received: mpsc::Receiver<Event>,
    stop: Arc<AtomicBool>,
    finished: bool,
}

impl Stream for Answer {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
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

impl Drop for Answer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The worker thread: answers until the model is dropped. The file is opened for the first prompt.
fn serve(path: &Path, limits: Limits, queue: Receiver<Job>) {
    let mut loaded: Option<(Arc<Engine>, Session)> = None;
    for job in queue {
        let failure = match ensure(&mut loaded, path, limits) {
            Ok((engine, session)) => answer(engine, session, &job).err(),
            Err(refusal) => Some(refusal),
        };
        if let Some(refusal) = failure {
            let _ = job.events.blocking_send(Err(failure_of(&refusal)));
        }
    }
}

fn ensure<'a>(
    loaded: &'a mut Option<(Arc<Engine>, Session)>,
    path: &Path,
    limits: Limits,
) -> Result<&'a mut (Arc<Engine>, Session), Refusal> {
    if loaded.is_none() {
        let engine = Arc::new(Engine::open(path)?);
        let session = Session::new(engine.clone(), limits);
        return Ok(loaded.insert((engine, session)));
    }
    loaded.as_mut().ok_or(Refusal::EmptyPrompt)
}

fn answer(engine: &Engine, session: &mut Session, job: &Job) -> Result<(), Refusal> {
    let asked = job.prompt.max_output.map_or(ANSWER, |limit| usize::try_from(limit).unwrap_or(ANSWER));
    let limit = asked.clamp(1, session.window() / 2);
    let tokens = conversation::fit(engine, &job.prompt, session.window() - limit)?;
    let sampling = Sampling {
        temperature: job.prompt.temperature.unwrap_or(0.0).clamp(0.0, 2.0) as f32,
        top_p: 0.95,
        ..Sampling::default()
    };
    let send = |event| {
        // A reader that is gone wants nothing more.
        if job.events.blocking_send(Ok(event)).is_err() {
            job.stop.store(true, Ordering::Relaxed);
        }
    };
    send(ModelEvent::BlockStarted { block: 0, kind: BlockKind::Text });
    let outcome = session.answer(&tokens, limit, sampling, &job.stop, |text| {
        send(ModelEvent::BlockDelta { block: 0, text: text.to_owned() });
    })?;
    send(ModelEvent::BlockEnded { block: 0, provider: None });
    send(ModelEvent::Usage(Tokens {
        input: (outcome.prompt_tokens - outcome.reused_tokens) as u64,
        cache_read: outcome.reused_tokens as u64,
        output: outcome.answer_tokens as u64,
        ..Tokens::default()
    }));
    let reason = match outcome.ended {
        Ended::Finished | Ended::Repeating | Ended::Stopped => StopReason::Done,
        Ended::Full => StopReason::MaxTokens,
    };
    send(ModelEvent::Ended { reason });
    Ok(())
}

fn failure_of(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::TooLong { .. } | Refusal::EmptyPrompt => Failure::user(refusal.to_string()),
        Refusal::Unreadable { .. } => Failure::config(refusal.to_string())
            .hint("Run `dragoman models pull smollm2` to fetch the default model."),
        Refusal::NotGguf(_) | Refusal::Damaged(_) | Refusal::Unsupported(_) | Refusal::Template(_) => {
            Failure::config(refusal.to_string())
        }
    }
}
