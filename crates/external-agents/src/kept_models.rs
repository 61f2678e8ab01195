//! The models that agents offered last, in a file of the cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acp_client::AgentModel;
use config::Environment;
use serde_json::json;

pub(crate) struct ModelKeeper(PathBuf);

impl ModelKeeper {
    pub(crate) fn of(environment: &Environment) -> Self {
        Self(environment.cache_dir().join("agent-models.json"))
    }

    pub(crate) fn read(&self) -> BTreeMap<String, Vec<String>> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(crate) fn keep(&self, agent: &str, models: &[AgentModel]) {
        let mut all = self.read();
        let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
        if all.get(agent) == Some(&ids) || ids.is_empty() {
            return;
        }
        all.insert(agent.to_owned(), ids);
        let text = json!(all).to_string();
        let folder = self.0.parent().map(Path::to_owned).unwrap_or_default();
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(&folder))
            .and_then(|file| std::fs::write(file.path(), text).map(|()| file))
            .and_then(|file| file.persist(&self.0).map_err(|error| error.error));
        if let Err(error) = written {
            tracing::info!(%error, "the models of an agent could not be kept");
        }
    }
}
