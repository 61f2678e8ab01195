//! How work ends, from outside: the nudge to verify, `run --until`, goals after a kill, the reviewer in `explain-permission`.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::client::{Client, Home, contents, fake_provider, system_text};
use crate::run::{Fixture, Ran, finish, lines};

fn write(path: &str) -> Answer {
    Answer::tool_call("written", "eca__write_file", json!({"path": path, "content": "x = 1\n"}))
}

/// A project whose check succeeds when `made.py` is there.
async fn project() -> Fixture {
    let bench = Fixture::new().await;
    bench.home.write("work/Makefile", "test:\n\t@test -e made.py\n");
    bench
}

#[tokio::test]
async fn a_run_that_changed_files_verifies_them_or_says_that_it_did_not() {
    let bench = project().await;
    let check = Answer::tool_call("check", "eca__shell_command", json!({"command": "make test"}));
    bench.fake.answer(write("made.py")).answer(Answer::text("Changed.")).answer(check);
    bench.fake.answer(Answer::text("Changed; make test passes."));
    let ran = bench.run(&["--approve", "all", "Make it."]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.out.contains("make test passes") && ran.err.contains("asked to verify"),
        "{}{}",
        ran.out,
        ran.err
    );
    let requests = bench.fake.requests();
    assert_eq!(requests.len(), 4);
    let nudge = requests[2].last_user_text();
    assert!(nudge.contains("made.py") && nudge.contains("`make test`"), "{nudge}");
    // A check that ran costs no request, and where no command may run nobody is asked for one.
    let check = Answer::tool_call("check", "eca__shell_command", json!({"command": "make test"}));
    bench.fake.answer(write("other.py")).answer(check).answer(Answer::text("Checked."));
    let ran = bench.run(&["--approve", "all", "Again."]).await;
    assert_eq!((ran.code, bench.fake.requests().len()), (Some(0), 7), "{}", ran.err);
    let mut without = bench;
    without.config["sandbox"] = json!("off");
    without.fake.answer(write("third.py")).answer(Answer::text("Changed."));
    let ran = without.run(&["--approve", "edit", "Once more."]).await;
    assert_eq!((ran.code, without.fake.requests().len()), (Some(0), 9), "{}", ran.err);
}

/// Writes the file at the second answer, and agrees with every audit.
fn reach(request: &Request) -> Answer {
    let text = request.last_user_text();
    let body = request.body.to_string();
    if text.contains("GOAL: DONE") {
        Answer::text("All is there.\nGOAL: DONE")
    } else if body.contains("The goal is not reached yet") && !body.contains("\"tool_call_id\":\"written\"") {
        write("made.py")
    } else {
        Answer::text("I tried.")
    }
}

#[tokio::test]
async fn run_until_goes_on_until_the_command_succeeds() {
    let bench = project().await;
    bench.fake.respond_with(reach);
    let ran = bench.run(&["--approve", "all", "--until", "make test", "Fix it."]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("The goal is reached"), "{}", ran.err);
    assert_eq!(
        ran.out, "I tried.\nI tried.\nAll is there.\nGOAL: DONE\n",
        "each answer has lines of its own"
    );
    assert!(bench.home.workspace().join("made.py").exists());
    let requests = bench.fake.requests();
    assert_eq!(requests.len(), 4, "a try, the change, its end, the audit");
    for pair in requests.windows(2) {
        let (before, after) = (pair[0].messages(), pair[1].messages());
        assert!(after.starts_with(before), "requests grow at their end");
    }
    // The goal of the next run is reached at once, but for the audit.
    let ran = bench.run(&["--approve", "all", "--json", "--until", "make test", "Fix it."]).await;
    let end = lines(&ran.out).pop().expect("an end");
    assert_eq!((ran.code, end["outcome"].as_str()), (Some(0), Some("done")), "{end}");
}

#[tokio::test]
async fn run_until_says_with_its_exit_code_why_it_stopped() {
    let mut bench = project().await;
    bench.config["goal"] = json!({"maxSteps": 2});
    bench.fake.respond_with(|request| Answer::text(&format!("Try {}.", request.messages().len())));
    let ran = bench.run(&["--approve", "all", "--until", "make test", "Fix it."]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("2 steps"), "{}", ran.err);
    // Without a sandbox and without an approval the command itself may not run.
    bench.config["sandbox"] = json!("off");
    let ran = bench.run(&["--approve", "edit", "--until", "make test", "Fix it."]).await;
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("was not run"), "{}", ran.err);
    let ran = bench.run(&["--allow", "shell_command=make test", "--until", "make test", "Fix it."]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.err);
}

#[tokio::test]
async fn a_goal_goes_on_after_a_kill() {
    let bench = project().await;
    bench.fake.answer(Answer::text("I tried.")).answer(Answer::new().silence());
    let mut child =
        bench.command(&["--approve", "all", "--until", "make test", "Fix it."]).spawn().expect("it starts");
    bench.fake.wait_for_requests(2).await;
    // What the second request holds is on disk.
    tokio::time::sleep(Duration::from_millis(300)).await;
    child.kill().await.expect("killed");
    bench.fake.respond_with(reach);
    let ran: Ran = finish(bench.command(&["--approve", "all", "--continue", "/goal"])).await;
    assert!(ran.out.contains("the command `make test` succeeds"), "{}{}", ran.out, ran.err);
    let ran = bench.run(&["--approve", "all", "--continue", "Go on."]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("The goal is reached"), "{}", ran.err);
}

#[tokio::test]
async fn a_goal_is_set_shown_and_ended_in_an_editor() {
    let (home, fake) = (Home::new(), testkit::FakeModel::start().await);
    fake.respond_with(|request| match request.last_user_text().contains("GOAL: DONE") {
        true => Answer::text("GOAL: DONE"),
        false => Answer::text("Done."),
    });
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let (_, shown) = client.prompt(Some("c"), "/goal every page has a title").await;
    let text = system_text(&shown);
    assert!(text.contains("Goal: every page has a title") && text.contains("The goal is reached"), "{text}");
    let (_, shown) = client.prompt(Some("c"), "/goal").await;
    assert!(system_text(&shown).contains("It is reached."), "{}", system_text(&shown));
    let (_, shown) = client.prompt(Some("c"), "/goal off").await;
    assert!(system_text(&shown).contains("The goal is off."), "{:?}", contents(&[]));
}

#[tokio::test]
async fn explain_permission_says_what_the_reviewer_would_do() {
    let home = Home::new();
    home.write("config/dragoman/config.json", "{}");
    let config = json!({"sandbox": "off", "toolCall": {"approval": {"reviewer": "house/judge"}}});
    let explain = |tool: &str, input: Value| {
        let input = input.to_string();
        let mut command = home.command(&["explain-permission", "--json", tool, &input]);
        let output = command.env("DRAGOMAN_CONFIG", config.to_string()).output().expect("it runs");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let write = explain("write_file", json!({"path": "a.txt", "content": "x"}));
    assert!(write["reviewer"].as_str().is_some_and(|text| text.contains("is asked first")), "{write}");
    for (tool, input) in [
        ("write_file", json!({"path": "/etc/hosts", "content": "x"})),
        ("write_file", json!({"path": ".git/hooks/pre-commit", "content": "x"})),
    ] {
        let explained = explain(tool, input);
        let text = explained["reviewer"].as_str().unwrap_or_default();
        assert!(explained["decision"] == "ask" && text.contains("A person must answer"), "{explained}");
    }
    let read = explain("read_file", json!({"path": "a.txt"}));
    assert!(read["decision"] == "allow" && read.get("reviewer").is_none(), "{read}");
}
