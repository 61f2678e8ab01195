//! Undo from outside: a model's tools change files, the user takes it back.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::Editor;
use crate::client::{Client, Home, fake_provider, is_finished, run_command};

/// What the command prints; it must succeed.
async fn run(home: &Home, config: &Value, arguments: &[&str]) -> String {
    let (code, out, err) = run_command(home, config, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    out
}

#[tokio::test]
async fn what_tools_changed_is_undone_and_redone_after_a_restart() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let (a, b, made) = ("a.txt", "src/b.txt", "made.txt");
    let path = |name: &str| home.workspace().join(name);
    std::fs::create_dir_all(path("src")).expect("a folder");
    std::fs::write(path(a), "one\n").expect("a file");
    std::fs::write(path(b), "two\n").expect("a file");
    let read = |name: &str| std::fs::read_to_string(path(name)).ok();

    fake.answer(Answer::tool_call("c1", "eca__write_file", json!({"path": "made.txt", "content": "made\n"})));
    fake.answer(Answer::tool_call(
        "c2",
        "eca__shell_command",
        json!({"command": "rm -rf src; echo new > a.txt"}),
    ));
    fake.answer(Answer::text("done"));
    run(&home, &config, &["run", "--approve", "all", "tidy up"]).await;
    let changed = || (read(a), read(b), read(made));
    assert_eq!(changed(), (Some("new\n".into()), None, Some("made\n".into())));

    let continued = |text: &'static str| ["run", "--continue", "--approve", "all", text];
    let preview = run(&home, &config, &continued("/undo preview")).await;
    assert!(
        preview.contains("delete") && preview.contains("made.txt") && preview.contains("b.txt"),
        "{preview}"
    );
    assert_eq!(read(b), None, "a preview changes nothing");
    run(&home, &config, &continued("/undo")).await;
    assert_eq!(changed(), (Some("one\n".into()), Some("two\n".into()), None));
    run(&home, &config, &continued("/redo")).await;
    assert_eq!(changed(), (Some("new\n".into()), None, Some("made\n".into())));
    run(&home, &config, &continued("/undo")).await;
    assert_eq!(changed(), (Some("one\n".into()), Some("two\n".into()), None));

    let list: Value =
        serde_json::from_str(&run(&home, &config, &["chats", "list", "--json"]).await).expect("JSON");
    let id = list["chats"][0]["id"].as_str().expect("an id").to_owned();
    let exported = run(&home, &config, &["chats", "export", &id]).await;
    assert!(!exported.contains("two\\n"), "snapshots are in no export");
    run(&home, &config, &["chats", "delete", &id]).await;
    let nothing = run(&home, &config, &["run", "--approve", "all", "/undo"]).await;
    assert!(nothing.contains("No turn of this chat"), "{nothing}");
}

/// The model learns that its files changed behind its back.
#[tokio::test]
async fn the_model_hears_of_an_undo() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    fake.answer(Answer::tool_call("c1", "eca__write_file", json!({"path": "made.txt", "content": "made\n"})));
    fake.answer(Answer::text("done"));
    fake.answer(Answer::text("I see"));
    fake.answer(Answer::text("again"));
    run(&home, &config, &["run", "--approve", "all", "make it"]).await;
    run(&home, &config, &["run", "--continue", "/undo"]).await;
    run(&home, &config, &["run", "--continue", "and now?"]).await;
    let asked = fake.last_request().last_user_text();
    assert!(asked.contains("took file changes back") && asked.contains("made.txt"), "{asked}");
    run(&home, &config, &["run", "--continue", "and then?"]).await;
    let asked = fake.last_request().last_user_text();
    assert!(!asked.contains("took file changes back"), "once is enough: {asked}");
}

/// Files over the limit cannot be brought back: a person must allow a command that deletes them, trusted chat or not.
#[tokio::test]
async fn a_command_that_deletes_a_file_over_the_limit_asks_in_a_trusted_chat() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "anthropic");
    config["undo"] = json!({"fileMegabytes": 1});
    config["chat"] = json!({"defaultTrust": true});
    let large = home.write("work/large.bin", &"x".repeat((1 << 20) + 1));
    let small = home.write("work/small.bin", "x");
    for command in ["rm small.bin", ": > large.bin", "rm -rf large.bin", "rm -rf large.bin"] {
        fake.answer(Answer::new().call("c1", "eca__shell_command", json!({"command": command})));
        fake.answer(Answer::text("done"));
    }
    let mut editor = Editor::start(&home, &config, json!({})).await;
    editor.say("delete the small one").await;
    assert!(!small.exists() && editor.count("session/request_permission") == 0);
    editor.choices.extend(["reject_once", "reject_once", "allow_once"]);
    editor.say("empty the large one").await;
    assert_eq!(editor.count("session/request_permission"), 1);
    assert_eq!(large.metadata().expect("a file").len(), (1 << 20) + 1, "the person said no");
    editor.say("delete the large one").await;
    assert_eq!(editor.count("session/request_permission"), 2);
    assert!(large.exists(), "the person said no");
    editor.say("delete it all the same").await;
    assert!(!large.exists(), "the person said yes");

    // ACP clients undo with the command that is offered to them.
    editor.say("/undo 3").await;
    assert!(small.exists(), "{:?}", editor.updates);
}

