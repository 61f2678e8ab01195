//! The loop around tool calls: stops in every state, limits, parallel reads, questions, jobs; one result per call.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Gate};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, runs_in, system_text};

fn is_content(message: &Value, kind: &str) -> bool {
    message["params"]["content"]["type"] == kind
}

fn kinds(contents: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = contents
        .iter()
        .filter_map(|it| it["content"]["type"].as_str())
        .filter(|kind| kind.starts_with("toolCall"))
        .collect();
    kinds.dedup();
    kinds
}

/// Every call of the request has exactly one result.
fn check_results(body: &Value, calls: usize) {
    let messages = body["messages"].as_array().expect("messages");
    let asked: Vec<&Value> = messages.iter().filter_map(|it| it["tool_calls"].as_array()).flatten().collect();
    assert_eq!(asked.len(), calls, "{body}");
    for call in asked {
        let results = messages.iter().filter(|it| it["role"] == "tool" && it["tool_call_id"] == call["id"]);
        assert_eq!(results.count(), 1, "{call} in {body}");
    }
}

#[tokio::test]
async fn a_stop_is_heard_in_every_state_of_a_call() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "text\n");
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let read = || Answer::tool_call("read", "eca__read_file", json!({"path": "a.txt"}));
    let write = json!({"path": "made", "content": "x"});
    // Preparing: the arguments still stream. Waiting: nobody has approved. Running. Between: the model has the result.
    for (at, answers, trust, last) in [
        (
            "toolCallPrepare",
            vec![Answer::tool_call("p", "eca__write_file", write.clone()).silence()],
            false,
            "toolCallRejected",
        ),
        ("toolCallRun", vec![Answer::tool_call("w", "eca__write_file", write)], false, "toolCallRejected"),
        (
            "toolCallRunning",
            vec![Answer::tool_call("r", "eca__shell_command", json!({"command": "sleep 600"}))],
            true,
            "toolCalled",
        ),
        ("toolCalled", vec![read(), Answer::new().silence()], false, ""),
    ] {
        for one in answers {
            fake.answer(one);
        }
        client.ask("chat/prompt", json!({"chatId": "c", "message": at, "trust": trust})).await;
        client.until(|it| is_content(it, at)).await;
        if at == "toolCalled" {
            fake.wait_for_requests(5).await;
        }
        client.notify("chat/promptStop", json!({"chatId": "c"})).await;
        let after = contents(&client.until(is_finished).await);
        assert_eq!(kinds(&after).last().copied().unwrap_or_default(), last, "{at}");
        assert!(system_text(&after).contains("Stopped"), "{at}");
    }
    assert!(!home.workspace().join("made").exists());
    fake.answer(Answer::text("fine"));
    client.prompt(Some("c"), "and?").await;
    check_results(&fake.last_request().body, 4);
}

