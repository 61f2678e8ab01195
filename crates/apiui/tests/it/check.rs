//! The checker against two corpora: code that tries to get out (none passes, each for its reason) and code as a model
//! would write it (all of it passes).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use apiui::check::approved::APPROVED;
use apiui::check::{check, transform};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn files(name: &str, extension: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files.into_iter().map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap())).collect()
}

struct Entry {
    name: String,
    rule: String,
    code: String,
}

/// The corpus, each entry as a whole module.
fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (file, text) in files("bypass", "txt") {
        for part in text.split("### ").skip(1) {
            let (head, code) = part.split_once('\n').unwrap();
            let [name, rule, shape] = head.split(" | ").collect::<Vec<_>>()[..] else { panic!("{file}: {head}") };
            entries.push(Entry { name: format!("{file}: {name}"), rule: rule.to_owned(), code: whole(shape, code.trim_end()) });
        }
    }
    entries
}

fn whole(shape: &str, code: &str) -> String {
    let definitions: String = APPROVED.iter().map(|approved| approved.source).collect();
    let start = format!(
        "import {{ useState, useReducer, useEffect, useMemo, useCallback, useRef, useId, useContext, memo, createContext, Fragment }} \
         from \"react\";\nconst SERVERS = [\"https://api.example.com\"];\n{definitions}"
    );
    let app = "export default function App({ request, data, items, children, onPick }) {\n";
    match shape {
        "module" => code.to_owned(),
        "top" => format!("{start}{code}\n{app}return null;\n}}\n"),
        "body" => format!("{start}{app}{code}\nreturn null;\n}}\n"),
        "jsx" => format!("{start}{app}return (\n{code}\n);\n}}\n"),
        other => panic!("no shape {other}"),
    }
}

#[test]
fn what_stands_around_the_entries_passes() {
    for (shape, code) in [("top", "const x = 1;"), ("body", "const x = 1;"), ("jsx", "<p>x</p>")] {
        let told = check(&whole(shape, code)).err().unwrap_or_default();
        assert!(told.is_empty(), "{shape}: {told:#?}");
    }
}

#[test]
fn no_bypass_passes_and_each_is_refused_for_its_reason() {
    let entries = entries();
    let mut wrong = Vec::new();
    for entry in &entries {
        match check(&entry.code) {
            Ok(_) => wrong.push(format!("PASSED {}", entry.name)),
            Err(refusals) => {
                let rules: Vec<_> = refusals.iter().map(|refusal| serde_json::to_value(refusal.rule).unwrap()).collect();
                if !rules.iter().any(|rule| *rule == entry.rule.as_str()) {
                    wrong.push(format!("{}: wanted {}, told {}", entry.name, entry.rule, refusals[0]));
                }
                let lines = entry.code.lines().count().max(1);
                assert!(refusals.iter().all(|refusal| (1..=lines).contains(&refusal.line)), "{}: {refusals:?}", entry.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_is_large_and_without_doubles() {
    let entries = entries();
    let names: HashSet<_> = entries.iter().map(|entry| &entry.name).collect();
    let codes: HashSet<_> = entries.iter().map(|entry| &entry.code).collect();
    assert!(entries.len() >= 250);
    assert_eq!(names.len(), entries.len());
    let mut seen = HashSet::new();
    let doubled: Vec<_> = entries.iter().filter(|entry| !seen.insert(&entry.code)).map(|entry| &entry.name).collect();
    assert_eq!(codes.len(), entries.len(), "{doubled:?}");
}

#[test]
fn modules_as_a_model_writes_them_pass() {
    let modules = files("benign", "jsx");
    let mut wrong = Vec::new();
    for (name, code) in &modules {
        if let Err(refusals) = transform(code) {
            let told: Vec<_> = refusals.iter().map(ToString::to_string).collect();
            wrong.push(format!("{name}:\n  {}", told.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(modules.len() >= 30, "{} modules", modules.len());
}
