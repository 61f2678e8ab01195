//! The workflows of .github run scripts of the repository: no step exists only there.
//!
//! Invariant: the command of each `run:` step is `make` or a script that is there and executable.

use std::path::Path;

/// Steps that are more than a script, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(".github/workflows")).into_iter().flatten().flatten();
    let mut problems = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let steps =
            text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("run: "));
        problems.extend(steps.filter(|step| !is_script(root, step)).map(|step| {
            format!(".github/workflows/{name} runs `{step}`, which is no script of the repository")
        }));
    }
    problems
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
    fn packages_are_made_installed_and_removed() {
        let root = crate::tidy::root();
        #[expect(clippy::disallowed_methods, reason = "a test runs the script that it is about")]
        let output =
            std::process::Command::new("scripts/dist/self-test").current_dir(root).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
