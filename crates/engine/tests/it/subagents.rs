//! Subagents: their own chats, never more rights than their parent, costs that count as its.

use domain::command::SessionSettings;
use domain::item::ItemKind;
use domain::model::Tokens;
use domain::store::ListFilter;
use domain::tool_call::{Details, ToolCall, ToolState};
use domain::{Abilities, Answer, AskKind, Command, Outcome, SessionId, Store as _};
use engine::State;
use serde_json::{Value, json};
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{Client, calls, lines, person};

fn spawn(agent: &str) -> ScriptedAnswer {
    ScriptedAnswer::call(
        "eca__spawn_agent",
        json!({"agent": agent, "task": "Find the port", "activity": "find"}),
    )
}

/// The chat of the only subagent of a chat, as it is stored.
fn child(bench: &Bench, parent: &State) -> (SessionId, State) {
    let call = calls(parent).into_iter().find(|call| call.name == "spawn_agent").unwrap();
    let Some(Details::Subagent { session, .. }) = call.details else { panic!("{:?}", call.details) };
    let state = bench.stored_state(&session);
    (session, state)
}

#[tokio::test(start_paused = true)]
async fn a_subagent_works_in_a_chat_of_its_own_and_reports_back() {
    let bench = Bench::with_config(json!({"chat": {"title": false}}));
    let mut client = bench.client().await;
    bench.answers([
        spawn("explorer"),
        ScriptedAnswer::call("eca__read", json!({"text": "port = 81"})),
        ScriptedAnswer::text("It is 81.").and_usage(Tokens { input: 7, ..Tokens::default() }),
        ScriptedAnswer::text("The port is 81."),
    ]);
    assert_eq!(client.run("Which port?").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state).last().unwrap(), "agent The port is 81.");
    assert!(bench.last_sent().contains(&"result It is 81.".to_owned()), "{:?}", bench.last_sent());
    let (id, of_child) = child(&bench, &state);
    assert!(id.as_str().starts_with("subagent-"));
    assert_eq!(of_child.parent(), Some(&client.session));
    assert_eq!(lines(&of_child), ["user Find the port", "call read Done", "agent It is 81."]);
    // An explorer changes nothing and starts nobody; its parent can do both.
    let prompts = bench.models.prompts();
    let offered = |at: usize| -> Vec<String> {
        let tools = &prompts[at].1.tools;
        tools.iter().map(|tool: &domain::tool::ToolSpec| tool.name.clone()).collect()
    };
    assert!(offered(0).contains(&"spawn_agent".to_owned()) && offered(0).contains(&"write".to_owned()));
    assert!(!offered(1).contains(&"spawn_agent".to_owned()) && !offered(1).contains(&"write".to_owned()));
    let listed =
        client.commands.call(|reply| Command::List { filter: ListFilter::default(), reply }).await.unwrap();
    assert!(listed.iter().all(|chat| chat.id != id), "chats of subagents are not listed");
    let spent: Vec<&str> = state.usage().spent.iter().map(|spent| spent.purpose.as_str()).collect();
    assert!(spent.contains(&"subagents"), "{spent:?}");
    // Its chat is over with its call.
    let mut late = bench.attach(person()).await;
    late.session = id;
    assert!(late.prompt("go on").await.is_err());
}

