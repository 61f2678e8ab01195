//! Tool calls and thinking that a model writes into the text of its answer, for every provider of models.
//!
//! Pure. Must not know providers, streams and how text is made. Invariants: a call is found only where the whole rest of
//! the answer is call markup, every name in it is an offered tool's and every input is complete and fits; everything else
//! is the text that it is. No text is lost: held text is handed out in the end.

mod json;
mod markup;
mod scan;

use std::sync::Arc;

use domain::ToolSpec;

use markup::Offered;
pub use markup::{Call, WireName};
use scan::Scanner;
pub use scan::Segment;

/// The tools that an answer may call.
#[derive(Debug)]
pub struct CallReader {
    offered: Offered,
}

impl CallReader {
    pub fn new(tools: Arc<[ToolSpec]>, wire_name: WireName) -> Self {
        Self { offered: Offered { tools, wire_name } }
    }

    /// Begins the text of an answer. `calls`: calls are looked for, where there are tools; `thinking`: the prompt has
    /// already opened a thought.
    pub fn begin(&self, calls: bool, thinking: bool) -> AnswerText {
        AnswerText { scanner: Scanner::new(calls && !self.offered.tools.is_empty(), thinking) }
    }

    /// The calls that a held text consists of.
    pub fn calls(&self, held: &str) -> Option<Vec<Call>> {
        markup::calls(held, &self.offered)
    }

    /// The same, where the text also closes what it opened, so that nothing more has to come.
    pub fn closed_calls(&self, held: &str) -> Option<Vec<Call>> {
        let is_closed = held.trim_end().ends_with(['}', ']', '>', '`']);
        if is_closed && markup::is_closed(held, &self.offered) { self.calls(held) } else { None }
    }
}

/// The text of one answer as it comes.
#[derive(Debug)]
pub struct AnswerText {
    scanner: Scanner,
}

impl AnswerText {
    /// Takes more text and hands out what can be shown.
    pub fn push(&mut self, text: String, out: &mut Vec<Segment>) {
        self.scanner.push(text, out);
    }

    /// Whether all text that follows passes unchanged.
    pub fn is_plain(&self) -> bool {
        self.scanner.is_plain()
    }

    /// The text that began like a call, so far.
    pub fn held(&self) -> Option<&str> {
        self.scanner.held()
    }

    /// The text is over: the returned text began like a call.
    pub fn finish(&mut self, out: &mut Vec<Segment>) -> Option<String> {
        self.scanner.finish(out)
    }
}
