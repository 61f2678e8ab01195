//! Tools that speak to people or their editor: questions, diagnostics, the task list, compaction.

use std::path::PathBuf;

use domain::host::{Diagnostic, Position};
use domain::item::PlanStatus;
use domain::tool_call::Details;
use domain::{Answer, AskKind, Failure, HostReply};
use serde_json::json;

use crate::kit::Bench;

#[tokio::test]
async fn questions() {
    let bench = Bench::new();
    let input = json!({"question": "Which?", "options": ["a", "b"]});
    assert!(bench.bad("ask_user", input.clone()).await.contains("Nobody can be asked"));
    bench.port.can(|abilities| abilities.questions = true);
    assert!(bench.bad("ask_user", input.clone()).await.contains("no answer"));
    bench.port.answers.lock().unwrap().push(Answer::Text { text: "b".to_owned() });
    assert_eq!(bench.good("ask_user", input).await, "b");
    let asked = bench.port.asked.lock().unwrap();
    let AskKind::Question { text, options, freeform: true, url: None } = &asked[1] else {
        panic!("{asked:?}")
    };
    assert_eq!((text.as_str(), options.len()), ("Which?", 2));
}

#[tokio::test]
async fn diagnostics() {
    let bench = Bench::new();
    assert!(bench.bad("editor_diagnostics", json!({})).await.contains("shell_command"));
    bench.port.can(|abilities| abilities.diagnostics = true);
    *bench.port.diagnostics.lock().unwrap() = Some(Err(Failure::user("The client did not answer in time.")));
    assert!(bench.bad("editor_diagnostics", json!({})).await.contains("in time"));
    *bench.port.diagnostics.lock().unwrap() = Some(Ok(HostReply::Diagnostics(Vec::new())));
    assert!(bench.good("editor_diagnostics", json!({"path": "a.rs"})).await.contains("no errors"));
    let position = |line| Position { line, character: 1 };
    let one = |path: PathBuf, line| Diagnostic {
        path,
        severity: "error".to_owned(),
        source: "rustc".to_owned(),
        start: position(line),
        end: position(line),
        code: Some("E1".to_owned()),
        message: "wrong".to_owned(),
    };
    let all = vec![one(bench.root.join("a.rs"), 3), one("/other/b.rs".into(), 4)];
    *bench.port.diagnostics.lock().unwrap() = Some(Ok(HostReply::Diagnostics(all)));
    let told = bench.good("editor_diagnostics", json!({})).await;
    assert_eq!(told, "a.rs:3:1 error: wrong [E1]\n/other/b.rs:4:1 error: wrong [E1]");
}

#[tokio::test]
async fn tasks_and_compaction() {
    let bench = Bench::new();
    let input = json!({"tasks": [{"text": "a", "status": "completed"}, {"text": "b", "status": "in_progress"}, {"text": "c"}]});
    let result = bench.run("task", input).await;
    let Some(Details::Tasks { entries }) = result.details else { panic!("{result:?}") };
    let states: Vec<PlanStatus> = entries.iter().map(|entry| entry.status).collect();
    assert_eq!(states, [PlanStatus::Done, PlanStatus::InProgress, PlanStatus::Pending]);
    let result = bench.run("compact_chat", json!({"summary": "short"})).await;
    assert_eq!(result.compact.as_deref(), Some("short"));
    assert!(bench.review("compact_chat", json!({"summary": " "})).is_err());
}
