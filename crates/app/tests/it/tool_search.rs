//! Hundreds of tools of MCP servers: the request carries two tools, and everybody but the model sees the real calls.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, is_finished};
use crate::eca_mcp::{config, is_server};

const SEARCH: &str = "eca__search_tools";
const CARRIER: &str = "eca__call_tool";

async fn start(home: &Home, fake: &FakeModel, extra: &[(&str, Value)]) -> Client {
    let mut config = config(home, fake.url(), &[("many", "many-150"), ("more", "many-150")]);
    for (key, value) in extra {
        config[*key] = value.clone();
    }
    let mut client = Client::start(home, &config).await;
    let mut waiting = vec!["many", "more"];
    while !waiting.is_empty() {
        let message = client.next().await;
        waiting.retain(|name| !is_server(&message, name, "running"));
    }
    client
}

/// One prompt with these answers; the contents that the client saw.
async fn turn(client: &mut Client, fake: &FakeModel, answers: Vec<Answer>, trust: bool) -> Vec<Value> {
    for answer in answers {
        fake.answer(answer);
    }
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": trust})).await;
    contents(&client.until(is_finished).await)
}

fn carried(name: &str, arguments: Value) -> Answer {
    Answer::tool_call("c2", CARRIER, json!({"name": name, "arguments": arguments}))
}

fn search(query: &str) -> Answer {
    Answer::tool_call("c1", SEARCH, json!({"query": query, "limit": 1}))
}

/// The results of all calls in the last request, in order.
fn results(fake: &FakeModel) -> Vec<String> {
    let request = fake.last_request();
    let results = request.messages().iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].to_string()).collect()
}

/// The finished calls: server, name, whether it is an error, and its output.
fn called(shown: &[Value]) -> Vec<(String, String, bool, String)> {
    let called = shown.iter().map(|it| &it["content"]).filter(|it| it["type"] == "toolCalled");
    called
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            (text("server"), text("name"), it["error"] == true, it["outputs"].to_string())
        })
        .collect()
}

#[tokio::test]
async fn a_found_tool_is_called_and_clients_see_the_real_call() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake, &[]).await;
    for answer in [search("record_42"), carried("many__record_42", json!({"key": "k", "size": 2}))] {
        fake.answer(answer);
    }
    fake.answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let before = contents(&client.until(is_question).await);
    let asked = before.last().expect("the question")["content"].clone();
    assert_eq!((&asked["server"], &asked["name"]), (&json!("many"), &json!("record_42")));
    assert_eq!(asked["arguments"], json!({"key": "k", "size": 2}));
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": asked["id"]})).await;
    let after = contents(&client.until(is_finished).await);
    let (server, name, error, output) = called(&after).pop().expect("the call");
    assert_eq!((server.as_str(), name.as_str(), error), ("many", "record_42", false));
    assert!(output.contains("record_42"), "{output}");
    let shown = [before, after].concat();
    let is_carrier = |it: &Value| it["content"]["name"] == "call_tool";
    assert!(!shown.iter().any(is_carrier), "no client sees the carrier: {shown:?}");

    let requests = fake.requests();
    for request in &requests {
        let tools = request.tools();
        assert!(!tools.iter().any(|name| name.starts_with("many__")), "{tools:?}");
        assert!(tools.iter().any(|name| name == SEARCH) && tools.iter().any(|name| name == CARRIER));
        assert_eq!(request.body["tools"], requests[0].body["tools"], "the two tools stay the same");
    }
    let last = requests.last().expect("a request");
    let history = last.body["messages"].to_string();
    assert!(history.contains(CARRIER), "the model sees the call as it made it: {history}");
    assert!(results(&fake)[0].contains("input_schema"), "a search gives definitions");
    assert!(client.end().await.success());
}

fn is_question(message: &Value) -> bool {
    let content = &message["params"]["content"];
    content["type"] == "toolCallRun" && content["manualApproval"] == true
}

