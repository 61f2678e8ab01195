//! MCP servers in an ECA client: started beside chats, asked before they run, reported when they fail, ended with us.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, alive, contents, fake_provider, is_finished, runs_in};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");

/// The fake provider and scripted servers by name and mode. Each writes what it sees to a file of its name.
pub(crate) fn config(home: &Home, url: &str, servers: &[(&str, &str)]) -> Value {
    let mut config = fake_provider(url, "openai-chat");
    let server = |name: &str, mode: &str| json!({"command": "python3", "args": [SCRIPT, mode, "--log", home.workspace().join(name)]});
    config["mcpServers"] = servers
        .iter()
        .map(|(name, mode)| ((*name).to_owned(), server(name, mode)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    config
}

/// The processes a scripted server told of: itself and its children.
async fn family(home: &Home, name: &str) -> Vec<u32> {
    for _ in 0..500 {
        let log = std::fs::read_to_string(home.workspace().join(name)).unwrap_or_default();
        let told: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let pids: Vec<u32> = told
            .iter()
            .flat_map(|it| {
                let children = it["children"].as_array().cloned().unwrap_or_default();
                std::iter::once(it["pid"].clone()).chain(children)
            })
            .filter_map(|pid| u32::try_from(pid.as_u64()?).ok())
            .collect();
        if pids.len() == 3 {
            return pids;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} did not start its children");
}

async fn all_gone(home: &Home, pids: &[u32]) -> bool {
    for _ in 0..3000 {
        if !pids.iter().any(|pid| runs_in(&home.workspace(), *pid)) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Calls a tool of a server with approval; the result as the client sees it.
async fn call(client: &mut Client, fake: &FakeModel, tool: &str, input: Value) -> Value {
    fake.answer(Answer::tool_call("c", tool, input)).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let shown = contents(&client.until(is_finished).await);
    let called = shown.into_iter().find(|it| it["content"]["type"] == "toolCalled");
    called.unwrap_or_else(|| panic!("{tool} was not called"))["content"].clone()
}

pub(crate) fn is_server(message: &Value, name: &str, status: &str) -> bool {
    message["method"] == "tool/serverUpdated"
        && message["params"]["name"] == name
        && message["params"]["status"] == status
}

#[tokio::test]
async fn a_server_runs_its_tools_are_asked_and_it_can_be_stopped_and_started() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client =
        Client::start(&home, &config(&home, fake.url(), &[("good", "good"), ("bad", "dies")])).await;
    let messages = client.until(|it| is_server(it, "good", "running")).await;
    let first = messages.iter().find(|it| it["method"] == "tool/serverUpdated").expect("a server");
    assert_eq!(first["params"]["name"], "ECA", "the built-in tools come first");
    let tools = messages.last().expect("the server")["params"]["tools"].to_string();
    assert!(tools.contains("echo"), "{tools}");
    let failed = match messages.iter().find(|it| is_server(it, "bad", "failed")) {
        Some(failed) => failed.clone(),
        None => client.until(|it| is_server(it, "bad", "failed")).await.pop().expect("the failure"),
    };
    let why = failed["params"]["error"].to_string();
    assert!(why.contains("cannot open the database"), "the last lines of its stderr: {why}");

    fake.answer(Answer::tool_call("c1", "good__echo", json!({"text": "hello"}))).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "echo"})).await;
    let before = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let run = &before.last().expect("the call")["content"];
    assert_eq!(
        (&run["server"], &run["origin"], &run["name"]),
        (&json!("good"), &json!("mcp"), &json!("echo"))
    );
    assert_eq!(run["manualApproval"], true, "hints of a server are not believed");
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": run["id"]})).await;
    let after = contents(&client.until(is_finished).await);
    let called = after.iter().find(|it| it["content"]["type"] == "toolCalled").expect("a result");
    assert_eq!(called["content"]["error"], false, "{called}");
    assert!(called["content"]["outputs"].to_string().contains("hello"), "{called}");

    client.notify("mcp/stopServer", json!({"name": "good"})).await;
    client.until(|it| is_server(it, "good", "stopped")).await;
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "again").await;
    assert!(
        !fake.last_request().body["tools"].to_string().contains("good__echo"),
        "its tools are not offered"
    );
    client.notify("mcp/startServer", json!({"name": "good"})).await;
    client.until(|it| is_server(it, "good", "running")).await;
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_slow_server_delays_no_chat_and_nothing_is_left_behind() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mark = format!("slow-{}", std::process::id());
    let mut client =
        Client::start(&home, &config(&home, fake.url(), &[(mark.as_str(), "slow"), ("mute", "mute")])).await;
    fake.answer(Answer::text("at once"));
    client.prompt(None, "hi").await;
    let pid = client.child.id().expect("a child");
    let children = children_of(pid);
    client.child.kill().await.expect("kill -9");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left: Vec<u32> = children.into_iter().filter(|pid| alive(*pid)).collect();
    assert!(left.is_empty(), "{left:?} outlived us");
}

