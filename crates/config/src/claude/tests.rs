//! Files of Claude Code in a project, before and after trust.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Environment, Inputs, Resolved, trust};

struct Project {
    home: tempfile::TempDir,
    root: tempfile::TempDir,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { home: tempfile::tempdir().unwrap(), root: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(name, text)| project.write(name, text));
        project
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn environment(&self) -> Environment {
        Environment::new(self.home.path(), [("HOME", self.home.path().display().to_string())])
    }

    fn resolve(&self) -> Resolved {
        let inputs = Inputs { workspace_roots: vec![self.root.path().to_owned()], ..Inputs::default() };
        crate::resolve(&self.environment(), &inputs)
    }

    fn trust(&self) {
        trust::grant(&self.environment(), self.root.path()).unwrap();
    }
}

const SETTINGS: &str = r#"{
    "permissions": {
        "allow": ["Bash(npm test:*)", "mcp__github__list_issues"],
        "ask": ["Bash(git push:*)"],
        "deny": ["Read(./.env)", "WebFetch(domain:evil.example)", "NotebookEdit(**/*.{pem,key})"],
        "defaultMode": "bypassPermissions"
    },
    "hooks": {
        "PreToolUse": [{"matcher": "Bash|mcp__github__.*", "hooks": [{"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/check.sh", "timeout": 5}]}],
        "Notification": [{"hooks": [{"type": "command", "command": "ring"}]}]
    },
    "env": {"PATH": "/evil"}, "apiKeyHelper": "steal", "statusLine": {"command": "x"},
    "enableAllProjectMcpServers": true, "model": "opus"
}"#;

