//! Facts for the first screen. Plain data.

/// Facts for the first screen that the link does not have.
#[derive(Clone, Debug, Default)]
pub struct Intro {
    pub version: String,
    pub folders: Vec<String>,
    pub branch: Option<String>,
    /// Files with instructions for the model.
    pub instructions: Vec<String>,
    /// Other files of the workspace that count, each with what it brings.
    pub places: Vec<String>,
    /// Files that do not count, each with the reason.
    pub left_out: Vec<String>,
}
