//! Slash commands that ECA has beside those of its first pages.

use serde_json::json;
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, is_finished, system_text};

#[tokio::test]
async fn a_question_beside_the_chat_is_not_sent_again() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("The first answer."));
    client.prompt(Some("c"), "the first question").await;
    fake.answer(Answer::text("By the way: 42."));
    let (_, shown) = client.prompt(Some("c"), "/btw what is six times seven").await;
    assert!(system_text(&shown).contains("By the way: 42."), "{shown:#?}");
    let asked = fake.last_request();
    let text = asked.body.to_string();
    assert!(text.contains("The first answer.") && text.contains("what is six times seven"), "{text}");
    assert!(asked.tools().is_empty(), "{:?}", asked.tools());
    fake.answer(Answer::text("Third."));
    client.prompt(Some("c"), "the third question").await;
    let text = fake.last_request().body.to_string();
    assert!(
        text.contains("The first answer.") && !text.contains("42") && !text.contains("six times"),
        "{text}"
    );
    let (_, empty) = client.prompt(Some("c"), "/btw").await;
    assert!(system_text(&empty).contains("There is no question."), "{empty:#?}");
    let (_, costs) = client.prompt(Some("c"), "/costs").await;
    assert!(system_text(&costs).contains("btw"), "it is paid: {costs:#?}");
    let (_, listed) = client.prompt(Some("d"), "/chats").await;
    assert!(system_text(&listed).contains("(c)"), "{listed:#?}");
    let (_, listed) = client.prompt(Some("d"), "/chats no such words").await;
    assert!(!system_text(&listed).contains("(c)"), "{listed:#?}");
}

#[tokio::test]
async fn instructions_are_read_anew_where_the_user_asks() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    home.write("work/AGENTS.md", "Be brief.");
    let mut client = Client::start(&home, &config).await;
    let mut system = Vec::new();
    for prompt in ["one", "two", "/sync-system-prompt", "three"] {
        if !prompt.starts_with('/') {
            fake.answer(Answer::text("Yes."));
        }
        client.prompt(Some("c"), prompt).await;
        system.push(fake.last_request().system());
        home.write("work/AGENTS.md", "Be long.");
    }
    assert!(system[0].contains("Be brief.") && system[1] == system[0], "the provider's cache holds");
    assert!(system[3].contains("Be long."), "{}", system[3]);
}

#[tokio::test]
async fn commands_of_eca_that_are_elsewhere_say_where() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    for (command, words) in [
        ("/delete-chat c", "dragoman chats delete"),
        ("/import chat.md", "dragoman import"),
        ("/debug-chat", "dragoman chats show"),
        ("/remote", "not part of Dragoman"),
    ] {
        let (_, shown) = client.prompt(Some("c"), command).await;
        assert!(system_text(&shown).contains(words), "{command}: {shown:#?}");
    }
    assert!(fake.requests().is_empty());
}

/// With the setting that happens for every prompt.
#[tokio::test]
async fn instructions_are_read_anew_for_each_prompt_where_the_settings_say_so() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false, "autoSyncSystemPrompt": true});
    let mut client = Client::start(&home, &config).await;
    for text in ["Be brief.", "Be long."] {
        home.write("work/AGENTS.md", text);
        fake.answer(Answer::text("Yes."));
        client.prompt(Some("c"), "one").await;
        assert!(fake.last_request().system().contains(text), "{text}");
    }
}

/// The client learns of it, because it sends its own selection with the next prompt.
#[tokio::test]
async fn an_agent_is_chosen_by_a_command() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let (_, shown) = client.prompt(Some("c"), "/agent").await;
    assert!(
        system_text(&shown).contains("Now: agent") && system_text(&shown).contains("- plan"),
        "{shown:#?}"
    );
    client.ask("chat/prompt", json!({"chatId": "c", "message": "/agent plan"})).await;
    let messages = client.until(is_finished).await;
    let told = messages.iter().find(|it| it["method"] == "config/updated").expect("the selection");
    let expected = json!({"chatId": "c", "chat": {"selectAgent": "plan"}});
    assert_eq!(told["params"], expected);
    fake.answer(Answer::text("Planned."));
    client.prompt(Some("c"), "go").await;
    assert!(fake.last_request().body.to_string().contains("You are planning"));
    let (_, shown) = client.prompt(Some("c"), "/agent nobody").await;
    assert!(system_text(&shown).contains("agent, plan"), "{shown:#?}");
}

/// The text of a command is said to the running turn; a command of the program is not, so that the client sends it later.
#[tokio::test]
async fn a_steered_command_is_its_text_or_waits() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write(".config/eca/commands/tone.md", "Answer in the tone of $ARGUMENTS.");
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let gate = testkit::Gate::new();
    fake.answer(Answer::new().say("One.").gate(&gate)).answer(Answer::text("Two."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["role"] == "assistant").await;
    let refused = client.response("chat/promptSteer", json!({"chatId": "c", "message": "/compact"})).await;
    assert!(
        refused["error"]["message"].as_str().is_some_and(|it| it.contains("while the chat")),
        "{refused}"
    );
    client.request("chat/promptSteer", json!({"chatId": "c", "message": "/tone a pirate"})).await;
    gate.open();
    client.until(is_finished).await;
    assert_eq!(fake.last_request().last_user_text(), "Answer in the tone of a pirate.");
}

/// The page about ECA has a row for every command.
#[tokio::test]
async fn every_command_is_documented() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let page = include_str!("../../../../docs/protocols/eca.md");
    let listed = client.request("chat/queryCommands", json!({"chatId": "c", "query": ""})).await;
    let commands = listed["commands"].as_array().expect("commands");
    let native: Vec<&str> =
        commands.iter().filter(|it| it["type"] == "native").filter_map(|it| it["name"].as_str()).collect();
    assert!(native.len() > 30, "{native:?}");
    for name in native {
        assert!(page.contains(&format!("`/{name}`")), "/{name} is not in docs/protocols/eca.md");
    }
}
