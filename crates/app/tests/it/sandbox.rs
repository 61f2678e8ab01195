//! The sandbox as a user meets it: commands that it contains run without a question, what it refuses is named, a grant
//! is asked once for the project, and a smaller wall asks more often.

use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, fake_provider, is_finished};

const DAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/working_day.jsonl");

async fn output(home: &Home, config: &Value, arguments: &[&str], smaller: bool) -> (Option<i32>, String) {
    let mut command: tokio::process::Command = home.command(arguments).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).kill_on_drop(true);
    if smaller {
        command.env("DRAGOMAN_NO_NAMESPACES", "1");
    }
    let run = tokio::time::timeout(Duration::from_secs(300), command.output());
    let Output { status, stdout, stderr } = run.await.expect("it ends").expect("it starts");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code(), text)
}

/// The whole wall can be built here. Printed where it cannot, so that a green run is not misread.
async fn is_whole(home: &Home) -> bool {
    let (_, text) = output(home, &json!({}), &["doctor"], false).await;
    let whole = text.contains("namespaces, Landlock and seccomp");
    if !whole {
        testkit::skip("this system has no complete sandbox");
    }
    whole
}

fn sandboxed(fake: &FakeModel) -> Value {
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["sandbox"] = json!("on");
    config
}

/// Runs one command in a chat, which must not be asked about, and gives its result.
async fn run_unasked(client: &mut Client, fake: &FakeModel, input: Value) -> String {
    fake.answer(Answer::tool_call("c", "eca__shell_command", input)).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let shown = contents(&client.until(is_finished).await);
    let run = shown.iter().find(|it| it["content"]["type"] == "toolCallRun").expect("a call");
    assert_eq!(run["content"]["manualApproval"], false, "{run:#}");
    fake.last_request().tool_results().last().cloned().expect("a result")
}

#[tokio::test]
async fn a_command_that_the_sandbox_contains_runs_without_a_question() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    // Nobody approved it, so it leaves nothing that another program would run.
    let result = run_unasked(&mut client, &fake, json!({"command": "mkdir .vscode"})).await;
    assert!(result.contains("grants: run-later"), "{result}");
    assert!(!home.workspace().join(".vscode").exists());
    run_unasked(&mut client, &fake, json!({"command": "mkdir -p src && touch src/made.txt"})).await;
    assert!(home.workspace().join("src/made.txt").exists());
    // It reaches no host, and the refusal names what to ask for.
    std::fs::write(
        home.workspace().join("ask.sh"),
        "p=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${p%:*}/${p#*:}\n\
         printf 'CONNECT index.crates.io:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3; exit 1\n",
    )
    .expect("a script");
    let result = run_unasked(&mut client, &fake, json!({"command": "bash ask.sh"})).await;
    assert!(result.contains("grants: registries"), "{result}");
    // What needs more is asked about.
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "npm ci"})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let shown = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    assert_eq!(shown.last().expect("a call")["content"]["manualApproval"], true);
    client.end().await;
}

