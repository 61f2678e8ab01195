//! The shape of `index`.

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct IndexSection {
    /// Which files hide others; those of git and `.ignore` do.
    #[schemars(extend("x-unsupported" = true))]
    ignore_files: Vec<serde_json::Value>,
    /// The map of the workspace: the context `repoMap` and `/repo-map-show`.
    repo_map: RepoMapSection,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct RepoMapSection {
    /// The most files and folders of a map. Without it: 400.
    #[schemars(range(min = 1, max = 10_000), extend("examples" = [800]))]
    max_total_entries: u64,
    /// The most entries of one folder; the topmost folder is shown whole.
    #[schemars(range(min = 1, max = 10_000), extend("examples" = [50]))]
    max_entries_per_dir: u64,
}
