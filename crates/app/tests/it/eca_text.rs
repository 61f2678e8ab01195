//! The text chat of ECA: order, breakers, both generations of clients, three model APIs.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, outline, system_text};

const APIS: [&str; 3] = ["openai-chat", "openai-responses", "anthropic"];

#[tokio::test]
async fn a_question_is_answered_in_the_order_clients_expect() {
    for api in APIS {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        fake.answer(Answer::new().reasoning("Let me think.").say("Hello there."));
        let mut client = Client::start(&home, &fake_provider(fake.url(), api)).await;
        let (result, contents) = client.prompt(None, "Hi").await;
        assert_eq!(result["status"], "prompting", "{api}");
        assert_eq!(result["model"], "fake/m1");
        let lines = outline(&contents);
        let place = |what: &str| {
            lines
                .iter()
                .position(|line| line.starts_with(what))
                .unwrap_or_else(|| panic!("{api}: no {what} in {lines:#?}"))
        };
        let order = [
            "user text: Hi\n",
            "system progress: Waiting model",
            "system progress: Generating",
            "assistant reasonStarted",
            "assistant reasonText: Let me think.",
            "assistant reasonFinished",
            "assistant text: Hello there.",
            "system usage",
            "system progress finished",
        ];
        let places: Vec<usize> = order.iter().map(|what| place(what)).collect();
        assert!(places.is_sorted(), "{api}: {lines:#?}");
        place("system metadata");
        assert!(contents.iter().all(|it| it["chatId"] == result["chatId"]), "one chat id");
        let echo = contents.iter().find(|it| it["role"] == "user").expect("the echo");
        assert!(echo["content"]["contentId"].is_string());
        assert!(client.end().await.success());
    }
}

#[tokio::test]
async fn responses_and_notifications_have_no_null_members() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let id = client.ask("chat/prompt", json!({"chatId": null, "message": "say 2 words"})).await;
    for message in client.until(is_finished).await {
        let object = message.as_object().expect("an object");
        assert!(!object.contains_key("error"), "{message}");
        assert_eq!(
            object.contains_key("id"),
            message["id"] == json!(id) || message["id"] == json!(1),
            "{message}"
        );
    }
    let shutdown = client.response("shutdown", Value::Null).await;
    assert!(shutdown.as_object().is_some_and(|it| it.contains_key("result") && !it.contains_key("error")));
    client.notify("exit", Value::Null).await;
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_client_made_chat_id_is_used_from_the_first_content_on() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let chat = "11111111-2222-3333-4444-555555555555";
    let (result, contents) = client.prompt(Some(chat), "say 1 words").await;
    assert_eq!(result["chatId"], chat);
    assert!(contents.iter().all(|it| it["chatId"] == chat));
    // The second turn sends the first along.
    client.prompt(Some(chat), "say 2 words").await;
    let request = fake.last_request();
    let sent = request.body.to_string();
    assert!(sent.contains("say 1 words") && sent.contains("word1") && sent.contains("say 2 words"), "{sent}");
}

#[tokio::test]
async fn start_tells_models_and_behaviors_in_both_vocabularies() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "anthropic")).await;
    let messages = client.until(|it| it["method"] == "tool/serverUpdated").await;
    let config = messages.iter().find(|it| it["method"] == "config/updated").expect("config/updated");
    let chat = &config["params"]["chat"];
    assert_eq!(chat["behaviors"], json!(["agent", "plan"]));
    assert_eq!(chat["agents"], json!(["code", "plan"]));
    assert_eq!((&chat["selectBehavior"], &chat["selectAgent"]), (&json!("agent"), &json!("code")));
    assert_eq!(chat["selectModel"], "fake/m1");
    assert!(chat["models"].as_array().is_some_and(|models| models.contains(&json!("fake/m1"))));
    let native = &messages.last().expect("a server")["params"];
    assert_eq!(
        (&native["name"], &native["type"], &native["status"]),
        (&json!("ECA"), &json!("native"), &json!("running"))
    );
}

