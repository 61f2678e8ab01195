//! The store from outside: what commands leave in the files, and `dragoman store check` and `repair`.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider, run_command as run};

fn data(home: &Home) -> PathBuf {
    home.path().join(".local/share/dragoman")
}

/// Nobody has the file open: all of the log is in it, and the log is gone.
pub(crate) fn check_log_is_written_back(home: &Home) {
    let log = data(home).join("chats.sqlite-wal");
    assert!(
        !log.exists(),
        "the log is left, with {} bytes",
        std::fs::metadata(&log).map_or(0, |it| it.len())
    );
}

/// Chats with these prompts, made by runs. Their ids.
async fn chats(home: &Home, config: &Value, fake: &FakeModel, prompts: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for prompt in prompts {
        fake.answer(Answer::text(&format!("Answer to {prompt}.")));
        let (code, _, err) = run(home, config, &["run", prompt]).await;
        assert_eq!(code, Some(0), "{err}");
        check_log_is_written_back(home);
        let (_, out, _) = run(home, config, &["chats", "list", "--json"]).await;
        check_log_is_written_back(home);
        let listed: Value = serde_json::from_str(&out).expect("JSON");
        ids.push(listed["chats"][0]["id"].as_str().expect("an id").to_owned());
    }
    ids
}

#[tokio::test]
async fn damage_is_named_by_check_and_repaired_with_a_copy() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let (code, out, _) = run(&home, &config, &["store", "check"]).await;
    assert_eq!(code, Some(0), "{out}");
    let ids = chats(&home, &config, &fake, &["walrus", "penguin"]).await;
    let (code, out, _) = run(&home, &config, &["store", "check"]).await;
    assert!(code == Some(0) && out.starts_with("2 chats") && out.contains("no damage"), "{out}");
    let (code, out, _) = run(&home, &config, &["store", "repair"]).await;
    assert!(code == Some(0) && out.contains("Nothing was changed"), "{out}");

    let file = data(&home).join("chats.sqlite");
    let mut bytes = std::fs::read(&file).expect("the file alone has the chats");
    let place = bytes.windows(15).rposition(|it| it == b"Answer to walru").expect("the answer");
    bytes[place] = b'a';
    std::fs::write(&file, &bytes).expect("written");
    let (code, _, err) = run(&home, &config, &["chats", "show", &ids[0]]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains(&ids[0]) && err.contains("damaged") && err.contains("store repair"), "{err}");
    let (code, out, _) = run(&home, &config, &["chats", "show", &ids[1]]).await;
    assert!(code == Some(0) && out.contains("penguin"), "{out}");

    let (code, out, err) = run(&home, &config, &["store", "check"]).await;
    assert!(code == Some(1) && out.contains(&ids[0]) && !out.contains(&ids[1]), "{out}");
    assert!(err.contains("store repair"), "{err}");
    let (code, out, _) = run(&home, &config, &["store", "check", "--json"]).await;
    assert_eq!(code, Some(1));
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["chats"], &report["problems"][0]["chat"]), (&json!(2), &json!(ids[0])));

    let (code, out, err) = run(&home, &config, &["store", "repair", "--json"]).await;
    assert_eq!(code, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["repaired"], &report["chats"]), (&json!(true), &json!(2)));
    assert_eq!(report["damaged"][0]["id"], json!(ids[0]));
    let copy = report["copy"].as_str().expect("a copy");
    assert_eq!(std::fs::read(copy).expect("the copy"), bytes);
    let (code, out, err) = run(&home, &config, &["chats", "show", &ids[0]]).await;
    assert!(code == Some(0) && out.contains("walrus"), "{out}{err}");
    let (code, out, _) = run(&home, &config, &["store", "check"]).await;
    assert_eq!(code, Some(0), "{out}");
    // It goes on.
    fake.answer(Answer::text("More."));
    let (code, _, err) = run(&home, &config, &["run", "--session", &ids[0], "go on"]).await;
    assert_eq!(code, Some(0), "{err}");
    check_log_is_written_back(&home);
    // A chat that lost facts does not replay identically, which the end of the home checks.
    let (code, _, err) = run(&home, &config, &["chats", "delete", &ids[0]]).await;
    assert_eq!(code, Some(0), "{err}");
}
