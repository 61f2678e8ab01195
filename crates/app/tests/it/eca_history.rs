//! The history of a chat in an ECA client: pages, bookmarks, forks.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, fake_provider};

/// A chat with this many questions, `question 1` and so on.
async fn chat_of(client: &mut Client, fake: &FakeModel, questions: usize) {
    for number in 1..=questions {
        fake.answer(Answer::text(&format!("answer {number}")));
        client.prompt(Some("c"), &format!("question {number}")).await;
    }
}

/// What a user reads: the texts of the user and of the model, and flags.
fn texts<'a>(contents: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut last_role = String::new();
    for content in contents {
        let (role, kind) = (content["role"].as_str().unwrap_or_default(), &content["content"]["type"]);
        let Some(text) = content["content"]["text"].as_str() else { continue };
        match texts.last_mut() {
            _ if role == "system" => {}
            _ if kind == "flag" => texts.push(format!("⚑ {text}")),
            Some(last) if role == "assistant" && last_role == "assistant" => last.push_str(text),
            _ => texts.push(text.trim_end().to_owned()),
        }
        last_role = role.to_owned();
    }
    texts
}

async fn until_response(client: &mut Client, method: &str, params: Value) -> (Vec<Value>, Value) {
    let id = client.ask(method, params).await;
    let messages = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    let response = messages.last().expect("a response").clone();
    assert!(response.get("error").is_none(), "{method}: {response}");
    (messages, response["result"].clone())
}

#[tokio::test]
async fn a_long_chat_is_opened_and_read_page_by_page() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::start(&home, &config).await;
    chat_of(&mut client, &fake, 4).await;
    client.end().await;

    let mut client = Client::start(&home, &config).await;
    let (messages, opened) =
        until_response(&mut client, "chat/open", json!({"chatId": "c", "limit": 3})).await;
    assert_eq!(texts(&contents(&messages)), ["answer 3", "question 4", "answer 4"]);
    let update = messages.iter().rev().find(|it| it["method"] == "config/updated").expect("the selection");
    let chat = &update["params"]["chat"];
    assert_eq!((&update["params"]["chatId"], &chat["selectTrust"]), (&json!("c"), &json!(false)));
    assert_eq!((&chat["selectModel"], &chat["selectAgent"]), (&json!("fake/m1"), &json!("code")));
    let meta = &opened["meta"];
    assert_eq!(
        (&meta["total"], &meta["returned"], &meta["afterCursor"]),
        (&json!(8), &json!(3), &Value::Null)
    );
    assert_eq!(meta["compactionCursor"], Value::Null);

    let page = client
        .request("chat/history", json!({"chatId": "c", "before": meta["beforeCursor"], "limit": 3}))
        .await;
    assert_eq!(
        texts(page["contents"].as_array().expect("contents")),
        ["question 2", "answer 2", "question 3"]
    );
    assert_eq!(page["meta"]["returned"], 3, "{page}");
    let rest = json!({"chatId": "c", "before": page["meta"]["beforeCursor"]});
    let first = client.request("chat/history", rest).await;
    assert_eq!(texts(first["contents"].as_array().expect("contents")), ["question 1", "answer 1"]);
    assert_eq!(first["meta"]["beforeCursor"], Value::Null);
    let forward = json!({"chatId": "c", "after": first["meta"]["afterCursor"], "limit": 1});
    let next = client.request("chat/history", forward).await;
    assert_eq!(texts(next["contents"].as_array().expect("contents")), ["question 2"]);

    // What is sent again after a change begins where the client's oldest page does.
    let user = &first["contents"][0]["content"]["contentId"];
    assert!(user.is_string(), "{first}");
    let gone = client.request("chat/history", json!({"chatId": "c", "before": "item-999"})).await;
    assert_eq!(gone["error"]["code"], "cursor_expired");
    let unknown = client.request("chat/history", json!({"chatId": "nowhere"})).await;
    assert_eq!(unknown["error"]["code"], "chat_not_found", "{unknown}");
}

#[tokio::test]
async fn the_last_compaction_is_a_cursor() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    chat_of(&mut client, &fake, 1).await;
    fake.answer(Answer::text("They talked."));
    client.prompt(Some("c"), "/compact").await;
    chat_of(&mut client, &fake, 1).await;
    let before = client.request("chat/history", json!({"chatId": "c", "before": "lastCompaction"})).await;
    assert_eq!(texts(before["contents"].as_array().expect("contents"))[..2], ["question 1", "answer 1"]);
    let after =
        client.request("chat/history", json!({"chatId": "c", "after": "lastCompaction", "limit": 50})).await;
    assert_eq!(texts(after["contents"].as_array().expect("contents")), ["question 1", "answer 1"]);
    assert!(after["meta"]["compactionCursor"].is_string(), "{after}");
    // The model can look up what the summary left out.
    fake.answer(Answer::tool_call("r", "eca__recall", json!({"query": "question 1"})))
        .answer(Answer::text("ok"));
    client.prompt(Some("c"), "what did I ask first?").await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("(user): question 1"), "{sent}");
}

