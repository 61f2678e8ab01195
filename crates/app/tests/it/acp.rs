//! `dragoman acp` with the official clients: a whole session each, over the real binary and a fake model.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::client::{Home, fake_provider};
use crate::sdk;

const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs a client to its end; what it saw. `packages`: the variable that tells it where its packages are.
async fn run(
    home: &Home,
    fake: &FakeModel,
    interpreter: &str,
    driver: &str,
    packages: (&str, PathBuf),
) -> Value {
    let mut command = Command::new(interpreter);
    let program = command
        .arg(drivers().join(driver))
        .env_clear()
        .env(packages.0, packages.1)
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("DRAGOMAN_CONFIG", fake_provider(fake.url(), "anthropic").to_string())
        .env("AGENT", env!("CARGO_BIN_EXE_dragoman"))
        .env("WORKSPACE", home.workspace())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let output = tokio::time::timeout(WAIT_TIMEOUT, program.output()).await;
    let output = output.expect("the client ends in time").expect("the client starts");
    assert!(output.status.success(), "the client failed: {}", output.status);
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

/// What the model says to `read`, `write`, `run`, `make` and `count`.
fn script(fake: &FakeModel) {
    let call = |name: &str, arguments: Value| Answer::new().call("c1", name, arguments);
    script_of_two_turns(fake);
    fake.answer(call("eca__shell_command", json!({"command": "touch made"})));
    fake.answer(Answer::text("Then not."));
    fake.answer(call("eca__shell_command", json!({"command": "touch one"})));
    fake.answer(call("eca__shell_command", json!({"command": "touch two"})));
    fake.answer(Answer::text("Made."));
    fake.answer(Answer::text("one two three").silence());
}

/// What the model says to `read` and `write`.
fn script_of_two_turns(fake: &FakeModel) {
    fake.answer(Answer::new().reasoning("Let me look.").say("Looking.").call(
        "c1",
        "eca__read_file",
        json!({"path": "hello.txt"}),
    ));
    fake.answer(Answer::text(" It is plover."));
    let new = json!({"path": "new.txt", "content": "hello\n"});
    fake.answer(Answer::new().call("c1", "eca__write_file", new));
    fake.answer(Answer::text("Written."));
}

/// The whole session, whichever client it was.
fn check(home: &Home, fake: &FakeModel, seen: &Value) {
    assert_eq!(seen["initialize"]["protocolVersion"], 1);
    assert_eq!(seen["initialize"]["agentInfo"]["name"], "dragoman");
    assert_eq!(seen["modes"], json!(["agent", "plan"]));
    assert_eq!(seen["stops"], json!(["end_turn", "end_turn", "end_turn", "end_turn", "cancelled"]));
    assert_eq!(seen["texts"]["read"], "Looking. It is plover.");
    assert_eq!(seen["texts"]["read thought"], "Let me look.");
    assert_eq!(last(&seen["texts"]["read calls"]), "completed");
    // The text that the editor has, not the one on the disk.
    let requests = fake.requests();
    assert!(requests[1].body.to_string().contains("the unsaved word is plover"), "{}", requests[1].body);
    assert_eq!(seen["texts"]["write"], "Written.");
    assert_eq!(last(&seen["texts"]["write calls"]), "completed");
    let new = home.workspace().join("new.txt");
    assert_eq!(std::fs::read_to_string(&new).expect("the file"), "hello\n");
    assert_eq!(seen["writes"], json!([new]));
    assert_eq!(last(&seen["texts"]["run calls"]), "failed");
    assert!(!home.workspace().join("made").exists(), "what was rejected is not run");
    assert!(requests[5].body.to_string().contains("rejected"));
    let permissions = seen["permissions"].as_array().expect("a list");
    assert_eq!(permissions.len(), 3, "what is allowed always is not asked again");
    assert!(home.workspace().join("one").exists() && home.workspace().join("two").exists());
    assert_eq!(permissions[0]["title"], "Creating new.txt");
    for permission in permissions {
        assert_eq!(
            permission["kinds"],
            json!(["allow_once", "allow_always", "reject_once", "reject_always"])
        );
    }
    let listed = seen["listed"].as_array().expect("a list");
    assert!(listed.iter().any(|it| it[0] == seen["session"]), "{listed:?}");
    assert_eq!(seen["loadedMode"], "plan");
    assert_eq!(seen["loadedUser"], "readwriterunmakecount");
    let loaded = seen["loaded"].as_array().expect("a list");
    for kind in ["user_message_chunk", "agent_thought_chunk", "agent_message_chunk", "tool_call"] {
        assert!(loaded.contains(&json!(kind)), "{kind} in {loaded:?}");
    }
    assert_eq!((&seen["firstExit"], &seen["secondExit"]), (&json!(0), &json!(0)));
}

fn last(list: &Value) -> &Value {
    list.as_array().and_then(|list| list.last()).unwrap_or(&Value::Null)
}

async fn set_up() -> (Home, FakeModel) {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/hello.txt", "the word on the disk is xyzzy\n");
    script(&fake);
    (home, fake)
}

fn drivers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp")
}

