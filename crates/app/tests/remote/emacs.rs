//! eca-emacs and a server on another machine: the messages of both generations, and the plugin itself where it is
//! installed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use super::{DRIVER, WAIT, World, parts, said_by_assistant};

/// Where Emacs keeps packages, in the home of the user who runs the tests.
const PACKAGE_FOLDERS: [&str; 6] = [
    ".emacs.d/elpa",
    ".emacs.d/straight/repos",
    ".config/emacs/elpa",
    ".config/emacs/straight/repos",
    ".config/emacs/.local/straight/repos",
    ".config/emacs/elpaca/repos",
];

/// What eca-emacs sends first: of August 2026, of October 2025, and with an agent that the user chose.
fn initializations(folder: &Path) -> [Value; 3] {
    let folders = |uri: String| json!([{"uri": uri, "name": "work"}]);
    let client = json!({"name": "emacs", "version": "GNU Emacs 30.1\n of 2026-01-01"});
    let newest = json!({
        "codeAssistant": {"chat": true, "chatCapabilities": {"askQuestion": true}, "editor": {"diagnostics": true}},
    });
    let first = json!({"codeAssistant": {"chat": true, "editor": {"diagnostics": true}}});
    let (uri, slash) = (format!("file://{}", folder.display()), format!("file://{}/", folder.display()));
    let with = |capabilities: &Value, options: Value, uri: &str| {
        json!({
            "processId": 1, "clientInfo": client, "capabilities": capabilities, "initializationOptions": options,
            "workspaceFolders": folders(uri.to_owned()),
        })
    };
    [
        with(&newest, json!({"chatAgent": null}), &uri),
        with(&first, json!({"chatBehavior": null}), &slash),
        with(&newest, json!({"chatAgent": "plan"}), &uri),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_messages_of_eca_emacs_reach_a_server_on_another_machine() {
    let Some(world) = World::start().await else { return };
    for (round, initialize) in (1..).zip(initializations(&world.work())) {
        let chosen = initialize["initializationOptions"]["chatAgent"].as_str().map(str::to_owned);
        let mut editor = world.editor("server", "127.0.0.1");
        let result = editor.request("initialize", initialize).await;
        assert!(result["chatWelcomeMessage"].is_string(), "{result}");
        editor.send(json!({"jsonrpc": "2.0", "method": "initialized", "params": null})).await;
        let (_, updated) = editor.until(|it| it["method"] == "config/updated").await;
        let agent = &updated["params"]["chat"]["selectAgent"];
        assert_eq!(agent.as_str(), Some(chosen.as_deref().unwrap_or("code")), "{updated}");
        let cursor = json!({"start": {"line": 1, "character": 1}, "end": {"line": 1, "character": 1}});
        let context = json!({"type": "cursor", "path": world.work().join("a.txt"), "position": cursor});
        let prompt = json!({
            "message": format!("Count marker-{round} 7{round}"), "request-id": round, "chatId": format!("c{round}"),
            "model": null, "agent": chosen, "contexts": [context],
        });
        editor.call("chat/prompt", prompt).await;
        let (seen, _) = editor.until(|it| it["params"]["content"]["state"] == "finished").await;
        assert_eq!(said_by_assistant(&seen), parts(&format!("7{round}")).concat(), "round {round}");
        editor.request("shutdown", Value::Null).await;
        editor.send(json!({"jsonrpc": "2.0", "method": "exit", "params": null})).await;
        let status = tokio::time::timeout(WAIT, editor.child.wait()).await.expect("it ends");
        assert!(status.expect("a status").success());
    }
    let named = json!([{"name": "work", "uri": format!("file://{}", world.work().display())}]);
    let refused = json!({
        "processId": 1, "capabilities": {}, "workspaceFolders": named, "initializationOptions": {"hooks": {"x": {"type": "preRequest"}}},
    });
    let mut editor = world.editor("server", "127.0.0.1");
    let (_, response) = editor.response("initialize", refused).await;
    assert!(response["error"]["message"].to_string().contains("hooks"), "{response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eca_emacs_uses_a_server_on_another_machine() {
    let found = Command::new("emacs").arg("--version").stdout(Stdio::null()).status().await;
    if !found.is_ok_and(|status| status.success()) {
        println!("skipped: emacs is not installed");
        return;
    }
    let Some(world) = World::start().await else { return };
    std::fs::write(world.work().join("hello.txt"), "hello\n").expect("a file");
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let mut folders: Vec<PathBuf> =
        std::env::var_os("DRAGOMAN_ECA_EMACS").map(PathBuf::from).into_iter().collect();
    folders.extend(PACKAGE_FOLDERS.iter().map(|folder| home.join(folder)));
    let folders = std::env::join_paths(folders).expect("paths");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/emacs.el");
    let url = format!("https://127.0.0.1:{}", world.port);
    let mut emacs = Command::new("emacs");
    emacs.args(["-Q", "--batch", "-l"]).arg(script).arg(folders).arg(world.work());
    emacs.args(["Count marker-1 71", "71.79:", env!("CARGO_BIN_EXE_dragoman"), "server", "--connect"]);
    emacs.args([&url, "--fingerprint", &world.fingerprint]).kill_on_drop(true);
    emacs.env("DRAGOMAN_TOKEN", &world.token).env("HOME", world.home.path());
    let ran = tokio::time::timeout(WAIT, emacs.output()).await.expect("in time").expect("it starts");
    if ran.status.code() == Some(77) {
        println!("skipped: eca-emacs is not installed (DRAGOMAN_ECA_EMACS names the folder of its packages)");
        return;
    }
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}");
    assert_eq!(world.asked("marker-1 "), 1, "{DRIVER} asked once: {told}");
}
