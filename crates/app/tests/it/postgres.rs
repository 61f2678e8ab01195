//! Chats in a PostgreSQL database, through the real program and a real server.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, PostgresServer};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, run_command};

fn config(fake: &FakeModel, address: &str) -> Value {
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["store"] = json!(address);
    config
}

fn has_file(home: &Home) -> bool {
    home.path().join(".local/share/dragoman/chats.sqlite").exists()
}

async fn ok(home: &Home, config: &Value, arguments: &[&str]) -> String {
    let (code, out, err) = run_command(home, config, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    out
}

/// Prompt, list, search, show, export, import, stats, replay, delete: all of it without a file on this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_live_in_the_database() {
    let Some(server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    let config = config(&fake, &server.database("chats"));
    fake.answer(Answer::text("A needle in the answer."));
    let mut client = Client::start(&home, &config).await;
    client.prompt(Some("c"), "Where is it?").await;
    let listed = client.request("chat/list", json!({})).await;
    assert_eq!(listed["chats"][0]["id"], "c", "{listed}");
    assert!(client.end().await.success());

    assert!(ok(&home, &config, &["chats", "list"]).await.contains("2 messages"));
    assert!(ok(&home, &config, &["chats", "search", "needle"]).await.contains('c'));
    assert!(ok(&home, &config, &["chats", "show", "c"]).await.contains("A needle in the answer."));
    let exported = home.path().join("chat.jsonl");
    let exported = exported.to_str().expect("a path");
    ok(&home, &config, &["chats", "export", "c", "-o", exported]).await;
    assert!(ok(&home, &config, &["chats", "import", exported]).await.contains("c-2"));
    assert!(ok(&home, &config, &["stats", "--json"]).await.contains("fake"));
    ok(&home, &config, &["replay", "c"]).await;

    // Another process goes on with the chat; the model is sent what was said before.
    fake.answer(Answer::text("Again."));
    let mut client = Client::start(&home, &config).await;
    client.prompt(Some("c"), "And now?").await;
    assert!(fake.last_request().body.to_string().contains("A needle in the answer."));
    assert!(client.end().await.success());

    ok(&home, &config, &["chats", "delete", "c", "c-2"]).await;
    assert!(ok(&home, &config, &["chats", "list", "--all"]).await.contains("no chats"));
    assert_eq!(server.query("chats", "SELECT count(*) FROM dragoman.facts"), "0");
    assert!(!has_file(&home), "a file of chats was made on this machine");
}

/// The database is away while an answer streams: the turn waits, says so, and goes on; nothing is missing or there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_waits_for_a_database_that_is_away() {
    let Some(mut server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    let config = config(&fake, &server.database("away"));
    let words: Vec<String> = (0..200).map(|at| format!("w{at} ")).collect();
    fake.answer(Answer::new().every(Duration::from_millis(10)).chunks(&words));
    let mut client = Client::start(&home, &config).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go on"})).await;
    let mut messages = client.until(|message| message.to_string().contains("w5 ")).await;
    tokio::task::block_in_place(|| server.kill());
    messages.extend(
        client.until(|message| message.to_string().contains("store of the chats does not answer")).await,
    );
    tokio::task::block_in_place(|| server.resume());
    messages.extend(client.until(is_finished).await);
    assert_eq!(answer(&contents(&messages)), words.concat());
    assert!(client.end().await.success());
    let shown = ok(&home, &config, &["chats", "show", "c"]).await;
    assert_eq!(shown.matches("w199").count(), 1, "{shown}");
    assert!(shown.contains(words.concat().trim_end()), "{shown}");
    ok(&home, &config, &["replay", "c"]).await;
}

/// A stop is heard while the database is away, and the chat goes on when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_heard_while_the_database_is_away() {
    let Some(mut server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    let config = config(&fake, &server.database("stopped"));
    let words: Vec<String> = (0..2_000).map(|at| format!("w{at} ")).collect();
    fake.answer(Answer::new().every(Duration::from_millis(10)).chunks(&words));
    let mut client = Client::start(&home, &config).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go on"})).await;
    client.until(|message| message.to_string().contains("w5 ")).await;
    tokio::task::block_in_place(|| server.kill());
    client.until(|message| message.to_string().contains("store of the chats does not answer")).await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    let ended = contents(&client.until(is_finished).await);
    assert!(crate::client::system_text(&ended).contains("the end of this answer is not stored"), "{ended:?}");
    tokio::task::block_in_place(|| server.resume());

    fake.answer(Answer::text("Here again."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "and now?"})).await;
    // The turn that was stopped may end first.
    let mut said = answer(&contents(&client.until(is_finished).await));
    if !said.contains("Here again.") {
        said = answer(&contents(&client.until(is_finished).await));
    }
    assert!(said.ends_with("Here again."), "{said}");
    assert!(client.end().await.success());
    let shown = ok(&home, &config, &["chats", "show", "c"]).await;
    assert!(shown.contains("w0") && shown.contains("Here again."), "{shown}");
    ok(&home, &config, &["replay", "c"]).await;
}

