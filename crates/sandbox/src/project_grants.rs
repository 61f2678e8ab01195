//! Grants that a person gave to a project: one file of the user, a list for each workspace folder.
//! It decides nothing. Invariants: the file is replaced as a whole; one that cannot be read grants nothing; commands in
//! a sandbox cannot see it, because it lies in a hidden folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use platform::OpenOptionsExt;

use crate::grant::Grant;

/// By folder, each grant as it is written.
type Table = BTreeMap<String, Vec<String>>;

/// The file, which need not exist.
#[derive(Clone, Debug)]
pub struct ProjectGrants {
    file: PathBuf,
}

impl ProjectGrants {
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub fn of(&self, project: &Path) -> Vec<Grant> {
        let grants = self.read().remove(&name(project)).unwrap_or_default();
        grants.iter().filter_map(|grant| Grant::parse(grant).ok()).collect()
    }

    /// Every project with its grants.
    pub fn all(&self) -> BTreeMap<String, Vec<String>> {
        self.read()
    }

    pub fn add(&self, project: &Path, grants: &[Grant]) -> io::Result<()> {
        let mut table = self.read();
        let list = table.entry(name(project)).or_default();
        for grant in grants.iter().map(Grant::to_string) {
            if !list.contains(&grant) {
                list.push(grant);
            }
        }
        self.write(&table)
    }

    /// Takes one grant back, or all of them. Returns how many there were.
    pub fn remove(&self, project: &Path, grant: Option<&Grant>) -> io::Result<usize> {
        let mut table = self.read();
        let Some(list) = table.get_mut(&name(project)) else { return Ok(0) };
        let before = list.len();
        list.retain(|known| grant.is_some_and(|grant| *known != grant.to_string()));
        let removed = before - list.len();
        table.retain(|_, list| !list.is_empty());
        self.write(&table)?;
        Ok(removed)
    }

    fn read(&self) -> Table {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write(&self, table: &Table) -> io::Result<()> {
        let folder = self.file.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let next = self.file.with_extension(format!("{}.new", std::process::id()));
        // A file that somebody prepared under this name is not written to.
        let _ = fs::remove_file(&next);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).private().open(&next)?;
        file.write_all(serde_json::to_string_pretty(table)?.as_bytes())?;
        file.sync_all()?;
        platform::replace_file(&next, &self.file)
    }
}

fn name(project: &Path) -> String {
    project.canonicalize().unwrap_or_else(|_| project.to_owned()).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_kept_for_its_project_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let grants = ProjectGrants::new(folder.path().join("data/grants.json"));
        let (shop, other) = (Path::new("/projects/shop"), Path::new("/projects/other"));
        assert_eq!(grants.of(shop), []);
        grants.add(shop, &[Grant::Ssh, Grant::GitConfig]).unwrap();
        grants.add(shop, &[Grant::Ssh]).unwrap();
        assert_eq!(grants.of(shop), [Grant::Ssh, Grant::GitConfig]);
        assert_eq!(grants.of(other), []);
        assert_eq!(grants.remove(shop, Some(&Grant::Ssh)).unwrap(), 1);
        assert_eq!(grants.of(shop), [Grant::GitConfig]);
        assert_eq!(grants.remove(shop, None).unwrap(), 1);
        assert!(grants.all().is_empty());
        fs::write(folder.path().join("data/grants.json"), "broken").unwrap();
        assert_eq!(grants.of(shop), []);
    }
}
