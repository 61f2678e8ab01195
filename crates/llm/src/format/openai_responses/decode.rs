//! Streams of the Responses API, from OpenAI and from servers that are less exact.
//!
//! Invariants: an item is shown once, whether it is streamed, finished or only listed in the last event; items are
//! matched by index, id or kind, as far as the server gives them; no text is dropped without a warning.

use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use rpc::sse::SseEvent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::text_call;
use super::wire::{Annotation, Frame, FrameKind, Item, Response, Usage};
use crate::fault::Fault;
use crate::format::names::Names;
use crate::format::{Blocks, Decode, Events, Origin, generate_call_id, push_usage};

/// The kind of a call whose argument is plain text.
const TEXT_CALL: &str = "custom_tool_call";

pub struct Decoder {
    origin: Origin,
    names: Names,
    blocks: Blocks,
    /// Every item that has started, in order.
    items: Vec<StreamItem>,
    tokens: Tokens,
    refusal: String,
    /// Arguments came for a call that has not started.
    orphaned_arguments: bool,
}

struct StreamItem {
    index: Option<u32>,
    id: Option<String>,
    call_id: Option<String>,
    kind: ItemKind,
    block: u32,
    is_open: bool,
    /// Whether anything was streamed of it.
    streamed: bool,
    /// Bytes of text that were streamed.
    length: usize,
    /// The streamed text of a reasoning item, which the finished item may lack.
    reasoning: String,
    /// The argument that the plain text of a call becomes.
    argument: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Text,
    Reasoning,
    Call,
}

/// The index and the id that an event gives for its item.
#[derive(Clone, Copy)]
struct ItemRef<'a> {
    index: Option<u32>,
    id: Option<&'a str>,
}

impl Decoder {
    pub fn new(origin: Origin, names: Names) -> Self {
        Self {
            origin,
            names,
            blocks: Blocks::default(),
            items: Vec::new(),
            tokens: Tokens::default(),
            refusal: String::new(),
            orphaned_arguments: false,
        }
    }

    /// The open item of a kind: by index unless another has the id, else by id, else the last one.
    fn find(&self, item: ItemRef, kind: ItemKind) -> Option<usize> {
        let open = |known: &StreamItem| known.is_open && known.kind == kind;
        let by_id = || {
            let id = item.id?;
            self.items.iter().rposition(|known| open(known) && known.id.as_deref() == Some(id))
        };
        let Some(index) = item.index else {
            return by_id().or_else(|| self.items.iter().rposition(open));
        };
        let at = self.items.iter().rposition(|known| open(known) && known.index == Some(index));
        match at {
            // Some servers number every item 0; others give each event of an item another id.
            Some(at) if item.id.is_some() && self.items[at].id.as_deref() != item.id => by_id().or(Some(at)),
            Some(at) => Some(at),
            None => {
                by_id().or_else(|| self.items.iter().rposition(|known| open(known) && known.index.is_none()))
            }
        }
    }