/// Jobs and MCP servers end before the lease of their chat does; the servers run again when the database is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_end_before_the_lease_of_their_chat() {
    // By the defaults of the store.
    const LEASE: Duration = Duration::from_secs(30);
    let Some(mut server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    let mut config = crate::eca_mcp::config(&home, fake.url(), &[("good", "good")]);
    config["store"] = json!(server.database("programs"));
    config["toolCall"] = json!({"approval": {"allow": {"eca__shell_command": {}}}});
    let mut client = Client::start(&home, &config).await;
    client.until(|it| crate::eca_mcp::is_server(it, "good", "running")).await;
    let line = json!({"command": "sleep 600", "background": "a job"});
    fake.answer(Answer::tool_call("j", "eca__shell_command", line)).answer(Answer::text("It runs."));
    client.prompt(Some("c"), "start it").await;
    let statuses = async |client: &mut Client| -> Vec<String> {
        let jobs = client.request("jobs/list", json!({})).await;
        jobs["jobs"].as_array().into_iter().flatten().map(|job| job["status"].to_string()).collect()
    };
    assert_eq!(statuses(&mut client).await, ["\"running\""]);
    tokio::task::block_in_place(|| server.kill());
    let away = std::time::Instant::now();
    client.until(|it| crate::eca_mcp::is_server(it, "good", "stopped")).await;
    while statuses(&mut client).await != ["\"killed\""] {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(away.elapsed() < LEASE, "the programs ran for {:?} without the database", away.elapsed());
    tokio::task::block_in_place(|| server.resume());
    client.until(|it| crate::eca_mcp::is_server(it, "good", "running")).await;
    assert!(client.end().await.success());
}

/// A chat has one writer, also over the database; a killed one on this machine is not waited for, and what it had told is
/// there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_writer_is_followed_at_once() {
    let Some(server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    let config = config(&fake, &server.database("killed"));
    fake.respond_with(|_| Answer::text("told"));
    let mut first = Client::start(&home, &config).await;
    first.prompt(Some("c"), "one").await;
    let mut second = Client::start(&home, &config).await;
    second.request("chat/open", json!({"chatId": "c"})).await;
    let refused = second.response("chat/prompt", json!({"chatId": "c", "message": "two"})).await;
    assert_eq!(refused["result"]["status"], "error", "{refused}");
    second.until(|message| message.to_string().contains("Another Dragoman writes this chat")).await;
    // It follows what the first one writes.
    first.ask("chat/prompt", json!({"chatId": "c", "message": "three"})).await;
    second.until(|message| message.to_string().contains("three")).await;
    first.until(is_finished).await;
    first.child.kill().await.expect("kill -9");
    second.ask("chat/prompt", json!({"chatId": "c", "message": "four"})).await;
    second.until(|message| message.to_string().contains("four")).await;
    second.until(is_finished).await;
    assert!(second.end().await.success());
    let shown = ok(&home, &config, &["chats", "show", "c"]).await;
    assert!(["one", "three", "four"].iter().all(|text| shown.contains(text)), "{shown}");
    assert_eq!(shown.matches("told").count(), 3, "{shown}");
}

/// The address of the database reaches no child, no log and no error; no project and no editor names one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_is_a_secret_of_the_user() {
    const PASSWORD: &str = "hunter2hunter2";
    let (fake, home) = (FakeModel::start().await, Home::new());
    let address = format!("postgres://me:{PASSWORD}@127.0.0.1:1/chats");
    let set = config(&fake, &address);
    // Each waits for the database for a while.
    let ((code, out, err), shown, doctor, traced) = tokio::join!(
        run_command(&home, &set, &["chats", "list"]),
        run_command(&home, &set, &["config", "show"]),
        run_command(&home, &set, &["doctor", "--json"]),
        run_command(&home, &set, &["--log-level", "trace", "chats", "list"]),
    );
    assert!(code == Some(1) && err.contains("chats on 127.0.0.1 cannot be used now"), "{out}{err}");
    assert!(!err.contains(PASSWORD), "{err}");
    for (_, out, err) in [shown, doctor, traced] {
        assert!(!out.contains(PASSWORD) && !err.contains(PASSWORD), "{out}{err}");
    }

    // A project's file is ignored, and says so.
    home.write("work/.dragoman/config.json", &json!({"store": address}).to_string());
    home.write("work/.eca/config.json", &json!({"store": address}).to_string());
    let plain = fake_provider(fake.url(), "openai-chat");
    let mut trusted: tokio::process::Command = home.command(&["chats", "list"]).into();
    trusted.env("DRAGOMAN_CONFIG", plain.to_string()).env("DRAGOMAN_TRUST", "1");
    let listed = trusted.output().await.expect("it starts");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let (_, checked, _) = run_command(&home, &plain, &["config", "check"]).await;
    assert!(checked.contains("cannot be set by a project"), "{checked}");
    assert!(!checked.contains(PASSWORD), "{checked}");
}