#[tokio::test]
async fn the_official_typescript_client_holds_a_whole_session() {
    let (home, fake) = set_up().await;
    let packages = tokio::task::spawn_blocking(sdk::home).await.expect("the package is installed");
    let seen = run(&home, &fake, "node", "client.mjs", ("SDK", packages)).await;
    check(&home, &fake, &seen);
    assert_eq!(seen["left"], 0, "the chat was deleted");
}

/// The draft of version 2, by its own official client.
#[tokio::test]
async fn the_official_client_of_version_two_holds_a_session() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/hello.txt", "the word on the disk is xyzzy\n");
    script_of_two_turns(&fake);
    let command = json!({"command": "echo begun; sleep 600"});
    fake.answer(Answer::new().call("c1", "eca__shell_command", command));
    fake.answer(Answer::text("Then without it."));
    let packages = tokio::task::spawn_blocking(sdk::home).await.expect("the package is installed");
    let seen = run(&home, &fake, "node", "client_v2.mjs", ("SDK", packages)).await;
    assert_eq!(seen["initialize"]["protocolVersion"], 2, "{seen:#}");
    assert_eq!(seen["options"], json!(["mode", "model", "trust"]), "{seen:#}");
    assert_eq!(seen["stops"], json!(["end_turn", "end_turn", "end_turn"]), "{seen:#}");
    assert_eq!(seen["texts"]["read"], "Looking. It is plover.");
    // One call was stopped, the model learned of it, and the turn went on.
    assert_eq!(seen["output"], "begun\n", "{seen:#}");
    assert_eq!(last(&seen["cancelled"]), "cancelled", "{seen:#}");
    assert_eq!((&seen["texts"]["wait"], &seen["again"]), (&json!("Then without it."), &json!(-32602)));
    let requests = fake.requests();
    let told = requests.last().expect("a request").body.to_string();
    assert!(told.contains("The user stopped this call") && told.contains("begun"), "{told}");
    assert_eq!((&seen["texts"]["read own"], &seen["texts"]["write own"]), (&json!("read"), &json!("write")));
    assert_eq!(seen["permissions"][0], json!({"title": "Creating new.txt", "subject": "tool_call"}));
    assert_eq!(std::fs::read_to_string(home.workspace().join("new.txt")).expect("the file"), "hello\n");
    assert!(seen["states"].as_array().is_some_and(|states| states.contains(&json!("requires_action"))));
    assert_eq!((&seen["mode"], &seen["replayed"]), (&json!("plan"), &json!("readwritewait")));
    assert_eq!((&seen["listed"], &seen["exit"]), (&json!([true]), &json!(0)));
}

