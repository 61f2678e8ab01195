//! `dragoman run` from outside: each flag and each exit code, over a fake model. No test here may wait for a person.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Gate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::client::{Home, fake_provider};

/// No run takes longer than this.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Fixture {
    pub home: Home,
    pub fake: FakeModel,
    pub config: Value,
}

pub(crate) struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let config = fake_provider(fake.url(), "openai-chat");
        Self { home, fake, config }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command: Command = self.home.command(&[&["run"], arguments].concat()).into();
        command.env("DRAGOMAN_CONFIG", self.config.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments)).await
    }

    /// The model wants to run a tool and then says that it is done.
    fn wants(&self, tool: &str, input: Value) {
        self.fake.answer(Answer::tool_call("c1", tool, input)).answer(Answer::text("finished"));
    }
}

pub(crate) async fn finish(mut command: Command) -> Ran {
    let output =
        tokio::time::timeout(WAIT_TIMEOUT, command.output()).await.expect("a run ends").expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub(crate) fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("JSON a line")).collect()
}

#[tokio::test]
async fn the_answer_is_all_of_stdout() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("Hello there."));
    let ran = bench.run(&["say", "hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello there.\n"), "{}", ran.err);
    assert!(!ran.err.contains('\x1b'));
    assert_eq!(bench.fake.last_request().last_user_text(), "say hello");
}

#[tokio::test]
async fn text_comes_as_the_model_says_it() {
    let bench = Fixture::new().await;
    let gate = Gate::new();
    bench.fake.answer(Answer::new().chunks(["first "]).gate(&gate).chunks(["second"]));
    let mut child = bench.command(&["go"]).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    let mut first = [0; 6];
    let read = tokio::time::timeout(WAIT_TIMEOUT, out.read_exact(&mut first)).await;
    read.expect("text before the end").expect("stdout");
    assert_eq!(&first, b"first ");
    gate.open();
    let mut rest = String::new();
    tokio::time::timeout(WAIT_TIMEOUT, out.read_to_string(&mut rest))
        .await
        .expect("the end")
        .expect("stdout");
    assert_eq!(rest, "second\n");
    assert_eq!(child.wait().await.expect("a status").code(), Some(0));
}

#[tokio::test]
async fn a_prompt_may_come_from_stdin() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("read"));
    let mut child = bench.command(&[]).stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin").write_all("a diff\nof two lines".as_bytes()).await.expect("written");
    let output =
        tokio::time::timeout(WAIT_TIMEOUT, child.wait_with_output()).await.expect("it ends").expect("output");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(bench.fake.last_request().last_user_text(), "a diff\nof two lines");
}

#[tokio::test]
async fn wrong_usage_is_2_and_reaches_no_model() {
    let bench = Fixture::new().await;
    let schema = bench.home.write("work/broken.json", "{");
    let broken = schema.to_str().expect("a path");
    for arguments in [
        vec![],
        vec!["--approve", "maybe", "x"],
        vec!["--max-steps", "0", "x"],
        vec!["--timeout", "-1", "x"],
        vec!["--timeout", "soon", "x"],
        vec!["--max-cost", "NaN", "x"],
        vec!["--continue", "--session", "s", "x"],
        vec!["--session", "not-there", "x"],
        vec!["--output-schema", "not-there.json", "x"],
        vec!["--output-schema", broken, "x"],
        vec!["--no-such-flag"],
    ] {
        let ran = bench.run(&arguments).await;
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.out, ran.err);
        assert!(!ran.err.trim().is_empty() && ran.out.is_empty(), "{arguments:?}");
    }
    assert!(bench.fake.requests().is_empty());
}

