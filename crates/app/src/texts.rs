//! Texts from outside the chat: rules and commands in the user's files, and reports on settings and providers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Environment, Resolved};
use domain::BoxFuture;
use engine::{NamedText, Texts};

/// A rule or command file larger than this is left out.
const LARGEST: u64 = 256 << 10;

pub struct HouseTexts {
    pub environment: Arc<Environment>,
    pub resolved: Arc<Resolved>,
    pub roots: Vec<PathBuf>,
    pub models: Arc<dyn domain::model::Models>,
}

impl HouseTexts {
    /// The user's own folders first, then those of trusted workspaces, then what the settings name.
    fn all(&self, kind: &str, named: &[PathBuf]) -> Vec<NamedText> {
        let mut places =
            vec![self.environment.eca_config_dir().join(kind), self.environment.config_dir().join(kind)];
        for folder in self.resolved.folders.iter().filter(|folder| folder.is_trusted()) {
            places.push(folder.root.join(".eca").join(kind));
            places.push(folder.root.join(".dragoman").join(kind));
        }
        for path in named {
            places.extend(self.roots.iter().map(|root| root.join(path)));
        }
        let mut texts: Vec<NamedText> = Vec::new();
        for text in places.iter().flat_map(|place| read(place)) {
            texts.retain(|known| known.name != text.name);
            texts.push(text);
        }
        texts
    }
}

impl Texts for HouseTexts {
    fn rules(&self) -> Vec<NamedText> {
        self.all("rules", &self.resolved.settings.rules)
    }

    fn commands(&self) -> Vec<NamedText> {
        self.all("commands", &self.resolved.settings.commands)
    }

    fn global_agents_file(&self) -> Option<PathBuf> {
        let places = [self.environment.config_dir(), self.environment.eca_config_dir()];
        places.into_iter().map(|folder| folder.join("AGENTS.md")).find(|path| path.is_file())
    }

    fn config(&self) -> String {
        format!("```\n{}\n```", self.resolved.show_text().trim_end())
    }

    fn doctor(&self) -> BoxFuture<'_, String> {
        Box::pin(async move { crate::providers::report(&self.resolved, self.models.as_ref()) })
    }

    fn login<'a>(&'a self, provider: Option<&'a str>) -> BoxFuture<'a, String> {
        let text = match provider {
            Some(provider) => format!(
                "Set the key of {provider}: `providers.{provider}.key` in {}, or its environment variable.",
                self.environment.config_dir().join("config.json").display()
            ),
            None => "Name a provider: `/login openai`.".to_owned(),
        };
        Box::pin(async move { text })
    }
}

/// A file, or the Markdown files of a folder by name.
fn read(place: &Path) -> Vec<NamedText> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(place) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => vec![place.to_owned()],
    };
    files.sort();
    files.iter().filter_map(|file| text(file)).collect()
}

fn text(file: &Path) -> Option<NamedText> {
    let kind = file.extension()?.to_str()?;
    let metadata = std::fs::metadata(file).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST || !matches!(kind, "md" | "mdc" | "txt") {
        return None;
    }
    let name = file.file_stem()?.to_str()?.to_owned();
    let text = std::fs::read_to_string(file).ok()?;
    Some(NamedText { name, text })
}
