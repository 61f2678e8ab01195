//! Names that people give, and why a name or an edit is refused.

use crate::plan::words::line;
use std::fmt;

/// Why an edit cannot be made, and what could be named instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPossible {
    pub message: String,
    pub alternatives: Vec<String>,
}

impl fmt::Display for NotPossible {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for NotPossible {}

/// The longest name of a title, view or column.
const MAX_LABEL: usize = 80;

pub(super) fn label(text: &str) -> Result<String, NotPossible> {
    let refused = |message: String| Err(NotPossible { message, alternatives: Vec::new() });
    let length = text.trim().chars().count();
    if length > MAX_LABEL {
        return refused(format!("A name can have {MAX_LABEL} characters; this one has {length}."));
    }
    if text.chars().any(is_invisible) {
        return refused("A name cannot hold control characters or invisible marks.".to_owned());
    }
    let label = line(text, MAX_LABEL);
    if label.is_empty() {
        return refused("A name cannot be empty.".to_owned());
    }
    Ok(label)
}

/// Characters that change how the text around them is shown.
fn is_invisible(c: char) -> bool {
    (c.is_control() && !c.is_whitespace())
        || matches!(c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

pub(super) fn join(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
