//! The packages inside the program, from `cargo metadata`: names, versions, licenses, checksums and who needs whom.
//!
//! Nothing is fetched. Invariant: a package is listed once, in the order of names and versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// One package of the program or of its build.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    /// An SPDX expression; the old spelling `A/B` is written `A OR B`.
    pub license: String,
    pub authors: Vec<String>,
    /// Where it comes from; nothing for packages of this repository.
    pub source: Option<String>,
    pub folder: PathBuf,
    /// SHA-256, from the lock file.
    pub checksum: Option<String>,
    pub dependencies: BTreeSet<String>,
}

impl Package {
    pub(crate) fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// The packages that the `dragoman` package needs to build and run on a target.
pub(crate) fn of_program(root: &Path, target: &str) -> Result<Vec<Package>, String> {
    let metadata = metadata(root, target)?;
    let checksums = checksums(root);
    let by_id: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let start = by_id.iter().find(|(_, package)| package["name"] == "dragoman").map(|(id, _)| *id);
    let mut waiting: Vec<&str> = start.into_iter().collect();
    let mut found = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        let (Some(package), Some(node)) = (by_id.get(id), nodes.get(id)) else { continue };
        let needed = needed_by(node);
        let mut package = read(package, &checksums);
        let names = needed.iter().filter_map(|id| by_id.get(id));
        package.dependencies =
            names.map(|it| format!("{}@{}", text(it, "name"), text(it, "version"))).collect();
        if found.insert((package.name.clone(), package.version.clone()), package).is_none() {
            waiting.extend(needed);
        }
    }
    match found.len() {
        0 => Err("cargo metadata does not list the program".to_owned()),
        _ => Ok(found.into_values().collect()),
    }
}

/// The target of this machine's compiler.
pub(crate) fn host(root: &Path) -> Result<String, String> {
    let said = output(root, "rustc", &["-vV"])?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| "rustc does not name its host".to_owned())
}

/// The manifests of this repository, without what others wrote.
pub(crate) fn workspace(root: &Path) -> Result<Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    serde_json::from_str(&output(root, "cargo", &arguments)?).map_err(|error| error.to_string())
}

fn metadata(root: &Path, target: &str) -> Result<Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--offline", "--filter-platform", target];
    serde_json::from_str(&output(root, "cargo", &arguments)?).map_err(|error| error.to_string())
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    #[expect(clippy::disallowed_methods, reason = "a chore of the repository, not of the program")]
    let output = Command::new(program).args(arguments).current_dir(root).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("{program} does not run: {error}")),
    }
}

/// Dependencies that are not for tests alone.
fn needed_by(node: &Value) -> Vec<&str> {
    let wanted =
        |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
    list(&node["deps"]).iter().filter(wanted).filter_map(|dependency| dependency["pkg"].as_str()).collect()
}

fn read(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Package {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let manifest = PathBuf::from(text(package, "manifest_path"));
    Package {
        checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
        license: text(package, "license").replace(" / ", " OR ").replace('/', " OR "),
        authors: list(&package["authors"]).iter().filter_map(|it| it.as_str().map(str::to_owned)).collect(),
        source: package["source"].as_str().map(str::to_owned),
        folder: manifest.parent().map(Path::to_owned).unwrap_or_default(),
        dependencies: BTreeSet::new(),
        name,
        version,
    }
}

pub(crate) fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The checksums of the lock file; its `[[package]]` tables have one `name = "value"` a line.
fn checksums(root: &Path) -> BTreeMap<(String, String), String> {
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    let tables = lock.split("[[package]]").skip(1);
    let value = |table: &str, name: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    tables
        .filter_map(|table| {
            Some(((value(table, "name")?, value(table, "version")?), value(table, "checksum")?))
        })
        .collect()
}
