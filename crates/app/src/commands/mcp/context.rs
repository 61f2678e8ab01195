//! What the commands of `dragoman mcp` work with: settings and folders.

use std::path::PathBuf;
use std::sync::Arc;

use config::{Environment, Resolved};

use crate::servers::ConfiguredServers;

/// What the commands work with.
pub(super) struct McpContext {
    pub(super) environment: Arc<Environment>,
    pub(super) resolved: Resolved,
    pub(super) folders: Vec<PathBuf>,
}

impl McpContext {
    pub(super) fn folder(&self, is_project: bool) -> Option<PathBuf> {
        self.folders.first().filter(|_| is_project).cloned()
    }

    /// The configured servers, none of them started.
    pub(super) fn servers(&self) -> ConfiguredServers {
        ConfiguredServers::for_command(&self.environment, &self.resolved, &self.folders)
    }
}
