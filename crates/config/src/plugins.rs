//! Plugins: folders with agents, skills, commands, rules, hooks, MCP servers and settings, listed in the marketplace of a
//! source.
//!
//! Reads what is pinned and fetches nothing. Invariants: nothing of a source is used before the user has looked at it and
//! pinned it (`pins.json`); a plugin lies inside of its source, whatever its marketplace says; a name that several sources
//! have is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use domain::{Failure, Level, Notice};
use serde_json::{Map, Value, json};

use crate::agent_files;
use crate::environment::Environment;
use crate::jsonc;
use crate::layer::{Authority, Layer, notice};
use crate::managed::ManagedRules;
use crate::origin::Origin;
use crate::private_file;

/// ECA's own marketplace, which its users need not configure.
const BUILT_IN: (&str, &str) = ("eca", "https://github.com/editor-code-assistant/eca-plugins.git");
const MARKETPLACE: &str = ".eca-plugin/marketplace.json";
/// Plugins that one installation may bring along.
const MOST: usize = 100;

/// The sources and plugins of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plugins {
    pub sources: Vec<PluginSource>,
    /// In the order in which their settings are merged.
    pub installed: Vec<Plugin>,
    /// Entries of `plugins.install`.
    pub wanted: Vec<String>,
}

/// A git repository or a folder with a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSource {
    pub name: String,
    /// An address of git, or an absolute path.
    pub location: String,
    pub is_local: bool,
    /// What the user has pinned.
    pub pin: Option<PluginPin>,
}

/// What is used of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginPin {
    /// `None`: a folder of this machine, used as it is.
    pub commit: Option<String>,
    pub folder: PathBuf,
}

/// A plugin of a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    pub name: String,
    pub source: String,
    pub description: String,
    pub folder: PathBuf,
    /// Other plugins that it needs.
    pub dependencies: Vec<String>,
}

impl Plugin {
    /// How users call a command or skill of the plugin.
    pub fn prefixed(&self, name: &str) -> String {
        if name == self.name { name.to_owned() } else { format!("{}:{name}", self.name) }
    }
}

/// The sources of users who have configured none.
pub fn built_in_sources() -> Vec<PluginSource> {
    let (name, location) = BUILT_IN;
    vec![source(name.to_owned(), location.to_owned(), &Map::new())]
}

/// The plugins that a folder offers.
pub fn marketplace(folder: &Path, source: &str) -> Result<Vec<Plugin>, Failure> {
    let unusable = |why: &str| Failure::user(format!("The marketplace of {source} cannot be used: {why}."));
    let root = folder.canonicalize().map_err(|error| unusable(&error.to_string()))?;
    let text = jsonc::read_beneath(&root, &root.join(MARKETPLACE)).map_err(|broken| unusable(&broken.0))?;
    let text = text.ok_or_else(|| unusable(&format!("there is no {MARKETPLACE}")))?;
    let values = jsonc::parse(&text).map_err(|broken| unusable(&broken.0))?;
    let entries =
        values.get("plugins").and_then(Value::as_array).ok_or_else(|| unusable("it lists no plugins"))?;
    let mut plugins = Vec::new();
    for entry in entries {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, place) = (text("name"), text("source"));
        let is_plain = |it: char| it.is_alphanumeric() || "-_.".contains(it);
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(unusable("a plugin has no usable name"));
        }
        let folder = root.join(&place).canonicalize().ok();
        let folder = folder.filter(|folder| folder.starts_with(&root) && folder.is_dir());
        let folder = folder.ok_or_else(|| unusable(&format!("{name} does not lie in it")))?;
        let mut dependencies = names(entry.get("dependencies"));
        let manifest = jsonc::read_beneath(&root, &folder.join(".eca-plugin/plugin.json")).ok().flatten();
        let manifest = manifest.and_then(|text| jsonc::parse(&text).ok()).unwrap_or_default();
        dependencies.extend(names(manifest.get("dependencies")));
        let (source, description) = (source.to_owned(), text("description"));
        plugins.push(Plugin { name, source, description, folder, dependencies });
    }
    Ok(plugins)
}

