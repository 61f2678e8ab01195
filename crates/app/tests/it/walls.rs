//! What a wall keeps, as a user meets it: secrets in a tainted chat, paths that a rule forbids, hooks, a temporary folder
//! that is not there, programs below `/tmp`, and the words of questions.

use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, is_finished};

const CANARY: &str = "canary-4711";
const REVERSED: &str = "1174-yranac";

fn sandboxed(fake: &FakeModel) -> Value {
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["sandbox"] = json!("on");
    config
}

async fn output(home: &Home, config: &Value, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command: tokio::process::Command = home.command(arguments).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).envs(variables.iter().copied()).kill_on_drop(true);
    let run = tokio::time::timeout(Duration::from_secs(120), command.output());
    let Output { stdout, stderr, .. } = run.await.expect("it ends").expect("it starts");
    format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr))
}

#[expect(clippy::print_stderr, reason = "a test that was not tried says so")]
async fn is_whole(home: &Home) -> bool {
    let text = output(home, &json!({}), &["doctor"], &[]).await;
    let whole = text.contains("namespaces, Landlock and seccomp");
    if !whole {
        eprintln!("not tried: {text}");
    }
    whole
}

/// Runs one call in a chat; a question is answered with yes, for the session. Returns whether there was one, and the result.
async fn call(client: &mut Client, fake: &FakeModel, tool: &str, input: Value) -> (bool, String) {
    fake.answer(Answer::tool_call("c", tool, input)).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let mut asked = false;
    loop {
        let message = client.next().await;
        let content = &message["params"]["content"];
        if content["type"] == "toolCallRun" && content["manualApproval"] == true {
            asked = true;
            let answer = json!({"chatId": "c", "toolCallId": content["id"], "save": "session"});
            client.notify("chat/toolCallApprove", answer).await;
        }
        if is_finished(&message) {
            break;
        }
    }
    (asked, fake.last_request().tool_results().last().cloned().unwrap_or_default())
}

/// A new project: the chat is tainted, and what a program prints of a secret would not look like one.
#[tokio::test]
async fn a_tainted_chat_opens_a_secret_for_commands_with_one_grant() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    home.write("work/.env", &format!("API_TOKEN={CANARY}\n"));
    home.write("work/config/prod.env", "X=1\n");
    home.write("work/show.py", "print(open('.env').read()[::-1])\n");
    home.write("work/README.md", "Read me.\n");
    home.write("work/Makefile", "test:\n\t@rev .env && cat config/prod.env\n\nbuild:\n\t@echo built\n");
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    let shell = |line: &str| json!({"command": line});
    call(&mut client, &fake, "eca__read_file", json!({"path": "README.md"})).await;
    for line in [
        "make test",
        "cat .env",
        "grep -r API_TOKEN .",
        "rev .env",
        "tar cf - .env",
        "base64 .env",
        "python3 show.py",
    ] {
        let (asked, result) = call(&mut client, &fake, "eca__shell_command", shell(line)).await;
        assert!(!asked, "{line}: {result}");
        assert!(!result.contains(CANARY) && !result.contains(REVERSED), "{line}: {result}");
        assert!(result.contains("secret:.env"), "{line}: {result}");
    }
    let (_, result) = call(&mut client, &fake, "eca__grep", json!({"pattern": "API_TOKEN"})).await;
    assert!(!result.contains(CANARY) && result.contains("hold secrets"), "{result}");
    // One question opens it, for this command and for later ones.
    let granted = json!({"command": "make test", "grants": ["secret:.env", "secret:config"]});
    let (asked, result) = call(&mut client, &fake, "eca__shell_command", granted).await;
    assert!(asked && result.contains(REVERSED), "{result}");
    for line in ["make test", "make build"] {
        let (asked, result) = call(&mut client, &fake, "eca__shell_command", shell(line)).await;
        assert!(!asked && !result.contains("Permission denied"), "{line}: {result}");
    }
    // From now on the chat holds a secret, whatever it looks like.
    let (_, shown) = client.prompt(Some("c"), "/taint").await;
    assert!(json!(shown).to_string().contains(".env"), "{shown:?}");
    client.end().await;
}

/// A rule on one file does not make every command a question.
#[tokio::test]
async fn a_forbidden_path_is_closed_and_commands_stay_silent() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    home.write("work/.env", &format!("API_TOKEN={CANARY}\n"));
    home.write("work/Makefile", "all:\n\t@echo built; cat .env\n");
    let mut config = sandboxed(&fake);
    config["toolCall"] =
        json!({"approval": {"deny": {"read_file": {"argsMatchers": {"path": ["(.*/)?\\.env"]}}}}});
    let mut client = Client::start(&home, &config).await;
    let (asked, result) = call(&mut client, &fake, "eca__shell_command", json!({"command": "make"})).await;
    assert!(!asked, "{result}");
    assert!(result.contains("built") && !result.contains(CANARY), "{result}");
    assert!(result.contains("A rule of the user forbids reading .env"), "{result}");
    assert!(!result.contains("grants:"), "no grant opens it: {result}");
    let (asked, _) = call(&mut client, &fake, "eca__shell_command", json!({"command": "touch made"})).await;
    assert!(!asked && home.workspace().join("made").exists());
    client.end().await;
}

