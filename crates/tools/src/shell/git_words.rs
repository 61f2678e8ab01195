//! The words of a git command: its own options, its subcommand, formats that run programs.

/// Formats with the state of signatures make git run gpg.
pub(super) fn asks_for_signatures(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| word.contains("%G") || word.contains("%(signature"))
}

/// The options of git itself, and the subcommand with what follows it.
pub(super) fn split<'a, 'b>(arguments: &'a [&'b str]) -> (&'a [&'b str], &'a [&'b str]) {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if !word.starts_with('-') {
            break;
        }
        let takes_value = matches!(
            *word,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--config-env"
                | "--exec-path"
                | "--super-prefix"
                | "--attr-source"
        );
        at += if takes_value { 2 } else { 1 };
    }
    arguments.split_at(at.min(arguments.len()))
}