fn children_of(parent: u32) -> Vec<u32> {
    let tasks = format!("/proc/{parent}/task");
    let threads = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

#[tokio::test]
async fn a_crashed_server_fails_its_calls_and_can_be_started_again() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &config(&home, fake.url(), &[("frail", "good")])).await;
    client.until(|it| is_server(it, "frail", "running")).await;
    fake.answer(Answer::tool_call("c", "frail__die", json!({}))).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let mut messages = client.until(is_finished).await;
    let called =
        contents(&messages).into_iter().find(|it| it["content"]["type"] == "toolCalled").expect("a result");
    assert_eq!(called["content"]["error"], true, "{called}");
    if !messages.iter().any(|it| is_server(it, "frail", "failed")) {
        messages.extend(client.until(|it| is_server(it, "frail", "failed")).await);
    }
    let failed = messages.iter().find(|it| is_server(it, "frail", "failed")).expect("failed");
    assert!(failed["params"]["error"].to_string().contains("the disk is on fire"), "{failed}");
    client.notify("mcp/startServer", json!({"name": "frail"})).await;
    client.until(|it| is_server(it, "frail", "running")).await;
    let called = call(&mut client, &fake, "frail__echo", json!({"text": "hello"})).await;
    assert!(called["error"] == false && called["outputs"].to_string().contains("hello"), "{called}");
    // A name that nobody has is said, not ignored.
    client.notify("mcp/startServer", json!({"name": "nobody"})).await;
    client.until(|it| it["method"] == "$/showMessage" && it["params"]["type"] == "error").await;
}

#[tokio::test]
async fn servers_that_flood_or_talk_rubbish_work_and_one_that_hangs_is_stopped() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config =
        config(&home, fake.url(), &[("flood", "flood"), ("garbage", "garbage"), ("off", "good")]);
    config["mcpServers"]["off"]["disabled"] = json!(true);
    let mut client = Client::start(&home, &config).await;
    let mut missing = vec![("flood", "running"), ("garbage", "running"), ("off", "disabled")];
    while !missing.is_empty() {
        let message = client.next().await;
        missing.retain(|(name, status)| !is_server(&message, name, status));
    }
    for name in ["flood", "garbage"] {
        let called = call(&mut client, &fake, &format!("{name}__echo"), json!({"text": "hello"})).await;
        assert!(
            called["error"] == false && called["outputs"].to_string().contains("hello"),
            "{name}: {called}"
        );
    }
    fake.answer(Answer::tool_call("c", "garbage__hang", json!({})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["content"]["type"] == "toolCallRunning").await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    client.until(is_finished).await;
    client.notify("mcp/startServer", json!({"name": "off"})).await;
    client.until(|it| is_server(it, "off", "running")).await;
}

