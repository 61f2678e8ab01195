//! One chat in the windows of several programs: editors of two protocols, a terminal, and programs that may not attach.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, fake_provider, is_finished};
use crate::lines::LineClient;
use crate::tmux::{Screen, Start};
use crate::web_window::WebWindow;

/// The messages of a chat as an ECA client shows them: `user …`, `agent …`.
fn shown(messages: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for content in contents(messages) {
        let text = content["content"]["text"].as_str().unwrap_or_default();
        match (content["role"].as_str(), content["content"]["type"].as_str()) {
            (Some("user"), Some("text")) => texts.push(format!("user {}", text.trim_end())),
            (Some("assistant"), Some("text")) => match texts.last_mut() {
                Some(last) if last.starts_with("agent ") => last.push_str(text),
                _ => texts.push(format!("agent {text}")),
            },
            _ => {}
        }
    }
    texts
}

/// The same of the updates of an ACP client, which shows its own prompts itself.
fn shown_updates(messages: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for message in messages {
        let update = &message["params"]["update"];
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str() {
            // A notice is no part of the chat.
            Some("agent_message_chunk") if update["messageId"] == "notice" => {}
            Some("user_message_chunk") => texts.push(format!("user {text}")),
            Some("agent_message_chunk") => match texts.last_mut() {
                Some(last) if last.starts_with("agent ") => last.push_str(text),
                _ => texts.push(format!("agent {text}")),
            },
            _ if message["own"].is_string() => {
                texts.push(format!("user {}", message["own"].as_str().unwrap_or("")))
            }
            _ => {}
        }
    }
    texts
}

struct Window {
    client: Client,
    seen: Vec<Value>,
}

impl Window {
    async fn open(home: &Home, config: &Value, chat: &str) -> Self {
        let mut client = Client::start(home, config).await;
        let id = client.ask("chat/open", json!({"chatId": chat})).await;
        let seen = client.until(|message| message["id"] == json!(id)).await;
        assert_eq!(seen.last().map(|last| last["result"]["found"].clone()), Some(json!(true)));
        Self { client, seen }
    }

    async fn until_finished(&mut self) {
        let seen = self.client.until(is_finished).await;
        self.seen.extend(seen);
    }

    async fn until_text(&mut self, text: &str) {
        let wanted = text.to_owned();
        let seen = self.client.until(move |message| message.to_string().contains(&wanted)).await;
        self.seen.extend(seen);
    }

    async fn prompt(&mut self, chat: &str, text: &str) {
        self.client.ask("chat/prompt", json!({"chatId": chat, "message": text})).await;
        self.until_finished().await;
    }
}

async fn until_ended(client: &mut LineClient, seen: &mut Vec<Value>, text: &str) {
    loop {
        let message = client.next().await.expect("the server is there");
        seen.push(message);
        if shown_updates(seen).last().is_some_and(|last| last.ends_with(text)) {
            return;
        }
    }
}

