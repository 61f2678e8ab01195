//! One simple command: what it is called, whether it only reads, why it must be asked.

use super::parse::Raw;
use super::word::Word;
use super::wrappers::{self, Runs};
use super::{Command, Line, analyze_into, git, keys, read_only, risky};

/// Notes the command, and what it runs itself.
pub fn inspect(raw: &Raw, depth: usize, out: &mut Line) {
    let known: Vec<Word> = raw.words.iter().map_while(Clone::clone).collect();
    if known.len() < raw.words.len() {
        // The reason was noted where the word was read; what is known of the command is still shown.
        if known.is_empty() {
            out.because("The name of a command is made by the shell");
            return;
        }
    }
    let whole = known.len() == raw.words.len();
    inspect_words(known, whole, depth, out);
}

/// `whole`: all words of the command are known.
fn inspect_words(words: Vec<Word>, whole: bool, depth: usize, out: &mut Line) {
    let texts: Vec<&str> = words.iter().map(Word::as_str).collect();
    let Some(written) = texts.first().copied() else { return };
    let name = keys::name(written);
    if !name.is_ascii() || words[0].pattern_at.is_some() || words[0].tilde || name.is_empty() {
        out.because("The name of a command is unusual");
    }
    if words.iter().any(Word::may_be_option) {
        out.because("It has a pattern that could stand for an option");
    }
    let arguments = &texts[1..];
    let runs = wrappers::runs(name, arguments);
    let reasons = match name {
        "git" => git::reasons(arguments),
        _ => risky::reasons(name, arguments),
    };
    for reason in reasons {
        out.because(reason);
    }
    let patterns = words.iter().any(|word| word.pattern_at.is_some());
    let reads = whole && !patterns && runs.is_none() && read_only::is_read_only(name, arguments);
    // A wrapper that does nothing itself is as harmless as what it runs.
    let transparent = matches!(runs, Some(Runs::Plainly(_)));
    out.commands.push(Command {
        key: keys::key(&texts),
        words: words.clone(),
        read_only: reads || transparent,
    });
    if risky::has_option_before_subcommand(name, arguments) {
        // Which word is the subcommand is not known, and a rule may forbid any of them.
        for at in starts(arguments, 0).into_iter().skip(1) {
            let texts = [&[written], &arguments[at..]].concat();
            out.commands.push(Command { key: keys::key(&texts), words: Vec::new(), read_only: false });
        }
    }
    match runs {
        Some(Runs::Plainly(at)) => inspect_words(words[at + 1..].to_vec(), whole, depth + 1, out),
        Some(Runs::Command(at)) => {
            out.because(format!("`{name}` runs another command"));
            if depth < super::DEEPEST {
                for at in starts(arguments, at) {
                    inspect_words(words[at + 1..].to_vec(), whole, depth + 1, out);
                }
            }
        }
        Some(Runs::Line(at)) => {
            out.because(format!("`{name}` runs a line of its own"));
            analyze_into(arguments[at], depth + 1, out);
        }
        Some(Runs::Unknown) => out.because(format!("`{name}` runs what is not known")),
        None => {}
    }
}

/// Where a command may begin: at `at`, or at a later word where options that may take words stand before it.
fn starts(arguments: &[&str], at: usize) -> Vec<usize> {
    let is_option = |word: &&str| word.starts_with('-');
    let first =
        (at..arguments.len()).filter(|at| !is_option(&arguments[*at]) && !arguments[*at].contains('='));
    let most = if arguments.iter().take(at + 1).any(is_option) { MOST_STARTS } else { 1 };
    first.take(most).collect()
}

const MOST_STARTS: usize = 6;