    fn delta(&mut self, item: ItemRef, kind: ItemKind, text: Option<String>, out: &mut Events) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let at = match self.find(item, kind) {
            Some(at) => at,
            // A server that does not announce its items. A call without a name may still be finished with one.
            None if kind == ItemKind::Call => {
                self.orphaned_arguments = true;
                return;
            }
            None => self.open(item, kind, None, out),
        };
        if kind != ItemKind::Reasoning {
            self.end_reasoning(out);
        }
        let known = &mut self.items[at];
        known.streamed = true;
        known.length += text.len();
        if kind == ItemKind::Reasoning {
            known.reasoning.push_str(&text);
        }
        let text = if known.argument.is_some() { text_call::piece(&text) } else { text };
        out.push_back(ModelEvent::BlockDelta { block: known.block, text });
    }

    /// Ends the reasoning that a server left open although the answer goes on with something else.
    fn end_reasoning(&mut self, out: &mut Events) {
        let is_left =
            |item: &&mut StreamItem| item.is_open && item.kind == ItemKind::Reasoning && item.streamed;
        for item in self.items.iter_mut().filter(is_left) {
            item.is_open = false;
            let text = std::mem::take(&mut item.reasoning);
            let summary = json!([{ "type": "summary_text", "text": text }]);
            let provider = self.origin.block(json!({ "type": "reasoning", "summary": summary }));
            self.blocks.stop(item.block, provider, out);
        }
    }

    /// The whole text of an item or of a part, for servers that send no deltas.
    fn whole(&mut self, item: ItemRef, kind: ItemKind, text: Option<String>, out: &mut Events) {
        match self.find(item, kind) {
            Some(at) if self.items[at].streamed => {}
            Some(_) => self.delta(item, kind, text, out),
            None if self
                .items
                .iter()
                .any(|known| known.kind == kind && known.streamed && known.is_at(item)) => {}
            None => self.delta(item, kind, text, out),
        }
    }

    fn open(&mut self, place: ItemRef, kind: ItemKind, item: Option<Item>, out: &mut Events) -> usize {
        let mut call_id = None;
        let mut id = place.id.map(str::to_owned);
        let block_kind = match kind {
            ItemKind::Text => BlockKind::Text,
            ItemKind::Reasoning => BlockKind::Reasoning,
            ItemKind::Call => {
                let (given, name) =
                    item.as_ref().map(|item| (item.call_id.clone(), item.name.clone())).unwrap_or_default();
                let given = given.or_else(|| item.as_ref().and_then(|item| item.id.clone()));
                let given = given.filter(|id| !id.is_empty()).unwrap_or_else(generate_call_id);
                call_id = Some(given.clone());
                let is_search = item.as_ref().is_some_and(|item| item.kind == "tool_search_call");
                let search = self.names.search.clone().filter(|_| is_search);
                let name = search.unwrap_or_else(|| self.names.original(name.unwrap_or_default()));
                BlockKind::ToolCall { call_id: given, name }
            }
        };
        let is_text = item.as_ref().is_some_and(|item| item.kind == TEXT_CALL);
        let argument = is_text.then(|| self.names.text_argument(&block_kind));
        if let Some(item) = item {
            id = item.id.or(id);
        }
        let block = self.blocks.start(block_kind, out);
        if let Some(argument) = argument {
            out.push_back(ModelEvent::BlockDelta { block, text: text_call::opening(argument) });
        }
        let (index, reasoning) = (place.index, String::new());
        self.items.push(StreamItem {
            index,
            id,
            call_id,
            kind,
            block,
            is_open: true,
            streamed: false,
            length: 0,
            reasoning,
            argument,
        });
        self.items.len() - 1
    }

    fn added(&mut self, place: ItemRef, raw: &RawValue, out: &mut Events) {
        let Ok(item) = serde_json::from_str::<Item>(raw.get()) else { return };
        if let Some(kind) = kind_of(&item.kind)
            && !self.items.iter().any(|known| known.is_repeated_by(place, kind, &item))
        {
            self.open(place, kind, Some(item), out);
        }
    }

    fn done(&mut self, place: ItemRef, raw: &RawValue, out: &mut Events) {
        let Ok(item) = serde_json::from_str::<Item>(raw.get()) else {
            return self.blocks.warn_unread(raw.get(), "response.output_item.done", out);
        };
        let Some(kind) = kind_of(&item.kind) else {
            return self.blocks.warn_unread(raw.get(), "response.output_item.done", out);
        };
        let place = ItemRef { id: place.id.or(item.id.as_deref()), ..place };
        let at = match self.find(place, kind) {
            Some(at) => at,
            None if self.items.iter().any(|known| known.is_repeated_by(place, kind, &item)) => return,
            None => self.open(place, kind, Some(item.clone()), out),
        };
        self.close(at, &item, raw, out);
    }

    fn close(&mut self, at: usize, item: &Item, raw: &RawValue, out: &mut Events) {
        if self.refusal.is_empty() {
            let parts = item.content.iter().flatten();
            self.refusal = parts.filter_map(|part| part.refusal.as_deref()).collect();
        }
        let known = &mut self.items[at];
        known.is_open = false;
        let (block, kind) = (known.block, known.kind);
        let text = final_text(kind, item);
        if !known.streamed && !text.is_empty() {
            known.streamed = true;
            let text = if known.argument.is_some() { text_call::piece(&text) } else { text };
            out.push_back(ModelEvent::BlockDelta { block, text });
        } else if let Some(rest) =
            text.get(known.length..).filter(|rest| kind == ItemKind::Text && !rest.is_empty())
        {
            // The finished item has more than was streamed.
            out.push_back(ModelEvent::BlockDelta { block, text: rest.to_owned() });
        }
        let provider = match kind {
            ItemKind::Text => {
                let phase = item.phase.clone().filter(|phase| !phase.is_null());
                phase.and_then(|phase| self.origin.block(json!({ "phase": phase })))
            }
            ItemKind::Reasoning => {
                let streamed = std::mem::take(&mut known.reasoning);
                self.origin.block(reasoning_item(raw, &streamed))
            }
            ItemKind::Call => {
                self.orphaned_arguments = false;
                known.close_text(out);
                None
            }
        };
        self.blocks.stop(block, provider, out);
    }

    /// Items that the last event lists and the stream did not finish or did not have.
    fn output(&mut self, output: Vec<&RawValue>, out: &mut Events) {
        let mut claimed = vec![false; self.items.len()];
        for (index, raw) in output.into_iter().enumerate() {
            let Ok(item) = serde_json::from_str::<Item>(raw.get()) else { continue };
            let Some(kind) = kind_of(&item.kind) else { continue };
            let index = u32::try_from(index).ok();
            let free = |at: usize| !claimed[at] && self.items[at].kind == kind;
            let same = |known: &StreamItem| {
                let ids = [(&known.id, &item.id), (&known.call_id, &item.call_id)];
                ids.iter().any(|(known, given)| given.is_some() && known == given)
            };
            let at = (0..claimed.len())
                .find(|at| free(*at) && same(&self.items[*at]))
                .or_else(|| (0..claimed.len()).find(|at| free(*at) && self.items[*at].index == index))
                .or_else(|| (0..claimed.len()).find(|at| free(*at)));
            let at = match at {
                Some(at) => {
                    claimed[at] = true;
                    if !self.items[at].is_open {
                        continue;
                    }
                    at
                }
                None => self.open(ItemRef { index, id: None }, kind, Some(item.clone()), out),
            };
            self.close(at, &item, raw, out);
        }
    }

    fn cite(&mut self, raw: Option<&RawValue>, out: &mut Events) {
        let cited = raw.and_then(|raw| serde_json::from_str::<Annotation>(raw.get()).ok());
        if let Some(Annotation { title, url: Some(url) }) = cited {
            self.blocks.citation(title.unwrap_or_else(|| url.clone()), url, out);
        }
    }

    fn usage(&mut self, usage: Usage, out: &mut Events) {
        let (cached, written) = usage
            .input_tokens_details
            .map(|details| (details.cached_tokens.unwrap_or(0), details.cache_write_tokens.unwrap_or(0)))
            .unwrap_or_default();
        let new = Tokens {
            input: usage.input_tokens.saturating_sub(cached + written),
            cache_read: cached,
            cache_write: written,
            output: usage.output_tokens,
            reasoning: usage.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        };
        push_usage(&mut self.tokens, new, out);
    }

    fn end(&mut self, response: Option<Response>, complete: bool, out: &mut Events) {
        let mut reason = if complete { StopReason::Done } else { StopReason::MaxTokens };
        if let Some(response) = response {
            self.output(response.output.unwrap_or_default(), out);
            if let Some(usage) = response.usage {
                self.usage(usage, out);
            }
            let cause = response.incomplete_details.and_then(|details| details.reason);
            if cause.as_deref() == Some("content_filter") {
                reason = StopReason::Refused {
                    reason: "The provider's content filter stopped the answer.".to_owned(),
                };
            }
        }
        if self.orphaned_arguments {
            self.blocks.warn("response.function_call_arguments.delta without a tool call", out);
        }
        for item in self.items.iter_mut().filter(|item| item.is_open && item.kind == ItemKind::Call) {
            if item.argument.is_some() {
                item.close_text(out);
            } else if !item.streamed {
                out.push_back(ModelEvent::BlockDelta { block: item.block, text: "{}".to_owned() });
            }
        }
        if !self.refusal.is_empty() {
            reason = StopReason::Refused { reason: std::mem::take(&mut self.refusal) };
        }
        self.blocks.end(reason, out);
    }

    fn frame(&mut self, frame: Frame, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        let data = event.data;
        let place = ItemRef { index: frame.output_index, id: frame.item_id.as_deref() };
        match frame.kind {
            FrameKind::TextDelta => self.delta(place, ItemKind::Text, frame.delta, out),
            FrameKind::ReasoningDelta => self.delta(place, ItemKind::Reasoning, frame.delta, out),
            FrameKind::ArgumentsDelta => self.delta(place, ItemKind::Call, frame.delta, out),
            FrameKind::RefusalDelta => self.refusal.push_str(frame.delta.as_deref().unwrap_or_default()),
            FrameKind::SummaryPart if frame.summary_index > 0 => {
                self.delta(place, ItemKind::Reasoning, Some("\n\n".to_owned()), out);
            }
            FrameKind::TextDone => self.whole(place, ItemKind::Text, frame.text, out),
            FrameKind::ReasoningDone => self.whole(place, ItemKind::Reasoning, frame.text, out),
            FrameKind::ArgumentsDone => {
                self.whole(place, ItemKind::Call, frame.arguments.or(frame.input), out);
            }
            FrameKind::ItemAdded => {
                if let Some(raw) = frame.item {
                    self.added(place, raw, out);
                }
            }
            FrameKind::ItemDone => {
                if let Some(raw) = frame.item {
                    self.done(place, raw, out);
                }
            }
            FrameKind::Annotation => self.cite(frame.annotation, out),
            FrameKind::Completed => self.end(frame.response, true, out),
            FrameKind::Incomplete => self.end(frame.response, false, out),
            FrameKind::Failed => {
                let error = frame.response.and_then(|response| response.error);
                return Err(Fault::from_stream(error.map_or(data, RawValue::get)));
            }
            FrameKind::Error => return Err(Fault::from_stream(data)),
            FrameKind::SummaryPart | FrameKind::Known => {}
            FrameKind::Unknown => return self.unknown(event, out),
        }
        Ok(())
    }

    /// An error, an answer that is not streamed, or an event that is not known.
    fn unknown(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        match serde_json::from_str::<Response>(event.data) {
            Ok(response) if response.output.is_some() => {
                if let Some(error) = response.error.filter(|error| error.get() != "null") {
                    return Err(Fault::from_stream(error.get()));
                }
                let complete = response.status.as_deref() != Some("incomplete");
                self.end(Some(response), complete, out);
                Ok(())
            }
            _ => self.blocks.unknown_event(event, out),
        }
    }
}

