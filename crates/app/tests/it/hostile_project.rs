//! A hostile repository against the real program: links, rules and instruction files that lead out of it.

use std::os::unix::fs::symlink;

use serde_json::json;
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider};

#[tokio::test]
async fn instruction_files_never_lead_out_of_the_project() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let secret = home.write("secret.txt", "CANARY-OUTSIDE\n");
    let config = fake_provider(fake.url(), "openai-chat");
    home.write("work/real.md", "the project's own words\n");
    let agents = home.workspace().join("AGENTS.md");
    for (target, wanted) in [
        (std::path::PathBuf::from("/proc/self/environ"), None),
        (secret.clone(), None),
        ("../secret.txt".into(), None),
        ("real.md".into(), Some("the project's own words")),
        (home.workspace().join("real.md"), Some("the project's own words")),
    ] {
        let _ = std::fs::remove_file(&agents);
        symlink(&target, &agents).unwrap();
        let mut client = Client::start(&home, &config).await;
        fake.answer(Answer::text("ok"));
        client.prompt(None, "hi").await;
        let system = fake.last_request().system();
        assert!(!system.contains("CANARY") && !system.contains("PATH="), "{target:?}: {system}");
        assert_eq!(wanted.is_some(), system.contains("<instructions"), "{target:?}: {system}");
        assert!(wanted.is_none_or(|wanted| system.contains(wanted)), "{target:?}: {system}");
    }
}

#[tokio::test]
async fn rules_of_a_trusted_project_never_lead_out_of_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("secret.md", "CANARY-OUTSIDE\n");
    home.write("work/docs/inside.md", "a rule inside\n");
    home.write("work/.dragoman/rules/plain.md", "a plain rule\n");
    symlink("../../../secret.md", home.workspace().join(".dragoman/rules/out.md")).unwrap();
    symlink("../../docs/inside.md", home.workspace().join(".dragoman/rules/in.md")).unwrap();
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["rules"] = json!([".dragoman/rules"]);
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("ok"));
    client.prompt(None, "hi").await;
    let system = fake.last_request().system();
    assert!(system.contains("a plain rule") && system.contains("a rule inside"), "{system}");
    assert!(!system.contains("CANARY"), "{system}");
}

#[tokio::test]
async fn children_and_proc_show_no_keys() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["key"] = json!("${env:MY_PLAIN_NAME}");
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command
        .env("DRAGOMAN_CONFIG", config.to_string())
        .env("MY_PLAIN_NAME", "CANARY-KEY-123456")
        .env("COPY_OF_IT", "x CANARY-KEY-123456")
        .env("OPENAI_API_KEY", "CANARY-OTHER-123456")
        .env("HARMLESS", "kept");
    let mut client = Client::spawn_with(command);
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    // Reversed, so that no masking of the result hides what the command saw.
    let line = "(env; tr '\\0' '\\n' < /proc/$PPID/environ) | rev; echo done";
    fake.answer(Answer::tool_call("c1", "eca__shell_command", json!({"command": line})));
    fake.answer(Answer::text("ok"));
    client.prompt_with(json!({"chatId": "c", "message": "go", "trust": true})).await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("tpek=SSELMRAH") && sent.contains("done"), "{sent}");
    assert!(!sent.contains("YRANAC"), "a key reached a child: {sent}");
}

/// A variable that holds a key reaches a child only where the user's own settings name it; a project cannot.
#[tokio::test]
async fn the_user_alone_passes_keys_on() {
    for (own, project, wanted) in
        [(json!([]), json!(["MY_TOKEN"]), false), (json!(["MY_TOKEN"]), json!([]), true)]
    {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut config = fake_provider(fake.url(), "openai-chat");
        config["providers"]["fake"]["key"] = json!("${env:MY_TOKEN}");
        config["shell"] = json!({"passEnvironment": own});
        home.write("work/.dragoman/config.json", &json!({"shell": {"passEnvironment": project}}).to_string());
        let mut command: tokio::process::Command = home.command(&["server"]).into();
        command.env("DRAGOMAN_CONFIG", config.to_string()).env("DRAGOMAN_TRUST", "1");
        command.env("MY_TOKEN", "CANARY-KEY-123456");
        let mut client = Client::spawn_with(command);
        client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
        let call = json!({"command": "printenv MY_TOKEN | rev; echo done"});
        fake.answer(Answer::tool_call("c1", "eca__shell_command", call)).answer(Answer::text("ok"));
        client.prompt_with(json!({"chatId": "c", "message": "go", "trust": true})).await;
        let sent = fake.last_request().body.to_string();
        assert!(sent.contains("done"), "{sent}");
        assert_eq!(sent.contains("654321-YEK"), wanted, "{sent}");
    }
}

