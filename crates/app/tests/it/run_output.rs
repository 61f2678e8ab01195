//! `dragoman run` from outside: what reaches stdout, stderr and files, in each format.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::Answer;

use crate::run::{Fixture, finish, lines};

/// The schema that docs/run.md publishes.
fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-events.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON")
}

fn assert_valid(schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let problems: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{value}: {problems:?}");
}

/// A run that edits a file: every event matches the schema and carries input, output, diff, tokens, cost and text.
#[tokio::test]
async fn events_tell_everything_and_match_the_schema() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 1000, "output": 1000}});
    let input = json!({"path": "new.txt", "content": "one\n"});
    bench.fake.answer(Answer::new().reasoning("hm").say("Writing. ").call(
        "c1",
        "eca__write_file",
        input.clone(),
    ));
    bench.fake.answer(Answer::text("Written."));
    let ran = bench.run(&["--json", "--approve", "edit", "go"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let (schema, events) = (schema(), lines(&ran.out));
    events.iter().for_each(|event| assert_valid(&schema, event));
    let done = events.iter().find(|it| it["type"] == "tool" && it["state"] == "done").expect("a call");
    assert_eq!(done["input"], input);
    assert!(done["diff"].as_str().is_some_and(|diff| diff.contains("+one")), "{done}");
    assert!(done["output"].as_str().is_some_and(|output| !output.is_empty()), "{done}");
    let usage = events.iter().rfind(|it| it["type"] == "usage").expect("usage");
    assert!(usage["cost"].as_f64() > Some(0.0), "{usage}");
    assert!(usage["total"]["input"].as_u64() > usage["last"]["input"].as_u64(), "{usage}");
    let end = events.last().expect("an end");
    assert_eq!((&end["type"], &end["text"]), (&json!("end"), &json!("Written.")));
    // A run that cannot start ends with an event of the same format, also where the command line is wrong.
    for arguments in [["--behavior", "nonsense"], ["--cwd", "nowhere"], ["--file", "nothing.txt"]] {
        let ran = bench.run(&[&["--json"], &arguments[..], &["go"]].concat()).await;
        let events = lines(&ran.out);
        assert_eq!((ran.code, events.len()), (Some(2), 1), "{arguments:?}: {}", ran.err);
        assert_valid(&schema, &events[0]);
        assert!(events[0]["message"].as_str().is_some_and(|it| ran.err.contains(it)), "{}", ran.err);
        let ran = bench.run(&[&["--output", "json"], &arguments[..], &["go"]].concat()).await;
        let object: Value = serde_json::from_str(&ran.out).expect("one object");
        assert_valid(&json!({"$ref": "#/$defs/summary", "$defs": schema["$defs"]}), &object);
    }
}

/// A signal ends a run as its deadline does: with all that was said until then, in every format.
#[cfg(unix)]
#[tokio::test]
async fn a_stopped_run_tells_how_far_it_came() {
    use tokio::io::{AsyncBufReadExt, BufReader};

    let bench = Fixture::new().await;
    let (schema, answer) = (schema(), bench.home.workspace().join("answer.txt"));
    for signal in ["-INT", "-TERM"] {
        bench.fake.answer(Answer::new().chunks(["one ", "two ", "three"]).silence());
        let mut child = bench.command(&["--json", "-o", "answer.txt", "go"]).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut said = String::new();
        while !said.ends_with("three") {
            let line = out.next_line().await.expect("stdout").expect("a line");
            let event: Value = serde_json::from_str(&line).expect("JSON");
            said.push_str(event["text"].as_str().filter(|_| event["type"] == "text").unwrap_or_default());
        }
        let pid = child.id().expect("a running child").to_string();
        std::process::Command::new("kill").args([signal, &pid]).status().expect("kill");
        let mut end = Value::Null;
        while let Some(line) = out.next_line().await.expect("stdout") {
            end = serde_json::from_str(&line).expect("JSON");
        }
        let ended = child.wait_with_output().await.expect("an end");
        assert_eq!(ended.status.code(), Some(1), "{signal}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains("Stopped."), "{signal}");
        assert_eq!((&end["outcome"], &end["text"]), (&json!("stopped"), &json!("one two three")), "{signal}");
        assert_valid(&schema, &end);
        assert_eq!(std::fs::read_to_string(&answer).expect("the file"), "one two three\n");
        std::fs::remove_file(&answer).expect("removed");
    }
}

#[tokio::test]
async fn one_object_can_be_had() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("Hello."));
    let ran = bench.run(&["--output", "json", "hi"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let object: Value = serde_json::from_str(&ran.out).expect("one object");
    assert_eq!((&object["version"], &object["model"]), (&json!(1), &json!("fake/m1")));
    assert_eq!(
        (&object["text"], &object["outcome"], &object["exit"]),
        (&json!("Hello."), &json!("done"), &json!(0))
    );
    assert!(object["usage"]["total"]["output"].as_u64() > Some(0), "{object}");
    assert_valid(&json!({"$ref": "#/$defs/summary", "$defs": schema()["$defs"]}), &object);
    let ran = bench.run(&["--output", "json", "--model", "nobody/m", "hi"]).await;
    let object: Value = serde_json::from_str(&ran.out).expect("one object");
    assert_eq!((ran.code, &object["exit"]), (Some(2), &json!(2)));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_answer_that_cannot_be_written_is_a_failure() {
    let bench = Fixture::new().await;
    for flags in [&["go"][..], &["--json", "go"], &["--output", "json", "go"]] {
        bench.fake.answer(Answer::text("lost"));
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut command = bench.command(flags);
        command.stdout(Stdio::from(full));
        let child = command.spawn().expect("it starts").wait_with_output().await.expect("it ends");
        let err = String::from_utf8_lossy(&child.stderr);
        assert_eq!(child.status.code(), Some(1), "{flags:?}: {err}");
        assert!(err.contains("Writing the answer to stdout failed"), "{flags:?}: {err}");
    }
}

#[tokio::test]
async fn the_answer_goes_to_a_file_too() {
    let bench = Fixture::new().await;
    bench.home.write("work/answer.md", "old");
    bench.fake.answer(Answer::text("The answer."));
    let ran = bench.run(&["-o", "answer.md", "go"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "The answer.\n"), "{}", ran.err);
    let written = std::fs::read_to_string(bench.home.workspace().join("answer.md")).expect("a file");
    assert_eq!(written, "The answer.\n");
    // Said before a model is asked.
    let ran = bench.run(&["-o", "not/there/answer.md", "go"]).await;
    assert!(ran.code == Some(2) && ran.err.contains("not/there"), "{:?} {}", ran.code, ran.err);
}

/// Stderr has sentences for people: no log lines, a failed call is called failed, and `-q` leaves only failures.
#[tokio::test]
async fn stderr_is_for_people_and_can_be_quiet() {
    let bench = Fixture::new().await;
    let wrong = || Answer::tool_call("c1", "eca__no_such_tool", json!({}));
    bench.fake.answer(wrong()).answer(Answer::text("ok"));
    let ran = bench.run(&["go"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("no_such_tool (failed)"), "{}", ran.err);
    for log in ["WARN", "INFO", "ERROR"] {
        assert!(!ran.err.contains(log), "{}", ran.err);
    }
    bench.fake.answer(wrong()).answer(Answer::text("ok"));
    let ran = bench.run(&["-q", "go"]).await;
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("ok\n", ""));
    let ran = finish(bench.command(&["-q", "--model", "nobody/m", "go"])).await;
    assert!(ran.err.contains("nobody"), "{}", ran.err);
}

/// The script of the GitHub Action and the GitLab template: the change reaches the model, the answer a file.
#[tokio::test]
async fn the_review_script_of_ci_works() {
    let bench = Fixture::new().await;
    let folder = bench.home.workspace();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let output = command.current_dir(&folder).env("HOME", bench.home.path()).output().expect("git");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    bench.home.write("work/a.txt", "one\n");
    git(&["add", "a.txt"]);
    git(&["commit", "-qm", "first"]);
    git(&["checkout", "-q", "-b", "topic"]);
    bench.home.write("work/a.txt", "two\n");
    git(&["commit", "-qam", "second"]);
    let folder_of_scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/ci");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_dragoman"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    // The lines that GitHub and GitLab run, out of their own files.
    let line_of = |file: &str, mark: &str| {
        let text = std::fs::read_to_string(format!("{folder_of_scripts}/{file}")).expect("a template");
        let line = text.lines().find_map(|line| line.trim().strip_prefix(mark)).expect("a script").to_owned();
        line.trim_matches('\'').to_owned()
    };
    for line in [line_of("action.yml", "run: "), line_of("gitlab.yml", "- sh ").replacen('"', "sh \"", 1)] {
        bench.fake.answer(Answer::text("Looks good."));
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", &line]).current_dir(&folder).env_clear();
        command.env("PATH", &path).env("HOME", bench.home.path()).env("DRAGOMAN_BASE", "main");
        command.env("GITHUB_ACTION_PATH", folder_of_scripts);
        command.env("DRAGOMAN_SCRIPT", format!("{folder_of_scripts}/review"));
        command.env("DRAGOMAN_CONFIG", bench.config.to_string());
        let ran = finish(command).await;
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        let review = folder.join("dragoman-review.md");
        assert_eq!(std::fs::read_to_string(&review).expect("a file"), "Looks good.\n", "{line}");
        let sent = bench.fake.last_request().last_user_text();
        assert!(sent.contains("-one") && sent.contains("+two"), "{sent}");
        std::fs::remove_file(review).expect("removed");
    }
    // Each variable of the script is an input of the action or has a default in the script.
    let script = std::fs::read_to_string(format!("{folder_of_scripts}/review")).expect("the script");
    let action = std::fs::read_to_string(format!("{folder_of_scripts}/action.yml")).expect("the action");
    for name in action.split("DRAGOMAN_").skip(1).filter_map(|part| part.split(':').next()) {
        assert!(script.contains(&format!("DRAGOMAN_{name}")), "{name}");
    }
}

/// The review becomes a comment of a pull or merge request; the next one replaces it.
#[tokio::test]
async fn a_review_is_posted_and_replaced() {
    let bench = Fixture::new().await;
    let folder = bench.home.workspace();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/ci/review");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_dragoman"));
    let setup = "git init -q -b main && git -c user.name=t -c user.email=t@e commit -q --allow-empty -m one && \
        echo x > a.txt && git checkout -q -b topic && git add a.txt && git -c user.name=t -c user.email=t@e commit -qm two";
    let made =
        std::process::Command::new("sh").args(["-c", setup]).current_dir(&folder).status().expect("git");
    assert!(made.success());
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    for (post, root, change) in [
        ("github", "/repos/o/r/issues", "PATCH /repos/o/r/issues/comments/71"),
        ("gitlab", "/projects/5/merge_requests", "PUT /projects/5/merge_requests/12/notes/71"),
    ] {
        let forge = Forge::start().await;
        for (round, text) in ["Looks \"good\".\n\tReally\\!", "Better."].into_iter().enumerate() {
            bench.fake.answer(Answer::text(text));
            let mut command = tokio::process::Command::new("sh");
            command.arg(script).current_dir(&folder).env_clear();
            command.env("PATH", &path).env("HOME", bench.home.path()).env("DRAGOMAN_BASE", "main");
            command.env("DRAGOMAN_CONFIG", bench.config.to_string()).env("DRAGOMAN_POST", post);
            command.env("DRAGOMAN_TOKEN", "secret").env("DRAGOMAN_NUMBER", "12");
            command.env("GITHUB_API_URL", &forge.url).env("GITHUB_REPOSITORY", "o/r");
            command.env("CI_API_V4_URL", &forge.url).env("CI_PROJECT_ID", "5");
            let ran = finish(command).await;
            assert_eq!(ran.code, Some(0), "{post}: {}", ran.err);
            let (line, body) = forge.last_change();
            let body: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
            let expected = format!("<!-- dragoman-review -->\n{text}\n");
            assert_eq!(body["body"].as_str(), Some(expected.as_str()), "{post}");
            let comments = if post == "github" { "comments" } else { "notes" };
            let wanted = if round == 0 { format!("POST {root}/12/{comments}") } else { change.to_owned() };
            assert!(line.starts_with(&wanted), "{line}");
        }
    }
}

/// A forge that keeps one comment, with the number 71.
struct Forge {
    url: String,
    changes: std::sync::Arc<std::sync::Mutex<Vec<(String, String)>>>,
    served: tokio::task::JoinHandle<()>,
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Forge {
    async fn start() -> Self {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let changes: std::sync::Arc<std::sync::Mutex<Vec<(String, String)>>> = std::sync::Arc::default();
        let kept = changes.clone();
        let served = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let (head, body) = loop {
                    let mut buffer = [0; 4096];
                    let count = stream.read(&mut buffer).await.unwrap_or(0);
                    request.extend_from_slice(&buffer[..count]);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else {
                        assert!(count > 0, "half a request: {text}");
                        continue;
                    };
                    let length = head
                        .lines()
                        .filter_map(|line| {
                            line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
                        })
                        .next()
                        .unwrap_or(0_usize);
                    if body.len() >= length {
                        break (head.to_owned(), body.to_owned());
                    }
                };
                assert!(head.contains("secret"), "the token: {head}");
                let answer = match (head.starts_with("GET "), kept.lock().expect("changes").last()) {
                    (true, None) => "[]".to_owned(),
                    (true, Some((_, body))) => {
                        let body: Value = serde_json::from_str(body).expect("JSON");
                        json!([{"id": 7, "body": "another"}, {"id": 71, "body": body["body"]}]).to_string()
                    }
                    (false, _) => "{}".to_owned(),
                };
                if !head.starts_with("GET ") {
                    let line = head.lines().next().unwrap_or_default().to_owned();
                    kept.lock().expect("changes").push((line, body));
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
                    answer.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, changes, served }
    }

    fn last_change(&self) -> (String, String) {
        self.changes.lock().expect("changes").last().cloned().expect("a comment")
    }
}