impl StreamItem {
    /// Ends the JSON text around the plain text of a call.
    fn close_text(&mut self, out: &mut Events) {
        if self.argument.take().is_some() {
            out.push_back(ModelEvent::BlockDelta { block: self.block, text: text_call::CLOSING.to_owned() });
        }
    }

    /// Whether an event may belong to this item, as far as its index and id tell.
    fn is_at(&self, place: ItemRef) -> bool {
        match (self.index, place.index, self.id.as_deref(), place.id) {
            (Some(known), Some(given), ..) => known == given,
            (_, _, Some(known), Some(given)) => known == given,
            _ => true,
        }
    }

    /// Whether an announced or finished item is this one once more.
    fn is_repeated_by(&self, place: ItemRef, kind: ItemKind, item: &Item) -> bool {
        if self.kind != kind {
            return false;
        }
        match (&self.call_id, &item.call_id, &self.id, &item.id) {
            (Some(known), Some(given), ..) | (_, _, Some(known), Some(given)) => known == given,
            _ => place.index.is_some() && self.index == place.index,
        }
    }
}

fn kind_of(item: &str) -> Option<ItemKind> {
    match item {
        "message" => Some(ItemKind::Text),
        "reasoning" => Some(ItemKind::Reasoning),
        "function_call" | "tool_search_call" | TEXT_CALL => Some(ItemKind::Call),
        _ => None,
    }
}

