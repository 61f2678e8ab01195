//! Chats: their ids, opening them, dropping their messages.

use domain::command::{RollbackScope, SessionSettings};
use domain::item::ItemKind;
use domain::{Fact, ItemId, Outcome, SessionId, TurnId};
use serde_json::{Value, json};
use testkit::fake_engine::item;
use testkit::{FakeEngine, Seen};

use crate::client::Client;

/// A stored chat with two questions and answers; the questions are items 1 and 3.
fn store(engine: &FakeEngine, id: &str, settings: SessionSettings) -> SessionId {
    let session = SessionId::new(id);
    let user = |id, turn, text: &str| Fact::ItemEnded {
        item: item(id, TurnId(turn), ItemKind::UserMessage { text: text.into(), parts: Vec::new() }),
    };
    let said = |id, turn, text: &str| Fact::ItemEnded {
        item: item(
            id,
            TurnId(turn),
            ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None },
        ),
    };
    let started = |turn| Fact::TurnStarted { turn: TurnId(turn), model: "a/plain".into() };
    let ended = |turn| Fact::TurnEnded { turn: TurnId(turn), outcome: Outcome::Done };
    let facts = vec![
        started(1),
        user(1, 1, "First"),
        said(2, 1, "One"),
        ended(1),
        started(2),
        user(3, 2, "Second"),
        said(4, 2, "Two"),
        ended(2),
    ];
    engine.store(&session, settings, "/w", facts);
    session
}

fn is_response(id: u64) -> impl Fn(&Value) -> bool {
    move |it| it["id"] == json!(id) && it.get("method").is_none()
}

fn texts(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|it| it["params"]["content"]["text"].as_str()).collect()
}

#[tokio::test]
async fn a_rollback_sends_its_contents_before_its_response() {
    let (mut client, mut engine) = Client::start().await;
    store(&engine, "c", SessionSettings::default());
    client.request("chat/open", json!({"chatId": "c"})).await;
    engine.next().await;
    client.until(|it| it["params"]["content"]["text"] == "Two").await;
    let params = json!({"chatId": "c", "contentId": "item-3", "include": ["messages"]});
    let id = client.call("chat/rollback", params).await;
    let messages = client.until(is_response(id)).await;
    assert_eq!(
        engine.next().await,
        Seen::Rollback {
            session: SessionId::new("c"),
            from: Some(ItemId(3)),
            scope: RollbackScope::Messages
        }
    );
    let cleared = messages.iter().position(|it| it["method"] == "chat/cleared").unwrap();
    assert_eq!(texts(&messages[cleared..]), ["First\n", "One"]);
    assert!(messages.last().unwrap().get("error").is_none());
    // And not a second time.
    let id = client.call("chat/clear", json!({"chatId": "c", "messages": true})).await;
    let messages = client.until(is_response(id)).await;
    let cleared: Vec<&Value> = messages.iter().filter(|it| it["method"] == "chat/cleared").collect();
    assert_eq!(cleared.len(), 1, "{messages:#?}");
    assert_eq!(texts(&messages), Vec::<&str>::new());
}

#[tokio::test]
async fn a_rollback_does_what_include_asks_for() {
    let (mut client, mut engine) = Client::start().await;
    store(&engine, "c", SessionSettings::default());
    client.request("chat/open", json!({"chatId": "c"})).await;
    engine.next().await;
    let rollback = |include: Value| json!({"chatId": "c", "contentId": "item-3", "include": include});
    for (include, expected) in [
        (json!(["tools"]), RollbackScope::Files),
        (json!(["messages", "tools"]), RollbackScope::Both),
        (json!(["messages"]), RollbackScope::Messages),
        (json!([]), RollbackScope::Messages),
    ] {
        let id = client.call("chat/rollback", rollback(include)).await;
        client.until(is_response(id)).await;
        let Seen::Rollback { scope, .. } = engine.next().await else { panic!("a rollback") };
        assert_eq!(scope, expected);
    }
}

#[tokio::test]
async fn a_number_names_a_chat_of_this_connection_only() {
    let (mut client, mut engine) = Client::start().await;
    store(&engine, "1", SessionSettings::default());
    let id = client.call("chat/prompt", json!({"chatId": 1, "message": "Hello"})).await;
    let Seen::Open { session, .. } = engine.next().await else { panic!("a chat is opened") };
    assert_ne!(session.as_str(), "1", "a stored chat is not meant");
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&session, turn, 1, "Hello");
    engine.say(&session, turn, 2, "Hi");
    engine.end(&session, turn, Outcome::Done);
    let messages = client.until(|it| it["params"]["content"]["state"] == "finished").await;
    let response = messages.iter().find(|it| is_response(id)(it)).unwrap();
    assert_eq!(response["result"]["chatId"], 1);
    let contents = messages.iter().filter(|it| it["method"] == "chat/contentReceived");
    assert!(contents.clone().count() > 1 && contents.clone().all(|it| it["params"]["chatId"] == 1));
    // The second prompt continues the same chat.
    client.call("chat/prompt", json!({"chatId": 1, "message": "Again"})).await;
    let (again, _, _) = engine.prompt().await;
    assert_eq!(again, session);
    // An unknown number is no chat.
    let opened = client.request("chat/open", json!({"chatId": 7})).await;
    assert_eq!(opened, json!({"found": false, "chatId": 7}));
    client.notify("chat/promptStop", json!({"chatId": 1})).await;
    assert_eq!(engine.next().await, Seen::Cancel { session });
}