/// `DRAGOMAN_STORE` names the database as well, and commands of a model do not see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_variable_names_a_database_and_is_withheld_from_commands() {
    let Some(server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    let address = server.database("variable");
    fake.answer(Answer::tool_call("call_1", "eca__shell_command", json!({"command": "env > seen.txt"})));
    fake.answer(Answer::text("done"));
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["sandbox"] = json!("on");
    let mut command: tokio::process::Command = home.command(&["run", "--approve", "all", "look"]).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).env("DRAGOMAN_STORE", &address);
    let output = command.output().await.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = std::fs::read_to_string(home.workspace().join("seen.txt")).expect("the command ran");
    assert!(
        seen.contains("HOME=") && !seen.contains("DRAGOMAN_STORE") && !seen.contains("postgres://"),
        "{seen}"
    );
    assert_eq!(server.query("variable", "SELECT count(*) FROM dragoman.sessions"), "1");
    assert!(!has_file(&home));
}

/// Both ways, continued after an interruption, verified, and nothing is overwritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_move_between_the_stores() {
    let Some(server) = PostgresServer::start() else { return };
    let (fake, home) = (FakeModel::start().await, Home::new());
    fake.respond_with(|_| Answer::text("answered"));
    let mut file = fake_provider(fake.url(), "openai-chat");
    // A price, so that there is a cost to move.
    file["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 100_000, "output": 100_000}});
    let mut database = file.clone();
    database["store"] = json!(server.database("moved"));
    let mut client = Client::start(&home, &file).await;
    for chat in ["a", "b", "c"] {
        client.prompt(Some(chat), &format!("question of {chat}")).await;
    }
    assert!(client.end().await.success());
    let exports = async |config: &Value| -> Vec<String> {
        let mut exports = Vec::new();
        for chat in ["a", "b", "c"] {
            exports.push(ok(&home, config, &["chats", "export", chat]).await);
        }
        exports
    };
    let before = exports(&file).await;
    // A tab of studio, with one version.
    let version = json!({"number": 1, "kind": "generation", "description": "first", "assumptions": [], "hash": "x",
        "size": 4, "time": 1, "plugins": []});
    let tab = json!({"id": "t", "title": "Shop", "versions": [version], "current": 1}).to_string();
    let studio = [
        ("studio", "tabs", r#"{"order": ["t"], "closed": []}"#),
        ("studio.tab", "t", &tab),
        ("studio.code", "t/00000001", "code"),
    ];
    {
        use domain::Store;
        let journal = store::Journal::open(&home.path().join(".local/share/dragoman")).expect("a store");
        for (kind, key, value) in studio {
            journal.put(kind, key, value.to_owned()).await.expect("a record");
        }
    }
    let migrate = |to: &'static str| ["store", "migrate", "--json", "--to", to];
    let refused = run_command(&home, &file, &migrate("postgres")).await;
    assert!(refused.0 == Some(1) && refused.2.contains("No PostgreSQL database is set"), "{refused:?}");

    let moved: Value = serde_json::from_str(&ok(&home, &database, &migrate("postgres")).await).expect("JSON");
    assert_eq!((&moved["copied"], &moved["alreadyThere"]), (&json!(3), &json!(0)), "{moved}");
    assert_eq!(exports(&database).await, before);
    assert_eq!(moved["studioTabs"], 1, "{moved}");
    let record = |kind: &str, key: &str| {
        server.query(
            "moved",
            &format!("SELECT value FROM dragoman.records WHERE kind = '{kind}' AND key = '{key}'"),
        )
    };
    assert_eq!(record("studio.code", "t/00000001"), "code");
    assert!(record("studio.tab", "t").contains("Shop") && record("studio", "tabs").contains("\"t\""));
    // The cost of today goes with them; a second run adds nothing.
    let spent = "SELECT coalesce(sum(value::float8), 0) FROM dragoman.records WHERE kind = 'spent'";
    assert_eq!(server.query("moved", spent).parse::<f64>().expect("a sum"), moved["spentToday"]);
    assert!(moved["spentToday"].as_f64().is_some_and(|spent| spent > 1.0), "{moved}");
    assert_eq!(
        ok(&home, &database, &["chats", "list", "--all", "--json"]).await,
        ok(&home, &file, &["chats", "list", "--all", "--json"]).await,
    );

    // An interrupted run: one chat is missing, one is cut short, one differs.
    let key = |chat: &str| format!("(SELECT key FROM dragoman.sessions WHERE id = '{chat}')");
    server.query("moved", &format!("DELETE FROM dragoman.facts WHERE session = {} AND number > 2", key("a")));
    server
        .query("moved", &format!("DELETE FROM dragoman.search WHERE session = {} AND number > 2", key("a")));
    server.query("moved", "UPDATE dragoman.sessions SET newest = 2, updated = created WHERE id = 'a'");
    server.query("moved", &format!("DELETE FROM dragoman.facts WHERE session = {}", key("b")));
    server.query("moved", &format!("DELETE FROM dragoman.search WHERE session = {}", key("b")));
    server.query("moved", "DELETE FROM dragoman.sessions WHERE id = 'b'");
    server.query(
        "moved",
        &format!("UPDATE dragoman.facts SET at = at + 1 WHERE session = {} AND number = 2", key("c")),
    );
    let (code, out, err) = run_command(&home, &database, &migrate("postgres")).await;
    assert_eq!(code, Some(1), "{out}{err}");
    let moved: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&moved["copied"], &moved["studioTabs"]), (&json!(2), &json!(0)), "{moved}");
    assert_eq!(server.query("moved", spent).parse::<f64>().expect("a sum"), moved["spentToday"]);
    assert_eq!(moved["leftOut"][0]["id"], "c", "{moved}");
    assert_eq!(exports(&database).await[..2], before[..2]);

    // Back into an empty file.
    server.query(
        "moved",
        &format!("UPDATE dragoman.facts SET at = at - 1 WHERE session = {} AND number = 2", key("c")),
    );
    ok(&home, &file, &["chats", "delete", "a", "b", "c"]).await;
    let moved = ok(&home, &database, &["store", "migrate", "--to", "sqlite", "--delete"]).await;
    assert!(moved.contains("3 chats copied and verified"), "{moved}");
    assert_eq!(exports(&file).await, before);
    assert_eq!(server.query("moved", "SELECT count(*) FROM dragoman.sessions"), "0");
}