/// The text of a finished item, for servers that did not stream it.
fn final_text(kind: ItemKind, item: &Item) -> String {
    match kind {
        ItemKind::Text => Item::join(&item.content, ""),
        ItemKind::Reasoning => {
            let summary = Item::join(&item.summary, "\n\n");
            if summary.is_empty() { Item::join(&item.content, "") } else { summary }
        }
        ItemKind::Call if item.kind == TEXT_CALL => item.input.clone().unwrap_or_default(),
        ItemKind::Call => match &item.arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(arguments)) if arguments.is_empty() => "{}".to_owned(),
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments) => arguments.to_string(),
        },
    }
}

/// The item as it is sent back: without its id, which names nothing where nothing is stored, and with the summary that
/// was streamed where the finished item has none.
fn reasoning_item(raw: &RawValue, streamed: &str) -> Value {
    let mut item: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    if let Some(map) = item.as_object_mut() {
        map.shift_remove("id");
        map.shift_remove("status");
        if map.get("content").is_some_and(Value::is_null) {
            map.shift_remove("content");
        }
        let has = |key: &str| map.get(key).and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
        if !has("summary") && !has("content") && !streamed.is_empty() {
            map.insert("summary".into(), json!([{ "type": "summary_text", "text": streamed }]));
        }
        map.entry("summary").or_insert_with(|| json!([]));
    }
    item
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        match serde_json::from_str::<Frame>(event.data) {
            Ok(frame) => self.frame(frame, event, out),
            Err(_) if matches!(event.data.trim(), "[DONE]" | "") => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "an event of the stream could not be read");
                Err(Fault::malformed("an event that is not of the Responses API", event.data))
            }
        }
    }

    fn finish(&mut self, _out: &mut Events) -> bool {
        self.blocks.is_ended()
    }
}
