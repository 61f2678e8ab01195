//! `studio-credentials.json` in the data folder: credentials of APIs that the user asked studio to keep, as one text that
//! only its owner may read.
//!
//! Invariant: the file is replaced as a whole; this module does not know what the text means.

use std::path::PathBuf;

use domain::Failure;

use crate::{Environment, private_file};

pub struct StudioCredentialFile {
    path: PathBuf,
}

impl StudioCredentialFile {
    pub fn new(environment: &Environment) -> Self {
        Self { path: environment.data_dir().join("studio-credentials.json") }
    }

    pub fn read(&self) -> Result<Option<String>, Failure> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    pub fn write(&self, text: &str) -> Result<(), Failure> {
        private_file::write(&self.path, text.as_bytes()).map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &std::io::Error) -> Failure {
        Failure::config(format!("{} cannot be used: {error}.", self.path.display()))
            .hint("Mend or delete the file, then enter the credentials again.")
    }
}
