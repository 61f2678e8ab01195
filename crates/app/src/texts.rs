//! Texts for the engine: rules and commands from the user's files, and reports on settings and providers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Credentials, Environment, Resolved};
use domain::event::CatalogKind;
use domain::{BoxFuture, Failure};
use engine::memory::MemoryFolders;
use engine::{NamedText, Skill, Texts};
use platform::project_files;
use providers::github::{self, SignInServer};
use serde_json::Value;

use crate::places::PlaceReport;
use crate::project_rules::AddedRules;
use crate::skills;

/// Larger rule and command files are ignored.
const MAX_TEXT_BYTES: u64 = 256 << 10;

pub(crate) struct WorkspaceTexts {
    pub environment: Arc<Environment>,
    pub resolved: Arc<Resolved>,
    pub roots: Vec<PathBuf>,
    pub models: Arc<crate::models::AllModels>,
    /// Providers that cannot be used, each with the reason.
    pub problems: Vec<String>,
    pub credentials: Arc<dyn Credentials>,
    pub changes: engine::CatalogChanges,
    /// Replaces the built-in instructions.
    pub system_prompt: Option<String>,
    /// Follows the instructions.
    pub appended_prompt: Option<String>,
    pub added_rules: AddedRules,
}

impl WorkspaceTexts {
    /// The user's own folders first, then those of trusted workspaces, then what the settings name.
    fn texts_of_kind(&self, kind: &str, named: &[PathBuf]) -> Vec<NamedText> {
        let own = [self.environment.eca_config_dir(), self.environment.config_dir()];
        let mut places: Vec<TextPlace> = own.iter().map(|folder| TextPlace::Own(folder.join(kind))).collect();
        for folder in self.resolved.folders.iter().filter(|folder| folder.is_trusted()) {
            let of_project =
                |hidden: &str| TextPlace::Project(folder.root.clone(), Path::new(hidden).join(kind));
            if kind == "commands" {
                places.extend(claude_commands(&folder.root));
            }
            places.extend([of_project(".eca"), of_project(".dragoman")]);
        }
        for path in named {
            if path.is_absolute() {
                places.push(TextPlace::Own(path.clone()));
            } else {
                places.extend(self.roots.iter().map(|root| TextPlace::Project(root.clone(), path.clone())));
            }
        }
        let mut texts: Vec<NamedText> = Vec::new();
        let plugins = skills::usable_plugins(&self.resolved);
        let of_plugins = plugins.iter().flat_map(|plugin| {
            let texts = read_texts(&TextPlace::Project(plugin.folder.clone(), PathBuf::from(kind)));
            texts.into_iter().map(|text| NamedText { name: plugin.prefixed(&text.name), ..text })
        });
        for text in of_plugins.chain(places.iter().flat_map(read_texts)) {
            texts.retain(|known| known.name != text.name);
            texts.push(text);
        }
        texts
    }
}

impl Texts for WorkspaceTexts {
    fn rules(&self) -> Vec<NamedText> {
        let mut rules = self.texts_of_kind("rules", &self.resolved.settings.rules);
        let appended = self.appended_prompt.iter();
        rules.extend(appended.map(|text| NamedText {
            name: "command line".to_owned(),
            text: text.clone(),
            ..NamedText::default()
        }));
        rules
    }

    fn commands(&self) -> Vec<NamedText> {
        self.texts_of_kind("commands", &self.resolved.settings.commands)
    }

    fn skills(&self) -> Vec<Skill> {
        let common = self.environment.home().join(".agents");
        let own = [common, self.environment.eca_config_dir(), self.environment.config_dir()];
        let of_plugins = skills::of_plugins(&skills::usable_plugins(&self.resolved));
        let own = skills::read(&own, &self.resolved.folders, &self.resolved.settings.skills, &self.roots);
        of_plugins.into_iter().chain(own).collect()
    }

    fn plugins(&self) -> String {
        plugins::list(&self.resolved.plugins)
    }

    fn global_agents_file(&self) -> Option<PathBuf> {
        crate::places::global_instructions(&self.environment)
    }

    fn memory(&self) -> Option<MemoryFolders> {
        crate::places::memory_folders(&self.environment, &self.resolved, &self.roots)
    }

    fn environment(&self) -> String {
        let mut lines = vec![
            format!("Date: {}", config::local_now().strftime("%Y-%m-%d (%A)")),
            format!("System: {} {}", std::env::consts::OS, std::env::consts::ARCH),
        ];
        lines.extend(self.environment.var("SHELL").map(|shell| format!("Shell: {shell}")));
        let branch = self.roots.first().and_then(|root| crate::git::branch(root));
        lines
            .push(format!("Git: {}", branch.map_or("no repository".to_owned(), |it| format!("branch {it}"))));
        lines.join("\n")
    }

