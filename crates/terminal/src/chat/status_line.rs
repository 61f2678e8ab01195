//! The user's own last line. Plain data.

/// The user's own last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusLine {
    /// With names in braces.
    Template(String),
    /// A command that prints it.
    Command(String),
}

impl StatusLine {
    /// A command stands after an exclamation mark; an empty text is the usual line.
    pub fn read(text: &str) -> Option<Self> {
        match (text.trim(), text.trim().strip_prefix('!')) {
            ("", _) => None,
            (_, Some(command)) => Some(Self::Command(command.trim().to_owned())),
            (template, None) => Some(Self::Template(template.to_owned())),
        }
    }
}
