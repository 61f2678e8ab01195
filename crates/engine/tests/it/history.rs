//! Rollback, fork, settings and titles.

use domain::command::SessionSettings;
use domain::{Command, Fact, Failure, Outcome};
use testkit::ScriptedAnswer;

use serde_json::json;

use crate::bench::Bench;
use crate::client::{Client, lines};

async fn chat(bench: &Bench) -> Client {
    let mut client = bench.client().await;
    for (prompt, answer) in [("one", "first"), ("two", "second"), ("three", "third")] {
        bench.models.answer(ScriptedAnswer::text(answer));
        assert_eq!(client.run(prompt).await, Outcome::Done);
    }
    client
}

const ALL: [&str; 6] = ["user one", "agent first", "user two", "agent second", "user three", "agent third"];

#[tokio::test(start_paused = true)]
async fn a_rollback_drops_the_rest_for_good() {
    for (from, left) in [(Some(2), 2), (Some(3), 3), (Some(0), 0), (None, 0)] {
        let bench = Bench::new();
        let mut client = chat(&bench).await;
        let state = bench.check_state(&client.session).await;
        let from = from.map(|at: usize| state.items()[at].id);
        client.rollback(from).await.unwrap();
        let state = bench.check_state(&client.session).await;
        assert_eq!(lines(&state), ALL[..left], "{from:?}");
        assert_eq!(client.run("four").await, Outcome::Done);
        let expected: Vec<&str> = ALL[..left].iter().copied().chain(["user four"]).collect();
        assert_eq!(bench.last_sent(), expected);
        let info = client.load().await.unwrap();
        assert_eq!(info.newest, bench.store.facts(&client.session).len() as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_is_refused_while_a_turn_runs_or_for_an_unknown_item() {
    let bench = Bench::new();
    let mut client = chat(&bench).await;
    assert!(client.rollback(Some(domain::ItemId(99))).await.is_err());
    client.prompt("/doctor").await.unwrap();
    assert!(client.rollback(None).await.is_err());
    client.cancel().await;
    client.turn_end().await;
    assert!(client.rollback(None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_its_own_way() {
    let bench = Bench::new();
    let client = chat(&bench).await;
    let state = bench.check_state(&client.session).await;
    for (until, left) in [(None, 6), (Some(1), 2), (Some(2), 3)] {
        let until = until.map(|at: usize| state.items()[at].id);
        let fork =
            client.call(|session, reply| Command::Fork { session, until, id: None, reply }).await.unwrap();
        assert_eq!(fork.settings.title.as_deref(), Some("one (fork)"));
        let mut fork = bench.join(&fork.id).await;
        let forked = bench.check_state(&fork.session).await;
        assert_eq!(lines(&forked), ALL[..left]);
        assert_eq!(forked.parent(), Some(&client.session));
        fork.run("elsewhere").await;
        let expected: Vec<&str> = ALL[..left].iter().copied().chain(["user elsewhere"]).collect();
        assert_eq!(bench.last_sent(), expected);
    }
    assert_eq!(lines(&bench.check_state(&client.session).await), ALL);
    let unknown = Some(domain::ItemId(99));
    assert!(
        client
            .call(|session, reply| Command::Fork { session, until: unknown, id: None, reply })
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn settings_are_kept_and_unknown_behaviors_refused() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let change =
        SessionSettings { behavior: Some("code".into()), variant: Some("high".into()), ..Default::default() };
    assert_eq!(client.configure(change).await.unwrap().behavior.as_deref(), Some("agent"));
    let unknown = SessionSettings { behavior: Some("pirate".into()), ..Default::default() };
    assert!(client.configure(unknown).await.unwrap_err().to_string().contains("agent, plan"));
    client.run("a title of its own makes a chat easy to find in a long list of other chats").await;
    assert_eq!(bench.models.prompts()[0].1.variant.as_deref(), Some("high"));
    let state = bench.check_state(&client.session).await;
    assert_eq!(
        state.settings().title.as_deref(),
        Some("a title of its own makes a chat easy to find in a long list…")
    );
    client.close().await.unwrap();
    let info = client.load().await.unwrap();
    assert_eq!(info.settings, *state.settings());
}

#[tokio::test(start_paused = true)]
async fn defaults_of_a_front_end_are_those_of_its_new_chats() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let change = SessionSettings { model: Some("test/two".into()), ..Default::default() };
    client.call(|_, reply| Command::Configure { session: None, change, reply }).await.unwrap();
    client.open().await.unwrap();
    client.run("hello").await;
    assert_eq!(bench.models.prompts()[0].0, "test/two");
}

#[tokio::test(start_paused = true)]
async fn a_small_model_writes_the_title_and_a_rule_does_where_it_cannot() {
    let unable = Failure::internal("The model is away.");
    let answers = [
        (ScriptedAnswer::text("\"A short title\"\n"), "A short title"),
        (ScriptedAnswer::text(" \n"), "the first words"),
        (ScriptedAnswer::fails(unable), "the first words"),
    ];
    for (answer, title) in answers {
        let bench = Bench::with_config(json!({"chat": {"title": true}}));
        bench.models.set_small_model("test/small", answer);
        let mut client = bench.client().await;
        client.prompt("the first words").await.unwrap();
        let title_is_set = |fact: &Fact| match fact {
            Fact::SessionChanged { change } => change.title.clone(),
            _ => None,
        };
        assert_eq!(client.until_fact(title_is_set).await, title);
        assert!(bench.models.prompts().iter().any(|(model, _)| model == "test/small"));
    }
}

fn set_title(fact: &Fact) -> Option<String> {
    match fact {
        Fact::SessionChanged { change } => change.title.clone(),
        _ => None,
    }
}

/// Without a cheaper model the chat's own makes the title: beside the answer, or after it where another prompt would push
/// the chat out of the server's only slot.
#[tokio::test(start_paused = true)]
async fn the_model_of_a_chat_makes_its_title_where_there_is_no_cheaper_one() {
    for single_slot in [false, true] {
        let bench = Bench::with_config(json!({"chat": {"title": true}}));
        bench.models.set_info(|info| info.single_slot = single_slot);
        bench.models.answer_titles("## Understand\nA  fine title");
        let mut client = bench.client().await;
        client.prompt("the first words").await.unwrap();
        assert_eq!(client.until_fact(set_title).await, "A fine title", "{single_slot}");
        // The answer may end after the title.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let prompts = bench.models.prompts();
        let [(_, first), (_, second)] = &prompts[..] else { panic!("{} requests", prompts.len()) };
        let (chat, title) = if first.tools.is_empty() { (second, first) } else { (first, second) };
        match single_slot {
            true => {
                assert_eq!((&title.system, title.tools.len()), (&chat.system, chat.tools.len()));
                assert_eq!(title.entries[..chat.entries.len()], chat.entries[..]);
                assert_eq!(title.entries.len(), chat.entries.len() + 2, "the answer and the request");
            }
            false => assert!(title.tools.is_empty() && title.entries.len() == 1),
        }
        // Once for a chat, and what is asked beside it is no part of it.
        client.run("and now").await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let last = bench.models.prompts().pop().unwrap().1;
        assert_eq!(bench.models.prompts().len(), 3);
        assert!(!format!("{:?}", last.entries).contains("title of at most"));
    }
}
