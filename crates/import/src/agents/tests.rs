//! What an agent may not do there, it may not do here.

use std::collections::HashSet;
use std::path::Path;

use super::*;

fn read(settings: &Value) -> Result<Value, String> {
    let servers = HashSet::new();
    let context = Context { home: Path::new("/home/me"), servers: &servers };
    let custom_tools = ["deploy".to_owned()];
    let around = Surroundings { context, custom_tools: &custom_tools };
    let mut agent = json!({});
    Restrictions::read(settings.as_object().unwrap(), &around)?.apply(&mut agent);
    Ok(agent)
}

fn disabled(agent: &Value) -> Vec<&str> {
    agent["disabledTools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn restrictions_become_settings_that_forbid_the_same() {
    for (settings, forbidden, kept) in [
        (
            json!({"tools": "Read, Grep"}),
            &[
                "shell_command",
                "write_file",
                "apply_patch",
                "web_search",
                "spawn_agent",
                "deploy",
                OF_SERVERS,
            ][..],
            &["read_file", "grep"][..],
        ),
        (json!({"tools": ["Read", "Edit"]}), &["write_file", "move_file", "shell_command"], &["edit_file"]),
        (json!({"tools": []}), &["read_file", "shell_command", "skill"], &[]),
        (json!({"tools": "*"}), &[], &["shell_command"]),
        (json!({"tools": ["Edit", "Write"]}), &["shell_command"], &["apply_patch", "move_file"]),
        (
            json!({"tools": {"bash": false, "write": false}}),
            &["shell_command", "write_file", "apply_patch", "move_file"],
            &["edit_file"],
        ),
        (json!({"tools": "{bash: false, \"edit\": false}"}), &["shell_command", "edit_file"], &["read_file"]),
        (json!({"tools": {"notes_*": false, "notes_add": false}}), &["notes_+.*", "notes_+add"], &[]),
        (
            json!({"disallowedTools": "Bash, mcp__notes"}),
            &["shell_command", "background_job", "notes"],
            &["edit_file"],
        ),
        (json!({"disallowedTools": ["mcp__notes__add", "Task"]}), &["notes_+add", "spawn_agent"], &[]),
        (
            json!({"permission": {"edit": "deny"}}),
            &["edit_file", "write_file", "apply_patch", "move_file"],
            &["shell_command"],
        ),
        (
            json!({"permission": {"bash": {"*": "deny"}, "webfetch": "deny"}}),
            &["shell_command", "fetch_url"],
            &[],
        ),
    ] {
        let agent = read(&settings).unwrap_or_else(|why| panic!("{settings}: {why}"));
        let off = disabled(&agent);
        forbidden.iter().for_each(|tool| assert!(off.contains(tool), "{settings}: {tool} in {off:?}"));
        kept.iter().for_each(|tool| assert!(!off.contains(tool), "{settings}: {tool} in {off:?}"));
    }
}

#[test]
fn rules_and_modes_are_kept() {
    assert_eq!(read(&json!({"permissionMode": "plan"})).unwrap(), json!({"inherit": "plan"}));
    assert_eq!(
        read(&json!({"maxTurns": 3, "isolation": "worktree"})).unwrap(),
        json!({"maxSteps": 3, "worktree": true})
    );
    let agent =
        read(&json!({"permissionMode": "dontAsk", "disallowedTools": "Bash(rm:*), Bash(git push:*)"}))
            .unwrap();
    let approval = &agent["toolCall"]["approval"];
    assert_eq!(approval["byDefault"], "deny");
    let denied = &approval["deny"]["eca__shell_command"]["argsMatchers"]["command"];
    assert_eq!(denied, &json!(["rm.*", "git push.*"]));
    let permission = json!({"permission": {"bash": {"*": "ask", "git push *": "deny", "ls": "allow"},
        "read": {"*.env": "deny"}, "edit": "ask", "*": "ask"}});
    let approval = read(&permission).unwrap()["toolCall"]["approval"].clone();
    assert_eq!(approval["byDefault"], "ask");
    assert_eq!(approval["ask"]["eca__shell_command"], json!({}));
    assert_eq!(approval["ask"]["eca__write_file"], json!({}));
    assert_eq!(approval["deny"]["eca__shell_command"]["argsMatchers"]["command"], json!(["git push.*"]));
    assert_eq!(approval["deny"]["eca__read_file"]["argsMatchers"]["path"], json!([r"(.*/)?.*\.env"]));
    assert!(approval.get("allow").is_none(), "{approval}");
}

#[test]
fn what_cannot_be_said_here_is_not_imported() {
    for settings in [
        json!({"tools": "Read, Bash(git log:*)"}),
        json!({"tools": null}),
        json!({"tools": 5}),
        json!({"tools": {"bash": "sometimes"}}),
        json!({"tools": {"*": false, "read": true}}),
        json!({"tools": "{bash: {a: b}}"}),
        json!({"disallowedTools": {"a": 1}}),
        json!({"disallowedTools": "Foo(bar)"}),
        json!({"permissionMode": "delegate"}),
        json!({"permission": {"bash": {"*": "deny", "git log *": "allow"}}}),
        json!({"permission": {"*": "deny"}}),
        json!({"permission": "deny"}),
        json!({"permission": {"external_directory": "deny"}}),
        json!({"permission": {"bash": 1}}),
        json!({"permission": {"bash": {"rm *": "never"}}}),
        json!({"permission": {"notes_*": "ask"}}),
        json!({"hooks": {"PreToolUse": []}}),
        json!({"disable": true}),
        json!({"onlyFolder": "src"}),
        json!({"maxTurns": "many"}),
    ] {
        assert!(read(&settings).is_err(), "{settings}");
    }
    for harmless in
        [json!({"name": "a", "color": "red", "model": "opus", "disable": false}), json!({"temperature": 0.1})]
    {
        assert_eq!(read(&harmless), Ok(json!({})), "{harmless}");
    }
}
