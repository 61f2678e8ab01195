//! Keys and tokens that `dragoman login` keeps for the user: one file that only its owner may read.
//!
//! Behind a trait, so that a keyring can take its place. Invariants: the file is replaced as a whole; two processes
//! that change it do not lose each other's changes; what is kept is never printed, not even by `Debug`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use domain::Failure;
use domain::names::is_same_name;
use serde::{Deserialize, Serialize};

use crate::{Environment, private_file};

pub trait Credentials: Send + Sync {
    fn get(&self, provider: &str) -> Result<Option<StoredCredential>, Failure>;
    fn put(&self, provider: &str, kept: StoredCredential) -> Result<(), Failure>;
    /// Whether there was something.
    fn remove(&self, provider: &str) -> Result<bool, Failure>;
    /// Providers that something is kept for.
    fn providers(&self) -> Vec<String>;
    /// The lock for renewing tokens; other processes of this machine wait. Blocks.
    fn renewing(&self) -> Result<File, Failure>;
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum StoredCredential {
    Key {
        key: String,
    },
    /// A sign-in at GitHub, and the short-lived token it was last exchanged for.
    GitHub {
        token: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        access: Option<AccessToken>,
    },
}

impl fmt::Debug for StoredCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredCredential(…)")
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessToken {
    pub token: String,
    /// Seconds since 1970.
    pub expires_at: i64,
}

type All = BTreeMap<String, StoredCredential>;

/// `credentials.json` in the data directory.
pub struct CredentialFile {
    path: PathBuf,
    /// What was read, and of when it was.
    read: Mutex<Option<(SystemTime, All)>>,
}

impl CredentialFile {
    pub fn new(environment: &Environment) -> Self {
        Self { path: environment.data_dir().join("credentials.json"), read: Mutex::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn all(&self) -> Result<All, Failure> {
        let Ok(changed) = std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()) else {
            return Ok(All::new());
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, all)) = &*read
            && *known == changed
        {
            return Ok(all.clone());
        }
        let text = std::fs::read_to_string(&self.path).map_err(|error| self.unusable(&error))?;
        // An error of serde may quote what it met, which may be a key.
        let all: All = serde_json::from_str(&text).map_err(|error| {
            self.unusable(&format!("line {}, column {} is not as expected", error.line(), error.column()))
        })?;
        *read = Some((changed, all.clone()));
        Ok(all)
    }

    fn change<T>(&self, change: impl FnOnce(&mut All) -> T) -> Result<T, Failure> {
        let _lock = private_file::lock(&self.path).map_err(|error| self.unusable(&error))?;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut all = self.all()?;
        let changed = change(&mut all);
        let text = serde_json::to_vec_pretty(&all).map_err(|error| self.unusable(&error))?;
        private_file::write(&self.path, &text).map_err(|error| self.unusable(&error))?;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(changed)
    }

    fn unusable(&self, error: &dyn fmt::Display) -> Failure {
        Failure::config(format!("{} cannot be used: {error}.", self.path.display()))
            .hint("Mend or delete the file, then run `dragoman login` again.")
    }
}

/// The name that a key is stored by: `myProvider` for the provider that ECA calls `my-provider`.
fn stored_name(all: &All, provider: &str) -> String {
    let other = || all.keys().find(|known| is_same_name(known, provider)).cloned();
    Some(provider.to_owned())
        .filter(|name| all.contains_key(name))
        .or_else(other)
        .unwrap_or_else(|| provider.to_owned())
}

impl Credentials for CredentialFile {
    fn get(&self, provider: &str) -> Result<Option<StoredCredential>, Failure> {
        let mut all = self.all()?;
        let name = stored_name(&all, provider);
        Ok(all.remove(&name))
    }

    fn put(&self, provider: &str, kept: StoredCredential) -> Result<(), Failure> {
        self.change(|all| all.insert(stored_name(all, provider), kept)).map(drop)
    }

    fn remove(&self, provider: &str) -> Result<bool, Failure> {
        let all = self.all()?;
        if !all.contains_key(&stored_name(&all, provider)) {
            return Ok(false);
        }
        self.change(|all| all.remove(&stored_name(all, provider)).is_some())
    }

    fn providers(&self) -> Vec<String> {
        self.all().map(|all| all.into_keys().collect()).unwrap_or_default()
    }

    fn renewing(&self) -> Result<File, Failure> {
        private_file::lock(&self.path.with_file_name("renewing")).map_err(|error| self.unusable(&error))
    }
}
