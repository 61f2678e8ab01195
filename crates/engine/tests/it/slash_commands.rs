//! Slash commands: each is a turn that a stop ends.

use domain::{Command, Outcome};

use crate::bench::Bench;
use crate::client::lines;

#[tokio::test(start_paused = true)]
async fn a_stop_is_heard_while_a_slow_command_runs() {
    for command in ["/doctor", "/login anthropic"] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        client.prompt(command).await.unwrap();
        assert!(client.load().await.unwrap().busy, "{command}: the chat answers other commands");
        client.cancel().await;
        assert_eq!(client.turn_end().await, Outcome::Stopped, "{command}");
        assert_eq!(client.run("hello").await, Outcome::Done);
        let state = bench.check_state(&client.session).await;
        assert_eq!(lines(&state), [&format!("command {command}"), "user hello", "agent ok"]);
    }
}

#[tokio::test(start_paused = true)]
async fn commands_answer_people_and_not_the_model() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let expected: [(&str, &[&str]); 7] = [
        ("/config", &["the settings"]),
        ("/login acme", &["sign in to acme"]),
        ("/costs", &["This chat: price unknown", "Tokens: 0 in"]),
        ("/repo-map-show", &["tree"]),
        ("/prompt-show", &["You are Dragoman", "<rule name=\"tidy\">", "style around it", "own commands"]),
        ("/model", &["Now: test/one", "- test/one"]),
        ("/model test/two", &["This chat now uses test/two."]),
    ];
    for (command, parts) in expected {
        assert_eq!(client.run(command).await, Outcome::Done, "{command}");
        let text = client.system_texts().pop().unwrap();
        for part in parts {
            assert!(text.contains(part), "{command}: {part:?} is missing in {text:?}");
        }
    }
    assert!(bench.models.prompts().is_empty(), "no model was asked");
    client.run("hello").await;
    assert_eq!(bench.models.prompts()[0].0, "test/two");
    assert_eq!(bench.last_sent(), ["user hello"]);
    assert!(matches!(client.run("/model nowhere/x").await, Outcome::Failed { .. }));
    bench.check_state(&client.session).await;
}

#[tokio::test(start_paused = true)]
async fn the_users_own_commands_and_init_are_prompts() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("/greet \"dear reader\" twice").await;
    assert_eq!(bench.last_sent(), ["user Say hello to dear reader (\"dear reader\" twice)."]);
    client.run("/init").await;
    assert!(bench.last_sent().last().unwrap().contains("AGENTS.md"));
    client.run("/unknown thing").await;
    assert_eq!(bench.last_sent().last().unwrap(), "user /unknown thing");
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state)[2], "user /init", "the user sees what was typed");
}

#[tokio::test(start_paused = true)]
async fn the_list_is_filtered_by_name_and_description() {
    let bench = Bench::new();
    let client = bench.client().await;
    let list = async |query: &str| -> Vec<String> {
        let query = query.to_owned();
        let list =
            client.call(|session, reply| Command::SlashCommands { session: Some(session), query, reply });
        list.await.unwrap().into_iter().map(|command| command.name).collect()
    };
    assert_eq!(list("/comp").await, ["compact"]);
    assert_eq!(list("money").await, ["costs"]);
    assert_eq!(list("greet").await, ["greet"]);
    assert_eq!(list("").await.len(), 40);
    // Commands that only say what to do instead are not listed.
    assert_eq!(list("plugin-").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn resume_takes_over_another_chat_once() {
    let bench = Bench::new();
    let mut old = bench.client().await;
    old.run("remember the milk").await;
    let mut client = bench.client().await;
    client.run("/resume").await;
    assert!(client.system_texts()[0].starts_with("1. remember the milk"), "{:?}", client.system_texts());
    assert_eq!(client.run("/resume 1").await, Outcome::Done);
    assert!(matches!(client.run("/resume 1").await, Outcome::Failed { .. }), "it has messages now");
    client.run("go on").await;
    assert_eq!(bench.last_sent(), ["user remember the milk", "agent ok", "user go on"]);
    let mut new = bench.client().await;
    assert!(matches!(new.run("/resume 9").await, Outcome::Failed { .. }));
    bench.check_state(&client.session).await;
}

/// Names of other assistants, and the commands that choose something for the chat.
#[tokio::test(start_paused = true)]
async fn commands_choose_for_the_chat_and_have_other_names() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let expected: [(&str, &[&str]); 9] = [
        ("/cost", &["This chat: price unknown"]),
        ("/settings", &["the settings"]),
        ("/rename  A  new title", &["called \"A new title\""]),
        ("/trust", &["asked about as the rules say"]),
        ("/trust on", &["run without questions from now on"]),
        ("/trust", &["`/trust off` ends it"]),
        ("/todos", &["no task list"]),
        ("/plan", &["works as plan"]),
        ("/effort", &["no levels of effort"]),
    ];
    for (command, parts) in expected {
        assert_eq!(client.run(command).await, Outcome::Done, "{command}");
        let text = client.system_texts().pop().unwrap();
        for part in parts {
            assert!(text.contains(part), "{command}: {part:?} is missing in {text:?}");
        }
    }
    let info = client.load().await.unwrap();
    assert_eq!(info.settings.title.as_deref(), Some("A new title"));
    assert_eq!((info.settings.trust, info.settings.behavior.as_deref()), (Some(true), Some("plan")));
    for wrong in ["/rename", "/trust perhaps", "/stats many"] {
        assert!(matches!(client.run(wrong).await, Outcome::Failed { .. }), "{wrong}");
    }
    assert!(bench.models.prompts().is_empty(), "no model was asked");
    bench.check_state(&client.session).await;
}
