//! One chat in the windows of several processes: the same suite over a link in memory and over a socket.

use std::time::Duration;

use domain::command::{FlagChange, SessionSettings, UserPrompt};
use domain::event::EventBody;
use domain::item::ItemKind;
use domain::{Abilities, Answer, Command, Fact, FailureKind, Outcome, ToolState};
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::{Client, calls, lines, person};
use crate::peers::TestPeers;

/// Every case on both kinds of links.
async fn check<F: Future<Output = ()>>(case: impl Fn(Bench, Bench) -> F) {
    for peers in [TestPeers::memory(), TestPeers::sockets()] {
        let holder = Bench::with_peers(peers);
        let other = holder.other_process();
        case(holder, other).await;
    }
}

async fn answer(client: &Client, ask: domain::AskId, answer: Answer) -> Answer {
    client.call(|session, reply| Command::Answer { session, ask, answer, reply }).await.unwrap()
}

fn facts(client: &Client) -> Vec<u64> {
    let facts = client.events.iter().filter_map(|event| match &event.body {
        EventBody::Fact(recorded) => Some(recorded.number),
        _ => None,
    });
    facts.collect()
}

#[tokio::test]
async fn a_window_of_another_process_prompts_and_sees_everything() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let mut second = other.join(&first.session).await;
        let info = second.load().await.unwrap();
        assert!(info.attached_to.is_some() && info.held_by.is_none(), "{info:?}");
        holder.answers([ScriptedAnswer::text("from the holder")]);
        assert_eq!(second.run("two").await, Outcome::Done);
        assert_eq!(first.turn_end().await, Outcome::Done);
        assert!(other.models.prompts().is_empty(), "the holder's models answer");
        let expected = ["user one", "agent ok", "user two", "agent from the holder"];
        assert_eq!(lines(&holder.check_state(&first.session).await), expected);
        assert_eq!(lines(&other.check_state(&first.session).await), expected);
        let deltas = |client: &Client| {
            client.events.iter().filter(|event| matches!(event.body, EventBody::Delta(_))).count()
        };
        assert!(deltas(&second) > 0, "text is seen as it comes");
        let numbers = facts(&second);
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    })
    .await;
}

#[tokio::test]
async fn a_question_is_settled_once_and_a_later_answer_gets_the_first() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let mut second = other.join(&first.session).await;
        holder.answers([
            ScriptedAnswer::call("eca__write", json!({"text": "x"})),
            ScriptedAnswer::text("done"),
        ]);
        second.prompt("write").await.unwrap();
        let ask = second.next_ask().await.id;
        assert_eq!(first.next_ask().await.id, ask);
        let deny = Answer::Deny { remember: false, reason: Some("no".into()) };
        assert_eq!(answer(&second, ask, deny.clone()).await, deny);
        assert_eq!(answer(&first, ask, Answer::Allow { remember: true }).await, deny, "the first one counts");
        assert_eq!(second.turn_end().await, Outcome::Done);
        assert_eq!(answer(&second, ask, Answer::Cancelled).await, deny, "also after the turn");
        let state = holder.check_state(&first.session).await;
        assert!(matches!(calls(&state)[0].state, ToolState::Rejected { .. }));
        // The other way: the window of the holder approves what another window asked for.
        first.turn_end().await;
        holder.answers([
            ScriptedAnswer::call("eca__write", json!({"text": "x"})),
            ScriptedAnswer::text("done"),
        ]);
        second.prompt("again").await.unwrap();
        let ask = first.next_ask().await.id;
        assert_eq!(
            answer(&first, ask, Answer::Allow { remember: false }).await,
            Answer::Allow { remember: false }
        );
        assert_eq!(second.turn_end().await, Outcome::Done);
        assert_eq!(calls(&holder.check_state(&first.session).await)[1].state, ToolState::Done);
    })
    .await;
}