/// The second diagram of the published protocol, as clients see it today.
#[tokio::test]
async fn a_tool_turn_has_the_order_of_the_diagram() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let write = json!({"path": "made", "content": "x"});
    fake.answer(Answer::new().say("I will.").call("c", "eca__write_file", write))
        .answer(Answer::text("Done."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let mut messages = client.until(|it| is_content(it, "toolCallRun")).await;
    let id = messages.last().expect("the call")["params"]["content"]["id"].clone();
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": id})).await;
    messages.extend(client.until(is_finished).await);
    let mut seen: Vec<String> = contents(&messages)
        .iter()
        .filter(|it| it["content"]["type"] != "metadata")
        .map(|it| {
            let content = &it["content"];
            let text = if content["type"] == "progress" { &content["text"] } else { &Value::Null };
            let text = Value::from(text.as_str().map(|text| text.split('.').next().unwrap_or_default()));
            let state = content["state"].as_str().filter(|state| *state == "finished").unwrap_or_default();
            let words = [it["role"].as_str(), content["type"].as_str(), text.as_str(), Some(state)];
            words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    seen.dedup();
    let order = [
        "user text",
        "system progress Waiting model",
        "system progress Generating",
        "assistant text",
        "assistant toolCallPrepare",
        "system usage",
        "system progress Waiting for approval",
        "assistant toolCallRun",
        "assistant toolCallRunning",
        "system progress Calling tool",
        "assistant toolCalled",
        "system progress Waiting model",
        "system progress Generating",
        "assistant text",
        "system usage",
        "system progress finished",
    ];
    assert_eq!(seen, order);
}

#[tokio::test]
async fn every_call_of_an_answer_has_one_result_whatever_became_of_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "text\n");
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"deny": {"eca__move_file": {}}}});
    let mut client = Client::start(&home, &config).await;
    fake.answer(
        Answer::new()
            .call("one", "eca__read_file", json!({"path": "a.txt"}))
            .call("two", "eca__write_file", json!({"path": "b", "content": "x"}))
            .call("three", "eca__move_file", json!({"source": "a.txt", "destination": "b"}))
            .call("four", "eca__unknown", json!({}))
            .call_pieces("five", "eca__read_file", &["{broken"])
            .call("six", "eca__write_file", json!({"path": "c", "content": "x"})),
    );
    fake.answer(Answer::text("done"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    // A question comes when its call has its turn.
    for method in ["chat/toolCallReject", "chat/toolCallApprove"] {
        let asked = loop {
            let message = client.until(|it| is_content(it, "toolCallRun")).await.pop().expect("a call");
            let content = &message["params"]["content"];
            if content["manualApproval"] == true {
                break content["id"].clone();
            }
        };
        client.notify(method, json!({"chatId": "c", "toolCallId": asked})).await;
    }
    client.until(is_finished).await;
    check_results(&fake.last_request().body, 6);
    assert!(home.workspace().join("c").exists() && !home.workspace().join("b").exists());
}

#[tokio::test]
async fn steps_are_limited_and_refused_calls_are_circles_too() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for number in 0..9 {
        home.write(&format!("work/{number}.txt"), "x\n");
    }
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["maxSteps"] = json!(5);
    let mut client = Client::start(&home, &config).await;
    let number = std::sync::atomic::AtomicUsize::new(0);
    fake.respond_with(move |_| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Answer::tool_call("c", "eca__read_file", json!({"path": format!("{number}.txt")}))
    });
    let (_, shown) = client.prompt(Some("steps"), "go").await;
    assert!(system_text(&shown).contains("too many steps"), "{}", system_text(&shown));
    assert_eq!(fake.requests().len(), 5);
    fake.forget_requests();
    fake.respond_with(|_| Answer::tool_call("c", "eca__no_such_tool", json!({})));
    client.prompt(Some("circle"), "go").await;
    assert_eq!(fake.requests().len(), 4, "told after three, stopped after four");
}

#[tokio::test]
async fn questions_are_asked_at_once_and_answered_one_by_one() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::spawn(&home, &fake_provider(fake.url(), "openai-chat"));
    let can = json!({"codeAssistant": {"chat": true, "chatCapabilities": {"askQuestion": true}}});
    client.initialize(&home, can).await;
    let ask = |question: &str| json!({"question": question, "options": ["red", "blue"]});
    fake.answer(Answer::new().call("a", "eca__ask_user", ask("Which color?")).call(
        "b",
        "eca__ask_user",
        ask("Really?"),
    ));
    fake.answer(Answer::text("thanks"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    // Reads run side by side: both questions are there before one is answered.
    let mut questions = Vec::new();
    for _ in 0..2 {
        let asked = client.until(|it| it["method"] == "chat/askQuestion").await;
        questions.push(asked.last().expect("a question").clone());
    }
    questions.sort_by_key(|it| it["params"]["question"] != "Which color?");
    let params = &questions[0]["params"];
    assert_eq!((&params["chatId"], &params["question"]), (&json!("c"), &json!("Which color?")));
    assert_eq!((&params["options"][1]["label"], &params["allowFreeform"]), (&json!("blue"), &json!(true)));
    assert!(params["toolCallId"].is_string());
    client.send(&json!({"jsonrpc": "2.0", "id": questions[1]["id"], "result": {"answer": null, "cancelled": true}})).await;
    client.send(&json!({"jsonrpc": "2.0", "id": questions[0]["id"], "result": {"answer": "green", "cancelled": false}})).await;
    let after = contents(&client.until(is_finished).await);
    assert_eq!(answer(&after), "thanks");
    assert_eq!(fake.last_request().tool_results()[0], "green");
    assert!(fake.last_request().tool_results()[1].contains("no answer"));

    // Who cannot be asked is not waited for; a stop ends the wait.
    let mut mute = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::tool_call("a", "eca__ask_user", ask("Which?"))).answer(Answer::text("ok"));
    mute.prompt(Some("d"), "go").await;
    assert!(fake.last_request().tool_results()[0].contains("Nobody can be asked"));
    fake.answer(Answer::tool_call("a", "eca__ask_user", ask("Which?")));
    client.ask("chat/prompt", json!({"chatId": "e", "message": "go"})).await;
    client.until(|it| it["method"] == "chat/askQuestion").await;
    client.notify("chat/promptStop", json!({"chatId": "e"})).await;
    client.until(is_finished).await;
}

