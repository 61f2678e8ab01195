//! What ECA's own integration tests demand of a server and no other test here does: docs/protocols/eca.md lists their groups.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, outline, system_text};
use crate::eca_mcp::{self, is_server};

const FORMATS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "ollama"];

fn quiet(fake: &FakeModel, format: &str) -> Value {
    let mut config = fake_provider(fake.url(), format);
    config["chat"] = json!({"title": false});
    config
}

fn shell(event: &str, line: &str) -> Value {
    json!({"type": event, "actions": [{"type": "shell", "shell": line}]})
}

/// Three prompts with reasoning: the response, the order of the contents, and the history of each request.
#[tokio::test]
async fn a_conversation_is_shown_and_sent_whole_in_every_format() {
    for format in FORMATS {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut client = Client::start(&home, &quiet(&fake, format)).await;
        let turns = [("Tell me a joke!", "Knock knock!"), ("Who's there?", "Foo"), ("What foo?", "Foo bar!")];
        for (at, (question, reply)) in turns.into_iter().enumerate() {
            fake.answer(Answer::new().reasoning("I should reply").chunks([&reply[..2], &reply[2..]]));
            let (response, shown) = client.prompt(Some("c"), question).await;
            let expected = json!({"chatId": "c", "model": "fake/m1", "status": "prompting"});
            assert_eq!(response, expected, "{format}");
            // Progress is a state, not an entry: it may come late, even within the text.
            let is_entry =
                |it: &&Value| it["content"]["type"] != "progress" || it["content"]["state"] == "finished";
            let said = outline(&shown.iter().filter(is_entry).cloned().collect::<Vec<_>>());
            let lines = [
                &format!("user text: {question}"),
                "assistant reasonStarted",
                "assistant reasonText: I should reply",
                "assistant reasonFinished",
                &format!("assistant text: {reply}"),
                "system usage",
                "system progress finished",
            ];
            let places: Vec<Option<usize>> =
                lines.iter().map(|line| said.iter().position(|it| it.trim_end() == *line)).collect();
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{format}: {said:#?}");
            let sent = fake.last_request().body.to_string();
            let mut rest = sent.as_str();
            for earlier in
                turns[..at].iter().flat_map(|(question, reply)| [*question, *reply]).chain([question])
            {
                let found = rest.find(earlier);
                rest = &rest[found.unwrap_or_else(|| panic!("{format}: no {earlier} in order: {sent}"))..];
            }
        }
    }
}

/// A hook changes the prompt, the next one stops it: its reason is shown and no model is asked.
#[tokio::test]
async fn a_hook_stops_a_prompt_before_the_model_and_says_why() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = quiet(&fake, "openai-chat");
    config["hooks"] = json!({
        "a-rewrite": shell("preRequest", "echo '{\"replacedPrompt\": \"REWRITTEN\"}'"),
        "b-stop": shell("preRequest", "echo '{\"continue\": false, \"stopReason\": \"STOPPED BY HOOK\"}'"),
    });
    let mut client = Client::start(&home, &config).await;
    let (response, shown) = client.prompt(Some("c"), "ORIGINAL").await;
    assert_eq!((&response["status"], &response["model"]), (&json!("prompting"), &json!("fake/m1")));
    assert!(system_text(&shown).contains("STOPPED BY HOOK"), "{shown:#?}");
    assert!(fake.requests().is_empty(), "the model is not asked");
}

/// Exit code 2 rejects the call, `continue: false` ends the turn: the model is not asked again.
#[tokio::test]
async fn a_hook_that_rejects_a_call_can_end_the_turn() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = quiet(&fake, "openai-chat");
    let line = "echo '{\"continue\": false, \"stopReason\": \"Security policy violation\"}' && exit 2";
    config["hooks"] = json!({"reject-and-stop": shell("preToolCall", line)});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call("c1", "eca__directory_tree", json!({"path": "."})));
    let (_, shown) = client.prompt(Some("c"), "What files do you see?").await;
    let rejected = shown.iter().find(|it| it["content"]["type"] == "toolCallRejected");
    assert_eq!(rejected.expect("a rejected call")["content"]["name"], "directory_tree");
    assert!(system_text(&shown).contains("Security policy violation"), "{shown:#?}");
    assert_eq!(fake.requests().len(), 1);
}

