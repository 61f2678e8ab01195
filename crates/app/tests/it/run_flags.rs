//! `dragoman run` from outside: where its prompt comes from, and its flags for folders, files, rules and instructions.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::Answer;
use tokio::io::AsyncWriteExt;

use crate::client::Home;
use crate::run::{Fixture, Ran, finish};

/// Runs with text on stdin.
async fn piped(bench: &Fixture, arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = bench.command(arguments).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_vec();
    // A program that has read enough closes its end.
    tokio::spawn(async move { stdin.write_all(&input).await });
    let output = child.wait_with_output().await.expect("output");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[tokio::test]
async fn piped_text_belongs_to_the_prompt() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("ok")).answer(Answer::text("ok")).answer(Answer::text("ok"));
    let ran = piped(&bench, &["review", "this"], b"+ a new line\n").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = bench.fake.last_request().last_user_text();
    assert!(sent.starts_with("review this\n") && sent.contains("+ a new line"), "{sent}");
    let ran = piped(&bench, &["-"], b"the prompt itself").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(bench.fake.last_request().last_user_text(), "the prompt itself");
    // Piped text may be anyone's: it adds no files.
    bench.home.write("work/secret.txt", "the secret");
    bench.fake.answer(Answer::text("ok")).answer(Answer::text("ok"));
    let ran = piped(&bench, &["review", "@missing/file.rs"], b"see @secret.txt").await;
    assert!(ran.code == Some(0) && ran.err.contains("There is no missing/file.rs"), "{}", ran.err);
    assert!(!bench.fake.last_request().body.to_string().contains("the secret"));
    piped(&bench, &["-"], b"see @secret.txt").await;
    assert!(bench.fake.last_request().body.to_string().contains("the secret"));
    // Nothing piped in changes nothing.
    let ran = piped(&bench, &["alone"], b"").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(bench.fake.last_request().last_user_text(), "alone");
}

#[tokio::test]
async fn too_much_on_stdin_is_refused_and_not_cut() {
    let bench = Fixture::new().await;
    let ran = piped(&bench, &["summarize"], &vec![b'x'; (16 << 20) + 1]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("larger than 16 MiB"), "{}", ran.err);
    let ran = piped(&bench, &["summarize"], &[0xff, 0xfe, 0x00]).await;
    assert!(ran.code == Some(2) && ran.err.contains("not UTF-8"), "{}", ran.err);
    assert!(bench.fake.requests().is_empty());
}

