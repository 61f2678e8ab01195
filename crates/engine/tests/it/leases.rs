//! Two processes and one chat.

use std::time::Duration;

use domain::command::SessionSettings;
use domain::{Command, Fact, FailureKind, Outcome};
use serde_json::json;
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{calls, lines};

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
    let fork = follower
        .call(|session, reply| Command::Fork { session, until: None, id: None, reply })
        .await
        .unwrap();
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

/// A store on another machine cannot renew the lease: the tool stops before another process may write, and the turn goes
/// on when the store is back.
#[tokio::test(start_paused = true)]
async fn a_tool_stops_before_its_lease_ends_and_the_turn_goes_on() {
    for tool in ["eca__wait", "eca__stubborn"] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        bench.answers([ScriptedAnswer::call(tool, json!({})), ScriptedAnswer::text("on")]);
        client.prompt("go").await.unwrap();
        client.until_progress("Calling tool").await;
        bench.store.set_leases_at_risk(true);
        assert_eq!(client.turn_end().await, Outcome::Done, "{tool}");
        bench.store.set_leases_at_risk(false);
        let state = bench.check_state(&client.session).await;
        let call = &calls(&state)[0];
        assert!(call.error && call.state.is_over(), "{tool}");
        assert!(format!("{:?}", call.result).contains("another process"), "{tool}: {:?}", call.result);
        assert_eq!(lines(&state).last().map(String::as_str), Some("agent on"));
    }
}

/// A process that slept learns that another one has its chat before it commits anything.
#[tokio::test(start_paused = true)]
async fn a_lease_that_another_process_took_is_asked_for_again() {
    let bench = Bench::new();
    let mut first = bench.client().await;
    first.run("one").await;
    let other = bench.other_process();
    other.store.take_over(&first.session);
    bench.store.set_leases_at_risk(true);
    assert_eq!(first.prompt("two").await.unwrap_err().kind, FailureKind::Taken);
    bench.store.set_leases_at_risk(false);
    let mut second = other.join(&first.session).await;
    assert_eq!(second.run("three").await, Outcome::Done);
    assert_eq!(lines(&other.check_state(&second.session).await).len(), 4);
}

/// A store that does not answer for seconds is told of, and the turn ends well when it does.
#[tokio::test(start_paused = true)]
async fn a_store_that_takes_long_is_told_of() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("one").await;
    bench.store.set_commit_time(std::time::Duration::from_secs(60));
    client.prompt("two").await.unwrap();
    client.until_progress("The store of the chats does not answer; this chat waits for it").await;
    bench.store.set_commit_time(std::time::Duration::from_millis(1));
    assert_eq!(client.turn_end().await, Outcome::Done);
    assert_eq!(lines(&bench.check_state(&client.session).await).len(), 4);
}

/// Commands that come faster than the journal is looked at do not keep a follower from looking.
#[tokio::test(start_paused = true)]
async fn a_follower_that_gets_commands_all_the_time_follows() {
    let holder = Bench::new();
    let mut writer = holder.client().await;
    writer.run("one").await;
    let other = holder.other_process();
    let mut follower = other.join(&writer.session).await;
    assert!(follower.load().await.unwrap().held_by.is_some());
    let commands = (follower.commands.clone(), follower.session.clone());
    let busy = tokio::spawn(async move {
        loop {
            let _ = commands.0.send(Command::Cancel { session: commands.1.clone() }).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    writer.run("two").await;
    let started = tokio::time::Instant::now();
    assert_eq!(follower.turn_end().await, Outcome::Done);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    busy.abort();
}
