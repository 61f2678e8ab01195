//! Idioms that readers stumble over. Messages and help texts have none of them; in comments their number may only shrink.

/// What reads as if it were translated, and what to write instead.
const IDIOMS: &[(&str, &str)] = &[
    ("any more", "no longer"),
    ("for want of", "because there is no"),
    ("of ours", "our"),
    ("known are", "supported:"),
    ("that is none", "invalid"),
    ("not fulfilled", "could not be done"),
    ("did not come in time", "took too long"),
    (" stands ", "is"),
    (" stand ", "are"),
    (" wish", "change, or request"),
    ("Reception", "the name of what it does"),
    ("purse", "budget"),
];

/// Lines of comments that may have such an idiom. Lower it when there are fewer.
const IN_COMMENTS: usize = 220;

/// One problem for each message with an idiom, and one where comments have more of them than before.
pub(crate) fn problems(files: &[(String, Vec<String>)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut in_comments = 0;
    for (name, lines) in files.iter().filter(|(name, _)| !name.starts_with("xtask/")) {
        let mut goes_on = false;
        for (at, line) in lines.iter().enumerate() {
            let line = line.trim();
            let is_help = is_help(name, line);
            if line.starts_with("//") && !is_help {
                in_comments += usize::from(idiom(line).is_some());
                continue;
            }
            if let Some((words, better)) = message(line, goes_on || is_help).and_then(idiom) {
                problems.push(format!("{name}:{}: the text says “{words}”; write “{better}”", at + 1));
            }
            // A text that goes on in the next line.
            goes_on = line.ends_with('\\') && (goes_on || line.contains('"'));
        }
    }
    if in_comments > IN_COMMENTS {
        problems.push(format!(
            "{in_comments} comments have an idiom of xtask/src/words.rs; at most {IN_COMMENTS}, and the number may only shrink"
        ));
    }
    problems
}

/// Comments of arguments become help texts.
fn is_help(name: &str, line: &str) -> bool {
    let declares_arguments = name.ends_with("cli.rs") || name.ends_with("arguments.rs");
    declares_arguments && line.starts_with("/// ")
}

/// What a line of code says to people: from its first quotation mark to its last, or all of it.
fn message(line: &str, is_whole: bool) -> Option<&str> {
    if is_whole {
        return Some(line);
    }
    let (first, last) = (line.find('"')?, line.rfind('"')?);
    // A message is a sentence; a name or a key has no blank.
    let text = if first < last { &line[first..last] } else { &line[first..] };
    text.contains(' ').then_some(text)
}

fn idiom(text: &str) -> Option<(&'static str, &'static str)> {
    IDIOMS.iter().copied().find(|(words, _)| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, lines: &[&str]) -> Vec<String> {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        let mut found = problems(&[(name.to_owned(), lines)]);
        found.retain(|problem| !problem.contains("may only shrink"));
        found
    }

    #[test]
    fn idioms_are_found_in_messages_and_help_texts() {
        let fails = |line| of("crates/a/src/b.rs", &[line]).len();
        assert_eq!(fails("    Err(\"The chat is not here any more.\")"), 1);
        assert_eq!(fails("    let anymore = \"no longer\";"), 0);
        assert_eq!(fails("    // It is not here any more."), 0);
        assert_eq!(of("crates/app/src/cli.rs", &["    /// A token that is none"]).len(), 1);
        let split = ["    format!(\"It is here \\", "             not any more.\")"];
        assert_eq!(of("crates/a/src/b.rs", &split).len(), 1);
    }
}