/// What a subagent changed belongs to the turn that the user sees.
#[tokio::test]
async fn the_changes_of_a_subagent_are_undone_with_its_parents_turn() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let kept = home.write("work/kept.txt", "mine\n");
    let made = home.workspace().join("made.txt");
    fake.answer(Answer::tool_call(
        "c1",
        "eca__spawn_agent",
        json!({"agent": "general", "task": "Write made.txt and empty kept.txt."}),
    ));
    fake.answer(Answer::tool_call("c2", "eca__write_file", json!({"path": "made.txt", "content": "made\n"})));
    fake.answer(Answer::tool_call("c3", "eca__shell_command", json!({"command": ": > kept.txt"})));
    fake.answer(Answer::text("Both are done."));
    fake.answer(Answer::text("done"));
    run(&home, &config, &["run", "--approve", "all", "have it done"]).await;
    assert!(made.exists() && std::fs::read_to_string(&kept).expect("a file").is_empty());
    let preview = run(&home, &config, &["run", "--continue", "/undo preview"]).await;
    assert!(preview.contains("made.txt") && preview.contains("kept.txt"), "{preview}");
    run(&home, &config, &["run", "--continue", "/undo"]).await;
    assert!(!made.exists());
    assert_eq!(std::fs::read_to_string(&kept).expect("a file"), "mine\n");
}

/// Where the former bytes cannot be stored, nothing is overwritten unless a person says so.
#[tokio::test]
async fn a_change_that_could_not_be_undone_is_not_made_unasked() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let kept = home.write("work/kept.txt", "mine\n");
    home.write(".local/share/dragoman/undo", "a file where the store belongs");
    let calls = [
        ("eca__write_file", json!({"path": "kept.txt", "content": "other\n"})),
        ("eca__shell_command", json!({"command": "rm kept.txt"})),
    ];
    for (tool, input) in calls {
        fake.answer(Answer::tool_call("c1", tool, input));
        fake.answer(Answer::text("done"));
        run(&home, &config, &["run", "--approve", "all", "change it"]).await;
        let results = fake.last_request().tool_results();
        let result = results.last().expect("a result");
        assert!(result.contains("could not be undone") && result.contains("share/dragoman/undo"), "{result}");
        assert_eq!(std::fs::read_to_string(&kept).expect("a file"), "mine\n");
    }
}

/// Files and messages go back together: a process that is killed while it restores files leaves the rest to the next one.
#[tokio::test]
async fn a_rollback_that_was_killed_is_finished_as_one() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"defaultTrust": true});
    let files = 600;
    for number in 0..files {
        home.write(&format!("work/d/{number:03}.txt"), &format!("{number}\n"));
    }
    let left = || std::fs::read_dir(home.workspace().join("d")).map_or(0, Iterator::count);
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("first answer"));
    client.prompt(Some("c"), "first").await;
    fake.answer(Answer::tool_call("c1", "eca__shell_command", json!({"command": "rm -rf d"})));
    fake.answer(Answer::text("second answer"));
    let (_, second) = client.prompt(Some("c"), "second").await;
    assert_eq!(left(), 0);
    let id = second.iter().find(|it| it["role"] == "user").expect("the echo")["content"]["contentId"].clone();
    let include = json!({"chatId": "c", "contentId": id, "include": ["messages", "tools"]});
    client.ask("chat/rollback", include).await;
    while left() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    client.child.kill().await.expect("it is killed");

    let mut client = Client::start(&home, &config).await;
    client.request("chat/open", json!({"chatId": "c"})).await;
    assert_eq!(left(), files);
    fake.answer(Answer::text("third answer"));
    client.until(is_finished).await;
    client.prompt(Some("c"), "third").await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("first answer") && !sent.contains("second answer"), "{sent}");
}
