//! All models of a workspace: first those over HTTP, then the embedded ones, then agents of other vendors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{Environment, ManagedRules};
use domain::Failure;
use domain::model::{Model, ModelInfo, Models};
use external_agents::ExternalAgents;
use llm::catalog::Catalog;
use providers::Configured;

/// How long the discovery of local model servers may take.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// The embedded model that is the default where there is no other.
pub(crate) const SMALL_MODEL: &str = "local/smollm2-135m";
/// Shown when the small embedded model is the default.
pub(crate) const SMALL_MODEL_NOTICE: &str = "No provider is configured, so the embedded model answers: it is small, cannot use tools, edit files or \
    calculate, and gets facts wrong. For real work start Ollama or LM Studio with a model, run `dragoman models pull` for a \
    larger embedded one, run `dragoman login anthropic`, or set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY.";
/// Shown where no model can be used.
pub(crate) const NO_MODEL_HINT: &str = "Start Ollama or LM Studio with a model, run `dragoman models pull` for one that runs inside \
    Dragoman, run `dragoman login anthropic`, or set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY.";

/// The file of the fetched list of models.
pub(crate) fn cached_list(environment: &Environment) -> PathBuf {
    environment.cache_dir().join("models.txt")
}

/// Uses the list that `dragoman models --refresh` fetched; returns whether there is one.
pub(crate) fn use_cached_list(environment: &Environment) -> bool {
    let Ok(text) = std::fs::read_to_string(cached_list(environment)) else { return false };
    let (catalog, bad) = Catalog::parse(&text);
    if !bad.is_empty() {
        tracing::warn!(lines = bad.len(), "the fetched list of models is broken and not used");
        return false;
    }
    llm::catalog::refresh(catalog);
    true
}

pub(crate) struct AllModels {
    configured: Configured,
    local: local::Local,
    agents: Option<Arc<ExternalAgents>>,
}

impl AllModels {
    pub(crate) fn new(configured: Configured, environment: &Environment) -> Self {
        Self { configured, local: local::Local::new(environment), agents: None }
    }

    pub(crate) fn with_agents(self, agents: Arc<ExternalAgents>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    /// Looks for the programs of agents; whether there are any. It looks at many files.
    pub(crate) fn look_for_agents(&self) -> bool {
        self.agents.as_ref().is_some_and(|agents| agents.installed().next().is_some())
    }

    /// Where no provider is configured: a sentence about an agent that is installed.
    pub(crate) fn agent_notice(&self) -> Option<String> {
        let is_missing = self.default_model().is_none_or(|model| model == SMALL_MODEL);
        let agents = self.agents.as_ref().filter(|_| is_missing)?;
        let permitted = |entry: &&external_agents::AgentEntry| self.permits(&entry.model());
        let entry = agents.installed().find(permitted)?;
        let (title, model) = (&entry.title, entry.model());
        Some(format!(
            "{title} is installed and can answer here: choose the model {model}, for example by `dragoman chat --model {model}` \
             (`dragoman docs other-agents`)."
        ))
    }

    /// Lists the models of local and configured servers; returns whether the list changed.
    pub(crate) async fn discover(&self) -> bool {
        self.configured.registry.wait_for_discovery().await
    }

    /// Finds the model servers of this machine. They answer at once or not at all.
    pub(crate) async fn discover_servers(&self) {
        let _ = tokio::time::timeout(DISCOVERY_TIMEOUT, self.discover()).await;
    }

    pub(crate) fn permits(&self, id: &str) -> bool {
        self.configured.managed.permits_model(id)
    }

    /// The default model is an embedded one.
    pub(crate) fn uses_embedded_model(&self) -> bool {
        self.default_model().is_some_and(|model| model == SMALL_MODEL)
    }
}

impl Models for AllModels {
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let model = match name.strip_prefix("local/") {
            Some(id) => self.local.find(id),
            None => match (name.strip_prefix(external_agents::PREFIX), &self.agents) {
                (Some(agent), Some(agents)) => agents.find(agent),
                _ => self.configured.registry.find(name),
            },
        };
        let model = match model {
            Ok(model) => model,
            // What is missing because it is forbidden should not be looked for.
            Err(_) if !self.permits(name) => return Err(ManagedRules::refusal(&format!("The model {name}"))),
            Err(failure) => return Err(failure),
        };
        // A name without a provider is checked as the model that it led to.
        if !self.permits(&model.info().id) {
            return Err(ManagedRules::refusal(&format!("The model {name}")));
        }
        Ok(crate::telemetry::observe_model(model))
    }