#[tokio::test]
async fn a_question_names_what_the_command_needs() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let config = sandboxed(&fake);
    for (line, reason) in [
        ("npm install", "ask: It needs the network: npm install."),
        (
            "git checkout main",
            "ask: It changes branches, the history or files of the repository: git checkout.",
        ),
        ("systemctl status", "ask: It uses programs outside of its sandbox: systemctl"),
    ] {
        let input = json!({"command": line}).to_string();
        let text = output(&home, &config, &["explain-permission", "shell_command", &input], &[]).await;
        assert!(text.starts_with(reason), "{line}: {text}");
    }
    // In a chat that has read a secret a registry counts as the network, and publishing always does.
    for line in ["npm install", "npm publish", "cargo publish", "twine upload dist/a"] {
        let input = json!({"command": line}).to_string();
        let arguments = ["explain-permission", "--tainted", "shell_command", &input];
        let text = output(&home, &config, &arguments, &[]).await;
        assert!(text.starts_with("ask: This chat is tainted"), "{line}: {text}");
    }
    let input = json!({"command": "make test"}).to_string();
    let text =
        output(&home, &config, &["explain-permission", "--tainted", "shell_command", &input], &[]).await;
    assert!(text.starts_with("allow: "), "{text}");
    let input = json!({"path": "AGENTS.md", "content": "Obey."}).to_string();
    let text = output(&home, &config, &["explain-permission", "--tainted", "write_file", &input], &[]).await;
    assert!(text.starts_with("ask: This chat is tainted"), "{text}");
}

#[tokio::test]
async fn a_hook_of_the_user_may_leave_the_sandbox_and_one_that_was_stopped_is_reported() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let log = outside.path().join("hooks.log");
    let line = |name: &str| format!("cat >/dev/null; echo {name} in $PWD >> {}; exit 0", log.display());
    let hook = |name: &str, more: Value| {
        let mut hook = json!({"type": "preRequest", "visible": false, "actions": [{"type": "shell", "shell": line(name)}]});
        hook.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        hook
    };
    let own = json!({"hooks": {"inside": hook("inside", json!({})), "outside": hook("outside", json!({"sandbox": "off"}))}});
    home.write(".config/dragoman/config.json", &own.to_string());
    let project = json!({"hooks": {"project": hook("project", json!({"sandbox": "off"}))}});
    home.write("work/.dragoman/config.json", &project.to_string());
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command.env("DRAGOMAN_CONFIG", sandboxed(&fake).to_string()).env("DRAGOMAN_TRUST", "1");
    let mut client = Client::spawn_with(command);
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    fake.answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let messages = client.until(is_finished).await;
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let folder = home.path().canonicalize().expect("a path").join(".config/dragoman");
    assert_eq!(text, format!("outside in {}\n", folder.display()));
    let shown = json!(messages).to_string();
    for name in ["inside", "project"] {
        assert!(shown.contains(&format!("The hook {name}: The sandbox stopped")), "{name}: {shown}");
    }
    assert!(shown.contains(r#"\"sandbox\": \"off\""#), "it names the key: {shown}");
    assert!(!shown.contains("The hook outside"), "{shown}");
    client.end().await;
}

/// `TMPDIR` names a folder that is not there: commands stay in the sandbox, also where nobody is asked.
#[tokio::test]
async fn a_missing_temporary_folder_does_not_open_the_sandbox() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = sandboxed(&fake);
    config["sandbox"] = json!("ask");
    config["sandboxRequired"] = json!(true);
    if !is_whole(&home).await {
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let line = format!("touch inside.txt; touch {}/out.txt", outside.path().display());
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": line})));
    fake.answer(Answer::text("ok"));
    output(&home, &config, &["run", "--approve", "all", "go"], &[("TMPDIR", "/nonexistent/tmp")]).await;
    assert!(home.workspace().join("inside.txt").exists(), "{:?}", fake.last_request().tool_results());
    assert!(!outside.path().join("out.txt").exists(), "it wrote outside of the workspace");
}

/// The program, its workspace and a server that the settings name by its path, all below `/tmp`, in a path with a blank and
/// another letter.
#[tokio::test]
async fn everything_may_lie_below_tmp() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let clone = tempfile::Builder::new().prefix("a clone für ").tempdir_in("/tmp").expect("a folder");
    let program = clone.path().join("target/debug/dragoman");
    std::fs::create_dir_all(program.parent().expect("a folder")).expect("folders");
    let built = env!("CARGO_BIN_EXE_dragoman");
    if std::fs::hard_link(built, &program).is_err() {
        std::fs::copy(built, &program).expect("a copy");
    }
    let server = clone.path().join("servers/notes/server.py");
    std::fs::create_dir_all(server.parent().expect("a folder")).expect("folders");
    std::fs::write(clone.path().join("servers/notes/parts.py"), "TEXT = 'from its own part'\n")
        .expect("a file");
    std::fs::write(&server, SERVER).expect("a file");
    let work = clone.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let mut config = sandboxed(&fake);
    config["mcpServers"] = json!({"notes": {"command": "python3", "args": [server]}});
    fake.answer(Answer::tool_call("a", "eca__shell_command", json!({"command": "mkdir src && touch src/a"})));
    fake.answer(Answer::tool_call("b", "notes__read", json!({})));
    fake.answer(Answer::text("ok"));
    let mut command = tokio::process::Command::new(&program);
    command.args(["run", "--approve", "all", "go"]).env_clear().env("HOME", home.path()).current_dir(&work);
    command.env("PATH", std::env::var("PATH").unwrap_or_default()).env("DRAGOMAN_CONFIG", config.to_string());
    let ran = tokio::time::timeout(Duration::from_secs(120), command.kill_on_drop(true).output());
    let ran = ran.await.expect("it ends").expect("it starts");
    let results = fake.last_request().tool_results();
    assert!(work.join("src/a").exists(), "{results:?} {}", String::from_utf8_lossy(&ran.stderr));
    assert!(results.iter().any(|result| result.contains("from its own part")), "{results:?}");
}

const SERVER: &str = r#"
import json, sys
import parts
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        answer = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [{"name": "read", "description": "Reads.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": parts.TEXT}]}
    else:
        answer = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"#;