/// Files that run later are protected wherever they are in the project, and a new one does not stay.
#[tokio::test]
async fn files_that_run_later_are_protected_at_any_depth() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let old = [
        "packages/shop/.vscode/tasks.json",
        "packages/shop/.github/workflows/ci.yml",
        "packages/shop/.husky/pre-commit",
        "a/b/c/.envrc",
        "libs/x/.git/hooks/pre-commit",
        "libs/x/.git/config",
    ];
    for file in old {
        home.write(&format!("work/{file}"), "old\n");
    }
    home.write("work/libs/x/.git/HEAD", "ref: refs/heads/main\n");
    let new = [
        "apps/web/.vscode/tasks.json",
        "apps/.github/workflows/x.yml",
        "libs/y/.git/hooks/pre-commit",
        "apps/.envrc",
    ];
    let all: Vec<&str> = old.iter().chain(&new).copied().collect();
    let script = format!(
        "import os\nfor name in {all:?}:\n    try:\n        os.makedirs(os.path.dirname(name), exist_ok=True)\n        \
         open(name, 'w').write('evil')\n    except OSError as error:\n        print(name, error.strerror)\n\
         for a, b in [('packages/shop/.vscode', 'v'), ('packages/shop', 'q'), ('a', 'z'), ('libs/x', 'l')]:\n    try:\n        \
         os.rename(a, b)\n    except OSError as error:\n        print(a, error.strerror)\nopen('ordinary.txt', 'w')\n",
    );
    home.write("work/evil.py", &script);
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    let result = run_unasked(&mut client, &fake, json!({"command": "python3 evil.py"})).await;
    for file in old {
        let text = std::fs::read_to_string(home.workspace().join(file)).unwrap_or_default();
        assert_eq!(text, "old\n", "{file}: {result}");
    }
    for file in new {
        assert!(!home.workspace().join(file).exists(), "{file}: {result}");
    }
    assert!(home.workspace().join("ordinary.txt").exists(), "{result}");
    assert!(result.contains("grants: run-later") && result.contains("apps/.envrc"), "{result}");
    client.end().await;
}

/// A line that ends with a commit runs unasked, and leaves nothing in the git directory that git obeys.
#[tokio::test]
async fn a_line_with_a_commit_leaves_nothing_that_git_obeys() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let ran = home.path().join("ran");
    let evil = home.workspace().join("evil.sh");
    std::fs::write(&evil, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("a program");
    std::fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let work = home.workspace();
    let git = |line: &str| {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", line]).current_dir(&work).env("HOME", &work);
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            command.env(name, "test");
        }
        let output = command.output().expect("git runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let attack = format!(
        "test:\n\tcp -r .git other; git -C other config core.fsmonitor {0}; echo ../other > .git/commondir; \
         git init -q target/x; git -C target/x config core.fsmonitor {0}; \
         git init -q --bare src; git -C src config core.fsmonitor {0}; echo fixed > file\n",
        evil.display()
    );
    home.write("work/Makefile", &attack);
    home.write("work/Cargo.toml", "");
    home.write("work/file", "broken\n");
    git(
        "git init -q -b main . && git config user.name test && git config user.email test && git add -A && git commit -qm first",
    );
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    let line = "make -s test && git commit -qam fix";
    let result = run_unasked(&mut client, &fake, json!({"command": line})).await;
    assert!(result.contains(".git/commondir"), "{result}");
    // The commit went where the planted file sent it. The next one is in the repository.
    assert_eq!(git("git log --format=%s"), "first\n", "{result}");
    let again = run_unasked(&mut client, &fake, json!({"command": "true && git commit -qam fix"})).await;
    assert_eq!(git("git log --format=%s"), "fix\nfirst\n", "{again}");
    git("git status; git diff; cd target/x && git status; cd ../../src && git status");
    assert!(!ran.exists() && !work.join(".git/commondir").exists(), "{result}");
    client.end().await;
}

/// Hooks of the user's own configuration keep the network, unless they say otherwise.
#[tokio::test]
async fn hooks_of_the_user_keep_their_network() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut config = sandboxed(&fake);
    for (name, network) in [("with", json!(true)), ("without", json!(false)), ("unsaid", Value::Null)] {
        let line = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) && touch {name}.reached; touch {name}.ran");
        config["hooks"][name] = json!({"type": "preRequest", "actions": [{"type": "shell", "shell": line}]});
        if !network.is_null() {
            config["hooks"][name]["network"] = network;
        }
    }
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "go").await;
    let has = |file: &str| home.workspace().join(file).exists();
    assert!(has("with.ran") && has("without.ran") && has("unsaid.ran"));
    assert!(has("with.reached") && has("unsaid.reached") && !has("without.reached"));
    client.end().await;
}

