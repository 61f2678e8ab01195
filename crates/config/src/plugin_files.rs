//! The files of a plugin, in the formats of ECA, of Claude Code and of the open specifications, as layers of settings.
//!
//! Knows no sources and no pins. Invariants: a plugin lies in its folder, whatever its files say; it brings no plugins and no
//! approval rules that allow, and its hooks stay in the sandbox.

use std::path::{Path, PathBuf};

use domain::Notice;
use serde_json::{Map, Value};

use crate::agent_files;
use crate::claude;
use crate::jsonc;
use crate::layer::Layer;
use crate::origin::Origin;

/// Where a project keeps plugins that it uses itself.
pub(crate) const PROJECT_PLUGINS: &str = ".agents/plugins";
/// Where a folder lists plugins, first come, first served.
pub(crate) const MARKETPLACES: [&str; 5] = [
    ".eca-plugin/marketplace.json",
    "marketplace.json",
    ".plugin/marketplace.json",
    ".claude-plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
];
/// Manifests of a plugin in the formats of others.
const MANIFESTS: [&str; 4] =
    ["plugin.json", ".plugin/plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"];
/// The manifest in the format of ECA.
const ECA_MANIFEST: &str = ".eca-plugin/plugin.json";
/// Files with MCP servers, in the formats of others.
const SERVERS: [&str; 2] = [".mcp.json", "mcp.json"];
/// Variables that name the folder of a plugin.
const ROOTS: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT"];

/// A plugin of a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    pub name: String,
    pub source: String,
    pub description: String,
    pub folder: PathBuf,
    /// Other plugins that it needs.
    pub dependencies: Vec<String>,
    /// The file of the source that lists it, which says in which format it is.
    pub listed_in: String,
}

impl Plugin {
    /// How users call a command or skill of the plugin.
    pub fn prefixed(&self, name: &str) -> String {
        if name == self.name { name.to_owned() } else { format!("{}:{name}", self.name) }
    }
}

/// The manifest of a plugin, in whatever format. Empty where there is none.
pub(crate) fn manifest(folder: &Path) -> Map<String, Value> {
    let names = [ECA_MANIFEST].into_iter().chain(MANIFESTS);
    let read = |name: &str| jsonc::parse(&jsonc::read_beneath(folder, &folder.join(name)).ok()??).ok();
    names.into_iter().find_map(read).unwrap_or_default()
}

/// Whether the folder itself is a plugin.
pub(crate) fn is_plugin(folder: &Path) -> bool {
    [ECA_MANIFEST].into_iter().chain(MANIFESTS).any(|name| folder.join(name).is_file())
}

/// A plugin that has a manifest of others, and none of ECA, is read in their format.
fn is_of_others(folder: &Path, marketplace: &str) -> bool {
    let has = |name: &str| folder.join(name).is_file();
    !has(ECA_MANIFEST) && (MANIFESTS.iter().any(|name| has(name)) || marketplace != MARKETPLACES[0])
}

/// The settings that an installed plugin adds, lowest first; an error is a file that cannot be used.
pub(crate) fn layers(plugin: &Plugin) -> Vec<Result<Layer, Notice>> {
    let folder = &plugin.folder;
    let origin = |path: PathBuf| Origin::GlobalFile(path);
    if is_of_others(folder, &plugin.listed_in) {
        return open_layers(&plugin.name, folder, &origin).0;
    }
    let mut layers: Vec<_> = agent_files::global(folder).into_iter().map(Ok).collect();
    for file in ["hooks/hooks.json", ".mcp.json", "eca.json"] {
        let read = Layer::read(origin(folder.join(file))).transpose();
        layers.extend(read.map(|read| read.map(|layer| settings_of(file, layer))));
    }
    layers
}

