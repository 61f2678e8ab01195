//! The settings and variables with which a git of our own runs nothing that a repository names.
//!
//! Invariant: it only tightens; the user's own settings of programs that a repository cannot name stay.

/// Settings that make git run programs, reach the network or enter other repositories when it only looks, with the
/// value that switches each off.
pub const OVERRIDES: &[(&str, &str)] = &[
    ("blame.ignoreRevsFile", ""),
    ("core.alternateRefsCommand", ""),
    ("core.askPass", "false"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("diff.ignoreSubmodules", "all"),
    ("diff.submodule", "short"),
    ("gc.auto", "0"),
    ("gpg.program", "false"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
];

/// Variables that hold for every such command.
pub const VARIABLES: &[(&str, &str)] = &[
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
];

/// Settings of the filter of large files, with the values that switch it off.
const LARGE_FILES: &[(&str, &str)] = &[
    ("filter.lfs.clean", ""),
    ("filter.lfs.process", ""),
    ("filter.lfs.required", "false"),
    ("filter.lfs.smudge", ""),
];

/// What must be overridden beyond [`OVERRIDES`], for a repository whose own settings are `entries`: keys and values.
pub fn overrides_for(entries: &[(String, String)]) -> Vec<(String, String)> {
    let mut overrides: Vec<(String, String)> = Vec::new();
    for (key, value) in entries {
        let lower = key.to_ascii_lowercase();
        if lower.starts_with("filter.") && !is_large_file_storage(value) {
            let off = if lower.ends_with(".required") { "false" } else { "" };
            overrides.push((key.clone(), off.to_owned()));
        }
        // git-lfs runs the programs that these name.
        if names_program_of_large_files(&lower) {
            overrides.extend(LARGE_FILES.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        }
    }
    overrides.sort();
    overrides.dedup_by(|one, before| one.0 == before.0);
    overrides
}

/// All variables for these settings.
pub fn variables(overrides: &[(String, String)]) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> =
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let fixed = OVERRIDES.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let settings: Vec<(String, String)> = fixed.chain(overrides.iter().cloned()).collect();
    variables.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
    for (number, (key, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    variables
}

/// `git lfs install --local` sets its own program, which is looked for where all programs are.
fn is_large_file_storage(value: &str) -> bool {
    ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process", "true"].contains(&value)
}

/// `lfs.extension.NAME.clean`, `lfs.customtransfer.NAME.path` and their like.
fn names_program_of_large_files(key: &str) -> bool {
    let Some(rest) = key.strip_prefix("lfs.") else { return false };
    rest.starts_with("extension.")
        || rest.starts_with("customtransfer.")
        || rest.ends_with("standalonetransferagent")
        || rest.ends_with("pushtransferagent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_extensions_of_a_repository_are_switched_off() {
        let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert!(overrides_for(&[entry("filter.lfs.clean", "git-lfs clean -- %f")]).is_empty());
        assert!(overrides_for(&[entry("lfs.repositoryformatversion", "0")]).is_empty());
        assert_eq!(
            overrides_for(&[entry("filter.Evil.clean", "evil"), entry("filter.Evil.required", "TRUE")]),
            [entry("filter.Evil.clean", ""), entry("filter.Evil.required", "false")]
        );
        for key in ["lfs.extension.evil.clean", "LFS.Extension.x.priority", "lfs.customtransfer.x.path"] {
            let overrides = overrides_for(&[entry(key, "evil")]);
            assert!(overrides.contains(&entry("filter.lfs.process", "")), "{key}: {overrides:?}");
            assert!(overrides.contains(&entry("filter.lfs.required", "false")), "{key}");
        }
    }
}
