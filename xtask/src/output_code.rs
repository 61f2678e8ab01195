//! What the program prints: by one checked writer, and without the names of files that no package contains.
//!
//! Macros such as `println!` panic where stdout is closed or full, so production code has none and no exception from the
//! lints that forbid them. Texts name `dragoman docs PAGE`; only comments for developers name the files.

/// Where `io::stdout()` may be named: the writer of commands, the screen of a chat, file descriptors, the proxy's client.
const STDOUT_OWNERS: &[&str] = &[
    "crates/app/src/output.rs",
    "crates/terminal/src/chat/",
    "crates/platform/src/",
    "crates/sandbox/src/connect.rs",
];

const MACROS: &[&str] = &["print!(", "println!(", "eprint!(", "eprintln!("];

/// One problem for each line that breaks a rule.
pub(crate) fn problems(files: &[(String, Vec<String>)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, lines) in files {
        let is_program = name.starts_with("crates/") || name.starts_with("interfaces/");
        let is_checked = is_program && !name.ends_with("tests.rs");
        for (at, line) in lines.iter().enumerate().filter(|_| is_checked) {
            if let Some(problem) = problem(name, line.trim_start()) {
                problems.push(format!("{name}:{}: {problem}", at + 1));
            }
        }
    }
    problems
}

fn problem(name: &str, line: &str) -> Option<&'static str> {
    let is_help = line.starts_with("/// ");
    if line.starts_with("//") && !is_help {
        return None;
    }
    if names_page(line) {
        return Some("the text names a file of docs: write `dragoman docs PAGE`, which every user has");
    }
    if is_help {
        return None;
    }
    if MACROS.iter().any(|word| has_word(line, word)) || line.contains("clippy::print_std") {
        return Some("the macro panics where stdout is closed or full: use `output` of the app");
    }
    let is_owner = STDOUT_OWNERS.iter().any(|owner| name.starts_with(owner));
    (!is_owner && line.contains("io::stdout()")).then_some("only `output` of the app writes to stdout")
}

/// Whether a line has the word and it is not the end of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// `docs/NAME.md`, as a part of a text or of a comment that becomes help.
fn names_page(line: &str) -> bool {
    line.match_indices("docs/").any(|(at, _)| {
        let is_path = line[..at].ends_with('/');
        let rest = &line[at + "docs/".len()..];
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || "-/".contains(c))).unwrap_or(rest.len());
        !is_path && end > 0 && rest[end..].starts_with(".md")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_names_of_files_are_found() {
        for (line, is_fine) in [
            ("    println!(\"a\");", false),
            ("    eprint!(\"a\");", false),
            ("    sprintln!(\"a\");", true),
            ("    writeln!(out, \"a\");", true),
            ("    // println!(\"a\");", true),
            ("#![allow(clippy::print_stdout, reason = \"x\")]", false),
            ("    let mut out = std::io::stdout().lock();", false),
            ("    .hint(\"see docs/scale.md.\")", false),
            ("    /// Show it (docs/protocols/acp.md).", false),
            ("    // As docs/scale.md says.", true),
            ("    //! docs/scale.md", true),
            ("    include_str!(\"../../docs/scale.md\")", true),
            ("    .hint(\"`dragoman docs scale` shows it.\")", true),
        ] {
            let file = |name: &str| (name.to_owned(), vec![line.to_owned()]);
            assert_eq!(problems(&[file("crates/app/src/a.rs")]).is_empty(), is_fine, "{line}");
            assert!(problems(&[file("xtask/src/a.rs")]).is_empty(), "{line}");
        }
        let writer = ("crates/app/src/output.rs".to_owned(), vec!["io::stdout()".to_owned()]);
        assert!(problems(&[writer]).is_empty());
    }
}