/// The configuration of a project is not read through a link that leads out of it.
#[tokio::test]
async fn settings_of_a_project_never_lead_out_of_it() {
    let home = Home::new();
    home.write("elsewhere.json", r#"{"defaultModel": "CANARY-OUTSIDE/x"}"#);
    std::fs::create_dir_all(home.workspace().join(".dragoman")).unwrap();
    symlink("../../elsewhere.json", home.workspace().join(".dragoman/config.json")).unwrap();
    let shown = home.command(&["config", "show"]).env("DRAGOMAN_TRUST", "1").output().unwrap();
    let text = String::from_utf8_lossy(&[shown.stdout, shown.stderr].concat()).into_owned();
    assert!(!text.contains("CANARY"), "{text}");
    assert!(text.contains("leads out of its folder"), "{text}");
}

/// What an export prints obeys nobody: it holds no escape sequence and no control character of the upper range.
#[tokio::test]
async fn an_exported_chat_holds_no_control_characters() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("one\u{9b}2J\u{85}two\u{1b}]0;x\u{7}\u{202e}three"));
    client.prompt(Some("c"), "hello\u{9b}2J").await;
    client.end().await;
    for arguments in
        [&["chats", "export", "c"][..], &["chats", "show", "c"], &["chats", "show", "c", "--json"]]
    {
        let output = home.command(arguments).env("DRAGOMAN_CONFIG", config.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("two") && text.contains("three"), "{arguments:?}: {text}");
        let is_hidden = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
        assert!(!text.contains(is_hidden), "{arguments:?}: {text:?}");
    }
}

/// A project that the user trusted sets the address of a provider: the user's key goes there only if the user's own settings
/// name the host.
#[tokio::test]
async fn a_key_goes_to_no_address_of_a_project() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let openai = json!({"api": "openai-chat", "url": fake.url(), "models": {"m": {}}});
    let project = json!({"defaultModel": "openai/m", "providers": {"openai": openai}});
    home.write("work/.dragoman/config.json", &project.to_string());
    let run = || {
        let mut command: tokio::process::Command = home.command(&["run", "hello"]).into();
        command.env("DRAGOMAN_TRUST", "1").env("OPENAI_API_KEY", "sk-of-the-user");
        command.stdin(std::process::Stdio::null());
        crate::run::finish(command)
    };
    let has_key =
        |request: &testkit::Request| request.header("authorization") == Some("Bearer sk-of-the-user");
    let refused = run().await;
    assert!(refused.code != Some(0) && refused.err.contains("keyHosts"), "{}", refused.err);
    assert!(!fake.requests().iter().any(has_key));
    let host = fake.url().split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a host");
    let own = json!({"providers": {"openai": {"keyHosts": [host]}}});
    home.write(".config/dragoman/config.json", &own.to_string());
    fake.answer(Answer::text("ok"));
    let agreed = run().await;
    assert_eq!((agreed.code, agreed.out.trim()), (Some(0), "ok"), "{}", agreed.err);
    assert!(has_key(&fake.last_request()));
    let mut command: tokio::process::Command = home.command(&["trust", "--show"]).into();
    let shown = crate::run::finish({
        command.stdin(std::process::Stdio::null());
        command
    });
    let shown = shown.await.out;
    assert!(shown.contains(&format!("providers.openai.url = \"{}\"", fake.url())), "{shown}");
    assert!(shown.contains("Your own keys and headers are sent there only if `keyHosts`"), "{shown}");
}
