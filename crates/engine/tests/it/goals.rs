//! Goals: turns that go on until a command succeeds or an audit agrees.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::command::{TurnLimits, UserPrompt};
use domain::note::GoalState;
use domain::{FailureKind, ItemKind, NoteAbout, Outcome};
use engine::State;
use serde_json::{Value, json};
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::sent;

fn config(goal: Value) -> Value {
    json!({"toolCall": {"approval": {"allow": {"eca__write": {}, "eca__shell_command": {}}}}, "goal": goal})
}

fn state_of(state: &State) -> Option<GoalState> {
    state.items().iter().rev().find_map(|item| match &item.kind {
        ItemKind::Note(note) => match &note.about {
            NoteAbout::Goal(goal) => Some(goal.state),
            _ => None,
        },
        _ => None,
    })
}

fn checks(state: &State) -> usize {
    crate::client::calls(state).iter().filter(|call| call.name == "shell_command").count()
}

/// Writes the file that the check waits for at the call with this number, and agrees with every audit.
fn reach_at(bench: &Bench, number: usize, file: &Path) {
    let (file, calls) = (file.to_owned(), AtomicUsize::new(0));
    bench.models.answer_by(move |prompt| {
        if calls.fetch_add(1, Ordering::Relaxed) + 1 == number {
            std::fs::write(&file, "x").unwrap();
        }
        let last = sent(&prompt.entries).pop().unwrap_or_default();
        ScriptedAnswer::text(if last.contains("GOAL: DONE") { "Checked.\nGOAL: DONE" } else { "I tried." })
    });
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_until_the_command_succeeds_and_the_audit_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let bench = Bench::with_config(config(json!({})));
    let mut client = bench.client().await;
    reach_at(&bench, 3, &file);
    assert_eq!(client.run(&format!("/goal make {}", file.display())).await, Outcome::Done);
    let prompts = bench.models.prompts();
    assert_eq!(prompts.len(), 4, "two tries, the one that succeeds, and the audit");
    for pair in prompts.windows(2) {
        assert!(pair[1].1.entries.starts_with(&pair[0].1.entries), "requests grow at their end");
    }
    let told = |at: usize| sent(&prompts[at].1.entries).join("\n");
    assert!(told(1).contains("It did not succeed") && told(1).contains("exit code 2"), "{}", told(1));
    assert!(told(3).contains("It succeeded") && told(3).contains("audit"), "{}", told(3));
    let state = bench.check_state(&client.session).await;
    assert_eq!((state_of(&state), checks(&state)), (Some(GoalState::Reached), 3));
    client.run("/goal").await;
    let shown = client.system_texts().pop().unwrap();
    assert!(shown.contains("It is reached.") && shown.contains("4 steps"), "{shown}");
    // The next prompt is an ordinary one.
    let before = bench.models.prompts().len();
    client.run("Thanks.").await;
    assert_eq!(bench.models.prompts().len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn an_audit_that_finds_something_missing_has_the_turn_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    std::fs::write(&file, "x").unwrap();
    let bench = Bench::with_config(config(json!({})));
    let mut client = bench.client().await;
    bench.answers([
        ScriptedAnswer::text("done"),
        ScriptedAnswer::text("The docs are missing.\nGOAL: NOT DONE: the docs"),
        ScriptedAnswer::call("eca__write", json!({"text": "docs"})),
        ScriptedAnswer::text("Written."),
        ScriptedAnswer::text("**GOAL: DONE**"),
    ]);
    let limits = TurnLimits { until: Some(format!("make {}", file.display())), ..TurnLimits::default() };
    let prompt = UserPrompt { text: "Do it, with docs.".into(), limits, ..UserPrompt::default() };
    assert_eq!(client.run_with(prompt).await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert_eq!((state_of(&state), checks(&state)), (Some(GoalState::Reached), 2));
    assert_eq!(bench.models.prompts().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_goal_in_words_is_judged_by_the_audit() {
    let bench = Bench::with_config(config(json!({})));
    let mut client = bench.client().await;
    bench.answers([
        ScriptedAnswer::text("done"),
        ScriptedAnswer::text("I forgot to judge."),
        ScriptedAnswer::text("GOAL: NOT DONE: half of it"),
        ScriptedAnswer::text("The other half."),
        ScriptedAnswer::text("GOAL: DONE"),
    ]);
    assert_eq!(client.run("/goal every page has a title").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert_eq!((state_of(&state), checks(&state)), (Some(GoalState::Reached), 0));
    assert_eq!(bench.models.prompts().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_budget_ends_a_goal_and_it_can_be_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let bench = Bench::with_config(config(json!({"maxSteps": 3, "maxMinutes": 1})));
    let mut client = bench.client().await;
    let calls = AtomicUsize::new(0);
    // Another change each time, so that nothing repeats itself.
    bench.models.answer_by(move |prompt| {
        let number = calls.fetch_add(1, Ordering::Relaxed);
        let last = sent(&prompt.entries).pop().unwrap_or_default();
        match last.contains("GOAL: DONE") {
            true => ScriptedAnswer::text("GOAL: DONE"),
            false => ScriptedAnswer::text(&format!("Try {number}.")),
        }
    });
    let Outcome::Failed { failure } = client.run(&format!("/goal make {}", file.display())).await else {
        panic!("the budget is spent")
    };
    assert_eq!(failure.kind, FailureKind::Quota, "{failure}");
    assert!(failure.message.contains("3 steps"), "{failure}");
    assert_eq!(bench.models.prompts().len(), 3);
    assert_eq!(state_of(&bench.check_state(&client.session).await), Some(GoalState::Spent));
    // Time is a budget too: this model never answers.
    bench.models.answer(ScriptedAnswer::default().then(ModelStep::Hang));
    let Outcome::Failed { failure } = client.run("/goal resume").await else { panic!("the time is spent") };
    assert_eq!(failure.kind, FailureKind::Quota, "{failure}");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(client.run("/goal resume").await, Outcome::Done);
    assert_eq!(state_of(&bench.check_state(&client.session).await), Some(GoalState::Reached));
}

#[tokio::test(start_paused = true)]
async fn a_stop_pauses_a_goal_and_off_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let bench = Bench::with_config(config(json!({})));
    let mut client = bench.client().await;
    bench.models.answer(ScriptedAnswer::default().then(ModelStep::Hang));
    client.prompt(&format!("/goal make {}", file.display())).await.unwrap();
    client.until_progress("Waiting model").await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    assert_eq!(state_of(&bench.check_state(&client.session).await), Some(GoalState::Paused));
    let before = bench.models.prompts().len();
    client.run("What is this?").await;
    assert_eq!(bench.models.prompts().len(), before + 1, "a goal that rests does not go on by itself");
    client.run("/goal off").await;
    assert_eq!(state_of(&bench.check_state(&client.session).await), Some(GoalState::Off));
    assert!(
        matches!(client.run("/goal resume").await, Outcome::Failed { .. }),
        "there is nothing to go on with"
    );
}

#[tokio::test(start_paused = true)]
async fn a_goal_survives_the_death_of_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let bench = Bench::with_config(config(json!({})));
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::text("tried"), ScriptedAnswer::default().then(ModelStep::Hang)]);
    client.prompt(&format!("/goal make {}", file.display())).await.unwrap();
    // The first check failed, and the model is asked again.
    client.until_progress("Calling tool").await;
    client.until_progress("Waiting model").await;
    bench.check_state(&client.session).await;
    bench.kill();
    let other = bench.other_process();
    let mut again = other.join(&client.session).await;
    assert_eq!(state_of(&other.stored_state(&client.session)), Some(GoalState::Active));
    reach_at(&other, 2, &file);
    assert_eq!(again.run("Go on.").await, Outcome::Done);
    let state = other.check_state(&client.session).await;
    assert_eq!((state_of(&state), checks(&state)), (Some(GoalState::Reached), 3));
}

#[tokio::test(start_paused = true)]
async fn a_check_that_may_not_run_ends_the_turn() {
    let bench = Bench::with_config(json!({"toolCall": {"approval": {"deny": {"eca__shell_command": {}}}}}));
    let mut client = bench.client().await;
    let Outcome::Failed { failure } = client.run("/goal make test").await else { panic!("it is denied") };
    assert!(failure.message.contains("was not run"), "{failure}");
    assert_eq!(bench.models.prompts().len(), 1);
    assert_eq!(state_of(&bench.check_state(&client.session).await), Some(GoalState::Paused));
}
