//! What a session works with: settings, models, tools and files of its workspace. Made by `app`, which alone knows
//! the crates behind the traits.

use std::path::PathBuf;
use std::sync::Arc;

use config::Settings;
use domain::command::{Catalog, ServerSpec, Workspace};
use domain::event::Notice;
use domain::files::Files;
use domain::model::Models;
use domain::tool::{Tool, ToolServer, ToolSource};

/// Makes the surroundings of a workspace. Called on the way to `initialize`: must not connect, spawn or walk.
pub trait SurroundingsSource: Send + Sync {
    fn surroundings(&self, workspace: &Workspace) -> Arc<Surroundings>;

    /// Tool servers that live with one session.
    fn session_servers(&self, servers: &[ServerSpec], roots: &[PathBuf]) -> Vec<Arc<dyn ToolSource>>;
}

pub struct Surroundings {
    pub roots: Vec<PathBuf>,
    pub settings: Arc<Settings>,
    pub models: Arc<dyn Models>,
    pub sources: Vec<Arc<dyn ToolSource>>,
    pub files: Arc<dyn Files>,
    pub notices: Vec<Notice>,
    /// Fixed texts for commands that only `app` can answer: `/config`, `/doctor`, `/login`.
    pub reports: Arc<dyn Reports>,
}

/// What `app` knows of configuration and providers, as text for the chat.
pub trait Reports: Send + Sync {
    fn config(&self) -> String;
    fn doctor(&self) -> domain::BoxFuture<'_, String>;
    fn login(&self, provider: Option<&str>) -> domain::BoxFuture<'_, String>;
}

impl Surroundings {
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.sources.iter().flat_map(|source| source.tools()).collect()
    }

    pub fn servers(&self) -> Vec<ToolServer> {
        self.sources.iter().flat_map(|source| source.servers()).collect()
    }

    pub fn catalog(&self) -> Catalog {
        Catalog {
            models: self.models.list(),
            behaviors: crate::behavior::names(&self.settings),
            default_model: self.models.default_model(),
            default_behavior: crate::behavior::default_name(&self.settings),
            welcome: crate::behavior::welcome(&self.settings),
            notices: self.notices.clone(),
        }
    }
}
