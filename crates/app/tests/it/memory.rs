//! Memory across chats, from outside.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, is_finished, system_text};

/// What `/memory …` answers.
async fn command(client: &mut Client, chat: &str, line: &str) -> String {
    let (_, messages) = client.prompt(Some(chat), line).await;
    system_text(&messages)
}

#[tokio::test]
async fn a_fact_of_one_chat_is_known_in_the_next_and_can_be_read() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("noted"));
    let empty = client.request("memory/list", json!({})).await;
    assert_eq!(empty, json!({"memories": [], "skipped": []}));
    client.prompt(Some("one"), "remember that the tests need PostgreSQL").await;
    assert!(!fake.last_request().system().contains("Memory"), "nothing was there when the chat began");
    let listed = client.request("memory/list", Value::Null).await;
    let memory = &listed["memories"][0];
    assert_eq!(memory["description"], "the tests need PostgreSQL");
    assert_eq!((&memory["tier"], memory["mtimeMs"].is_u64()), (&json!("global"), true));
    let path = memory["path"].as_str().expect("a path").to_owned();
    let text = std::fs::read_to_string(&path).expect("a file");
    assert!(text.contains("chat: one\n") && text.contains("date: 20"), "{text}");

    // Another chat has it in its first request, and reads the file without a question.
    fake.answer(Answer::tool_call("c1", "eca__read_file", json!({"path": path})));
    fake.answer(Answer::text("I know."));
    client.ask("chat/prompt", json!({"chatId": "two", "message": "what do the tests need?"})).await;
    let mut messages = client.until(is_finished).await;
    let is_index = |message: &Value| message["method"] == "memory/indexLoaded";
    if !messages.iter().any(is_index) {
        messages = client.until(is_index).await;
    }
    let told: Vec<Value> = messages.into_iter().filter(|message| is_index(message)).collect();
    assert_eq!(
        (&told[0]["params"]["count"], &told[0]["params"]["totalCount"], &told[0]["params"]["chatId"]),
        (&json!(1), &json!(1), &json!("two"))
    );
    let first = &fake.requests()[1];
    let system = first.system();
    let start = system.find("Memory (").expect("an index");
    let index = system[start..].split("\n\n").next().expect("a paragraph");
    assert!(index.contains("the tests need PostgreSQL") && index.len() <= 400, "{index}");
    assert!(
        fake.last_request().tool_results()[0].contains("PostgreSQL"),
        "{:?}",
        fake.last_request().tool_results()
    );

    let shown = command(&mut client, "two", "/memory").await;
    assert!(shown.contains("1. the tests need PostgreSQL"), "{shown}");
    assert!(command(&mut client, "two", "/memory project use pnpm").await.contains("Kept"));
    assert!(home.workspace().join(".dragoman/memory/use-pnpm.md").is_file());
    assert!(command(&mut client, "two", "/memory export").await.contains("- use pnpm ("));
    assert!(command(&mut client, "two", "/memory forget use-pnpm").await.contains("Removed"));
    let refused = client.prompt(Some("two"), "/memory add API_KEY=abcdefghijkl0123").await.1;
    assert!(format!("{refused:?}").contains("looks like a key"), "{refused:?}");
}

#[tokio::test]
async fn the_model_proposes_and_a_tainted_chat_needs_a_word() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let memory = home.path().join(".local/share/dragoman/memory");
    home.write("work/AGENTS.md", "Words of strangers.\n");
    for (is_tainted, trusts) in [(true, None), (false, Some("1"))] {
        let _ = std::fs::remove_dir_all(&memory);
        let mut start: tokio::process::Command = home.command(&["server"]).into();
        start.env("DRAGOMAN_CONFIG", config.to_string());
        if let Some(trusts) = trusts {
            start.env("DRAGOMAN_TRUST", trusts);
        }
        let mut client = Client::spawn_with(start);
        client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
        fake.answer(Answer::text("It is so. <memory>The port is 4000</memory>"));
        let chat = format!("chat-{is_tainted}");
        let (_, messages) = client.prompt(Some(&chat), "which port?").await;
        let shown = system_text(&messages);
        let files = || std::fs::read_dir(&memory).map_or(0, |entries| entries.count());
        assert_eq!(files(), usize::from(!is_tainted), "{shown}");
        if is_tainted {
            assert!(shown.contains("/memory keep 1"), "{shown}");
            assert!(command(&mut client, &chat, "/memory keep 1").await.contains("Kept in memory"));
            assert_eq!(files(), 1);
        }
    }
}

#[tokio::test]
async fn consolidation_is_a_diff_that_the_user_applies() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::start(&home, &config).await;
    for fact in ["likes tabs", "prefers tabs over spaces", "uses fish"] {
        command(&mut client, "c", &format!("/memory add {fact}")).await;
    }
    fake.answer(Answer::text("## user\n- prefers tabs over spaces\n- uses fish\n## project\n"));
    let shown = command(&mut client, "c", "/memory-consolidate").await;
    assert!(shown.contains("- user: likes tabs") && !shown.contains("+ "), "{shown}");
    let count = async |client: &mut Client| {
        let listed = client.request("memory/list", Value::Null).await;
        listed["memories"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(count(&mut client).await, 3, "nothing has changed yet");
    assert!(command(&mut client, "c", "/memory apply").await.contains("1 are removed"));
    assert_eq!(count(&mut client).await, 2);
}

#[tokio::test]
async fn facts_go_with_their_chat_by_choice_and_memory_can_be_off() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for (setting, left) in [(false, 1), (true, 0)] {
        let mut config = fake_provider(fake.url(), "openai-chat");
        config["memory"] = json!({"deleteWithChats": setting});
        let mut client = Client::start(&home, &config).await;
        command(&mut client, "gone", "/memory add a fact of one chat").await;
        client.request("chat/delete", json!({"chatId": "gone"})).await;
        let listed = client.request("memory/list", Value::Null).await;
        assert_eq!(listed["memories"].as_array().map(Vec::len), Some(left), "{listed}");
    }
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["memory"] = json!({"enabled": false});
    let mut client = Client::start(&home, &config).await;
    let listed = client.request("memory/list", Value::Null).await;
    assert_eq!(listed["error"]["code"], "memory-disabled");
    let (_, messages) = client.prompt(Some("c"), "/memory").await;
    assert!(format!("{messages:?}").contains("switched off"));
}