#[tokio::test]
async fn either_name_of_a_behavior_is_taken_in_either_field() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    for (field, name, plans) in [
        ("behavior", "plan", true),
        ("agent", "code", false),
        ("behavior", "code", false),
        ("agent", "plan", true),
    ] {
        let chat = format!("{field}-{name}");
        client.prompt_with(json!({"chatId": chat, "message": "say 1 words", field: name})).await;
        let sent = fake.last_request().body.to_string();
        assert_eq!(sent.contains("You are planning"), plans, "{field}: {name}");
    }
    client.notify("chat/selectedBehaviorChanged", json!({"behavior": "plan"})).await;
    client.prompt(Some("later"), "say 1 words").await;
    assert!(fake.last_request().body.to_string().contains("You are planning"));
    // An unknown name does not become an agent that may write.
    let before = fake.requests().len();
    let misspelt = json!({"chatId": "odd", "message": "say 1 words", "agent": "Plan"});
    let (refused, contents) = client.prompt_with(misspelt).await;
    assert_eq!((&refused["status"], fake.requests().len()), (&json!("error"), before));
    assert!(system_text(&contents).contains("agent, plan"), "{contents:?}");
    client.notify("chat/selectedBehaviorChanged", json!({"behavior": "Plan"})).await;
    client.until(|it| it["method"] == "$/showMessage" && it["params"]["type"] == "error").await;
}

#[tokio::test]
async fn a_cheap_model_makes_the_title_once_beside_the_answer_unless_it_may_not() {
    for (may, asked, title) in [(true, 3, "A Fine Title"), (false, 2, "Hi")] {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut config = fake_provider(fake.url(), "openai-chat");
        config["chat"] = json!({"title": may, "titleModel": "fake/small"});
        fake.take_titles();
        let mut client = Client::start(&home, &config).await;
        // Whichever of the two requests comes first.
        fake.answer(Answer::text("A Fine Title")).answer(Answer::text("A Fine Title"));
        let (_, contents) = client.prompt(Some("c"), "Hi").await;
        if !contents.iter().any(|it| it["content"]["title"] == title) {
            client.until(|it| it["params"]["content"]["title"] == title).await;
        }
        client.prompt(Some("c"), "say 1 words").await;
        let models: Vec<_> = fake.requests().iter().map(|it| it.body["model"].clone()).collect();
        assert_eq!(models.len(), asked, "{models:?}");
        assert_eq!(models.iter().filter(|model| **model == "small").count(), usize::from(may), "{models:?}");
    }
}

#[tokio::test]
async fn a_stop_ends_the_turn_and_the_text_stays() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.answer(Answer::new().chunks(["Part one."]).silence());
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["content"]["text"] == "Part one.").await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    let rest = contents(&client.until(is_finished).await);
    assert!(system_text(&rest).contains("Stopped"), "{rest:?}");
    fake.wait_for_hangups(1).await;
    client.prompt(Some("c"), "say 1 words").await;
    assert!(fake.last_request().body.to_string().contains("Part one."), "the cut answer is sent along");
    // A stop when nothing runs does nothing, and a stop right behind a prompt is not lost.
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    fake.answer(Answer::text("x").silence());
    client.ask("chat/prompt", json!({"chatId": "c", "message": "again"})).await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    client.until(is_finished).await;
}

#[tokio::test]
async fn a_missing_key_says_what_to_set_and_the_turn_ends() {
    let home = Home::new();
    let config = json!({"defaultModel": "anthropic/claude-sonnet-4-5"});
    let mut client = Client::start(&home, &config).await;
    let (result, contents) = client.prompt(None, "Hi").await;
    assert_eq!(result["status"], "login", "{result}");
    let said = system_text(&contents);
    assert!(said.contains("ANTHROPIC_API_KEY"), "{said}");
    // What was typed is kept, under a name that tells it from others.
    let listed = client.request("chat/list", json!({})).await;
    assert_eq!(listed["chats"][0]["title"], "Hi", "{listed}");
}

