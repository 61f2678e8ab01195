//! `dragoman import`: settings and chats of other programs, from files in the form that these programs write.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};

fn run(home: &Home, arguments: &[&str]) -> Output {
    home.command(arguments).output().expect("it runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn report(home: &Home, arguments: &[&str]) -> Value {
    let output = run(home, &[&["import", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn own_settings(home: &Home) -> PathBuf {
    home.path().join(".config/dragoman/config.json")
}

fn settings(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(path).expect("a file");
    let without_comments: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&without_comments.join("\n")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Every file under the home folder with its content, ours excepted.
fn originals(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let mut folders = vec![home.path().to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let ours = path.to_string_lossy().contains("dragoman");
            if path.is_dir() && !ours {
                folders.push(path);
            } else if path.is_file() && !ours {
                let content = std::fs::read(&path).expect("a file");
                files.push((path, content));
            }
        }
    }
    files.sort();
    files
}

/// The files of a user of Claude Code.
fn claude(home: &Home) {
    home.write(
        ".claude.json",
        r#"{"numStartups": 9, "mcpServers": {"notes": {"type": "stdio", "command": "npx", "args": ["-y", "notes"],
            "env": {"NOTES_API_KEY": "very-secret-value", "MODE": "fast"}},
            "docs": {"type": "http", "url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer very-secret-value"}}}}"#,
    );
    home.write(
        ".claude/settings.json",
        r#"{"model": "opus", "permissions": {
            "allow": ["Bash(npm run test:*)", "Bash(git status)", "mcp__notes__search", "Edit(src/**)"],
            "deny": ["Read(./.env)", "Bash(git push:*)"], "ask": ["WebFetch"]},
          "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "~/bin/guard.sh"}]}]},
          "env": {"API_TOKEN": "very-secret-value"}}"#,
    );
    home.write(
        ".claude/commands/fix.md",
        "---\ndescription: Fix it\nallowed-tools: Bash\n---\nFix issue $ARGUMENTS.\n",
    );
    home.write(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews changes\ntools: Read, Grep\n---\nYou review.\n",
    );
    home.write(
        ".claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Read PDFs\n---\nUse pdftotext.\n",
    );
    let script = home.write(".claude/skills/pdf/scripts/read.sh", "#!/bin/sh\npdftotext \"$1\" -\n");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).expect("a program");
    home.write(
        ".claude/skills/upload/SKILL.md",
        "---\ndescription: Uploads\n---\ncurl -H 'X-Key: sk-0123456789abcdef' …\n",
    );
    home.write(".claude/CLAUDE.md", "Answer briefly.\n");
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"team": {"command": "team-server", "env": {"A": "${TEAM_A}"}}}}"#,
    );
    home.write(
        "work/.claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(curl:*)"], "deny": ["Bash(rm -rf:*)"]}}"#,
    );
}

#[test]
fn settings_of_claude_code_are_shown_imported_and_imported_once() {
    let home = Home::new();
    claude(&home);
    home.write(".config/dragoman/config.json", "{\n  // of the user\n  \"logLevel\": \"warn\",\n}\n");
    let before = originals(&home);

    let shown = run(&home, &["import"]);
    let text = said(&shown);
    assert!(shown.status.success() && text.contains("no terminal to ask in"), "{text}");
    for words in [
        "MCP server notes, switched off: npx -y notes",
        "hook PreToolUse: ~/bin/guard.sh",
        "env API_TOKEN",
        "model: opus",
    ] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
    assert!(!text.contains("very-secret-value"), "{text}");
    let kept = std::fs::read_to_string(own_settings(&home)).expect("settings");
    assert!(kept.contains("logLevel") && !kept.contains("notes"), "nothing was written: {kept}");
    assert_eq!(report(&home, &["--dry-run"])["imported"], json!(false));

    let imported = run(&home, &["import", "--copy", "--yes"]);
    let text = said(&imported);
    assert!(text.contains("kept beside the new ones"), "{text}");
    assert!(imported.status.success() && text.contains("dragoman mcp enable notes"), "{text}");
    assert!(text.contains("dragoman trust"), "{text}");
    let written = std::fs::read_to_string(own_settings(&home)).expect("settings");
    assert!(written.contains("// of the user") && !written.contains("very-secret-value"), "{written}");
    assert!(home.path().join(".config/dragoman/config.json.bak").exists());
    let own = settings_without_trailing_commas(&written);
    let approval = &own["toolCall"]["approval"];
    let commands = |list: &str| approval[list]["eca__shell_command"]["argsMatchers"]["command"].clone();
    assert_eq!(commands("allow"), json!(["npm run test( .*)?", "git status"]));
    assert_eq!(commands("deny"), json!(["git push.*"]));
    assert_eq!(approval["allow"]["notes__search"], json!({}));
    assert_eq!(approval["ask"]["eca__fetch_url"], json!({}));
    assert_eq!(approval["allow"].as_object().expect("rules").len(), 2, "no rule for paths: {approval}");
    assert_eq!(own["mcpServers"]["notes"]["disabled"], json!(true));
    assert_eq!(
        own["mcpServers"]["notes"]["env"],
        json!({"NOTES_API_KEY": "${env:NOTES_API_KEY}", "MODE": "fast"})
    );
    let disabled = own["agent"]["reviewer"]["disabledTools"].as_array().expect("a list");
    assert!(
        disabled.contains(&json!("shell_command")) && !disabled.contains(&json!("read_file")),
        "{disabled:?}"
    );
    let project = settings(home.workspace().join(".dragoman/config.json"));
    assert_eq!(project["mcpServers"]["team"]["env"]["A"], json!("${env:TEAM_A}"));
    assert!(project["toolCall"]["approval"].get("allow").is_none(), "{project}");
    assert_eq!(
        std::fs::read_to_string(home.path().join(".config/dragoman/commands/fix.md")).expect("a command"),
        "---\ndescription: Fix it\n---\n\nFix issue $ARGUMENTS.\n"
    );
    let skill = home.path().join(".config/dragoman/skills/pdf");
    let text = std::fs::read_to_string(skill.join("SKILL.md")).expect("a skill");
    assert_eq!(text, "---\nname: pdf\ndescription: Read PDFs\n---\nUse pdftotext.\n");
    let mode = std::fs::metadata(skill.join("scripts/read.sh")).expect("its script").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(!home.path().join(".config/dragoman/skills/upload").exists(), "a text with a key is not copied");
    assert_eq!(before, originals(&home), "files of the other program are not changed");

    let again = report(&home, &["--yes"]);
    assert_eq!((&again["steps"], &again["imported"]), (&json!([]), &json!(false)), "{again:#}");
    assert_eq!(std::fs::read_to_string(own_settings(&home)).expect("settings"), written);
    let checked = said(&run(&home, &["config", "check"]));
    assert!(!checked.contains("unknown") && !checked.contains("error"), "{checked}");
}