#[tokio::test]
async fn a_tool_that_changed_its_definition_is_withheld_until_the_user_allows_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &config(&home, fake.url(), &[("sly", "good")])).await;
    client.until(|it| is_server(it, "sly", "running")).await;
    fake.answer(Answer::tool_call("c", "sly__change", json!({}))).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let is_told = |it: &Value| is_server(it, "sly", "running") && it["params"]["error"].is_string();
    let (mut over, mut changed) = (false, None);
    while !over || changed.is_none() {
        let message = client.next().await;
        over |= is_finished(&message);
        changed = changed.or_else(|| is_told(&message).then(|| message.clone()));
    }
    let changed = changed.into_iter().collect::<Vec<_>>();
    let params = &changed.last().expect("the server")["params"];
    assert!(params["error"].to_string().contains("stop the server and start it"), "{params}");
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "next").await;
    let offered = fake.last_request().tools();
    assert!(
        !offered.contains(&"sly__echo".to_owned()) && offered.contains(&"sly__grow".to_owned()),
        "{offered:?}"
    );
    client.notify("mcp/stopServer", json!({"name": "sly"})).await;
    client.until(|it| is_server(it, "sly", "stopped")).await;
    client.notify("mcp/startServer", json!({"name": "sly"})).await;
    client.until(|it| is_server(it, "sly", "running")).await;
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "next").await;
    assert!(fake.last_request().tools().contains(&"sly__echo".to_owned()));
}

#[tokio::test]
async fn a_server_and_its_children_end_on_stop_on_exit_and_with_our_parent() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for how in ["stop", "exit", "orphaned"] {
        let mut client = Client::spawn(&home, &config(&home, fake.url(), &[(how, "family")]));
        let mut parent = std::process::Command::new("sleep").arg("600").spawn().expect("a parent");
        let folders = json!([{"uri": format!("file://{}", home.workspace().display()), "name": "work"}]);
        let hello = json!({"processId": parent.id(), "capabilities": {}, "workspaceFolders": folders});
        client.request("initialize", hello).await;
        client.notify("initialized", Value::Null).await;
        client.until(|it| is_server(it, how, "running")).await;
        let pids = family(&home, how).await;
        assert!(pids.iter().all(|pid| runs_in(&home.workspace(), *pid)), "{how}");
        match how {
            "stop" => client.notify("mcp/stopServer", json!({"name": how})).await,
            "exit" => client.notify("exit", Value::Null).await,
            _ => parent.kill().expect("kill"),
        }
        assert!(all_gone(&home, &pids).await, "{how}: {pids:?}");
        let _ = parent.kill();
        parent.wait().expect("reaped");
    }
}

/// The official reference server, installed from npm by the lock file of the MCP crate; `None` where there is no npm.
fn reference_server() -> Option<std::path::PathBuf> {
    use std::process::Command;
    let ours = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/reference");
    let lock = std::fs::read_to_string(ours.join("package-lock.json")).expect("the lock file");
    let program = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for known in ["mcp-reference", "mcp-reference-app"].map(|name| target.join(name)) {
        if std::fs::read_to_string(known.join("installed")).ok().as_ref() == Some(&lock) {
            return Some(known.join(program));
        }
    }
    let folder = target.join("mcp-reference-app");
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(ours.join(file), folder.join(file)).expect("a copy");
    }
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
    let installed = Command::new("npm").args(arguments).current_dir(&folder).output();
    let Ok(installed) = installed else {
        testkit::skip("there is no npm on this machine");
        return None;
    };
    assert!(installed.status.success(), "{installed:?}");
    std::fs::write(folder.join("installed"), lock).expect("a mark");
    Some(folder.join(program))
}

#[tokio::test]
async fn the_official_reference_server_works() {
    let Some(program) = reference_server() else { return };
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["mcpServers"] = json!({"everything": {"command": "node", "args": [program, "stdio"]}});
    let mut client = Client::start(&home, &config).await;
    client.until(|it| is_server(it, "everything", "running")).await;
    let called = call(&mut client, &fake, "everything__echo", json!({"message": "hello"})).await;
    assert!(called["error"] == false && called["outputs"].to_string().contains("hello"), "{called}");
    let called = call(&mut client, &fake, "everything__get-sum", json!({"a": 2, "b": 40})).await;
    assert!(called["outputs"].to_string().contains("42"), "{called}");
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "/everything:args-prompt \"New York\" NY").await;
    assert!(
        fake.last_request().last_user_text().contains("New York"),
        "{}",
        fake.last_request().last_user_text()
    );
    let found = client.request("chat/queryContext", json!({"query": "", "contexts": []})).await;
    let resource =
        found["contexts"].as_array().expect("a list").iter().find(|it| it["type"] == "mcpResource");
    let resource = resource.unwrap_or_else(|| panic!("no resource in {found}")).clone();
    fake.answer(Answer::text("ok"));
    client.prompt_with(json!({"chatId": "c", "message": "look", "contexts": [resource]})).await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("<resource server=") && !sent.contains("could not be added"), "{sent}");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_rule_finds_a_server_in_both_spellings() {
    for (server, rule) in
        [("test-mcp", "test-mcp__echo"), ("test-mcp", "testMcp__echo"), ("testMcp", "test-mcp")]
    {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut config = config(&home, fake.url(), &[(server, "good")]);
        config["toolCall"] = json!({"approval": {"deny": {rule: {}}}});
        home.write(".config/eca/config.json", &config.to_string());
        let mut client = Client::start(&home, &json!({})).await;
        client.until(|it| is_server(it, "testMcp", "running")).await;
        let tool = format!("{server}__echo");
        fake.answer(Answer::tool_call("c1", &tool, json!({"text": "x"}))).answer(Answer::text("ok"));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
        let shown = contents(&client.until(is_finished).await);
        let last = shown.iter().rfind(|it| it["content"]["name"] == "echo").expect("the call");
        assert_eq!(last["content"]["type"], "toolCallRejected", "{server} {rule}: {last}");
    }
}