#[tokio::test]
async fn unknown_unsearched_misused_and_denied_tools_do_not_run() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let deny = json!({"approval": {"deny": {"many__record_7": {}}}});
    let mut client = start(&home, &fake, &[("toolCall", deny)]).await;
    let answers = vec![
        carried("many__record_1", json!({"key": "unsearched"})),
        Answer::tool_call("c9", "many__record_1", json!({"key": "unsearched, directly"})),
        carried("many__record_999", json!({"key": "unknown"})),
        search("record_1"),
        carried("many__record_1", json!({"size": 0, "other": 1})),
        search("many__record_7"),
        carried("many__record_7", json!({"key": "denied"})),
        Answer::tool_call("c8", CARRIER, json!({"arguments": {}})),
        search("nothing fits zzzz"),
        Answer::text("ok"),
    ];
    let shown = turn(&mut client, &fake, answers, true).await;
    let results = results(&fake);
    for (at, expected) in [
        (0, "Search for it with eca__search_tools first"),
        (1, "Search for it with eca__search_tools first"),
        (2, "There is no tool many__record_999."),
        (4, "The arguments do not fit the definition of many__record_1"),
        (7, "Give the full name of a found tool"),
        (8, "many (169), more (169)"),
    ] {
        assert!(results[at].contains(expected), "{at}: {}", results[at]);
    }
    let rejected = shown.iter().map(|it| &it["content"]).find(|it| it["type"] == "toolCallRejected");
    assert_eq!(rejected.expect("the denied call")["name"], "record_7");
    let log = std::fs::read_to_string(home.workspace().join("many")).expect("the log");
    assert!(!log.contains("tools/call"), "nothing reached the server");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_changed_definition_must_be_searched_again() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut servers = config(&home, fake.url(), &[("many", "shifting")]);
    servers["toolCall"] = json!({"toolSearch": {"abovePercent": 0}});
    let mut client = Client::start(&home, &servers).await;
    client.until(|it| is_server(it, "many", "running")).await;
    let echo = || carried("many__echo", json!({"text": "hello"}));
    let shown = turn(&mut client, &fake, vec![search("many__echo"), echo(), Answer::text("ok")], true).await;
    assert!(called(&shown).iter().all(|(_, _, error, _)| !error), "{shown:?}");
    // The user allows another definition; the model has read the first one.
    home.write("work/many.again", "");
    client.notify("mcp/stopServer", json!({"name": "many"})).await;
    client.until(|it| is_server(it, "many", "stopped")).await;
    client.notify("mcp/startServer", json!({"name": "many"})).await;
    client.until(|it| is_server(it, "many", "running")).await;
    let answers = vec![echo(), search("many__echo"), echo(), Answer::text("ok")];
    let shown = turn(&mut client, &fake, answers, true).await;
    let errors: Vec<bool> = called(&shown).iter().map(|(_, _, error, _)| *error).collect();
    assert_eq!(errors, [true, false, false], "{shown:?}");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_server_takes_no_name_of_another_servers_tool() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client =
        Client::start(&home, &config(&home, fake.url(), &[("a__b", "good"), ("a", "shadow")])).await;
    let mut waiting = vec!["a", "a__b"];
    while !waiting.is_empty() {
        let message = client.next().await;
        waiting.retain(|name| !is_server(&message, name, "running"));
    }
    let answers = vec![Answer::tool_call("c", "a__b__echo", json!({"text": "hi"})), Answer::text("ok")];
    let shown = turn(&mut client, &fake, answers, true).await;
    let tools = fake.last_request().tools();
    assert_eq!(tools.iter().filter(|name| *name == "a__b__echo").count(), 1, "{tools:?}");
    let (server, name, error, _) = called(&shown).pop().expect("the call");
    assert_eq!((server.as_str(), name.as_str(), error), ("a__b", "echo", false));
    assert!(client.end().await.success());
}

#[tokio::test]
async fn within_the_budget_every_tool_is_offered() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let wide = json!({"toolSearch": {"abovePercent": 100, "aboveTokens": 1_000_000}});
    let mut client = start(&home, &fake, &[("toolCall", wide)]).await;
    turn(&mut client, &fake, vec![Answer::text("ok")], false).await;
    let tools = fake.last_request().tools();
    assert_eq!(tools.iter().filter(|name| name.contains("__record_")).count(), 300);
    assert!(!tools.iter().any(|name| name == SEARCH));
    assert!(client.end().await.success());
}

