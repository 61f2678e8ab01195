//! The environment and the user's directories, read once and handed down, so that a test can hand down
//! others. Nothing else in the program asks the operating system for a variable or for home.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::managed::Managed;

/// A snapshot of the environment. An empty variable counts as unset, except inside `${env:…}`.
#[derive(Clone)]
pub struct Environment {
    variables: HashMap<OsString, OsString>,
    home: PathBuf,
    /// Rules of the administrator.
    managed: Option<Arc<Managed>>,
}

impl Environment {
    /// The environment of this process.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the environment and home"
    )]
    pub fn from_process() -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Self {
            variables: std::env::vars_os().collect(),
            // Without a home nothing is found there, and what must be written says so by its path.
            home: home.unwrap_or_else(|| PathBuf::from("/nonexistent")),
            // The start of the program says why they cannot be read, and ends.
            managed: Managed::of_this_machine().unwrap_or_else(|_| Some(Managed::closed())).map(Arc::new),
        }
    }

    /// An environment for tests and for embedding.
    pub fn new(
        home: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, home: home.into(), managed: None }
    }

    /// The same with rules of an administrator.
    pub fn with_managed(self, managed: Managed) -> Self {
        Self { managed: Some(Arc::new(managed)), ..self }
    }

    /// The rules of the machine's administrator.
    pub fn managed(&self) -> Option<&Managed> {
        self.managed.as_deref()
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A variable that is set, not empty, and text.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// The first of several variables that is set.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.var(name)?)))
    }

    /// Whether a switch such as `DRAGOMAN_TRUST` is on.
    pub fn flag(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| matches!(value, "1" | "true" | "yes" | "on"))
    }

    /// `$XDG_CONFIG_HOME/dragoman` or `~/.config/dragoman`.
    pub fn config_dir(&self) -> PathBuf {
        self.config_home().join("dragoman")
    }

    /// ECA's own place, `~/.config/eca`.
    pub fn eca_config_dir(&self) -> PathBuf {
        self.config_home().join("eca")
    }

    /// Chats, trust and everything that must not be lost: `DRAGOMAN_DATA`, or by XDG.
    pub fn data_dir(&self) -> PathBuf {
        self.path("DRAGOMAN_DATA").unwrap_or_else(|| self.xdg_data_home().join("dragoman"))
    }

    /// `$XDG_DATA_HOME` or `~/.local/share`: the data of all programs.
    pub fn xdg_data_home(&self) -> PathBuf {
        self.xdg("XDG_DATA_HOME", ".local/share")
    }

    /// What can be made anew.
    pub fn cache_dir(&self) -> PathBuf {
        self.xdg("XDG_CACHE_HOME", ".cache").join("dragoman")
    }

    /// Logs.
    pub fn state_dir(&self) -> PathBuf {
        self.xdg("XDG_STATE_HOME", ".local/state").join("dragoman")
    }

    /// Files of embedded models: `DRAGOMAN_MODELS`, or beside the data.
    pub fn models_dir(&self) -> PathBuf {
        self.path("DRAGOMAN_MODELS").unwrap_or_else(|| self.data_dir().join("models"))
    }

    /// `~` and `~/…` at the beginning of a path mean home.
    pub fn expand_home(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(&rest[1..]),
            _ => PathBuf::from(path),
        }
    }

    /// A variable that is set, as it is.
    pub(crate) fn os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is set and text, though perhaps empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.variables.get(OsStr::new(name))?.to_str()
    }

    /// A variable that is set and not empty, with what is no text replaced.
    pub(crate) fn lossy(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    }

    fn config_home(&self) -> PathBuf {
        self.xdg("XDG_CONFIG_HOME", ".config")
    }

    /// By the XDG specification a relative path is to be ignored.
    fn xdg(&self, name: &str, fallback: &str) -> PathBuf {
        self.path(name).unwrap_or_else(|| self.home.join(fallback))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.variables.get(OsStr::new(name))?);
        path.is_absolute().then_some(path)
    }
}

/// Values are left out: they may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("home", &self.home).finish_non_exhaustive()
    }
}
