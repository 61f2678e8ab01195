//! Files with instructions: AGENTS.md, or that of another assistant where there is none.

use serde_json::json;
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};
use crate::run::Fixture;

#[tokio::test]
async fn the_instructions_of_other_assistants_count_where_there_are_no_own_ones() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let ask = async || {
        fake.answer(Answer::text("ok"));
        let mut command: tokio::process::Command = home.command(&["run", "hello"]).into();
        command.current_dir(home.workspace()).env("DRAGOMAN_CONFIG", config.to_string());
        let output = command.output().await.expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fake.last_request().body.to_string()
    };
    home.write(
        "work/.cursor/rules/a.mdc",
        "---\ndescription: x\nalwaysApply: true\n---\nSpeak like Cursor.\n",
    );
    home.write(
        "work/.cursor/rules/b.mdc",
        "---\nglobs: *.ts\nalwaysApply: false\n---\nSpeak of TypeScript.\n",
    );
    let sent = ask().await;
    assert!(sent.contains("Speak like Cursor.") && !sent.contains("TypeScript"), "rules for every chat");
    home.write("work/GEMINI.md", "Speak like Gemini.\n");
    home.write("work/.github/copilot-instructions.md", "Speak like Copilot.\n");
    let sent = ask().await;
    assert!(
        ["Gemini", "Cursor", "Copilot"].iter().all(|name| sent.contains(&format!("Speak like {name}."))),
        "{sent}"
    );
    home.write("work/CLAUDE.md", "Speak like Claude.\n");
    let sent = ask().await;
    assert!(sent.contains("Speak like Claude.") && !sent.contains("Speak like Gemini."), "{sent}");
    home.write("work/AGENTS.md", "Speak plainly.\n");
    let sent = ask().await;
    let both = sent.find("Speak plainly.").zip(sent.find("Speak like Claude."));
    assert!(both.is_some_and(|(agents, claude)| agents < claude), "both count, in their order: {sent}");
    home.write("work/CLAUDE.md", "@AGENTS.md\n");
    let sent = ask().await;
    assert_eq!(sent.matches("Speak plainly.").count(), 1, "once, where one imports the other");
}

#[tokio::test]
async fn rules_hold_for_their_agents_and_models() {
    let bench = Fixture::new().await;
    let rules = ".config/eca/rules";
    for (name, head) in [
        ("plan", "agent: plan"),
        ("code", "agent: [code, explorer]"),
        ("fake", "model: fake/.*"),
        ("claude", "model: [\"claude\", \"gpt\"]"),
        ("all", "description: for all"),
    ] {
        bench.home.write(&format!("{rules}/{name}.md"), &format!("---\n{head}\n---\nThe rule of {name}.\n"));
    }
    for (behavior, expected) in [("agent", ["all", "code", "fake"]), ("plan", ["all", "fake", "plan"])] {
        bench.fake.answer(Answer::text("ok"));
        let ran = bench.run(&["--behavior", behavior, "hi"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let sent = bench.fake.last_request().body.to_string();
        let holds = |name: &&str| sent.contains(&format!("The rule of {name}."));
        let held: Vec<&str> = ["all", "claude", "code", "fake", "plan"].into_iter().filter(holds).collect();
        assert_eq!(held, expected, "{behavior}");
    }
}

#[tokio::test]
async fn a_rule_that_is_enforced_is_read_before_its_files_are_touched() {
    let bench = Fixture::new().await;
    let head = "---\npaths: [\"db/**\"]\nenforce: [modify, read]\n---\n";
    bench.home.write(".config/eca/rules/queries.md", &format!("{head}Write SQL in capital letters.\n"));
    bench.home.write("work/db/a.sql", "select 1\n");
    let write = |path: &str| json!({"path": path, "content": "SELECT 2\n"});
    bench
        .fake
        .answer(Answer::tool_call("c1", "eca__write_file", write("db/b.sql")))
        .answer(Answer::tool_call("c2", "eca__read_file", json!({"path": "db/a.sql"})))
        .answer(Answer::tool_call("c3", "eca__write_file", write("other.sql")))
        .answer(Answer::tool_call("c4", "eca__fetch_rule", json!({"id": "queries", "path": "db/b.sql"})))
        .answer(Answer::tool_call("c5", "eca__write_file", write("db/b.sql")))
        .answer(Answer::tool_call("c6", "eca__read_file", json!({"path": "db/a.sql"})))
        .answer(Answer::text("finished"));
    let ran = bench.run(&["--approve", "edit", "add a query"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let requests = bench.fake.requests();
    let first = requests[0].body.to_string();
    assert!(first.contains("queries (for db/**)") && !first.contains("capital letters"), "{first}");
    let results: Vec<String> = requests.iter().flat_map(|request| request.tool_results()).collect();
    for (at, is_refused) in [true, true, false, false, false, false].into_iter().enumerate() {
        assert_eq!(results[at].contains("must be read first"), is_refused, "{at}: {}", results[at]);
    }
    assert!(results[3].contains("Write SQL in capital letters."), "{}", results[3]);
    let written = |path: &str| bench.home.workspace().join(path).exists();
    assert!(written("db/b.sql") && written("other.sql"));
}
