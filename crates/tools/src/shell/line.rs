//! A shell line as it was understood: its commands, and every reason to ask about it.

use domain::tool::Exposure;

use super::word::Word;
use super::{git, keys};

/// A line as it was understood.
#[derive(Clone, Debug, Default)]
pub struct ShellLine {
    pub commands: Vec<Command>,
    /// Files that are read or written by redirection.
    pub redirected: Vec<Word>,
    /// Why the line must be asked: sentences, without their full stop.
    pub reasons: Vec<String>,
    /// Some part of the line is not understood, so it may do more than its commands say.
    pub unclear: bool,
    /// The line as it was parsed, with continued lines joined.
    pub(super) text: String,
}

/// One simple command. A command that runs another is followed by that one.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its subcommand, for rules: `git status`, `npm run build`, `rm`.
    pub name: String,
    /// What an approval is remembered by: the whole command, or the part of it that decides what it does.
    pub key: String,
    pub words: Vec<Word>,
    /// On the list of commands that change nothing, with options that are on the list too.
    pub read_only: bool,
    /// How it could send something out by itself.
    pub exposure: Exposure,
}

impl Command {
    pub(super) fn git_arguments(&self) -> Option<Vec<&str>> {
        let (name, arguments) = self.words.split_first()?;
        (keys::name(name.as_str()) == "git").then(|| arguments.iter().map(Word::as_str).collect())
    }

    /// The command with its arguments as the shell would take them, without quotes.
    pub fn text(&self) -> String {
        let Some((name, arguments)) = self.words.split_first() else { return self.name.clone() };
        let words = std::iter::once(keys::name(name.as_str())).chain(arguments.iter().map(Word::as_str));
        words.collect::<Vec<_>>().join(" ")
    }
}

impl ShellLine {
    pub fn read_only(&self) -> bool {
        self.reasons.is_empty() && self.commands.iter().all(|command| command.read_only)
    }

    /// How the line could send something out.
    pub fn exposure(&self) -> Exposure {
        if self.unclear {
            return Exposure::Unknown;
        }
        self.commands.iter().map(|command| command.exposure).max().unwrap_or(Exposure::Unknown)
    }

    /// The line may change files that it names.
    pub fn may_change_files(&self) -> bool {
        let only_records = |command: &Command| ["git add", "git commit"].contains(&command.name.as_str());
        !self.redirected.is_empty()
            || self.commands.iter().any(|command| !command.read_only && !only_records(command))
    }

    /// A command of the line changes what Dragoman itself allows.
    pub fn changes_policy(&self) -> bool {
        let is_own = |command: &Command| {
            let program = command.words.first().map(|word| keys::name(word.as_str())).unwrap_or_default();
            ["dragoman", "eca"].contains(&program.rsplit('/').next().unwrap_or_default())
        };
        self.commands.iter().any(is_own)
    }

    /// Each program with its subcommand once, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for command in &self.commands {
            if !names.contains(&command.name) {
                names.push(command.name.clone());
            }
        }
        names
    }

    /// Every use of git in the line only looks, and there is one.
    pub fn only_inspects_git(&self) -> bool {
        let mut uses = self.commands.iter().filter_map(Command::git_arguments).peekable();
        uses.peek().is_some() && uses.all(|arguments| git::inspects(&arguments))
    }

    /// A use of git in the line shows contents from the repository's own store.
    pub fn shows_git_contents(&self) -> bool {
        self.commands.iter().filter_map(Command::git_arguments).any(|arguments| git::shows_stored(&arguments))
    }

    /// The line with options that keep git from running the repository's programs. Only a line that is understood is
    /// changed.
    pub fn hardened(&self) -> Option<String> {
        if !self.reasons.is_empty() {
            return None;
        }
        let mut additions: Vec<(usize, &'static str)> = self
            .commands
            .iter()
            .filter_map(|command| {
                let arguments = command.git_arguments()?;
                let (at, options) = git::safe_options(&arguments)?;
                Some((command.words.get(at + 1)?.end, options))
            })
            .collect();
        additions.sort_unstable();
        additions.dedup();
        let mut text = self.text.clone();
        for (at, options) in additions.into_iter().rev() {
            text.insert_str(at, options);
        }
        Some(text)
    }

    /// Each key once, in order.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for command in &self.commands {
            if !keys.contains(&command.key) {
                keys.push(command.key.clone());
            }
        }
        keys
    }

    /// Each command with its arguments.
    pub fn texts(&self) -> Vec<String> {
        self.commands.iter().map(Command::text).collect()
    }

    /// Adds a reason why the line is not understood.
    pub(super) fn add_reason(&mut self, reason: impl Into<String>) {
        self.unclear = true;
        self.add_known_reason(reason);
    }

    /// Adds a reason to ask about a line although it is understood.
    pub(super) fn add_known_reason(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}