#[tokio::test]
async fn citations_are_urls() {
    let cited = json!({"title": "A page", "url": "https://example.org/a"});
    let anthropic = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": cited}});
    let chat = json!({"choices": [{"index": 0, "delta": {"annotations": [{"type": "url_citation", "url_citation": cited}]}}]});
    for (api, event) in [("anthropic", anthropic), ("openai-chat", chat)] {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut client = Client::start(&home, &fake_provider(fake.url(), api)).await;
        let frame = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"));
        fake.answer(Answer::new().say("See there.").raw(frame));
        let (_, shown) = client.prompt(Some("c"), "where?").await;
        let url = shown
            .iter()
            .find(|it| it["content"]["type"] == "url")
            .unwrap_or_else(|| panic!("{api}: {shown:#?}"));
        assert_eq!(url["content"], json!({"type": "url", "title": "A page", "url": "https://example.org/a"}));
        assert_eq!(url["role"], "assistant");
    }
}

#[tokio::test]
async fn an_editor_that_does_not_answer_is_not_waited_for() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["editorTimeoutSeconds"] = json!(1);
    let mut client = Client::spawn(&home, &config);
    client.initialize(&home, json!({"codeAssistant": {"chat": true, "editor": {"diagnostics": true}}})).await;
    fake.answer(Answer::tool_call("c", "eca__editor_diagnostics", json!({}))).answer(Answer::text("ok"));
    let (_, shown) = client.prompt(Some("c"), "check").await;
    let called = shown.iter().find(|it| it["content"]["type"] == "toolCalled").expect("a result");
    assert_eq!(called["content"]["error"], true);
    assert!(
        fake.last_request().tool_results()[0].contains("no diagnostics"),
        "{:?}",
        fake.last_request().tool_results()
    );
}

/// Waits until a file holds a process id.
async fn pid_in(path: &std::path::Path) -> u32 {
    for _ in 0..500 {
        if let Some(pid) = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()) {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no process id in {}", path.display());
}

async fn is_gone(home: &Home, pid: u32) -> bool {
    for _ in 0..3000 {
        if !runs_in(&home.workspace(), pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn commands_end_with_their_turn_and_jobs_with_the_program() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let shell = |input: Value| Answer::tool_call("c", "eca__shell_command", input);
    // A deadline ends the whole process group.
    let line = json!({"command": "sleep 600 & echo $! > first; wait", "timeout": 300, "ends_at_limit": true});
    fake.answer(shell(line)).answer(Answer::text("ok"));
    client.prompt_with(json!({"chatId": "c", "message": "go", "trust": true})).await;
    assert!(
        fake.last_request().tool_results()[0].contains("ended after 300 ms"),
        "{:?}",
        fake.last_request().tool_results()
    );
    assert!(is_gone(&home, pid_in(&home.workspace().join("first")).await).await);
    // So does a stop.
    fake.answer(shell(json!({"command": "sleep 600 & echo $! > second; wait"})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let second = pid_in(&home.workspace().join("second")).await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    client.until(is_finished).await;
    assert!(is_gone(&home, second).await);
    // A job outlives its call and its turn, is read later, and ends with the program.
    fake.answer(shell(
        json!({"command": "echo started; echo $$ > third; sleep 600", "background": "server"}),
    ));
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "go").await;
    let third = pid_in(&home.workspace().join("third")).await;
    fake.answer(Answer::tool_call("j", "eca__background_job", json!({"action": "list"})))
        .answer(Answer::text("ok"));
    client.prompt(Some("c"), "jobs").await;
    let listed = fake.last_request().tool_results()[0].clone();
    assert!(listed.contains("server"), "{listed}");
    assert!(runs_in(&home.workspace(), third));
    assert!(client.end().await.success());
    assert!(is_gone(&home, third).await);
}

#[tokio::test]
async fn a_prompt_while_a_turn_runs_changes_nothing_of_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let gate = Gate::new();
    fake.answer(Answer::new().say("One").gate(&gate).say(" two."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["role"] == "assistant").await;
    let again = client.response("chat/prompt", json!({"chatId": "c", "message": "me too"})).await;
    assert!(again["result"]["status"].is_string(), "{again}");
    gate.open();
    let shown = contents(
        &client
            .until(|it| it["params"]["content"]["text"].as_str().is_some_and(|it| it.ends_with("two.")))
            .await,
    );
    assert!(answer(&shown).ends_with("two."), "{shown:?}");
}
