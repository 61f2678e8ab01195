//! A rule that forbids reading a path holds for every tool, every spelling and everything that is attached to a prompt.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, is_finished};
use crate::eca_mcp;

const CANARY: &str = "CANARY-7315";

/// Calls that would show or move what the rule forbids, in a trusted chat.
fn calls(home: &Home) -> Vec<(&'static str, Value)> {
    let root = home.workspace().display().to_string();
    let shell = |line: &str| ("eca__shell_command", json!({"command": line}));
    let mut calls = vec![
        ("eca__read_file", json!({"path": "secret/key.txt"})),
        ("eca__read_file", json!({"path": "./src/../secret/key.txt"})),
        ("eca__read_file", json!({"path": format!("{root}/secret/key.txt")})),
        ("eca__read_file", json!({"path": "SECRET/key.txt"})),
        ("eca__read_file", json!({"path": "link.txt"})),
        ("eca__read_file", json!({"path": "folder-link/key.txt"})),
        // A wrong change would be answered with what is there.
        (
            "eca__edit_file",
            json!({"path": "secret/key.txt", "original_content": "the CANARY is", "new_content": "x"}),
        ),
        (
            "eca__preview_file_change",
            json!({"path": "secret/key.txt", "original_content": "the key", "new_content": "y"}),
        ),
        ("eca__write_file", json!({"path": "secret/key.txt", "content": "y"})),
        ("eca__move_file", json!({"source": "secret/key.txt", "destination": "open.txt"})),
        ("eca__move_file", json!({"source": "secret", "destination": "open"})),
        ("eca__move_file", json!({"source": "src", "destination": "secret/src"})),
        ("eca__grep", json!({"pattern": "CANARY"})),
        ("eca__grep", json!({"pattern": "CANARY", "path": "secret"})),
        ("eca__grep", json!({"pattern": "CANARY", "path": "secret/key.txt"})),
        ("good__echo", json!({"text": "secret/key.txt"})),
        ("good__echo", json!({"where": {"path": format!("file://{root}/secret/key.txt")}, "text": "x"})),
        ("good__echo", json!({"text": "src/../secret/key.txt"})),
    ];
    calls.extend(
        [
            "cat secret/key.txt",
            "grep -r CANARY .",
            "grep CANARY secret/key.txt",
            "rg CANARY",
            "head -c 100 < secret/key.txt",
            "cd secret && cat key.txt",
            "cat secret/*",
            "cat sec*/key.txt",
            "git diff --no-index /dev/null secret/key.txt",
            "git show HEAD:secret/key.txt",
            "git log -p",
            "git grep CANARY HEAD",
            "diff secret/key.txt src/main.rs",
            "cp secret/key.txt open.txt",
            "cp -r secret open",
            "mv secret open",
            "tar cf - secret",
            "ln secret/key.txt open.txt",
            "x=secret/key.txt; cat $x",
            "eval cat secret/key.txt",
            "bash -c 'cat secret/key.txt'",
            "python3 -c 'print(open(\"secret/key.txt\").read())'",
            "find . -name key.txt -exec cat {} +",
            "find . -name key.txt | xargs cat",
            "sed -n p secret/key.txt",
            "awk 1 secret/key.txt",
            "base64 secret/key.txt",
            "cat link.txt",
            "cat folder-link/key.txt",
        ]
        .map(shell),
    );
    calls
}

#[tokio::test]
async fn no_tool_shows_what_a_rule_forbids_to_read() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let secret = home.write("work/secret/key.txt", &format!("the key is {CANARY}\n"));
    home.write("work/src/main.rs", "fn main() {}\n");
    std::os::unix::fs::symlink("secret/key.txt", home.workspace().join("link.txt")).expect("a link");
    std::os::unix::fs::symlink("secret", home.workspace().join("folder-link")).expect("a link");
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ] {
        let git = std::process::Command::new("git").args(arguments).current_dir(home.workspace()).status();
        assert!(git.expect("git").success(), "{arguments:?}");
    }
    let mut config = eca_mcp::config(&home, fake.url(), &[("good", "good")]);
    config["toolCall"] =
        json!({"approval": {"deny": {"read_file": {"argsMatchers": {"path": ["secret/.*"]}}}}});
    let mut client = Client::start(&home, &config).await;
    client.until(|it| eca_mcp::is_server(it, "good", "running")).await;
    for (number, (tool, input)) in calls(&home).into_iter().enumerate() {
        let chat = format!("c{number}");
        fake.answer(Answer::tool_call("c", tool, input.clone())).answer(Answer::text("ok"));
        let prompt = json!({"chatId": chat, "message": "go", "trust": true, "agent": "code"});
        client.ask("chat/prompt", prompt).await;
        let mut shown = Vec::new();
        loop {
            let message = client.next().await;
            // Whatever is asked about in spite of the trust is refused by the person.
            if message["params"]["content"]["type"] == "toolCallRun"
                && message["params"]["content"]["manualApproval"] == true
            {
                let id = &message["params"]["content"]["id"];
                client.notify("chat/toolCallReject", json!({"chatId": chat, "toolCallId": id})).await;
            }
            shown.push(message.clone());
            if is_finished(&message) && message["params"]["chatId"] == json!(chat) {
                break;
            }
        }
        let body = fake.last_request().body.to_string();
        assert!(!body.contains(CANARY), "{tool} {input}: {body}");
        assert!(!contents(&shown).iter().any(|it| it.to_string().contains(CANARY)), "{tool} {input}");
        assert!(std::fs::read_to_string(&secret).is_ok_and(|text| text.contains(CANARY)), "{tool} {input}");
        assert!(
            !home.workspace().join("open.txt").exists() && !home.workspace().join("open").exists(),
            "{tool} {input}"
        );
    }
    // What is attached to a prompt follows the same rule.
    for context in [
        json!({"type": "file", "path": home.workspace().join("secret/key.txt")}),
        json!({"type": "file", "path": home.workspace().join("link.txt")}),
        json!({"type": "directory", "path": home.workspace()}),
        json!({"type": "directory", "path": home.workspace().join("secret")}),
    ] {
        fake.answer(Answer::text("ok"));
        let prompt = json!({"chatId": "attached", "message": "go", "contexts": [context]});
        client.prompt_with(prompt).await;
        let body = fake.last_request().body.to_string();
        assert!(!body.contains(CANARY), "{context}: {body}");
    }
    client.end().await;
}