#[tokio::test]
async fn a_folder_can_be_named_and_others_added() {
    let bench = Fixture::new().await;
    bench.home.write("work/inner/a.txt", "content of a");
    bench.home.write("other/b.txt", "content of b");
    let other = bench.home.path().join("other");
    for name in ["a.txt", other.join("b.txt").to_str().expect("a path")] {
        bench.fake.answer(Answer::tool_call("c1", "eca__read_file", json!({"path": name})));
        bench.fake.answer(Answer::text("done"));
        let ran = bench.run(&["-C", "inner", "--add-dir", other.to_str().expect("a path"), "read it"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("content of"), "{name}: {sent}");
    }
    for arguments in [["-C", "not-there"], ["--add-dir", "not-there"]] {
        let ran = bench.run(&[&arguments[..], &["x"]].concat()).await;
        assert!(ran.code == Some(2) && ran.err.contains("not-there"), "{arguments:?}: {}", ran.err);
    }
}

#[tokio::test]
async fn files_and_images_go_with_the_prompt() {
    let bench = Fixture::new().await;
    bench.home.write("work/a.txt", "content of a");
    let png = bench.home.path().join("shot.png");
    std::fs::write(&png, b"\x89PNG\r\n\x1a\n0000").expect("an image");
    let outside = bench.home.write("log.txt", "content of a log");
    bench.fake.answer(Answer::text("ok"));
    let (png, outside) = (png.to_str().expect("a path"), outside.to_str().expect("a path"));
    let ran = bench.run(&["-f", png, "--image", outside, "compare with @a.txt, please; mail@example"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = bench.fake.last_request().body.to_string();
    for part in ["content of a log", "content of a\\n", "image/png", "mail@example"] {
        assert!(
            sent.contains(part) || part == "content of a\\n" && sent.contains("content of a"),
            "{part}: {sent}"
        );
    }
    let ran = bench.run(&["-f", "not-there.png", "x"]).await;
    assert!(ran.code == Some(2) && ran.err.contains("not-there.png"), "{}", ran.err);
}

#[tokio::test]
async fn rules_for_tools_come_from_flags_and_deny_wins() {
    let bench = Fixture::new().await;
    let touch = |name: &str| json!({"command": format!("touch {name}")});
    for (flags, name, runs) in [
        (vec!["--allow", r"shell_command=touch a\.txt"], "a.txt", true),
        (vec!["--allow", r"shell_command=touch a\.txt"], "b.txt", false),
        (vec!["--allow", "shell_command"], "c.txt", true),
        (vec!["--approve", "all", "--deny", "shell_command=touch d.*"], "d.txt", false),
        (vec!["--allow", "shell_command", "--deny", "shell_command"], "e.txt", false),
    ] {
        bench.fake.answer(Answer::tool_call("c1", "eca__shell_command", touch(name)));
        bench.fake.answer(Answer::text("done"));
        let ran = bench.run(&[&flags[..], &["go"]].concat()).await;
        assert_eq!(bench.home.workspace().join(name).exists(), runs, "{flags:?} {name}: {}", ran.err);
    }
    // A rule that means nothing would let the run do more than its user thinks.
    for wrong in [["--deny", "shel_command"], ["--deny", "shell_command=("], ["--allow", "nothing__here"]] {
        let ran = bench.run(&[&wrong[..], &["--approve", "all", "go"]].concat()).await;
        assert_eq!(ran.code, Some(2), "{wrong:?}: {}", ran.err);
    }
    let ran = bench.run(&["--allow", "=x", "go"]).await;
    assert!(ran.code == Some(2) && ran.err.contains("TOOL=PATTERN"), "{}", ran.err);
}

/// The system prompt has the date, the system, the shell and the git branch, and what the flags say.
#[tokio::test]
async fn instructions_know_the_machine_and_can_be_replaced() {
    let bench = Fixture::new().await;
    bench.home.write("work/.git/HEAD", "ref: refs/heads/topic\n");
    let system = |bench: &Fixture| bench.fake.last_request().body["messages"][0].to_string();
    bench.fake.answer(Answer::text("ok"));
    let mut command = bench.command(&["--append-system-prompt", "Answer in rhymes.", "hi"]);
    command.env("SHELL", "/bin/zsh");
    assert_eq!(finish(command).await.code, Some(0));
    let sent = system(&bench);
    for part in
        ["Date: 20", "System: ", "Shell: /bin/zsh", "Git: branch topic", "Answer in rhymes.", "Dragoman"]
    {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    assert!(!sent.contains("the user's editor"), "{sent}");
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["--system-prompt", "You are a pirate.", "hi"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = system(&bench);
    assert!(sent.contains("You are a pirate.") && !sent.contains("a coding assistant"), "{sent}");
}

/// The first request has the tools of MCP servers, also of those that only a flag names.
#[tokio::test]
async fn the_first_request_has_the_tools_of_servers() {
    let mut bench = Fixture::new().await;
    let config = crate::eca_mcp::config(&bench.home, bench.fake.url(), &[("demo", "normal")]);
    let servers = json!({"mcpServers": {"extra": config["mcpServers"]["demo"]}}).to_string();
    bench.config = config;
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["--mcp-config", &servers, "hi"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let tools = bench.fake.last_request().body["tools"].to_string();
    assert!(tools.contains("demo__") && tools.contains("extra__"), "{tools}");
    // Its tools are known from the first run, its prompts are not: the server is waited for.
    for _ in 0..2 {
        bench.fake.answer(Answer::text("ok"));
        let ran = bench.run(&["/demo:greet", "Ada"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(bench.fake.last_request().last_user_text().contains("Ada"));
    }
}

#[tokio::test]
async fn an_unknown_command_is_refused_and_a_path_is_not() {
    let bench = Fixture::new().await;
    let ran = bench.run(&["/nonsense", "now"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("no command /nonsense") && ran.err.contains("/compact"), "{}", ran.err);
    assert!(bench.fake.requests().is_empty());
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["/etc/hosts: what is it?"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// Nothing of an ephemeral run stays, and none needs a home. A folder that cannot be written is a reason to go on so.
#[tokio::test]
async fn an_ephemeral_run_leaves_nothing_behind() {
    let bench = Fixture::new().await;
    let files = |home: &Home| -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push(entry.path().display().to_string());
                }
            }
        }
        found
    };
    bench.fake.answer(Answer::text("ok"));
    let mut command = bench.command(&["--ephemeral", "hi"]);
    command.env("TMPDIR", bench.home.path());
    let ran = finish(command).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{}", ran.err);
    assert_eq!(files(&bench.home), Vec::<String>::new());
    bench.fake.answer(Answer::text("ok"));
    let mut command = bench.command(&["hi"]);
    command.env("XDG_DATA_HOME", "/proc/none").env("HOME", "/proc/none");
    let ran = finish(command).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("this chat is not stored"), "{}", ran.err);
}

/// Every command waits for the one discovery: a server that names its models is enough.
#[tokio::test]
async fn models_of_a_server_are_found_by_every_command() {
    let bench = Fixture::new().await;
    bench.fake.models(&["house-model"]);
    bench.fake.respond_with(|_| Answer::text("found"));
    for (name, provider) in [
        // Nothing is configured; a variable has the address.
        ("ollama", Value::Null),
        ("vllm", json!({"url": format!("{}/v1", bench.fake.url())})),
        ("house", json!({"api": "openai-chat", "url": format!("{}/v1", bench.fake.url()), "key": "k"})),
    ] {
        let command = |arguments: &[&str]| {
            let mut command: tokio::process::Command = bench.home.command(arguments).into();
            match &provider {
                Value::Null => command.env("OLLAMA_API_URL", bench.fake.url()),
                provider => {
                    command.env("DRAGOMAN_CONFIG", json!({"providers": {name: provider}}).to_string())
                }
            };
            command
        };
        let ran = finish(command(&["run", "hi"])).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "found\n"), "{name}: {}", ran.err);
        let listed = finish(command(&["models"])).await.out;
        assert!(listed.contains(&format!("{name}/house-model")), "{name}: {listed}");
        let report: Value =
            serde_json::from_str(&finish(command(&["doctor", "--json"])).await.out).expect("JSON");
        let check = report["checks"].as_array().and_then(|checks| {
            checks.iter().find(|check| check["name"] == "default model").map(|check| check["state"].clone())
        });
        assert_eq!(check, Some(json!("ok")), "{name}: {report}");
    }
}

/// A server of this machine is found by every command, with nothing configured.
#[tokio::test]
async fn models_and_run_and_doctor_agree_on_servers_of_this_machine() {
    let bench = Fixture::new().await;
    let none: Value = json!({});
    let mut command = bench.command(&["hi"]);
    command.env("DRAGOMAN_CONFIG", none.to_string());
    let ran = finish(command).await;
    let run_has_model = ran.code == Some(0);
    let mut command: tokio::process::Command = bench.home.command(&["doctor", "--json"]).into();
    command.env("DRAGOMAN_CONFIG", none.to_string());
    let report: Value = serde_json::from_str(&finish(command).await.out).expect("JSON");
    let check = report["checks"].as_array().and_then(|checks| {
        checks.iter().find(|check| check["name"] == "default model").map(|check| check["state"].clone())
    });
    assert_eq!(check != Some(json!("missing")), run_has_model, "{report}");
}

/// Neither reading nor editing includes the network; it is a permission of its own.
#[tokio::test]
async fn the_network_is_approved_by_its_own_name() {
    for (approve, runs) in [("read", false), ("edit", false), ("network", true), ("edit,network", true)] {
        let mut bench = Fixture::new().await;
        bench.config["toolCall"] = json!({"fetchUrl": {"allowedHosts": ["127.0.0.1"]}});
        let url = format!("{}/anything", bench.fake.url());
        bench.fake.answer(Answer::tool_call("c1", "eca__fetch_url", json!({"url": url})));
        bench.fake.answer(Answer::text("finished"));
        bench.run(&["--approve", approve, "go"]).await;
        let result = bench.fake.last_request().tool_results().pop().unwrap_or_default();
        assert_eq!(result.contains("was refused"), !runs, "{approve}: {result}");
    }
}

#[tokio::test]
async fn retries_are_counted() {
    let bench = Fixture::new().await;
    for (retries, requests) in [("0", 1), ("1", 2)] {
        let before = bench.fake.requests().len();
        for _ in 0..requests {
            bench.fake.answer(Answer::status(503));
        }
        let ran = bench.run(&["--retries", retries, "hello"]).await;
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert_eq!(bench.fake.requests().len() - before, requests, "--retries {retries}: {}", ran.err);
    }
}

/// A server that could never start is a mistake of this call: nothing is asked, and the reason is on both sides.
#[tokio::test]
async fn wrong_servers_on_the_command_line_are_refused() {
    let bench = Fixture::new().await;
    for (config, reason) in [
        (r#"{"x":1}"#, "is no object"),
        (r#"{"mcpServers":{"x":[]}}"#, "is no object"),
        (r#"{"mcpServers":[]}"#, "has no servers"),
        (r#"{"x":{"command":""}}"#, "neither a command nor a url"),
        (r#"{"x":{"command":"true","args":"a"}}"#, "mcpServers.x.args"),
        (r#"{"x":{"command":"true","env":["A=1"]}}"#, "mcpServers.x.env"),
        (r#"{"x":{"url":"http://127.0.0.1:9","headers":5}}"#, "mcpServers.x.headers"),
        (r#"{"x":"#, "is not JSON"),
        ("[1]", "cannot be read"),
    ] {
        let ran = bench.run(&["--mcp-config", config, "hi"]).await;
        assert!(ran.code == Some(2) && ran.err.contains(reason), "{config}: {:?} {}", ran.code, ran.err);
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
    let ran = bench.run(&["--json", "--mcp-config", r#"{"x":1}"#, "hi"]).await;
    let end: Value = serde_json::from_str(ran.out.lines().last().expect("an event")).expect("JSON");
    assert_eq!((&end["type"], &end["exit"]), (&json!("end"), &json!(2)), "{}", ran.out);
    assert!(bench.fake.requests().is_empty(), "no model was asked");
    // Members that only other programs know do no harm.
    bench.fake.answer(Answer::text("ok"));
    let ran =
        bench.run(&["--mcp-config", r#"{"x":{"type":"stdio","command":"true","timeout":5}}"#, "hi"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// With the database away, the end by `--timeout` says what was waited for, and no password.
#[tokio::test]
async fn a_timeout_without_the_database_gives_the_reason() {
    let bench = Fixture::new().await;
    let store = "postgres://me:hunter2@127.0.0.1:9/chats";
    for (arguments, is_json) in
        [(&["--timeout", "1", "hi"][..], false), (&["--json", "--timeout", "1", "hi"], true)]
    {
        let output = bench.command(arguments).env("DRAGOMAN_STORE", store).output().await.expect("it runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(4), "{err}");
        let said = if is_json { &out } else { &err };
        assert!(said.contains("The time is up.") && said.contains("cannot be used now"), "{said}");
        assert!(said.contains("127.0.0.1") && !format!("{out}{err}").contains("hunter2"), "{said}");
    }
    assert!(bench.fake.requests().is_empty());
}