/// ECA writes `myProvider` as `my-provider`: in the default model and in a prompt.
#[tokio::test]
async fn a_provider_is_found_by_the_name_that_eca_gives_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = quiet(&fake, "openai-chat");
    let provider = config["providers"]["fake"].take();
    config["providers"] = json!({"myProvider": provider});
    config["defaultModel"] = json!("my-provider/m1");
    home.write(".config/eca/config.json", &config.to_string());
    let mut client = Client::start(&home, &json!({})).await;
    let told = client
        .until(|it| it["method"] == "config/updated" && it["params"]["chat"]["models"].is_array())
        .await;
    let chat = &told.last().expect("settings")["params"]["chat"];
    let models: Vec<&str> =
        chat["models"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert!(models.contains(&"my-provider/m1") && chat["selectModel"] == "my-provider/m1", "{chat}");
    for model in ["my-provider/m1", "myProvider/m1"] {
        fake.answer(Answer::text("Hello."));
        let (response, shown) =
            client.prompt_with(json!({"chatId": "c", "message": "hi", "model": model})).await;
        assert_eq!((&response["status"], answer(&shown).trim()), (&json!("prompting"), "Hello."), "{model}");
        assert_eq!(response["model"], "my-provider/m1");
    }
}

/// The instructions of a server reach the model, a tool that it adds reaches the client and the model.
#[tokio::test]
async fn a_server_instructs_the_model_and_adds_a_tool() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = eca_mcp::config(&home, fake.url(), &[("test-mcp", "good")]);
    home.write(".config/eca/config.json", &config.to_string());
    let mut client = Client::start(&home, &json!({})).await;
    client.until(|it| is_server(it, "testMcp", "running")).await;
    fake.answer(Answer::tool_call("c1", "test-mcp__grow", json!({}))).answer(Answer::text("Added."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "add it", "trust": true})).await;
    let (mut over, mut grown) = (false, false);
    while !over || !grown {
        let message = client.next().await;
        over |= is_finished(&message);
        grown |= is_server(&message, "testMcp", "running")
            && message["params"]["tools"].to_string().contains("\"grown\"");
    }
    let system = fake.requests()[0].system();
    assert!(system.contains("server=\"testMcp\"") && system.contains("Use echo for echoes."), "{system}");
    fake.answer(Answer::text("Yes."));
    client.prompt(Some("c"), "is it there?").await;
    let offered = fake.last_request().tools();
    assert!(offered.contains(&"testMcp__grown".to_owned()), "{offered:?}");
}

/// The request of a subagent after its tool call fails once: it is sent again, the tool does not run again.
#[tokio::test]
async fn a_subagent_outlives_an_overloaded_provider() {
    for status in [529, 502] {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        home.write("work/file1.md", "x");
        let mut client = Client::start(&home, &quiet(&fake, "openai-chat")).await;
        let task = json!({"agent": "explorer", "task": "find files"});
        fake.answer(Answer::tool_call("c1", "eca__spawn_agent", task));
        fake.answer(Answer::tool_call("c2", "eca__directory_tree", json!({"path": "."})));
        fake.answer(Answer::status(status).header("retry-after", "0").body("{}"));
        fake.answer(Answer::text("Subagent done")).answer(Answer::text("Final answer"));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "What can you find?"})).await;
        let is_over = |it: &Value| it["params"]["chatId"] == "c" && is_finished(it);
        let shown = contents(&client.until(is_over).await);
        let child: Vec<Value> = shown.iter().filter(|it| it["parentChatId"] == "c").cloned().collect();
        let called = |list: &[Value], name: &str| {
            let is_it = |it: &&Value| {
                it["content"]["type"] == "toolCalled"
                    && it["content"]["name"] == name
                    && it["content"]["error"] == false
            };
            list.iter().filter(is_it).count()
        };
        assert_eq!(called(&child, "directory_tree"), 1, "{status}: {child:#?}");
        assert!(answer(&child).contains("Subagent done"), "{status}: {child:#?}");
        let parent: Vec<Value> = shown.iter().filter(|it| it["chatId"] == "c").cloned().collect();
        assert_eq!((called(&parent, "spawn_agent"), answer(&parent).trim()), (1, "Final answer"), "{status}");
        let retried = child.iter().any(|it| {
            it["content"]["type"] == "progress"
                && it["content"]["text"].as_str().is_some_and(|text| text.contains("Trying again"))
        });
        assert!(retried, "{status}: the retry is shown: {child:#?}");
        assert_eq!(fake.requests().len(), 5, "{status}");
    }
}

