//! What to generate, and how; and the failure of a file that cannot be written.

use std::path::{Path, PathBuf};

use domain::Failure;

/// What to generate, and how. The command line says what each option does.
pub struct GenerateOptions {
    pub spec: String,
    pub output: Option<PathBuf>,
    pub theme: Option<String>,
    pub layout: Option<String>,
    pub server: Option<String>,
    pub title: Option<String>,
    pub header: Vec<String>,
    pub ask: Vec<String>,
    pub improve: bool,
    pub overwrite: bool,
    pub no_auth: bool,
    pub no_pagination: bool,
    pub single_file: bool,
    pub html: bool,
    pub fetch_refs: bool,
}

pub(crate) fn write_failure(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::user(format!("{} cannot be written: {error}.", path.display()));
    if error.kind() == std::io::ErrorKind::AlreadyExists {
        return failure.hint("Choose another place with -o, or remove it.");
    }
    failure
}