/// Refused before a model is asked and paid, with what to do about it; no chat is left of it.
#[tokio::test]
async fn what_cannot_work_is_refused_before_any_call() {
    let mut bench = Fixture::new().await;
    bench.config["agent"] = json!({"careful": {}});
    for (name, schema) in [("type.json", r#"{"type": "nonsense"}"#), ("number.json", "3")] {
        bench.home.write(&format!("work/{name}"), schema);
    }
    let known = "Choose one of these: agent, plan, careful.";
    for (arguments, code, words) in [
        (["--behavior", "nonsense"], 2, ["\"nonsense\"", known]),
        (["--output-schema", "type.json"], 2, ["not a JSON schema", "Correct the schema"]),
        (["--output-schema", "number.json"], 2, ["not a JSON schema", "Correct the schema"]),
        (["--max-cost", "1"], 2, ["fake/m1 has no price", "`providers.fake.models.m1.cost`"]),
        (["--model", "nobody/m"], 2, ["There is no provider called nobody", "Configured are: fake."]),
        (["--failover", "nobody/m"], 2, ["There is no provider called nobody", "Configured are: fake."]),
        (["--model", "nobody"], 2, ["nobody is not the name of a model", "provider/model"]),
        (["--model", "openai/gpt-5"], 1, ["OPENAI_API_KEY", "`dragoman login openai`"]),
    ] {
        let ran = bench.run(&[&arguments[..], &["x"]].concat()).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.err);
        assert!(words.iter().all(|words| ran.err.contains(words)), "{arguments:?}: {}", ran.err);
    }
    let nothing = finish({
        let mut command = bench.command(&["x"]);
        command.env("DRAGOMAN_CONFIG", "{}");
        command
    });
    let err = nothing.await.err;
    let ways =
        ["Ollama", "LM Studio", "`dragoman models pull`", "`dragoman login anthropic`", "ANTHROPIC_API_KEY"];
    let places: Vec<Option<usize>> = ways.iter().map(|way| err.find(way)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{err}");
    assert!(bench.fake.requests().is_empty());
    let list: Command = bench.home.command(&["chats", "list", "--all", "--json"]).into();
    let listed: Value = serde_json::from_str(&finish(list).await.out).expect("JSON");
    assert_eq!(listed["chats"], json!([]));
}

#[tokio::test]
async fn a_behavior_can_be_named() {
    let bench = Fixture::new().await;
    for (behavior, writes) in [("plan", false), ("agent", true), ("code", true)] {
        bench.fake.answer(Answer::text("ok"));
        let ran = bench.run(&["--behavior", behavior, "hi"]).await;
        assert_eq!(ran.code, Some(0), "{behavior}: {}", ran.err);
        let tools = bench.fake.last_request().body["tools"].to_string();
        assert_eq!(tools.contains("eca__write_file"), writes, "{behavior}");
    }
    // One in the settings that is not there is no reason to fail, and is said.
    let mut bench = bench;
    bench.config["defaultBehavior"] = json!("gone");
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["hi"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("`defaultAgent` names no behavior that can be chosen (agent, plan can)"),
        "{}",
        ran.err
    );
    assert!(bench.fake.last_request().body["tools"].to_string().contains("eca__write_file"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_1_with_what_came_and_one_sentence_after_another() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("half an ans").cut());
    let ran = bench.run(&["hi"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "half an ans\n"), "{}", ran.err);
    let said = ran.err.lines().last().unwrap_or_default();
    assert!(
        said.starts_with("The answer of fake broke off: ") && said.ends_with(". Ask to continue."),
        "{said}"
    );
    assert!(!said.contains(".."), "{said}");
}

#[tokio::test]
async fn json_is_one_event_a_line_with_a_version() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 1000, "output": 1000}});
    bench.home.write("work/a.txt", "content of a");
    bench.fake.answer(Answer::new().reasoning("hm").say("Reading. ").call(
        "c1",
        "eca__read_file",
        json!({"path": "a.txt"}),
    ));
    bench.fake.answer(Answer::text("It says \x1b[31mred."));
    let ran = bench.run(&["--json", "what is in a.txt?"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!ran.out.contains('\x1b'), "JSON has no raw control characters");
    let lines = lines(&ran.out);
    assert_eq!(lines[0]["type"], "start");
    assert_eq!(lines[0]["version"], 1);
    assert_eq!(lines[0]["model"], "fake/m1");
    assert!(lines[0]["session"].is_string());
    let end = lines.last().expect("an end");
    assert_eq!(end["type"], "end");
    assert_eq!((&end["outcome"], &end["exit"]), (&json!("done"), &json!(0)));
    let text: String =
        lines.iter().filter(|it| it["type"] == "text").filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(text, "Reading. It says \x1b[31mred.");
    let states: Vec<&Value> = lines.iter().filter(|it| it["type"] == "tool").map(|it| &it["state"]).collect();
    assert_eq!(states, ["running", "done"]);
    assert!(lines.iter().any(|it| it["type"] == "usage" && it["cost"].as_f64() > Some(0.0)), "{lines:?}");
    let known = ["start", "text", "reasoning", "tool", "progress", "notice", "usage", "end"];
    assert!(lines.iter().all(|it| known.contains(&it["type"].as_str().expect("a type"))), "{lines:?}");
}

