//! Keys of the user reach no child and no other process, as root and as an ordinary user: by the environment of servers
//! that an ACP client names, by that of commands, and by what `/proc` shows of this program.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::Editor;
use crate::client::fake_provider;
use crate::lines::LineClient;

/// The user and the group that nobody is.
const NOBODY: u32 = 65534;

/// A server that writes down its environment and that of its parents, reversed so that nothing masks it, and ends.
const SPY: &str = r#"
import os, sys
text = repr(dict(os.environ))
pid = os.getppid()
for _ in range(6):
    try:
        text += open(f"/proc/{pid}/environ").read()
    except OSError as error:
        text += str(error.errno)
    try:
        pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        break
open(sys.argv[1], "w").write(text[::-1])
"#;

/// Keys by the names of providers, by a name of the user's own, and as a part of another value.
const KEYS: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "CANARY-ONE-123456"),
    ("ANTHROPIC_API_KEY", "CANARY-TWO-123456"),
    ("MY_PLAIN_NAME", "CANARY-THREE-123456"),
    ("COPY_OF_IT", "x CANARY-THREE-123456 y"),
    ("COPILOT_GITHUB_TOKEN", "CANARY-FOUR-123456"),
];

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// A place that every user can reach, with the program in it.
struct Place {
    _folder: tempfile::TempDir,
    home: PathBuf,
    program: PathBuf,
}

impl Place {
    fn new(user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (home, program) = (folder.path().join("home"), folder.path().join("dragoman"));
        std::fs::create_dir_all(home.join("work")).expect("a folder");
        let built = Path::new(env!("CARGO_BIN_EXE_dragoman"));
        if std::fs::hard_link(built, &program).is_err() {
            std::fs::copy(built, &program).expect("a copy");
        }
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a mode");
        for path in [home.clone(), home.join("work")] {
            chown(path, user, user).expect("an owner");
        }
        Self { _folder: folder, home, program }
    }

    fn start(&self, user: Option<u32>, config: &Value) -> LineClient {
        let mut command = match user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
                command.args([&user, &group, "--clear-groups", "--"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.arg("acp").current_dir(self.home.join("work")).env_clear();
        command.env("HOME", &self.home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("DRAGOMAN_CONFIG", config.to_string()).envs(KEYS.iter().copied()).env("HARMLESS", "kept");
        LineClient::start(command.into(), "acp")
    }
}

async fn check(user: Option<u32>, sandbox: &str) {
    let fake = FakeModel::start().await;
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["key"] = json!("${env:MY_PLAIN_NAME}");
    config["sandbox"] = json!(sandbox);
    let place = Place::new(user);
    let work = place.home.join("work");
    let mut client = place.start(user, &config);
    let process = client.child.id().expect("it runs");
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let spied = work.join("spied");
    let server = json!({"name": "spy", "command": "python3", "args": ["-c", SPY, spied], "env": [{"name": "GIVEN", "value": "yes"}]});
    let session =
        client.request("session/new", json!({"cwd": work, "mcpServers": [server]})).await["sessionId"]
            .clone();
    let mut text = String::new();
    for _ in 0..600 {
        text = std::fs::read_to_string(&spied).unwrap_or_default();
        if !text.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(text.contains("'NEVIG'") && text.contains("'SSELMRAH'"), "{user:?} {sandbox}: {text}");
    assert!(!text.contains("YRANAC"), "a key reached a server, {user:?} {sandbox}: {text}");

    // A command sees no more, and neither does another process of this machine.
    let mut editor = Editor::with(client, session);
    std::fs::write(work.join("spy.py"), SPY).expect("a script");
    let call = json!({"command": "python3 spy.py seen; echo done"});
    fake.answer(Answer::tool_call("c", "eca__shell_command", call)).answer(Answer::text("ok"));
    editor.choices.push_back("allow_once");
    assert_eq!(editor.say("go").await, "end_turn");
    let text = std::fs::read_to_string(work.join("seen")).unwrap_or_default();
    assert!(text.contains("'SSELMRAH'"), "{user:?} {sandbox}: {}", fake.last_request().body);
    assert!(!text.contains("YRANAC"), "a key reached a command, {user:?} {sandbox}: {text}");
    let block = std::fs::read(format!("/proc/{process}/environ"));
    let block = String::from_utf8_lossy(&block.unwrap_or_default()).into_owned();
    assert!(!block.contains("CANARY"), "{user:?}: {block}");
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn keys_reach_no_child() {
    for sandbox in ["on", "off"] {
        check(None, sandbox).await;
    }
}

/// The same as an ordinary user, for whom `/proc` has other rules. Only root can become one.
#[tokio::test]
async fn keys_reach_no_child_of_an_ordinary_user() {
    let can_change = Command::new("setpriv").arg("--version").output().is_ok();
    if !is_root() || !can_change {
        return eprintln!(
            "not tried: only root with `setpriv` can become another user; this user was tried instead"
        );
    }
    for sandbox in ["on", "off"] {
        check(Some(NOBODY), sandbox).await;
    }
}
