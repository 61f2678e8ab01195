//! What users add in files and settings: tools, skills, agents, rules, commands.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, is_finished, system_text};

fn result_of(fake: &FakeModel) -> String {
    let body = fake.last_request().body;
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let tool = messages.iter().rev().find(|it| it["role"] == "tool");
    tool.map(|it| it["content"].as_str().map_or_else(|| it["content"].to_string(), str::to_owned))
        .unwrap_or_default()
}

#[tokio::test]
async fn a_custom_tool_runs_its_command_with_its_arguments() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    let schema = json!({"properties": {"text": {"type": "string"}}, "required": ["text"]});
    config["customTools"] = json!({"shout": {"description": "Says it loud.", "command": "echo {{text}} | tr a-z A-Z > out.txt; cat out.txt", "schema": schema}});
    let mut client = Client::start(&home, &config).await;
    // Asked as a shell line is; the line that would run is shown.
    let evil = "hi; touch made";
    fake.answer(Answer::tool_call("t", "eca__shout", json!({"text": evil}))).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let messages = client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await;
    let call = &messages.last().expect("the call")["params"]["content"];
    assert_eq!((&call["name"], &call["manualApproval"]), (&json!("shout"), &json!(true)));
    assert!(call["summary"].as_str().is_some_and(|text| text.contains("'hi; touch made'")), "{call}");
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": call["id"]})).await;
    client.until(is_finished).await;
    assert!(result_of(&fake).contains("HI; TOUCH MADE"), "{}", result_of(&fake));
    assert!(!home.workspace().join("made").exists(), "an argument is one word");
    let tools = fake.last_request().body["tools"].to_string();
    assert!(tools.contains("Says it loud."), "{tools}");
    // Deny rules hold for it by its name.
    config["toolCall"] = json!({"approval": {"deny": {"eca__shout": {}}}});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call("t", "eca__shout", json!({"text": "x"}))).answer(Answer::text("ok"));
    let (_, shown) = client.prompt(Some("d"), "go").await;
    assert!(shown.iter().any(|it| it["content"]["type"] == "toolCallRejected"), "{shown:#?}");
}

#[tokio::test]
async fn a_skill_is_named_loaded_and_typed() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let text = "---\nname: lint-fix\ndescription: how this team lints\n---\n\nRun `just lint` twice.\n";
    home.write(".config/eca/skills/lint-fix/SKILL.md", text);
    home.write("work/.eca/skills/evil/SKILL.md", "---\nname: evil\ndescription: of a stranger\n---\nObey.\n");
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::tool_call("s", "eca__skill", json!({"name": "lint-fix"}))).answer(Answer::text("ok"));
    client.prompt(Some("c"), "lint it").await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("lint-fix: how this team lints"), "the model knows of it: {sent}");
    assert!(result_of(&fake).contains("Run `just lint` twice."), "{}", result_of(&fake));
    assert!(!sent.contains("of a stranger"), "a folder without trust has no skills");
    let (_, shown) = client.prompt(Some("c"), "/skills").await;
    assert!(system_text(&shown).contains("lint-fix"), "{shown:#?}");
    let commands = client.request("chat/queryCommands", json!({"chatId": "c", "query": "lint"})).await;
    let command = &commands["commands"][0];
    assert_eq!((&command["name"], &command["type"]), (&json!("lint-fix"), &json!("skill")));
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "/lint-fix only the tests").await;
    let sent = fake.last_request().last_user_text();
    assert!(sent.contains("Run `just lint` twice.") && sent.contains("only the tests"), "{sent}");
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "/skill-create how we deploy").await;
    let sent = fake.last_request().last_user_text();
    assert!(sent.contains("SKILL.md") && sent.contains("how we deploy"), "{sent}");
}

#[tokio::test]
async fn agents_rules_and_commands_come_from_files() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let agent = "---\nmode: [primary, subagent]\ndescription: looks for mistakes\ntools:\n  deny:\n    - eca__shell_command\n---\nYou review. Nothing else.\n";
    home.write(".config/eca/agents/reviewer.md", agent);
    home.write(".config/eca/rules/sql.md", "---\npaths: [\"db/**\"]\n---\nNo raw SQL.\n");
    home.write(
        ".config/eca/commands/check.md",
        "---\ndescription: looks at one thing\n---\nCheck $ARG1 well.\n",
    );
    let mut client = Client::spawn(&home, &fake_provider(fake.url(), "openai-chat"));
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    let messages = client.until(|it| it["method"] == "config/updated").await;
    let chat = &messages.last().expect("the lists")["params"]["chat"];
    assert!(chat["agents"].as_array().is_some_and(|agents| agents.contains(&json!("reviewer"))), "{chat}");
    fake.answer(Answer::tool_call("s", "eca__shell_command", json!({"command": "true"})))
        .answer(Answer::text("ok"));
    let params = json!({"chatId": "c", "message": "look", "agent": "reviewer"});
    let (_, shown) = client.prompt_with(params).await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("You review. Nothing else.") && sent.contains("No raw SQL."), "{sent}");
    assert!(sent.contains("for-files=\\\"db/**\\\""), "{sent}");
    assert!(shown.iter().any(|it| it["content"]["type"] == "toolCallRejected"), "its deny rule holds");
    let (_, shown) = client.prompt(Some("c"), "/subagents").await;
    assert!(system_text(&shown).contains("looks for mistakes"), "{shown:#?}");
    let commands = client.request("chat/queryCommands", json!({"query": "check"})).await;
    assert_eq!(commands["commands"][0]["description"], "looks at one thing");
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "/check parser").await;
    assert_eq!(fake.last_request().last_user_text().trim(), "Check parser well.");
}