/// A provider rejects the image that a tool brought: the turn goes on without it, and later requests lack it too.
#[tokio::test]
async fn a_rejected_image_of_a_tool_ends_no_chat() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = eca_mcp::config(&home, fake.url(), &[("pics", "good")]);
    config["chat"] = json!({"title": false});
    config["providers"]["fake"]["models"]["m1"] = json!({"imageInput": true});
    let mut client = Client::start(&home, &config).await;
    client.until(|it| is_server(it, "pics", "running")).await;
    let refusal = json!({"error": {"message": "Invalid image: it has fewer than 512 pixels", "code": 400}});
    fake.answer(Answer::tool_call("c1", "pics__picture", json!({})));
    fake.answer(Answer::status(400).body(refusal.to_string()))
        .answer(Answer::text("Recovered without the image"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "Show it", "trust": true})).await;
    let shown = contents(&client.until(is_finished).await);
    let image = shown.iter().find(|it| it["content"]["type"] == "image").expect("the image is shown");
    let base64 = image["content"]["base64"].as_str().expect("its bytes").to_owned();
    let requests = fake.requests();
    assert!(requests[1].body.to_string().contains(&base64), "it was sent");
    assert!(system_text(&shown).contains("refused the images"), "{shown:#?}");
    assert!(answer(&shown).contains("Recovered without the image"), "{shown:#?}");
    assert!(!requests[2].body.to_string().contains(&base64));
    assert!(requests[2].body.to_string().contains("image"), "its place is named");
    fake.answer(Answer::text("Fine."));
    client.prompt(Some("c"), "and now?").await;
    assert!(!fake.last_request().body.to_string().contains(&base64));
}

#[tokio::test]
async fn lists_have_a_limit_and_commands_have_arguments() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &quiet(&fake, "openai-chat")).await;
    for chat in ["a", "b"] {
        fake.answer(Answer::text("Hello."));
        client.prompt(Some(chat), "hi").await;
    }
    let listed = client.request("chat/list", json!({"limit": 1})).await;
    assert_eq!(listed["chats"].as_array().map(Vec::len), Some(1), "{listed}");
    let listed = client.request("chat/list", json!({})).await;
    assert_eq!((&listed["chats"][0]["id"], &listed["chats"][0]["status"]), (&json!("b"), &json!("idle")));
    let unknown = client.request("chat/open", json!({"chatId": "does-not-exist"})).await;
    assert_eq!(unknown["found"], false);

    let all = client.request("chat/queryCommands", json!({"query": ""})).await;
    let all = all["commands"].as_array().cloned().expect("commands");
    let arguments = |name: &str| -> usize {
        let command = all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no /{name}"));
        command["arguments"].as_array().map_or(0, Vec::len)
    };
    for name in ["init", "skills", "costs", "context", "fork", "config", "doctor", "rules", "hooks"] {
        assert_eq!(arguments(name), 0, "{name}");
    }
    for name in ["login", "model", "compact", "btw", "resume", "export"] {
        assert_eq!(arguments(name), 1, "{name}");
    }
    // What only says what to do instead works when it is typed, and is not offered.
    assert!(!all.iter().any(|it| it["name"] == "delete-chat" || it["name"] == "plugin-install"), "{all:?}");
    let some = client.request("chat/queryCommands", json!({"query": "co"})).await;
    let names: Vec<&str> =
        some["commands"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    for name in ["costs", "context", "compact", "config"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"init"), "{names:?}");
    let (response, shown) = client.prompt(Some("a"), "/prompt-show").await;
    assert_eq!((&response["status"], &response["model"]), (&json!("prompting"), &json!("fake/m1")));
    let text = system_text(&shown);
    assert!(!text.is_empty() && !text.contains("/prompt-show"), "{text}");
}