#[tokio::test]
async fn a_refused_key_is_said_without_showing_it() {
    for api in APIS {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        fake.answer(
            Answer::status(401)
                .body(json!({"error": {"message": "bad key sk-secret-of-the-test"}}).to_string()),
        );
        let mut client = Client::start(&home, &fake_provider(fake.url(), api)).await;
        let (result, contents) = client.prompt(None, "Hi").await;
        assert_eq!(result["status"], "login", "{api}: {result}");
        let said = system_text(&contents);
        assert!(said.to_lowercase().contains("key") && !said.contains("sk-secret"), "{api}: {said}");
        // Who answers again is believed again, and is answered before the model.
        fake.answer(Answer::text("hello"));
        assert_eq!(client.prompt(Some("mine"), "Hi").await.0["status"], "prompting", "{api}");
        fake.answer(Answer::new().silence());
        let result = client.request("chat/prompt", json!({"chatId": "mine", "message": "Hi"})).await;
        assert_eq!(result["status"], "prompting", "{api}");
    }
}

#[tokio::test]
async fn a_model_that_thinks_delays_no_response_for_long() {
    for chat in [None, Some("mine")] {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        fake.answer(Answer::new().silence());
        let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
        let id = client.ask("chat/prompt", json!({"chatId": chat, "message": "Hi"})).await;
        let seen = client.until(|it| it["id"] == json!(id)).await;
        assert_eq!(seen.last().expect("a response")["result"]["status"], "prompting");
        let is_content = |it: &&Value| it["method"] == "chat/contentReceived";
        // Who made the id sees the chat at once; who learns it from the response, after it.
        assert_eq!(seen.iter().any(|it| is_content(&it)), chat.is_some(), "{seen:#?}");
        if chat.is_none() {
            let after = client.until(|it| it["params"]["content"]["text"] == "Waiting model").await;
            assert_eq!(after.iter().find(is_content).expect("the echo")["params"]["role"], "user");
        }
    }
}

#[tokio::test]
async fn a_prompt_is_answered_though_its_client_goes() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.answer(Answer::new().silence());
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let id = client.ask("chat/prompt", json!({"chatId": "mine", "message": "Hi"})).await;
    fake.wait_for_requests(1).await;
    client.close_stdin();
    let last = client.until(|it| it["id"] == json!(id)).await;
    assert_eq!(last.last().expect("a response")["result"]["status"], "prompting");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_and_shown() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.answer(Answer::status(429).header("retry-after", "1"));
    fake.answer(Answer::text("done"));
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let (_, contents) = client.prompt(None, "Hi").await;
    assert_eq!(answer(&contents), "done");
    let waits = outline(&contents).iter().filter(|line| line.starts_with("system progress: ")).count();
    assert!(waits >= 3, "waiting, the wait, generating: {:#?}", outline(&contents));
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn a_cut_stream_keeps_what_came_and_says_so() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.answer(Answer::text("half an ans").cut());
    let mut client = Client::start(&home, &fake_provider(fake.url(), "anthropic")).await;
    let (_, contents) = client.prompt(None, "Hi").await;
    assert_eq!(answer(&contents), "half an ans");
    assert!(!system_text(&contents).is_empty());
}

#[tokio::test]
async fn bad_messages_are_answered_and_the_connection_goes_on() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    client.send_bytes(b"Content-Length: 5\r\n\r\n{\"a\":").await;
    let error = client.until(|it| it.get("error").is_some()).await;
    assert_eq!(error.last().expect("an error")["error"]["code"], -32700);
    let unknown = client.response("chat/noSuchThing", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let deep = (0..200).fold(json!([]), |inner, _| json!([inner]));
    for params in [
        json!({"message": 5}),
        json!(["c", "a message by its place"]),
        json!({"message": "hi", "contexts": deep}),
    ] {
        let wrong = client.response("chat/prompt", params.clone()).await;
        assert_eq!(wrong["error"]["code"], -32602, "{params}");
    }
    assert_eq!(client.request("chat/list", json!([])).await["chats"], json!([]), "an empty table of Lua");
    for empty in [json!({}), json!({"message": " \n"}), json!({"chatId": "c", "message": "", "contexts": []})]
    {
        let refused = client.request("chat/prompt", empty.clone()).await;
        assert_eq!(refused["status"], "error", "{empty}");
        let said = system_text(&contents(&client.until(is_finished).await));
        assert!(said.contains("empty"), "{empty}: {said}");
    }
    assert!(fake.requests().is_empty());
    let (_, contents) = client.prompt(None, "say 1 words").await;
    assert!(answer(&contents).contains("word1"));
}