/// What the sandbox refused is named, and one approval of exactly that makes the command work: a port of this machine,
/// a host, a folder outside, the agent of ssh.
#[tokio::test]
async fn a_refusal_names_the_grant_that_makes_the_command_work() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let outside = outside.path().canonicalize().expect("a path");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let agent = home.path().join("agent.sock");
    let _agent = std::os::unix::net::UnixListener::bind(&agent).expect("a socket");
    home.write("work/port.sh", &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached\n"));
    home.write("work/write.sh", &format!("touch {}/made.txt && echo reached\n", outside.display()));
    home.write(
        "work/host.sh",
        "p=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${p%:*}/${p#*:}\n\
         printf 'CONNECT git.example.invalid:8443 HTTP/1.1\\r\\n\\r\\n' >&3\n\
         read -r line <&3; case $line in *403*) exit 1;; *) echo reached;; esac\n",
    );
    // A stand-in for ssh, which says what ssh says without its agent.
    home.write(
        "work/agent.sh",
        "if [ -S \"$SSH_AUTH_SOCK\" ]; then echo reached; else echo 'Permission denied (publickey).'; exit 1; fi\n",
    );
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command.env("DRAGOMAN_CONFIG", sandboxed(&fake).to_string()).env("SSH_AUTH_SOCK", &agent);
    let mut client = Client::spawn_with(command);
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    for (script, grant) in [
        ("port.sh", format!("port:{port}")),
        ("write.sh", format!("write:{}", outside.display())),
        ("host.sh", "network:git.example.invalid:8443".to_owned()),
        ("agent.sh", "ssh".to_owned()),
    ] {
        let line = format!("bash {script}");
        let result = run_unasked(&mut client, &fake, json!({"command": line})).await;
        assert!(!result.contains("reached"), "{script}: {result}");
        assert!(result.contains(&format!("grants: {grant}")), "{script}: {result}");
        // The model asks for exactly that.
        let call = json!({"command": line, "grants": [grant]});
        fake.answer(Answer::tool_call("c", "eca__shell_command", call)).answer(Answer::text("ok"));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
        let shown = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
        let run = shown.last().expect("a call")["content"].clone();
        assert_eq!(run["manualApproval"], true, "{script}");
        client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": run["id"]})).await;
        let after = contents(&client.until(is_finished).await);
        let questions = after.iter().filter(|it| it["content"]["type"] == "toolCallRun").count();
        assert_eq!(questions, 0, "{script}: one approval is enough");
        let result = fake.last_request().tool_results().last().cloned().expect("a result");
        assert!(result.contains("reached"), "{script}: {result}");
    }
    assert!(outside.join("made.txt").exists());
    client.end().await;
}

#[tokio::test]
async fn a_grant_is_asked_for_once_in_a_project() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let config = sandboxed(&fake);
    let call = json!({"command": "touch given.txt", "grants": ["git-config"]});
    let explain = ["explain-permission", "shell_command", &call.to_string()].map(str::to_owned);
    let explain: Vec<&str> = explain.iter().map(String::as_str).collect();
    let (_, text) = output(&home, &config, &explain, false).await;
    assert!(text.starts_with("ask: ") && text.contains(".git/config"), "{text}");
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call("c", "eca__shell_command", call.clone())).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let shown = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let run = shown.last().expect("a call")["content"].clone();
    client
        .notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": run["id"], "save": "session"}))
        .await;
    client.until(is_finished).await;
    assert!(home.workspace().join("given.txt").exists());
    assert!(client.end().await.success());
    let (_, text) = output(&home, &config, &["grants"], false).await;
    assert!(text.contains("git-config"), "{text}");
    // Another chat does not ask about the grant again; it asks about the command itself, as without the grant.
    let (_, text) = output(&home, &config, &explain, false).await;
    assert!(!text.contains(".git/config"), "{text}");
    let (code, _) = output(&home, &config, &["grants", "--remove", "git-config"], false).await;
    assert_eq!(code, Some(0));
    let (_, text) = output(&home, &config, &explain, false).await;
    assert!(text.contains(".git/config"), "{text}");
    let (code, text) = output(&home, &config, &["grants", "--add", "everything"], false).await;
    assert!(code != Some(0) && text.contains("cannot be granted"), "{text}");
}

