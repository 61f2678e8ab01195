//! Going back to an earlier prompt: what was said since, the file changes since, or both.
//!
//! Must not know how changes are taken back. Invariant: nothing happens before the user has chosen what.

use std::collections::BTreeMap;

use domain::command::RollbackScope;
use domain::tool_call::Details;
use domain::{Item, ItemId, ItemKind};

use super::picker::{Choice, Picker, Row};
use super::screen::{Effect, Overlay, Screen};
use crate::text::clean_line;

impl Screen {
    /// `/rewind`, or Esc twice: the list of earlier prompts.
    pub(super) fn open_rewind(&mut self) {
        if self.busy.is_some() {
            return self.flash("An answer is running. Stop it first (Esc).");
        }
        let mut rows: Vec<Row> = Vec::new();
        for (item, text) in self.prompts() {
            let detail = summary(&self.changes_since(item));
            rows.push(Row { text: clean_line(&text), detail, choice: Choice::RewindTo(item) });
        }
        rows.reverse();
        let mut picker = Picker::new("Go back to before a prompt", rows);
        picker.empty_hint = "There is no earlier prompt in this chat.";
        self.overlay = Some(Overlay::Picker(picker));
    }

    /// The second list: what goes back.
    pub(super) fn choose_rewind(&mut self, item: ItemId) {
        let changes = self.changes_since(item);
        let row = |text: &str, detail: String, scope| Row {
            text: text.to_owned(),
            detail,
            choice: Choice::Rewind(item, scope),
        };
        let files = summary(&changes);
        let rows = vec![
            row("What was said and the files", files.clone(), RollbackScope::Both),
            row("What was said; files stay as they are", String::new(), RollbackScope::Messages),
            row("The files; the chat stays", files, RollbackScope::Files),
        ];
        self.overlay = Some(Overlay::Picker(Picker::new("Take back", rows)));
    }

    pub(super) fn rewind(&mut self, item: ItemId, scope: RollbackScope) {
        let prompt = self.prompts().into_iter().find(|(id, _)| *id == item).map(|(_, text)| text);
        if scope != RollbackScope::Files
            && let Some(text) = prompt
        {
            self.input.set(&text);
        }
        self.push_effect(Effect::Rollback { from: item, scope });
        self.transcript.go_to_end();
    }

    fn prompts(&self) -> Vec<(ItemId, String)> {
        let prompt = |item: &Item| {
            let ItemKind::UserMessage { text, .. } = &item.kind else { return None };
            Some((item.id, text.clone()))
        };
        self.transcript.items().filter_map(prompt).collect()
    }

    /// The files that calls after this item changed, with the lines added and removed.
    fn changes_since(&self, item: ItemId) -> BTreeMap<String, (u64, u64)> {
        let mut files: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for item in self.transcript.items().skip_while(|it| it.id != item) {
            let ItemKind::ToolCall(call) = &item.kind else { continue };
            let Some(Details::FileChange(change)) = call.details.as_ref().filter(|_| !call.error) else {
                continue;
            };
            let lines = files.entry(change.path.display().to_string()).or_default();
            lines.0 += u64::from(change.lines_added);
            lines.1 += u64::from(change.lines_removed);
        }
        files
    }
}

/// `2 files: a.rs +3 −1, b.rs +1 −0`.
fn summary(files: &BTreeMap<String, (u64, u64)>) -> String {
    const NAMED: usize = 3;
    let named = files.iter().take(NAMED).map(|(path, (added, removed))| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        format!("{} +{added} −{removed}", clean_line(name))
    });
    let mut names = named.collect::<Vec<_>>().join(", ");
    if files.len() > NAMED {
        names.push_str(", …");
    }
    match files.len() {
        0 => "no file edited".to_owned(),
        1 => names,
        count => format!("{count} files: {names}"),
    }
}
