//! Collects the layers, merges them and reads the result. Reads files, and runs commands only where a setting that is
//! needed at once refers to one; may be called again at any time.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use domain::{Level, Notice};
use serde_json::{Map, Value};

use crate::agent_files;
use crate::approval::{self, Approval, ApprovalRules};
use crate::cursor::{Cursor, RefusedValue, Scope};
use crate::defaults;
use crate::eca_names;
use crate::environment::Environment;
use crate::ignored_keys::{self, IgnoredKey};
use crate::layer::{Authority, Layer, Object, notice};
use crate::legacy_keys::modernize;
use crate::managed::Managed;
use crate::managed_layer;
use crate::origin::Origin;
use crate::places::{self, Place};
use crate::plugins::{self, Plugins};
use crate::reviewer;
use crate::secret::Redactor;
use crate::seen_file::SeenFile;
use crate::settings::Settings;
use crate::tree::Node;
use crate::trust::{self, Folder, ProjectLayers};
use crate::untrusted::without_trust;
use crate::variables;

/// The inputs beside the environment and the files.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    pub workspace_roots: Vec<PathBuf>,
    /// The `initializationOptions` of a client.
    pub initialization_options: Option<Value>,
    /// Settings from the command line.
    pub overrides: Map<String, Value>,
    /// Collects every secret of the settings. It is an input, so that a log keeps the same one when settings are read again.
    pub redactor: Redactor,
}

/// The settings, their origins, and notices about them for the user.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub settings: Settings,
    pub notices: Vec<Notice>,
    /// The workspace folders and whether they are trusted.
    pub folders: Vec<Folder>,
    /// Knows every secret of the settings, also those that are looked up later.
    pub redactor: Redactor,
    /// Variables that hold secrets. Programs that a model starts do not get them.
    pub secret_variables: Vec<String>,
    /// Variables that they get although they hold secrets, because the user's own settings name them.
    pub passed_variables: Vec<String>,
    pub plugins: Plugins,
    /// Files of the workspace folders that bring settings, skills and commands, and whether each counts.
    pub places: Vec<Place>,
    /// Keys that are set and have no effect.
    pub ignored_keys: Vec<IgnoredKey>,
    /// Rules of the machine's administrator.
    pub managed: Option<Managed>,
    pub(crate) refused: Vec<RefusedValue>,
    pub(crate) tree: Node,
    pub(crate) layers: Vec<Layer>,
    pub(crate) seen_files: Vec<SeenFile>,
}

/// Reads all layers and resolves them. Waits for a command only where a setting that is needed at once, such as
/// `defaultModel`, refers to one; keys, headers and prompts are looked up at their first use.
pub fn resolve(environment: &Environment, inputs: &Inputs) -> Resolved {
    let mut resolver = Resolver::new(environment, inputs);
    resolver.gather();
    resolver.merge();
    resolver.report_keys();
    resolver.finish()
}

/// Where the user's data goes: only the user's own configuration decides.
const OWN_KEYS: [&str; 6] = ["mcpLogins", "network", "otlp", "remote", "store", "worker"];
/// What commands may do. Of a project's file, these are reported where they are read.
const WALL_KEYS: [&str; 5] =
    ["sandbox", "sandboxGrants", "sandboxMemoryMegabytes", "sandboxRequired", "shell"];

struct Resolver<'a> {
    environment: &'a Environment,
    inputs: &'a Inputs,
    layers: Vec<Layer>,
    tree: Node,
    folders: Vec<Folder>,
    notices: Vec<Notice>,
    ignored_keys: Vec<IgnoredKey>,
    plugins: Plugins,
    places: Vec<Place>,
    seen_files: Vec<SeenFile>,
    /// Why every tool call asks: a text that may hold approval rules could not be used.
    closed: Option<String>,
}