#[tokio::test]
async fn an_unknown_behavior_is_refused_and_the_known_ones_are_named() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let known = "\"nonsense\". Choose one of these: agent, plan.";
    for field in ["behavior", "agent"] {
        let prompt = json!({"chatId": "c", "message": "hi", field: "nonsense"});
        let (result, contents) = client.prompt_with(prompt).await;
        assert_eq!(result["status"], "error", "{result}");
        assert!(system_text(&contents).contains(known), "{contents:?}");
    }
    let listed = client.request("chat/list", json!({})).await;
    assert_eq!(listed["chats"], json!([]), "nothing is left of it");
    // Said to a person also where a client does not wait for an answer.
    client.notify("chat/selectedAgentChanged", json!({"agent": "nonsense"})).await;
    let said = client.until(|it| it["method"] == "$/showMessage").await.pop().expect("a message");
    assert!(said["params"]["message"].as_str().expect("text").contains(known), "{said}");
    let wrong = client.response("chat/selectedAgentChanged", json!({"agent": "nonsense"})).await;
    assert_eq!(wrong["error"]["code"], -32602);
    assert!(fake.requests().is_empty());
    let (_, contents) = client.prompt(Some("c"), "say 1 words").await;
    assert!(answer(&contents).contains("word1"), "the chat's name is not used up");
}

#[tokio::test]
async fn requests_grow_only_at_their_end() {
    for api in APIS {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut client = Client::start(&home, &fake_provider(fake.url(), api)).await;
        for turn in 0..4 {
            fake.answer(Answer::new().reasoning("hm").say(&format!("answer {turn}")));
            client.prompt(Some("c"), &format!("question {turn}")).await;
        }
        let requests = fake.requests();
        for pair in requests.windows(2) {
            let (before, after) = (prefix(&pair[0].body), prefix(&pair[1].body));
            assert!(after.len() > before.len(), "{api}");
            assert_eq!(before, after[..before.len()], "{api}: the cached prefix changed");
        }
    }
}

/// System, tools and messages as one list, cache markers removed.
fn prefix(body: &Value) -> Vec<String> {
    let mut list = Vec::new();
    for member in ["system", "instructions", "tools", "messages", "input"] {
        match &body[member] {
            Value::Array(elements) => {
                list.extend(elements.iter().map(|it| without_marks(it.clone()).to_string()))
            }
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                list.push(body[member].to_string());
            }
        }
    }
    list
}

fn without_marks(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(key, _)| key != "cache_control")
                .map(|(key, value)| (key, without_marks(value)))
                .collect(),
        ),
        Value::Array(values) => Value::Array(values.into_iter().map(without_marks).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[tokio::test]
async fn a_chat_is_listed_opened_again_and_deleted() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "anthropic");
    fake.answer(Answer::new().reasoning("hm").say("It is blue."));
    let mut client = Client::start(&home, &config).await;
    let (_, live) = client.prompt(Some("c1"), "What color?").await;
    assert!(client.end().await.success());

    let mut client = Client::start(&home, &config).await;
    let listed = client.request("chat/list", Value::Null).await;
    assert_eq!(listed["chats"][0]["id"], "c1");
    assert_eq!(listed["chats"][0]["title"], "What color?");
    assert_eq!(listed["chats"][0]["messageCount"], 2);
    let id = client.ask("chat/open", json!({"chatId": "c1", "limit": 50})).await;
    let messages = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    let opened = messages.last().expect("a response")["result"].clone();
    assert_eq!((&opened["found"], &opened["title"]), (&json!(true), &json!("What color?")));
    let methods: Vec<&str> = messages.iter().filter_map(|it| it["method"].as_str()).collect();
    let place = |method: &str| methods.iter().position(|it| *it == method);
    assert!(
        place("chat/cleared") < place("chat/opened") && place("chat/opened") < place("chat/contentReceived")
    );
    // A replayed chat shows what the live one showed, status lines aside.
    let steady = |contents: &[Value]| -> Vec<String> {
        outline(contents).into_iter().filter(|line| !line.starts_with("system progress")).collect()
    };
    let mut shown = steady(&live);
    let mut replayed = steady(&contents(&messages));
    shown.sort();
    replayed.sort();
    assert_eq!(shown, replayed);

    let gone = client.request("chat/delete", json!({"chatId": "c1"})).await;
    assert_eq!(gone, json!({}));
    assert_eq!(client.request("chat/list", Value::Null).await["chats"], json!([]));
    assert_eq!(client.request("chat/open", json!({"chatId": "c1"})).await["found"], false);
}