#[tokio::test]
async fn an_answer_fits_its_schema_or_the_run_fails() {
    let bench = Fixture::new().await;
    bench.home.write(
        "work/schema.json",
        r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#,
    );
    let arguments = ["--output-schema", "schema.json", "count"];
    bench.fake.answer(Answer::text("```json\n{\"n\": 3}\n```"));
    let ran = bench.run(&arguments).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "{\"n\":3}\n"), "{}", ran.err);
    assert!(bench.fake.last_request().body.to_string().contains("integer"), "the model gets the schema");
    for answer in ["{\"n\": \"three\"}", "three"] {
        // The model learns what is wrong, and has two more tries.
        bench
            .fake
            .answer(Answer::text(answer))
            .answer(Answer::text(answer))
            .answer(Answer::text("{\"n\": 5}"));
        let before = bench.fake.requests().len();
        let ran = bench.run(&arguments).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "{\"n\":5}\n"), "{answer}: {}", ran.err);
        assert_eq!(bench.fake.requests().len() - before, 3, "{answer}");
        let asked = bench.fake.last_request().body["messages"].to_string();
        assert!(asked.contains("Answer again") && asked.contains("The answer"), "{asked}");
        for _ in 0..3 {
            bench.fake.answer(Answer::text(answer));
        }
        let ran = bench.run(&arguments).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{answer}: {}", ran.err);
        assert!(ran.err.contains("The answer"), "{}", ran.err);
    }
    bench.fake.answer(Answer::text("{\"n\": 4}"));
    let ran = bench.run(&["--json", "--output-schema", "schema.json", "count"]).await;
    let end = lines(&ran.out).pop().expect("an end");
    assert_eq!((&end["exit"], &end["result"]), (&json!(0), &json!({"n": 4})));
}