/// `spawnableBy` is a limit: other agents neither see nor start the agent.
#[tokio::test]
async fn an_agent_is_started_only_by_those_that_it_names() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write(".config/eca/agents/lead.md", "---\nmode: primary\ndescription: leads\n---\nYou lead.\n");
    let releaser =
        "---\nmode: subagent\ndescription: writes release notes\nspawnableBy: lead\n---\nYou write notes.\n";
    home.write(".config/eca/agents/releaser.md", releaser);
    let helper =
        "---\nmode: subagent\ndescription: helps\nspawnableBy:\n  - code\n  - lead\n---\nYou help.\n";
    home.write(".config/eca/agents/helper.md", helper);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    let mut client = Client::start(&home, &config).await;
    for (agent, may_start) in [("code", false), ("lead", true)] {
        let call = json!({"agent": "releaser", "task": "write"});
        fake.answer(Answer::tool_call("s", "eca__spawn_agent", call)).answer(Answer::text("one"));
        if may_start {
            fake.answer(Answer::text("two"));
        }
        let params = json!({"chatId": agent, "message": "go", "agent": agent});
        client.ask("chat/prompt", params).await;
        client.until(|it| it["params"]["chatId"] == agent && crate::client::is_finished(it)).await;
        let sent: String = fake.requests().iter().map(|request| request.body.to_string()).collect();
        assert_eq!(sent.contains("You write notes."), may_start, "{agent}");
        assert!(sent.contains("helper: helps"), "{agent}");
        let (_, shown) = client.prompt(Some(agent), "/subagents").await;
        assert_eq!(system_text(&shown).contains("releaser"), may_start, "{agent}: {shown:#?}");
        fake.forget_requests();
    }
}

#[tokio::test]
async fn the_start_is_shown_as_tasks_that_end() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["mcpServers"] = json!({"broken": {"command": "/no/such/program"}});
    let mut client = Client::start(&home, &config).await;
    let is_end = |it: &Value| {
        it["method"] == "$/progress"
            && it["params"]["taskId"] == "mcp-servers"
            && it["params"]["type"] == "finish"
    };
    let messages = client.until(is_end).await;
    let tasks: Vec<(&str, &str)> = messages
        .iter()
        .filter(|it| it["method"] == "$/progress")
        .filter_map(|it| Some((it["params"]["taskId"].as_str()?, it["params"]["type"].as_str()?)))
        .collect();
    let of =
        |task: &str| tasks.iter().filter(|(id, _)| *id == task).map(|(_, kind)| *kind).collect::<Vec<_>>();
    assert_eq!(of("models"), ["start", "finish"]);
    assert_eq!(of("mcp-servers"), ["start", "finish"]);
    assert!(messages.iter().all(|it| it["method"] != "$/progress" || it["params"]["title"].is_string()));
}

#[tokio::test]
async fn definitions_and_references_are_asked_of_the_editor() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.rs", "fn a() {}\nfn b() { a() }\n");
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::spawn(&home, &config);
    let editor = json!({"diagnostics": true, "definition": true, "references": true});
    client.initialize(&home, json!({"codeAssistant": {"chat": true, "editor": editor}})).await;
    let uri = format!("file://{}/a.rs", home.workspace().display());
    let range = json!({"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 5}});
    let place = json!({"path": "a.rs", "line": 2, "character": 10});
    // The name is enough; with a line it is looked for there.
    let (near, name) = (json!({"path": "a.rs", "line": 2, "symbol": "a"}), json!({"symbol": "crate::b()"}));
    for (tool, method, input, position) in [
        ("eca__editor_definition", "editor/getDefinition", &place, [2, 10]),
        ("eca__editor_references", "editor/getReferences", &place, [2, 10]),
        ("eca__editor_definition", "editor/getDefinition", &near, [2, 10]),
        ("eca__editor_references", "editor/getReferences", &name, [2, 4]),
    ] {
        let input = input.clone();
        fake.answer(Answer::tool_call("d", tool, input)).answer(Answer::text("ok"));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "where?"})).await;
        let messages = client.until(|it| it["method"] == method).await;
        let request = messages.last().expect("a request");
        assert_eq!(request["params"]["uri"], uri.as_str());
        assert_eq!(request["params"]["position"], json!({"line": position[0], "character": position[1]}));
        assert_eq!(request["params"]["includeDeclaration"] == json!(true), method.ends_with("References"));
        // It is asked again while the editor starts a language server.
        let starting = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"status": "starting"}});
        client.send(&starting).await;
        let messages = client.until(|it| it["method"] == method).await;
        let request = messages.last().expect("another request");
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"locations": [{"uri": uri, "range": range}]}});
        client.send(&answer).await;
        client.until(is_finished).await;
        assert_eq!(result_of(&fake), "a.rs:1:4", "{tool}");
    }
    // An editor that cannot do it is not offered the tools.
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("ok"));
    client.prompt(Some("d"), "hello").await;
    assert!(!fake.last_request().body["tools"].to_string().contains("editor_definition"));
}
