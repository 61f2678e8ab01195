//! What an import does with each thing that it finds: what counts in place, what is copied, what has no place; and the user's
//! choice about each.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::Home;
use crate::screen::watch;
use crate::tmux::{Screen, Start};

fn report(home: &Home, arguments: &[&str]) -> Value {
    let output = home.command(&[&["import", "--json"], arguments].concat()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Every place of an assistant, in the user's home and in a project, from a file in `tests/assistants`: `=== path` and the
/// text of that file. The section `expected` has one line for each result.
fn unpack(home: &Home, archive: &str) -> String {
    let mut expected = String::new();
    for section in archive.split("=== ").skip(1) {
        let (path, text) = section.split_once('\n').unwrap_or((section, ""));
        match path.strip_prefix("home/") {
            _ if path == "expected" => expected = text.to_owned(),
            Some(inner) => drop(home.write(inner, text)),
            None => drop(home.write(path, text)),
        }
    }
    expected
}

/// One line for each result of an import.
fn results(home: &Home, report: &Value) -> BTreeSet<String> {
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    let short = |value: &Value| {
        let path = Path::new(value.as_str().unwrap_or_default());
        let inner = path.strip_prefix(home.path()).unwrap_or(path).display().to_string();
        if inner.starts_with("work/") { inner } else { format!("home/{inner}") }
    };
    let in_place = list("inPlace").into_iter().map(|it| {
        let trust = if it["needsTrust"] == true { " after trust" } else { "" };
        format!("{} counts in place{trust}", short(&it["file"]))
    });
    let copied = list("steps").into_iter().map(|it| match it["key"].as_str() {
        Some(key) => format!("{} becomes {key} of {}", short(&it["from"]), short(&it["file"])),
        None => format!("{} becomes {}", short(&it["from"]), short(&it["file"])),
    });
    let left = list("leftOut").into_iter().map(|it| {
        format!("{} has no place for {}", short(&it["file"]), it["what"].as_str().unwrap_or_default())
    });
    in_place.chain(copied).chain(left).collect()
}

#[test]
fn every_place_of_the_seven_assistants_has_its_result() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/assistants");
    for program in ["claude", "codex", "opencode", "gemini", "goose", "cursor", "eca"] {
        let archive = std::fs::read_to_string(folder.join(format!("{program}.txt"))).expect("the places");
        let home = Home::new();
        let expected = unpack(&home, &archive);
        let expected: BTreeSet<String> = expected.lines().map(str::to_owned).collect();
        let report = report(&home, &["--from", program, "--no-chats"]);
        let found = results(&home, &report);
        let lines: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, expected, "{program}:\n{}", lines.join("\n"));
    }
}

fn claude(home: &Home) {
    home.write("work/.mcp.json", r#"{"mcpServers": {"team": {"command": "team-server"}}}"#);
    home.write("work/.claude/commands/deploy.md", "Deploy it.\n");
    home.write("work/.claude/skills/sql/SKILL.md", "---\nname: sql\ndescription: d\n---\nWrite SQL.\n");
    home.write("work/.claude/skills/sql/more.md", "More.\n");
    home.write(".claude/commands/fix.md", "Fix it.\n");
    home.write(".claude/commands/test.md", "Test it.\n");
}

#[test]
fn flags_choose_about_single_things() {
    let home = Home::new();
    claude(&home);
    let usual = report(&home, &["--from", "claude", "--no-chats"]);
    let choices = usual["choices"].as_array().expect("a list");
    let of = |name: &str| {
        let found = choices.iter().find(|it| it["file"].as_str().is_some_and(|file| file.ends_with(name)));
        found.map(|it| it["choices"].clone())
    };
    assert_eq!(of("work/.mcp.json"), Some(json!(["use in place", "copy"])), "{usual:#}");
    assert_eq!(of("work/.claude/skills/sql"), Some(json!(["use in place", "copy"])), "{usual:#}");
    assert_eq!(of(".claude/commands/fix.md"), Some(json!(["copy", "leave out"])), "{usual:#}");

    let left = home.path().join(".claude/commands/test.md").display().to_string();
    let flags = ["--copy-file", ".mcp.json", "--copy-file", ".claude/skills", "--leave-out", &left];
    let chosen = report(&home, &[&["--from", "claude", "--no-chats"][..], &flags].concat());
    let (steps, in_place) = (chosen["steps"].to_string(), chosen["inPlace"].to_string());
    for copied in ["mcpServers.team", "skills/sql/SKILL.md", "skills/sql/more.md", "commands/fix.md"] {
        assert!(steps.contains(copied), "{copied}: {chosen:#}");
    }
    assert!(!steps.contains("commands/test.md") && chosen["leftOut"].to_string().contains("you left it out"));
    assert!(in_place.contains("deploy.md") && !in_place.contains("mcp.json"), "{chosen:#}");

    let wrong = home.command(&["import", "--copy-file", "nothing.json", "--yes"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("none of the files that were found"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_asked_about_each_thing() {
    let home = Home::new();
    claude(&home);
    watch(move || {
        let start = Start {
            command: "import",
            arguments: &["--from", "claude", "--no-chats"],
            columns: 160,
            rows: 60,
            ..Start::default()
        };
        let screen = Screen::start(&home, &json!({}), &start);
        screen.until("Import this? [y/N, e: choose for each]");
        screen.keys(&["e", "Enter"]);
        // The usual choice for all but two of them.
        for (name, answer) in [
            (".mcp.json: use in place or copy?", "c"),
            ("commands/deploy.md: use in place or copy?", ""),
            ("skills/sql: use in place or copy?", ""),
            ("commands/fix.md: copy or leave out?", ""),
            ("commands/test.md: copy or leave out?", "l"),
        ] {
            screen.until(name);
            screen.text(answer);
            screen.keys(&["Enter"]);
        }
        screen.until("you left it out");
        screen.keys(&["y", "Enter"]);
        screen.until("Imported.");
        let exists = |name: &str| home.path().join(name).exists();
        assert!(exists(".config/dragoman/commands/fix.md") && !exists(".config/dragoman/commands/test.md"));
        assert!(exists("work/.dragoman/config.json") && !exists("work/.dragoman/skills"));
    })
    .await
    .expect("the screen shows it");
}
