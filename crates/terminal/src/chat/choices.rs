//! Commands that choose how the screen looks and works, and `/copy`.

use domain::command::SessionSettings;
use domain::item::{Item, ItemKind};
use serde_json::Value;

use super::picker::{Choice, Picker, Row};
use super::screen::{Effect, Overlay, Screen};
use super::status_line::StatusLine;
use super::tool;
use crate::text::clean_line;

impl Screen {
    /// `/theme`, `/theme light`.
    pub(super) fn choose_theme(&mut self, name: &str) {
        if name.is_empty() {
            let rows = self.look.themes.iter().map(|(name, theme)| Row {
                text: name.clone(),
                detail: if *theme == self.theme { "now".to_owned() } else { String::new() },
                choice: Choice::Theme(name.clone()),
            });
            self.overlay = Some(Overlay::Picker(Picker::new("Theme", rows.collect())));
            return;
        }
        let Some((name, theme)) = self.look.themes.iter().find(|(known, _)| known == name).cloned() else {
            let names: Vec<&str> = self.look.themes.iter().map(|(name, _)| name.as_str()).collect();
            return self
                .flash(format!("There is no theme {name}. Choose one of these: {}.", names.join(", ")));
        };
        self.theme = theme;
        self.transcript.lay_out_anew();
        self.push_effect(Effect::SaveSetting { keys: vec!["chat", "theme"], value: Value::String(name) });
    }

    /// `/effort`, `/effort high`, `/effort default`.
    pub(super) fn choose_effort(&mut self, wanted: &str) {
        let model = self.model().unwrap_or_default().to_owned();
        let known = self.catalog.models.iter().find(|known| known.id == model);
        let levels = known.map(|known| known.variants.clone()).unwrap_or_default();
        if levels.is_empty() {
            return self.flash(format!("{model} has no levels of effort to choose from."));
        }
        let now = self.settings.variant.clone().filter(|level| !level.is_empty());
        let all = std::iter::once("default".to_owned()).chain(levels);
        if wanted.is_empty() {
            let rows = all.map(|level| Row {
                text: level.clone(),
                detail: if level == now.as_deref().unwrap_or("default") { "now" } else { "" }.to_owned(),
                choice: Choice::Effort(level),
            });
            self.overlay = Some(Overlay::Picker(Picker::new("Effort", rows.collect())));
            return;
        }
        let all: Vec<String> = all.collect();
        if !all.iter().any(|level| level == wanted) {
            return self.flash(format!("Choose one of these: {}.", all.join(", ")));
        }
        let variant = if wanted == "default" { String::new() } else { wanted.to_owned() };
        self.flash(format!("Effort: {wanted}"));
        self.configure(SessionSettings { variant: Some(variant), ..SessionSettings::default() });
    }

    /// `/find words`: the items that have them, the newest first.
    pub(super) fn find_in_chat(&mut self, words: &str) {
        let wanted = words.to_lowercase();
        let found = self.transcript.items().filter_map(|item| {
            let text = searched_text(item);
            let line = text.lines().find(|line| line.to_lowercase().contains(&wanted))?;
            Some(Row { text: clean_line(line.trim()), detail: String::new(), choice: Choice::Show(item.id) })
        });
        let mut rows: Vec<Row> = found.collect();
        rows.reverse();
        let mut picker = Picker::new("Found in this chat", rows);
        picker.empty_hint = "These words are not in this chat.";
        self.overlay = Some(Overlay::Picker(picker));
    }

    /// `/vim`.
    pub(super) fn toggle_vi(&mut self) {
        self.vi.is_on = !self.vi.is_on;
        self.vi.is_normal = false;
        self.flash(match self.vi.is_on {
            true => "The input is edited with vi's keys; Esc leaves insert mode.",
            false => "The input is edited as usual again.",
        });
        let value = Value::Bool(self.vi.is_on);
        self.push_effect(Effect::SaveSetting { keys: vec!["chat", "viMode"], value });
    }

    /// `/statusline`, `/statusline {model} · {cost}`, `/statusline off`.
    pub(super) fn change_status_line(&mut self, wanted: &str) {
        let text = match (wanted, &self.look.status_line) {
            ("", None) => {
                return self
                    .flash("The last line is the usual one. /statusline {model} · {cost} changes it.");
            }
            ("", Some(StatusLine::Template(text))) => return self.flash(format!("The last line: {text}")),
            ("", Some(StatusLine::Command(text))) => return self.flash(format!("The last line: !{text}")),
            ("off", _) => "",
            (text, _) => text,
        };
        self.look.status_line = StatusLine::read(text);
        self.look.status_output.clear();
        self.request_status();
        let value = Value::String(text.to_owned());
        self.push_effect(Effect::SaveSetting { keys: vec!["chat", "statusLine"], value });
    }

    /// `/copy`: the last answer; `/copy 2`: its second code block.
    pub(super) fn copy_answer(&mut self, number: &str) {
        let answer = self.transcript.items().filter_map(|item| {
            let ItemKind::AgentMessage { text, .. } = &item.kind else { return None };
            Some(text.clone()).filter(|text| !text.is_empty())
        });
        let Some(answer) = answer.last() else { return self.flash("There is no answer to copy yet.") };
        if number.is_empty() {
            self.push_effect(Effect::Copy(answer));
            return self.flash("The last answer is in the clipboard, if the terminal allows it (OSC 52).");
        }
        let blocks = code_blocks(&answer);
        let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match at.and_then(|at| blocks.get(at)) {
            Some(block) => {
                self.push_effect(Effect::Copy(block.clone()));
                self.flash(format!(
                    "Code block {number} is in the clipboard, if the terminal allows it (OSC 52)."
                ));
            }
            None => self
                .flash(format!("The last answer has {} code blocks, and no block {number}.", blocks.len())),
        }
    }
}

/// What was said, or a call with its result.
fn searched_text(item: &Item) -> String {
    if let ItemKind::UserMessage { text, .. } | ItemKind::AgentMessage { text, .. } = &item.kind {
        return text.clone();
    }
    let ItemKind::ToolCall(call) = &item.kind else { return String::new() };
    let result = call.result.iter().map(tool::part_text);
    std::iter::once(tool::title(call).as_str()).chain(result).collect::<Vec<_>>().join("\n")
}

/// The contents of the fenced blocks of an answer, in order.
fn code_blocks(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let fence = &bare[..bare.len() - bare.trim_start_matches(['`', '~']).len()];
        open = match open.take() {
            None if fence.len() >= 3 => Some((fence, Vec::new())),
            None => None,
            Some((begin, lines)) if fence.starts_with(begin) && bare.trim_end() == fence => {
                blocks.push(lines.join("\n"));
                None
            }
            Some((begin, mut lines)) => {
                lines.push(line);
                Some((begin, lines))
            }
        };
    }
    blocks.extend(open.map(|(_, lines)| lines.join("\n")));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_are_numbered() {
        let text = "a\n```rust\nfn x() {}\n```\nb\n~~~~\n```\nnested\n```\n~~~~\n```\nopen";
        assert_eq!(code_blocks(text), ["fn x() {}", "```\nnested\n```", "open"]);
        assert!(code_blocks("no code, `x`").is_empty());
    }
}
