//! Words of the command lines of other assistants, and what they are here: a line below the parser's error.

/// Flags and commands that others have, before any of our commands.
const AT_THE_START: [(&[&str], &str); 4] = [
    (&["-p", "--print", "--prompt", "exec", "-q"], "One answer for scripts: dragoman run \"…\""),
    (
        &["-c", "--continue", "-r", "--resume", "resume", "--session", "session"],
        "An earlier chat: dragoman chat --continue, or F2 in a chat",
    ),
    (&["-m", "--model"], "A chat with another model: dragoman chat --model PROVIDER/MODEL"),
    (&["auth", "configure", "/login"], "Keys: dragoman login; what is missing: dragoman doctor"),
];

/// The same for `dragoman run`.
const OF_A_RUN: [(&[&str], &str); 5] = [
    (&["-p", "--print", "--prompt"], "The prompt needs no option: dragoman run \"…\""),
    (
        &[
            "--yolo",
            "--full-auto",
            "--force",
            "--dangerously-skip-permissions",
            "--approval-mode",
            "--permission-mode",
        ],
        "Calls that may run without approval: --approve edit, or --approve all (`dragoman docs run`)",
    ),
    (&["--output-format"], "The form of the output: --output json, or --json for events"),
    (&["--allowedTools", "--allowed-tools"], "A rule for this run: --allow 'shell_command=git status.*'"),
    (&["--resume", "-r", "-c"], "An earlier chat: --continue, or --session ID"),
];

/// What to type instead of these words; `None` where they are of no other program that is known.
pub(crate) fn find_hint(words: &[String]) -> Option<&'static str> {
    let (first, rest) = words.split_first()?;
    let find = |table: &[(&[&str], &'static str)], word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        table.iter().find(|(known, _)| known.contains(&name)).map(|(_, hint)| *hint)
    };
    if first == "run" {
        return rest.iter().take_while(|word| *word != "--").find_map(|word| find(&OF_A_RUN, word));
    }
    if first.contains(char::is_whitespace) {
        return Some(
            "A question: dragoman chat \"…\" begins a chat with it, dragoman run \"…\" prints one answer",
        );
    }
    find(&AT_THE_START, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_lead_to_our_words() {
        for (line, expected) in [
            (&["explain this"][..], "dragoman chat"),
            (&["-p", "hi"], "dragoman run"),
            (&["exec", "hi"], "dragoman run"),
            (&["--continue"], "--continue"),
            (&["run", "--yolo", "hi"], "--approve"),
            (&["run", "--output-format=json", "hi"], "--output"),
        ] {
            let words: Vec<String> = line.iter().map(ToString::to_string).collect();
            assert!(find_hint(&words).is_some_and(|hint| hint.contains(expected)), "{line:?}");
        }
        for line in [&["run", "--nonsense"][..], &["nonsense"], &["run", "--", "--yolo"], &[]] {
            let words: Vec<String> = line.iter().map(ToString::to_string).collect();
            assert_eq!(find_hint(&words), None, "{line:?}");
        }
    }
}
