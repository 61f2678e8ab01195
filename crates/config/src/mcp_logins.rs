//! `mcp-logins.json` in the data folder: the logins of MCP servers, as one text that only its owner may read.
//!
//! Invariants: the file is replaced as a whole; two processes that change it do not lose each other's changes; this module does
//! not know what the text means.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use domain::Failure;

use crate::{Environment, private_file};

pub struct McpLoginFile {
    path: PathBuf,
}

impl McpLoginFile {
    pub fn new(environment: &Environment) -> Self {
        Self { path: environment.data_dir().join("mcp-logins.json") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self) -> Result<Option<String>, Failure> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    /// Writes only where the text changes.
    pub fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        let _lock = private_file::lock(&self.path).map_err(|error| self.unusable(&error))?;
        let before = self.read()?.unwrap_or_default();
        let after = change(&before)?;
        if after == before {
            return Ok(());
        }
        private_file::write(&self.path, after.as_bytes()).map_err(|error| self.unusable(&error))
    }

    /// The lock for renewing tokens. Blocks while another process holds it.
    pub fn lock_renewal(&self) -> Result<File, Failure> {
        let place = self.path.with_file_name("mcp-renewing");
        private_file::lock(&place).map_err(|error| self.unusable(&error))
    }

    pub fn changed_at(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok()
    }

    fn unusable(&self, error: &std::io::Error) -> Failure {
        Failure::config(format!("{} cannot be used: {error}.", self.path.display()))
            .hint("Mend or delete the file, then log in again.")
    }
}
