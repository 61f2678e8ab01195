//! The workflows of .github run scripts of the repository: no step exists only there.
//!
//! Invariants: the command of each `run:` step is `make` or a script that is there and executable; each `uses:` step names
//! an action by the hash of a commit, with its version in a comment.

use std::path::Path;

/// Steps that are more than a script, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(".github/workflows")).into_iter().flatten().flatten();
    let mut problems = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        problems.extend(steps(&text, "run: ").filter(|step| !is_script(root, step)).map(|step| {
            format!(".github/workflows/{name} runs `{step}`, which is no script of the repository")
        }));
        problems.extend(steps(&text, "uses: ").filter(|step| !is_pinned(step)).map(|step| {
            format!(".github/workflows/{name} uses `{step}`: write the hash of a commit and `# vX.Y.Z`")
        }));
    }
    problems
}

fn steps<'a>(text: &'a str, kind: &'static str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.trim().trim_start_matches("- ").strip_prefix(kind))
}

fn is_pinned(step: &str) -> bool {
    let Some((_, version)) = step.split_once('@') else { return false };
    let Some((hash, comment)) = version.split_once(" # v") else { return false };
    hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && !comment.is_empty()
}

fn is_script(root: &Path, step: &str) -> bool {
    // The one other form hands the output of a script to the next job.
    let step = step.strip_prefix("echo \"matrix=$(").unwrap_or(step);
    let program = step.split([' ', ')']).next().unwrap_or_default();
    if program == "make" {
        return true;
    }
    program.starts_with("scripts/") && is_executable(&root.join(program))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_make_or_a_script() {
        let root = crate::tidy::root();
        for (step, good) in [
            ("make test", true),
            ("scripts/ci/toolchain \"${{ matrix.rust }}\"", true),
            ("echo \"matrix=$(scripts/ci/matrix)\" >>\"$GITHUB_OUTPUT\"", true),
            ("scripts/ci/missing", false),
            ("cargo test", false),
            ("|", false),
        ] {
            assert_eq!(is_script(&root, step), good, "{step}");
        }
    }

    #[test]
    fn an_action_is_pinned_by_a_hash() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        for (step, good) in [
            (format!("actions/checkout@{hash} # v4.2.2"), true),
            (format!("actions/checkout@{hash}"), false),
            ("actions/checkout@v4".to_owned(), false),
            ("actions/checkout".to_owned(), false),
        ] {
            assert_eq!(is_pinned(&step), good, "{step}");
        }
    }

    #[test]
    fn packages_are_made_installed_and_removed() {
        let root = crate::tidy::root();
        #[expect(clippy::disallowed_methods, reason = "a test runs the script that it is about")]
        let output =
            std::process::Command::new("scripts/dist/self-test").current_dir(root).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