fn names(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(|value| Some(value.as_str()?.to_owned())).collect()
}

/// Where snapshots of git sources are kept.
pub fn snapshots_folder(environment: &Environment) -> PathBuf {
    environment.data_dir().join("plugins")
}

fn pins_file(environment: &Environment) -> PathBuf {
    snapshots_folder(environment).join("pins.json")
}

fn read_pins(environment: &Environment) -> Result<Map<String, Value>, String> {
    match fs::read_to_string(pins_file(environment)) {
        Ok(text) => jsonc::parse(&text).map_err(|broken| broken.0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// Records what the user has looked at and wants of a source.
pub fn pin(environment: &Environment, location: &str, pin: &PluginPin) -> Result<(), Failure> {
    let file = pins_file(environment);
    let failed = |why: String| Failure::user(format!("{} cannot be written: {why}.", file.display()));
    let _lock = private_file::lock(&file).map_err(|error| failed(error.to_string()))?;
    let mut pins = read_pins(environment).map_err(failed)?;
    pins.insert(location.to_owned(), json!({"commit": pin.commit, "folder": pin.folder}));
    let text = format!("{:#}\n", Value::Object(pins));
    private_file::write(&file, text.as_bytes()).map_err(|error| failed(error.to_string()))
}

/// The plugins of the layers so far, with the layers that they add.
pub(crate) fn gather(
    environment: &Environment,
    layers: &[Layer],
    notices: &mut Vec<Notice>,
) -> (Plugins, Vec<Result<Layer, Notice>>) {
    let (sources, wanted) = read_settings(environment, layers);
    if wanted.is_empty() && sources.len() == 1 {
        return (Plugins::default(), Vec::new());
    }
    let pins = read_pins(environment).unwrap_or_else(|problem| {
        let text =
            format!("Plugins are not used: {} cannot be read: {problem}.", pins_file(environment).display());
        notices.push(notice(Level::Error, text));
        Map::new()
    });
    let sources: Vec<PluginSource> =
        sources.into_iter().map(|(name, location)| source(name, location, &pins)).collect();
    let mut offered = Vec::new();
    for source in sources.iter().filter(|_| !wanted.is_empty()) {
        let Some(pin) = &source.pin else { continue };
        match marketplace(&pin.folder, &source.name) {
            Ok(plugins) => offered.extend(plugins),
            Err(failure) => notices.push(notice(Level::Warning, failure.to_string())),
        }
    }
    let mut installed = Vec::new();
    for entry in &wanted {
        if let Err(problem) = add(entry, &offered, &mut installed, &mut Vec::new()) {
            notices.push(notice(Level::Warning, problem));
        }
    }
    keep_permitted(environment, &sources, &mut installed, notices);
    let own = installed.iter().flat_map(plugin_layers).collect();
    (Plugins { sources, installed, wanted }, own)
}

/// The administrator decides about plugins that others need as well.
fn keep_permitted(
    environment: &Environment,
    sources: &[PluginSource],
    installed: &mut Vec<Plugin>,
    notices: &mut Vec<Notice>,
) {
    let Some(managed) = environment.managed() else { return };
    installed.retain(|plugin| {
        let source = sources.iter().find(|source| source.name == plugin.source);
        let location = source.map_or("", |source| source.location.as_str());
        let is_permitted = managed.rules.permits_plugin(&plugin.name, &plugin.source, location);
        if !is_permitted {
            let failure = ManagedRules::refusal(&format!("The plugin {}", plugin.name));
            notices.push(notice(Level::Warning, failure.to_string()));
        }
        is_permitted
    });
}

type NamedLocations = BTreeMap<String, String>;

fn read_settings(environment: &Environment, layers: &[Layer]) -> (NamedLocations, Vec<String>) {
    let mut sources = NamedLocations::from([(BUILT_IN.0.to_owned(), BUILT_IN.1.to_owned())]);
    let mut wanted: Vec<String> = Vec::new();
    for layer in layers.iter().filter(|layer| layer.authority == Authority::Full) {
        let Some(section) = layer.values.get("plugins").and_then(Value::as_object) else { continue };
        if section.get("installMode").and_then(Value::as_str) == Some("replace") {
            wanted.clear();
        }
        for name in names(section.get("install")) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        for (name, entry) in section {
            let Some(text) = entry.get("source").and_then(Value::as_str) else { continue };
            let location = if is_address(text) {
                text.to_owned()
            } else {
                layer.base.join(environment.expand_home(text)).display().to_string()
            };
            sources.insert(name.clone(), location);
        }
    }
    (sources, wanted)
}

/// An address of git; everything else is a path.
fn is_address(text: &str) -> bool {
    text.contains("://") || (text.contains('@') && text.contains(':') && !text.starts_with(['/', '.', '~']))
}

fn source(name: String, location: String, pins: &Map<String, Value>) -> PluginSource {
    let is_local = !is_address(&location);
    let pin = pins.get(&location).and_then(|pin| {
        let folder = PathBuf::from(pin.get("folder")?.as_str()?);
        Some(PluginPin { commit: pin.get("commit").and_then(Value::as_str).map(str::to_owned), folder })
    });
    PluginSource { name, location, is_local, pin }
}

/// Finds a plugin by `name` or `name@source`. An error says what the user can do.
pub fn find<'p>(entry: &str, offered: &'p [Plugin]) -> Result<&'p Plugin, String> {
    let (name, source) = match entry.rsplit_once('@') {
        Some((name, source)) => (name, Some(source)),
        None => (entry, None),
    };
    let fits = |plugin: &&Plugin| plugin.name == name && source.is_none_or(|source| plugin.source == source);
    let found: Vec<&Plugin> = offered.iter().filter(fits).collect();
    match found[..] {
        [plugin] => Ok(plugin),
        [] => Err(format!(
            "The plugin {entry} is not used, because no source that you have pinned offers it. `dragoman plugins install \
             {entry}` shows what it brings and asks."
        )),
        _ => {
            let names: Vec<String> = found.iter().map(|it| format!("{}@{}", it.name, it.source)).collect();
            Err(format!("Several sources offer the plugin {entry}: name one of {}.", names.join(", ")))
        }
    }
}

/// Adds a plugin behind those that it needs.
fn add(
    entry: &str,
    offered: &[Plugin],
    installed: &mut Vec<Plugin>,
    path: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let plugin = find(entry, offered)?;
    if installed.contains(plugin) || path.contains(&plugin.folder) || path.len() + installed.len() >= MOST {
        return Ok(());
    }
    path.push(plugin.folder.clone());
    let mut problems = Vec::new();
    for needed in &plugin.dependencies {
        if let Err(problem) = add(needed, offered, installed, path) {
            problems.push(format!("{} needs {needed}: {problem}", plugin.name));
        }
    }
    path.pop();
    installed.push(plugin.clone());
    if problems.is_empty() { Ok(()) } else { Err(problems.join(" ")) }
}

/// The settings that a plugin adds, lowest first; an error is a file that cannot be used.
fn plugin_layers(plugin: &Plugin) -> Vec<Result<Layer, Notice>> {
    let mut layers: Vec<_> = agent_files::global(&plugin.folder).into_iter().map(Ok).collect();
    for file in ["hooks/hooks.json", ".mcp.json", "eca.json"] {
        let read = Layer::read(Origin::GlobalFile(plugin.folder.join(file))).transpose();
        layers.extend(read.map(|read| read.map(|layer| settings_of(file, layer))));
    }
    layers
}

/// A plugin brings no plugins, and its hooks stay in the sandbox; the file of hooks may have the key `hooks` around them or not.
fn settings_of(file: &str, layer: Layer) -> Layer {
    let mut values = layer.values.clone();
    values.remove("plugins");
    if file == ".mcp.json" {
        values.retain(|key, _| key == "mcpServers");
    }
    if file == "hooks/hooks.json" && !values.contains_key("hooks") {
        values = Map::from_iter([("hooks".to_owned(), Value::Object(values))]);
    }
    let hooks = values.get_mut("hooks").and_then(Value::as_object_mut);
    for hook in hooks.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        hook.remove("sandbox");
    }
    Layer { values, text: None, ..layer }
}
