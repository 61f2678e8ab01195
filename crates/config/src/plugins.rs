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

use crate::environment::Environment;
use crate::jsonc;
use crate::layer::{Authority, Layer, notice};
use crate::managed::ManagedRules;
pub use crate::plugin_files::Plugin;
use crate::plugin_files::{self, MARKETPLACES, PROJECT_PLUGINS};
use crate::private_file;

/// ECA's own marketplace, which its users need not configure.
const BUILT_IN: (&str, &str) = ("eca", "https://github.com/editor-code-assistant/eca-plugins.git");
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

/// The sources of users who have configured none.
pub fn built_in_sources() -> Vec<PluginSource> {
    let (name, location) = BUILT_IN;
    vec![source(name.to_owned(), location.to_owned(), &Map::new())]
}

/// The plugins that a folder offers: those of its marketplace, or the one that the folder itself is.
pub fn marketplace(folder: &Path, source: &str) -> Result<Vec<Plugin>, Failure> {
    let unusable = |why: &str| Failure::user(format!("The marketplace of {source} cannot be used: {why}."));
    let root = folder.canonicalize().map_err(|error| unusable(&error.to_string()))?;
    let mut lists = MARKETPLACES.iter().filter(|name| root.join(name).is_file());
    let Some(list) = lists.next() else {
        let alone = plugin_files::is_plugin(&root).then(|| plugin_at(&root, source));
        return alone.flatten().map(|plugin| vec![plugin]).ok_or_else(|| {
            unusable(&format!("there is no {} and no plugin.json", MARKETPLACES.join(", no ")))
        });
    };
    let text = jsonc::read_beneath(&root, &root.join(list)).map_err(|broken| unusable(&broken.0))?;
    let values = jsonc::parse(&text.unwrap_or_default()).map_err(|broken| unusable(&broken.0))?;
    let entries =
        values.get("plugins").and_then(Value::as_array).ok_or_else(|| unusable("it lists no plugins"))?;
    let base = values.get("metadata").and_then(|it| it.get("pluginRoot")).and_then(Value::as_str);
    let mut plugins = Vec::new();
    for entry in entries {
        match plugin_of(&root, base, entry, source, list) {
            Ok(plugin) => plugins.push(plugin),
            // ECA's own format has no plugins elsewhere, so this is a mistake.
            Err(why) if *list == MARKETPLACES[0] => return Err(unusable(&why)),
            Err(_) => {}
        }
    }
    match plugins.is_empty() && !entries.is_empty() {
        true => Err(unusable("all of its plugins lie in other repositories: name one of those as a source")),
        false => Ok(plugins),
    }
}

/// A plugin of a marketplace; an error says what is wrong with its entry.
fn plugin_of(
    root: &Path,
    base: Option<&str>,
    entry: &Value,
    source: &str,
    list: &str,
) -> Result<Plugin, String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = text("name");
    if !is_plain(&name) {
        return Err("a plugin has no usable name".to_owned());
    }
    let place = match entry.get("source") {
        Some(Value::String(place)) => place.clone(),
        Some(object @ Value::Object(_)) if object.get("source") == Some(&json!("local")) => {
            object.get("path").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => return Err(format!("{name} lies in another repository")),
    };
    let at = |base: &str| {
        let folder = root.join(base).join(&place).canonicalize().ok();
        folder.filter(|folder| folder.starts_with(root) && folder.is_dir())
    };
    let folder = base.and_then(at).or_else(|| at("")).ok_or_else(|| format!("{name} does not lie in it"))?;
    let manifest = plugin_files::manifest(&folder);
    let mut dependencies = names(entry.get("dependencies"));
    dependencies.extend(names(manifest.get("dependencies")));
    let written = manifest.get("description").and_then(Value::as_str).unwrap_or_default();
    let description =
        Some(text("description")).filter(|it| !it.is_empty()).unwrap_or_else(|| written.to_owned());
    let (source, listed_in) = (source.to_owned(), list.to_owned());
    Ok(Plugin { name, source, description, folder, dependencies, listed_in })
}

/// A folder that is a plugin itself.
fn plugin_at(folder: &Path, source: &str) -> Option<Plugin> {
    let manifest = plugin_files::manifest(folder);
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).map(str::to_owned);
    let of_folder = || folder.file_name()?.to_str().map(str::to_owned);
    let name = text("name").or_else(of_folder).filter(|name| is_plain(name))?;
    let description = text("description").unwrap_or_default();
    let dependencies = names(manifest.get("dependencies"));
    let (source, listed_in) = (source.to_owned(), String::new());
    Some(Plugin { name, source, description, folder: folder.to_owned(), dependencies, listed_in })
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || "-_.".contains(it))
}

/// The plugins that lie in a project itself. They count after trust.
pub fn of_project(root: &Path) -> Vec<Plugin> {
    let entries = fs::read_dir(root.join(PROJECT_PLUGINS)).into_iter().flatten().take(MOST).flatten();
    let folders = entries.filter_map(|entry| entry.path().canonicalize().ok());
    let inside = folders.filter(|folder| root.canonicalize().is_ok_and(|root| folder.starts_with(root)));
    let mut plugins: Vec<Plugin> = inside.filter_map(|folder| plugin_at(&folder, "project")).collect();
    plugins.retain(|plugin| plugin_files::is_plugin(&plugin.folder));
    plugins.sort_by(|one, other| one.name.cmp(&other.name));
    plugins
}

/// What the plugins of a project set, and what of it has no effect.
pub(crate) fn project_layers(root: &Path) -> (Vec<Layer>, Vec<(PathBuf, String)>) {
    plugin_files::project_layers(root, &of_project(root))
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
    let own = installed.iter().flat_map(plugin_files::layers).collect();
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

/// The source that an address of git, a GitHub name `owner/repository` or a path stands for, and its name.
pub fn source_at(environment: &Environment, place: &str) -> Option<PluginSource> {
    let is_path = place.starts_with(['/', '.', '~']);
    let is_plain_name = |part: &str| is_plain(part) && !part.starts_with('.');
    let location = match place.split_once('/') {
        _ if is_path => environment.expand_home(place).canonicalize().ok()?.display().to_string(),
        _ if is_address(place) => place.to_owned(),
        Some((owner, repository)) if is_plain_name(owner) && is_plain_name(repository) => {
            format!("https://github.com/{place}.git")
        }
        _ => return None,
    };
    let last = location.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let name = last.trim_end_matches(".git").to_owned();
    let pins = read_pins(environment).unwrap_or_default();
    is_plain(&name).then(|| source(name, location, &pins))
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