/// A tenth of a million tokens would have room for all 300, which would be paid in every request.
#[tokio::test]
async fn a_large_window_is_not_filled_with_definitions() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let models = json!({"wide": {"limit": {"context": 1_000_000}}});
    let providers = json!({"fake": {"api": "openai-chat", "url": fake.url(), "key": "k", "models": models}});
    let settings = [("providers", providers), ("defaultModel", json!("fake/wide"))];
    let mut client = start(&home, &fake, &settings).await;
    turn(&mut client, &fake, vec![Answer::text("ok")], false).await;
    let request = fake.last_request();
    let tools = request.tools();
    assert!(tools.iter().any(|name| name == SEARCH), "{tools:?}");
    assert!(!tools.iter().any(|name| name.contains("__record_")), "{tools:?}");
    assert!(request.body.to_string().len() < 10_000, "{}", request.body.to_string().len());
    assert!(client.end().await.success());
}

/// A chat of five prompts with so many servers of 50 tools; the bodies of its requests.
async fn bodies(servers: usize) -> Vec<Value> {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let names: Vec<String> = (0..servers).map(|number| format!("s{number}")).collect();
    let modes: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "many-50")).collect();
    let mut client = Client::start(&home, &config(&home, fake.url(), &modes)).await;
    let mut waiting = names.clone();
    while !waiting.is_empty() {
        let message = client.next().await;
        waiting.retain(|name| !is_server(&message, name, "running"));
    }
    for _ in 0..5 {
        fake.answer(Answer::text("ok"));
        client.prompt(Some("c"), "hello").await;
    }
    assert!(client.end().await.success());
    fake.requests().into_iter().map(|request| request.body).collect()
}

#[tokio::test]
async fn requests_stay_small_and_cached_with_any_number_of_tools() {
    let mut first = Vec::new();
    for servers in [0, 1, 6] {
        let bodies = bodies(servers).await;
        let (mut all, mut cached) = (0, 0);
        for pair in bodies.windows(2) {
            assert_eq!(pair[0]["tools"], pair[1]["tools"], "{servers} servers");
            let [before, now] =
                [&pair[0], &pair[1]].map(|body| body["messages"].as_array().expect("messages"));
            assert_eq!(&now[..before.len()], before.as_slice(), "requests grow only at their end");
            let texts = [&pair[1]["tools"], &pair[0]["messages"]].map(Value::to_string);
            (all, cached) = (all + pair[1].to_string().len(), cached + texts[0].len() + texts[1].len());
        }
        first.push(bodies[0].to_string().len());
        let percent = cached * 100 / all;
        println!(
            "figure: {} MCP tools: {} B, then {percent} % cached",
            servers * 50,
            first.last().expect("one")
        );
    }
    assert!(first[2] < first[0] + 1_500 && first[2] < first[1], "{first:?}");
}

/// A chat with a provider that loads tools itself.
async fn start_loading(home: &Home, fake: &FakeModel, provider: &str, model: &str) -> Client {
    let providers =
        json!({provider: {"url": fake.url(), "key": "sk-secret-of-the-test", "models": {model: {}}}});
    let model = json!(format!("{provider}/{model}"));
    // Models with a large window have room for all 300.
    let limit = json!({"toolSearch": {"abovePercent": 1}});
    start(home, fake, &[("providers", providers), ("defaultModel", model), ("toolCall", limit)]).await
}

#[tokio::test]
async fn anthropic_loads_the_tools_that_a_search_found() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start_loading(&home, &fake, "anthropic", "claude-sonnet-4-5").await;
    let call = |name: &str| Answer::tool_call("c2", name, json!({"key": "k", "size": 2}));
    let answers = vec![
        call("many__record_42"),
        search("many__record_42"),
        call("many__record_42"),
        search("record_42"),
        Answer::text("ok"),
    ];
    let shown = turn(&mut client, &fake, answers, true).await;
    let errors: Vec<(String, bool)> =
        called(&shown).into_iter().map(|(_, name, error, _)| (name, error)).collect();
    let [unread, found, done, again] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!((unread, done), (&("record_42".into(), true), &("record_42".into(), false)), "{errors:?}");
    assert!(!found.1 && !again.1, "{errors:?}");

    let requests = fake.requests();
    let deferred = |at: usize| -> Vec<String> {
        let tools = requests[at].body["tools"].as_array().expect("tools");
        let deferred = tools.iter().filter(|tool| tool["defer_loading"] == true);
        deferred.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    };
    assert!(deferred(0).is_empty() && deferred(1).is_empty(), "nothing is found yet");
    assert_eq!(
        (deferred(2), deferred(3)),
        (vec!["many__record_42".to_owned()], vec!["many__record_42".to_owned()])
    );
    for request in &requests {
        let names = request.tools();
        assert!(
            names.iter().any(|name| name == SEARCH) && !names.iter().any(|name| name == CARRIER),
            "{names:?}"
        );
        let tools = request.body["tools"].as_array().expect("tools");
        let marked = |tool: &&Value| tool.get("cache_control").is_some();
        assert!(tools.iter().filter(marked).all(|tool| tool.get("defer_loading").is_none()), "{tools:?}");
    }
    let messages = requests[4].body["messages"].as_array().expect("messages");
    let results: Vec<&Value> = messages
        .iter()
        .flat_map(|message| message["content"].as_array().into_iter().flatten())
        .filter(|block| block["type"] == "tool_result")
        .collect();
    assert_eq!(results[1]["content"], json!([{"type": "tool_reference", "tool_name": "many__record_42"}]));
    assert!(results[3]["content"].to_string().contains("is there already"), "loaded once: {}", results[3]);
    assert!(!requests[4].body["messages"].to_string().contains(CARRIER));
    assert!(client.end().await.success());
}

