//! The beginning of a connection, and the lists beside chats.

use domain::command::{Catalog, SlashArgument};
use domain::event::{CatalogKind, EventBody};
use domain::tool::{Resource, ServerAction, ServerPrompt, ServerStatus, ToolServer};
use domain::tool_call::Origin;
use serde_json::{Value, json};
use testkit::{FakeEngine, Seen};

use crate::client::{Client, catalog, frame};

#[tokio::test]
async fn two_messages_in_one_write_keep_their_meaning() {
    let engine = FakeEngine::start(catalog());
    let mut client = Client::connect(&engine);
    let mut bytes = frame(&json!({"jsonrpc": "2.0", "id": 900, "method": "initialize", "params": {}}));
    bytes.extend(frame(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})));
    client.send_bytes(&bytes).await;
    let messages = client.until(|it| it["method"] == "config/updated").await;
    assert_eq!(messages[0]["id"], 900, "the response comes first: {messages:#?}");
    assert_eq!(messages[0]["result"]["chatWelcomeMessage"], "Welcome");
    let chat = &messages.last().unwrap()["params"]["chat"];
    assert_eq!(chat["models"], json!(["a/plain", "myProvider/deep"]));
    assert_eq!(chat["behaviors"], json!(["agent", "plan"]));
    assert_eq!(chat["agents"], json!(["code", "plan"]));
}

#[tokio::test]
async fn the_selected_model_is_one_of_the_list() {
    let engine = FakeEngine::start(Catalog { default_model: Some("local/later".into()), ..catalog() });
    let mut client = Client::connect(&engine);
    client.request("initialize", json!({})).await;
    client.notify("initialized", Value::Null).await;
    let first = client.until(|it| it["method"] == "config/updated").await.pop().unwrap();
    assert!(first["params"]["chat"].get("selectModel").is_none(), "{first}");
    let mut found = catalog();
    found.models[0].id = "local/later".into();
    found.default_model = Some("local/later".into());
    engine.set_catalog(found);
    engine.event(None, EventBody::Catalog(CatalogKind::Models));
    let second = client.until(|it| it["method"] == "config/updated").await.pop().unwrap();
    assert_eq!(second["params"]["chat"]["selectModel"], "local/later");
    // The user may have chosen another one since.
    engine.event(None, EventBody::Catalog(CatalogKind::Models));
    let third = client.until(|it| it["method"] == "config/updated").await.pop().unwrap();
    assert!(third["params"]["chat"].get("selectModel").is_none(), "{third}");
}

fn tool_server(name: &str, status: ServerStatus) -> ToolServer {
    ToolServer {
        name: name.into(),
        origin: Origin::Mcp,
        status,
        command: "run".into(),
        args: Vec::new(),
        url: None,
        error: None,
        tools: Vec::new(),
        prompts: Vec::new(),
        resources: Vec::new(),
        has_login: false,
    }
}

#[tokio::test]
async fn only_servers_that_changed_are_sent_again() {
    let engine = FakeEngine::start(catalog());
    let set = |servers: &[(&str, ServerStatus)]| {
        engine.set_servers(servers.iter().map(|(name, status)| tool_server(name, *status)).collect());
    };
    set(&[("one", ServerStatus::Running), ("two", ServerStatus::Starting)]);
    let mut client = Client::connect(&engine);
    client.request("initialize", json!({})).await;
    client.notify("initialized", Value::Null).await;
    client.until(|it| it["params"]["name"] == "two").await;
    set(&[("one", ServerStatus::Running), ("two", ServerStatus::Running)]);
    engine.event(None, EventBody::Catalog(CatalogKind::ToolServers));
    // The first start of the servers is a task that ends with the last of them.
    let messages = client.until(|it| it["params"]["type"] == "finish").await;
    let names: Vec<&Value> = messages
        .iter()
        .filter(|it| it["method"] == "tool/serverUpdated")
        .map(|it| &it["params"]["name"])
        .collect();
    assert_eq!(names, ["two"]);
    set(&[("one", ServerStatus::Running)]);
    engine.event(None, EventBody::Catalog(CatalogKind::ToolServers));
    let removed = client.until(|it| it["method"] == "tool/serverRemoved").await;
    assert_eq!(removed.last().unwrap()["params"], json!({"name": "two"}));
    assert_eq!(removed.len(), 1, "{removed:#?}");
}