#[tokio::test]
async fn an_opened_chat_names_its_model_and_variants_even_when_there_are_none() {
    let (mut client, engine) = Client::start().await;
    let settings = |model: &str, variant: Option<&str>| SessionSettings {
        model: Some(model.into()),
        variant: variant.map(str::to_owned),
        ..SessionSettings::default()
    };
    store(&engine, "plain", settings("a/plain", None));
    store(&engine, "deep", settings("myProvider/deep", Some("high")));
    let plain = client.request("chat/open", json!({"chatId": "plain"})).await;
    assert_eq!(
        plain["selection"],
        json!({"model": "a/plain", "agent": "code", "variant": null, "variants": [], "trust": false})
    );
    let deep = client.request("chat/open", json!({"chatId": "deep"})).await;
    assert_eq!(deep["selection"]["variant"], "high");
    assert_eq!(deep["selection"]["variants"], json!(["low", "high"]));
}

#[tokio::test]
async fn the_response_to_a_slash_command_names_the_model() {
    let (mut client, mut engine) = Client::start().await;
    engine.set_accepted_model("");
    let answered = client.request("chat/prompt", json!({"chatId": "c", "message": "/costs"})).await;
    assert_eq!(answered, json!({"chatId": "c", "model": "a/plain", "status": "prompting"}));
    engine.next().await;
    engine.prompt().await;
    let params = json!({"chatId": "c", "message": "/costs", "model": "myProvider/deep"});
    let answered = client.request("chat/prompt", params).await;
    assert_eq!(answered["model"], "myProvider/deep");
}

#[tokio::test]
async fn a_fork_ends_with_the_message_that_the_client_names() {
    let (mut client, mut engine) = Client::start().await;
    let session = store(&engine, "c", SessionSettings::default());
    client.call("chat/fork", json!({"chatId": "c", "contentId": "item-2"})).await;
    assert_eq!(engine.next().await, Seen::Fork { session, until: Some(ItemId(2)) });
}

/// The newest page comes from the end of the journal; a client sees no difference to the whole of it.
#[tokio::test]
async fn the_newest_page_is_the_end_of_the_whole_chat() {
    let (mut client, engine) = Client::start().await;
    let session = SessionId::new("long");
    let kind = |turn: u64| ItemKind::AgentMessage {
        text: format!("answer {turn}"),
        interrupted: false,
        provider: None,
    };
    let turn = |turn: u64| {
        let question = ItemKind::UserMessage { text: format!("question {turn}"), parts: Vec::new() };
        [
            Fact::TurnStarted { turn: TurnId(turn), model: "a/plain".into() },
            Fact::ItemEnded { item: item(2 * turn - 1, TurnId(turn), question) },
            Fact::ItemEnded { item: item(2 * turn, TurnId(turn), kind(turn)) },
            Fact::TurnEnded { turn: TurnId(turn), outcome: Outcome::Done },
        ]
    };
    engine.store(&session, SessionSettings::default(), "/w", (1..=100).flat_map(turn).collect());
    let shown = |messages: &[Value]| -> Vec<Value> {
        messages
            .iter()
            .filter(|it| it["method"] == "chat/contentReceived")
            .map(|it| it["params"].clone())
            .collect()
    };
    let whole = client.call("chat/open", json!({"chatId": "long"})).await;
    let whole = shown(&client.until(is_response(whole)).await);
    let page = client.call("chat/open", json!({"chatId": "long", "limit": 10})).await;
    let page = client.until(is_response(page)).await;
    let texts = |contents: &[Value]| -> Vec<Value> {
        contents.iter().map(|it| it["content"]["text"].clone()).filter(Value::is_string).collect()
    };
    let (all, some) = (texts(&whole), texts(&shown(&page)));
    assert_eq!(some, all[all.len() - some.len()..]);
    assert_eq!(some[0], "question 96\n", "{some:?}");
    let meta = &page.last().unwrap()["result"]["meta"];
    let history = client.request("chat/history", json!({"chatId": "long", "limit": 10})).await;
    assert_eq!(*meta, history["meta"]);
}

#[tokio::test]
async fn what_is_said_of_a_chat_before_it_begins_holds_for_no_other() {
    let (mut client, mut engine) = Client::start().await;
    client.request("chat/update", json!({"chatId": "later", "trust": true})).await;
    assert!(matches!(engine.next().await, Seen::Load { .. }));
    client.call("chat/prompt", json!({"chatId": "other", "message": "Hello"})).await;
    assert!(matches!(engine.next().await, Seen::Open { .. }), "no default of new chats was changed");
    let (_, _, prompt) = engine.prompt().await;
    assert_eq!(prompt.change.trust, None);
    client.call("chat/prompt", json!({"chatId": "later", "message": "Hello"})).await;
    assert!(matches!(engine.next().await, Seen::Open { .. }));
    let (_, _, prompt) = engine.prompt().await;
    assert_eq!(prompt.change.trust, Some(true));
    // A stored chat gets it though it is not open here.
    let stored = store(&engine, "stored", SessionSettings::default());
    client.request("chat/update", json!({"chatId": "stored", "title": "New"})).await;
    assert!(matches!(engine.next().await, Seen::Load { .. }));
    let Seen::Configure { session, change } = engine.next().await else { panic!("a change") };
    assert_eq!((session, change.title.as_deref()), (Some(stored), Some("New")));
}

#[tokio::test]
async fn a_chat_or_a_message_that_is_not_there_is_said_in_the_result() {
    let (mut client, engine) = Client::start().await;
    store(&engine, "c", SessionSettings::default());
    let page = client.request("chat/history", json!({"chatId": "nowhere"})).await;
    assert_eq!(page["error"]["code"], "chat_not_found", "{page}");
    for unknown in ["zzz", "7"] {
        let forked = client.request("chat/fork", json!({"chatId": "c", "contentId": unknown})).await;
        assert!(forked.get("chatId").is_none(), "{forked}");
    }
}
