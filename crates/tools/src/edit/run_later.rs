//! Files that other programs run by themselves: a change of one needs an approval of its own.
//!
//! Knows the part of `package.json` that package managers run; the names of the other files are in `platform::project_files`.

use std::path::Path;

use domain::Review;
use platform::project_files::runs_later;
use serde_json::Value;

use crate::paths::ResolvedPath;

/// Parts of `package.json` that package managers and hooks run.
const SCRIPTS: &[&str] = &["gypfile", "husky", "lint-staged", "pre-commit", "scripts", "simple-git-hooks"];

/// Makes the review ask where the file at this path runs later. `texts` are its contents before and after.
pub(crate) fn require_approval(path: &ResolvedPath, texts: Option<(&str, &str)>, review: &mut Review) {
    let is_package = path.path().file_name().is_some_and(|name| name.eq_ignore_ascii_case("package.json"));
    let reason = if runs_later(path.path()) {
        "Other programs run this file, or read from it what they run."
    } else if is_package && texts.is_none_or(|(old, new)| scripts(old) != scripts(new)) {
        "It changes what package managers run."
    } else {
        return;
    };
    ask_about(path.path(), path.shown().to_owned(), reason, review);
}

/// The same for a path that will hold such a file.
pub(crate) fn require_approval_of_path(path: &Path, shown: String, review: &mut Review) {
    ask_about(path, shown, "Other programs would run a file in this folder.", review);
}

fn ask_about(path: &Path, shown: String, reason: &str, review: &mut Review) {
    review.must_ask = Some(reason.to_owned());
    review.run_later.push(shown);
    let path = path.to_owned();
    if !review.outside.contains(&path) {
        review.outside.push(path);
    }
}

/// What of a `package.json` runs; `None` for text that is not understood, which differs from everything.
fn scripts(text: &str) -> Result<Vec<Option<Value>>, Unparsed> {
    if text.trim().is_empty() {
        return Ok(vec![None; SCRIPTS.len()]);
    }
    let value: Value = serde_json::from_str(text).map_err(|_| Unparsed)?;
    Ok(SCRIPTS.iter().map(|part| value.get(part).cloned()).collect())
}

#[derive(Debug)]
struct Unparsed;

impl PartialEq for Unparsed {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scripts_of_a_package_run_later() {
        let same = |old: &str, new: &str| scripts(old) == scripts(new);
        assert!(same(r#"{"scripts":{"a":"b"}}"#, r#"{"version":"2","scripts":{"a":"b"}}"#));
        assert!(!same(r#"{"scripts":{"a":"b"}}"#, r#"{"scripts":{"a":"b","postinstall":"x"}}"#));
        assert!(!same("{}", "{ broken"));
        assert!(!same("{ broken", "{ broken"));
        assert!(same("", r#"{"name":"x"}"#));
    }
}
