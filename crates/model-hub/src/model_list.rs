//! The list of models that `dragoman models pull` knows: data with sizes, hashes, licenses and places.
//!
//! The list is part of the program; `DRAGOMAN_MODEL_LIST` names a file in its place, for companies with models of their own.
//! Invariant: an entry that is used has a plain name, a SHA-256, and parts that add up to its size.

use std::path::{Path, PathBuf};

use config::Environment;
use domain::Failure;
use serde::Deserialize;

/// The list of this version.
const BUILT_IN: &str = include_str!("models.json");
/// Names another list.
pub const VARIABLE: &str = "DRAGOMAN_MODEL_LIST";
const MAX_LIST_BYTES: u64 = 1 << 20;

/// The model that is offered where there is no other.
pub const CODER: &str = "qwen2.5-coder-1.5b";

#[derive(Clone, Debug, Deserialize)]
struct ModelList {
    models: Vec<ListedModel>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ListedModel {
    /// The name here; `local/<id>` in the list of models.
    pub id: String,
    pub title: String,
    #[serde(rename = "use")]
    pub use_for: String,
    /// Gigabytes of memory that the model needs while it answers, with its context.
    pub memory: u64,
    pub license: String,
    pub bytes: u64,
    pub sha256: String,
    pub hub: Option<HubPlace>,
    /// Parts of the file, in order, each in a package of the Python index. Empty: it is not there.
    #[serde(default)]
    pub registry: Vec<PackagedPart>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct HubPlace {
    pub repository: String,
    pub file: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct PackagedPart {
    pub package: String,
    /// The file of the package, which is a ZIP archive.
    pub wheel: String,
    /// The part within that file.
    pub member: String,
    pub bytes: u64,
    pub sha256: String,
}

impl ListedModel {
    pub fn gigabytes(&self) -> f64 {
        self.bytes as f64 / 1e9
    }

    fn is_usable(&self) -> bool {
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_place = |place: &HubPlace| {
            place.repository.split('/').count() == 2
                && place.repository.split('/').chain(place.file.split('/')).all(is_plain)
        };
        let parts = &self.registry;
        is_plain(&self.id)
            && is_hash(&self.sha256)
            && self.hub.as_ref().is_none_or(is_place)
            && (parts.is_empty() || parts.iter().map(|part| part.bytes).sum::<u64>() == self.bytes)
            && parts
                .iter()
                .all(|part| is_plain(&part.package) && is_plain(&part.wheel) && is_hash(&part.sha256))
    }
}

/// All models, the smallest first.
pub fn all(environment: &Environment) -> Result<Vec<ListedModel>, Failure> {
    let named = environment.var(VARIABLE).filter(|path| !path.is_empty());
    let (text, name) = match named {
        None => (BUILT_IN.to_owned(), "the list of models".to_owned()),
        Some(path) => {
            let bytes = platform::project_files::read_named(Path::new(path), MAX_LIST_BYTES)
                .map_err(|error| Failure::user(format!("{path} ({VARIABLE}) cannot be read: {error}.")))?;
            (String::from_utf8_lossy(&bytes).into_owned(), path.to_owned())
        }
    };
    let list: ModelList =
        serde_json::from_str(&text).map_err(|error| Failure::user(format!("{name} is wrong: {error}.")))?;
    if let Some(wrong) = list.models.iter().find(|model| !model.is_usable()) {
        return Err(Failure::user(format!(
            "{name} is wrong: {} has no SHA-256, or parts that do not add up, or a name that is no file name.",
            wrong.id
        )));
    }
    let mut models = list.models;
    models.sort_by_key(|model| model.bytes);
    Ok(models)
}

/// The model of this name, with or without `local/`.
pub fn find(environment: &Environment, name: &str) -> Result<Option<ListedModel>, Failure> {
    let name = name.strip_prefix("local/").unwrap_or(name);
    Ok(all(environment)?.into_iter().find(|model| model.id == name))
}

/// Where a model of the list lies, if it is there: a file gets its name only after it was hashed.
pub fn installed(environment: &Environment, model: &ListedModel) -> Option<PathBuf> {
    let path = environment.models_dir().join(format!("{}.gguf", model.id));
    std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == model.bytes).then_some(path)
}

pub(crate) fn is_plain(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with('.')
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_this_version_is_whole() {
        let environment = Environment::new("/nonexistent", [("A", "b")]);
        let models = all(&environment).expect("a list");
        let coder = models.iter().find(|model| model.id == CODER).expect("the coder");
        assert_eq!(
            (coder.bytes, coder.registry.len(), coder.license.as_str()),
            (1_117_320_768, 22, "Apache-2.0")
        );
        assert!(coder.sha256.starts_with("cc324af0") && coder.hub.is_some());
        assert_eq!(find(&environment, "local/qwen3-4b").expect("a list").map(|it| it.memory), Some(5));
        assert!(models.len() >= 5 && models.is_sorted_by_key(|model| model.bytes));
    }

    #[test]
    fn entries_that_cannot_be_checked_are_refused() {
        let good = all(&Environment::new("/nonexistent", [("A", "b")])).expect("a list");
        let coder = good.iter().find(|model| model.id == CODER).expect("the coder");
        let wrong: [fn(&mut ListedModel); 5] = [
            |model| model.id = "../coder".into(),
            |model| model.sha256 = "cc324af0".into(),
            |model| model.bytes += 1,
            |model| model.registry[3].wheel = "/etc/passwd".into(),
            |model| model.hub = Some(HubPlace { repository: "a/../b".into(), file: "c.gguf".into() }),
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let mut model = coder.clone();
            change(&mut model);
            assert!(coder.is_usable() && !model.is_usable(), "{number}");
        }
    }
}