#[tokio::test]
async fn a_window_stops_steers_configures_marks_and_takes_back() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let mut second = other.join(&first.session).await;
        assert_eq!(second.steer(Some("now")).await.unwrap_err().kind, FailureKind::User, "nothing runs");
        holder.answers([ScriptedAnswer::call("eca__wait", json!({}))]);
        second.prompt("wait").await.unwrap();
        second.until_progress("Calling tool").await;
        assert_eq!(second.prompt("two at once").await.unwrap_err().kind, FailureKind::User);
        second.steer(Some("and this")).await.unwrap();
        assert!(second.load().await.unwrap().busy);
        second.cancel().await;
        assert_eq!(second.turn_end().await, Outcome::Stopped);
        assert!(!second.load().await.unwrap().busy);
        let title = SessionSettings { title: Some("ours".into()), ..SessionSettings::default() };
        assert_eq!(second.configure(title).await.unwrap().title.as_deref(), Some("ours"));
        let wrong = SessionSettings { behavior: Some("none".into()), ..SessionSettings::default() };
        assert_eq!(second.configure(wrong).await.unwrap_err().kind, FailureKind::User);
        let after = holder.check_state(&first.session).await.items()[0].id;
        let change = FlagChange::Add { after, text: "here".into() };
        second.call(|session, reply| Command::Flag { session, change, reply }).await.unwrap();
        second.rollback(None).await.unwrap();
        let state = other.check_state(&first.session).await;
        assert_eq!(state.settings().title.as_deref(), Some("ours"));
        assert!(!state.items().iter().any(|item| matches!(item.kind, ItemKind::UserMessage { .. })));
        first.until_fact(|fact| matches!(fact, Fact::HistoryReplaced { .. }).then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn a_chat_goes_on_while_a_window_of_another_process_is_there() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let mut second = other.join(&first.session).await;
        let answer = ScriptedAnswer::text("half").then(ModelStep::Wait(Duration::from_millis(100)));
        holder.answers([answer.and_text(" and whole")]);
        first.prompt("two").await.unwrap();
        first.close().await.unwrap();
        assert_eq!(second.turn_end().await, Outcome::Done);
        assert!(holder.store.holds_lease(&first.session));
        second.close().await.unwrap();
        for _ in 0..500 {
            if !holder.store.holds_lease(&first.session) {
                return;
            }
            // In memory, a window that went without a word is noticed at the next one.
            drop(holder.attach(Abilities::default()).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the last window left and the chat is still held");
    })
    .await;
}

/// What policy grants without asking is the holder's to say, and a window that can show no question declines none.
#[tokio::test]
async fn a_window_brings_no_rights_and_declines_nothing_for_others() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let all = Abilities {
            client: "script".into(),
            approvals: true,
            grants: domain::host::Grants::ALL,
            ..Abilities::default()
        };
        let mut second = other.attach(all).await;
        second.session = first.session.clone();
        second.load().await.unwrap();
        holder.answers([
            ScriptedAnswer::call("eca__write", json!({"text": "x"})),
            ScriptedAnswer::text("done"),
        ]);
        second.prompt("write").await.unwrap();
        let ask = first.next_ask().await.id;
        assert_eq!(answer(&first, ask, Answer::Cancelled).await, Answer::Cancelled, "it was asked");
        first.turn_end().await;
        holder.answers([
            ScriptedAnswer::call("eca__ask", json!({"text": "which?"})),
            ScriptedAnswer::text("done"),
        ]);
        first.prompt("ask").await.unwrap();
        let ask = first.next_ask().await.id;
        let command = |session, reply| Command::Answer { session, ask, answer: Answer::Cancelled, reply };
        assert!(second.call(command).await.is_err(), "it cannot show questions");
        let text = Answer::Text { text: "this".into() };
        assert_eq!(answer(&first, ask, text.clone()).await, text);
        assert_eq!(first.turn_end().await, Outcome::Done);
    })
    .await;
}

/// The holder dies in the middle of a tool call: another process takes the chat and runs nothing.
#[tokio::test]
async fn the_chat_of_a_dead_holder_goes_on_in_another_process() {
    let holder = Bench::with_peers(TestPeers::sockets());
    let other = holder.other_process();
    let third = holder.other_process();
    let mut first = holder.client().await;
    first.run("one").await;
    let mut second = other.join(&first.session).await;
    let mut window = third.join(&first.session).await;
    holder.answers([ScriptedAnswer::call("eca__wait", json!({}))]);
    second.prompt("wait").await.unwrap();
    second.until_progress("Calling tool").await;
    holder.kill();
    assert_eq!(second.turn_end().await, Outcome::Interrupted);
    assert_eq!(window.turn_end().await, Outcome::Interrupted);
    let told = |fact: &Fact| match fact {
        Fact::Notice { notice } => Some(notice.text.clone()),
        _ => None,
    };
    let text = second.until_fact(told).await;
    assert!(text.contains("has ended") && text.contains("holds it now"), "{text}");
    let state = second_state(&other, &second).await;
    assert_eq!(calls(&state)[0].state, ToolState::Stopped { unknown: true });
    assert!(
        other.models.prompts().is_empty() && third.models.prompts().is_empty(),
        "nothing is sent by itself"
    );
    assert!(other.store.holds_lease(&second.session) != third.store.holds_lease(&second.session));
    assert_eq!(window.run("go on").await, Outcome::Done);
    assert_eq!(second.turn_end().await, Outcome::Done);
    let expected = ["user one", "agent ok", "user wait", "user go on", "agent ok"];
    let said: Vec<String> = lines(&second_state(&third, &window).await)
        .into_iter()
        .filter(|line| !line.starts_with("call"))
        .collect();
    assert_eq!(said, expected);
}

