//! Formatters after a change: contained, recorded for undo, and without effect where they fail.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider, run_command};

#[tokio::test]
async fn a_formatter_runs_contained_after_a_change_and_undo_takes_both_back() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["formatters"] = json!({
        "up": "tr a-z A-Z",
        "evil": "touch made-by-formatter && cat",
        "bad": "echo broken; echo no such syntax >&2; exit 1",
    });
    let (_, doctor, _) = run_command(&home, &json!({}), &["doctor"]).await;
    if !doctor.contains("namespaces, Landlock and seccomp") {
        testkit::skip("this system has no complete sandbox");
        return;
    }
    let run = async |text: &str| {
        let (code, out, err) =
            run_command(&home, &config, &["run", "--continue", "--approve", "all", text]).await;
        assert_eq!(code, Some(0), "{out}{err}");
    };
    let read = |name: &str| std::fs::read_to_string(home.workspace().join(name)).unwrap_or_default();
    let call = |name: &str, input: Value| {
        fake.answer(Answer::tool_call("c", &format!("eca__{name}"), input)).answer(Answer::text("ok"));
    };
    let told = || fake.last_request().tool_results().last().cloned().expect("a result");
    home.write("work/a.up", "OLD\n");
    let (code, ..) = {
        fake.answer(Answer::text("hello"));
        run_command(&home, &config, &["run", "hello"]).await
    };
    assert_eq!(code, Some(0));
    call("edit_file", json!({"path": "a.up", "original_content": "OLD", "new_content": "new text"}));
    run("change it").await;
    assert_eq!(read("a.up"), "NEW TEXT\n");
    assert!(told().contains("formatter changed it") && told().contains("+NEW TEXT"), "{}", told());
    // The model may go on without reading the file again.
    call("edit_file", json!({"path": "a.up", "original_content": "TEXT", "new_content": "WORDS"}));
    run("again").await;
    assert!(!told().contains("formatter"), "it is formatted already: {}", told());
    run("/undo").await;
    run("/undo").await;
    assert_eq!(read("a.up"), "OLD\n");
    // It can write nothing, and one that fails changes nothing.
    for name in ["b.evil", "b.bad"] {
        call("write_file", json!({"path": name, "content": "text\n"}));
        run("write it").await;
        assert_eq!(read(name), "text\n");
        assert!(told().contains("It was not formatted"), "{}", told());
    }
    assert!(!home.workspace().join("made-by-formatter").exists());
}