/// ECA shows `test-mcp` as `testMcp`, and models repeat what they read in its chats and rules.
#[tokio::test]
async fn a_call_finds_a_server_in_camel_case() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write(".config/eca/config.json", &config(&home, fake.url(), &[("test-mcp", "good")]).to_string());
    let mut client = Client::start(&home, &json!({})).await;
    client.until(|it| is_server(it, "testMcp", "running")).await;
    for name in ["testMcp__echo", "test-mcp__echo"] {
        let called = call(&mut client, &fake, name, json!({"text": "hello"})).await;
        assert_eq!((&called["server"], &called["error"]), (&json!("testMcp"), &json!(false)), "{called}");
    }
    let offered = fake.requests()[0].body["tools"].to_string();
    assert!(offered.contains("testMcp__echo") && !offered.contains("test-mcp"), "{offered}");
    let unknown = call(&mut client, &fake, "testMcp__nothing", json!({})).await;
    assert!(unknown.to_string().contains("There is no tool"), "{unknown}");
}

#[tokio::test]
async fn servers_are_added_changed_and_removed_in_the_configuration() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let file = home.write(".config/dragoman/config.json", "{\n  // mine\n  \"mcpServers\": {}\n}\n");
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let log = home.path().join("added-log");
    let args = json!([SCRIPT, "good", "--log", log]);
    let added =
        client.response("mcp/addServer", json!({"name": "added", "command": "python3", "args": args})).await;
    assert_eq!(added["result"]["server"]["name"], "added", "{added}");
    client.until(|it| is_server(it, "added", "running")).await;
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(text.contains("// mine") && text.contains("\"added\""), "{text}");

    let again = client.response("mcp/addServer", json!({"name": "added", "command": "x"})).await;
    assert!(again["result"]["error"]["message"].as_str().is_some_and(|it| it.contains("already")), "{again}");
    client.notify("mcp/disableServer", json!({"name": "added"})).await;
    client.until(|it| is_server(it, "added", "disabled")).await;
    assert!(std::fs::read_to_string(&file).expect("the file").contains("\"disabled\": true"));
    client.notify("mcp/enableServer", json!({"name": "added"})).await;
    client.until(|it| is_server(it, "added", "running")).await;
    let login = client.response("mcp/connectServer", json!({"name": "added"})).await;
    assert!(login.to_string().contains("it has no login"), "a program has none: {login}");

    let args = json!([SCRIPT, "dies", "--log", log]);
    let changed = client.response("mcp/updateServer", json!({"name": "added", "args": args})).await;
    assert!(changed["error"].is_null(), "{changed}");
    client.until(|it| is_server(it, "added", "failed")).await;
    let removed = client.response("mcp/removeServer", json!({"name": "added"})).await;
    assert_eq!(removed["result"], json!({"name": "added", "removed": true}), "{removed}");
    client.until(|it| it["method"] == "tool/serverRemoved" && it["params"]["name"] == "added").await;
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(text.contains("// mine") && !text.contains("added"), "{text}");
    assert!(client.end().await.success());
}
