//! The two files that come with every package: the licenses of everything inside the program, and a bill of materials
//! (CycloneDX 1.5, JSON).
//!
//! Invariant: the same sources give the same bytes: no time, no path, no random number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::packages::{self, Package};

/// Writes `THIRD-PARTY-LICENSES.txt` and `sbom.cdx.json` for a target into a folder.
pub fn write(target: &str, folder: &Path) -> Result<(), String> {
    let root = crate::tidy::root();
    let mut packages = packages::of_program(&root, target)?;
    packages.retain(|package| package.name == "dragoman" || package.source.is_some());
    packages.extend(scripts(&root, "interfaces/apiui/web", "target/web")?);
    packages.extend(scripts(&root, "web", "target/web/studio-packages")?);
    let own: BTreeSet<String> = packages.iter().map(Package::id).collect();
    for package in &mut packages {
        package.dependencies.retain(|id| own.contains(id));
    }
    let save = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).map_err(|error| format!("{name} cannot be written: {error}"))
    };
    save("THIRD-PARTY-LICENSES.txt", licenses(&root, &packages))?;
    save("sbom.cdx.json", format!("{:#}\n", bill_of_materials(&packages)))
}

/// The packages of a lock file that are bundled into the program for pages: React, and what the page of studio uses.
fn scripts(root: &Path, folder: &str, installed: &str) -> Result<Vec<Package>, String> {
    let lock = root.join(folder).join("package-lock.json");
    let text = std::fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let lock: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let entries = lock["packages"].as_object().into_iter().flatten();
    let inside =
        entries.filter(|(path, entry)| !path.is_empty() && entry["dev"] != true && entry["optional"] != true);
    Ok(inside
        .map(|(path, entry)| Package {
            name: format!("npm:{}", path.trim_start_matches("node_modules/")),
            version: entry["version"].as_str().unwrap_or_default().to_owned(),
            license: entry["license"].as_str().unwrap_or("MIT").to_owned(),
            authors: Vec::new(),
            source: Some("npm".to_owned()),
            folder: root.join(installed).join(path),
            checksum: None,
            dependencies: BTreeSet::new(),
        })
        .collect())
}

/// Every license text once, with the packages that it belongs to.
fn licenses(root: &Path, packages: &[Package]) -> String {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in packages.iter().filter(|package| package.source.is_some()) {
        let found = license_texts(&package.folder);
        if found.is_empty() {
            without.push(package);
        }
        for text in found {
            texts.entry(text).or_default().push(package.id());
        }
    }
    let line = "-".repeat(100);
    let mut page = String::from("Dragoman contains the following packages.\n\n");
    for package in packages.iter().filter(|package| package.source.is_some()) {
        page.push_str(&format!("{}: {}\n", package.id(), package.license));
    }
    for (text, names) in texts {
        page.push_str(&format!("\n{line}\n{}\n\n{}\n", names.join(", "), text.trim_end()));
    }
    if !without.is_empty() {
        let names: Vec<String> = without
            .iter()
            .map(|package| format!("{} ({}; {})", package.id(), package.license, package.authors.join(", ")))
            .collect();
        page.push_str(&format!(
            "\n{line}\nThese packages name their license and hold no text of it:\n{}\n",
            names.join("\n")
        ));
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = std::fs::read_to_string(root.join(name)).unwrap_or_default();
            let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("Copyright")).collect();
            page.push_str(&format!("\n{}\n", text.join("\n").trim_end()));
        }
    }
    page
}

fn license_texts(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_license = |path: &&std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"].iter().any(|start| name.starts_with(start))
    };
    let files = paths.iter().filter(is_license).filter(|path| path.is_file());
    files
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.replace("\r\n", "\n"))
        .collect()
}

fn bill_of_materials(packages: &[Package]) -> Value {
    let component = |package: &Package| {
        let mut component = json!({
            "type": if package.source.is_some() { "library" } else { "application" },
            "bom-ref": reference(&package.id()),
            "name": package.name.trim_start_matches("npm:"),
            "version": package.version,
            "purl": reference(&package.id()),
            "licenses": [{"expression": package.license}],
        });
        if let Some(checksum) = &package.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let program = packages.iter().find(|package| package.source.is_none()).map(component);
    let inside: Vec<Value> =
        packages.iter().filter(|package| package.source.is_some()).map(component).collect();
    let edges: Vec<Value> = packages
        .iter()
        .map(|package| {
            let on: Vec<String> = package.dependencies.iter().map(|id| reference(id)).collect();
            json!({"ref": reference(&package.id()), "dependsOn": on})
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": inside,
        "dependencies": edges,
    })
}

/// The package URL, which is the name of a package in the bill of materials too.
fn reference(id: &str) -> String {
    match id.strip_prefix("npm:") {
        Some(id) => format!("pkg:npm/{id}"),
        None => format!("pkg:cargo/{id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_inside_is_named_with_a_license_and_a_checksum() {
        let root = crate::tidy::root();
        let target = packages::host(&root).expect("a host");
        let folder = std::env::temp_dir().join(format!("dragoman-notices-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        write(&target, &folder).expect("written");
        let bill = std::fs::read_to_string(folder.join("sbom.cdx.json")).expect("read");
        let bill: Value = serde_json::from_str(&bill).expect("JSON");
        let components = bill["components"].as_array().expect("components");
        assert!(components.len() > 200, "{}", components.len());
        let named: BTreeSet<&str> = components.iter().filter_map(|it| it["bom-ref"].as_str()).collect();
        assert_eq!(named.len(), components.len());
        assert!(named.iter().any(|name| name.starts_with("pkg:npm/react-dom@")), "{named:?}");
        for component in components {
            assert!(
                component["licenses"][0]["expression"].as_str().is_some_and(|it| !it.is_empty()),
                "{component}"
            );
            let is_crate = component["purl"].as_str().is_some_and(|it| it.starts_with("pkg:cargo/"));
            assert_eq!(component["hashes"][0]["content"].as_str().map(str::len), is_crate.then_some(64));
        }
        for edge in bill["dependencies"].as_array().expect("dependencies") {
            for name in edge["dependsOn"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                assert!(named.contains(name), "{name} is needed and not listed");
            }
        }
        let page = std::fs::read_to_string(folder.join("THIRD-PARTY-LICENSES.txt")).expect("read");
        assert!(page.contains("Apache License") && page.contains("Permission is hereby granted"));
        let _ = std::fs::remove_dir_all(&folder);
    }
}
