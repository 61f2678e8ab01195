//! `dragoman --help`: the commands in groups. The pages of the commands themselves come from the parser.
//!
//! Invariant: every command that the parser shows is in one group.

use clap::CommandFactory;

use crate::cli::Cli;

const GROUPS: [(&str, &[&str]); 7] = [
    ("Talk", &["chat", "run", "attach", "ps", "chats", "replay", "stats"]),
    ("Set up", &["setup", "login", "logout", "models", "config", "import", "doctor", "update", "docs"]),
    ("Extend", &["mcp", "plugins", "acp-agents"]),
    ("Safety", &["trust", "grants", "explain-permission"]),
    ("For editors and other programs", &["server", "acp", "threads", "mcp-server", "serve"]),
    ("Teams and tasks", &["submit", "tasks", "worker", "store"]),
    ("Interfaces and shells", &["generate", "studio", "spec", "copilot", "completions", "man"]),
];

/// A longer description of a command is cut at a colon or a comma. Descriptions are ASCII, as a test checks.
const MAX_DESCRIPTION: usize = 90;

/// Whether these words ask for the overview, and not for the page of a command.
pub(crate) fn is_wanted(words: &[String]) -> bool {
    matches!(words, [word] if ["--help", "-h", "help"].contains(&word.as_str()))
}

pub(crate) fn text() -> String {
    let command = Cli::command();
    let about = |name: &str| {
        let found = command.find_subcommand(name).and_then(|inner| inner.get_about());
        found.map(ToString::to_string).unwrap_or_default()
    };
    let mut text = format!(
        "{}\n\nUsage: dragoman [COMMAND] [OPTIONS]\n\nWithout a command, `dragoman` opens a chat in this terminal.\n\nCommands:\n",
        command.get_about().map(ToString::to_string).unwrap_or_default()
    );
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for name in names {
            text.push_str(&format!("  {name:<19} {}\n", first_sentence(&about(name))));
        }
    }
    text.push_str(
        "\n`dragoman COMMAND --help` explains one. Options: --log-level LEVEL, --version, --help.\n",
    );
    if let Some(examples) = command.get_after_help() {
        text.push_str(&format!("\n{examples}\n"));
    }
    text
}

/// Up to the first period, colon or comma, so that a command is one line.
fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").unwrap_or(line.len());
    let line = line[..end].trim_end_matches('.');
    if line.len() <= MAX_DESCRIPTION {
        return line.to_owned();
    }
    let short = line.split(": ").next().unwrap_or(line);
    let end = if short.len() <= MAX_DESCRIPTION {
        short.len()
    } else {
        short[..MAX_DESCRIPTION].rfind(", ").unwrap_or(0)
    };
    short[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        for inner in
            command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        {
            let count = grouped.iter().filter(|name| **name == inner.get_name()).count();
            assert_eq!(count, 1, "{} must be in one group of `dragoman --help`", inner.get_name());
        }
        for name in grouped {
            assert!(command.find_subcommand(name).is_some(), "there is no command {name}");
        }
        let abouts = command.get_subcommands().filter_map(|inner| inner.get_about());
        assert!(abouts.map(ToString::to_string).all(|about| about.is_ascii()), "a description is not ASCII");
        assert!(text().lines().all(|line| line.chars().count() <= 120), "{}", text());
    }
}