fn settings_without_trailing_commas(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let text = lines.join("\n");
    let mut clean = String::new();
    for (at, character) in text.char_indices() {
        let next = text[at + character.len_utf8()..].trim_start().chars().next();
        if !(character == ',' && matches!(next, Some('}' | ']'))) {
            clean.push(character);
        }
    }
    serde_json::from_str(&clean).unwrap_or_else(|error| panic!("{error}: {clean}"))
}

#[test]
fn an_imported_rule_decides_as_it_did_there() {
    let home = Home::new();
    claude(&home);
    let imported = run(&home, &["import", "--yes"]);
    assert!(imported.status.success());
    assert!(!said(&imported).contains("config.json.bak"), "there were no settings before");
    for (command, words) in [
        ("npm run test --watch", &["allow"][..]),
        // The rule does not cover it: it is asked about, or the sandbox contains it.
        ("npm run test; rm x", &["ask", "its sandbox keeps it"]),
        ("git push origin", &["den"]),
    ] {
        let input = json!({"command": command}).to_string();
        let explained = said(&run(&home, &["explain-permission", "shell_command", &input])).to_lowercase();
        assert!(words.iter().any(|word| explained.contains(word)), "{command}: {explained}");
    }
}

#[test]
fn settings_of_other_programs_are_imported() {
    let home = Home::new();
    home.write(
        ".codex/config.toml",
        "model = \"gpt-5\"\napproval_policy = \"on-request\"\n\n[mcp_servers.files]\ncommand = \"files\"\nargs = [\"-x\"]\n",
    );
    home.write(".codex/prompts/explain.md", "Explain $1.\n");
    home.write(
        ".config/opencode/opencode.json",
        r#"{"$schema": "x", "mcp": {"local": {"type": "local", "command": ["bun", "x", "tool"], "environment": {"K": "{env:K}"}},
            "far": {"type": "remote", "url": "https://far.example/mcp", "enabled": true}},
            "permission": {"bash": {"git log *": "allow", "terraform *": "deny"}, "edit": "ask"}, "theme": "nord"}"#,
    );
    home.write(
        ".config/goose/config.yaml",
        "GOOSE_MODEL: gpt-4o\nextensions:\n  developer:\n    type: builtin\n    enabled: true\n  fetch:\n    type: stdio\n    cmd: uvx\n    args:\n    - mcp-server-fetch\n    envs: {}\n",
    );
    home.write(".gemini/settings.json", r#"{"mcpServers": {"gem": {"httpUrl": "https://gem.example/mcp"}}}"#);
    home.write("work/.cursor/mcp.json", r#"{"mcpServers": {"cur": {"command": "cur"}}}"#);
    home.write(".config/eca/config.json", r#"{"logLevel": "warn"}"#);
    let report = report(&home, &["--yes"]);
    assert_eq!(report["imported"], json!(true), "{report:#}");
    let own = settings(own_settings(&home));
    let servers: Vec<&String> = own["mcpServers"].as_object().expect("servers").keys().collect();
    assert_eq!(servers, ["files", "local", "far", "gem", "fetch"]);
    assert_eq!(own["mcpServers"]["local"]["args"], json!(["x", "tool"]));
    assert_eq!(own["mcpServers"]["local"]["env"]["K"], json!("${env:K}"));
    assert_eq!(own["mcpServers"]["fetch"]["command"], json!("uvx"));
    let allow = &own["toolCall"]["approval"]["allow"]["eca__shell_command"]["argsMatchers"]["command"];
    assert_eq!(allow, &json!(["git log( .*)?"]));
    let left = report["leftOut"].to_string();
    for words in ["gpt-5", "chat.theme", "approval_policy"] {
        assert!(left.contains(words), "{words}: {left}");
    }
    assert!(report["inPlace"].to_string().contains("eca/config.json"), "it is used as it is: {report:#}");
    assert!(home.path().join(".config/dragoman/commands/explain.md").exists());
    assert!(home.workspace().join(".dragoman/config.json").exists());
}

#[test]
fn no_setting_is_left_out_silently() {
    let home = Home::new();
    home.write(".claude/settings.json", r#"{"cleanupPeriodDays": 3, "permissions": {"allow": ["Read"]}}"#);
    home.write(
        ".codex/config.toml",
        "model = \"m\"\nhide_agent_reasoning = true\n[model_providers.corp]\nbase_url = \"https://llm.corp/v1\"\n\
         [projects.\"/a\"]\ntrust_level = \"trusted\"\n[projects.\"/b\"]\n[tui]\n",
    );
    home.write(".config/goose/config.yaml", "GOOSE_PROVIDER: anthropic\nGOOSE_THEME: dark\n");
    home.write(".gemini/settings.json", r#"{"selectedAuthType": "oauth-personal"}"#);
    for name in
        ["work/.cursorrules", "work/.goosehints", "work/CLAUDE.local.md", "work/.gemini/commands/x.toml"]
    {
        home.write(name, "text");
    }
    home.write("work/.cursor/commands/fix.md", "Fix it.\n");
    home.write("work/.cursor/rules/always.mdc", "---\nalwaysApply: true\n---\nUse tabs.\n");
    home.write(
        "work/.cursor/rules/sql.mdc",
        "---\nglobs: db/**, *.sql\nalwaysApply: false\n---\nNo raw SQL.\n",
    );
    home.write(
        "work/.cursor/rules/asked.mdc",
        "---\ndescription: Deploys\nalwaysApply: false\n---\nDeploy.\n",
    );
    let said = said(&run(&home, &["import", "--dry-run"]));
    let left = said.split("No place here").nth(1).expect("a list");
    for file in [".gemini/commands", "asked.mdc"] {
        assert!(left.contains(file), "{file}: {said}");
    }
    let in_place = said.split("Used where they are").nth(1).expect("a list");
    let in_place = in_place.split("\n\n").next().expect("its lines");
    for file in ["CLAUDE.local.md", "sql.mdc", "always.mdc"] {
        assert!(in_place.contains(file), "{file}: {said}");
    }
    assert!(run(&home, &["import", "--copy", "--yes"]).status.success());
    let written =
        |name: &str| std::fs::read_to_string(home.workspace().join(".dragoman").join(name)).expect("a file");
    assert_eq!(written("rules/sql.md"), "---\npaths: [\"db/**\",\"*.sql\"]\n---\n\nNo raw SQL.\n");
    assert_eq!(written("commands/fix.md"), "Fix it.\n");
    for setting in [
        "cleanupPeriodDays",
        "hide_agent_reasoning",
        "  projects: ",
        "  tui: ",
        "GOOSE_PROVIDER",
        "GOOSE_THEME",
        "selectedAuthType",
    ] {
        assert_eq!(said.matches(setting).count(), 1, "{setting}: {said}");
    }
}

#[test]
fn nothing_is_imported_inside_a_tool_call() {
    let home = Home::new();
    claude(&home);
    let refused = home.command(&["import", "--yes"]).env("DRAGOMAN_CHILD", "1").output().expect("it runs");
    assert!(!refused.status.success() && said(&refused).contains("inside a tool call"), "{}", said(&refused));
    assert!(!own_settings(&home).exists());
}

/// One chat of each program, in the form that it stores.
fn write_chats(home: &Home) {
    let folder = home.workspace().display().to_string();
    let lines = [
        json!({"type": "summary", "summary": "The parser", "leafUuid": "x"}),
        json!({"parentUuid": null, "isSidechain": false, "type": "user", "cwd": folder, "sessionId": "s1", "uuid": "u1",
            "timestamp": "2026-07-02T12:55:36.397Z", "message": {"role": "user", "content": "fix the parser bug"}}),
        json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "meta text"}}),
        json!({"type": "assistant", "timestamp": "2026-07-02T12:55:40Z", "message": {"role": "assistant", "model": "claude-opus-4-5",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "src/parser.rs"}}]}}),
        json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "fn parse() {}"}]}]}}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "The bug is fixed."}]}}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    home.write(".claude/projects/-work/0a1b2c3d.jsonl", &format!("{}\n{{torn", lines.join("\n")));
    let lines = [
        json!({"timestamp": "2026-03-04T00:53:03.666Z", "type": "session_meta", "payload": {"id": "019cb655", "cwd": folder}}),
        json!({"timestamp": "2026-03-04T00:53:03.700Z", "type": "turn_context", "payload": {"model": "gpt-5.3-codex"}}),
        json!({"type": "response_item", "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]}}),
        json!({"type": "response_item", "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "run the tests"}]}}),
        json!({"type": "response_item", "payload": {"type": "function_call", "name": "shell", "call_id": "c1",
            "arguments": "{\"command\": [\"make\", \"test\"]}"}}),
        json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1",
            "output": "{\"output\": \"2 failed\", \"metadata\": {\"exit_code\": 1}}"}}),
        json!({"timestamp": "2026-03-04T00:54:00Z", "type": "response_item", "payload": {"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "Two tests fail."}]}}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    home.write(".codex/sessions/2026/03/04/rollout-2026-03-04T00-53-03-019cb655.jsonl", &lines.join("\n"));
    let storage = ".local/share/opencode/storage";
    let write = |path: &str, value: Value| home.write(&format!("{storage}/{path}"), &value.to_string());
    write(
        "session/p1/ses_1.json",
        json!({"id": "ses_1", "directory": folder, "title": "Greeting", "time": {"updated": 1_780_000_000_000_u64}}),
    );
    write("message/ses_1/msg_1.json", json!({"id": "msg_1", "role": "user", "time": {"created": 1}}));
    write(
        "message/ses_1/msg_2.json",
        json!({"id": "msg_2", "role": "assistant", "modelID": "m", "time": {"created": 2}}),
    );
    write("part/msg_1/prt_1.json", json!({"type": "text", "text": "hello there"}));
    write(
        "part/msg_2/prt_2.json",
        json!({"type": "tool", "tool": "bash", "callID": "c", "state": {"status": "completed", "input": {"command": "ls"}, "output": "a.txt"}}),
    );
    write("part/msg_2/prt_3.json", json!({"type": "text", "text": "There is a.txt."}));
    write_eca_chat(home);
}

/// ECA names the folder by a hash of the workspace.
fn write_eca_chat(home: &Home) {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let folder = home.workspace().canonicalize().expect("a folder");
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let hash: String =
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest).chars().take(8).collect();
    let messages = json!([
        ["^ ", "~:role", "user", "~:content", [["^ ", "~:type", "~:text", "^9", "explain monads"]]],
        [
            "^ ",
            "^6",
            "tool_call",
            "^7",
            ["^ ", "~:id", "e1", "~:full-name", "eca__read_file", "~:arguments", ["^ ", "path", "a"]]
        ],
        [
            "^ ",
            "^6",
            "tool_call_output",
            "^7",
            ["^ ", "^:", "e1", "~:output", ["^ ", "~:contents", [["^ ", "^8", "^9", "^9", "content of a"]]]]
        ],
        ["^ ", "^6", "assistant", "^7", "A monad is a burrito."],
    ]);
    let database = json!([
        "^ ",
        "~:chats",
        [
            "^ ",
            "chat-1",
            [
                "^ ",
                "~:title",
                "Monads",
                "~:model",
                "x/y",
                "~:created-at",
                1_780_000_000_000_u64,
                "~:messages",
                messages
            ]
        ],
        "~:version",
        6
    ]);
    home.write(&format!(".cache/eca/work_{hash}/db.transit.json"), &database.to_string());
}

#[tokio::test]
async fn chats_are_imported_once_with_their_origin_and_sent_to_nobody() {
    let home = Home::new();
    write_chats(&home);
    let fake = FakeModel::start().await;
    let config = fake_provider(fake.url(), "openai-chat").to_string();
    let import = || {
        let mut command: tokio::process::Command = home.command(&["import", "--yes", "--json"]).into();
        command.env("DRAGOMAN_CONFIG", &config).output()
    };
    let output = import().await.expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ids: Vec<&str> =
        report["chats"].as_array().expect("chats").iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids.len(), 4, "{report:#}");
    assert!(fake.requests().is_empty(), "nothing is sent to a model");

    for (id, words) in [
        (
            "claude-0a1b2c3d",
            ["Imported from Claude Code", "fix the parser bug", "The bug is fixed."].as_slice(),
        ),
        ("codex-019cb655", &["Imported from codex", "run the tests", "(failed)", "Two tests fail."]),
        ("opencode-ses_1", &["Imported from opencode", "hello there", "There is a.txt."]),
        ("eca-chat-1", &["Imported from ECA", "explain monads", "burrito"]),
    ] {
        let shown = said(&run(&home, &["chats", "show", id]));
        for words in words {
            assert!(shown.contains(words), "{id}: {words} is missing:\n{shown}");
        }
        assert!(!shown.contains("meta text") && !shown.contains("environment_context"), "{shown}");
    }
    let listed = said(&run(&home, &["chats", "list"]));
    for title in ["The parser", "run the tests", "Greeting", "Monads"] {
        assert!(listed.contains(title), "{title}: {listed}");
    }
    let found = said(&run(&home, &["chats", "search", "burrito"]));
    assert!(found.contains("eca-chat-1"), "{found}");

    let again: Value = serde_json::from_slice(&import().await.expect("it runs").stdout).expect("JSON");
    assert_eq!((&again["chats"], &again["knownChats"]), (&json!([]), &json!(4)));

    fake.answer(Answer::text("Indeed."));
    let arguments = ["run", "--session", "claude-0a1b2c3d", "why?"];
    let mut command: tokio::process::Command = home.command(&arguments).into();
    let went_on = command.env("DRAGOMAN_CONFIG", &config).output().await.expect("it runs");
    assert!(said(&went_on).contains("Indeed."), "{}", said(&went_on));
    let request = fake.requests()[0].body.to_string();
    assert!(request.contains("fix the parser bug") && request.contains("fn parse() {}"), "{request}");
    assert!(!request.contains("Imported from"), "the origin is for people: {request}");
}

/// A key in a place where nobody expects one is not copied, shown or kept in the history.
#[test]
fn no_key_is_copied_from_rules_arguments_hooks_and_chats() {
    let home = Home::new();
    let key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let rules = json!([
        format!("Bash(GITHUB_TOKEN={key} gh pr list)"),
        "Bash(PGPASSWORD=hunter2 psql:*)",
        "Bash(npm test:*)"
    ]);
    let hook = json!([{"hooks": [{"type": "command", "command": format!("notify --token {key}")}]}]);
    let values = json!({"permissions": {"allow": rules}, "hooks": {"Stop": hook}});
    home.write(".claude/settings.json", &values.to_string());
    let servers = json!({"mcpServers": {
        "one": {"command": "srv", "args": ["--token", "hunter2"]},
        "two": {"url": "https://x.example/mcp?api_key=hunter2"},
        "three": {"command": "srv", "env": {"DSN": "postgres://me:hunter2@host/${DB}"}, "cwd": "/opt/x", "timeout": 9},
    }});
    home.write(".claude.json", &servers.to_string());
    let prompt =
        json!({"type": "user", "message": {"role": "user", "content": format!("my key is {key}, use it")}});
    let call = json!({"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": format!("curl -H 'X: {key}'")}}]}});
    let result = json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": format!("{{\"token\":\"{key}\"}}")}]}});
    home.write(".claude/projects/-work/keys.jsonl", &format!("{prompt}\n{call}\n{result}\n"));
    let before = originals(&home);
    // A plan leaves nothing behind.
    let planned = report(&home, &["--dry-run"]).to_string();
    assert!(!home.path().join(".local/share/dragoman").exists());
    let imported = report(&home, &["--yes"]).to_string();
    let shown = said(&run(&home, &["chats", "show", "claude-keys"]));
    assert!(shown.contains("my key is [a key that was not copied], use it"), "{shown}");
    let written = std::fs::read_to_string(own_settings(&home)).expect("settings");
    assert!(written.contains("npm test") && written.contains("${env:DSN}"), "{written}");
    for text in [&planned, &imported, &shown, &written] {
        assert!(!text.contains(key) && !text.contains("hunter2"), "{text}");
    }
    assert!(imported.contains("cwd, timeout"), "members without a place are named: {imported}");
    let data = home.path().join(".local/share/dragoman");
    for entry in std::fs::read_dir(data).expect("the data folder").flatten().filter(|it| it.path().is_file())
    {
        let bytes = std::fs::read(entry.path()).expect("a file");
        assert!(!bytes.windows(key.len()).any(|it| it == key.as_bytes()), "{:?}", entry.path());
    }
    assert_eq!(originals(&home), before);
}

