//! The documentation: links lead somewhere, and the commands in it are commands.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::FakeModel;

use crate::client::{Home, fake_provider};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All pages: those of `docs` and the Markdown files beside it.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    let mut folders = vec![repository().join("docs")];
    let mut files: Vec<PathBuf> = vec![];
    let listed = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
    };
    files.extend(listed(&repository()));
    while let Some(folder) = folders.pop() {
        for path in listed(&folder) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
        let text = std::fs::read_to_string(&path).expect("a page");
        pages.push((path, text));
    }
    assert!(pages.len() > 15, "the pages are found");
    pages
}

/// The addresses of headings, as GitHub makes them.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for heading in without_code(text).lines().filter(|line| line.starts_with('#')) {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        anchors.insert(kept.collect::<String>().replace(' ', "-"));
    }
    anchors
}

fn without_code(text: &str) -> String {
    let mut code = false;
    let kept = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        for part in without_code(&text).split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let named = path.parent().expect("a folder").join(file);
            let named = if file.is_empty() { path.clone() } else { named };
            let found = match anchor {
                "" => named.exists(),
                anchor => std::fs::read_to_string(&named).is_ok_and(|text| anchors(&text).contains(anchor)),
            };
            if !found {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links lead nowhere:\n{}", wrong.join("\n"));
}

/// The lines of `sh` blocks that call the program, without comments and pipes.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut shell = false;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            shell = !shell && language.starts_with("sh");
        } else if let (true, Some(at)) = (shell, line.find("dragoman")) {
            let own = line[..at].trim().is_empty() || line[..at].trim_end().ends_with('|');
            let line = line[at..].split(" #").next().unwrap_or_default();
            let line = line.split(" | ").next().unwrap_or_default().trim();
            if own && (line == "dragoman" || line.starts_with("dragoman ")) {
                commands.push(line.to_owned());
            }
        }
    }
    commands
}

/// Exit code 2 means wrong usage: a flag or command that does not exist. Commands that need a terminal say so; those that
/// need a file of the reader's get one.
#[tokio::test]
async fn every_command_in_the_pages_is_a_command() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config: Value = fake_provider(fake.url(), "openai-chat");
    home.write("work/schema.json", r#"{"type": "object"}"#);
    home.write("work/openapi.yaml", "openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n");
    home.write("work/src/main.rs", "fn main() {}\n");
    let program = env!("CARGO_BIN_EXE_dragoman");
    let mut seen = HashSet::new();
    for (path, text) in pages() {
        for line in commands(&text) {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Real downloads, a whole sandbox test and servers that wait have tests of their own.
            let elsewhere = ["pull smollm2", "doctor sandbox", "--refresh", "login"];
            if !seen.insert(line.clone()) || elsewhere.iter().any(|part| line.contains(part)) {
                continue;
            }
            let mut command = tokio::process::Command::from(home.command(&[]));
            let shell = line.replacen("dragoman", &format!("'{program}'"), 1);
            command = {
                let mut sh = tokio::process::Command::new("sh");
                let std = command.as_std();
                sh.args(["-c", &shell]).env_clear().current_dir(home.workspace());
                sh.envs(std.get_envs().filter_map(|(name, value)| Some((name, value?))));
                sh
            };
            command.env("DRAGOMAN_CONFIG", config.to_string()).env("HF_ENDPOINT", "http://127.0.0.1:9");
            command.stdin(std::process::Stdio::null()).kill_on_drop(true);
            let ended = tokio::time::timeout(std::time::Duration::from_secs(120), command.output()).await;
            let output = ended.unwrap_or_else(|_| panic!("{line} does not end")).expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr);
            let needs_terminal = matches!(words.get(1), None | Some(&"chat"));
            if needs_terminal {
                assert!(said.contains("needs a terminal"), "{}: {line}: {said}", path.display());
            } else {
                let wrong =
                    ["unexpected argument", "unrecognized subcommand", "required arguments", "invalid value"];
                assert!(
                    !wrong.iter().any(|words| said.contains(words)),
                    "{}: {line}: {said}",
                    path.display()
                );
            }
        }
    }
    assert!(seen.len() > 20, "the commands are found: {seen:?}");
}