/// What became of a call of `write` in a subagent.
async fn written_by_child(config: Value, agent: &str, behavior: Option<&str>, trust: bool) -> ToolCall {
    let bench = Bench::with_config(config);
    let mut client: Client = bench.client_with(Abilities::default()).await;
    let settings = SessionSettings {
        behavior: behavior.map(str::to_owned),
        trust: trust.then_some(true),
        ..SessionSettings::default()
    };
    client.configure(settings).await.unwrap();
    bench.answers([
        spawn(agent),
        ScriptedAnswer::call("eca__write", json!({"text": "x"})),
        ScriptedAnswer::text("done"),
        ScriptedAnswer::text("fine"),
    ]);
    assert_eq!(client.run("go").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    let (_, of_child) = child(&bench, &state);
    calls(&of_child).remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_subagent_never_has_more_rights_than_its_parent() {
    let ran = |call: &ToolCall| call.state == ToolState::Done && !call.error;
    let helper = |approval: Value| {
        json!({"chat": {"title": false}, "agent": {
            "helper": {"mode": "subagent", "description": "helps", "toolCall": {"approval": approval}},
            "careful": {"toolCall": {"approval": {"deny": {"eca__write": {}}}}},
        }})
    };
    let allow = json!({"allow": {"eca__write": {}}});
    assert!(
        !ran(&written_by_child(helper(allow.clone()), "helper", None, false).await),
        "its parent would ask"
    );
    assert!(ran(&written_by_child(helper(allow.clone()), "helper", None, true).await), "the chat is trusted");
    assert!(
        !ran(&written_by_child(helper(allow.clone()), "helper", Some("careful"), true).await),
        "its parent may not"
    );
    let plan = written_by_child(helper(allow), "helper", Some("plan"), true).await;
    assert!(!ran(&plan), "its parent plans: {plan:?}");
    let deny = json!({"deny": {"eca__write": {}}});
    assert!(!ran(&written_by_child(helper(deny), "helper", None, true).await), "its own rules hold too");
    let explorer = written_by_child(helper(json!({})), "explorer", None, true).await;
    assert!(!ran(&explorer), "{explorer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_subagent_and_unknown_agents_are_refused() {
    let bench = Bench::with_config(json!({"chat": {"title": false}}));
    let mut client = bench.client().await;
    bench.answers([spawn("general"), ScriptedAnswer::call("eca__wait", json!({}))]);
    client.prompt("go").await.unwrap();
    // The child waits in its tool; nothing more happens in the parent's chat.
    while bench.models.prompts().len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    let (_, of_child) = child(&bench, &state);
    assert_eq!(of_child.open_turn(), None, "{:?}", lines(&of_child));

    bench.answers([spawn("nobody"), ScriptedAnswer::text("then not")]);
    client.run("again").await;
    assert!(
        bench.last_sent().iter().any(|line| line.contains("There is no agent")),
        "{:?}",
        bench.last_sent()
    );
}

#[tokio::test(start_paused = true)]
async fn a_person_who_sees_the_parent_alone_answers_there() {
    let bench = Bench::with_config(json!({"chat": {"title": false}}));
    let mut client = bench.client().await;
    bench.answers([
        spawn("general"),
        ScriptedAnswer::call("eca__write", json!({"text": "one"})),
        ScriptedAnswer::call("eca__write", json!({"text": "two"})),
        ScriptedAnswer::text("One is written."),
        ScriptedAnswer::text("Fine."),
    ]);
    client.prompt("go").await.unwrap();
    for (answer, text) in
        [(Answer::Allow { remember: false }, "one"), (Answer::Deny { remember: false, reason: None }, "two")]
    {
        let ask = client.next_ask().await;
        assert!(matches!(ask.kind, AskKind::Approval { .. }), "{ask:?}");
        let state = bench.live.state(&client.session).unwrap();
        let shown = state.items().iter().find(|item| Some(item.id) == ask.item).expect("the call is shown");
        let ItemKind::ToolCall(call) = &shown.kind else { panic!("{shown:?}") };
        assert_eq!((call.name.as_str(), &call.input.as_ref().unwrap()["text"]), ("write", &json!(text)));
        assert!(call.summary.starts_with("general: "), "{}", call.summary);
        client.answer(ask.id, answer).await;
    }
    assert_eq!(client.turn_end().await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    let ended: Vec<(String, bool)> =
        calls(&state).into_iter().map(|call| (call.name, matches!(call.state, ToolState::Done))).collect();
    assert_eq!(
        ended,
        [("spawn_agent".into(), true), ("write".into(), true), ("write".into(), false)],
        "{state:#?}"
    );
    let (_, of_child) = child(&bench, &state);
    assert_eq!(lines(&of_child)[1..3], ["call write Done", "call write Rejected { by: User }"]);
    // The model of the parent knows the agent alone.
    let sent = bench.last_sent();
    assert!(sent.iter().all(|line| !line.contains("write")), "{sent:?}");
    assert_eq!(state.open_asks().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_subagent_asks_leaves_nothing_open() {
    let bench = Bench::with_config(json!({"chat": {"title": false}}));
    let mut client = bench.client().await;
    bench.answers([spawn("general"), ScriptedAnswer::call("eca__write", json!({"text": "one"}))]);
    client.prompt("go").await.unwrap();
    client.next_ask().await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert_eq!((state.open_asks().count(), state.open_turn()), (0, None));
    assert!(calls(&state).iter().all(|call| call.state.is_over()), "{:?}", lines(&state));
}

fn spawn_in_background(task: &str) -> ScriptedAnswer {
    let input = json!({"agent": "explorer", "task": task, "background": true});
    ScriptedAnswer::call("eca__spawn_agent", input)
}

#[tokio::test(start_paused = true)]
async fn an_agent_in_the_background_reports_before_the_turn_ends() {
    let bench = Bench::with_config(json!({"chat": {"title": false}}));
    let mut client = bench.client().await;
    // The parent and the agent take turns with the one scripted model: what each is told decides its answer.
    bench.models.answer_by(|prompt| {
        let text = format!("{:?}", prompt.entries);
        if text.contains("It is 81.") {
            ScriptedAnswer::text("The port is 81.")
        } else if text.contains("works in the background") {
            ScriptedAnswer::text("I wait.")
        } else if text.contains("Which port?") {
            spawn_in_background("Find the number")
        } else {
            ScriptedAnswer::text("It is 81.")
        }
    });
    assert_eq!(client.run("Which port?").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    let lines = lines(&state);
    assert_eq!(lines.last().unwrap(), "agent The port is 81.", "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("note <report agent=\"explorer: Find the number\">")));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_agents_in_the_background_and_their_cost_counts() {
    let config =
        json!({"chat": {"title": false}, "agent": {"explorer": {"mode": "subagent", "maxCost": 0.5}}});
    let bench = Bench::with_config(config);
    let mut client = bench.client().await;
    bench.models.answer_by(|prompt| {
        let text = format!("{:?}", prompt.entries);
        if text.contains("works in the background") {
            ScriptedAnswer::text("I wait.")
        } else if text.contains("Start it") {
            spawn_in_background("Wait")
        } else {
            ScriptedAnswer::call("eca__wait", json!({}))
        }
    });
    client.prompt("Start it").await.unwrap();
    client.until_progress("Waiting for agents").await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    let (id, _) = child(&bench, &state);
    for _ in 0..1000 {
        if bench.stored_state(&id).open_turn().is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the agent works on");
}

/// However many chats of agents are newer: a page of the list is full of the user's own chats, and none is missing.
#[tokio::test(start_paused = true)]
async fn lists_are_full_without_the_chats_of_agents() {
    let bench = Bench::new();
    let mut own = Vec::new();
    for at in 0..3 {
        let mut client = bench.client().await;
        client.run("one").await;
        own.push(client.session.clone());
        for count in 0..300 {
            let agent = SessionId::new(format!("subagent-{at}-{count}"));
            bench.store.lease(&agent).await.unwrap();
            bench.store.append(&agent, vec![testkit::sample::opened("agent", &["/w"])]).await.unwrap();
        }
    }
    own.reverse();
    let client = bench.attach(person()).await;
    for limit in 1..=4 {
        let filter = ListFilter { limit: Some(limit), ..ListFilter::default() };
        let listed = client.call(|_, reply| Command::List { filter, reply }).await.unwrap();
        let ids: Vec<_> = listed.into_iter().map(|chat| chat.id).collect();
        assert_eq!(ids, own[..limit.min(3)]);
    }
}
