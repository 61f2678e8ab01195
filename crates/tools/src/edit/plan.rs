//! What a requested change makes of a document. Pure: no disk, no client.

use super::document::{Document, Encoding, Splice};
use super::line_ends::NormalizedText;
use super::matching::{self, NoMatch, Replacement};

/// What a model asks for.
#[derive(Clone, Debug)]
pub enum Change {
    Replace { old: String, new: String, all: bool },
    WriteAll { content: String },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedChange {
    pub bytes: Vec<u8>,
    pub text: String,
    /// How many places were changed.
    pub replacements: usize,
    /// The whitespace of the text that was looked for was not that of the file.
    pub forgiven: bool,
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
        (Change::Replace { .. }, None) => Err("The file does not exist. Use write_file to create it.".into()),
        (Change::Replace { old, new, all }, Some(document)) => {
            replace(document, NormalizedText::new(old).text(), NormalizedText::new(new).text(), *all)
        }
        (Change::WriteAll { content }, None) => Ok(PlannedChange {
            bytes: content.as_bytes().to_vec(),
            text: content.clone(),
            replacements: 1,
            forgiven: false,
        }),
        (Change::WriteAll { content }, Some(document)) => {
            replace_all_text(document, content).map_err(RefusedChange::from)
        }
    }
}

fn replace(document: &Document, old: &str, new: &str, all: bool) -> Result<PlannedChange, RefusedChange> {
    if old.is_empty() {
        return Err("The text to replace is empty. Use write_file to write a whole file.".into());
    }
    if old == new {
        return Err("The old and the new text are the same, so nothing would change.".into());
    }
    let plain = NormalizedText::new(document.text());
    let found = matching::find(plain.text(), Replacement { old, new, all })
        .map_err(|missed| explain_miss(&missed, plain.text()))?;
    let mut splices: Vec<Splice> = Vec::new();
    for (range, new) in &found.changes {
        splices.extend(plain.change(range.clone(), new));
    }
    let planned = apply(document, &splices, found.changes.len(), found.forgiven)?;
    if planned.bytes == document.bytes() {
        return Err("The file already says that, so nothing would change.".into());
    }
    Ok(planned)
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
    apply(document, &splices, 1, false)
}

fn apply(
    document: &Document,
    splices: &[Splice],
    replacements: usize,
    forgiven: bool,
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
    Ok(PlannedChange { bytes, text, replacements, forgiven })
}

fn explain_miss(missed: &NoMatch, text: &str) -> RefusedChange {
    match missed {
        NoMatch::Ambiguous { count, lines } => {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            let lines = lines.join(", ");
            RefusedChange::from(format!(
                "The text to replace is there {count} times, at lines {lines}. Give more lines around it so that it \
                 is there once, or set all_occurrences."
            ))
        }
        NoMatch::Absent { nearest } => {
            let reason =
                "The text to replace is not in the file. Read the file again and copy the text from it.";
            let excerpt = nearest.map(|line| {
                let from = line.saturating_sub(3);
                let mut near = text.split('\n').skip(from).take(9).collect::<Vec<_>>().join("\n");
                near.truncate(near.floor_char_boundary(2_000));
                format!("Most like it are the lines from {}:\n{near}", from + 1)
            });
            RefusedChange { reason: reason.to_owned(), excerpt }
        }
    }
}
