//! Providers that stall, each at one moment of a call: the call ends by its deadline and says why. The clock is paused,
//! so a deadline passes as soon as nothing else happens.

use std::sync::Arc;
use std::time::Duration;

use domain::Failure;
use domain::model::{Model, ModelEvent, Models};
use futures_util::StreamExt;
use llm::{Api, KeySource, ProviderConfig, Registry, RegistrySettings, RetryPolicy};

use crate::support::prompt;

/// One attempt: the wait itself is tested, not the retries.
fn model(url: &str, key: KeySource) -> Arc<dyn Model> {
    let provider = ProviderConfig {
        name: "fake".into(),
        api: Some(Api::OpenAiChat),
        url: Some(url.to_owned()),
        key: Some(key),
        ..ProviderConfig::default()
    };
    let retry_policy =
        RetryPolicy { attempts: 1, silence: Duration::from_secs(120), ..RetryPolicy::default() };
    let settings =
        RegistrySettings { providers: vec![provider], retry_policy, ..RegistrySettings::default() };
    Registry::new(settings).unwrap().find("fake/model").unwrap()
}

async fn failure_of(model: Arc<dyn Model>) -> Failure {
    let mut stream = model.stream(prompt("Hi"));
    let ended = tokio::time::timeout(Duration::from_secs(3600), async {
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::Waiting { .. }) => {}
                Ok(event) => panic!("nothing was answered: {event:?}"),
                Err(failure) => return failure,
            }
        }
        panic!("a stalled call ends with a failure");
    });
    ended.await.expect("the call ends by its own deadline")
}

/// A server whose connections are made by the system and that never says a word.
async fn mute_server() -> (tokio::net::TcpListener, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_made_ends_by_its_deadline() {
    let (_listener, address) = mute_server().await;
    // The handshake of TLS is part of connecting, and this server does not answer it.
    let failure =
        failure_of(model(&format!("https://{address}/v1"), KeySource::fixed("a-key-of-the-test"))).await;
    assert!(failure.message.contains("fake"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_first_byte_ends_by_its_deadline() {
    let (_listener, address) = mute_server().await;
    let failure =
        failure_of(model(&format!("http://{address}/v1"), KeySource::fixed("a-key-of-the-test"))).await;
    assert!(failure.message.contains("fake"), "{failure}");
}

/// A token that is to be renewed first, by a command or another server.
#[tokio::test(start_paused = true)]
async fn a_key_that_never_comes_ends_by_its_deadline() {
    let (_listener, address) = mute_server().await;
    let never = KeySource::new(|| Box::pin(std::future::pending()));
    let failure = failure_of(model(&format!("http://{address}/v1"), never)).await;
    assert!(failure.message.contains("was not there after a minute"), "{failure}");
}
