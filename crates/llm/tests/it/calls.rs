//! Calls over real HTTP to the fake model: streams, waits, retries, cuts, refusals, stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::model::{Model, ModelEvent, Models, Prompt, StopReason};
use domain::{Failure, FailureKind};
use futures_util::StreamExt;
use llm::{Api, KeySource, ProviderConfig, Registry, RegistrySettings, RetryPolicy};
use serde_json::json;
use testkit::fake_model::Usage;
use testkit::{Answer, FakeModel, Gate};

use crate::support::{entries, line, prompt, text_of};

const KEY: &str = "test-key-0123456789";

/// Waits short enough for tests.
fn retry_policy() -> RetryPolicy {
    RetryPolicy {
        silence: Duration::from_millis(400),
        attempts: 4,
        first_wait: Duration::from_millis(20),
        longest_wait: Duration::from_secs(5),
        concurrency: 8,
        ..RetryPolicy::default()
    }
}

fn model(api: Api, url: &str) -> Arc<dyn Model> {
    model_with(api, url, retry_policy())
}

fn model_with(api: Api, url: &str, retry_policy: RetryPolicy) -> Arc<dyn Model> {
    let provider = ProviderConfig {
        name: "fake".into(),
        api: Some(api),
        url: Some(url.to_owned()),
        key: Some(KeySource::fixed(KEY)),
        headers: vec![("x-extra".into(), KeySource::fixed("yes"))],
        ..ProviderConfig::default()
    };
    let settings =
        RegistrySettings { providers: vec![provider], retry_policy, ..RegistrySettings::default() };
    Registry::new(settings).unwrap().find("fake/model").unwrap()
}

async fn run(model: &dyn Model, prompt: Prompt) -> (Vec<ModelEvent>, Option<Failure>) {
    let mut stream = model.stream(prompt);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(failure) => return (events, Some(failure)),
        }
    }
    (events, None)
}

fn ended(events: &[ModelEvent]) -> &StopReason {
    match events.last() {
        Some(ModelEvent::Ended { reason }) => reason,
        other => panic!("the stream ended with {other:?}"),
    }
}

fn waits(events: &[ModelEvent]) -> Vec<String> {
    events.iter().map(line).filter(|line| line.starts_with("waiting")).collect()
}

#[tokio::test]
async fn every_format_streams_text_reasoning_calls_and_usage() {
    for api in Api::ALL {
        let fake = FakeModel::start().await;
        let usage = Usage { input: 7, cache_read: 100, cache_write: 20, output: 9 };
        fake.answer(
            Answer::new()
                .reasoning("Let me see.")
                .say("Grüße aus dem Test 🦀")
                .call("c1", "eca__read_file", json!({"path": "src/main.rs"}))
                .call("c2", "eca__read_file", json!({}))
                .usage(usage)
                .split(3),
        );
        let model = model(api, fake.url());
        let (events, failure) = run(model.as_ref(), prompt("Hi")).await;
        assert_eq!(failure, None, "{api:?}");
        assert_eq!(*ended(&events), StopReason::ToolCalls, "{api:?}");
        let expected = "Let me see.Grüße aus dem Test 🦀{\"path\":\"src/main.rs\"}{}";
        assert_eq!(text_of(&events), expected, "{api:?}");
        let told = events.iter().rev().find_map(|event| match event {
            ModelEvent::Usage(tokens) => Some(*tokens),
            ModelEvent::Waiting { .. }
            | ModelEvent::Warning { .. }
            | ModelEvent::ImagesRefused
            | ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockDelta { .. }
            | ModelEvent::BlockEnded { .. }
            | ModelEvent::Ended { .. } => None,
        });
        let told = told.unwrap();
        let split = match api {
            Api::Gemini => (27, 100, 0, 9),
            Api::Ollama => (127, 0, 0, 9),
            Api::OpenAiResponses | Api::OpenAiChat | Api::Anthropic | Api::Bedrock => (7, 100, 20, 9),
        };
        assert_eq!((told.input, told.cache_read, told.cache_write, told.output), split, "{api:?}");
        let request = fake.last_request();
        assert_eq!(request.last_user_text(), "Hi");
        assert_eq!(request.header("x-extra"), Some("yes"));
        assert_eq!(request.tools()[0], "eca__read_file");
        let sent = ["authorization", "x-api-key", "x-goog-api-key"]
            .iter()
            .find_map(|name| request.header(name))
            .unwrap();
        assert!(sent.ends_with(KEY), "{sent}");

        // What came back goes into the next request, and is taken.
        let mut next = prompt("Hi");
        next.entries.extend(entries(&events));
        fake.answer(Answer::text("Done."));
        let (events, failure) = run(model.as_ref(), next).await;
        assert_eq!((text_of(&events).as_str(), failure), ("Done.", None), "{api:?}");
        let results = fake.last_request().tool_results();
        assert_eq!(results.len(), 2, "{api:?}: calls without a result are given one: {results:?}");
    }
}

