//! The commands of the documentation that open a chat, on a real screen.

use std::collections::BTreeSet;

use testkit::Answer;

use crate::docs::{commands, pages, without_variables};
use crate::screen::{Fixture, watch};
use crate::tmux::Start;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_chat_in_the_pages_opens() {
    let bench = Fixture::new().await;
    bench.fake.respond_with(|_| Answer::text("Here is an answer."));
    let all: BTreeSet<String> =
        pages().iter().flat_map(|(_, text)| commands(text)).map(|line| without_variables(&line)).collect();
    let is_chat = |line: &&String| {
        ["dragoman", "dragoman chat"].contains(&line.as_str()) || line.starts_with("dragoman chat ")
    };
    let chats: Vec<String> = all.iter().filter(is_chat).cloned().collect();
    assert!(chats.len() >= 5, "{chats:?}");
    watch(move || {
        // The first one leaves a chat for those that go on with one.
        let ran = bench
            .home
            .command(&["run", "hello"])
            .env("DRAGOMAN_CONFIG", bench.config.to_string())
            .output()
            .expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let listed = bench.home.command(&["chats", "list", "--json"]).output().expect("it runs");
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
        let id = listed["chats"][0]["id"].as_str().or(listed[0]["id"].as_str()).expect("a chat").to_owned();
        for line in chats {
            let words = line.replace(" ID", &format!(" {id}"));
            // Quotes hold one argument together.
            let mut parts = words.split('"');
            let mut arguments: Vec<&str> =
                parts.next().unwrap_or_default().split_whitespace().skip(1).collect();
            arguments.extend(parts.next());
            let screen = bench.screen_with(&Start { command: "", arguments: &arguments, ..Start::default() });
            // A question or an earlier chat has an answer; a new chat says what to do.
            let is_new = !line.contains('"') && !line.contains("--continue") && !line.contains(" ID");
            screen.until(if is_new { "Ask something" } else { "Here is an answer." });
            screen.until_gone("Esc stops");
            screen.keys(&["C-d"]);
            screen.until_left(0);
        }
    })
    .await
    .expect("the screen");
}
