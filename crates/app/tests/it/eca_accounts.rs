//! Accounts with providers in an ECA client: the list, logging in with a key, logging out.

use serde_json::{Value, json};
use testkit::FakeModel;

use crate::client::{Client, Home, fake_provider};

fn find<'a>(list: &'a Value, id: &str) -> &'a Value {
    let providers = list["providers"].as_array().expect("providers");
    providers.iter().find(|it| it["id"] == id).unwrap_or_else(|| panic!("{id}: {list}"))
}

#[tokio::test]
async fn a_user_logs_in_with_a_key_and_out_again() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let list = client.request("providers/list", json!({})).await;
    assert!(!list.to_string().contains("sk-secret-of-the-test"), "no key is shown");
    let own = find(&list, "fake");
    assert_eq!((&own["configured"], &own["auth"]["status"]), (&json!(true), &json!("authenticated")));
    assert_eq!((&own["auth"]["source"], &own["models"][0]["id"]), (&json!("config"), &json!("m1")));
    assert!(own["models"][0]["capabilities"]["tools"].is_boolean());
    let other = find(&list, "anthropic");
    assert_eq!(other["auth"], json!({"status": "unauthenticated"}));
    assert_eq!(other["login"]["methods"][0]["key"], "api-key");
    assert_eq!(find(&list, "ollama")["auth"]["status"], "local");
    assert_eq!(find(&list, "github-copilot")["login"]["methods"][0]["key"], "device");

    let step = client.request("providers/login", json!({"provider": "anthropic"})).await;
    assert_eq!((&step["action"], &step["fields"][0]["type"]), (&json!("input"), &json!("secret")));
    let field = step["fields"][0]["key"].as_str().expect("a field");
    let data = json!({"provider": "anthropic", "data": {field: "sk-typed-by-the-user"}});
    assert_eq!(client.request("providers/loginInput", data).await, json!({"action": "done"}));
    let is_update = |it: &Value| it["method"] == "providers/updated" && it["params"]["id"] == "anthropic";
    let updated = client.until(is_update).await;
    let status = &updated.last().expect("an update")["params"];
    assert_eq!(
        (&status["auth"]["status"], &status["auth"]["source"]),
        (&json!("authenticated"), &json!("login"))
    );
    assert!(updated.iter().all(|it| !it.to_string().contains("sk-typed")), "no key is shown");
    let kept = home.path().join(".local/share/dragoman/credentials.json");
    assert!(std::fs::read_to_string(kept).expect("the file").contains("sk-typed-by-the-user"));

    client.request("providers/logout", json!({"provider": "anthropic"})).await;
    let updated = client.until(is_update).await;
    assert_eq!(updated.last().expect("an update")["params"]["auth"]["status"], "unauthenticated");

    for (method, params) in [
        ("providers/login", json!({"provider": "nobody"})),
        ("providers/login", json!({})),
        ("providers/loginInput", json!({"provider": "anthropic", "data": {}})),
        ("providers/loginInput", json!({"provider": "anthropic", "data": {field: "a\u{7}b"}})),
        // A key of the settings is the user's to remove.
        ("providers/logout", json!({"provider": "fake"})),
    ] {
        let response = client.response(method, params.clone()).await;
        assert!(response.get("error").is_some(), "{method} {params}: {response}");
    }
}

#[tokio::test]
async fn a_key_of_the_environment_is_named_by_its_variable() {
    let home = Home::new();
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command.env("OPENAI_API_KEY", "sk-of-the-environment");
    let mut client = Client::spawn_with(command);
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    let list = client.request("providers/list", json!({})).await;
    let auth = &find(&list, "openai")["auth"];
    assert_eq!((&auth["source"], &auth["envVar"]), (&json!("env"), &json!("OPENAI_API_KEY")), "{auth}");
    let refused = client.response("providers/logout", json!({"provider": "openai"})).await;
    assert!(
        refused["error"]["message"].as_str().is_some_and(|text| text.contains("OPENAI_API_KEY")),
        "{refused}"
    );
}