#[tokio::test]
async fn one_connection_serves_several_calls() {
    let fake = FakeModel::start().await;
    let model = model(Api::Anthropic, fake.url());
    for _ in 0..3 {
        run(model.as_ref(), prompt("Hi")).await;
        // The last bytes of an answer may come after its end.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn rate_limits_are_waited_for_and_shown() {
    for_every_format(|api| async move {
        let fake = FakeModel::start().await;
        fake.answer(Answer::status(429).header("retry-after", "0.2"));
        fake.answer(Answer::status(529).header("retry-after-ms", "50"));
        fake.answer(Answer::text("At last."));
        let begun = Instant::now();
        let (events, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
        assert_eq!((text_of(&events).as_str(), failure), ("At last.", None));
        assert!(begun.elapsed() >= Duration::from_millis(250));
        let waits = waits(&events);
        assert_eq!(waits.len(), 2);
        assert!(
            waits[0].contains("Rate limited by fake.") && waits[0].contains("(attempt 2 of 4)"),
            "{waits:?}"
        );
        // How long, when, and in which zone.
        let time = waits[0].split(", at ").nth(1).unwrap_or_default();
        let zone = time.split(' ').nth(1).unwrap_or_default();
        assert!(
            waits[0].contains("Trying again in 1 s, at ") && !zone.is_empty() && zone != "(attempt",
            "{waits:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_a_failure_that_says_when() {
    let fake = FakeModel::start().await;
    fake.answer(Answer::status(429).header("retry-after", "3600"));
    let (_, failure) = run(model(Api::Anthropic, fake.url()).as_ref(), prompt("Hi")).await;
    let failure = failure.unwrap();
    assert_eq!((failure.kind, failure.retry_after), (FailureKind::Quota, Some(Duration::from_secs(3600))));
    assert!(failure.to_string().contains("Try again after "), "{failure}");
}

/// Runs the same for all formats at once: most of the time is waiting.
async fn for_every_format<F: Future<Output = ()>>(check: impl Fn(Api) -> F) {
    futures_util::future::join_all(Api::ALL.map(check)).await;
}

#[tokio::test]
async fn broken_starts_are_tried_again_unseen() {
    for_every_format(|api| async move {
        for broken in [
            Answer::status(500),
            Answer::status(503),
            Answer::new().cut(),
            Answer::new().error("overloaded_error", "Overloaded"),
            Answer::new().silence(),
            Answer::new().raw(if matches!(api, Api::Ollama | Api::Bedrock) { "" } else { ": nothing\n\n" }),
        ] {
            let fake = FakeModel::start().await;
            fake.answer(broken.clone()).answer(Answer::text("Whole."));
            let (events, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
            assert_eq!((text_of(&events).as_str(), failure), ("Whole.", None), "{api:?} {broken:?}");
            assert_eq!(waits(&events).len(), 1, "{api:?} {broken:?}");
            let starts =
                events.iter().filter(|event| matches!(event, ModelEvent::BlockStarted { .. })).count();
            assert_eq!(starts, 1, "{api:?} {broken:?}");
        }
    })
    .await;
}

/// An error event of a type that no API defines is an error of the provider: tried again, or shown as it is.
#[tokio::test]
async fn an_error_event_of_an_unknown_type_is_an_error_of_the_provider() {
    for api in [Api::OpenAiResponses, Api::OpenAiChat, Api::Anthropic, Api::Gemini] {
        for data in [
            r#"{"type":"engine_stalled","message":"The engine stalled."}"#,
            r#"{"kind":"stalled","info":{"text":"The engine stalled."}}"#,
            "The engine stalled.",
        ] {
            let fake = FakeModel::start().await;
            let broken = Answer::new().raw(format!("event: error\ndata: {data}\n\n"));
            fake.answer(broken.clone()).answer(Answer::text("Whole."));
            let (events, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
            assert_eq!((text_of(&events).as_str(), failure), ("Whole.", None), "{api:?} {data}");
            let fake = FakeModel::start().await;
            fake.respond_with(move |_| broken.clone());
            let (_, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
            let said = failure.unwrap().to_string();
            assert!(said.contains("The engine stalled.") && !said.contains("another API"), "{api:?} {said}");
        }
        let fake = FakeModel::start().await;
        let refused = r#"{"type":"unsupported_feature","message":"No such feature."}"#;
        fake.answer(Answer::new().raw(format!("event: error\ndata: {refused}\n\n")));
        let (_, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
        assert!(failure.unwrap().to_string().contains("No such feature"), "{api:?}");
        assert_eq!(fake.requests().len(), 1, "{api:?}: what cannot help is not tried again");
    }
}

/// A call is shown when it begins, not when its arguments come.
#[tokio::test]
async fn a_call_is_shown_before_its_arguments() {
    for api in [Api::OpenAiResponses, Api::OpenAiChat, Api::Anthropic] {
        let (fake, gate) = (FakeModel::start().await, Gate::new());
        let start = match api {
            Api::OpenAiResponses => {
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"c1","name":"eca__read_file","arguments":""}}"#
            }
            Api::OpenAiChat => {
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"eca__read_file","arguments":""}}]}}]}"#
            }
            Api::Anthropic | Api::Gemini | Api::Ollama | Api::Bedrock => {
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"eca__read_file","input":{}}}"#
            }
        };
        fake.answer(Answer::new().raw(format!("data: {start}\n\n")).gate(&gate).cut());
        let model = model_with(api, fake.url(), RetryPolicy::default());
        let mut stream = model.stream(prompt("Hi"));
        let first = stream.next().await.unwrap().unwrap();
        assert!(line(&first).starts_with("start 0 call eca__read_file c1"), "{api:?} {first:?}");
        gate.open();
        // Nothing was shown of a call that breaks at once: it is tried again.
        let fake = FakeModel::start().await;
        fake.answer(Answer::new().raw(format!("data: {start}\n\n")).cut()).answer(Answer::text("Whole."));
        let (events, failure) = run(model_with(api, fake.url(), retry_policy()).as_ref(), prompt("Hi")).await;
        assert_eq!(
            (text_of(&events).as_str(), failure, waits(&events).len()),
            ("Whole.", None, 1),
            "{api:?}"
        );
    }
}

