//! Prints a turn for scripts: the answer (or JSON events) to stdout, progress and notices to stderr.
//!
//! Invariants: text that was printed once is not printed again; only the answer or JSON reaches stdout; a failed write
//! is remembered. A closed pipe is not a failure: its reader has seen enough.

use std::collections::HashMap;
use std::io::{self, Write};

use domain::event::{Channel, EventBody, Fact};
use domain::item::{Item, ItemKind, Part};
use domain::tool_call::{Details, RejectedBy, ToolCall, ToolState};
use domain::{Event, ItemId, TextCursor};
use serde::Serialize;

use super::events::{RunEvent, Summary, UsageMembers};
use super::{Exit, OutputFormat};
use crate::text::clean;

/// Progress that says nothing to a person who reads a log.
const ORDINARY_PROGRESS: [&str; 3] = ["Waiting model", "Generating", "Calling tool"];

pub(super) struct Printer<'a> {
    pub(super) format: OutputFormat,
    pub(super) to_terminal: bool,
    /// Print the answer at the end, as JSON.
    pub(super) hold_answer: bool,
    /// Print only failures to stderr.
    pub(super) quiet: bool,
    pub(super) out: &'a mut dyn Write,
    pub(super) err: &'a mut dyn Write,
    pub(super) write_error: Option<io::Error>,
}

impl Printer<'_> {
    pub(super) fn is_json(&self) -> bool {
        self.format == OutputFormat::Events
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.format {
            OutputFormat::Events => self.event(&RunEvent::Text { text }),
            OutputFormat::Text if !self.hold_answer => {
                let text = if self.to_terminal { clean(text) } else { text.into() };
                self.write(text.as_bytes());
            }
            OutputFormat::Text | OutputFormat::Summary => {}
        }
    }

    /// Ends the line of a text that another text follows.
    fn end_line(&mut self) {
        if self.format == OutputFormat::Text && !self.hold_answer {
            self.write(b"\n");
        }
    }

    pub(super) fn event(&mut self, event: &RunEvent<'_>) {
        self.json(event);
    }

    /// The only event, or the object, of a run that could not start.
    pub(super) fn never_started(&mut self, outcome: &'static str, exit: Exit, message: &str) {
        let exit = exit as u8;
        match self.format {
            OutputFormat::Events => self.event(&RunEvent::never_started(outcome, exit, message)),
            OutputFormat::Summary => {
                self.json(&Summary::never_started(outcome, exit, message, &UsageMembers::default()));
            }
            OutputFormat::Text => {}
        }
    }

    pub(super) fn json(&mut self, value: &impl Serialize) {
        if let Ok(mut text) = serde_json::to_vec(value) {
            text.push(b'\n');
            self.write(&text);
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.write_error.is_some() {
            return;
        }
        match self.out.write_all(bytes).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => self.write_error = Some(error),
            Ok(()) | Err(_) => {}
        }
    }

    pub(super) fn progress(&mut self, text: &str) {
        if self.is_json() {
            self.event(&RunEvent::Progress { text });
        } else if !self.quiet && !ORDINARY_PROGRESS.contains(&text) {
            self.message(text);
        }
    }

    pub(super) fn notice(&mut self, text: &str) {
        if self.is_json() {
            self.event(&RunEvent::Notice { text });
        } else if !self.quiet {
            self.message(text);
        }
    }

    /// A line on stderr.
    pub(super) fn message(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", clean(text));
    }
}

/// Tracks the printed output.
#[derive(Default)]
pub(super) struct OutputState {
    cursors: HashMap<ItemId, TextCursor>,
    states: HashMap<ItemId, &'static str>,
    /// The item whose text was printed last, and whether the text ended its line.
    last_text: Option<(ItemId, bool)>,
    /// The full text of the last answer.
    pub(super) answer: String,
    pub(super) usage: UsageMembers,
    /// A call was rejected because nobody could approve it.
    pub(super) approval_missing: bool,
}

impl OutputState {
    pub(super) fn print_event(&mut self, event: &Event, printer: &mut Printer<'_>) {
        match &event.body {
            EventBody::Delta(delta) => {
                self.print_growth(delta.item, delta.channel, delta.offset, &delta.text, printer)
            }
            EventBody::Progress { text } => printer.progress(text),
            EventBody::Fact(recorded) => self.print_fact(&recorded.fact, printer),
            EventBody::Catalog(_) | EventBody::Lost { .. } => {}
        }
    }