impl<'a> Resolver<'a> {
    fn new(environment: &'a Environment, inputs: &'a Inputs) -> Self {
        let defaults = Layer::new(Origin::Default, defaults::values().clone(), environment.home().to_owned());
        Self {
            environment,
            inputs,
            layers: vec![defaults],
            tree: Node::default(),
            folders: Vec::new(),
            notices: Vec::new(),
            ignored_keys: Vec::new(),
            plugins: Plugins::default(),
            places: Vec::new(),
            seen_files: Vec::new(),
            closed: None,
        }
    }

    /// The first workspace folder, or home.
    fn directory(&self) -> &'a Path {
        self.inputs.workspace_roots.first().map_or(self.environment.home(), PathBuf::as_path)
    }

    fn gather(&mut self) {
        self.gather_options();
        for name in ["ECA_CONFIG", "DRAGOMAN_CONFIG"] {
            if let Some(text) = self.environment.lossy(name) {
                let base = self.directory().to_owned();
                self.add(Layer::parse(Origin::Variable(name.into()), text, base).map(Some));
            }
        }
        let wholly_pure = self.environment.flag("DRAGOMAN_PURE");
        let asked = |layer: &Layer| layer.values.get("pureConfig") == Some(&Value::Bool(true));
        let pure = wholly_pure || self.layers.iter().any(asked);
        if !wholly_pure {
            self.gather_global(if pure { Authority::DenyOnly } else { Authority::Full });
        }
        self.layers.iter_mut().for_each(|layer| modernize(&mut layer.values));
        if !pure {
            let extra = self.extra_files();
            self.gather_projects();
            self.gather_own_project_rules();
            self.gather_plugins();
            extra.into_iter().for_each(|path| self.add_extra(path));
        }
        let mut overrides = self.inputs.overrides.clone();
        modernize(&mut overrides);
        self.layers.push(Layer::new(Origin::CommandLine, overrides, self.directory().to_owned()));
        eca_names::spell(&mut self.layers);
    }

    fn gather_options(&mut self) {
        match &self.inputs.initialization_options {
            None | Some(Value::Null) => {}
            Some(Value::Object(options)) => {
                let base = self.directory().to_owned();
                let mut layer = Layer::new(Origin::InitializationOptions, without_nulls(options), base);
                // An editor may have it from the settings of a project.
                self.drop_keys(&mut layer, &["store"], "an editor");
                self.layers.push(layer);
            }
            Some(_) => {
                let text = "initializationOptions must be an object; they are ignored.";
                self.notices.push(notice(Level::Warning, text));
            }
        }
    }

    fn gather_global(&mut self, authority: Authority) {
        for directory in [self.environment.eca_config_dir(), self.environment.config_dir()] {
            let agents = agent_files::global(&directory).into_iter();
            self.layers.extend(agents.map(|layer| Layer { authority, ..layer }));
            let file = directory.join("config.json");
            self.seen_files.push(SeenFile::new(file.clone()));
            let layer = Layer::read(Origin::GlobalFile(file));
            self.add(layer.map(|layer| layer.map(|layer| Layer { authority, ..layer })));
        }
    }

    fn gather_projects(&mut self) {
        for root in &self.inputs.workspace_roots {
            // Trust belongs to the folder, whatever path leads to it.
            let root = root.canonicalize().unwrap_or_else(|_| root.clone());
            let files = trust::PROJECT_FILES.iter().map(|place| SeenFile::new(root.join(place)));
            self.seen_files.extend(files);
            let ProjectLayers { mut layers, broken, unused } = trust::project_layers(&root);
            let (folder, problem) = trust::check_folder(self.environment, root, &layers);
            self.notices.extend(problem.filter(|problem| !self.notices.contains(problem)));
            if !folder.is_trusted() || !broken.is_empty() {
                layers.iter_mut().for_each(|layer| layer.authority = Authority::Untrusted);
            }
            broken.into_iter().for_each(|notice| self.add(Err(notice)));
            layers.iter_mut().for_each(|layer| self.drop_keys(layer, &OWN_KEYS, "a project"));
            self.places.extend(places::of_folder(&folder, &layers, unused));
            self.layers.append(&mut layers);
            self.folders.push(folder);
        }
    }

    /// Takes out of a file what only the user may set, however much the file is trusted.
    fn drop_keys(&mut self, layer: &mut Layer, keys: &[&str], by: &str) {
        for key in keys {
            if layer.values.contains_key(*key) {
                let problem = format!("cannot be set by {by}; it is ignored.");
                self.notices.push(layer.describe_invalid(Level::Warning, &[key], &problem));
                layer.values.remove(*key);
            }
        }
    }

    fn gather_plugins(&mut self) {
        let (plugins, layers) = plugins::gather(self.environment, &self.layers, &mut self.notices);
        self.plugins = plugins;
        for layer in layers {
            let layer = layer.map(|mut layer| {
                modernize(&mut layer.values);
                self.drop_keys(&mut layer, &OWN_KEYS, "a plugin");
                self.drop_keys(&mut layer, &WALL_KEYS, "a plugin");
                if reviewer::remove(&mut layer) {
                    let problem = "cannot be set by a plugin; it is ignored.";
                    let path = ["toolCall", "approval", "reviewer"];
                    self.notices.push(layer.describe_invalid(Level::Warning, &path, problem));
                }
                Some(layer)
            });
            self.add(layer);
        }
    }

    /// Allow rules for the present folders in the user's own files: `projects.<folder>.toolCall.approval.allow`.
    fn gather_own_project_rules(&mut self) {
        let mut found = Vec::new();
        for layer in self.layers.iter().filter(|layer| matches!(layer.origin, Origin::GlobalFile(_))) {
            for folder in &self.folders {
                let root = folder.root.display().to_string();
                let Some(allow) = layer.at(&["projects", &root, "toolCall", "approval", "allow"]) else {
                    continue;
                };
                let values = serde_json::json!({"toolCall": {"approval": {"allow": allow}}});
                let values = values.as_object().cloned().unwrap_or_default();
                let own = Layer::new(layer.origin.clone(), values, layer.base.clone());
                found.push(Layer { adds_rules: true, authority: layer.authority, ..own });
            }
        }
        self.layers.append(&mut found);
    }

    /// `extraConfigs` of the user's own settings; a project cannot name files.
    fn extra_files(&self) -> Vec<PathBuf> {
        let named = self.layers.iter().rev().filter(|layer| layer.authority == Authority::Full);
        let named = named.filter_map(|layer| layer.values.get("extraConfigs")?.as_array()).next();
        let paths = named.into_iter().flatten().filter_map(Value::as_str);
        paths.map(|path| self.directory().join(self.environment.expand_home(path))).collect()
    }

    fn add_extra(&mut self, path: PathBuf) {
        self.seen_files.push(SeenFile::new(path.clone()));
        match Layer::read(Origin::ExtraFile(path.clone())) {
            Ok(None) => {
                let text = format!("There is no file {}, which `extraConfigs` names.", path.display());
                self.notices.push(notice(Level::Warning, text));
            }
            layer => self.add(layer),
        }
        if let Some(layer) = self.layers.last_mut() {
            modernize(&mut layer.values);
        }
    }

    fn add(&mut self, layer: Result<Option<Layer>, Notice>) {
        match layer {
            Ok(layer) => self.layers.extend(layer),
            Err(notice) => {
                self.closed.get_or_insert_with(|| notice.text.clone());
                self.notices.push(notice);
            }
        }
    }

    fn merge(&mut self) {
        let mut left_out: Vec<(&Path, Vec<String>)> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            match (layer.authority, &layer.origin) {
                (Authority::Full, _) => self.tree.merge(&layer.values, index, Some(defaults::tree())),
                (Authority::Untrusted, Origin::ProjectFile { root, .. }) => {
                    let (applied, keys) = without_trust(&layer.values, &self.tree);
                    self.tree.merge(&applied, index, Some(defaults::tree()));
                    match left_out.last_mut() {
                        Some((last, all)) if *last == root => all.extend(keys),
                        _ => left_out.push((root, keys)),
                    }
                }
                (Authority::Untrusted | Authority::DenyOnly, _) => {}
            }
        }
        for (root, mut keys) in left_out {
            let mut seen = std::collections::HashSet::new();
            keys.retain(|key| seen.insert(key.clone()));
            let folder = self.folders.iter().find(|folder| folder.root == root && !folder.is_trusted());
            if let Some(folder) = folder.filter(|_| !keys.is_empty()) {
                self.notices.push(trust::untrusted_notice(folder, &keys));
            }
        }
        variables::fill_from_environment(self.environment, &mut self.tree, &mut self.layers);
        if let Some(managed) = self.environment.managed() {
            managed_layer::apply(managed, &mut self.tree, &mut self.layers);
        }
    }

    /// Reports the keys of each layer that have no effect.
    fn report_keys(&mut self) {
        let read = self.layers.iter().filter(|layer| layer.authority == Authority::Full);
        let read = read.filter(|layer| !matches!(layer.origin, Origin::ManagedFile(_)));
        // The schema is made only where there is something to compare with it.
        for layer in read.filter(|layer| layer.origin != Origin::Default && !layer.values.is_empty()) {
            let (keys, mut notices) = ignored_keys::find(layer);
            self.ignored_keys.extend(keys);
            self.notices.append(&mut notices);
        }
    }

    fn finish(mut self) -> Resolved {
        let redactor = self.inputs.redactor.clone();
        let mut secret_variables = variables::secret_names(self.environment, &self.tree);
        variables::register_secrets(self.environment, &secret_variables, &redactor);
        let passed_variables = variables::passed_names(&self.layers);
        secret_variables.retain(|name| !passed_variables.contains(name));
        let approval = self.approval();
        let mut scope = Scope {
            environment: self.environment,
            layers: &self.layers,
            redactor: &redactor,
            directory: self.directory(),
            netrc_file: None,
            notices: RefCell::default(),
            refused: RefCell::default(),
        };
        let netrc_file = Cursor::new(&scope, &self.tree, Some(defaults::tree())).get("netrcFile").path();
        scope.netrc_file = netrc_file;
        let mut settings = Settings::read(&Cursor::new(&scope, &self.tree, Some(defaults::tree())), approval);
        if let Some(managed) = self.environment.managed() {
            managed_layer::restrict(managed, &mut settings, &mut self.notices);
        }
        if let Some(why) = &self.closed {
            settings.behaviors.values_mut().for_each(|behavior| behavior.approval.close(why));
        }
        self.notices.append(&mut scope.notices.into_inner());
        let refused = scope.refused.into_inner();
        let notices = each_once(self.notices);
        let (folders, tree, layers, ignored_keys) = (self.folders, self.tree, self.layers, self.ignored_keys);
        let (plugins, places, seen_files) = (self.plugins, self.places, self.seen_files);
        Resolved {
            plugins,
            places,
            settings,
            notices,
            folders,
            redactor,
            secret_variables,
            passed_variables,
            ignored_keys,
            refused,
            tree,
            layers,
            managed: self.environment.managed().cloned(),
            seen_files,
        }
    }

    /// The rules for all behaviors.
    fn approval(&mut self) -> ApprovalRules {
        let path = ["toolCall", "approval"];
        let mut rules = approval::collect(&self.layers, &path, None, &mut self.notices);
        rules.by_default.get_or_insert(Approval::Ask);
        if let Some(why) = &self.closed {
            rules.close(why);
        }
        rules
    }
}

/// Clients send `null` for settings that they do not set.
fn without_nulls(object: &Object) -> Object {
    let strip = |value: &Value| match value {
        Value::Object(object) => Value::Object(without_nulls(object)),
        value @ Value::Null
        | value @ Value::Bool(_)
        | value @ Value::Number(_)
        | value @ Value::String(_)
        | value @ Value::Array(_) => value.clone(),
    };
    let said = object.iter().filter(|(_, value)| !value.is_null());
    said.map(|(key, value)| (key.clone(), strip(value))).collect()
}

fn each_once(all: Vec<Notice>) -> Vec<Notice> {
    let mut notices: Vec<Notice> = Vec::with_capacity(all.len());
    for notice in all {
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }
    notices
}
