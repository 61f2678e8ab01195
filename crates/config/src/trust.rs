//! The folders that the user trusts: by canonical path, with a fingerprint of the settings that need trust and of the
//! files that they refer to. When one of those changes, the folder has to be trusted again.
//!
//! Stored in `trust.json` in the data directory, readable by its owner only, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use domain::{Failure, Level, Notice, visible_line};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::agent_files;
use crate::environment::Environment;
use crate::layer::{Layer, notice};
use crate::legacy_keys::modernize;
use crate::origin::Origin;
use crate::trust_review::{
    describe_addresses, describe_commands, describe_lookups, describe_settings, referenced_files,
};
use crate::untrusted::needs_trust;
use crate::{claude, jsonc, plugins, private_file};

/// The places of a project's settings in its folder, the lower layer first.
pub(crate) const PROJECT_FILES: [&str; 2] = [".eca/config.json", ".dragoman/config.json"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    Untrusted,
    /// It was trusted, but its settings have changed.
    Changed,
}

/// A workspace folder and whether it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The canonical path.
    pub root: PathBuf,
    pub trust: Trust,
}

impl Folder {
    pub fn is_trusted(&self) -> bool {
        self.trust == Trust::Trusted
    }
}

/// What trust in a folder would let in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustReview {
    /// Each setting that needs trust, as `key = value`, with every character visible.
    pub settings: Vec<String>,
    /// The programs among them, as `key: line`.
    pub commands: Vec<String>,
    /// The command lines of `${cmd:…}`, which run outside of the sandbox, as `key: line`.
    pub lookups: Vec<String>,
    /// Addresses that requests would go to, with the secrets that the settings send there.
    pub addresses: Vec<String>,
    /// Files whose contents the settings use; the trust holds for their present contents.
    pub files: Vec<PathBuf>,
    /// Skills and commands in the places of other assistants, a line each; the trust holds for their present texts.
    pub texts: Vec<String>,
}

impl TrustReview {
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.texts.is_empty()
    }
}

/// Looks at a folder without trusting it.
pub fn review(environment: &Environment, root: &Path) -> Result<TrustReview, Failure> {
    let root = canonical(root)?;
    let layers = readable_layers(&root)?;
    let mut review = TrustReview::default();
    for layer in &layers {
        let part = Value::Object(needs_trust(&layer.values));
        review.settings.extend(describe_settings(&part));
        review.commands.extend(describe_commands(&part));
        review.lookups.extend(describe_lookups(&part));
        review.addresses.extend(describe_addresses(&part));
        review.files.extend(referenced_files(environment, &root, layer, &part));
    }
    for (line, file, _) in claude::texts(&root) {
        let name = file.strip_prefix(&root).unwrap_or(&file);
        review.texts.push(visible_line(&format!("{line} ({})", name.display())).into_owned());
    }
    Ok(review)
}

/// Trusts a folder as its settings and the files that they refer to are now. Returns the keys that take effect by it.
pub fn grant(environment: &Environment, root: &Path) -> Result<Vec<String>, Failure> {
    let root = canonical(root)?;
    let layers = readable_layers(&root)?;
    let fingerprint = fingerprint(environment, &root, &layers);
    change(environment, |record| drop(record.folders.insert(key(&root), fingerprint)))?;
    let keys: BTreeSet<String> =
        layers.iter().flat_map(|layer| needs_trust(&layer.values)).map(|(key, _)| key).collect();
    Ok(keys.into_iter().collect())
}

fn readable_layers(root: &Path) -> Result<Vec<Layer>, Failure> {
    let ProjectLayers { layers, broken, .. } = project_layers(root);
    match broken.into_iter().next() {
        Some(notice) => Err(Failure::config(notice.text).hint("Correct the file, then trust the folder.")),
        None => Ok(layers),
    }
}

/// Revokes the trust. False when the folder was not trusted.
pub fn revoke(environment: &Environment, root: &Path) -> Result<bool, Failure> {
    // A folder that is gone can still be forgotten.
    let root = canonical(root).unwrap_or_else(|_| root.to_owned());
    let mut was = false;
    change(environment, |record| was = record.folders.remove(&key(&root)).is_some())?;
    Ok(was)
}

/// Every trusted folder.
pub fn list(environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
    let record = read(environment).map_err(|notice| Failure::config(notice.text))?;
    Ok(record.folders.into_keys().map(PathBuf::from).collect())
}

/// What the files of a folder set.
#[derive(Default)]
pub(crate) struct ProjectLayers {
    /// Modernized, the lowest first.
    pub(crate) layers: Vec<Layer>,
    /// A notice for each file that cannot be used and may hold rules.
    pub(crate) broken: Vec<Notice>,
    /// Parts of files that have no effect: the file, and a sentence.
    pub(crate) unused: Vec<(PathBuf, String)>,
}

/// The project files of a folder: those of other assistants below our own.
pub(crate) fn project_layers(root: &Path) -> ProjectLayers {
    let mut found = ProjectLayers::default();
    let (layers, mut unused) = plugins::project_layers(root);
    found.layers.extend(layers);
    found.unused.append(&mut unused);
    let claude = claude::read(root);
    found.layers.extend(claude.layers);
    found.broken.extend(claude.broken);
    found.unused.extend(claude.unused);
    for place in PROJECT_FILES {
        let hidden = place.split('/').next().unwrap_or_default();
        found.layers.extend(agent_files::of_project(root, hidden));
        let origin = Origin::ProjectFile { path: root.join(place), root: root.to_owned() };
        match Layer::read(origin) {
            Ok(layer) => found.layers.extend(layer),
            Err(notice) => found.broken.push(notice),
        }
    }
    found.layers.iter_mut().for_each(|layer| modernize(&mut layer.values));
    found
}

