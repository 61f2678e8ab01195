//! Two processes and one chat.

use domain::command::SessionSettings;
use domain::{Command, Fact, FailureKind, Outcome};

use crate::bench::Bench;
use crate::client::lines;

fn model(name: &str) -> SessionSettings {
    SessionSettings { model: Some(name.into()), ..SessionSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_settings_change_that_is_refused_is_not_shown() {
    let bench = Bench::new();
    let mut holder = bench.client().await;
    holder.run("hello").await;
    let other = bench.other_process();
    let follower = other.join(&holder.session).await;
    let refused = follower.configure(model("test/two")).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Taken);
    let info = follower.load().await.unwrap();
    assert_eq!(info.settings.model, None, "what was refused is not in force");
    assert!(info.held_by.is_some());
    assert_eq!(follower.prompt("me too").await.unwrap_err().kind, FailureKind::Taken);
    assert_eq!(follower.rollback(None).await.unwrap_err().kind, FailureKind::Taken);
}

#[tokio::test(start_paused = true)]
async fn a_follower_sees_what_the_holder_does_and_takes_over_when_it_closes() {
    let bench = Bench::new();
    let mut holder = bench.client().await;
    holder.run("one").await;
    let other = bench.other_process();
    let mut follower = other.join(&holder.session).await;
    holder.run("two").await;
    holder.configure(model("test/two")).await.unwrap();
    assert_eq!(follower.turn_end().await, Outcome::Done);
    follower.until_fact(|fact| matches!(fact, Fact::SessionChanged { .. }).then_some(())).await;
    assert_eq!(follower.load().await.unwrap().settings.model.as_deref(), Some("test/two"));
    holder.close().await.unwrap();
    assert!(!bench.store.holds_lease(&holder.session));
    assert_eq!(follower.run("three").await, Outcome::Done);
    let state = other.check_state(&follower.session).await;
    let expected = ["user one", "agent ok", "user two", "agent ok", "user three", "agent ok"];
    assert_eq!(lines(&state), expected);
    assert_eq!(other.models.prompts()[0].0, "test/two");
}

#[tokio::test(start_paused = true)]
async fn a_chat_of_another_process_can_be_forked_and_not_deleted() {
    let bench = Bench::new();
    let mut holder = bench.client().await;
    holder.run("one").await;
    let other = bench.other_process();
    let follower = other.join(&holder.session).await;
    let refused = follower.call(|session, reply| Command::Delete { session, reply }).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Taken);
    let fork = follower.call(|session, reply| Command::Fork { session, until: None, reply }).await.unwrap();
    let mut fork = other.join(&fork.id).await;
    assert_eq!(fork.run("two").await, Outcome::Done);
    assert_eq!(lines(&bench.check_state(&holder.session).await).len(), 2, "the other chat is as it was");
}

#[tokio::test(start_paused = true)]
async fn ids_are_never_used_again_after_a_hand_over() {
    let bench = Bench::new();
    let mut first = bench.client().await;
    first.run("one").await;
    first.rollback(None).await.unwrap();
    first.close().await.unwrap();
    let other = bench.other_process();
    let mut second = other.join(&first.session).await;
    second.run("two").await;
    let ids: Vec<u64> =
        other.check_state(&second.session).await.items().iter().map(|item| item.id.0).collect();
    assert_eq!(ids, [3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_fact_of_another_process_in_the_journal_ends_the_chat_here() {
    let bench = Bench::new();
    let mut holder = bench.client().await;
    holder.run("one").await;
    bench.check_state(&holder.session).await;
    bench.store.intrude(&holder.session, Fact::SessionChanged { change: model("test/two") });
    let refused = holder.configure(model("test/three")).await.unwrap_err();
    assert_eq!(refused.message, "Another process wrote to this chat.");
}
