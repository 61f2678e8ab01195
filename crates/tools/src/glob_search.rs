//! Files below a folder whose names match a pattern.

use std::path::PathBuf;

use domain::CancellationToken;
use globset::GlobBuilder;

use crate::options::Limits;
use crate::paths::ResolvedPath;
use crate::walk::Walk;

pub(crate) struct FoundFiles {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) more: bool,
}

/// Files below a folder that match, sorted.
pub(crate) fn find_files(
    folder: &ResolvedPath,
    pattern: &str,
    limits: &Limits,
    cancel: CancellationToken,
) -> Result<FoundFiles, String> {
    let matcher = compile(pattern)?;
    let mut walk = Walk::new(folder.path(), limits.walk_time, cancel);
    let mut found = FoundFiles { paths: Vec::new(), more: false };
    for entry in walk.by_ref() {
        if entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let relative = entry.path().strip_prefix(folder.path()).unwrap_or(entry.path());
        if !matcher.is_match(relative) {
            continue;
        }
        if found.paths.len() == limits.paths {
            found.more = true;
            break;
        }
        found.paths.push(entry.into_path());
    }
    if walk.is_stopped() {
        return Err("The call was stopped.".to_owned());
    }
    found.more |= walk.cut_short;
    Ok(found)
}

/// A pattern without a slash matches names in every folder.
pub(crate) fn full_pattern(pattern: &str) -> String {
    let pattern = pattern.trim_start_matches("./");
    if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") }
}

pub(crate) fn compile(pattern: &str) -> Result<globset::GlobMatcher, String> {
    let glob = GlobBuilder::new(&full_pattern(pattern)).literal_separator(true).build();
    Ok(glob.map_err(|error| format!("`{pattern}` is not a pattern: {error}."))?.compile_matcher())
}
