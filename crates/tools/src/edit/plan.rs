//! What a requested change makes of a document. Pure: no disk, no client.

use super::document::{Document, Encoding, Splice};
use super::line_ends::NormalizedText;
use super::matching::{self, NoMatch, Repair, Replacement};
use super::patch::{self, Hunk};

/// What a model asks for.
#[derive(Clone, Debug)]
pub enum Change {
    Replace {
        old: String,
        new: String,
        all: bool,
    },
    /// Several replacements, each in what the ones before it left.
    ReplaceEach(Vec<TextEdit>),
    Patch(Vec<Hunk>),
    WriteAll {
        content: String,
    },
}

/// One of several replacements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextEdit {
    pub old: String,
    pub new: String,
    pub all: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedChange {
    pub bytes: Vec<u8>,
    pub text: String,
    /// How many places were changed.
    pub replacements: usize,
    /// What was wrong in the text that was looked for.
    pub repair: Repair,
}

/// Why a change cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedChange {
    pub reason: String,
    /// Lines of the file that help to put it right, where the model may see the file.
    pub excerpt: Option<String>,
}

impl RefusedChange {
    pub fn into_message(self, may_see: bool) -> String {
        match self.excerpt {
            Some(excerpt) if may_see => format!("{}\n{excerpt}", self.reason),
            _ => self.reason,
        }
    }
}

impl From<String> for RefusedChange {
    fn from(reason: String) -> Self {
        Self { reason, excerpt: None }
    }
}

impl From<&str> for RefusedChange {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

/// `None`: the file does not exist.
pub fn plan(before: Option<&Document>, change: &Change) -> Result<PlannedChange, RefusedChange> {
    match (change, before) {
        (Change::WriteAll { content }, None) => Ok(PlannedChange {
            bytes: content.as_bytes().to_vec(),
            text: content.clone(),
            replacements: 1,
            repair: Repair::Exact,
        }),
        (Change::WriteAll { content }, Some(document)) => {
            replace_all_text(document, content).map_err(RefusedChange::from)
        }
        (Change::Replace { .. } | Change::ReplaceEach(_) | Change::Patch(_), None) => {
            Err("The file does not exist. Use write_file to create it.".into())
        }
        (Change::Replace { old, new, all }, Some(document)) => replace(document, old, new, *all),
        (Change::ReplaceEach(edits), Some(document)) => replace_each(document, edits),
        (Change::Patch(hunks), Some(document)) => apply_hunks(document, hunks),
    }
}

fn replace(document: &Document, old: &str, new: &str, all: bool) -> Result<PlannedChange, RefusedChange> {
    let (old, new) = (NormalizedText::new(old), NormalizedText::new(new));
    let (old, new) = (old.text(), new.text());
    if old.is_empty() {
        return Err("The text to replace is empty. Use write_file to write a whole file.".into());
    }
    if old == new {
        return Err("The old and the new text are the same, so nothing would change.".into());
    }
    let plain = NormalizedText::new(document.text());
    let found = matching::find(plain.text(), Replacement { old, new, all })
        .map_err(|missed| explain_miss(missed, "or set all_occurrences"))?;
    let planned = apply_changes(document, &plain, &found.changes, found.repair)?;
    if planned.bytes == document.bytes() {
        return Err("The file already says that, so nothing would change.".into());
    }
    Ok(planned)
}

fn replace_each(document: &Document, edits: &[TextEdit]) -> Result<PlannedChange, RefusedChange> {
    let mut now = document.clone();
    let (mut replacements, mut repair) = (0, Repair::Exact);
    for (number, TextEdit { old, new, all }) in edits.iter().enumerate() {
        let planned = replace(&now, old, new, *all).map_err(|refused| RefusedChange {
            reason: format!("Edit {} of {}: {} No edit was made.", number + 1, edits.len(), refused.reason),
            ..refused
        })?;
        replacements += planned.replacements;
        repair = repair.max(planned.repair);
        now = now.after(planned.bytes, planned.text);
    }
    Ok(PlannedChange { bytes: now.bytes().to_vec(), text: now.text().to_owned(), replacements, repair })
}

fn apply_hunks(document: &Document, hunks: &[Hunk]) -> Result<PlannedChange, RefusedChange> {
    let plain = NormalizedText::new(document.text());
    let placed = patch::place_all(plain.text(), hunks).map_err(|missed| {
        let refused = explain_miss(missed.why, "or put `@@ ` and the line that opens its function before it");
        let which = if hunks.len() == 1 { String::new() } else { format!("Hunk {}: ", missed.hunk) };
        RefusedChange { reason: format!("{which}{}", refused.reason), ..refused }
    })?;
    let planned = apply_changes(document, &plain, &placed.changes, placed.repair)?;
    if planned.bytes == document.bytes() {
        return Err("The file already says that, so nothing would change.".into());
    }
    Ok(planned)
}

fn apply_changes(
    document: &Document,
    plain: &NormalizedText<'_>,
    changes: &[(std::ops::Range<usize>, String)],
    repair: Repair,
) -> Result<PlannedChange, String> {
    let splices: Vec<Splice> =
        changes.iter().flat_map(|(range, new)| plain.change(range.clone(), new)).collect();
    apply(document, &splices, changes.len(), repair)
}

/// Lines that stay keep their bytes. Text with `\r\n` of its own is taken as it is written.
fn replace_all_text(document: &Document, content: &str) -> Result<PlannedChange, String> {
    if document.encoding() == Encoding::Utf8Stray && content.contains(char::REPLACEMENT_CHARACTER) {
        return Err(
            "The file has bytes that are not UTF-8, shown as \u{fffd}, which writing it whole would lose. \
                    Change the other lines with edit_file."
                .to_owned(),
        );
    }
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let splices = if content.contains("\r\n") {
        vec![(0..document.text().len(), content.to_owned())]
    } else {
        let plain = NormalizedText::new(document.text());
        plain.change(0..plain.text().len(), content)
    };
    apply(document, &splices, 1, Repair::Exact)
}

fn apply(
    document: &Document,
    splices: &[Splice],
    replacements: usize,
    repair: Repair,
) -> Result<PlannedChange, String> {
    let bytes = document.splice(splices)?;
    let mut text = String::with_capacity(document.text().len());
    let mut at = 0;
    for (range, new) in splices {
        text.push_str(&document.text()[at..range.start]);
        text.push_str(new);
        at = range.end;
    }
    text.push_str(&document.text()[at..]);
    Ok(PlannedChange { bytes, text, replacements, repair })
}

/// `advice`: what else helps where the text is there more than once.
fn explain_miss(missed: NoMatch, advice: &str) -> RefusedChange {
    match missed {
        NoMatch::Ambiguous { count, lines } => {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            let lines = lines.join(", ");
            RefusedChange::from(format!(
                "The text to replace is there {count} times, at lines {lines}. Give more lines around it so that it \
                 is there once, {advice}."
            ))
        }
        NoMatch::Absent { nearest } => {
            let reason =
                "The text to replace is not in the file. Read the file again and copy the text from it.";
            RefusedChange { reason: reason.to_owned(), excerpt: nearest }
        }
        NoMatch::Doubtful { line, nearest } => {
            let reason = format!(
                "The text at line {line} differs from yours in its blanks or quotes, and it is in doubt how your new text \
                 is to be written there. Copy the text from the file."
            );
            RefusedChange { reason, excerpt: nearest }
        }
        NoMatch::UnclearEscapes => {
            "The text has `\\n` where the file has line ends, and what its other escapes mean is in doubt. Send real line \
             ends."
                .into()
        }
    }
}