/// The layers of the plugins that lie in a project, as files of the project, and what of them has no effect.
pub(crate) fn project_layers(root: &Path, plugins: &[Plugin]) -> (Vec<Layer>, Vec<(PathBuf, String)>) {
    let origin = |path: PathBuf| Origin::ProjectFile { path, root: root.to_owned() };
    let (mut layers, mut unused) = (Vec::new(), Vec::new());
    for plugin in plugins {
        let (found, mut problems) = open_layers(&plugin.name, &plugin.folder, &origin);
        unused.append(&mut problems);
        for layer in found {
            match layer {
                Ok(layer) => layers.push(layer),
                Err(notice) => unused.push((plugin.folder.clone(), notice.text)),
            }
        }
    }
    (layers, unused)
}

type OpenLayers = (Vec<Result<Layer, Notice>>, Vec<(PathBuf, String)>);

/// A plugin in the format of Claude Code or of the open specifications.
fn open_layers(name: &str, folder: &Path, origin: &dyn Fn(PathBuf) -> Origin) -> OpenLayers {
    let read = |path: &Path| jsonc::read_beneath(folder, path).ok().flatten();
    let (agents, mut unused) = claude::agent_layers(&folder.join("agents"), origin, &read);
    let mut layers: Vec<Result<Layer, Notice>> = agents.into_iter().map(Ok).collect();
    let manifest = manifest(folder);
    let root = folder.display().to_string();
    let places = ROOTS.map(|name| (name, root.as_str()));
    for (path, values) in parts(folder, &manifest, "mcpServers", &SERVERS, origin, &mut layers) {
        let servers = values.get("mcpServers").cloned().unwrap_or_else(|| Value::Object(values.clone()));
        let mut servers = claude::translate_servers(&servers, &places);
        place_commands(folder, &mut servers);
        layers.push(Ok(new_layer(origin(path), folder, "mcpServers", servers)));
    }
    let before = format!("export {0}={2} {1}={2}; ", ROOTS[0], ROOTS[1], claude::quoted(&root));
    for (path, values) in parts(folder, &manifest, "hooks", &["hooks/hooks.json"], origin, &mut layers) {
        let inner = |values: &Map<String, Value>| values.get("hooks").and_then(Value::as_object).cloned();
        let events = inner(&values).unwrap_or(values);
        // A manifest may hold a whole file of hooks.
        let events = &inner(&events).unwrap_or(events);
        let (hooks, problems) = claude::translate_hooks(events, name, &before);
        unused.extend(problems.into_iter().map(|why| (path.clone(), why)));
        layers.push(Ok(new_layer(origin(path), folder, "hooks", Value::Object(hooks))));
    }
    (layers, unused)
}

/// The values of one kind: from the files of that kind, and from the manifest, which may also name a file.
fn parts(
    folder: &Path,
    manifest: &Map<String, Value>,
    key: &str,
    files: &[&str],
    origin: &dyn Fn(PathBuf) -> Origin,
    layers: &mut Vec<Result<Layer, Notice>>,
) -> Vec<(PathBuf, Map<String, Value>)> {
    let mut paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    let mut found = Vec::new();
    match manifest.get(key) {
        Some(Value::String(path)) => paths.push(folder.join(path.trim_start_matches("./"))),
        Some(Value::Object(values)) => {
            found.push((
                folder.join("plugin.json"),
                Map::from_iter([(key.to_owned(), Value::Object(values.clone()))]),
            ));
        }
        _ => {}
    }
    paths.dedup();
    for path in paths {
        match jsonc::read_beneath(folder, &path) {
            Ok(None) => {}
            Ok(Some(text)) => {
                let base = folder.to_owned();
                match Layer::parse(origin(path.clone()), text, base) {
                    Ok(layer) => found.push((path, layer.values)),
                    Err(notice) => layers.push(Err(notice)),
                }
            }
            Err(_) => {}
        }
    }
    found
}

/// `./bin/server` is a path in the plugin.
fn place_commands(folder: &Path, servers: &mut Value) {
    for server in servers.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let Some(inner) = server.get("command").and_then(Value::as_str).and_then(|it| it.strip_prefix("./"))
        else {
            continue;
        };
        server["command"] = Value::String(folder.join(inner).display().to_string());
    }
}

fn new_layer(origin: Origin, folder: &Path, key: &str, value: Value) -> Layer {
    Layer::new(origin, Map::from_iter([(key.to_owned(), value)]), folder.to_owned())
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