async fn second_state(bench: &Bench, client: &Client) -> engine::State {
    bench.check_state(&client.session).await
}

/// A prompt under way when the holder dies is refused, not lost without a word and not sent twice.
#[tokio::test]
async fn a_command_under_way_when_the_holder_dies_is_answered() {
    let holder = Bench::with_peers(TestPeers::sockets());
    let other = holder.other_process();
    let mut first = holder.client().await;
    first.run("one").await;
    let second = other.join(&first.session).await;
    // The holder cannot answer before its store does.
    holder.store.set_commit_time(Duration::from_secs(60));
    let change = SessionSettings { title: Some("late".into()), ..SessionSettings::default() };
    let (refused, ()) = tokio::join!(second.configure(change), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        holder.store.set_commit_time(Duration::from_millis(1));
        holder.kill();
    });
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Taken, "{refused}");
    assert!(refused.message.contains("ended before it answered"), "{refused}");
}

/// A window that does not read costs no turn, and gets the rest from the journal.
#[tokio::test]
async fn a_window_that_does_not_read_misses_nothing() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let mut second = other.join(&first.session).await;
        let mut long = ScriptedAnswer::text("begin");
        for _ in 0..200 {
            long = long.and_text(&"words ".repeat(2000));
        }
        holder.answers([long]);
        assert_eq!(first.run("long").await, Outcome::Done, "nobody waits for the slow one");
        assert_eq!(first.run("more").await, Outcome::Done);
        assert_eq!(second.turn_end().await, Outcome::Done);
        assert_eq!(second.turn_end().await, Outcome::Done);
        let (ours, theirs) = (holder.stored_state(&first.session), other.check_state(&first.session).await);
        assert_eq!(ours, theirs);
        let numbers = facts(&second);
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    })
    .await;
}

/// A prompt with everything that a front-end can send arrives as it was.
#[tokio::test]
async fn a_prompt_arrives_as_it_was_sent() {
    check(|holder, other| async move {
        let mut first = holder.client().await;
        first.run("one").await;
        let mut second = other.join(&first.session).await;
        let prompt = UserPrompt {
            text: "look \u{1f680} \"quoted\"\n".into(),
            parts: vec![domain::Part::Image { mime: "image/png".into(), data: "AAAA".into() }],
            contexts: vec![
                domain::command::Context::Text { name: "note".into(), text: "a note".into() },
                domain::command::Context::Code {
                    content: "fn x() {}".into(),
                    language: "rust".into(),
                    description: None,
                },
            ],
            change: SessionSettings { title: Some("t".into()), ..SessionSettings::default() },
            limits: domain::command::TurnLimits { max_steps: Some(3), ..Default::default() },
        };
        second.prompt_with(prompt).await.unwrap();
        assert_eq!(second.turn_end().await, Outcome::Done);
        let sent = holder.last_sent().join("\n");
        for part in ["look \u{1f680}", "image AAAA"] {
            assert!(sent.contains(part), "{part} is not in {sent}");
        }
        assert_eq!(second.load().await.unwrap().settings.title.as_deref(), Some("t"));
    })
    .await;
}

/// A program that only follows says so, as before.
#[tokio::test]
async fn without_a_socket_a_chat_is_followed() {
    let holder = Bench::new();
    let mut first = holder.client_with(person()).await;
    first.run("one").await;
    let other = holder.other_process();
    let follower = other.join(&first.session).await;
    let info = follower.load().await.unwrap();
    assert!(info.held_by.is_some() && info.attached_to.is_none());
    assert_eq!(follower.prompt("me too").await.unwrap_err().kind, FailureKind::Taken);
}
