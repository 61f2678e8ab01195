//! Turns calls that a local model wrote into its text, and thinking in tags, into real blocks.
//!
//! Wraps the decoder of every format, because any server may not recognize its model's own markup; calls are looked for
//! only where tools are given. Invariants: a call is made only when the whole rest of the answer is call markup, every
//! name in it is an offered tool's and every input is complete; everything else is shown as the text it is. Nothing is
//! lost: held text is shown in the end. Once nothing can follow, events pass without being looked at.

use std::collections::HashMap;
use std::sync::Arc;

use answer_text::{AnswerText, CallReader, Segment};
use domain::ToolSpec;
use domain::item::ProviderBlock;
use domain::model::{BlockKind, ModelEvent};

use crate::fault::Fault;
use crate::format::{Blocks, Decode, Events, Origin, generate_call_id, names, ollama, openai_chat};
use rpc::sse::SseEvent;

pub(crate) struct TextToolCalls {
    inner: Box<dyn Decode>,
    calls: CallReader,
    origin: Origin,
    blocks: Blocks,
    /// Maps the inner decoder's block numbers to the numbers of this decoder.
    numbers: HashMap<u32, u32>,
    text: Option<Text>,
    scratch: Events,
    segments: Vec<Segment>,
    /// The server recognizes calls, so its text holds none.
    recognized: bool,
    /// The answer begins without a tag and no calls are looked for: events pass unchanged.
    passes: bool,
}

/// The inner text block that is being read, and what it has become.
struct Text {
    inner: u32,
    answer: AnswerText,
    open: Option<(u32, bool)>,
}

impl TextToolCalls {
    pub(crate) fn new(inner: Box<dyn Decode>, tools: Arc<[ToolSpec]>, origin: Origin) -> Self {
        Self {
            inner,
            calls: CallReader::new(tools, names::tool_name),
            origin,
            blocks: Blocks::default(),
            numbers: HashMap::new(),
            text: None,
            scratch: Events::new(),
            segments: Vec::new(),
            recognized: false,
            passes: false,
        }
    }

    fn forward(&mut self, out: &mut Events) {
        while let Some(event) = self.scratch.pop_front() {
            match event {
                ModelEvent::BlockStarted { block, kind: BlockKind::Text } => {
                    self.release_text(out);
                    let answer = self.calls.begin(!self.recognized, false);
                    self.text = Some(Text { inner: block, answer, open: None });
                }
                ModelEvent::BlockStarted { block, kind } => {
                    self.recognized |= matches!(kind, BlockKind::ToolCall { .. });
                    let number = self.blocks.start(kind, out);
                    self.numbers.insert(block, number);
                }
                ModelEvent::BlockDelta { block, text } => self.delta(block, text, out),
                ModelEvent::BlockEnded { block, provider } => {
                    if self.text.as_ref().is_some_and(|text| text.inner == block) {
                        self.end_text(provider, out);
                    } else if let Some(number) = self.numbers.remove(&block) {
                        self.blocks.stop(number, provider, out);
                    }
                }
                ModelEvent::Ended { reason } => {
                    self.end_text(None, out);
                    self.blocks.end(reason, out);
                }
                other @ (ModelEvent::Waiting { .. }
                | ModelEvent::Warning { .. }
                | ModelEvent::ImagesRefused
                | ModelEvent::Usage(_)) => out.push_back(other),
            }
        }
    }

    fn delta(&mut self, block: u32, text: String, out: &mut Events) {
        match &mut self.text {
            Some(reading) if reading.inner == block => {
                reading.answer.push(text, &mut self.segments);
                let is_plain = reading.answer.is_plain();
                self.emit_segments(out);
                if is_plain {
                    self.pass_on();
                }
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
                let provider = (!thought).then(|| think_tags(&self.origin)).flatten();
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

    /// From here on the blocks of the inner decoder are the blocks of this one, if their numbers are the same.
    fn pass_on(&mut self) {
        let Some(Text { inner, open: Some((block, false)), .. }) = &self.text else { return };
        let same = inner == block && self.numbers.iter().all(|(inner, number)| inner == number);
        self.passes = same && self.scratch.is_empty();
    }

    /// Another text block starts before this one has ended: the rest of this one passes as it is.
    fn release_text(&mut self, out: &mut Events) {
        self.flush_held_text(out);
        let Some(Text { inner, open, .. }) = self.text.take() else { return };
        let number = match open {
            Some((block, false)) => block,
            Some((block, true)) => {
                self.blocks.stop(block, think_tags(&self.origin), out);
                self.blocks.start(BlockKind::Text, out)
            }
            None => self.blocks.start(BlockKind::Text, out),
        };
        self.numbers.insert(inner, number);
    }

    fn end_text(&mut self, provider: Option<ProviderBlock>, out: &mut Events) {
        let Some(reading) = &mut self.text else { return };
        let held = reading.answer.finish(&mut self.segments);
        let calls = held.as_deref().and_then(|held| self.calls.calls(held));
        if let (Some(held), None) = (held, &calls) {
            self.segments.push(Segment::Text(held));
        }
        self.emit_segments(out);
        match self.text.take().and_then(|text| text.open) {
            Some((block, true)) => self.blocks.stop(block, think_tags(&self.origin), out),
            Some((block, false)) => self.blocks.stop(block, provider, out),
            // Data of the provider that came with an empty text must go back.
            None if provider.is_some() => {
                let block = self.blocks.start(BlockKind::Text, out);
                self.blocks.stop(block, provider, out);
            }
            None => {}
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

/// The mark of thinking in tags. Only formats with a field for reasoning get it back.
fn think_tags(origin: &Origin) -> Option<ProviderBlock> {
    let has_field = [openai_chat::FORMAT, ollama::FORMAT].contains(&origin.format);
    has_field.then(|| origin.block(serde_json::json!({ "field": "reasoning_content" }))).flatten()
}

impl Decode for TextToolCalls {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        if self.passes {
            return self.inner.push(event, out);
        }
        let pushed = self.inner.push(event, &mut self.scratch);
        self.forward(out);
        if pushed.is_err() {
            self.flush_held_text(out);
        }
        pushed
    }

    fn finish(&mut self, out: &mut Events) -> bool {
        if self.passes {
            return self.inner.finish(out);
        }
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
            let held = reading.answer.finish(&mut self.segments);
            self.segments.extend(held.map(Segment::Text));
            self.emit_segments(out);
        }
    }
}