#[tokio::test]
async fn a_smaller_wall_says_so_and_asks_more_often() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = sandboxed(&fake);
    let (_, text) = output(&home, &config, &["doctor"], true).await;
    if !text.contains("smaller sandbox") {
        return testkit::skip("this system has no complete sandbox");
    }
    let explain = ["explain-permission", "shell_command", r#"{"command": "touch a.txt"}"#];
    assert!(output(&home, &config, &explain, true).await.1.starts_with("ask: "));
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let line = format!("touch inside.txt; touch {}/out.txt; cat ~/.ssh/key", outside.path().display());
    std::fs::create_dir_all(home.path().join(".ssh")).expect("a folder");
    std::fs::write(home.path().join(".ssh/key"), "CANARY").expect("a key");
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": line})))
        .answer(Answer::text("ok"));
    let (code, text) = output(&home, &config, &["run", "--approve", "all", "go"], true).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the sandbox is smaller"), "it is said at start: {text}");
    assert!(home.workspace().join("inside.txt").exists());
    assert!(!outside.path().join("out.txt").exists(), "it wrote outside of the workspace");
    let results = fake.last_request().tool_results();
    assert!(!results[0].contains("CANARY"), "{results:?}");
}

/// A working day of about 150 calls: how many questions it takes. The figures are in docs/sandbox.md.
#[tokio::test]
async fn a_working_day_has_fewer_questions_with_the_sandbox() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    for name in
        ["README.md", "package.json", "Makefile", "src/app.ts", "src/orders.ts", "test/orders.test.ts"]
    {
        home.write(&format!("work/{name}"), "one\n");
    }
    for name in ["scripts/seed.js", "service/src/main.rs", "tools/report.py"] {
        home.write(&format!("work/{name}"), "one\n");
    }
    let mut counts = Vec::new();
    for sandbox in ["off", "ask", "on"] {
        let mut config = sandboxed(&fake);
        config["sandbox"] = json!(sandbox);
        let (code, text) =
            output(&home, &config, &["explain-permission", "--calls", DAY, "--json"], false).await;
        assert_eq!(code, Some(0), "{text}");
        eprintln!("sandbox {sandbox}: {}", text.trim());
        let count: Value = serde_json::from_str(text.trim()).expect("JSON");
        assert_eq!(count["denied"], 0, "{text}");
        counts.push((
            count["asked"].as_u64().expect("a number"),
            count["askedWithRemembering"].as_u64().expect("a number"),
        ));
    }
    let [off, ask, on] = counts[..] else { panic!("{counts:?}") };
    assert!(ask.0 >= on.0 && ask.0 <= off.0 + 10, "{counts:?}");
    assert!(on.0 * 2 < off.0 && on.1 < off.1, "{counts:?}");
    let calls = std::fs::read_to_string(DAY).expect("the recorded day").lines().count();
    println!(
        "figure: {} questions in a recorded working day of {calls} calls with the sandbox, {} without it; {} and {} \
         where the user lets answers be remembered",
        on.0, off.0, on.1, off.1
    );
}

/// The attempts to get out, by the program itself. They take a minute where the machine is busy.
#[tokio::test]
async fn the_doctor_tries_to_get_out() {
    let home = Home::new();
    if crate::scaled(10) < 10 || !is_whole(&home).await {
        return;
    }
    let (code, text) = output(&home, &json!({}), &["doctor", "sandbox", "--json"], false).await;
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("JSON: {text}"));
    assert!(report["attempted"].as_u64() >= Some(120), "{text}");
    assert_eq!((code, &report["blocked"]), (Some(0), &report["attempted"]), "{text}");
}
