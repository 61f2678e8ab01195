//! The end of a turn: the nudge to verify, and instructions that change between turns.

use std::path::Path;

use domain::command::SessionSettings;
use domain::note::NoteAbout;
use domain::{Command, ItemKind, Outcome};
use engine::State;
use serde_json::{Value, json};
use testkit::ScriptedAnswer;

use crate::bench::Bench;
use crate::client::{Client, person};

/// Writing and commands need no question.
fn allowing(more: Value) -> Value {
    let mut config =
        json!({"toolCall": {"approval": {"allow": {"eca__write": {}, "eca__shell_command": {}}}}});
    if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
        config.extend(more.clone());
    }
    config
}

/// A front-end with a chat in this folder.
async fn open_in(bench: &Bench, folder: &Path) -> Client {
    let mut client = bench.attach(person()).await;
    let workspace = Some(vec![folder.to_owned()]);
    let settings = SessionSettings::default();
    let open = |_, reply| Command::Open { id: None, workspace, settings, servers: Vec::new(), reply };
    let info = client.call(open).await.unwrap();
    client.follow(&info);
    client
}

fn notes(state: &State) -> Vec<(NoteAbout, String)> {
    let notes = state.items().iter().filter_map(|item| match &item.kind {
        ItemKind::Note(note) => Some((note.about.clone(), note.text.clone())),
        _ => None,
    });
    notes.collect()
}

fn write(folder: &Path, file: &str) -> ScriptedAnswer {
    ScriptedAnswer::call("eca__write", json!({"path": folder.join(file), "text": file}))
}

fn run(line: &str) -> ScriptedAnswer {
    ScriptedAnswer::call("eca__shell_command", json!({"command": line}))
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_changed_files_without_a_check_is_asked_once_to_verify() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
    let bench = Bench::with_config(allowing(json!({})));
    let mut client = open_in(&bench, folder.path()).await;
    bench.answers([
        write(folder.path(), "a.rs"),
        ScriptedAnswer::text("changed"),
        run("make test"),
        ScriptedAnswer::text("changed; make test passed"),
    ]);
    assert_eq!(client.run("Change it.").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    let [(about, text)] = &notes(&state)[..] else { panic!("one note: {:?}", notes(&state)) };
    assert_eq!(*about, NoteAbout::Verification);
    assert!(text.contains("asked to verify"), "{text}");
    let prompts = bench.models.prompts();
    assert_eq!(prompts.len(), 4, "the nudge costs one answer, and its check another");
    for pair in prompts.windows(2) {
        assert!(pair[1].1.entries.starts_with(&pair[0].1.entries), "requests grow at their end");
        assert_eq!(pair[0].1.system, pair[1].1.system);
    }
    let sent = crate::client::sent(&prompts[2].1.entries);
    let nudge = sent.last().unwrap();
    assert!(
        nudge.contains("a.rs") && nudge.contains("`make test`") && nudge.contains("what you did not"),
        "{nudge}"
    );
    // The model that does not verify is not asked again.
    bench.answers([
        write(folder.path(), "b.rs"),
        ScriptedAnswer::text("changed"),
        ScriptedAnswer::text("not verified"),
    ]);
    assert_eq!(client.run("Again.").await, Outcome::Done);
    assert_eq!(bench.models.prompts().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_to_be_verified_the_nudge_costs_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let bare = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
    let (with, without) = (folder.path(), bare.path());
    for (case, config, root, calls) in [
        ("a check ran", json!({}), with, vec![write(with, "a.rs"), run("make test")]),
        ("prose", json!({}), with, vec![write(with, "README.md")]),
        ("no check exists", json!({}), without, vec![write(without, "a.rs")]),
        ("it is off", json!({"chat": {"verifyChanges": false}}), with, vec![write(with, "a.rs")]),
        ("nothing changed", json!({}), with, vec![run("ls")]),
        ("no command may run", json!({"disabledTools": ["shell_command"]}), with, vec![write(with, "a.rs")]),
    ] {
        let bench = Bench::with_config(allowing(config));
        let mut client = open_in(&bench, root).await;
        let count = calls.len() + 1;
        bench.answers(calls);
        assert_eq!(client.run("Do it.").await, Outcome::Done);
        assert_eq!(bench.models.prompts().len(), count, "{case}");
        assert!(notes(&bench.check_state(&client.session).await).is_empty(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_that_change_are_appended_and_read_again_after_a_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("AGENTS.md");
    std::fs::write(&file, "Use tabs.").unwrap();
    let bench = Bench::new();
    let mut client = open_in(&bench, folder.path()).await;
    client.run("one").await;
    client.run("two").await;
    std::fs::write(&file, "Use spaces.").unwrap();
    client.run("three").await;
    client.run("four").await;
    let prompts = bench.models.prompts();
    let system = |at: usize| prompts[at].1.system.concat();
    assert!(system(0).contains("Use tabs.") && system(3) == system(0), "the cached beginning stays");
    let told = |at: usize| crate::client::sent(&prompts[at].1.entries).join("\n");
    assert!(!told(1).contains("Use spaces."));
    assert_eq!(told(3).matches("Use spaces.").count(), 1, "a change is told once");
    assert!(prompts[3].1.entries.starts_with(&prompts[2].1.entries), "requests grow at their end");
    let state = bench.check_state(&client.session).await;
    assert!(notes(&state).iter().any(|(about, _)| *about == NoteAbout::Instructions), "{:?}", notes(&state));
    // A file that is gone is told too.
    std::fs::remove_file(&file).unwrap();
    client.run("five").await;
    assert!(bench.last_sent().join("\n").contains("no longer hold"), "{:?}", bench.last_sent());
    std::fs::write(&file, "Use neither.").unwrap();
    bench.models.answer(ScriptedAnswer::text("in short"));
    assert_eq!(client.run("/compact").await, Outcome::Done);
    client.run("six").await;
    let last = bench.models.prompts().pop().unwrap().1;
    assert!(last.system.concat().contains("Use neither.") && !last.system.concat().contains("Use tabs."));
    assert!(!crate::client::sent(&last.entries).join("\n").contains("Use spaces."), "the old notes are gone");
}