/// Two ECA clients, an ACP client, a terminal and a web page on one chat: each prompts, all show the same, also after the
/// holder died.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_window_shows_the_same() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut holder = Client::start(&home, &config).await;
    fake.answer(Answer::text("first words"));
    holder.ask("chat/prompt", json!({"chatId": "c", "message": "one"})).await;
    let mut first = Window { seen: holder.until(is_finished).await, client: holder };

    let mut second = Window::open(&home, &config, "c").await;
    assert!(second.seen.iter().any(|message| message.to_string().contains("This chat runs in Dragoman")));
    let mut acp = LineClient::spawn(&home, &config, &["acp"]);
    acp.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let load = json!({"sessionId": "c", "cwd": home.workspace(), "mcpServers": []});
    let id = acp.call("session/load", load).await;
    let mut updates = Vec::new();
    loop {
        let message = acp.next().await.expect("the server is there");
        if message["id"] == json!(id) && message.get("method").is_none() {
            break;
        }
        updates.push(message);
    }
    let start = Start { command: "attach", arguments: &["c"], ..Start::default() };
    let screen = Screen::start(&home, &config, &start);
    let text = screen.until("This chat runs in");
    assert!(text.contains("first words"), "the chat stands above the notice: {text}");

    fake.answer(Answer::text("second words"));
    second.prompt("c", "two").await;
    first.until_finished().await;
    until_ended(&mut acp, &mut updates, "second words").await;
    screen.until("second words");

    fake.answer(Answer::text("third words"));
    let blocks = json!([{"type": "text", "text": "three"}]);
    let id = acp.call("session/prompt", json!({"sessionId": "c", "prompt": blocks})).await;
    updates.push(json!({"own": "three"}));
    loop {
        let message = acp.next().await.expect("the server is there");
        if message["id"] == json!(id) && message.get("method").is_none() {
            assert_eq!(message["result"]["stopReason"], "end_turn");
            break;
        }
        updates.push(message);
    }
    first.until_finished().await;
    second.until_finished().await;
    screen.until("third words");

    fake.answer(Answer::text("fourth words"));
    screen.say("four");
    first.until_finished().await;
    second.until_finished().await;
    until_ended(&mut acp, &mut updates, "fourth words").await;
    screen.until("fourth words");

    let mut web = WebWindow::open(&home, &config, "c").await;
    fake.answer(Answer::text("words for all"));
    match &mut web {
        Some(web) => web.prompt("c", "from the page").await,
        None => screen.say("from the page"),
    }
    first.until_finished().await;
    second.until_finished().await;
    until_ended(&mut acp, &mut updates, "words for all").await;
    screen.until("words for all");
    if let Some(web) = &mut web {
        web.until_ended("words for all").await;
    }

    let listed = home.command(&["ps", "--json"]).output().expect("it runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let chat = &listed["chats"][0];
    assert_eq!(
        (&chat["id"], &chat["state"], &chat["model"]),
        (&json!("c"), &json!("idle"), &json!("fake/m1"))
    );
    let process = first.client.child.id().expect("a running child");
    assert!(chat["holder"].as_str().is_some_and(|holder| holder.contains(&process.to_string())), "{chat}");

    // The holder dies; the next prompt goes to whoever holds the chat now.
    first.client.child.kill().await.expect("it is killed");
    second.until_text("holds it now").await;
    fake.answer(Answer::text("fifth words"));
    second.prompt("c", "five").await;
    if let Some(web) = &mut web {
        web.until_ended("fifth words").await;
    }
    until_ended(&mut acp, &mut updates, "fifth words").await;
    screen.until("fifth words");

    let expected = [
        "user one",
        "agent first words",
        "user two",
        "agent second words",
        "user three",
        "agent third words",
        "user four",
        "agent fourth words",
        "user from the page",
        "agent words for all",
        "user five",
        "agent fifth words",
    ];
    if let Some(web) = &web {
        assert_eq!(web.shown(), expected);
    }
    assert_eq!(shown(&second.seen), expected);
    assert_eq!(shown_updates(&updates), expected);
    let notices: Vec<String> =
        updates.iter().map(Value::to_string).filter(|it| it.contains("\"notice\"")).collect();
    assert!(notices.iter().any(|it| it.contains("This chat runs in Dragoman")), "{notices:#?}");
    assert!(notices.iter().any(|it| it.contains("holds it now")), "{notices:#?}");
    assert_eq!(shown(&first.seen), expected[..10]);
    let again = Window::open(&home, &config, "c").await;
    assert_eq!(shown(&again.seen), expected, "a window that opens late shows the same");
    screen.keys(&["C-d"]);
    screen.until_left(0);
}

/// A call of one window is approved in another; a second answer changes nothing.
#[tokio::test]
async fn a_call_is_approved_in_another_window() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut holder = Client::start(&home, &config).await;
    holder.prompt(Some("c"), "say 1 words").await;
    let call = Answer::tool_call("c1", "eca__write_file", json!({"path": "a.txt", "content": "one\n"}));
    fake.answer(call).answer(Answer::text("Written."));
    holder.ask("chat/prompt", json!({"chatId": "c", "message": "write"})).await;
    let waits = |message: &Value| message["params"]["content"]["manualApproval"] == json!(true);
    holder.until(waits).await;
    // It is asked before the window opens, and shown there all the same.
    let mut window = Window::open(&home, &config, "c").await;
    let asked = window.seen.iter().find(|message| waits(message)).expect("the call waits here too").clone();
    let id = asked["params"]["content"]["id"].clone();
    let listed = home.command(&["ps"]).output().expect("it runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("waits for an approval of the user"), "{listed}");
    let answer = json!({"chatId": "c", "toolCallId": id});
    window.client.notify("chat/toolCallApprove", answer.clone()).await;
    holder.until(|message| message["params"]["content"]["type"] == json!("toolCallRunning")).await;
    holder.notify("chat/toolCallReject", answer).await;
    holder.until(is_finished).await;
    window.until_finished().await;
    assert_eq!(std::fs::read_to_string(home.workspace().join("a.txt")).expect("it was written"), "one\n");
}

