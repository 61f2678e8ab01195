//! Answers as tests write them: steps in order, in no format's words.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;

/// What the fake model does with one request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub(super) status: Option<u16>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) steps: Vec<Step>,
    pub(super) usage: Option<Usage>,
    pub(super) every: Option<Duration>,
    pub(super) split: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Text(Vec<String>),
    Reasoning(Vec<String>),
    Call { id: String, name: String, arguments: Vec<String> },
    Flood { count: usize, text: String },
    Stamps(usize),
    Delay(Duration),
    Gate(Gate),
    Error { kind: String, message: String },
    Raw(Vec<u8>),
    Silence,
    Cut,
    Stop(String),
}

/// Token counts as the provider tells them: `input` without what the cache had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 10, cache_read: 0, cache_write: 0, output: 5 }
    }
}

/// Holds an answer until the test lets it go on.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets one waiting answer pass.
    pub fn open(&self) {
        self.0.add_permits(1);
    }

    pub(super) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Answer {
    /// An answer without steps: it begins and ends well.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one text, streamed word by word.
    pub fn text(text: &str) -> Self {
        Self::new().say(text)
    }

    /// An answer of one call.
    pub fn tool_call(id: &str, name: &str, arguments: Value) -> Self {
        Self::new().call(id, name, arguments)
    }

    /// A refusal with an HTTP status; the body is the usual error object unless [`Answer::body`] is given.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// `count` chunks of `text` as fast as the machine can.
    pub fn flood(count: usize, text: &str) -> Self {
        Self::new().step(Step::Flood { count, text: text.to_owned() })
    }

    /// So many chunks `<N>`, N being the [`super::clock`] when each was written.
    pub fn stamps(count: usize) -> Self {
        Self::new().step(Step::Stamps(count))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The time between two chunks.
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause);
        self
    }

    /// Sends the bytes in pieces of this size, whatever they hold.
    pub fn split(mut self, bytes: usize) -> Self {
        self.split = Some(bytes.max(1));
        self
    }

    /// More text, word by word.
    pub fn say(self, text: &str) -> Self {
        let chunks = words(text);
        self.step(Step::Text(chunks))
    }

    /// More text in exactly these chunks.
    pub fn chunks<T: AsRef<str>>(self, chunks: impl IntoIterator<Item = T>) -> Self {
        self.step(Step::Text(chunks.into_iter().map(|chunk| chunk.as_ref().to_owned()).collect()))
    }

    pub fn reasoning(self, text: &str) -> Self {
        self.step(Step::Reasoning(words(text)))
    }

    /// A call whose arguments are streamed in pieces.
    pub fn call(self, id: &str, name: &str, arguments: Value) -> Self {
        let text = arguments.to_string();
        let pieces: Vec<char> = text.chars().collect();
        let arguments = pieces.chunks(7).map(|piece| piece.iter().collect()).collect();
        self.step(Step::Call { id: id.to_owned(), name: name.to_owned(), arguments })
    }

    /// A call whose arguments are these pieces, valid JSON or not.
    pub fn call_pieces(self, id: &str, name: &str, pieces: &[&str]) -> Self {
        let arguments = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        self.step(Step::Call { id: id.to_owned(), name: name.to_owned(), arguments })
    }

    pub fn delay(self, pause: Duration) -> Self {
        self.step(Step::Delay(pause))
    }

    /// Waits until the test opens the gate.
    pub fn gate(self, gate: &Gate) -> Self {
        self.step(Step::Gate(gate.clone()))
    }

    /// An error inside the stream, e.g. `overloaded_error`.
    pub fn error(self, kind: &str, message: &str) -> Self {
        self.step(Step::Error { kind: kind.to_owned(), message: message.to_owned() })
    }

    /// These bytes, as they are.
    pub fn raw(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Raw(bytes.into()))
    }

    /// From here on nothing comes, and the connection stays open.
    pub fn silence(self) -> Self {
        self.step(Step::Silence)
    }

    /// The connection breaks here.
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Ends with this reason: `max_tokens`, `refusal`.
    pub fn stop(self, reason: &str) -> Self {
        self.step(Step::Stop(reason.to_owned()))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// Words with the space before them, so that the pieces are the text.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for piece in text.split_inclusive(' ') {
        words.push(piece.to_owned());
    }
    words
}