/// What a chat has and the history cannot hold is marked; what cannot be read is counted.
#[test]
fn nothing_of_a_chat_is_lost_silently() {
    let home = Home::new();
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let lines = [
        json!({"type": "user", "message": {"role": "user", "content": [image]}}).to_string(),
        json!({"type": "assistant", "message": {"role": "assistant", "content": "A plain answer."}})
            .to_string(),
        "{torn".to_owned(),
        json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "gone", "content": "an orphan"}]}})
        .to_string(),
        json!({"type": "user"}).to_string(),
        "null".to_owned(),
    ];
    let chat = home.write("elsewhere/linked.jsonl", &lines.join("\n"));
    home.write(".claude/projects/-work/torn.jsonl", "no JSON\n{torn");
    let folder = home.path().join(".claude/projects/-work");
    std::os::unix::fs::symlink(chat, folder.join("linked.jsonl")).expect("a link");
    std::os::unix::fs::symlink(&folder, folder.join("circle")).expect("a link");
    // Codex before September 2025, and what it archived.
    let old = [
        json!({"id": "old-1", "timestamp": "2025-05-07T10:00:00Z", "instructions": null}),
        json!({"record_type": "state"}),
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "an old question"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "an old answer"}]}),
    ];
    let old: Vec<String> = old.iter().map(Value::to_string).collect();
    home.write(".codex/archived_sessions/rollout-2025-05-07T10-00-00-old-1.jsonl", &old.join("\n"));
    let storage = ".local/share/opencode/storage";
    home.write(
        &format!("{storage}/session/p/ses_1.json"),
        &json!({"id": "ses_1", "title": "Torn"}).to_string(),
    );
    home.write(
        &format!("{storage}/message/ses_1/msg_1.json"),
        &json!({"id": "msg_1", "role": "user"}).to_string(),
    );
    home.write(
        &format!("{storage}/part/msg_1/prt_1.json"),
        &json!({"type": "text", "text": "still here"}).to_string(),
    );
    let file = json!({"type": "file", "filename": "a.png", "url": "data:image/png;base64,iVBORw0KGgo="});
    home.write(&format!("{storage}/part/msg_1/prt_2.json"), &file.to_string());
    home.write(&format!("{storage}/part/msg_1/prt_3.json"), "{torn");
    let report = report(&home, &["--yes"]);
    let left = report["leftOut"].to_string();
    for words in ["torn.jsonl", "2 lines are no JSON", "2 of its entries", "1 of its entries"] {
        assert!(left.contains(words), "{words}: {left}");
    }
    for (id, words) in [
        (
            "claude-linked",
            &["[image, not imported]", "A plain answer.", "2 of its entries", "unknown_tool"][..],
        ),
        ("codex-old-1", &["an old question", "[image, not imported]", "an old answer"]),
        ("opencode-ses_1", &["still here", "[a.png, not imported]", "1 of its entries"]),
    ] {
        let shown = said(&run(&home, &["chats", "show", id]));
        assert!(words.iter().all(|words| shown.contains(words)), "{id}: {words:?}\n{shown}");
    }
}