    fn print_fact(&mut self, fact: &Fact, printer: &mut Printer<'_>) {
        if let Fact::ItemGrew { item, channel, offset, text } = fact {
            self.print_growth(*item, *channel, *offset, text, printer);
        } else if let Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } =
            fact
        {
            self.print_item(item, printer);
        } else if let Fact::UsageChanged { usage } = fact {
            self.usage = UsageMembers::new(usage);
            if printer.is_json() {
                printer.event(&RunEvent::Usage(self.usage.clone()));
            }
        } else if let Fact::Notice { notice } = fact {
            printer.notice(&notice.text);
        }
    }

    fn print_item(&mut self, item: &Item, printer: &mut Printer<'_>) {
        if let ItemKind::AgentMessage { text, .. } = &item.kind {
            self.print_growth(item.id, Channel::Text, 0, text, printer);
            self.answer = text.clone();
        } else if let ItemKind::Reasoning { text, .. } = &item.kind {
            self.print_growth(item.id, Channel::Reasoning, 0, text, printer);
        } else if let ItemKind::ToolCall(call) = &item.kind {
            self.print_call(item.id, call, printer);
        } else if let ItemKind::Note(note) = &item.kind {
            printer.notice(&note.text);
        } else if let ItemKind::SystemText { text } = &item.kind {
            self.print_text(item.id, text, printer);
            self.answer.push_str(text);
        }
    }

    /// Texts of different items begin on lines of their own.
    fn print_text(&mut self, id: ItemId, text: &str, printer: &mut Printer<'_>) {
        if self.last_text.is_some_and(|(last, is_ended)| last != id && !is_ended) {
            printer.end_line();
        }
        printer.text(text);
        self.last_text = Some((id, text.ends_with('\n')));
    }

    fn print_growth(
        &mut self,
        id: ItemId,
        channel: Channel,
        offset: u64,
        text: &str,
        printer: &mut Printer<'_>,
    ) {
        if !matches!(channel, Channel::Text | Channel::Reasoning) {
            return;
        }
        let Some(rest) = self.cursors.entry(id).or_default().advance(offset, text) else { return };
        if channel == Channel::Text {
            self.answer.push_str(rest);
            self.print_text(id, rest, printer);
        } else if printer.is_json() {
            printer.event(&RunEvent::Reasoning { text: rest });
        }
    }

    fn print_call(&mut self, id: ItemId, call: &ToolCall, printer: &mut Printer<'_>) {
        let state = match &call.state {
            ToolState::Preparing | ToolState::Waiting { .. } => return,
            ToolState::Running => "running",
            ToolState::Done => "done",
            ToolState::Rejected { by } => {
                self.approval_missing |= *by == RejectedBy::Unasked;
                "rejected"
            }
            ToolState::Stopped { .. } => "stopped",
        };
        if self.states.insert(id, state) == Some(state) {
            return;
        }
        if printer.is_json() {
            printer.event(&tool_event(id, call, state));
        } else if !printer.quiet && (state != "done" || call.error) {
            let title = if call.summary.is_empty() { &call.name } else { &call.summary };
            let state = if call.error && state == "done" { "failed" } else { state };
            printer.message(&format!("{title} ({state})"));
        }
    }
}

fn tool_event<'a>(id: ItemId, call: &'a ToolCall, state: &'static str) -> RunEvent<'a> {
    let texts: Vec<&str> = call.result.iter().map(part_text).collect();
    let diff = match &call.details {
        Some(Details::FileChange(change)) => Some(change.diff.as_str()),
        Some(
            Details::Shell { .. } | Details::Tasks { .. } | Details::Json { .. } | Details::Subagent { .. },
        )
        | None => None,
    };
    RunEvent::Tool {
        id: id.to_string(),
        name: if call.server.is_empty() {
            call.name.clone()
        } else {
            format!("{}__{}", call.server, call.name)
        },
        state,
        summary: &call.summary,
        error: call.error,
        input: call.input.as_ref(),
        output: call.state.is_over().then(|| texts.join("\n")),
        diff,
    }
}

fn part_text(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        Part::Image { .. } => "(an image)",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::{Recorded, SessionId, TurnId};

    use super::*;

    fn ended(id: u64, text: &str) -> Event {
        let kind = ItemKind::AgentMessage { text: text.to_owned(), interrupted: false, provider: None };
        let item = Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind };
        let fact = Fact::ItemEnded { item };
        Event::fact(SessionId::new("s"), Arc::new(Recorded { number: id, at: 0, fact }))
    }

    fn printed(format: OutputFormat, hold_answer: bool, texts: &[&str]) -> String {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut printer = Printer {
            format,
            to_terminal: false,
            hold_answer,
            quiet: true,
            out: &mut out,
            err: &mut err,
            write_error: None,
        };
        let mut state = OutputState::default();
        for (id, text) in (1..).zip(texts) {
            state.print_event(&ended(id, text), &mut printer);
            state.print_event(&ended(id, text), &mut printer);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_of_different_answers_begin_on_lines_of_their_own() {
        let text = OutputFormat::Text;
        assert_eq!(printed(text, false, &["I look.", "Found.\n", "Done."]), "I look.\nFound.\nDone.");
        assert_eq!(printed(text, true, &["I look.", "Done."]), "", "the answer is held");
        let events = printed(OutputFormat::Events, false, &["I look.", "Done."]);
        let all: Vec<serde_json::Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(all.len(), 2, "{events}");
        assert_eq!((&all[0]["text"], &all[1]["text"]), (&"I look.".into(), &"Done.".into()));
    }
}