/// What the editor cannot find is told to the model, with what it can do instead.
#[tokio::test]
async fn an_editor_that_fails_to_find_references_is_no_dead_end() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/file1.md", "Something here\n");
    let mut client = Client::spawn(&home, &quiet(&fake, "openai-chat"));
    let editor = json!({"definition": true, "references": true});
    client.initialize(&home, json!({"codeAssistant": {"chat": true, "editor": editor}})).await;
    let input = json!({"path": "file1.md", "line": 1, "character": 1});
    fake.answer(Answer::tool_call("r", "eca__editor_references", input)).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "Who uses Something?"})).await;
    let asked = client.until(|it| it["method"] == "editor/getReferences").await.pop().expect("a request");
    let result = json!({"status": "error", "message": "lsp busy"});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    let shown = contents(&client.until(is_finished).await);
    let called = shown.iter().find(|it| it["content"]["type"] == "toolCalled").expect("a result");
    assert_eq!(called["content"]["error"], true, "{called}");
    let told = fake.last_request().tool_results().concat();
    assert!(told.contains("lsp busy"), "{told}");
}

/// A server that comes late changes what the model gets, which costs a cache: `/costs` names the server.
#[tokio::test]
async fn a_server_that_comes_late_is_named_in_the_costs() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &eca_mcp::config(&home, fake.url(), &[("late", "good")])).await;
    client.until(|it| is_server(it, "late", "running")).await;
    client.notify("mcp/stopServer", json!({"name": "late"})).await;
    client.until(|it| is_server(it, "late", "stopped")).await;
    fake.answer(Answer::text("First."));
    client.prompt(Some("c"), "one").await;
    assert!(!fake.last_request().tools().contains(&"late__echo".to_owned()));
    client.notify("mcp/startServer", json!({"name": "late"})).await;
    client.until(|it| is_server(it, "late", "running")).await;
    fake.answer(Answer::text("Second."));
    client.prompt(Some("c"), "two").await;
    assert!(fake.last_request().tools().contains(&"late__echo".to_owned()));
    let (_, shown) = client.prompt(Some("c"), "/costs").await;
    let text = system_text(&shown);
    assert!(text.contains("(late came)"), "{text}");
}

/// `chatRetentionDays`: a chat that was not touched for so long is deleted by the next process; without the key it stays.
#[tokio::test]
async fn old_chats_are_deleted_only_where_the_user_says_so() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = quiet(&fake, "openai-chat");
    let mut client = Client::start(&home, &config).await;
    for chat in ["old", "new"] {
        fake.answer(Answer::text("Hello."));
        client.prompt(Some(chat), "hi").await;
    }
    assert!(client.end().await.success());
    let database = home.path().join(".local/share/dragoman/chats.sqlite");
    let database = rusqlite::Connection::open(database).expect("the chats");
    database
        .execute("UPDATE sessions SET updated = updated - 40 * 86400000 WHERE id = 'old'", [])
        .expect("an older chat");
    drop(database);
    let ids = async |client: &mut Client| -> Vec<String> {
        let listed = client.request("chat/list", json!({})).await;
        let chats = listed["chats"].as_array().cloned().unwrap_or_default();
        chats.iter().filter_map(|it| it["id"].as_str().map(str::to_owned)).collect()
    };
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("Hello."));
    client.prompt(Some("third"), "hi").await;
    assert!(ids(&mut client).await.contains(&"old".to_owned()));
    assert!(client.end().await.success());

    config["chatRetentionDays"] = json!(30);
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("Hello."));
    client.prompt(Some("fourth"), "hi").await;
    let since = std::time::Instant::now();
    loop {
        let left = ids(&mut client).await;
        if !left.contains(&"old".to_owned()) {
            assert_eq!(left.len(), 3, "{left:?}");
            break;
        }
        assert!(since.elapsed().as_secs() < 30, "{left:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