/// Newer versions of opencode keep chats in SQLite, in the mode with a log beside the file.
fn write_opencode_database(home: &Home) -> rusqlite::Connection {
    let file = home.write(".local/share/opencode/opencode.db", "");
    let database = rusqlite::Connection::open(file).expect("it opens");
    let tables = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
        CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, time_created integer NOT NULL);
        CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
            directory text NOT NULL, title text NOT NULL, version text NOT NULL, permission text,
            time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
            time_updated integer NOT NULL, data text NOT NULL);
        CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);";
    database.execute_batch(tables).expect("tables");
    let folder = home.workspace().display().to_string();
    let session = "INSERT INTO session VALUES (?1, 'p', NULL, 'quick-fox', ?2, ?3, '1.2.0', NULL, 1, 1780000000000, NULL)";
    database.execute(session, ("ses_2", &folder, "A new home")).expect("a row");
    database.execute(session, ("ses_1", &folder, "Greeting, later")).expect("a row");
    let message = |id: &str, session: &str, at: i64, data: Value| {
        let row = (id, session, at, at, data.to_string());
        database.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4, ?5)", row).expect("a row");
    };
    message("msg_b", "ses_2", 20, json!({"role": "assistant", "modelID": "kimi-k2", "providerID": "x"}));
    message(
        "msg_a",
        "ses_2",
        10,
        json!({"role": "user", "model": {"providerID": "x", "modelID": "kimi-k2"}}),
    );
    message("msg_c", "ses_1", 10, json!({"role": "user"}));
    let part = |id: &str, message: &str, data: &str| {
        let row = (id, message, "ses", 1, 1, data);
        database.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).expect("a row");
    };
    part("prt_1", "msg_a", r#"{"type": "text", "text": "which files are here?"}"#);
    part("prt_2", "msg_a", r#"{"type": "text", "text": "a synthetic note", "synthetic": true}"#);
    part("prt_3", "msg_b", r#"{"type": "step-start"}"#);
    part("prt_4", "msg_b", "{torn");
    part(
        "prt_5",
        "msg_b",
        r#"{"type": "tool", "tool": "bash", "callID": "c", "state": {"status": "error", "input": {"command": "ls"}, "error": "no ls"}}"#,
    );
    part("prt_6", "msg_b", r#"{"type": "text", "text": "I cannot see any."}"#);
    part("prt_7", "msg_c", r#"{"type": "text", "text": "hello from the database"}"#);
    database
}

/// The database may be open: what is only in its log is imported too, and no byte beside it changes.
#[test]
fn chats_in_the_database_of_opencode_are_imported_from_a_copy() {
    let home = Home::new();
    write_chats(&home);
    let database = write_opencode_database(&home);
    let before = originals(&home);
    let first = report(&home, &["--yes", "--from", "opencode"]);
    let mut ids: Vec<&str> =
        first["chats"].as_array().expect("chats").iter().filter_map(|it| it["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["opencode-ses_1", "opencode-ses_2"], "{first:#}");
    let shown = said(&run(&home, &["chats", "show", "opencode-ses_2"]));
    let expected =
        ["Imported from opencode", "opencode.db", "which files are here?", "(failed)", "I cannot see any."];
    for words in expected {
        assert!(shown.contains(words), "{words} is missing:\n{shown}");
    }
    assert!(!shown.contains("synthetic"), "{shown}");
    let shown = said(&run(&home, &["chats", "show", "opencode-ses_1"]));
    assert!(shown.contains("hello from the database"), "the database is newer than the files:\n{shown}");

    let again = report(&home, &["--yes", "--from", "opencode"]);
    assert_eq!((&again["chats"], &again["knownChats"]), (&json!([]), &json!(2)), "{again:#}");
    assert!(before == originals(&home), "the originals are as they were");
    drop(database);

    home.write(
        ".local/share/opencode/opencode.db",
        "this is no database, but it is long enough to be read as one",
    );
    let broken = report(&home, &["--from", "opencode"]);
    assert!(broken["leftOut"].to_string().contains("it cannot be read"), "{broken:#}");
}

/// An agent may do here at most what it may do there; otherwise it is not imported, and the report says why.
#[test]
fn what_an_agent_may_not_do_is_never_lost() {
    let home = Home::new();
    let agent = |head: &str| format!("---\ndescription: x\n{head}---\nYou work.\n");
    for (file, head) in [
        (".claude/agents/list.md", "tools: Read, Grep\n"),
        (".claude/agents/without.md", "disallowedTools: Bash, Write\n"),
        (".claude/agents/planner.md", "permissionMode: plan\n"),
        (".claude/agents/some.md", "tools: Read, Bash(git log:*)\n"),
        (".claude/agents/hooked.md", "hooks:\n  PreToolUse:\n    - matcher: Bash\n"),
        (".claude/agents/odd.md", "sandboxLevel: strict\n"),
        (".config/opencode/agent/quiet.md", "mode: subagent\ntools:\n  bash: false\n  write: false\n"),
        (
            ".config/opencode/agent/asks.md",
            "permission:\n  edit: deny\n  bash:\n    \"git push *\": deny\n    \"*\": ask\n",
        ),
        (
            ".config/opencode/agent/few.md",
            "permission:\n  bash:\n    \"*\": deny\n    \"git log *\": allow\n",
        ),
        ("work/.opencode/agent/here.md", "tools:\n  webfetch: false\n"),
    ] {
        home.write(file, &agent(head));
    }
    let values = json!({
        "agent": {"json": {"prompt": "You write.", "tools": {"bash": false}},
            "closed": {"prompt": "x", "permission": {"*": "deny", "read": "allow"}},
            "build": {"permission": {"bash": "ask"}}},
        "permission": {"webfetch": "deny", "bash": "ask"}, "tools": {"todowrite": true, "websearch": false},
        "command": {"plan-it": {"template": "Plan.", "agent": "plan"}, "plain": {"template": "Say hi."}}});
    home.write(".config/opencode/opencode.json", &values.to_string());
    let values = json!({"excludeTools": ["run_shell_command(rm -rf)", "web_fetch"],
        "mcpServers": {"part": {"command": "a", "includeTools": ["x"]}, "less": {"command": "b", "excludeTools": ["drop"]}}});
    home.write(".gemini/settings.json", &values.to_string());
    home.write(".codex/config.toml", "[mcp_servers.few]\ncommand = \"c\"\nenabled_tools = [\"x\"]\n");
    let report = report(&home, &["--yes"]);
    let left = report["leftOut"].to_string();
    let own = settings(own_settings(&home));
    let off = |name: &str| own["agent"][name]["disabledTools"].to_string();
    for (name, tools) in [
        ("list", &["shell_command", "write_file", "edit_file", "fetch_url", "web_search", "__.*"][..]),
        ("without", &["shell_command", "background_job", "write_file"]),
        ("quiet", &["shell_command", "write_file"]),
        ("asks", &["edit_file", "write_file"]),
        ("json", &["shell_command"]),
    ] {
        tools.iter().for_each(|tool| assert!(off(name).contains(tool), "{name}: {tool} in {}", off(name)));
        assert!(home.path().join(format!(".config/dragoman/agents/{name}.md")).exists(), "{name}");
    }
    assert_eq!(own["agent"]["planner"]["inherit"], "plan");
    let asks = &own["agent"]["asks"]["toolCall"]["approval"];
    assert_eq!(asks["deny"]["eca__shell_command"]["argsMatchers"]["command"], json!(["git push.*"]));
    assert_eq!(asks["ask"]["eca__shell_command"], json!({}));
    for name in ["some", "hooked", "odd", "few", "closed", "build"] {
        assert!(own["agent"].get(name).is_none(), "{name} is imported: {}", own["agent"][name]);
        assert!(!home.path().join(format!(".config/dragoman/agents/{name}.md")).exists(), "{name}");
        assert!(left.contains(&format!("agent {name}")), "{name} is not named: {left}");
    }
    let project = settings(home.workspace().join(".dragoman/config.json"));
    assert_eq!(project["agent"]["here"]["disabledTools"], json!(["fetch_url"]));
    let disabled = own["disabledTools"].to_string();
    for tool in ["fetch_url", "web_search", "less__drop"] {
        assert!(disabled.contains(tool), "{tool}: {disabled}");
    }
    let approval = &own["toolCall"]["approval"];
    assert_eq!(approval["ask"]["eca__shell_command"], json!({}));
    assert!(approval["deny"]["eca__shell_command"].to_string().contains("rm"), "{approval}");
    assert!(own["mcpServers"].get("part").is_none() && own["mcpServers"].get("few").is_none(), "{own}");
    assert!(left.contains("MCP server part") && left.contains("MCP server few"), "{left}");
    let commands = home.path().join(".config/dragoman/commands");
    assert!(commands.join("plain.md").exists() && !commands.join("plan-it.md").exists());
    let checked = said(&run(&home, &["config", "check"]));
    assert!(!checked.contains("error") && !checked.contains("not a known"), "{checked}");
    let again = self::report(&home, &["--yes"]);
    assert_eq!(again["steps"], json!([]), "{again:#}");
}

/// The model is not offered what the agent may not use, tools of servers included.
#[tokio::test]
async fn an_imported_agent_is_offered_only_its_tools() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write(".config/opencode/agent/reader.md", "---\nmode: primary\ntools: read, grep\n---\nYou read.\n");
    home.write(
        ".config/opencode/agent/writer.md",
        "---\nmode: primary\ntools:\n  bash: false\n---\nYou write.\n",
    );
    assert!(run(&home, &["import", "--yes"]).status.success());
    let config = crate::eca_mcp::config(&home, fake.url(), &[("test-mcp", "good")]).to_string();
    for (agent, without, with) in [
        (
            "reader",
            &["shell_command", "write_file", "edit_file", "test-mcp__", "spawn_agent"][..],
            "read_file",
        ),
        ("writer", &["shell_command", "background_job"], "write_file"),
    ] {
        fake.answer(Answer::text("Done."));
        let mut command: tokio::process::Command = home.command(&["run", "--behavior", agent, "go"]).into();
        let ran = command.env("DRAGOMAN_CONFIG", &config).output().await.expect("it runs");
        assert!(ran.status.success(), "{}", said(&ran));
        let offered = fake.last_request().body["tools"].to_string();
        without.iter().for_each(|tool| assert!(!offered.contains(tool), "{agent}: {tool} in {offered}"));
        assert!(offered.contains(with), "{agent}: {offered}");
    }
}

#[test]
fn providers_commands_and_second_instructions_are_imported() {
    let home = Home::new();
    home.write(
        ".codex/config.toml",
        "model = \"m1\"\nmodel_provider = \"corp\"\n[model_providers.corp]\nname = \"Corp\"\nbase_url = \"https://llm.corp/v1\"\n\
         env_key = \"CORP_KEY\"\nwire_api = \"responses\"\n[model_providers.azure]\nbase_url = \"https://a\"\nquery_params = { v = \"1\" }\n",
    );
    let provider = json!({"lab": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:8000/v1",
        "apiKey": "sk-0123456789abcdef0123"}, "models": {"qwen": {"limit": {"context": 32768}}}}});
    home.write(".config/opencode/opencode.json", &json!({"provider": provider}).to_string());
    home.write(
        ".gemini/commands/git/commit.toml",
        "description = \"Commit\"\nprompt = \"\"\"\nWrite a commit for {{args}}.\n\"\"\"\n",
    );
    home.write("work/.gemini/commands/test.toml", "prompt = \"Run the tests: !{make test}\"\n");
    home.write(".gemini/commands/broken.toml", "prompt = \n");
    home.write(".claude/CLAUDE.md", "Answer briefly.\n");
    home.write(".codex/AGENTS.md", "Use tabs.\n");
    home.write(".gemini/GEMINI.md", "Answer briefly.\n");
    home.write("work/AGENTS.md", "Of the project.\n");
    home.write("work/CLAUDE.md", "Of Claude.\n");
    home.write("work/GEMINI.md", "@AGENTS.md\n");
    home.write("work/.goosehints", "Of goose.\n");
    let here = home.workspace().canonicalize().expect("a folder").display().to_string();
    let servers = json!({"mcpServers": {"global": {"command": "g"}}, "projects": {
        here: {"mcpServers": {"local": {"command": "l"}}}, "/elsewhere": {"mcpServers": {"far": {"command": "f"}}}}});
    home.write(".claude.json", &servers.to_string());
    let report = report(&home, &["--yes"]);
    let own = settings(own_settings(&home));
    assert_eq!(
        own["providers"]["corp"],
        json!({"url": "https://llm.corp/v1", "key": "${env:CORP_KEY}", "api": "openai-responses", "models": {"m1": {}}})
    );
    assert_eq!(own["providers"]["lab"]["models"]["qwen"]["limit"]["context"], 32768);
    assert!(own["providers"]["lab"].get("key").is_none() && own["providers"].get("azure").is_none(), "{own}");
    let left = report["leftOut"].to_string();
    for words in ["model_providers.azure", "dragoman login lab", "command broken", "!{command}"] {
        assert!(left.contains(words), "{words}: {left}");
    }
    let read = |path: &str| {
        std::fs::read_to_string(home.path().join(path)).unwrap_or_else(|_| panic!("{path} is missing"))
    };
    let command = read(".config/dragoman/commands/git-commit.md");
    assert_eq!(command, "---\ndescription: Commit\n---\n\nWrite a commit for $ARGUMENTS.\n");
    assert!(read("work/.dragoman/commands/test.md").contains("Run the tests"));
    assert_eq!(read(".config/dragoman/AGENTS.md"), "Answer briefly.\n");
    assert_eq!(read(".config/dragoman/rules/codex-instructions.md"), "Use tabs.\n");
    assert_eq!(read("work/.dragoman/rules/goose-hints.md"), "Of goose.\n");
    for absent in [
        ".config/dragoman/rules/gemini-instructions.md",
        "work/.dragoman/rules/gemini-instructions.md",
        "work/.dragoman/rules/claude-instructions.md",
    ] {
        assert!(!home.path().join(absent).exists(), "{absent}");
    }
    let project = settings(home.workspace().join(".dragoman/config.json"));
    assert_eq!(project["mcpServers"]["local"]["command"], "l", "{project}");
    let servers: Vec<&String> = own["mcpServers"].as_object().expect("servers").keys().collect();
    assert_eq!(servers, ["global"], "a server of one project is not made global");
    assert_eq!(self::report(&home, &["--yes"])["steps"], json!([]));
}

#[test]
fn chats_keep_their_own_times() {
    let home = Home::new();
    write_chats(&home);
    assert!(run(&home, &["import", "--yes"]).status.success());
    let list = |home: &Home| -> Vec<(String, u64)> {
        let listed: Value =
            serde_json::from_str(&said(&run(home, &["chats", "list", "--all", "--json"]))).expect("JSON");
        let chats = listed["chats"].as_array().expect("chats").clone();
        chats
            .iter()
            .map(|it| (it["id"].as_str().expect("id").to_owned(), it["updatedAt"].as_u64().expect("a time")))
            .collect()
    };
    let listed = list(&home);
    for (id, time) in [
        ("claude-0a1b2c3d", 1_782_996_940_000),
        ("codex-019cb655", 1_772_585_640_000),
        ("opencode-ses_1", 1_780_000_000_000),
        ("eca-chat-1", 1_780_000_000_000),
    ] {
        assert!(listed.contains(&(id.to_owned(), time)), "{id}: {listed:?}");
    }
    assert_eq!(listed.first().map(|(id, _)| id.as_str()), Some("claude-0a1b2c3d"), "the newest first");
    // The same for a chat that Dragoman exported.
    assert!(run(&home, &["chats", "export", "claude-0a1b2c3d", "-o", "chat.jsonl"]).status.success());
    assert!(run(&home, &["chats", "delete", "claude-0a1b2c3d"]).status.success());
    assert!(run(&home, &["chats", "import", "chat.jsonl"]).status.success());
    assert!(list(&home).contains(&("claude-0a1b2c3d".to_owned(), 1_782_996_940_000)), "{:?}", list(&home));
}

/// A folder as each assistant leaves it: what of it counts where it is, what is copied, and what has no place here.
#[test]
fn what_each_assistant_left_in_a_folder_is_used_in_place_copied_or_named() {
    type Row = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
    );
    let rows: [Row; 7] = [
        (
            "claude",
            &[
                ("CLAUDE.md", "Words."),
                (".mcp.json", r#"{"mcpServers": {"team": {"command": "t"}}}"#),
                (".claude/settings.json", r#"{"permissions": {"deny": ["Bash(rm:*)"]}, "env": {"A": "1"}}"#),
                (".claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nS."),
                (".claude/agents/a.md", "---\nname: a\ndescription: d\n---\nA."),
                (".claude/commands/c.md", "C."),
            ],
            &["CLAUDE.md", ".mcp.json", "settings.json", "SKILL.md", "agents/a.md", "commands/c.md"],
            &[],
            &["env"],
        ),
        ("codex", &[("AGENTS.md", "Words.")], &["AGENTS.md"], &[], &[]),
        ("opencode", &[(".opencode/command/c.md", "C.")], &[], &["commands/c.md"], &[]),
        (
            "gemini",
            &[("GEMINI.md", "Words."), (".gemini/commands/x.toml", "prompt = \"X\"\n")],
            &["GEMINI.md"],
            &["commands/x.md"],
            &[],
        ),
        ("goose", &[(".goosehints", "Words.")], &[], &["rules/goose-hints.md"], &[]),
        (
            "cursor",
            &[
                (".cursor/rules/sql.mdc", "---\nglobs: *.sql\n---\nSQL."),
                (".cursor/rules/asked.mdc", "---\ndescription: d\n---\nAsked."),
                (".cursor/mcp.json", r#"{"mcpServers": {"cur": {"command": "c"}}}"#),
            ],
            &["sql.mdc"],
            &["mcpServers.cur"],
            &["asked.mdc"],
        ),
        ("eca", &[(".eca/config.json", "{}")], &[".eca/config.json"], &[], &[]),
    ];
    for (program, files, in_place, copied, left_out) in rows {
        let home = Home::new();
        for (name, text) in files {
            home.write(&format!("work/{name}"), text);
        }
        let report = report(&home, &["--from", program, "--no-chats"]);
        for (list, wanted) in [("inPlace", in_place), ("steps", copied), ("leftOut", left_out)] {
            let found = report[list].to_string();
            for words in wanted {
                assert!(found.contains(words), "{program} {list} {words}: {report:#}");
            }
        }
        assert_eq!(report["inPlace"].as_array().map(Vec::len), Some(in_place.len()), "{program}: {report:#}");
        assert_eq!(report["steps"].as_array().map(Vec::len), Some(copied.len()), "{program}: {report:#}");
    }
}
