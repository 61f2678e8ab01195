//! Variables that keep programs from asking, paging and drawing progress: nobody is there to answer or to watch.
//!
//! Invariant: none of them changes what a command does to the project.

use super::line::ShellLine;

/// Set for every command.
pub const VARIABLES: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("AWS_PAGER", ""),
    ("SYSTEMD_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GH_PROMPT_DISABLED", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("PIP_PROGRESS_BAR", "off"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("TQDM_DISABLE", "1"),
    ("UV_NO_PROGRESS", "1"),
    ("NPM_CONFIG_PROGRESS", "false"),
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
    ("CARGO_TERM_PROGRESS_WHEN", "never"),
    // The output of a job can be read while it runs.
    ("PYTHONUNBUFFERED", "1"),
];

/// Programs for which `CI` only means that nobody answers and nothing is watched. Elsewhere it changes results: yarn and
/// pnpm refuse to update a lock file, jest and vitest write no new snapshots, `react-scripts build` fails on warnings.
const HARMLESS_CI: &[&str] = &["react-scripts test", "ng", "nx", "flutter", "dart", "expo"];

/// Set for this line beside [`VARIABLES`].
pub fn for_line(line: &ShellLine, terminal: bool) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    if terminal {
        // Programs that draw say what they have to say in plain lines then.
        variables.push(("TERM".to_owned(), "dumb".to_owned()));
    }
    let is_harmless = |name: &String| {
        let name = name.strip_prefix("npx ").unwrap_or(name);
        HARMLESS_CI.iter().any(|known| name == *known || name.starts_with(&format!("{known} ")))
    };
    if !line.commands.is_empty() && line.texts().iter().all(is_harmless) {
        variables.push(("CI".to_owned(), "true".to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_is_set_where_it_changes_no_result() {
        for (line, is_set) in [
            ("react-scripts test", true),
            ("ng build", true),
            ("flutter test", true),
            ("react-scripts build", false),
            ("npm test", false),
            ("pnpm install", false),
            ("jest", false),
            ("ng build && yarn install", false),
            ("ngrok", false),
        ] {
            let variables = for_line(&crate::shell::analyze(line), false);
            assert_eq!(variables.iter().any(|(name, _)| name == "CI"), is_set, "{line}: {variables:?}");
        }
    }
}