    fn list(&self) -> Vec<ModelInfo> {
        let mut list = self.configured.registry.list();
        list.extend(self.local.list());
        list.extend(self.agents.iter().flat_map(|agents| agents.list()));
        list.retain(|model| self.permits(&model.id));
        list
    }

    fn default_model(&self) -> Option<String> {
        let usual = self.configured.registry.default_model().or_else(|| self.local.default_model());
        match usual {
            Some(model) if self.find(&model).is_err() && !self.permits(&model) => {
                self.list().first().map(|model| model.id.clone())
            }
            usual => usual,
        }
    }

    fn small_model(&self, main: &str) -> Option<String> {
        self.configured.registry.small_model(main).filter(|model| self.permits(model))
    }
}

#[cfg(feature = "local")]
mod local {
    //! The embedded models of the models directory. Loaded at their first prompt, one instance each.

    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, PoisonError};

    use config::Environment;
    use domain::Failure;
    use domain::model::{Model, ModelInfo};
    use local_model::{DEFAULT, Limits, LocalModel, Registry};

    /// Tokens that a model of the user's choice may look back on; its memory grows with those really used.
    const LARGE_WINDOW: usize = 16_384;
    /// More threads than this wait for memory, not for cores.
    const MOST_THREADS: usize = 8;

    /// The default model is small enough for one thread and a short window; files of the user's choice are not.
    fn limits(id: &str) -> Limits {
        if id == DEFAULT.id {
            return Limits::default();
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Limits { window: LARGE_WINDOW, threads: cores.min(MOST_THREADS) }
    }

    pub(crate) struct Local {
        registry: Registry,
        loaded: Mutex<HashMap<String, Arc<LocalModel>>>,
    }

    impl Local {
        pub(crate) fn new(environment: &Environment) -> Self {
            Self { registry: Registry::new(environment.models_dir()), loaded: Mutex::default() }
        }

        pub(crate) fn find(&self, id: &str) -> Result<Arc<dyn Model>, Failure> {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(model) = loaded.get(id) {
                return Ok(model.clone());
            }
            let path = self.registry.find(id).ok_or_else(|| {
                Failure::user(format!("There is no embedded model {id}."))
                    .hint("Run `dragoman models pull smollm2`, or `dragoman models add FILE.gguf`.")
            })?;
            let model = Arc::new(LocalModel::new(id, path, limits(id)));
            loaded.insert(id.to_owned(), model.clone());
            Ok(model)
        }

        pub(crate) fn list(&self) -> Vec<ModelInfo> {
            let installed = self.registry.list().into_iter();
            installed.filter_map(|model| self.find(&model.id).ok()).map(|model| model.info()).collect()
        }

        pub(crate) fn default_model(&self) -> Option<String> {
            let installed = self.registry.list();
            // A model that the user chose is better than the small one, which is there because there is no other.
            let default = installed.iter().find(|model| model.id != DEFAULT.id).or_else(|| installed.first());
            default.map(|model| format!("local/{}", model.id))
        }
    }
}

#[cfg(not(feature = "local"))]
mod local {
    //! Built without the embedded model.

    use std::sync::Arc;

    use config::Environment;
    use domain::Failure;
    use domain::model::{Model, ModelInfo};

    pub struct Local;

    impl Local {
        pub fn new(_: &Environment) -> Self {
            Self
        }

        pub fn find(&self, id: &str) -> Result<Arc<dyn Model>, Failure> {
            Err(Failure::user(format!(
                "local/{id} is not there: this Dragoman was built without embedded models."
            ))
            .hint("Build it with the default features."))
        }

        pub fn list(&self) -> Vec<ModelInfo> {
            Vec::new()
        }

        pub fn default_model(&self) -> Option<String> {
            None
        }
    }
}