    fn changed_settings(&self) -> Option<String> {
        let files = self.resolved.changed_files();
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "The settings in {} have changed. This chat continues with the earlier ones; restart Dragoman to use the \
                 new ones.",
                names.join(" and ")
            )
        })
    }

    fn added_rules(&self) -> Vec<config::Rule> {
        self.added_rules.list()
    }

    fn system_prompt(&self) -> Option<String> {
        self.system_prompt.clone()
    }

    fn config(&self) -> String {
        let places = PlaceReport::new(&self.environment, &self.resolved, &self.roots).text();
        format!("```\n{}{}\n```", self.resolved.show_text(), places.trim_end())
    }

    fn doctor(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            let context = crate::doctor::DoctorContext {
                environment: &self.environment,
                resolved: &self.resolved,
                models: self.models.as_ref(),
                stored_keys: self.credentials.providers(),
                problems: self.problems.clone(),
                agent: self.models.agent_notice(),
            };
            crate::doctor::examine(&context).await.text()
        })
    }

    fn sandbox(&self) -> BoxFuture<'_, String> {
        Box::pin(async move {
            let sandbox = crate::sandboxing::workspace_sandbox(
                &self.environment,
                &self.resolved,
                &self.roots,
                &mut Vec::new(),
            );
            let Some(sandbox) = sandbox else {
                return "The sandbox is off: commands that run have all your rights. Remove `\"sandbox\": \"off\"` from \
                        your settings to have it (`dragoman docs sandbox`)."
                    .to_owned();
            };
            let support = process::sandbox_support(&sandbox.sandbox).await;
            format!(
                "{}\n\n`dragoman doctor sandbox` tries the ways out of it, `dragoman grants` lists what persons granted beyond \
                 it, `dragoman docs sandbox` says what it stops and what not.",
                support.sentence()
            )
        })
    }

    fn stats<'a>(
        &'a self,
        store: &'a dyn domain::Store,
        days: u16,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let kinds = crate::commands::stats::KINDS;
            let stats = stats::collect(store, Some(self.roots.clone()), days, kinds).await?;
            Ok(format!("```\n{}```", stats::text::render(&stats, 80)))
        })
    }

    fn login<'a>(&'a self, provider: Option<&'a str>) -> BoxFuture<'a, String> {
        Box::pin(async move {
            match provider {
                Some(github::PROVIDER) => self.sign_in().await.unwrap_or_else(|failure| failure.to_string()),
                Some(provider) => {
                    let variable = llm::vendors::vendor(provider).and_then(|vendor| vendor.keys.first());
                    let variable = variable.map(|name| format!(" or set {name}")).unwrap_or_default();
                    format!(
                        "Run `dragoman login {provider}` in a terminal{variable}: a key typed here would stay in the chat."
                    )
                }
                None => {
                    let mut lines = vec!["Name a provider: `/login github-copilot`.\n".to_owned()];
                    let keys = providers::keys(&self.resolved, &self.credentials.providers());
                    lines.extend(keys.iter().map(|(name, state)| format!("- {name}: {state}")));
                    lines.join("\n")
                }
            }
        })
    }
}

impl WorkspaceTexts {
    /// Starts the sign-in and returns the instructions; it finishes in the background.
    async fn sign_in(&self) -> Result<String, Failure> {
        let server = SignInServer::new(
            self.resolved.settings.providers.get(github::PROVIDER),
            Arc::new(providers::network::of(&self.resolved)?),
        );
        let device = server.begin().await?;
        let text = format!(
            "Open {} and type the code **{}**. When you have done so, the models of GitHub Copilot appear in the list.",
            device.verification_uri, device.user_code
        );
        let changes = self.changes.clone();
        let publish = move || changes.publish(CatalogKind::Models);
        server.finish_in_background(device, self.credentials.clone(), publish);
        Ok(text)
    }
}

/// A file or folder with texts.
enum TextPlace {
    /// The user's own, or named by an absolute path in trusted settings: links are followed.
    Own(PathBuf),
    /// A workspace folder and a path beneath it: links may not lead out of that folder.
    Project(PathBuf, PathBuf),
}

/// The folder of commands of Claude Code, and the folders in it.
fn claude_commands(root: &Path) -> Vec<TextPlace> {
    let inner = Path::new(".claude/commands");
    let entries = std::fs::read_dir(root.join(inner)).into_iter().flatten().take(500).flatten();
    let mut names: Vec<_> =
        entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name()).collect();
    names.sort();
    let folders = names.into_iter().map(|name| inner.join(name)).chain([inner.to_owned()]);
    folders.map(|folder| TextPlace::Project(root.to_owned(), folder)).collect()
}

/// Reads a file, or the text files of a folder in the order of their names.
fn read_texts(place: &TextPlace) -> Vec<NamedText> {
    let path = match place {
        TextPlace::Own(path) => path.clone(),
        TextPlace::Project(root, path) => root.join(path),
    };
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&path) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => vec![path],
    };
    files.sort();
    files.iter().filter_map(|file| read_text(place, file)).collect()
}

fn read_text(place: &TextPlace, file: &Path) -> Option<NamedText> {
    let kind = file.extension()?.to_str()?;
    if !matches!(kind, "md" | "mdc" | "txt") {
        return None;
    }
    let bytes = match place {
        TextPlace::Own(_) => project_files::read_named(file, MAX_TEXT_BYTES),
        TextPlace::Project(root, _) => {
            project_files::read_beneath(root, file.strip_prefix(root).ok()?, MAX_TEXT_BYTES)
        }
    };
    let name = file.file_stem()?.to_str()?.to_owned();
    let text = String::from_utf8(bytes.ok()?).ok()?;
    let (values, body) = config::front_matter::split(&text);
    let description = values.get("description").and_then(Value::as_str).map(str::to_owned);
    let paths = ["paths", "globs"].iter().filter_map(|key| values.get(*key)).flat_map(patterns).collect();
    let list = |key: &str| values.get(key).map(patterns).unwrap_or_default();
    Some(NamedText {
        name,
        text: body.to_owned(),
        description,
        paths,
        agents: list("agent"),
        models: values.get("model").map(expressions).unwrap_or_default(),
        enforce: list("enforce"),
    })
}

/// One regular expression, which may hold commas, or a list.
fn expressions(value: &Value) -> Vec<String> {
    value.as_str().map_or_else(|| patterns(value), |text| vec![text.to_owned()])
}

/// One pattern, several with commas, or a list.
fn patterns(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        }
        Value::Array(values) => values.iter().filter_map(|value| Some(value.as_str()?.to_owned())).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