#[tokio::test]
async fn another_model_can_be_named() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m2"] = json!({});
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["--model", "fake/m2", "hi"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(bench.fake.last_request().body["model"], "m2");
    let ran = bench.run(&["--model", "nobody/m", "hi"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("nobody"), "{}", ran.err);
}

/// Each level lets its own calls through and no others; what is refused ends with 3 and runs nothing.
#[tokio::test]
async fn approval_goes_as_far_as_it_says() {
    let mut bench = Fixture::new().await;
    bench.config["toolCall"] = json!({"approval": {"ask": {"eca__read_file": {}}}});
    bench.home.write("work/a.txt", "content of a");
    let (read, write, shell) = ("eca__read_file", "eca__write_file", "eca__shell_command");
    let inputs = [
        (read, json!({"path": "a.txt"})),
        (write, json!({"path": "new.txt", "content": "new"})),
        (shell, json!({"command": "touch shell.txt"})),
    ];
    for (level, allowed) in [("none", 0), ("read", 1), ("edit", 2), ("all", 3)] {
        for (at, (tool, input)) in inputs.iter().enumerate() {
            let _ = std::fs::remove_file(bench.home.workspace().join("new.txt"));
            let _ = std::fs::remove_file(bench.home.workspace().join("shell.txt"));
            bench.wants(tool, input.clone());
            let ran = bench.run(&["--approve", level, "do it"]).await;
            let runs = at < allowed;
            assert_eq!(ran.code, Some(if runs { 0 } else { 3 }), "{level} {tool}: {}", ran.err);
            assert_eq!(ran.err.contains("--approve"), !runs, "{level} {tool}: {}", ran.err);
            let wrote = ["new.txt", "shell.txt"].iter().any(|it| bench.home.workspace().join(it).exists());
            assert_eq!(wrote, runs && at > 0, "{level} {tool}");
        }
    }
}

#[tokio::test]
async fn money_steps_and_time_end_with_4() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m1"] =
        json!({"cost": {"input": 100_000, "output": 100_000}});
    bench.home.write("work/a.txt", "content of a");
    let read = || Answer::tool_call("c1", "eca__read_file", json!({"path": "a.txt"}));
    bench.fake.answer(read()).answer(Answer::text("never asked"));
    let ran = bench.run(&["--max-cost", "0.01", "go"]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(bench.fake.requests().len(), 1, "no request after the money is gone");

    // Under a cap, a model without a price is not used; a cap of the settings says that it does not hold.
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"] =
        json!({"m1": {"cost": {"input": 1, "output": 1}}, "m2": {}});
    bench.fake.answer(Answer::status(401));
    let ran = bench.run(&["--max-cost", "1", "--failover", "fake/m2", "go"]).await;
    assert_eq!((ran.code, bench.fake.requests().len()), (Some(1), 1), "{}", ran.err);
    bench.config["budget"] = json!({"day": 5});
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["--model", "fake/m2", "go"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("`budget` does not count fake/m2"), "{}", ran.err);

    let bench = Fixture::new().await;
    bench.home.write("work/a.txt", "content of a");
    bench.fake.answer(read()).answer(read()).answer(read());
    let ran = bench.run(&["--max-steps", "2", "--json", "go"]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(lines(&ran.out).pop().expect("an end")["outcome"], "maxSteps");
    assert_eq!(bench.fake.requests().len(), 2);

    let bench = Fixture::new().await;
    bench.fake.answer(Answer::new().chunks(["half"]).silence());
    let since = Instant::now();
    let ran = bench.run(&["--timeout", "4", "go"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), "half\n"), "{}", ran.err);
    assert!(since.elapsed() >= Duration::from_secs(4) && ran.err.contains("time"), "{}", ran.err);
    bench.fake.wait_for_hangups(1).await;
}

#[tokio::test]
async fn a_chat_goes_on() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("Noted: blue."));
    let ran = bench.run(&["--json", "my color is blue"]).await;
    let session = lines(&ran.out)[0]["session"].as_str().expect("a session").to_owned();
    for arguments in [vec!["--continue", "which color?"], vec!["--session", &session, "which color?"]] {
        bench.fake.answer(Answer::text("Blue."));
        let ran = bench.run(&arguments).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Blue.\n"), "{}", ran.err);
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("my color is blue") && sent.contains("Noted: blue."), "{sent}");
    }
    // Where there is no chat to go on with, a new one begins.
    let fresh = Fixture::new().await;
    fresh.fake.answer(Answer::text("Hello."));
    assert_eq!(fresh.run(&["--continue", "hi"]).await.code, Some(0));
}

#[tokio::test]
async fn what_the_provider_refuses_is_1_with_a_reason() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::status(401));
    let ran = bench.run(&["hi"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    assert!(!ran.err.trim().is_empty() && !ran.err.contains("sk-secret"), "{}", ran.err);
}

/// Whoever reads only the beginning ends nothing badly, and a signal ends everything.
#[tokio::test]
async fn it_ends_whatever_happens() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::flood(2000, "word "));
    let mut child = bench.command(&["go"]).spawn().expect("it starts");
    drop(child.stdout.take());
    let status = tokio::time::timeout(WAIT_TIMEOUT, child.wait()).await.expect("it ends").expect("a status");
    assert_eq!(status.code(), Some(0));
    bench.fake.answer(Answer::new().chunks(["x"]).silence());
    let mut child = bench.command(&["go"]).spawn().expect("it starts");
    child.stdout.as_mut().expect("stdout").read_u8().await.expect("a first letter");
    let pid = child.id().expect("a running child").to_string();
    std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
    let status = tokio::time::timeout(WAIT_TIMEOUT, child.wait()).await.expect("it ends").expect("a status");
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn its_help_lists_the_exit_codes() {
    let bench = Fixture::new().await;
    let ran = bench.run(&["--help"]).await;
    assert_eq!(ran.code, Some(0));
    for part in
        ["0  done", "1  failed", "2  wrong usage", "3  a tool call needed approval", "4  budget", "Example"]
    {
        assert!(ran.out.contains(part), "{part}");
    }
}