/// The holder dies while a tool runs: another window shows it with an unknown outcome, and it is not run again.
#[tokio::test]
async fn a_call_of_a_dead_holder_is_never_run_again() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"byDefault": "allow"}});
    config["sandbox"] = json!("off");
    let mut holder = Client::start(&home, &config).await;
    holder.prompt(Some("c"), "say 1 words").await;
    let mut window = Window::open(&home, &config, "c").await;
    let command = json!({"command": "echo run >> runs.txt; sleep 60"});
    fake.answer(Answer::tool_call("c1", "eca__shell_command", command));
    window.client.ask("chat/prompt", json!({"chatId": "c", "message": "run"})).await;
    let runs = home.workspace().join("runs.txt");
    for _ in 0..500 {
        if std::fs::read_to_string(&runs).is_ok_and(|text| text == "run\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fake.forget_requests();
    holder.child.kill().await.expect("it is killed");
    window.until_finished().await;
    window.until_text("holds it now").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(std::fs::read_to_string(&runs).expect("it ran once"), "run\n");
    assert!(fake.requests().is_empty(), "nothing is sent to a model before a prompt");
    fake.answer(Answer::text("Going on."));
    window.prompt("c", "go on").await;
    assert_eq!(shown(&window.seen).last().map(String::as_str), Some("agent Going on."));
}

/// The holder dies while it answers a prompt of an ACP editor: the prompt ends with an error, and the editor reads who holds the
/// chat now.
#[tokio::test]
async fn a_prompt_whose_holder_dies_ends_with_an_error() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut holder = Client::start(&home, &config).await;
    holder.prompt(Some("c"), "say 1 words").await;
    let mut acp = LineClient::spawn(&home, &config, &["acp"]);
    acp.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    acp.request("session/load", json!({"sessionId": "c", "cwd": home.workspace(), "mcpServers": []})).await;
    fake.answer(Answer::text("begun").silence());
    let blocks = json!([{"type": "text", "text": "go"}]);
    let id = acp.call("session/prompt", json!({"sessionId": "c", "prompt": blocks})).await;
    let (mut is_killed, mut response, mut told) = (false, None, String::new());
    while response.is_none() || !told.contains("holds it now") {
        let message = acp.next().await.expect("the server is there");
        let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        told.push_str(text);
        if text.contains("begun") && !is_killed {
            is_killed = true;
            holder.child.kill().await.expect("it is killed");
        }
        if message["id"] == json!(id) && message.get("method").is_none() {
            response = Some(message);
        }
    }
    let response = response.expect("a response");
    assert!(response["error"]["message"].to_string().contains("interrupted"), "{response}");
    assert!(told.contains("This chat runs in Dragoman"), "{told}");
}

/// `attach --json` prints the chat as it grows.
#[tokio::test]
async fn a_script_follows_a_chat() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let nothing = home.command(&["attach"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("No program holds a chat"), "{nothing:?}");
    let empty = home.command(&["ps"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&empty.stdout).contains("No program holds a chat"));
    let mut holder = Client::start(&home, &config).await;
    fake.answer(Answer::text("first words"));
    holder.prompt(Some("chat-of-mine"), "one").await;
    let mut command: tokio::process::Command = home.command(&["attach", "--json", "chat-of"]).into();
    command.stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut script = command.spawn().expect("it starts");
    let lines = tokio::io::BufReader::new(script.stdout.take().expect("stdout"));
    let mut lines = tokio::io::AsyncBufReadExt::lines(lines);
    let mut text = String::new();
    let mut has_prompted = false;
    loop {
        let line =
            tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await.expect("a line in time");
        let line = line.expect("it reads").expect("it goes on");
        text.push_str(&line);
        text.push('\n');
        if text.contains("first words") && !has_prompted {
            has_prompted = true;
            fake.answer(Answer::text("second words"));
            holder.ask("chat/prompt", json!({"chatId": "chat-of-mine", "message": "two"})).await;
        }
        if text.contains("second words") {
            break;
        }
    }
    let head: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!(head["type"], "dragoman-chat");
    assert!(head["attachedTo"].as_str().is_some_and(|holder| holder.contains("Dragoman")), "{head}");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

/// What a command of the model tries. Each line prints its name and what it got.
fn attempts(socket: &str) -> Vec<(&'static str, String)> {
    let program = concat!("'", env!("CARGO_BIN_EXE_dragoman"), "'");
    let plain = |arguments: &str| format!("{program} {arguments}");
    // Without the mark in the environment.
    let bare = |arguments: &str| format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" {program} {arguments}");
    let orphan = |arguments: &str| {
        format!(
            "(env -i HOME=\"$HOME\" PATH=\"$PATH\" {program} {arguments} > orphan.txt 2>&1 &); sleep 2; cat orphan.txt"
        )
    };
    let perl = format!(
        "perl -MIO::Socket::UNIX -e 'open F, \"<\", \"{secret}\"; $s = <F>; \
         $c = IO::Socket::UNIX->new(Peer => \"{socket}\") or die \"no socket\"; \
         $b = qq({{\"secret\":\"$s\",\"session\":\"c\",\"name\":\"x\",\"person\":{{\"client\":\"x\",\"approvals\":true}}}}); \
         print $c \"dragoman-link 2 x\\n\", pack(\"V\", length $b), chr(1), $b; $c->flush; \
         $c->shutdown(1); while (<$c>) {{ print }}'",
        secret = socket.replace(".sock", ".secret"),
    );
    vec![
        ("trust", plain("trust --yes .")),
        ("trust without the mark", bare("trust --yes .")),
        ("trust as an orphan", orphan("trust --yes .")),
        ("mcp add", plain("mcp add evil -- touch evil")),
        ("mcp add without the mark", bare("mcp add evil -- touch evil")),
        ("grants", bare("grants --add network")),
        ("plugins", bare("plugins install evil --yes")),
        ("login", format!("echo key | {}", bare("login anthropic"))),
        ("setup", bare("setup emacs --yes")),
        ("import", bare("import --yes")),
        ("attach", plain("attach --json c")),
        ("attach without the mark", bare("attach --json c")),
        ("attach as an orphan", orphan("attach --json c")),
        ("serve", plain("serve --no-open --json")),
        ("serve without the mark", bare("serve --no-open --json")),
        ("run in the chat", bare("run --session c --approve all hello")),
        ("the socket", perl),
    ]
}