/// A server may start, fail and start again faster than it is asked for.
#[tokio::test]
async fn the_start_of_a_server_is_always_sent() {
    let engine = FakeEngine::start(catalog());
    engine.set_servers(vec![tool_server("one", ServerStatus::Failed)]);
    let mut client = Client::connect(&engine);
    client.request("initialize", json!({})).await;
    client.notify("initialized", Value::Null).await;
    let mut seen = client.until(|it| it["params"]["status"] == "failed").await;
    for (status, sent) in [
        (ServerStatus::Running, "running"),
        (ServerStatus::Failed, "failed"),
        (ServerStatus::Stopped, "stopped"),
        (ServerStatus::RequiresAuth, "requires-auth"),
    ] {
        engine.set_servers(vec![tool_server("one", status)]);
        engine.event(None, EventBody::Catalog(CatalogKind::ToolServers));
        seen.extend(client.until(|it| it["params"]["status"] == sent).await);
    }
    let updates = seen.iter().filter(|it| it["method"] == "tool/serverUpdated");
    let statuses: Vec<&Value> = updates.map(|it| &it["params"]["status"]).collect();
    let expected =
        ["starting", "failed", "starting", "running", "failed", "stopped", "starting", "requires-auth"];
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn both_spellings_of_a_name_are_found() {
    let (mut client, mut engine) = Client::start().await;
    engine.set_servers(vec![tool_server("test-mcp", ServerStatus::Running)]);
    engine.event(None, EventBody::Catalog(CatalogKind::ToolServers));
    client.until(|it| it["params"]["name"] == "test-mcp").await;
    client.request("mcp/stopServer", json!({"name": "testMcp"})).await;
    assert_eq!(
        engine.next().await,
        Seen::ServerAction { name: "test-mcp".into(), action: ServerAction::Stop }
    );
    client.notify("chat/selectedModelChanged", json!({"model": "my-provider/deep", "variant": "high"})).await;
    let Seen::Configure { change, .. } = engine.next().await else { panic!("a setting changes") };
    assert_eq!(change.model.as_deref(), Some("myProvider/deep"));
    let update = client.until(|it| it["method"] == "config/updated").await.pop().unwrap();
    assert_eq!(update["params"]["chat"], json!({"variants": ["low", "high"], "selectVariant": "high"}));
    client.call("chat/prompt", json!({"chatId": "c", "message": "x", "model": "my-provider/deep"})).await;
    engine.next().await;
    let (_, _, prompt) = engine.prompt().await;
    assert_eq!(prompt.change.model.as_deref(), Some("myProvider/deep"));
}

#[tokio::test]
async fn the_start_names_the_file_of_the_users_settings() {
    let engine = FakeEngine::start(catalog());
    let mut client = Client::connect(&engine);
    let started = client.request("initialize", json!({})).await;
    assert_eq!(started["globalConfigPath"], "/home/u/.config/dragoman/config.json", "{started}");
}

#[tokio::test]
async fn a_server_is_sent_with_its_prompts_and_resources() {
    let engine = FakeEngine::start(catalog());
    let argument = SlashArgument { name: "topic".into(), description: Some("of it".into()), required: true };
    let prompt =
        ServerPrompt { name: "my-prompt".into(), description: "does it".into(), arguments: vec![argument] };
    let resource = Resource {
        server: "one".into(),
        uri: "notes://1".into(),
        name: "note".into(),
        description: String::new(),
        mime: "text/plain".into(),
    };
    let server = tool_server("one", ServerStatus::Running);
    let (prompts, resources) = (vec![prompt], vec![resource]);
    engine.set_servers(vec![ToolServer { prompts, resources, has_login: true, ..server }]);
    let mut client = Client::connect(&engine);
    client.request("initialize", json!({})).await;
    client.notify("initialized", Value::Null).await;
    let sent = client.until(|it| it["params"]["status"] == "running").await.pop().unwrap();
    assert_eq!(sent["params"]["hasAuth"], true, "{sent}");
    let arguments = json!([{"name": "topic", "description": "of it", "required": true}]);
    let prompts = json!([{"name": "my-prompt", "description": "does it", "arguments": arguments}]);
    let resources =
        json!([{"uri": "notes://1", "name": "note", "description": "", "mimeType": "text/plain"}]);
    assert_eq!((&sent["params"]["prompts"], &sent["params"]["resources"]), (&prompts, &resources), "{sent}");
}