/// `--approve all` skips the question, never the sandbox, and cannot grant more than the sandbox allows.
#[tokio::test]
async fn approval_does_not_lead_out_of_the_sandbox() {
    let mut bench = Fixture::new().await;
    bench.config["sandbox"] = json!("on");
    let outside = bench.home.path().join("outside.txt");
    let line = format!("touch {}; touch inside.txt", outside.display());
    bench.wants("eca__shell_command", json!({"command": line}));
    let ran = bench.run(&["--approve", "all", "do it"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(bench.home.workspace().join("inside.txt").exists());
    if cfg!(target_os = "linux") {
        assert!(!outside.exists(), "the command wrote outside of its workspace");
    }

    bench.wants("eca__shell_command", json!({"command": "touch granted.txt", "grants": ["network"]}));
    let ran = bench.run(&["--approve", "all", "do it"]).await;
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(!bench.home.workspace().join("granted.txt").exists());

    bench.config["sandbox"] = json!("off");
    bench.wants("eca__shell_command", json!({"command": line}));
    let ran = bench.run(&["--approve", "all", "do it"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(outside.exists(), "the user switched the sandbox off");
}

/// The second call is about the file that the first one makes.
#[tokio::test]
async fn a_file_can_be_written_and_edited_in_one_answer() {
    let bench = Fixture::new().await;
    let write = json!({"path": "new.txt", "content": "one\ntwo\n"});
    let edit = |from: &str, to: &str| json!({"path": "new.txt", "old_text": from, "new_text": to});
    bench
        .fake
        .answer(
            Answer::tool_call("c1", "eca__write_file", write)
                .call("c2", "eca__edit_file", edit("two", "three"))
                .call("c3", "eca__edit_file", edit("three", "four"))
                .call("c4", "eca__read_file", json!({"path": "new.txt"})),
        )
        .answer(Answer::text("finished"));
    let ran = bench.run(&["--approve", "edit", "--json", "write it"]).await;
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let text = std::fs::read_to_string(bench.home.workspace().join("new.txt")).expect("the file");
    assert_eq!(text, "one\nfour\n");
    let results = bench.fake.last_request().tool_results();
    assert!(results[3].contains("four"), "a call that reads sees what was written before it: {results:?}");
    let events = lines(&ran.out);
    let diffs =
        events.iter().filter(|event| event["state"] == "running").filter_map(|it| it["diff"].as_str());
    let diffs: Vec<&str> = diffs.collect();
    assert!(diffs.len() == 3 && diffs[2].contains("-three") && diffs[2].contains("+four"), "{diffs:?}");
}

/// In every format: the provider refuses the request, the chat is compacted, and the request is repeated.
#[tokio::test]
async fn a_request_that_is_refused_as_too_long_is_compacted_and_repeated() {
    for (format, body) in [
        (
            "openai-chat",
            r#"{"error":{"message":"This model's maximum context length is 4096 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        ),
        (
            "openai-responses",
            r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
        ),
        (
            "anthropic",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
        ),
    ] {
        let mut bench = Fixture::new().await;
        bench.config = fake_provider(bench.fake.url(), format);
        bench.fake.answer(Answer::text("first"));
        let ran = bench.run(&["Never touch config.lock."]).await;
        assert_eq!(ran.code, Some(0), "{format}: {}", ran.err);
        bench
            .fake
            .answer(Answer::status(400).header("content-type", "application/json").body(body))
            .answer(Answer::text("in short"))
            .answer(Answer::text("done"));
        let ran = bench.run(&["--continue", "go on"]).await;
        assert_eq!((ran.code, ran.out.trim()), (Some(0), "done"), "{format}: {}", ran.err);
        let sent = bench.fake.last_request().body.to_string();
        for wanted in ["Never touch config.lock.", "in short", "go on"] {
            assert!(sent.contains(wanted), "{format}: {wanted} is missing in {sent}");
        }
    }
}
