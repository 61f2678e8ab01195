//! The small commands from outside: doctor, chats, completions, man.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider, run_command as run};

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name} in {report:#}"))
}

#[tokio::test]
async fn the_doctor_finds_a_healthy_house() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.answer(Answer::text("ok"));
    let config = fake_provider(fake.url(), "openai-chat");
    let (code, out, err) = run(&home, &config, &["doctor", "--json"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(check(&report, "default model")["text"], "fake/m1");
    assert_eq!(check(&report, "fake")["state"], "ok");
    assert_eq!(check(&report, "answer of the default model")["state"], "ok");
    assert!(check(&report, "sandbox")["text"].as_str().expect("text").starts_with("Commands run in a "));
    assert!(!out.contains("sk-secret"), "{out}");
    fake.answer(Answer::text("ok"));
    let (code, out, _) = run(&home, &config, &["doctor"]).await;
    assert_eq!(code, Some(0));
    assert!(out.contains("[ok] fake") && out.contains("sandbox"), "{out}");
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_and_how_to_fix_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    // The key is refused.
    fake.answer(Answer::status(401));
    let (code, out, _) = run(&home, &fake_provider(fake.url(), "openai-chat"), &["doctor", "--json"]).await;
    assert_eq!(code, Some(1), "{out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(check(&report, "answer of the default model")["state"], "broken");
    assert!(check(&report, "answer of the default model")["fix"].is_string());
    // Nobody listens.
    let (code, out, _) =
        run(&home, &fake_provider("http://127.0.0.1:9", "openai-chat"), &["doctor", "--json"]).await;
    assert_eq!(code, Some(1), "{out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(check(&report, "fake")["state"], "broken");
    let answer = check(&report, "answer of the default model").to_string();
    assert!(answer.contains("Is it running?") && !answer.contains("rying again"), "{answer}");
    // What is in the address is said to nobody.
    let address = "http://bob:hunter2@127.0.0.1:9/?token=open-sesame";
    let (_, out, err) = run(&home, &fake_provider(address, "openai-chat"), &["doctor"]).await;
    assert!(out.contains("127.0.0.1:9"), "{out}");
    assert!(!format!("{out}{err}").contains("hunter2") && !out.contains("sesame"), "{out}{err}");
    // Also when it is no address because of its password.
    for address in ["http://bob:hun?ter2@127.0.0.1:9/v1", "http://bob:hun/ter2@127.0.0.1:9/v1"] {
        let config = fake_provider(address, "openai-chat");
        let (_, out, err) = run(&home, &config, &["doctor"]).await;
        assert!(!format!("{out}{err}").contains("ter2"), "{out}{err}");
        let (_, out, err) = run(&home, &config, &["config", "show"]).await;
        assert!(out.contains("@127.0.0.1:9/v1") && !format!("{out}{err}").contains("ter2"), "{out}{err}");
    }
    // Nothing is configured; a program of an MCP server is missing.
    let config = json!({"mcpServers": {"gone": {"command": "no-such-program-anywhere"}}});
    let (code, out, _) = run(&home, &config, &["doctor", "--json"]).await;
    assert_eq!(code, Some(1), "{out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(check(&report, "default model")["state"], "missing");
    assert!(check(&report, "default model")["fix"].as_str().expect("a fix").contains("ANTHROPIC_API_KEY"));
    assert_eq!(check(&report, "MCP server gone")["state"], "broken");
}

#[tokio::test]
async fn chats_are_listed_shown_exported_imported_and_deleted() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let none: Vec<Value> = Vec::new();
    let (_, out, _) = run(&home, &config, &["chats", "list", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["chats"], json!(none));
    fake.answer(Answer::text("Blue \x1b[31mit is."));
    run(&home, &config, &["run", "my color is blue"]).await;
    let (_, out, _) = run(&home, &config, &["chats", "list", "--json"]).await;
    let list: Value = serde_json::from_str(&out).expect("JSON");
    let id = list["chats"][0]["id"].as_str().expect("an id").to_owned();
    let (_, out, _) = run(&home, &config, &["chats", "list"]).await;
    assert!(out.contains(&id) && out.contains("my color is blue") && out.contains("2 messages"), "{out}");
    let (_, out, _) = run(&home, &config, &["chats", "search", "COLOR", "blu"]).await;
    assert!(out.contains(&id) && out.contains("    my color is blue\n"), "{out}");
    let (_, out, _) = run(&home, &config, &["chats", "search", "--json", "blue", "is"]).await;
    let hits: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(hits["hits"][0]["chat"]["id"], id.as_str());
    let (code, out, _) = run(&home, &config, &["chats", "search", "green"]).await;
    assert!(code == Some(0) && out.starts_with("No message has all these words."), "{out}");
    let (_, out, _) = run(&home, &config, &["chats", "show", &id]).await;
    assert_eq!(out, "## You\n\nmy color is blue\n\n## Dragoman\n\nBlue it is.\n");
    let (_, out, _) = run(&home, &config, &["chats", "show", "--json", &id]).await;
    assert!(
        serde_json::from_str::<Value>(&out).expect("JSON")["items"].as_array().expect("items").len() >= 2
    );

    let (code, _, err) = run(&home, &config, &["chats", "export", &id, "-o", "chat.jsonl"]).await;
    assert_eq!(code, Some(0), "{err}");
    let exported = home.workspace().join("chat.jsonl");
    let mode = std::fs::metadata(&exported).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "what was said is its owner's");
    std::fs::write(&exported, "mine").expect("written");
    let (code, _, err) = run(&home, &config, &["chats", "export", &id, "-o", "chat.jsonl"]).await;
    assert_eq!(code, Some(1), "nothing is written over: {err}");
    assert_eq!(std::fs::read_to_string(&exported).expect("the file"), "mine");
    std::fs::remove_file(&exported).expect("removed");
    let (code, _, err) = run(&home, &config, &["chats", "export", &id, "-o", "chat.jsonl"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(std::fs::read_dir(home.workspace()).expect("a folder").count(), 1, "nothing else is left");
    let (code, out, _) = run(&home, &config, &["chats", "delete", &id]).await;
    assert_eq!((code, out.as_str()), (Some(0), "One chat deleted.\n"));
    let (code, _, err) = run(&home, &config, &["chats", "show", &id]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("There is no chat"), "{err}");

    let (code, out, err) = run(&home, &config, &["chats", "import", "--json", "chat.jsonl"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["id"], json!(id));
    let (_, out, _) = run(&home, &config, &["chats", "import", "--json", "chat.jsonl"]).await;
    let second = serde_json::from_str::<Value>(&out).expect("JSON")["id"].as_str().expect("an id").to_owned();
    assert_ne!(second, id, "what is there is not written over");
    // It goes on as if it had been made here.
    fake.answer(Answer::text("Blue."));
    let (code, out, err) = run(&home, &config, &["run", "--session", &second, "which color?"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "Blue.\n"), "{err}");
    assert!(fake.last_request().body.to_string().contains("my color is blue"));
}

/// A file from elsewhere gives no rights here.
#[tokio::test]
async fn an_imported_chat_trusts_nobody() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let opened = json!({"number": 1, "at": 1, "fact": {
        "fact": "sessionOpened", "workspace": ["/"], "settings": {"trust": true}, "client": "x"}});
    let changed =
        json!({"number": 2, "at": 1, "fact": {"fact": "sessionChanged", "change": {"trust": true}}});
    let head = json!({"type": "dragoman-chat", "version": 1, "id": "from-elsewhere"});
    home.write("work/chat.jsonl", &format!("{head}\n{opened}\n{changed}\n"));
    let (code, _, err) = run(&home, &config, &["chats", "import", "chat.jsonl"]).await;
    assert_eq!(code, Some(0), "{err}");
    fake.answer(Answer::tool_call("c1", "eca__shell_command", json!({"command": "touch pwned"})));
    fake.answer(Answer::text("done"));
    let (code, _, err) = run(&home, &config, &["run", "--session", "from-elsewhere", "go"]).await;
    assert_eq!(code, Some(3), "{err}");
    assert!(!home.workspace().join("pwned").exists());
    for (text, problem) in [
        ("", "not an exported chat"),
        ("{}", "not an exported chat"),
        (r#"{"type": "dragoman-chat", "version": 99, "id": "x"}"#, "newer Dragoman"),
        (r#"{"type": "dragoman-chat", "version": 1, "id": "../x"}"#, "invalid"),
        (r#"{"type": "dragoman-chat", "version": 1, "id": "x"}"#, "begins with its opening"),
        ("{\"type\": \"dragoman-chat\", \"version\": 1, \"id\": \"x\"}\nnonsense", "line 2"),
    ] {
        home.write("work/bad.jsonl", text);
        let (code, _, err) = run(&home, &config, &["chats", "import", "bad.jsonl"]).await;
        assert_eq!(code, Some(1), "{text}");
        assert!(err.contains(problem), "{text}: {err}");
    }
}

#[tokio::test]
async fn completions_and_manual_come_from_the_definitions() {
    let (home, config) = (Home::new(), json!({}));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = run(&home, &config, &["completions", shell]).await;
        assert_eq!(code, Some(0), "{shell}");
        assert!(out.contains("output-schema") && out.contains("doctor"), "{shell}");
    }
    let (code, out, _) = run(&home, &config, &["man"]).await;
    assert_eq!(code, Some(0));
    assert!(out.contains(".TH") && out.contains("doctor"), "{out}");
    let (code, out, _) = run(&home, &config, &["man", "chats", "list"]).await;
    assert_eq!(code, Some(0));
    assert!(out.contains("Example") && out.contains("all"), "{out}");
    let (code, _, err) = run(&home, &config, &["man", "nothing"]).await;
    assert_eq!(code, Some(2), "{err}");
    let (code, _, _) = run(&home, &config, &["man", "--dir", "pages"]).await;
    assert_eq!(code, Some(0));
    let pages = std::fs::read_dir(home.workspace().join("pages")).expect("the pages").flatten();
    let pages: Vec<String> = pages.map(|page| page.file_name().to_string_lossy().into_owned()).collect();
    for page in ["dragoman.1", "dragoman-run.1", "dragoman-chats-list.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} in {pages:?}");
    }
    assert!(!pages.iter().any(|name| name.contains("help")), "{pages:?}");
}

#[tokio::test]
async fn a_chat_without_a_terminal_says_so() {
    let (code, _, err) = run(&Home::new(), &json!({}), &["chat"]).await;
    assert_eq!(code, Some(2));
    assert!(err.contains("dragoman run"), "{err}");
}

#[tokio::test]
async fn what_a_killed_process_had_said_is_shown_and_no_chat_is_deleted_by_half() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut command: tokio::process::Command = home.command(&["run", "slow 60"]).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).kill_on_drop(true);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    fake.wait_for_requests(1).await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    child.kill().await.expect("kill -9");
    let (_, out, _) = run(&home, &config, &["chats", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&out).expect("JSON");
    let id = listed["chats"][0]["id"].as_str().expect("a chat").to_owned();
    let (_, out, _) = run(&home, &config, &["chats", "show", &id]).await;
    assert!(out.contains("slow 60") && out.contains("word1 word2"), "{out}");
    let (code, _, err) = run(&home, &config, &["chats", "delete", &id, "zzz"]).await;
    assert_eq!(code, Some(1), "{err}");
    let (_, out, _) = run(&home, &config, &["chats", "list"]).await;
    assert!(out.contains(&id), "{out}");
}

/// `docs` shows the pages that messages name: plain where nobody looks at a terminal.
#[tokio::test]
async fn the_documentation_is_in_the_program() {
    let (home, config) = (Home::new(), json!({}));
    let (code, out, _) = run(&home, &config, &["docs"]).await;
    assert!(code == Some(0) && out.contains("approvals") && out.contains("protocols/acp"), "{out}");
    let (code, out, _) = run(&home, &config, &["docs", "--json"]).await;
    let listed: Value = serde_json::from_str(&out).expect("JSON");
    let names: Vec<&str> =
        listed["pages"].as_array().expect("pages").iter().filter_map(|page| page["name"].as_str()).collect();
    assert!(code == Some(0) && names.contains(&"sandbox") && names.len() > 30, "{names:?}");
    for name in &names {
        let (code, out, _) = run(&home, &config, &["docs", name]).await;
        assert!(code == Some(0) && out.starts_with("# "), "{name}");
        assert!(!out.contains('\u{1b}'), "{name}");
    }
    let (code, out, _) = run(&home, &config, &["docs", "--json", "docs/run.md"]).await;
    let page: Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        code == Some(0) && page["name"] == "run" && page["text"].as_str().expect("text").contains("exit")
    );
    let (code, _, err) = run(&home, &config, &["docs", "aproval"]).await;
    assert!(code == Some(2) && err.contains("There is no page") && err.contains("approvals"), "{err}");
    let (_, out, _) = run(&home, &config, &["completions", "bash"]).await;
    assert!(out.contains("many-windows"), "shells complete the names of pages");
}

/// A value that is not used is not shown as if it were in force.
#[tokio::test]
async fn refused_settings_are_shown_as_refused() {
    let home = Home::new();
    let config = json!({"maxSteps": -1, "logLevel": "warn",
        "providers": {"lab": {"api": "smoke-signals", "url": "http://127.0.0.1:9", "models": {"m": {}}}}});
    let (code, out, err) = run(&home, &config, &["config", "show"]).await;
    assert_eq!(code, Some(0), "{err}");
    let line =
        |key: &str| out.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap_or_default();
    assert!(line("maxSteps").contains("refused: must be a whole number"), "{out}");
    assert!(line("providers.lab.api").contains("refused: "), "{out}");
    assert!(!line("logLevel").is_empty() && !line("logLevel").contains("refused"), "{out}");
    let (_, out, _) = run(&home, &config, &["config", "show", "--json"]).await;
    let shown: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(shown["settings"]["maxSteps"], 200, "the default is in force: {shown:#}");
    assert!(shown["settings"]["providers"]["lab"].get("api").is_none(), "{shown:#}");
    assert!(shown["refused"].to_string().contains("smoke-signals"), "{shown:#}");
}