/// The settings turn version 2 off; a client that asks for it then gets version 1.
#[tokio::test]
async fn the_settings_turn_version_two_off() {
    for (settings, version) in [("{}", 2), (r#"{"acp": {"v2": false}}"#, 1), (r#"{"acp": {"v2": true}}"#, 2)]
    {
        let home = Home::new();
        home.write(".config/dragoman/config.json", settings);
        let mut command: Command = home.command(&["acp"]).into();
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let mut input = program.stdin.take().expect("input");
        input.write_all(format!("{initialize}\n").as_bytes()).await.expect("it reads");
        let mut lines = BufReader::new(program.stdout.take().expect("output")).lines();
        let answer = tokio::time::timeout(WAIT_TIMEOUT, lines.next_line()).await.expect("in time");
        let answer: Value = serde_json::from_str(&answer.expect("a line").expect("an answer")).expect("JSON");
        assert_eq!(answer["result"]["protocolVersion"], version, "{settings}: {answer:#}");
        assert_eq!(answer["result"]["info"].is_object(), version == 2, "{settings}");
        drop(input);
        assert!(program.wait().await.expect("it ends").success());
    }
}

/// What the verifier of the registry sends, and what it wants back: a way to log in that an editor can offer.
#[tokio::test]
async fn the_handshake_of_the_registry_is_answered() {
    let home = Home::new();
    let mut command: Command = home.command(&["acp"]).into();
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let capabilities = json!({"terminal": true, "fs": {"readTextFile": true, "writeTextFile": true},
        "_meta": {"terminal_output": true, "terminal-auth": true}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": 1, "clientInfo": {"name": "ACP Registry Validator", "version": "1.0.0"},
        "clientCapabilities": capabilities}});
    let mut input = program.stdin.take().expect("input");
    input.write_all(format!("{initialize}\n").as_bytes()).await.expect("it reads");
    let mut lines = BufReader::new(program.stdout.take().expect("output")).lines();
    let answer = tokio::time::timeout(WAIT_TIMEOUT, lines.next_line()).await.expect("in time");
    let answer: Value = serde_json::from_str(&answer.expect("a line").expect("an answer")).expect("JSON");
    let methods = answer["result"]["authMethods"].as_array().expect("methods");
    let login = methods.iter().find(|it| it["id"] == "login").expect("a login in a terminal");
    let start = &login["_meta"]["terminal-auth"];
    assert_eq!(
        (&start["args"], start["command"].is_string()),
        (&json!(["acp", "--login"]), true),
        "{answer:#}"
    );
    assert!(
        answer["result"]["agentCapabilities"]["sessionCapabilities"]["additionalDirectories"].is_object()
    );
    drop(input);
    assert!(program.wait().await.expect("it ends").success());
}

#[tokio::test]
async fn the_official_python_client_holds_a_whole_session() {
    let (home, fake) = set_up().await;
    let packages = tokio::task::spawn_blocking(python_packages).await.expect("the package is installed");
    let seen = run(&home, &fake, "python3", "client.py", ("PYTHONPATH", packages)).await;
    check(&home, &fake, &seen);
}

/// Where the Python client is, as the list of requirements names it, installed once beside the build.
fn python_packages() -> PathBuf {
    let wanted = std::fs::read_to_string(drivers().join("requirements.txt")).expect("the requirements");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("acp-python");
    std::fs::create_dir_all(&place).expect("a folder");
    let guard = std::fs::File::create(place.join("guard")).expect("a guard");
    guard.lock().expect("the guard");
    let (stamp, packages) = (place.join("installed.txt"), place.join("packages"));
    if std::fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        let installed = std::process::Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"])
            .arg(&packages)
            .arg("--requirement")
            .arg(drivers().join("requirements.txt"))
            .output()
            .expect("these tests need Python 3.10 or newer with pip; install them and try again");
        assert!(installed.status.success(), "pip: {}", String::from_utf8_lossy(&installed.stderr));
        std::fs::write(&stamp, wanted).expect("a stamp");
    }
    packages
}