/// The user allows whatever is asked.
async fn prompt_and_approve(client: &mut Client, text: &str) {
    client.ask("chat/prompt", json!({"chatId": "c", "message": text})).await;
    loop {
        let message = client.next().await;
        let content = &message["params"]["content"];
        if content["type"] == "toolCallRun" && content["manualApproval"] == true {
            let answer = json!({"chatId": "c", "toolCallId": content["id"]});
            client.notify("chat/toolCallApprove", answer).await;
        }
        if is_finished(&message) {
            return;
        }
    }
}

/// A command of the model, without the sandbox, tries to trust, to configure, to attach and to approve.
#[tokio::test]
async fn a_command_of_the_model_attaches_to_nothing_and_changes_nothing() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"byDefault": "allow"}});
    config["sandbox"] = json!("off");
    let mut client = Client::start(&home, &config).await;
    client.prompt(Some("c"), "say 1 words").await;
    let sockets = home.path().join(".local/share/dragoman/sockets");
    let socket = std::fs::read_dir(&sockets)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .expect("a socket");
    let attempts = attempts(socket.to_str().expect("text"));
    for (name, line) in attempts {
        let call = Answer::tool_call("c1", "eca__shell_command", json!({"command": line, "timeout": 20000}));
        fake.answer(call).answer(Answer::text("Tried."));
        prompt_and_approve(&mut client, "try").await;
        let requests = fake.requests();
        let sent = requests.last().expect("a request").body.to_string();
        let result = sent.rsplit("\"role\":\"tool\"").next().unwrap_or_default().to_owned();
        let is_refused = result.contains("inside a tool call") || result.contains("may not attach");
        assert!(is_refused, "{name}: {result}");
        assert!(!result.contains("Attached") && !result.contains("sessionOpened"), "{name}: {result}");
    }
    for file in ["trust.json", "credentials.json", "grants.json"] {
        assert!(!home.path().join(".local/share/dragoman").join(file).exists(), "{file} was made");
    }
    assert!(!home.path().join(".config/dragoman/config.json").exists());
}

/// A sandboxed command sees neither the socket nor the secret.
#[tokio::test]
async fn a_sandboxed_command_does_not_see_the_socket() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"byDefault": "allow"}});
    config["sandbox"] = json!("on");
    let mut client = Client::start(&home, &config).await;
    client.prompt(Some("c"), "say 1 words").await;
    let folder: PathBuf = home.path().join(".local/share/dragoman");
    assert!(folder.join("sockets").exists());
    let line = format!("ls -a {0} {0}/sockets; cat {0}/sockets/*.secret; echo over", folder.display());
    fake.answer(Answer::tool_call("c1", "eca__shell_command", json!({"command": line})));
    fake.answer(Answer::text("Tried."));
    prompt_and_approve(&mut client, "try").await;
    let requests = fake.requests();
    let sent = requests.last().expect("a request").body.to_string();
    let result = sent.rsplit("\"role\":\"tool\"").next().unwrap_or_default().to_owned();
    assert!(result.contains("over"), "{result}");
    assert!(!result.contains(".sock") || result.contains("No such file"), "{result}");
    for secret in std::fs::read_dir(folder.join("sockets")).expect("a folder").flatten() {
        if secret.path().extension().is_some_and(|extension| extension == "secret") {
            let secret = std::fs::read_to_string(secret.path()).expect("text");
            assert!(!result.contains(&secret), "it saw the secret");
        }
    }
}
