//! Calls that a local model wrote into its text, and thinking in tags, made into real blocks.
//!
//! Wraps the decoder of a server that may not recognize its model's own markup. Invariants: a call is made only when
//! the whole rest of the answer is call markup, every name in it is an offered tool's and every input is complete;
//! everything else is shown as the text it is. Nothing is lost: what was held back is shown in the end.

mod json;
mod markup;
mod scan;

use std::collections::HashMap;

use domain::ToolSpec;
use domain::model::{BlockKind, ModelEvent};

use crate::fault::Fault;
use crate::format::{Blocks, Decode, Events, Origin, generate_call_id};
use markup::Offered;
use scan::{Scanner, Segment};
use sse::SseEvent;

pub(crate) struct TextToolCalls {
    inner: Box<dyn Decode>,
    offered: Offered,
    origin: Origin,
    blocks: Blocks,
    /// Maps the inner decoder's block numbers to the numbers of this decoder.
    numbers: HashMap<u32, u32>,
    text: Option<Text>,
    scratch: Events,
    segments: Vec<Segment>,
    /// The server recognizes calls: what stands in its text is text.
    recognized: bool,
}

/// The inner text block that is being read, and what it has become.
struct Text {
    inner: u32,
    scanner: Scanner,
    open: Option<(u32, bool)>,
}

impl TextToolCalls {
    pub(crate) fn new(inner: Box<dyn Decode>, tools: &[ToolSpec], origin: Origin) -> Self {
        Self {
            inner,
            offered: Offered::new(tools),
            origin,
            blocks: Blocks::default(),
            numbers: HashMap::new(),
            text: None,
            scratch: Events::new(),
            segments: Vec::new(),
            recognized: false,
        }
    }

    fn forward(&mut self, out: &mut Events) {
        while let Some(event) = self.scratch.pop_front() {
            match event {
                ModelEvent::BlockStarted { block, kind: BlockKind::Text } => {
                    let scanner = Scanner::new(!self.offered.is_empty() && !self.recognized);
                    self.text = Some(Text { inner: block, scanner, open: None });
                }
                ModelEvent::BlockStarted { block, kind } => {
                    self.recognized |= matches!(kind, BlockKind::ToolCall { .. });
                    let number = self.blocks.start(kind, out);
                    self.numbers.insert(block, number);
                }
                ModelEvent::BlockDelta { block, text } => self.delta(block, text, out),
                ModelEvent::BlockEnded { block, provider } => {
                    if self.text.as_ref().is_some_and(|text| text.inner == block) {
                        self.end_text(out);
                    } else if let Some(number) = self.numbers.remove(&block) {
                        self.blocks.stop(number, provider, out);
                    }
                }
                ModelEvent::Ended { reason } => {
                    self.end_text(out);
                    self.blocks.end(reason, out);
                }
                other @ (ModelEvent::Waiting { .. } | ModelEvent::Usage(_)) => out.push_back(other),
            }
        }
    }

    fn delta(&mut self, block: u32, text: String, out: &mut Events) {
        match &mut self.text {
            Some(reading) if reading.inner == block => {
                reading.scanner.push(text, &mut self.segments);
                self.emit_segments(out);
            }
            _ => {
                if let Some(number) = self.numbers.get(&block) {
                    out.push_back(ModelEvent::BlockDelta { block: *number, text });
                }
            }
        }
    }

    /// Emits the segments that the scanner released.
    fn emit_segments(&mut self, out: &mut Events) {
        let Some(reading) = &mut self.text else { return };
        for segments in self.segments.drain(..) {
            let (text, thought) = match segments {
                Segment::Text(text) => (text, false),
                Segment::Reasoning(text) => (text, true),
            };
            if let Some((block, _)) = reading.open.filter(|(_, open_thought)| *open_thought != thought) {
                let provider = (!thought).then(|| self.origin.block(think_tags())).flatten();
                self.blocks.stop(block, provider, out);
                reading.open = None;
            }
            let (block, _) = *reading.open.get_or_insert_with(|| {
                let kind = if thought { BlockKind::Reasoning } else { BlockKind::Text };
                (self.blocks.start(kind, out), thought)
            });
            out.push_back(ModelEvent::BlockDelta { block, text });
        }
    }

    fn end_text(&mut self, out: &mut Events) {
        let Some(reading) = &mut self.text else { return };
        let held = reading.scanner.finish(&mut self.segments);
        let calls = held.as_deref().and_then(|held| markup::calls(held, &self.offered));
        if let (Some(held), None) = (held, &calls) {
            self.segments.push(Segment::Text(held));
        }
        self.emit_segments(out);
        if let Some(Text { open: Some((block, thought)), .. }) = self.text.take() {
            let provider = thought.then(|| self.origin.block(think_tags())).flatten();
            self.blocks.stop(block, provider, out);
        }
        for call in calls.into_iter().flatten() {
            tracing::info!(tool = call.name, "a call in the model's text was made a real one");
            let kind = BlockKind::ToolCall { call_id: generate_call_id(), name: call.name };
            let block = self.blocks.start(kind, out);
            out.push_back(ModelEvent::BlockDelta { block, text: call.input.to_string() });
            self.blocks.stop(block, None, out);
        }
    }
}

/// How thinking in tags is marked, so that it goes back the way it came.
fn think_tags() -> serde_json::Value {
    serde_json::json!({ "field": "reasoning_content" })
}

impl Decode for TextToolCalls {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let pushed = self.inner.push(event, &mut self.scratch);
        self.forward(out);
        if pushed.is_err() {
            self.flush_held_text(out);
        }
        pushed
    }

    fn finish(&mut self, out: &mut Events) -> bool {
        let whole = self.inner.finish(&mut self.scratch);
        self.forward(out);
        if !whole {
            self.flush_held_text(out);
        }
        whole
    }

    fn is_settled(&self) -> bool {
        self.inner.is_settled()
    }
}

impl TextToolCalls {
    /// The stream broke: what was held back is shown as text, and no call is made of it.
    fn flush_held_text(&mut self, out: &mut Events) {
        if let Some(reading) = &mut self.text {
            let held = reading.scanner.finish(&mut self.segments);
            self.segments.extend(held.map(Segment::Text));
            self.emit_segments(out);
        }
    }
}
