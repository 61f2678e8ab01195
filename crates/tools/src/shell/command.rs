//! One simple command: what it is called, whether it only reads, why it must be asked.

use domain::tool::Exposure;

use super::line::{Command, ShellLine};
use super::parse::{self, RawCommand};
use super::word::Word;
use super::wrappers::{self, Runs};
use super::{exposure, git, keys, read_only, risky};

/// Lines longer than this are asked about without a look.
const MAX_LENGTH: usize = 32 * 1024;
/// How deep a shell may run a shell.
const MAX_DEPTH: usize = 4;

/// Adds what a line says to what is known of the line that runs it.
pub(super) fn analyze_into(line: &str, depth: usize, out: &mut ShellLine) {
    if line.len() > MAX_LENGTH {
        out.add_reason("It is too long to be analyzed");
        return;
    }
    if depth > MAX_DEPTH {
        out.add_reason("Shells run shells too deep to be analyzed");
        return;
    }
    if line.chars().any(is_invisible) {
        out.add_reason("It holds invisible or misleading characters");
    }
    let joined = join_lines(line);
    // Where the shell would not join them, what is analyzed is not what runs.
    if joined.len() < line.len() && (line.contains(['\'', '#']) || line.contains("<<")) {
        out.add_reason("It goes on over a line end in a way that is not analyzed");
    }
    let parsed = parse::parse(&joined);
    for reason in parsed.reasons {
        out.add_reason(reason);
    }
    for reason in parsed.known_reasons {
        out.add_known_reason(reason);
    }
    out.redirected.extend(parsed.redirected);
    if depth == 0 {
        out.text = joined;
    }
    for raw in parsed.commands {
        inspect(&raw, depth, out);
    }
}

/// The shell drops a line end behind a backslash that no backslash is before.
fn join_lines(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some('\n')) => drop(chars.next()),
            ('\\', Some(escaped)) => {
                out.extend([char, *escaped]);
                chars.next();
            }
            _ => out.push(char),
        }
    }
    out
}

/// Characters that a reader does not see as what they are: controls, blanks that are none to a shell, marks that
/// turn the direction of text.
fn is_invisible(char: char) -> bool {
    match char {
        ' ' | '\t' | '\n' => false,
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{3164}' | '\u{115f}' | '\u{1160}' => true,
        _ => char.is_control() || char.is_whitespace(),
    }
}

/// Notes the command, and what it runs itself.
fn inspect(raw: &RawCommand, depth: usize, out: &mut ShellLine) {
    let known: Vec<Word> = raw.words.iter().map_while(Clone::clone).collect();
    if known.len() < raw.words.len() {
        // The reason was noted where the word was read; what is known of the command is still shown.
        if known.is_empty() {
            out.add_reason("The name of a command is made by the shell");
            return;
        }
    }
    let complete = known.len() == raw.words.len();
    inspect_words(&known, complete, depth, out);
}

/// `complete`: all words of the command are known.
fn inspect_words(words: &[Word], complete: bool, depth: usize, out: &mut ShellLine) {
    if depth > MAX_DEPTH {
        return out.add_reason("Commands run commands too deep to be analyzed");
    }
    let texts: Vec<&str> = words.iter().map(Word::as_str).collect();
    let Some((written, arguments)) = texts.split_first() else { return };
    let name = keys::name(written);
    if RESERVED.contains(written) {
        out.add_reason("A word of the shell's own is where a command should be");
    }
    if !name.is_ascii() || words[0].pattern_at.is_some() || words[0].tilde || name.is_empty() {
        out.add_reason("The name of a command is unusual");
    }
    if words.iter().any(Word::may_be_option) {
        out.add_reason("It has a pattern that could become an option");
    }
    let reasons = match name {
        "git" => git::reasons(arguments),
        _ => risky::reasons(name, arguments),
    };
    for reason in reasons {
        out.add_reason(reason);
    }
    let runs = wrappers::runs(name, arguments);
    let patterns = words.iter().any(|word| word.pattern_at.is_some());
    let reads = complete && !patterns && runs.is_none() && read_only::is_read_only(name, arguments);
    // A wrapper that does nothing itself is as harmless as what it runs.
    let read_only = reads || matches!(runs, Some(Runs::Unchanged(_)));
    let key = if read_only { keys::name_with_subcommand(&texts) } else { keys::remembered_key(&texts) };
    out.commands.push(Command {
        name: keys::name_with_subcommand(&texts),
        key,
        words: words.to_vec(),
        read_only,
        exposure: exposure_of(runs.as_ref(), reads, name, arguments),
    });
    if risky::has_option_before_subcommand(name, arguments) {
        // Which word is the subcommand is not known, and a rule may forbid any of them.
        for at in possible_starts(arguments, 0).into_iter().skip(1) {
            let texts = [&[*written], &arguments[at..]].concat();
            let (name, key) = (keys::name_with_subcommand(&texts), keys::remembered_key(&texts));
            let exposure = Exposure::Local;
            out.commands.push(Command { name, key, words: Vec::new(), read_only: false, exposure });
        }
    }
    if let Some(runs) = runs {
        inspect_nested(runs, name, words, complete, depth, out);
    }
}

fn exposure_of(runs: Option<&Runs>, reads: bool, name: &str, arguments: &[&str]) -> Exposure {
    match runs {
        // What it runs is looked at by itself.
        Some(Runs::Unchanged(_) | Runs::Command(_) | Runs::Line(_)) => Exposure::Local,
        Some(Runs::Unknown) => Exposure::Unknown,
        None if reads => Exposure::Local,
        None => exposure::of(name, arguments),
    }
}

/// What a command runs besides itself.
fn inspect_nested(runs: Runs, name: &str, words: &[Word], complete: bool, depth: usize, out: &mut ShellLine) {
    match runs {
        Runs::Unchanged(at) => inspect_words(&words[at + 1..], complete, depth + 1, out),
        Runs::Command(at) => {
            out.add_reason(format!("`{name}` runs another command"));
            let arguments: Vec<&str> = words[1..].iter().map(Word::as_str).collect();
            for at in possible_starts(&arguments, at) {
                inspect_words(&words[at + 1..], complete, depth + 1, out);
            }
        }
        Runs::Line(at) => {
            out.add_reason(format!("`{name}` runs a line of its own"));
            analyze_into(words[at + 1].as_str(), depth + 1, out);
        }
        Runs::Unknown => out.add_reason(format!("`{name}` runs what is not known")),
    }
}

/// Where a command may begin: at `at`, or at a later word where options that may take words are before it.
fn possible_starts(arguments: &[&str], at: usize) -> Vec<usize> {
    let is_option = |word: &&str| word.starts_with('-');
    let first =
        (at..arguments.len()).filter(|at| !is_option(&arguments[*at]) && !arguments[*at].contains('='));
    let most = if arguments.iter().take(at + 1).any(is_option) { MAX_STARTS } else { 1 };
    first.take(most).collect()
}

/// Words that mean something else to the shell where it looks for a command.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "until", "while", "{", "}",
];

const MAX_STARTS: usize = 6;
