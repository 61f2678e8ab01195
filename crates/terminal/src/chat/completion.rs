//! Suggestions while the user types `/` at the start or `@` anywhere: commands and files of the engine.

use std::ops::Range;
use std::path::{Path, PathBuf};

use domain::command::{Context, SlashCommand};
use domain::slash_commands::{self, CommandSpec, SLASH_COMMANDS};

use crate::text::clean_line;

/// The height of the list.
pub(crate) const MAX_ROWS: usize = 8;

/// Other names of a command are suggested once so many letters of them are typed.
const MIN_ALIAS_LETTERS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionKind {
    Command,
    File,
    /// An argument of a server's prompt; the query is the whole line.
    Argument,
}

/// The word at the cursor that can be completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    pub kind: CompletionKind,
    /// Includes the `/` or `@`.
    pub range: Range<usize>,
    /// Excludes the `/` or `@`.
    pub query: String,
}

#[derive(Clone, Debug)]
pub struct Suggestion {
    /// The text for the input, with its `/` or `@`.
    pub text: String,
    pub detail: String,
    pub context: Option<Context>,
}

pub struct Completion {
    pub word: Word,
    pub suggestions: Vec<Suggestion>,
    pub chosen: usize,
}

impl Completion {
    pub fn move_by(&mut self, down: bool) {
        let count = self.suggestions.len().max(1);
        self.chosen = (self.chosen + if down { 1 } else { count - 1 }) % count;
    }
}

/// The word before the cursor, if it can be completed.
pub(crate) fn word_at(text: &str, cursor: usize) -> Option<Word> {
    let before = text.get(..cursor)?;
    if let Some(query) = before.strip_prefix('/').filter(|rest| !rest.contains(char::is_whitespace)) {
        return Some(Word { kind: CompletionKind::Command, range: 0..cursor, query: query.to_owned() });
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    // Prompts of servers are the commands with a colon.
    let line = before.strip_prefix('/').filter(|line| !line.contains(['\n', '"', '\'']));
    if let Some(line) = line.filter(|line| line.split_whitespace().next().is_some_and(|it| it.contains(':')))
    {
        return Some(Word { kind: CompletionKind::Argument, range: start..cursor, query: line.to_owned() });
    }
    let query = before[start..].strip_prefix('@')?;
    Some(Word { kind: CompletionKind::File, range: start..cursor, query: query.to_owned() })
}

/// Lists the terminal's commands first; they hide commands of the engine with the same name.
pub(crate) fn commands(query: &str, found: Vec<SlashCommand>) -> Vec<Suggestion> {
    let is_meant = |command: &&CommandSpec| {
        let has_alias = || command.aliases.iter().any(|alias| alias.starts_with(query));
        command.name.contains(query) || (query.len() >= MIN_ALIAS_LETTERS && has_alias())
    };
    let of_terminal = SLASH_COMMANDS.iter().filter(|command| command.is_of_terminal());
    let mut suggestions: Vec<Suggestion> = of_terminal
        .filter(is_meant)
        .map(|command| suggestion(format!("/{}", command.name), command.description.to_owned()))
        .collect();
    for command in found {
        let text = format!("/{}", clean_line(&command.name));
        if suggestions.iter().all(|known| known.text != text) {
            suggestions.push(suggestion(text, clean_line(&command.description)));
        }
    }
    suggestions.sort_by_key(|suggestion| !suggestion.text[1..].starts_with(query));
    suggestions
}

/// Whether a line is another name of a command, which needs no completion.
pub(crate) fn is_other_name(line: &str) -> bool {
    line.strip_prefix('/').and_then(slash_commands::by_alias).is_some()
}

/// Whether Enter on a suggestion runs it at once.
pub(super) fn needs_no_words(line: &str) -> bool {
    let command = line.strip_prefix('/').and_then(slash_commands::by_name);
    command
        .is_some_and(|it| it.is_of_terminal() && !matches!(it.name, "login" | "logout" | "add-dir" | "find"))
}

/// Values for an argument. One with spaces is quoted.
pub(crate) fn arguments(found: Vec<String>) -> Vec<Suggestion> {
    let quoted = |value: String| {
        if value.contains(char::is_whitespace) { format!("\"{value}\"") } else { value }
    };
    let is_safe = |value: &String| !value.contains('"');
    let values = found.into_iter().map(|value| clean_line(&value)).filter(is_safe).map(quoted);
    values.map(|value| suggestion(value, String::new())).collect()
}

fn suggestion(text: String, detail: String) -> Suggestion {
    Suggestion { text, detail, context: None }
}

pub(crate) fn contexts(found: Vec<Context>, roots: &[PathBuf]) -> Vec<Suggestion> {
    let suggestions = found.into_iter().filter_map(|context| {
        let (text, detail) = match &context {
            Context::File { path, .. } => (relative(path, roots), ""),
            Context::Directory { path } => (format!("{}/", relative(path, roots)), "folder"),
            Context::RepoMap => ("repo-map".to_owned(), "the tree of the workspace"),
            Context::McpResource(resource) => (resource.name.replace(char::is_whitespace, "-"), "resource"),
            Context::Web { url } => (url.clone(), "page"),
            Context::Cursor { .. } | Context::Code { .. } | Context::Text { .. } | Context::Image { .. } => {
                return None;
            }
        };
        let text = clean_line(&text);
        // A name with spaces could not be found again in the input.
        let fits = !text.is_empty() && !text.contains(char::is_whitespace);
        fits.then(|| Suggestion {
            text: format!("@{text}"),
            detail: detail.to_owned(),
            context: Some(context),
        })
    });
    suggestions.take(50).collect()
}

fn relative(path: &Path, roots: &[PathBuf]) -> String {
    let inside = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    inside.unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor() {
        for (text, expected) in [
            ("/mo", Some((CompletionKind::Command, 0..3, "mo"))),
            ("/", Some((CompletionKind::Command, 0..1, ""))),
            ("/model x", None),
            ("look at @src/ma", Some((CompletionKind::File, 8..15, "src/ma"))),
            ("é @a", Some((CompletionKind::File, 3..5, "a"))),
            ("mail a@b", None),
            ("a / b", None),
            ("/notes:find re", Some((CompletionKind::Argument, 12..14, "notes:find re"))),
            ("/notes:find ", Some((CompletionKind::Argument, 12..12, "notes:find "))),
            ("", None),
        ] {
            let found = word_at(text, text.len());
            let expected = expected.map(|(kind, range, query)| Word { kind, range, query: query.to_owned() });
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn commands_that_begin_so_come_first() {
        assert!(commands("no-such", Vec::new()).is_empty());
        let found = |name: &str| SlashCommand {
            name: name.to_owned(),
            description: String::new(),
            origin: domain::command::SlashOrigin::Native,
            arguments: Vec::new(),
        };
        let suggestions = commands("co", vec![found("icons"), found("compact"), found("model")]);
        assert_eq!(
            suggestions.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(),
            ["/context", "/copy", "/compact", "/icons", "/model"]
        );
    }
}
