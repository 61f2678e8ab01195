//! `/goal`: sets, shows, resumes and ends the goal of a chat.
//!
//! Must not know how a goal is worked on. Invariant: a text that may be prose is no command.

use domain::event::Fact;
use domain::item::{ItemKind, Part};
use domain::note::{Goal, GoalState, Note, NoteAbout};
use domain::{Failure, TurnId};

use crate::session::Session;
use crate::turn::goal;

/// Programs that a condition may begin with.
const PROGRAMS: &[&str] = &[
    "make", "just", "cargo", "npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "python", "python3",
    "pytest", "tox", "uv", "poetry", "go", "mvn", "gradle", "dotnet", "bash", "sh", "test", "grep", "git",
    "ruby", "rake", "rspec", "bundle", "php", "phpunit", "composer", "mix", "swift", "zig", "ctest", "cmake",
    "ninja", "meson", "bazel", "tsc", "eslint", "vitest", "jest", "ruff", "mypy", "stack", "cabal", "dune",
    "flutter", "dart", "sbt", "docker", "diff", "curl", "true", "false",
];
/// Words that commands do not have as arguments.
const PROSE: &[&str] = &[
    "the", "a", "an", "all", "every", "and", "is", "are", "it", "that", "pass", "passes", "sure", "works",
    "work", "until", "when", "should", "must", "succeeds", "green", "no", "with", "for", "of", "in", "to",
];

/// What a `/goal` line asks of the model.
pub(super) struct GoalRequest {
    pub(super) goal: Goal,
    /// The message to the model.
    pub(super) parts: Vec<Part>,
}

/// `None`: the line only shows or ends the goal, or there is none to resume.
pub(super) fn request(session: &Session, rest: &str) -> Option<GoalRequest> {
    let settings = &session.workspace.settings;
    let rest = rest.trim();
    match rest {
        "" | "off" | "stop" | "clear" | "end" => None,
        "resume" | "continue" => {
            let state = session.state();
            let old = goal::current(state.items()).filter(|goal| goal.can_resume())?;
            let goal = goal::new(settings, &old.condition, old.is_command);
            Some(GoalRequest { goal, parts: vec![Part::text("Go on toward the goal.")] })
        }
        condition => {
            let (condition, is_command) = read_condition(condition);
            let goal = goal::new(settings, condition, is_command);
            Some(GoalRequest { goal, parts: vec![Part::text("Work toward the goal.")] })
        }
    }
}

/// The output of a `/goal` that asks nothing of the model.
pub(super) fn answer(session: &Session, turn: TurnId, rest: &str) -> Result<String, Failure> {
    let current = goal::current(session.state().items()).cloned();
    match (rest.trim(), current) {
        ("", current) => Ok(goal::describe(current.as_ref())),
        ("resume" | "continue", _) => {
            Err(Failure::user("There is no goal to continue.").hint("Set one: `/goal make test`."))
        }
        (_, Some(goal)) if goal.state != GoalState::Off => {
            let note = NoteAbout::Goal(Box::new(Goal { state: GoalState::Off, ..goal }));
            let kind = ItemKind::Note(Box::new(Note::for_people(note, "The goal is off.")));
            let item = session.new_item(turn, 0, kind);
            session.commit(vec![Fact::ItemEnded { item }]);
            Ok(String::new())
        }
        (_, _) => Ok("This chat has no goal.".to_owned()),
    }
}

/// The condition, and whether it is a command. Backticks or a leading `!` or `$` say that it is one.
fn read_condition(text: &str) -> (&str, bool) {
    let quoted = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    let marked = quoted.or_else(|| text.strip_prefix('!')).or_else(|| text.strip_prefix("$ ")).map(str::trim);
    if let Some(command) = marked.filter(|command| !command.is_empty()) {
        return (command, true);
    }
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let is_program = PROGRAMS.contains(&first) || first.starts_with("./");
    let is_prose = text.ends_with('.') && !text.ends_with("..")
        || words.any(|word| PROSE.contains(&word.to_lowercase().as_str()));
    (text, is_program && !is_prose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_sentences_are_told_apart() {
        for (text, condition, is_command) in [
            ("make test", "make test", true),
            ("go test ./...", "go test ./...", true),
            ("./check.sh --all", "./check.sh --all", true),
            ("cargo test && cargo clippy", "cargo test && cargo clippy", true),
            ("`the-check in the end`", "the-check in the end", true),
            ("!my-tool run", "my-tool run", true),
            ("make the tests pass", "make the tests pass", false),
            ("make tests pass", "make tests pass", false),
            ("all examples run", "all examples run", false),
            ("Test every page.", "Test every page.", false),
            ("!", "!", false),
        ] {
            assert_eq!(read_condition(text), (condition, is_command), "{text}");
        }
    }
}
