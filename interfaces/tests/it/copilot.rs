//! `dragoman copilot` from outside: the real binary, and a fake model over HTTP that answers, errs or says nothing.

use apiui::check::check;
use apiui::print::plan_of;
use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use super::copilot_host::{Host, specification, two_tables};
use crate::client::{Home, fake_provider};

/// Nothing that is understood without a model.
const BEYOND: &str = "Draw a pie chart of everything that was sold";

fn asking(code: &str, prompt: &str) -> Value {
    json!({"currentCode": code, "prompt": prompt, "spec": two_tables(), "history": []})
}

/// The chunks are the code: indexes from 0 without gaps, the last alone done.
fn check_chunks(id: u64, chunks: &[Value], code: &str) {
    assert!(!chunks.is_empty(), "no chunk came");
    for (index, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["requestId"], id);
        assert_eq!(chunk["index"], index);
        assert_eq!(chunk["done"], index + 1 == chunks.len());
    }
    let joined: String = chunks.iter().filter_map(|chunk| chunk["chunk"].as_str()).collect();
    assert!(joined == code, "the chunks are not the code");
}

#[tokio::test]
async fn a_whole_life() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut host = Host::start_with(&home, &config, &["--log-level", "info"]);
    let hello = json!({"clientName": "experience-ui", "clientVersion": "1.0.0", "capabilities": {
        "streaming": true, "specFormats": ["openapi3", "swagger2", "graphql"]}});
    let can = json!({"codeGeneration": true, "customization": true, "streaming": true});
    assert_eq!(host.call(1, "initialize", hello).await["result"]["capabilities"], can);
    let spec: Value = serde_json::from_str(&specification("normalized-rest.json")).expect("JSON");
    let options = json!({"layout": "default", "includeAuth": true, "pagination": true});
    let params = json!({"spec": spec, "format": "react", "theme": "light", "options": options});
    host.send(2, "generate", params).await;
    let (answer, chunks) = host.answer(2).await;
    let code = answer["result"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    check_chunks(2, &chunks, &code);
    check(&code).unwrap_or_else(|refusals| panic!("{}", refusals[0]));
    assert!(answer["result"]["componentCount"].as_u64().is_some_and(|count| count > 1), "{answer}");
    let answer =
        host.call(3, "customize", json!({"currentCode": code, "prompt": "Use the dark theme"})).await;
    assert_eq!(answer["result"]["clarificationNeeded"], false, "{answer}");
    assert!(answer["result"]["code"].as_str().is_some_and(|changed| changed != code), "{answer}");
    assert!(fake.requests().is_empty(), "neither generate nor an understood wish calls a model");
    host.exit().await;
    let (status, logs) = host.ended().await;
    assert_eq!(status, Some(0));
    assert!(logs.contains("experience-ui"), "logs are on stderr: {logs}");
}

