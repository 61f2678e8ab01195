//! What ends a turn before the model is done: money, steps, repetition, models that fail.

use std::sync::Arc;
use std::time::Duration;

use domain::command::{Command, Completion, Context, TurnLimits, UserPrompt};
use domain::model::Tokens;
use domain::spending::{Gate, Payer, Reservation};
use domain::{BoxFuture, Fact, Failure, FailureKind, Outcome, Store};
use serde_json::{Value, json};
use testkit::ScriptedAnswer;
use testkit::scripted_model::ModelStep;

use crate::bench::{Bench, docs_resource};

/// A call that costs a dollar.
fn dollar() -> Tokens {
    Tokens { input: 1_000_000, ..Tokens::default() }
}

fn failure_of(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed { failure } => failure,
        other => panic!("{other:?} is no failure"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_stops_before_the_next_call() {
    let budget = |budget: Value| json!({"budget": budget});
    let cases = [
        (budget(json!({"run": 0.5})), None, "This turn", 1),
        (budget(json!({"chat": 1.5})), None, "This chat", 2),
        (budget(json!({"day": 0.5})), None, "Today's work", 1),
        (json!({}), Some(0.5), "This turn", 1),
    ];
    for (config, max_cost, subject, calls) in cases {
        let bench = Bench::with_config(config);
        let mut client = bench.client().await;
        for _ in 0..3 {
            bench.models.answer(ScriptedAnswer::call("eca__read", json!({"n": 1})).and_usage(dollar()));
        }
        let limits = TurnLimits { max_cost, ..TurnLimits::default() };
        let prompt = UserPrompt { text: "spend".into(), limits, ..UserPrompt::default() };
        let failure = failure_of(client.run_with(prompt).await);
        assert_eq!(failure.kind, FailureKind::Quota);
        assert!(failure.message.starts_with(subject), "{failure}");
        assert_eq!(bench.models.prompts().len(), calls, "{subject}");
        bench.check_state(&client.session).await;
    }
}

struct Nobody;

impl Payer for Nobody {
    fn reserve(&self, _most: Option<f64>) -> BoxFuture<'_, Result<Reservation, Failure>> {
        Box::pin(async { Ok(Reservation::default()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_cap_needs_a_price() {
    let bench = Bench::with_config(json!({"budget": {"chat": 1}}));
    bench.models.set_info(|info| info.price = None);
    let mut client = bench.client().await;
    let limits = TurnLimits { max_cost: Some(1.0), ..TurnLimits::default() };
    let capped = UserPrompt { text: "spend".into(), limits, ..UserPrompt::default() };
    assert!(client.prompt_with(capped).await.unwrap_err().message.contains("no price"));
    let limits =
        TurnLimits { max_cost: Some(1.0), gate: Gate::new(Arc::new(Nobody)), ..TurnLimits::default() };
    let of_account = UserPrompt { text: "spend".into(), limits, ..UserPrompt::default() };
    let refused = client.prompt_with(of_account).await.unwrap_err();
    assert!(refused.message.contains("with a budget"), "a client of a server has no such flag: {refused}");
    client.run("spend").await;
    let warned =
        |fact: &Fact| matches!(fact, Fact::Notice { notice } if notice.text.contains("does not count"));
    assert!(bench.store.facts(&client.session).iter().any(|recorded| warned(&recorded.fact)));
}

#[tokio::test(start_paused = true)]
async fn usage_adds_up_by_purpose_and_model() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([
        ScriptedAnswer::text("a").and_usage(dollar()),
        ScriptedAnswer::text("b").and_usage(dollar()),
    ]);
    client.run("one").await;
    client.run("two").await;
    bench.models.answer(ScriptedAnswer::text("short").and_usage(dollar()));
    client.run("/compact").await;
    let state = bench.check_state(&client.session).await;
    let usage = state.usage();
    assert_eq!(usage.total.input, 3_000_000);
    assert_eq!(usage.session_cost, Some(3.0));
    assert_eq!(usage.last, Tokens::default(), "the window is empty after compaction");
    let spent: Vec<_> = usage.spent.iter().map(|row| (row.purpose.as_str(), row.calls, row.cost)).collect();
    assert_eq!(spent, [("answers", 2, Some(2.0)), ("compact", 1, Some(1.0))]);
    client.run("/costs").await;
    assert!(client.system_texts()[0].contains("This chat: $3.0000"), "{:?}", client.system_texts());
}

#[tokio::test(start_paused = true)]
async fn another_model_goes_on_where_one_fails() {
    let down = || ScriptedAnswer::fails(Failure::provider("It is down."));
    let refused = || ScriptedAnswer::fails(Failure::user("Bad request."));
    let half = || {
        ScriptedAnswer::text("half").and_text("").then(testkit::ModelStep::Fail(Failure::provider("Cut.")))
    };
    let cases: Vec<(&str, Vec<ScriptedAnswer>, Vec<&str>, bool)> = vec![
        ("it helps", vec![down()], vec!["test/one", "test/two"], true),
        ("in order", vec![down(), down()], vec!["test/one", "test/two", "test/three"], true),
        (
            "until the list ends",
            vec![down(), down(), down()],
            vec!["test/one", "test/two", "test/three"],
            false,
        ),
        ("not for a bad request", vec![refused()], vec!["test/one"], false),
        ("not after text", vec![half()], vec!["test/one"], false),
    ];
    for (name, answers, models, done) in cases {
        let bench = Bench::with_config(json!({"failover": ["test/two", "test/three"]}));
        let mut client = bench.client().await;
        bench.answers(answers);
        let outcome = client.run("hello").await;
        let asked: Vec<String> = bench.models.prompts().into_iter().map(|(model, _)| model).collect();
        assert_eq!(asked, models, "{name}");
        // Only the last one of the list has no other behind it.
        for (model, prompt) in bench.models.prompts() {
            assert_eq!(prompt.has_alternative, model != "test/three", "{name}: {model}");
        }
        assert_eq!(outcome == Outcome::Done, done, "{name}: {outcome:?}");
        let told =
            |fact: &Fact| matches!(fact, Fact::Notice { notice } if notice.text.contains("Going on with"));
        let notices = bench.store.facts(&client.session).iter().filter(|it| told(&it.fact)).count();
        assert_eq!(notices, models.len() - 1, "{name}");
        bench.check_state(&client.session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_counted_and_repetition_ends_a_turn() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    for round in 0..5 {
        bench
            .models
            .answer(ScriptedAnswer::call("eca__read", json!({"round": round, "text": round.to_string()})));
    }
    let limits = TurnLimits { max_steps: Some(3), ..TurnLimits::default() };
    let prompt = UserPrompt { text: "loop".into(), limits, ..UserPrompt::default() };
    assert_eq!(client.run_with(prompt).await, Outcome::MaxSteps);
    assert_eq!(bench.models.prompts().len(), 3);
    bench.models.forget_answers();
    for _ in 0..9 {
        bench.models.answer(ScriptedAnswer::call("eca__read", json!({})));
    }
    assert_eq!(client.run("loop").await, Outcome::Repeating);
    assert_eq!(bench.models.prompts().len(), 3 + 4, "the same call four times");
    assert!(bench.last_sent().iter().any(|text| text.contains("same result three times")));
    bench.check_state(&client.session).await;
}

/// A completion that fails, is late or is given up: what its provider reported is in the day's sum.
#[tokio::test(start_paused = true)]
async fn a_completion_without_a_good_end_is_in_the_sum_of_the_day() {
    let bench = Bench::new();
    let client = bench.client().await;
    let completion = || Completion {
        purpose: "completion".into(),
        system: String::new(),
        messages: vec!["a".into()],
        output_schema: None,
        middle: None,
        model: None,
        no_local: false,
        gate: Default::default(),
        deadline: Duration::from_secs(9),
    };
    let complete =
        || client.call(|_, reply| Command::Complete { completion: completion(), deltas: None, reply });
    let begun = || ScriptedAnswer::text("some").and_usage(dollar());
    bench.answers([
        begun().then(ModelStep::Fail(Failure::provider("cut"))),
        begun().then(ModelStep::Hang),
        begun().then(ModelStep::Hang),
    ]);
    complete().await.unwrap_err();
    complete().await.unwrap_err();
    tokio::time::timeout(Duration::from_secs(5), complete()).await.unwrap_err();
    let (kind, key) = engine::record_of_today();
    while bench.store.add(kind, &key, 0.0).await.unwrap() < 3.0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server that knows resources by templates gives any of them to the user, and to a client of a server only those it lists.
#[tokio::test(start_paused = true)]
async fn a_prompt_may_be_limited_to_resources_that_are_listed() {
    for (listed_resources, uri, is_read) in [
        (false, "note://listed", true),
        (false, "file:///etc/passwd", true),
        (true, "note://listed", true),
        (true, "file:///etc/passwd", false),
        (true, "note://listed/../other", false),
    ] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        bench.models.answer(ScriptedAnswer::text("read"));
        let limits = TurnLimits { listed_resources, ..TurnLimits::default() };
        let contexts = vec![Context::McpResource(docs_resource(uri))];
        client.run_with(UserPrompt { text: "look".into(), contexts, limits, ..UserPrompt::default() }).await;
        let sent = bench.last_sent().join("\n");
        assert_eq!(sent.contains(&format!("the text of {uri}")), is_read, "{sent}");
        assert_eq!(sent.contains("does not list"), !is_read, "{sent}");
    }
}