#[tokio::test]
async fn openai_loads_the_tools_that_a_search_found() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start_loading(&home, &fake, "openai", "gpt-5.4").await;
    // The provider's own call for searches: its arguments are an object.
    let item = json!({"type": "tool_search_call", "id": "ts_1", "call_id": "c1", "execution": "client",
        "status": "completed", "arguments": {"query": "many__record_42", "limit": 1}});
    let frame = |kind: &str| {
        let event = json!({"type": kind, "output_index": 0, "item": item});
        format!("event: {kind}\ndata: {event}\n\n")
    };
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": [item]}});
    let end = format!("event: response.completed\ndata: {end}\n\n");
    let frames = frame("response.output_item.added") + &frame("response.output_item.done") + &end;
    let searched = Answer::new().raw(frames);
    let call = Answer::tool_call("c2", "many__record_42", json!({"key": "k", "size": 2}));
    let shown = turn(&mut client, &fake, vec![searched, call, Answer::text("ok")], true).await;
    let errors: Vec<bool> = called(&shown).into_iter().map(|(_, _, error, _)| error).collect();
    assert_eq!(errors, [false, false], "{shown:?}");
    let requests = fake.requests();
    for request in &requests {
        let tools = request.body["tools"].as_array().expect("tools");
        let search: Vec<&Value> = tools.iter().filter(|tool| tool["type"] == "tool_search").collect();
        assert_eq!((search.len(), &search[0]["execution"]), (1, &json!("client")), "{tools:?}");
        assert!(!request.tools().iter().any(|name| name == CARRIER || name.starts_with("many__")));
    }
    let input = requests[2].body["input"].as_array().expect("input");
    let of_kind = |kind: &str| input.iter().find(|item| item["type"] == kind).expect("an item").clone();
    assert_eq!(of_kind("tool_search_call")["arguments"]["query"], "many__record_42");
    let output = of_kind("tool_search_output");
    assert_eq!((&output["call_id"], &output["tools"][0]["name"]), (&json!("c1"), &json!("many__record_42")));
    assert_eq!(output["tools"][0]["defer_loading"], true);
    assert_eq!(of_kind("function_call")["name"], "many__record_42");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn other_models_and_a_user_who_says_no_get_the_two_tools() {
    let no = json!({"toolSearch": {"byProvider": false}});
    for (model, extra) in [("claude-sonnet-4-5", vec![("toolCall", no)]), ("claude-3-5-haiku-latest", vec![])]
    {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let providers =
            json!({"anthropic": {"url": fake.url(), "key": "sk-secret-of-the-test", "models": {model: {}}}});
        let mut settings =
            vec![("providers", providers), ("defaultModel", json!(format!("anthropic/{model}")))];
        settings.extend(extra);
        let mut client = start(&home, &fake, &settings).await;
        turn(&mut client, &fake, vec![search("many__record_42"), Answer::text("ok")], true).await;
        let tools = fake.last_request().tools();
        assert!(tools.iter().any(|name| name == CARRIER), "{model}: {tools:?}");
        assert!(!fake.last_request().body.to_string().contains("defer_loading"), "{model}");
        assert!(client.end().await.success());
    }
}
