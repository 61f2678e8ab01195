//! Files of repositories that count where they are: instructions of folders below, and what trust lets in.

use serde_json::{Value, json};
use testkit::Answer;

use crate::run::Fixture;

fn read(path: &str) -> Value {
    json!({"path": path})
}

/// The text of a request at which a file of instructions is given, counted.
fn count(text: &str, words: &str) -> usize {
    text.matches(words).count()
}

#[tokio::test]
async fn instructions_of_a_folder_below_come_with_the_first_result_that_touches_it() {
    let bench = Fixture::new().await;
    bench.home.write("work/AGENTS.md", "ROOT-WORDS\n");
    bench.home.write("work/api/AGENTS.md", "API-WORDS @more.md\n");
    bench.home.write("work/api/more.md", "MORE-WORDS\n");
    bench.home.write("work/api/v1/CLAUDE.md", "V1-WORDS\n");
    bench.home.write("work/node_modules/x/AGENTS.md", "FOREIGN-WORDS\n");
    for file in ["work/api/a.rs", "work/api/v1/b.rs", "work/node_modules/x/c.js"] {
        bench.home.write(file, "code\n");
    }
    bench
        .fake
        .answer(Answer::tool_call("c1", "eca__read_file", read("node_modules/x/c.js")))
        .answer(Answer::tool_call("c2", "eca__read_file", read("api/a.rs")))
        .answer(Answer::tool_call("c3", "eca__read_file", read("api/v1/b.rs")))
        .answer(Answer::tool_call("c4", "eca__read_file", read("api/v1/b.rs")))
        .answer(Answer::text("done"));
    let ran = bench.run(&["look"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let texts: Vec<String> = bench.fake.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(texts[0].contains("ROOT-WORDS") && !texts[0].contains("API-WORDS"));
    assert!(!texts[1].contains("FOREIGN-WORDS"));
    assert_eq!((count(&texts[2], "API-WORDS"), count(&texts[2], "MORE-WORDS")), (1, 1));
    assert!(!texts[2].contains("V1-WORDS"));
    let last = texts.last().expect("a request");
    assert_eq!((count(last, "API-WORDS"), count(last, "V1-WORDS")), (1, 1), "each once");
    let results: Vec<String> =
        bench.fake.requests().iter().flat_map(|request| request.tool_results()).collect();
    assert!(results[1].contains("API-WORDS") && results[2].contains("V1-WORDS"), "{results:?}");
}

#[tokio::test]
async fn rules_for_some_files_come_with_the_first_of_them() {
    let bench = Fixture::new().await;
    bench.home.write("work/.cursor/rules/ts.mdc", "---\nglobs: *.ts\n---\nTYPE-WORDS\n");
    bench
        .home
        .write("work/.github/instructions/sql.instructions.md", "---\napplyTo: \"db/**\"\n---\nSQL-WORDS\n");
    bench.home.write("work/a.ts", "x\n");
    bench.home.write("work/b.rs", "x\n");
    bench
        .fake
        .answer(Answer::tool_call("c1", "eca__read_file", read("b.rs")))
        .answer(Answer::tool_call("c2", "eca__read_file", read("a.ts")))
        .answer(Answer::text("done"));
    let ran = bench.run(&["look"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let texts: Vec<String> = bench.fake.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(!texts[1].contains("TYPE-WORDS") && texts[2].contains("TYPE-WORDS"));
    assert!(!texts[2].contains("SQL-WORDS"));
}

const SETTINGS: &str = r#"{
    "permissions": {"deny": ["Bash(echo forbidden:*)"], "allow": ["Bash(echo allowed:*)"]},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
        "command": "python3 -c 'import json,sys; c=json.load(sys.stdin); b=c[\"tool_input\"][\"command\"]; print(json.dumps({\"hookSpecificOutput\": {\"permissionDecision\": \"deny\", \"permissionDecisionReason\": \"HOOK \" + c[\"tool_name\"]}} if \"blocked\" in b else {}))'"}]}]},
    "env": {"CANARY": "1"}, "apiKeyHelper": "touch helper-ran"
}"#;

fn claude_project(bench: &Fixture) {
    bench.home.write("work/.claude/settings.json", SETTINGS);
    bench.home.write(
        "work/.claude/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: Deploys it\n---\nDeploy.\n",
    );
    bench.home.write(
        "work/.claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews it\ntools: Read\n---\nReview.\n",
    );
    bench.home.write("work/.mcp.json", r#"{"mcpServers": {"absent": {"command": "no-such-program-here"}}}"#);
}

#[tokio::test]
async fn deny_rules_of_claude_hold_before_trust_and_the_rest_after_it() {
    let bench = Fixture::new().await;
    claude_project(&bench);
    let shell = |id: &str, line: &str| Answer::tool_call(id, "eca__shell_command", json!({"command": line}));
    for is_trusted in [false, true] {
        if is_trusted {
            let granted = bench.home.command(&["trust", "--yes"]).output().expect("trust");
            let shown = String::from_utf8_lossy(&granted.stdout).into_owned();
            for words in
                ["skill deploy: Deploys it", "mcpServers.absent", "agent.reviewer", "claude-PreToolUse-1"]
            {
                assert!(shown.contains(words), "{words}: {shown}");
            }
        }
        let before = bench.fake.requests().len();
        bench
            .fake
            .answer(shell("c1", "echo forbidden words"))
            .answer(shell("c2", "echo blocked words"))
            .answer(Answer::text("done"));
        let ran = bench.run(&["--approve", "all", "go"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let last = bench.fake.last_request();
        let requests = bench.fake.requests();
        let results: Vec<String> =
            requests[before..].iter().flat_map(|request| request.tool_results()).collect();
        assert!(results[0].contains("Forbidden by"), "{}", results[0]);
        assert_eq!(results[1].contains("HOOK Bash"), is_trusted, "{}", results[1]);
        let sent = last.body.to_string();
        assert_eq!(sent.contains("Deploys it"), is_trusted, "{sent}");
        assert_eq!(sent.contains("Reviews it"), is_trusted);
    }
    assert!(!bench.home.workspace().join("helper-ran").exists());
}

#[tokio::test]
async fn config_show_names_each_file_and_why_another_does_not_count() {
    let bench = Fixture::new().await;
    claude_project(&bench);
    bench.home.write("work/AGENTS.md", "Words.\n");
    bench.home.write("work/GEMINI.md", "Other words.\n");
    let shown = |arguments: &[&str]| {
        let output = bench.home.command(arguments).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = shown(&["config", "show"]);
    for words in [
        "AGENTS.md counts: instructions",
        "GEMINI.md does not count: AGENTS.md or CLAUDE.md counts",
        "settings.json counts: deny rules",
        "`env`, `apiKeyHelper` never takes effect here",
        ".mcp.json does not count: mcpServers (1) (you have not trusted this folder)",
        "SKILL.md does not count: skill deploy: Deploys it (you have not trusted",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json: Value = serde_json::from_str(&shown(&["config", "show", "--json"])).expect("JSON");
    let places = json["places"].as_array().expect("places");
    assert!(places.iter().any(|place| place["counts"] == false && place["why"].is_string()), "{places:?}");
}