#[tokio::test]
async fn a_server_without_the_api_names_the_setting() {
    for (api, names) in [(Api::Gemini, true), (Api::OpenAiResponses, true), (Api::OpenAiChat, false)] {
        let fake = FakeModel::start().await;
        fake.answer(Answer::status(404).body("not found"));
        let (_, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
        let hint = failure.unwrap().hint.unwrap();
        assert_eq!(hint.contains("api: \"openai-chat\""), names, "{api:?} {hint}");
    }
}

#[tokio::test]
async fn a_break_after_output_ends_the_answer_with_what_came() {
    for_every_format(|api| async move {
        for answer in [
            Answer::text("Half an").cut(),
            Answer::text("Half an").silence(),
            Answer::text("Half an").error("overloaded_error", "Overloaded"),
        ] {
            let fake = FakeModel::start().await;
            fake.answer(answer.clone());
            let (events, failure) = run(model(api, fake.url()).as_ref(), prompt("Hi")).await;
            assert_eq!((text_of(&events).as_str(), failure), ("Half an", None), "{api:?}");
            assert!(
                matches!(ended(&events), StopReason::Cut { message } if message.contains("fake")),
                "{events:?}"
            );
            assert_eq!(fake.requests().len(), 1, "{api:?}: nothing is sent twice");
        }
    })
    .await;
}

#[tokio::test]
async fn a_local_server_that_refuses_connections_fails_after_two_attempts() {
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:1");
        let (events, failure) = run(model(Api::OpenAiChat, &url).as_ref(), prompt("Hi")).await;
        let waits = waits(&events);
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert!(waits[0].contains("fake refuses connections. Trying again in 1 s"), "{waits:?}");
        assert!(waits[0].contains("(attempt 2 of 2)"), "{waits:?}");
        let failure = failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Provider);
        assert!(failure.message.contains("Is it running?"), "{failure}");
        assert!(failure.hint.unwrap().contains("Start the server"));
    }
}

