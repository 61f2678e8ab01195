//! Code for one operating system lives in `platform`, `process` and `sandbox`, and nowhere else.
//!
//! Exceptions stand in `xtask/platform-code.txt`, one `path lines` a line. The list may only shrink.

use std::collections::BTreeMap;
use std::path::Path;

const OWNERS: &[&str] = &["crates/platform/", "crates/process/", "crates/sandbox/"];

const MARKS: &[&str] = &[
    "cfg(unix)",
    "cfg(windows)",
    "cfg!(unix)",
    "cfg!(windows)",
    "target_os",
    "target_vendor",
    "std::os::",
    "tokio::net::unix",
    "tokio::net::windows",
    "tokio::signal::unix",
    "tokio::signal::windows",
    "libc::",
    "rustix::",
    "windows_sys::",
];

/// One problem for each file with more such lines than its exception grants, or fewer.
pub(crate) fn problems(root: &Path, files: &[(String, Vec<String>)]) -> Vec<String> {
    let list = std::fs::read_to_string(root.join("xtask/platform-code.txt")).unwrap_or_default();
    compare(&granted(&list), files)
}

fn granted(list: &str) -> BTreeMap<&str, usize> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(file, count)| Some((file, count.parse().ok()?)))
        .collect()
}

fn compare(granted: &BTreeMap<&str, usize>, files: &[(String, Vec<String>)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut left = granted.clone();
    for (name, lines) in files {
        let is_program = name.starts_with("crates/") || name.starts_with("interfaces/");
        if !is_program || OWNERS.iter().any(|owner| name.starts_with(owner)) {
            continue;
        }
        let found = lines.iter().filter(|line| is_platform_code(line)).count();
        let may = left.remove(name.as_str()).unwrap_or(0);
        if found > may {
            problems.push(format!(
                "{name} has {found} lines of code for one operating system; at most {may}: move them to `platform`"
            ));
        } else if found < may {
            problems.push(format!("xtask/platform-code.txt grants {name} {may} lines, and it needs {found}"));
        }
    }
    problems
        .extend(left.keys().map(|name| format!("xtask/platform-code.txt names {name}, which is not there")));
    problems
}

fn is_platform_code(line: &str) -> bool {
    !line.trim_start().starts_with("//") && MARKS.iter().any(|mark| line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_code_is_found_outside_of_its_crates() {
        let file = |name: &str, lines: &[&str]| {
            (name.to_owned(), lines.iter().map(|line| (*line).to_owned()).collect::<Vec<String>>())
        };
        let code = ["use std::os::unix::fs::symlink;", "// cfg(unix)", "fn a() {}"];
        let files = [
            file("crates/app/src/a.rs", &code),
            file("crates/platform/src/a.rs", &code),
            file("crates/store/src/b.rs", &code),
            file("xtask/src/c.rs", &code),
        ];
        assert_eq!(
            compare(&granted("crates/app/src/a.rs 1\ncrates/store/src/b.rs 1"), &files),
            Vec::<String>::new()
        );
        assert_eq!(compare(&granted(""), &files).len(), 2);
        assert_eq!(
            compare(&granted("crates/app/src/a.rs 2\ncrates/store/src/b.rs 1\ncrates/x.rs 1"), &files).len(),
            2
        );
    }
}