/// Whether a folder, by its canonical path, is trusted with these settings.
pub(crate) fn check_folder(
    environment: &Environment,
    root: PathBuf,
    layers: &[Layer],
) -> (Folder, Option<Notice>) {
    if environment.flag("DRAGOMAN_TRUST") {
        return (Folder { root, trust: Trust::Trusted }, None);
    }
    let (record, problem) = match read(environment) {
        Ok(record) => (record, None),
        Err(notice) => (TrustRecord::default(), Some(notice)),
    };
    let trust = match record.folders.get(&key(&root)) {
        None => Trust::Untrusted,
        Some(known) if *known == fingerprint(environment, &root, layers) => Trust::Trusted,
        Some(_) => Trust::Changed,
    };
    (Folder { root, trust }, problem)
}

/// Names the settings of a folder that were left out, and the command that lets them in.
pub(crate) fn untrusted_notice(folder: &Folder, keys: &[String]) -> Notice {
    const SHOWN: usize = 8;
    let mut names = keys.iter().take(SHOWN).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    if keys.len() > SHOWN {
        let _ = write!(names, " and {} more", keys.len() - SHOWN);
    }
    let root = folder.root.display();
    let why = match folder.trust {
        Trust::Changed => format!("The settings of {root} have changed since you trusted them"),
        Trust::Trusted | Trust::Untrusted => format!("You have not trusted the settings of {root}"),
    };
    let text =
        format!("{why}; left out: {names}. Read them, then run `dragoman trust {root}` to let them in.");
    notice(Level::Warning, text)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustRecord {
    version: u32,
    folders: BTreeMap<String, String>,
}

const VERSION: u32 = 1;

fn file(environment: &Environment) -> PathBuf {
    environment.data_dir().join("trust.json")
}

fn read(environment: &Environment) -> Result<TrustRecord, Notice> {
    let path = file(environment);
    let unreadable = |what: String| {
        let text = format!("No folder counts as trusted, because {} cannot be used: {what}.", path.display());
        notice(Level::Error, text)
    };
    let Some(text) = jsonc::read(&path).map_err(|broken| unreadable(broken.0))? else {
        return Ok(TrustRecord::default());
    };
    let record: TrustRecord = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    match record.version {
        VERSION => Ok(record),
        version => Err(unreadable(format!("it has version {version}, and this program knows {VERSION}"))),
    }
}

fn change(environment: &Environment, change: impl FnOnce(&mut TrustRecord)) -> Result<(), Failure> {
    let path = file(environment);
    let failed = |error: io::Error| {
        Failure::config(format!("{} could not be written: {error}.", path.display()))
            .hint("Check that you may write there, or set DRAGOMAN_DATA to another directory.")
    };
    let _lock = private_file::lock(&path).map_err(failed)?;
    let mut record = read(environment).map_err(|notice| Failure::config(notice.text))?;
    record.version = VERSION;
    change(&mut record);
    let text = serde_json::to_vec_pretty(&record).map_err(|error| failed(error.into()))?;
    private_file::write(&path, &text).map_err(failed)
}

fn canonical(root: &Path) -> Result<PathBuf, Failure> {
    let root = root.canonicalize().ok().filter(|root| root.is_dir()).ok_or_else(|| {
        Failure::user(format!("{} is no folder.", root.display())).hint("Give the folder of a project.")
    })?;
    match root.to_str() {
        Some(_) => Ok(root),
        None => Err(Failure::user(format!("{} cannot be trusted: its name is no text.", root.display()))),
    }
}

/// Only folders whose name is text are ever recorded, so no other folder can be taken for one of them.
fn key(root: &Path) -> String {
    root.to_str().unwrap_or_default().to_owned()
}

fn fingerprint(environment: &Environment, root: &Path, layers: &[Layer]) -> String {
    let mut digest = Sha256::new();
    for layer in layers {
        let file = layer.origin.file().unwrap_or(Path::new(""));
        let name = file.strip_prefix(root).unwrap_or(file);
        let part = Value::Object(needs_trust(&layer.values));
        let mut content = String::new();
        write_sorted(&part, &mut content);
        digest.update(format!("{}\n{content}\n", name.display()));
        for file in referenced_files(environment, root, layer, &part) {
            let content = jsonc::read(&file).ok().flatten().unwrap_or_default();
            digest.update(format!("{}\n{}\n{content}\n", file.display(), content.len()));
        }
    }
    for (_, file, content) in claude::texts(root) {
        let name = file.strip_prefix(root).unwrap_or(&file);
        digest.update(format!("{}\n{}\n{content}\n", name.display(), content.len()));
    }
    digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// JSON whose text does not depend on the order of keys.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            text.push('{');
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            for (key, value) in sorted {
                let _ = write!(text, "{}:", Value::from(key.as_str()));
                write_sorted(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for value in values {
                write_sorted(value, text);
                text.push(',');
            }
            text.push(']');
        }
        other @ Value::Null
        | other @ Value::Bool(_)
        | other @ Value::Number(_)
        | other @ Value::String(_) => {
            let _ = write!(text, "{other}");
        }
    }
}