#[tokio::test]
async fn a_call_with_an_alternative_gives_up_after_two_attempts_or_a_long_wait() {
    let fake = FakeModel::start().await;
    fake.respond_with(|_| Answer::status(500));
    let alternative = Prompt { has_alternative: true, ..prompt("Hi") };
    let (events, failure) = run(model(Api::Anthropic, fake.url()).as_ref(), alternative.clone()).await;
    assert_eq!((waits(&events).len(), fake.requests().len()), (1, 2));
    assert_eq!(failure.unwrap().kind, FailureKind::Provider);

    // The policy would wait this long, but another model is there at once.
    let fake = FakeModel::start().await;
    fake.respond_with(|_| Answer::status(429).header("retry-after", "30"));
    let policy = RetryPolicy { longest_wait: Duration::from_secs(60), ..retry_policy() };
    let (events, failure) = run(model_with(Api::Anthropic, fake.url(), policy).as_ref(), alternative).await;
    assert_eq!((waits(&events).len(), fake.requests().len()), (0, 1), "{events:?}");
    assert_eq!(failure.unwrap().kind, FailureKind::Quota);
}

#[tokio::test]
async fn an_endless_answer_or_endless_arguments_end_with_a_notice() {
    for_every_format(|api| async move {
        // Two formats send arguments as one object.
        let streams_arguments = !matches!(api, Api::Ollama | Api::Gemini);
        for arguments in [false, true].into_iter().filter(|arguments| !arguments || streams_arguments) {
            let fake = FakeModel::start().await;
            let pieces = vec!["0123456789"; 5_000];
            fake.answer(match arguments {
                true => Answer::new().call_pieces("c", "eca__read_file", &pieces),
                false => Answer::flood(5_000, "0123456789"),
            });
            let policy = RetryPolicy { max_answer_bytes: 20 << 10, ..retry_policy() };
            let model = model_with(api, fake.url(), policy);
            let (events, failure) = run(model.as_ref(), prompt("Hi")).await;
            assert_eq!(failure, None, "{api:?}");
            let notice = ended(&events);
            assert!(
                matches!(notice, StopReason::Cut { message } if message.contains("larger than 20 KiB")),
                "{api:?}: {notice:?}"
            );
            assert!(text_of(&events).len() <= 20 << 10, "{api:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn keys_that_are_missing_or_refused_say_what_to_set() {
    let settings = RegistrySettings {
        providers: vec![ProviderConfig { name: "anthropic".into(), ..ProviderConfig::default() }],
        ..RegistrySettings::default()
    };
    let failure = Registry::new(settings).unwrap().find("anthropic/claude-sonnet-4-5").err().unwrap();
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(
        failure.to_string().contains("ANTHROPIC_API_KEY")
            && failure.to_string().contains("providers.anthropic.key")
    );

    for status in [401, 403] {
        let fake = FakeModel::start().await;
        let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}. Also sk-proj-abcdef123.")}});
        fake.answer(Answer::status(status).body(body.to_string()));
        let (events, failure) = run(model(Api::OpenAiChat, fake.url()).as_ref(), prompt("Hi")).await;
        let failure = failure.unwrap();
        assert_eq!((failure.kind, events.len(), fake.requests().len()), (FailureKind::Auth, 0, 1));
        let text = format!("{failure} {failure:?}");
        assert!(!text.contains(KEY) && !text.contains("sk-proj"), "{text}");
        assert!(text.contains("providers.fake.key"), "{text}");
    }
}

#[tokio::test]
async fn what_is_in_the_url_is_sent_and_not_shown() {
    let fake = FakeModel::start().await;
    let failed = |text: &str| Answer::status(400).body(json!({"error": {"message": text}}).to_string());
    for (user, token, echoed, secrets) in [
        ("bob:hunter2", "query-0123456789", "bob:hunter2 Basic Ym9iOmh1bnRlcjI=", ["hunter2", "Ym9i"]),
        ("bob:h%40nter2", "query%2F0123456789", "h@nter2 h%40nter2 query/0123456789", ["nter2", "query/"]),
        ("user-0123456789", "a", "not user-0123456789", ["0123456789", "user-"]),
    ] {
        let url = format!("{}/base/?token={token}", fake.url().replace("://", &format!("://{user}@")));
        fake.answer(failed(&format!("no: /base?token={token} {echoed}")));
        let (_, failure) = run(model(Api::OpenAiChat, &url).as_ref(), prompt("Hi")).await;
        assert_eq!(fake.last_request().path, format!("/base/chat/completions?token={token}"));
        let text = failure.unwrap().to_string();
        for secret in secrets.into_iter().chain(["query-0123456789", "query%2F"]) {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[tokio::test]
async fn headers_are_looked_up_when_a_request_is_made() {
    let fake = FakeModel::start().await;
    let source = |value: Result<&'static str, Failure>| {
        KeySource::new(move || {
            let value = value.clone().map(|value| Some(llm::Credential::Key(value.to_owned())));
            Box::pin(async move { value })
        })
    };
    for (value, sent) in [(Ok("from-a-command"), 1), (Err(Failure::config("No such command.")), 0)] {
        let provider = ProviderConfig {
            name: "fake".into(),
            api: Some(Api::OpenAiChat),
            url: Some(fake.url().to_owned()),
            headers: vec![("x-looked-up".into(), source(value.clone()))],
            ..ProviderConfig::default()
        };
        let settings = RegistrySettings {
            providers: vec![provider],
            retry_policy: retry_policy(),
            ..RegistrySettings::default()
        };
        let model = Registry::new(settings).unwrap().find("fake/model").unwrap();
        fake.answer(Answer::text("In."));
        let before = fake.requests().len();
        let (_, failure) = run(model.as_ref(), prompt("Hi")).await;
        assert_eq!((fake.requests().len() - before, failure), (sent, value.err()));
        assert_eq!(fake.last_request().header("x-looked-up"), Some("from-a-command"));
    }
}

#[tokio::test]
async fn a_key_that_was_renewed_is_tried_once_more() {
    let fake = FakeModel::start().await;
    fake.answer(Answer::status(401)).answer(Answer::text("In."));
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let source = KeySource::new(move || {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Box::pin(async move { Ok(Some(llm::Credential::Key(format!("key-{number}")))) })
    });
    let provider = ProviderConfig {
        name: "fake".into(),
        api: Some(Api::OpenAiChat),
        url: Some(fake.url().to_owned()),
        key: Some(source),
        ..ProviderConfig::default()
    };
    let registry =
        Registry::new(RegistrySettings { providers: vec![provider], ..RegistrySettings::default() }).unwrap();
    let (events, failure) = run(registry.find("fake/m").unwrap().as_ref(), prompt("Hi")).await;
    assert_eq!((text_of(&events).as_str(), failure), ("In.", None));
}

#[tokio::test]
async fn refused_requests_are_not_sent_again() {
    for (status, body, kind) in [
        (400, r#"{"error":{"message":"Unknown model"}}"#, FailureKind::Provider),
        (404, r#"{"error":{"message":"No such model"}}"#, FailureKind::Provider),
        (429, r#"{"error":{"message":"Pay first","code":"insufficient_quota"}}"#, FailureKind::Quota),
        (400, r#"{"error":{"message":"prompt is too long: 9 tokens"}}"#, FailureKind::Quota),
        (302, "", FailureKind::Provider),
    ] {
        let fake = FakeModel::start().await;
        fake.answer(Answer::status(status).header("location", "https://elsewhere.example/").body(body));
        let (_, failure) = run(model(Api::Anthropic, fake.url()).as_ref(), prompt("Hi")).await;
        assert_eq!((failure.unwrap().kind, fake.requests().len()), (kind, 1), "{status} {body}");
    }
}

#[tokio::test]
async fn what_a_server_cannot_take_is_left_out_once() {
    let fake = FakeModel::start().await;
    let body = json!({"error": {"message": "Unsupported parameter: 'temperature' is not supported with this model."}});
    fake.answer(Answer::status(400).body(body.to_string())).answer(Answer::text("Fine."));
    let warm = Prompt { temperature: Some(0.3), ..prompt("Hi") };
    let (events, failure) = run(model(Api::OpenAiChat, fake.url()).as_ref(), warm).await;
    assert_eq!((text_of(&events).as_str(), failure), ("Fine.", None));
    assert!(waits(&events)[0].contains("a temperature"), "{events:?}");
    let requests = fake.requests();
    assert!(requests[0].body.get("temperature").is_some() && requests[1].body.get("temperature").is_none());
}

#[tokio::test]
async fn dropping_the_stream_ends_the_call_in_every_state() {
    // While nothing has come, while text comes, while the stream is silent.
    for answer in [
        Answer::new().silence(),
        Answer::text("Some").silence(),
        Answer::text("a b c d").every(Duration::from_secs(1)),
    ] {
        let fake = FakeModel::start().await;
        fake.answer(answer);
        let model = model(Api::Anthropic, fake.url());
        let mut stream = model.stream(prompt("Hi"));
        let _ = tokio::time::timeout(Duration::from_millis(150), async {
            while stream.next().await.is_some() {}
        })
        .await;
        drop(stream);
        fake.wait_for_hangups(1).await;
    }
    // While it waits to try again: no other request is made.
    let fake = FakeModel::start().await;
    fake.answer(Answer::status(429).header("retry-after", "0.3"));
    let model = model(Api::Anthropic, fake.url());
    let mut stream = model.stream(prompt("Hi"));
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Waiting { .. }))));
    drop(stream);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let fake = FakeModel::start().await;
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "Whole."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    fake.answer(Answer::status(200).body(body.to_string()));
    let (events, failure) = run(model(Api::OpenAiChat, fake.url()).as_ref(), prompt("Hi")).await;
    assert_eq!((text_of(&events).as_str(), failure), ("Whole.", None));
    fake.answer(Answer::status(200).header("content-type", "text/html").body("<html>"));
    let (_, failure) = run(model(Api::OpenAiChat, fake.url()).as_ref(), prompt("Hi")).await;
    assert!(failure.unwrap().message.contains("web page"));
}

#[tokio::test]
async fn bedrock_requests_are_signed_or_carry_a_key() {
    let fake = FakeModel::start().await;
    let aws = llm::Credential::Aws {
        access_key: "AKIDEXAMPLE".into(),
        secret_key: "secret-secret".into(),
        session_token: Some("token-token".into()),
    };
    let provider = |name: &str, key| ProviderConfig {
        name: name.to_owned(),
        api: Some(Api::Bedrock),
        url: Some(fake.url().to_owned()),
        key: Some(key),
        ..ProviderConfig::default()
    };
    let source = KeySource::new(move || {
        let aws = aws.clone();
        Box::pin(async move { Ok(Some(aws)) })
    });
    let providers = vec![provider("signed", source), provider("keyed", KeySource::fixed(KEY))];
    let registry = Registry::new(RegistrySettings { providers, ..RegistrySettings::default() }).unwrap();
    for name in ["signed", "keyed"] {
        let model = registry.find(&format!("{name}/anthropic.claude-v1:0")).unwrap();
        let (events, failure) = run(model.as_ref(), prompt("Hi")).await;
        assert_eq!((text_of(&events).as_str(), failure), ("You said: Hi", None));
    }
    let requests = fake.requests();
    assert_eq!(requests[0].path, "/model/anthropic.claude-v1%3A0/converse-stream");
    let signed = requests[0].header("authorization").unwrap();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{signed}");
    assert_eq!(requests[0].header("x-amz-security-token"), Some("token-token"));
    assert_eq!(requests[1].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[tokio::test]
async fn azure_and_others_are_addressed_in_their_own_ways() {
    let fake = FakeModel::start().await;
    let cases = [
        ("azure", None, "", None, "/openai/v1/responses", "api-key"),
        ("azure", Some(Api::OpenAiChat), "", None, "/openai/v1/chat/completions", "api-key"),
        (
            "azure",
            Some(Api::OpenAiChat),
            "",
            Some("/openai/deployments/{model}/chat/completions?api-version=2024-10-21"),
            "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
            "api-key",
        ),
        (
            "google",
            None,
            "/v1beta",
            None,
            "/v1beta/models/gpt:streamGenerateContent?alt=sse",
            "x-goog-api-key",
        ),
        ("google", None, "/v1beta/openai", None, "/v1beta/openai/chat/completions", "authorization"),
        ("ollama", None, "", None, "/api/chat", "authorization"),
        ("anthropic", None, "/v1", None, "/v1/messages", "x-api-key"),
        ("github-copilot", None, "", None, "/chat/completions", "copilot-integration-id"),
    ];
    for (name, api, base, path, expected, header) in cases {
        let provider = ProviderConfig {
            name: name.to_owned(),
            api,
            url: Some(format!("{}{base}", fake.url())),
            path: path.map(str::to_owned),
            key: Some(KeySource::fixed(KEY)),
            ..ProviderConfig::default()
        };
        let registry =
            Registry::new(RegistrySettings { providers: vec![provider], ..RegistrySettings::default() })
                .unwrap();
        let model = registry.find(&format!("{name}/gpt")).unwrap();
        let (events, failure) = run(model.as_ref(), prompt("Hi")).await;
        assert_eq!((text_of(&events).as_str(), failure), ("You said: Hi", None), "{name}");
        assert_eq!(fake.last_request().path, expected);
        assert!(fake.last_request().header(header).is_some(), "{name}");
    }
}

#[tokio::test]
async fn what_follows_the_end_is_not_waited_for() {
    let fake = FakeModel::start().await;
    let tail = r#"data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let stream = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n{tail}\n\n",
        r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#
    );
    fake.answer(Answer::new().raw(stream.clone())).answer(Answer::new().raw(stream).silence());
    for _ in 0..2 {
        let (events, failure) = run(model(Api::OpenAiChat, fake.url()).as_ref(), prompt("Hi")).await;
        assert_eq!((text_of(&events).as_str(), failure), ("Hi", None));
        assert_eq!(*ended(&events), StopReason::Done);
    }
}