#[tokio::test]
async fn a_flag_stands_in_its_place_and_a_fork_ends_there() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::start(&home, &config).await;
    chat_of(&mut client, &fake, 2).await;
    let (messages, _) = until_response(&mut client, "chat/open", json!({"chatId": "c"})).await;
    let shown = contents(&messages);
    let first =
        shown.iter().find(|it| it["role"] == "user").expect("a question")["content"]["contentId"].clone();
    let params = json!({"chatId": "c", "contentId": first, "text": "here it began"});
    let (messages, _) = until_response(&mut client, "chat/addFlag", params).await;
    assert!(messages.iter().any(|it| it["method"] == "chat/cleared"), "{messages:#?}");
    let shown = contents(&messages);
    let expected = ["question 1", "⚑ here it began", "answer 1", "question 2", "answer 2"];
    assert_eq!(texts(&shown), expected);
    let flag = shown.iter().find(|it| it["content"]["type"] == "flag").expect("the flag")["content"].clone();

    // It survives the process, and the model does not see it.
    fake.answer(Answer::text("answer 3"));
    client.prompt(Some("c"), "question 3").await;
    assert!(!fake.last_request().body.to_string().contains("here it began"));
    client.end().await;
    let mut client = Client::start(&home, &config).await;
    let (messages, _) = until_response(&mut client, "chat/open", json!({"chatId": "c"})).await;
    assert_eq!(texts(&contents(&messages))[..5], expected);

    let params = json!({"chatId": "c", "contentId": flag["contentId"]});
    let (messages, forked) = until_response(&mut client, "chat/fork", params.clone()).await;
    let fork = forked["chatId"].as_str().expect("an id").to_owned();
    let of =
        |chat: &str| contents(&messages).into_iter().filter(|it| it["chatId"] == chat).collect::<Vec<_>>();
    assert_eq!(texts(&of(&fork)), ["question 1", "⚑ here it began"]);
    let told = of("c");
    let told = told.iter().find(|it| it["role"] == "system").expect("a word in the first chat");
    assert!(told["content"]["text"].as_str().is_some_and(|text| text.contains("fork")), "{told}");

    client.request("chat/removeFlag", params).await;
    let (messages, _) = until_response(&mut client, "chat/open", json!({"chatId": "c"})).await;
    assert!(!texts(&contents(&messages)).iter().any(|text| text.contains('⚑')));
    for (content, text) in [(json!("item-999"), "x"), (first, "  "), (json!("nonsense"), "x")] {
        let params = json!({"chatId": "c", "contentId": content, "text": text});
        assert!(client.response("chat/addFlag", params).await.get("error").is_some(), "{content}");
    }
}

#[tokio::test]
async fn slash_commands_fork_export_and_show_the_context() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    chat_of(&mut client, &fake, 1).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "/fork"})).await;
    let messages = client.until(|it| it["method"] == "chat/opened").await;
    assert!(crate::client::system_text(&contents(&messages)).contains("Forked into"), "{messages:#?}");
    let fork = messages.last().expect("the fork")["params"]["chatId"].clone();
    let messages =
        client.until(|it| it["method"] == "config/updated" && it["params"]["chatId"] == fork).await;
    assert_eq!(texts(&contents(&messages)), ["question 1", "answer 1"]);
    let listed = client.request("chat/list", json!({})).await;
    assert_eq!(listed["chats"].as_array().map(Vec::len), Some(2), "{listed}");

    client.prompt(Some("c"), "/export chat.md").await;
    let text = std::fs::read_to_string(home.workspace().join("chat.md")).expect("the export");
    assert!(text.contains("## User\n\nquestion 1") && text.contains("## Assistant\n\nanswer 1"), "{text}");
    let (_, shown) = client.prompt(Some("c"), "/export chat.md").await;
    assert!(crate::client::system_text(&shown).contains("cannot be written"), "it writes over nothing");
    let (_, shown) = client.prompt(Some("c"), "/export ../chat.md").await;
    assert!(crate::client::system_text(&shown).contains("not a place inside"), "{shown:#?}");

    let (_, shown) = client.prompt(Some("c"), "/context").await;
    let text = crate::client::system_text(&shown);
    assert!(text.contains("System prompt") && text.contains("Conversation"), "{text}");
}

#[tokio::test]
async fn usage_says_what_fills_the_context_window() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["m1"] = json!({"limit": {"context": 1000, "output": 100}});
    let mut client = Client::start(&home, &config).await;
    let (_, shown) = client.prompt(Some("c"), "say 1 words").await;
    let usage = shown.iter().rev().find(|it| it["content"]["type"] == "usage").expect("a usage");
    let breakdown = &usage["content"]["contextBreakdown"];
    let categories = breakdown["categories"].as_array().expect("categories");
    let sum: u64 = categories.iter().filter_map(|it| it["tokens"].as_u64()).sum();
    assert_eq!(Some(sum), breakdown["usedTokens"].as_u64());
    assert_eq!(breakdown["usedTokens"], usage["content"]["sessionTokens"]);
    assert_eq!(breakdown["contextLimit"], 1000);
    assert_eq!(breakdown["freeTokens"].as_u64(), Some(1000 - sum));
    for category in categories {
        assert!(
            category["name"].is_string() && category["color"].is_string() && category["emoji"].is_string()
        );
    }
}