#[tokio::test]
async fn every_form_gives_the_same_bytes_in_another_process_and_no_chunk_where_none_is_wanted() {
    let home = Home::new();
    let quiet = json!({"capabilities": {"streaming": false}});
    let (mut one, mut other) = (Host::start(&home, &json!({})), Host::start(&home, &json!({})));
    other.call(1, "initialize", quiet).await;
    let parcels: Value = serde_json::from_str(&specification("parcels.json")).expect("JSON");
    let forms = [
        json!(specification("bookshop.yaml")),
        parcels,
        json!(specification("library.graphql")),
        two_tables(),
    ];
    for (id, spec) in (10..).zip(forms) {
        let params = json!({"spec": spec, "theme": "auto", "options": {"layout": "cards"}});
        one.send(id, "generate", params.clone()).await;
        other.send(id, "generate", params).await;
        let (answer, chunks) = one.answer(id).await;
        check_chunks(id, &chunks, answer["result"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")));
        let (same, none) = other.answer(id).await;
        assert!(none.is_empty(), "a client that does not stream gets no chunk");
        assert!(answer == same, "{}", same["error"]);
    }
    // The end of the input is an end too, after what was asked for.
    one.send(30, "generate", json!({"spec": two_tables()})).await;
    one.close_stdin().await;
    assert!(one.answer(30).await.0["result"]["code"].is_string());
    assert_eq!(one.ended().await.0, Some(0));
}

#[tokio::test]
async fn an_ambiguous_wish_is_asked_about_and_its_answer_is_in_the_history() {
    let home = Home::new();
    let mut host = Host::start(&home, &json!({}));
    let code = host.generated(&two_tables()).await;
    let asked = host.call(1, "customize", asking(&code, "Add a search bar")).await["result"].take();
    assert_eq!((&asked["clarificationNeeded"], &asked["code"]), (&json!(true), &Value::Null), "{asked}");
    let options = asked["options"].as_array().expect("options");
    assert!(options.contains(&json!("Users table")) && options.contains(&json!("Orders table")), "{asked}");
    let history = json!([
        {"role": "user", "content": "Generate an interface for this API"},
        {"role": "assistant", "content": "Generated interface with 2 endpoints"},
        {"role": "user", "content": "Add a search bar"},
        {"role": "assistant", "content": asked["question"]},
    ]);
    // A fresh process knows what the first asked: all of it is in the params.
    let mut fresh = Host::start(&home, &json!({}));
    for (id, (said, searched)) in (2..).zip([
        ("Orders table", vec!["Orders"]),
        ("the users", vec!["Users"]),
        ("both", vec!["Orders", "Users"]),
    ]) {
        let params = json!({"currentCode": code, "prompt": said, "spec": two_tables(), "history": history});
        let answer = fresh.call(id, "customize", params).await;
        let changed = answer["result"]["code"].as_str().unwrap_or_else(|| panic!("{said}: {answer}"));
        let plan = plan_of(changed).expect("our own code");
        let with_search = plan
            .resources
            .iter()
            .filter(|resource| resource.list.as_ref().is_some_and(|list| !list.search.is_empty()));
        let mut titles: Vec<&str> = with_search.map(|resource| resource.title.as_str()).collect();
        titles.sort_unstable();
        assert_eq!(titles, searched, "{said}");
    }
}

#[tokio::test]
async fn errors_have_their_codes_and_the_connection_goes_on() {
    let home = Home::new();
    let mut host = Host::start(&home, &json!({}));
    for (line, code) in [
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, ", -32700),
        ("\u{0}\u{1}\u{2}", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":2}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"explode\"}", -32601),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"generate\",\"params\":{\"spec\":{},\"format\":\"vue\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"generate\",\"params\":{\"spec\":\"#%RAML 1.0\"}}",
            -32002,
        ),
    ] {
        host.send_bytes(format!("{line}\n").as_bytes()).await;
        let answer = host.next().await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{answer}");
    }
    let code = host.generated(&two_tables()).await;
    let answer = host.call(6, "customize", asking(&code, BEYOND)).await;
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|told| told.contains("model")), "{answer}");
    // A line beyond the limit is passed over to its end, whatever is in it.
    host.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"generate\",\"params\":{\"spec\":\"").await;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..128 {
        host.send_bytes(&piece).await;
    }
    host.send_bytes(b"\"}}\n").await;
    let answer = host.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32003)), "{answer}");
    assert!(host.call(8, "initialize", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn a_model_edits_the_plan_or_writes_code_without_tools() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut host = Host::start(&home, &fake_provider(fake.url(), "openai-chat"));
    let code = host.generated(&two_tables()).await;
    let edits = json!({"edits": [{"edit": "title", "title": "Sold"}], "assumptions": ["Sold is meant."]});
    fake.answer(Answer::text(&format!("Sure:\n```json\n{edits}\n```")));
    let answer = host.call(1, "customize", asking(&code, BEYOND)).await;
    let changed = answer["result"]["code"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(plan_of(changed).expect("our own code").title, "Sold");
    assert_eq!(answer["result"]["assumptions"], json!(["Sold is meant."]));
    let request = fake.last_request();
    assert!(request.tools().is_empty(), "{:?}", request.tools());
    let told = request.last_user_text();
    assert!(told.contains(BEYOND) && told.contains("Orders"), "wish and plan");
    assert!(told.len() * 5 < code.len(), "the code is not sent: {} of {} bytes", told.len(), code.len());
    // Code that is not ours, changed by code.
    let module = "export default function App() { return <p>Hello</p>; }";
    let replaced = json!({"replacements": [{"find": "Hello", "replace": "Bye"}], "description": "Said bye."});
    fake.answer(Answer::text(&replaced.to_string()));
    let answer = host.call(2, "customize", asking(module, "Say goodbye")).await;
    assert_eq!(answer["result"]["code"], module.replace("Hello", "Bye"), "{answer}");
    fake.answer(Answer::text("By model."));
    let answer = host.call(3, "chat", json!({"message": "Why?"})).await;
    assert_eq!(answer["result"]["message"], "By model.");
    assert!(fake.last_request().tools().is_empty());
}

#[tokio::test]
async fn a_failed_check_is_shown_twice_then_nothing_is_changed() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut host = Host::start(&home, &fake_provider(fake.url(), "openai-chat"));
    let code = host.generated(&two_tables()).await;
    let slot = "function FootSlot() { eval('1'); return null; }";
    let evil = json!({"edits": [{"edit": "slot", "slot": "Foot", "code": slot}]});
    for _ in 0..3 {
        fake.answer(Answer::text(&evil.to_string()));
    }
    let answer = host.call(1, "customize", asking(&code, BEYOND)).await;
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    let told = answer["error"]["message"].as_str().expect("a message");
    assert!(told.contains("eval") && told.contains("Nothing was changed"), "{told}");
    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests[1..] {
        assert!(request.last_user_text().contains("refused"), "{}", request.last_user_text());
    }
}

#[tokio::test]
async fn a_silent_model_still_gets_an_answer_for_the_host() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.respond_with(|_| Answer::new().silence());
    let mut host = Host::start(&home, &fake_provider(fake.url(), "openai-chat"));
    let code = host.generated(&two_tables()).await;
    host.send(1, "customize", asking(&code, BEYOND)).await;
    host.send(2, "chat", json!({"message": "What formats do you support?"})).await;
    // Two at work leave places for others.
    assert!(!host.generated(&two_tables()).await.is_empty());
    let chat = host.answer(2).await.0;
    assert!(chat["result"]["message"].as_str().is_some_and(|told| told.contains("OpenAPI")), "{chat}");
    let customize = host.answer(1).await.0;
    assert_eq!(customize["error"]["code"], -32001, "{customize}");
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn four_run_a_hundred_wait_and_the_next_is_refused() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.respond_with(|_| Answer::new().silence());
    let mut host = Host::start(&home, &fake_provider(fake.url(), "openai-chat"));
    for id in 1..=106 {
        host.send(id, "chat", json!({"message": "hello"})).await;
    }
    for id in [105, 106] {
        let refused = host.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32004)), "{refused}");
    }
    fake.wait_for_requests(4).await;
    assert_eq!(fake.requests().len(), 4, "four run at the same time");
    for _ in 1..=104 {
        let answer = host.next().await;
        assert!(answer["result"]["message"].is_string(), "the others are unharmed: {answer}");
    }
}

#[tokio::test]
async fn models_that_err_are_answered_in_time_and_keys_stay_secret() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.respond_with(|_| Answer::status(401).body("no such key sk-secret-of-the-test"));
    let mut host = Host::start(&home, &fake_provider(fake.url(), "openai-chat"));
    let code = host.generated(&two_tables()).await;
    let answer = host.call(1, "customize", asking(&code, BEYOND)).await;
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    assert!(!answer.to_string().contains("sk-secret"), "{answer}");
    let answer = host.call(2, "chat", json!({"message": "How do I start?"})).await;
    assert!(answer["result"]["message"].is_string(), "{answer}");
    host.exit().await;
    let (status, logs) = host.ended().await;
    assert_eq!(status, Some(0));
    assert!(!logs.contains("sk-secret"), "{logs}");
}
