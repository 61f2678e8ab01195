//! A list with a filter, to choose a model, a behavior, a chat or a point to fork from.

use domain::command::RollbackScope;
use domain::store::SessionSummary;
use domain::{ItemId, SessionId};

use super::transcript::Transcript;
use crate::text::clean_line;

/// Shown where no model can be used.
pub(crate) const NO_MODEL_HINT: &str = "No model can be used yet. Start Ollama or LM Studio with a model, run `dragoman models pull` for one that \
    runs inside Dragoman, run `dragoman login anthropic`, or set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY. \
    /doctor shows more.";

#[derive(Clone, PartialEq, Debug)]
pub enum Choice {
    Model(String),
    Behavior(String),
    Chat(SessionId),
    /// Fork up to and including this item; `None`: the whole chat.
    Fork(Option<ItemId>),
    /// Put an earlier prompt into the input.
    Prompt(String),
    /// Ask what to take back from this message on.
    RewindTo(ItemId),
    Rewind(ItemId, RollbackScope),
    Theme(String),
    /// Scroll to this item.
    Show(ItemId),
    Effort(String),
}

#[derive(Debug)]
pub struct Row {
    pub text: String,
    pub detail: String,
    pub choice: Choice,
}

#[derive(Debug)]
pub struct Picker {
    pub title: &'static str,
    rows: Vec<Row>,
    pub filter: String,
    pub(crate) chosen: usize,
    /// Shown if the list has no entries.
    pub(crate) empty_hint: &'static str,
}

impl Picker {
    pub fn new(title: &'static str, rows: Vec<Row>) -> Self {
        Self { title, rows, filter: String::new(), chosen: 0, empty_hint: "There is nothing to choose from." }
    }

    pub fn models(models: impl Iterator<Item = String>, now: Option<&str>) -> Self {
        let row = |model: String| {
            let detail = if now == Some(model.as_str()) { "now" } else { "" };
            Row { text: clean_line(&model), detail: detail.to_owned(), choice: Choice::Model(model) }
        };
        Self { empty_hint: NO_MODEL_HINT, ..Self::new("Model", models.map(row).collect()) }
    }

    pub fn behaviors(behaviors: &[String], now: Option<&str>) -> Self {
        let row = |behavior: &String| {
            let detail = if now == Some(behavior.as_str()) { "now" } else { "" };
            Row {
                text: clean_line(behavior),
                detail: detail.to_owned(),
                choice: Choice::Behavior(behavior.clone()),
            }
        };
        Self::new("Behavior", behaviors.iter().map(row).collect())
    }

    /// Omits the open chat and chats without a message.
    pub fn chats(chats: Vec<SessionSummary>, current: Option<&SessionId>, now: u64) -> Self {
        let chats = chats.into_iter().filter(|chat| Some(&chat.id) != current && chat.message_count > 0);
        let row = |chat: SessionSummary| {
            let title = chat.title.as_deref().map(clean_line).filter(|title| !title.is_empty());
            Row {
                text: title.unwrap_or_else(|| "untitled".to_owned()),
                detail: match chat.message_count {
                    1 => format!("{}, 1 message", age(chat.updated_at, now)),
                    count => format!("{}, {count} messages", age(chat.updated_at, now)),
                },
                choice: Choice::Chat(chat.id),
            }
        };
        Self::new("Chats of this folder", chats.map(row).collect())
    }

    /// Earlier prompts, the newest first, each once.
    pub fn prompts(earlier: &[String]) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for prompt in earlier.iter().rev() {
            let choice = Choice::Prompt(prompt.clone());
            if rows.iter().all(|row| row.choice != choice) {
                rows.push(Row { text: clean_line(prompt), detail: String::new(), choice });
            }
        }
        Self { empty_hint: "There is no earlier prompt in this chat.", ..Self::new("Earlier prompts", rows) }
    }

    pub fn forks(transcript: &Transcript) -> Self {
        let whole =
            Row { text: "The whole chat".to_owned(), detail: String::new(), choice: Choice::Fork(None) };
        let messages = transcript.user_messages().into_iter().rev();
        let rows = messages.map(|(turn, text)| Row {
            text: format!("Up to the answer to: {}", clean_line(text)),
            detail: String::new(),
            choice: Choice::Fork(transcript.end_of(turn)),
        });
        Self::new("Fork", std::iter::once(whole).chain(rows).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that match the filter.
    pub fn shown(&self) -> Vec<&Row> {
        let filter = self.filter.to_lowercase();
        self.rows.iter().filter(|row| row.text.to_lowercase().contains(&filter)).collect()
    }

    pub fn type_in(&mut self, text: &str) {
        self.filter.push_str(&clean_line(text));
        self.chosen = 0;
    }

    pub fn erase(&mut self) {
        self.filter.pop();
        self.chosen = 0;
    }

    pub fn move_by(&mut self, rows: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(rows).min(last);
    }

    pub fn choice(&self) -> Option<Choice> {
        self.shown().get(self.chosen).map(|row| row.choice.clone())
    }
}

/// The age in words; both times are milliseconds.
pub(crate) fn age(then: u64, now: u64) -> String {
    let seconds = now.saturating_sub(then) / 1000;
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{count} {} ago", if count == 1 { unit.trim_end_matches('s') } else { unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_narrows_the_list() {
        let names = ["anthropic/claude", "openai/gpt", "openai/o4"];
        let mut picker = Picker::models(names.iter().map(ToString::to_string), Some("openai/o4"));
        picker.type_in("OpenAI");
        picker.move_by(5);
        assert_eq!(picker.choice(), Some(Choice::Model("openai/o4".into())));
        picker.type_in("zzz");
        assert_eq!(picker.choice(), None);
    }

    #[test]
    fn ages_are_told_in_words() {
        for (seconds, words) in [(5, "just now"), (60, "1 min ago"), (7200, "2 h ago"), (86_400, "1 day ago")]
        {
            assert_eq!(age(0, seconds * 1000), words);
        }
    }
}