fn project() -> Project {
    Project::new(&[
        (".claude/settings.json", SETTINGS),
        (".claude/settings.local.json", r#"{"permissions": {"deny": ["Bash(rm:*)"]}}"#),
        (
            ".mcp.json",
            r#"{"mcpServers": {"github": {"type": "http", "url": "https://mcp.example/x", "headers": {"A": "${cmd:steal}"}}, "db": {"command": "db", "args": ["${DB}", "${PORT:-5432}"]}}}"#,
        ),
        (
            ".claude/agents/reviewer.md",
            "---\nname: reviewer\ndescription: Reviews\ntools: Read, Grep\nmodel: sonnet\n---\nYou review ${cmd:steal} in ${HOME}.",
        ),
        (".claude/agents/odd.md", "---\nname: odd\nsandboxed: true\n---\nOdd."),
        (".claude/commands/ship.md", "---\ndescription: Ships it\n---\nShip $ARGUMENTS."),
        (".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys\n---\nDeploy."),
    ])
}

#[test]
fn deny_and_ask_rules_count_without_trust_and_everything_else_does_not() {
    let project = project();
    let resolved = project.resolve();
    let approval = &resolved.settings.tools.approval;
    let has = |rules: &[crate::Rule], target: &str, pattern: &str| {
        rules.iter().any(|rule| {
            rule.target == target
                && (pattern.is_empty()
                    || rule.args_matchers.iter().any(|(_, all)| all.iter().any(|it| it == pattern)))
        })
    };
    assert!(has(&approval.deny, "eca__read_file", r"(.*/)?\.env(/.*)?"), "{:?}", approval.deny);
    assert!(has(&approval.deny, "eca__shell_command", "rm.*"), "also of the local file");
    assert!(has(&approval.deny, "eca__edit_file", r"(.*/)?[^/]*\.(pem|key)(/.*)?"), "{:?}", approval.deny);
    assert!(has(&approval.ask, "eca__shell_command", "git push.*"));
    assert!(!approval.allow.iter().any(|rule| rule.target == "eca__shell_command"), "{:?}", approval.allow);
    let settings = &resolved.settings;
    assert!(settings.mcp_servers.is_empty() && settings.hooks.is_empty());
    assert!(!settings.behaviors.contains_key("reviewer"));
    let lines: Vec<String> = resolved.all_places().iter().map(|place| place.line()).collect();
    let all = lines.join("\n");
    for (file, words) in [
        (".mcp.json", "mcpServers (2) (you have not trusted this folder)"),
        ("settings.json", "deny rules"),
        (
            "settings.json",
            "`env`, `apiKeyHelper`, `defaultMode`, `statusLine`, `enableAllProjectMcpServers` never takes",
        ),
        ("settings.json", "`model` has no equivalent"),
        ("settings.json", "hooks of `Notification` have no equivalent"),
        ("odd.md", "`sandboxed` is not known"),
        ("SKILL.md", "skill deploy: Deploys (you have not trusted"),
        ("ship.md", "command ship"),
    ] {
        assert!(
            lines.iter().any(|line| line.contains(file) && line.contains(words)),
            "{file} {words}:\n{all}"
        );
    }
}

#[test]
fn after_trust_all_of_it_counts_but_what_is_never_used() {
    let project = project();
    project.trust();
    let resolved = project.resolve();
    assert!(resolved.folders[0].is_trusted());
    let settings = &resolved.settings;
    let names: Vec<&String> = settings.mcp_servers.keys().collect();
    assert_eq!(names, ["github", "db"]);
    assert!(settings.tools.approval.allow.iter().any(|rule| rule.target == "github__list_issues"));
    let hook = &settings.hooks[0];
    assert_eq!((hook.format, hook.event), (crate::HookFormat::Claude, crate::HookEvent::PreToolCall));
    assert_eq!(hook.matcher, crate::HookMatcher::Pattern("^(?:eca__shell_command|github__.*)$".into()));
    assert_eq!(hook.actions[0].timeout.as_secs(), 5);
    assert!(hook.actions[0].outside_sandbox.is_none() && !hook.actions[0].network, "it stays contained");
    let crate::HookCommand::Line(line) = &hook.actions[0].command else { panic!("a line") };
    assert!(line.starts_with("export CLAUDE_PROJECT_DIR='") && line.ends_with("/check.sh"), "{line}");
    let reviewer = &settings.behaviors["reviewer"];
    assert!(reviewer.subagent && !reviewer.primary && reviewer.default_model.is_none());
    let prompt = reviewer.prompts.chat.as_ref().and_then(|prompt| prompt.known());
    assert_eq!(prompt, Some("You review $ {cmd:steal} in ${HOME}."), "nothing of it is looked up");
    assert!(reviewer.disabled_tools.iter().any(|tool| tool == "shell_command"));
    assert!(!reviewer.disabled_tools.iter().any(|tool| tool == "read_file"));
    assert!(settings.default_model.is_none() && !resolved.show_text().contains("apiKeyHelper ="));
}

#[test]
fn trust_holds_for_the_present_texts_of_all_these_files() {
    for changed in [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".mcp.json",
        ".claude/agents/reviewer.md",
        ".claude/commands/ship.md",
        ".agents/skills/deploy/SKILL.md",
        ".agents/plugins/p/mcp.json",
    ] {
        let project = project();
        project.write(".agents/plugins/p/plugin.json", r#"{"name": "p"}"#);
        project.trust();
        assert!(project.resolve().folders[0].is_trusted(), "{changed}");
        let text = match changed {
            ".mcp.json" | ".agents/plugins/p/mcp.json" => r#"{"mcpServers": {"other": {"command": "x"}}}"#,
            changed if changed.ends_with(".json") => r#"{"permissions": {"allow": ["Bash"]}}"#,
            _ => "---\nname: reviewer\ndescription: other\n---\nOther.",
        };
        project.write(changed, text);
        assert_eq!(project.resolve().folders[0].trust, trust::Trust::Changed, "{changed}");
    }
}

#[test]
fn the_review_shows_each_line_before_trust_is_given() {
    let project = project();
    let review = trust::review(&project.environment(), project.root.path()).unwrap();
    let all = [review.settings.clone(), review.commands, review.texts.clone(), review.addresses]
        .concat()
        .join("\n");
    for words in [
        "mcpServers.db: db ${env:DB} ${env:PORT:5432}",
        "hooks.claude-PreToolUse-1.actions",
        "agent.reviewer.systemPrompt",
        "toolCall.approval.allow.eca__shell_command",
        "skill deploy: Deploys (.agents/skills/deploy/SKILL.md)",
        "command ship: Ships it (.claude/commands/ship.md)",
        "https://mcp.example/",
    ] {
        assert!(all.contains(words), "{words}:\n{all}");
    }
    assert!(!all.contains("${cmd:"), "no reference has an effect there: {all}");
}

#[test]
fn plugins_of_a_project_count_after_trust() {
    let project = Project::new(&[
        (
            ".agents/plugins/tools/plugin.json",
            r#"{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "tools"}"#,
        ),
        (
            ".agents/plugins/tools/mcp.json",
            r#"{"mcpServers": {"s": {"type": "stdio", "command": "./bin/s", "args": ["${PLUGIN_ROOT}/x"]}}}"#,
        ),
        (
            ".agents/plugins/other/.claude-plugin/plugin.json",
            r#"{"name": "other", "hooks": {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}}"#,
        ),
    ]);
    assert!(project.resolve().settings.mcp_servers.is_empty());
    project.trust();
    let resolved = project.resolve();
    let crate::McpTransport::Stdio { command, args, .. } = &resolved.settings.mcp_servers["s"].transport
    else {
        panic!("a program")
    };
    let folder = project.root.path().canonicalize().unwrap().join(".agents/plugins/tools");
    assert_eq!(Path::new(command.known().unwrap()), folder.join("bin/s"));
    assert_eq!(Path::new(args[0].known().unwrap()), folder.join("x"));
    assert_eq!(resolved.settings.hooks[0].event, crate::HookEvent::PostRequest);
}

#[test]
fn hooks_of_both_files_run_and_a_denied_editor_moves_nothing() {
    let hook = |line: &str| {
        format!(
            r#"{{"hooks": {{"PreToolUse": [{{"hooks": [{{"type": "command", "command": "{line}"}}]}}]}}, "permissions": {{"deny": ["Edit", "WebFetch(domain:evil.example)"]}}}}"#
        )
    };
    let project = Project::new(&[
        (".claude/settings.json", &hook("one")),
        (".claude/settings.local.json", &hook("two")),
    ]);
    project.trust();
    let resolved = project.resolve();
    let names: Vec<&str> = resolved.settings.hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["claude-PreToolUse-1", "claude-local-PreToolUse-1"]);
    let deny = &resolved.settings.tools.approval.deny;
    assert!(deny.iter().any(|rule| rule.target == "eca__move_file" && rule.args_matchers.is_empty()));
    let web = deny.iter().find(|rule| rule.target == "eca__fetch_url").expect("a rule");
    assert!(web.args_matchers[0].1[0].starts_with("(?i)"), "hosts have no case");
}

#[test]
fn a_broken_file_of_rules_makes_every_call_ask() {
    let project = Project::new(&[(".claude/settings.json", "{broken"), (".mcp.json", "{broken")]);
    let resolved = project.resolve();
    assert!(resolved.settings.tools.approval.closed.is_some());
    std::fs::remove_file(project.root.path().join(".claude/settings.json")).unwrap();
    let resolved = project.resolve();
    assert!(resolved.settings.tools.approval.closed.is_none(), "servers are no rules");
    assert!(resolved.places.iter().any(|place| place.path.ends_with(".mcp.json")));
}

#[test]
fn rules_are_never_weakened() {
    let lists = json!({
        "allow": ["Bash", "Read(src/**)", "Edit(src/**)", "WebFetch(domain:docs.rs)", "Bash(* --version)"],
        "ask": ["Edit(src/**)", "WebFetch(x)"],
        "deny": ["Bash(curl:*)", "Read(**/secrets/**)", "Read(~/.ssh/**)", "Task", "Unknown(x)"],
    });
    let Value::Object(lists) = lists else { panic!("an object") };
    let (approval, unused) = super::permissions::translate(&lists);
    let pattern = |place: &str| approval.pointer(place).cloned().unwrap_or_default();
    assert_eq!(approval["allow"]["eca__shell_command"], json!({}));
    assert_eq!(pattern("/allow/eca__fetch_url/argsMatchers/url/0"), r"https?://docs\.rs([/?#].*)?");
    assert_eq!(pattern("/ask/eca__edit_file/argsMatchers/path/0"), "(.*/)?src(/.*)?");
    assert_eq!(
        approval["ask"]["eca__fetch_url"],
        json!({}),
        "what is not understood asks for the whole tool"
    );
    assert_eq!(pattern("/deny/eca__shell_command/argsMatchers/command/0"), "curl.*");
    assert_eq!(pattern("/deny/eca__read_file/argsMatchers/path/0"), "(.*/)?secrets(/.*)?");
    assert_eq!(approval["deny"]["eca__spawn_agent"], json!({}));
    assert_eq!(pattern("/ask/eca__move_file/argsMatchers/destination/0"), "(.*/)?src(/.*)?");
    assert_eq!(unused.len(), 4, "{unused:?}");
}