#[tokio::test]
async fn a_rollback_and_a_clear_show_what_is_left() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::new().chunks(["first answer"]));
    client.prompt(Some("c"), "first").await;
    fake.answer(Answer::new().chunks(["second answer"]));
    let (_, second) = client.prompt(Some("c"), "second").await;
    let id = second.iter().find(|it| it["role"] == "user").expect("the echo")["content"]["contentId"].clone();
    client
        .request("chat/rollback", json!({"chatId": "c", "contentId": id, "include": ["messages", "tools"]}))
        .await;
    let messages = client.until(|it| it["params"]["content"]["text"] == "first answer").await;
    assert!(messages.iter().any(|it| it["method"] == "chat/cleared"));
    client.until(is_finished).await;
    client.prompt(Some("c"), "third").await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("first answer") && !sent.contains("second answer"), "{sent}");
    client.request("chat/clear", json!({"chatId": "c", "messages": true})).await;
    client.until(|it| it["method"] == "chat/cleared").await;
    client.prompt(Some("c"), "fourth").await;
    let sent = fake.last_request().body.to_string();
    assert!(!sent.contains("first answer") && sent.contains("fourth"), "{sent}");
}

/// Whoever reads that a turn is over may type at once.
#[tokio::test]
async fn a_prompt_sent_the_moment_a_turn_ends_is_taken() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    for turn in 0..100 {
        let (result, _) = client.prompt(Some("c"), "say 1 words").await;
        assert_eq!(result["status"], "prompting", "turn {turn}");
    }
}

/// One process holds a chat; another one works in it, may not delete it, and goes on in a fork.
#[tokio::test]
async fn a_chat_that_another_process_holds_is_shared_and_forked() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut writer = Client::start(&home, &config).await;
    writer.prompt(Some("c"), "say 1 words").await;
    let mut reader = Client::start(&home, &config).await;
    let opened = reader.request("chat/open", json!({"chatId": "c"})).await;
    assert_eq!(opened["found"], true);
    writer.prompt(Some("c"), "say 3 words").await;
    reader.until(|it| it["params"]["content"]["text"] == json!("say 3 words\n")).await;
    reader.until(is_finished).await;
    let (result, _) = reader.prompt(Some("c"), "say 4 words").await;
    assert_eq!(result["status"], "prompting");
    writer.until(is_finished).await;
    let holder = format!("process {}", writer.child.id().expect("a running child"));
    // It is not deleted under the one who writes it, and it is followed as before.
    let kept = reader.response("chat/delete", json!({"chatId": "c"})).await;
    assert!(kept["error"]["message"].as_str().is_some_and(|text| text.contains(&holder)), "{kept}");
    writer.prompt(Some("c"), "say 2 words").await;
    reader.until(|it| it["params"]["content"]["text"] == json!("say 2 words\n")).await;
    reader.until(is_finished).await;
    let fork = reader.request("chat/fork", json!({"chatId": "c"})).await;
    let own = fork["chatId"].as_str().expect("a chat").to_owned();
    assert_ne!(own, "c");
    reader.prompt(Some(&own), "and here").await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("say 3 words") && sent.contains("and here"), "{sent}");
}
