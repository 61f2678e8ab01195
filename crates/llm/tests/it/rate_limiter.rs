//! Calls that share a provider: permits, and one answer with a limit that all calls honor.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::BoxFuture;
use domain::model::{Model, ModelEvent, Models, Prompt};
use futures_util::StreamExt;
use llm::{
    Api, KeySource, ProviderConfig, RateLimiter, Registry, RegistrySettings, RetryPolicy, SharedResets,
};
use testkit::{Answer, FakeModel, Gate};

use crate::support::prompt;

fn model(url: &str, rate_limiter: Arc<RateLimiter>, concurrency: usize) -> Arc<dyn Model> {
    let provider = ProviderConfig {
        name: "shared".into(),
        api: Some(Api::OpenAiChat),
        url: Some(url.to_owned()),
        key: Some(KeySource::fixed("sk-test")),
        concurrency: Some(concurrency),
        ..ProviderConfig::default()
    };
    let retry_policy = RetryPolicy { first_wait: Duration::from_millis(20), ..RetryPolicy::default() };
    let settings = RegistrySettings {
        providers: vec![provider],
        retry_policy,
        rate_limiter,
        ..RegistrySettings::default()
    };
    Registry::new(settings).unwrap().find("shared/m").unwrap()
}

/// The waits that were told, and how it ended.
async fn run(model: Arc<dyn Model>, prompt: Prompt) -> (Vec<String>, bool) {
    let (mut waits, mut ended) = (Vec::new(), false);
    let mut stream = model.stream(prompt);
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::Waiting { text }) => waits.push(text),
            Ok(ModelEvent::Ended { .. }) => ended = true,
            Ok(_) => {}
            Err(failure) => waits.push(failure.to_string()),
        }
    }
    (waits, ended)
}

#[tokio::test]
async fn more_calls_than_slots_wait_their_turn_and_say_so() {
    let fake = FakeModel::start().await;
    let gate = Gate::new();
    fake.answer(Answer::new().gate(&gate).say("first")).answer(Answer::text("second"));
    let model = model(fake.url(), Arc::default(), 1);
    let first = tokio::spawn(run(model.clone(), prompt("one")));
    fake.wait_for_requests(1).await;
    let second = tokio::spawn(run(model.clone(), prompt("two")));
    // One that is given up while it waits takes no permit with it.
    let mut third = model.stream(prompt("three"));
    assert!(matches!(third.next().await, Some(Ok(ModelEvent::Waiting { .. }))));
    assert!(tokio::time::timeout(Duration::from_millis(50), third.next()).await.is_err());
    drop(third);
    assert_eq!(fake.requests().len(), 1, "the second waits for the first");
    gate.open();
    assert_eq!(first.await.unwrap(), (Vec::new(), true));
    let (waits, ended) = second.await.unwrap();
    assert!(ended && waits.len() == 1 && waits[0].contains("this one waits"), "{waits:?}");
    assert_eq!(fake.requests().len(), 2);
}

#[derive(Default)]
struct Machine(Mutex<Option<i64>>);

impl SharedResets for Machine {
    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Option<i64>> {
        let known = *self.0.lock().unwrap();
        Box::pin(async move { known })
    }

    fn set<'a>(&'a self, _: &'a str, until: i64) -> BoxFuture<'a, ()> {
        *self.0.lock().unwrap() = Some(until);
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_limit_is_told_once_and_honored_by_all() {
    let fake = FakeModel::start().await;
    let machine = Arc::new(Machine::default());
    // Two processes: each has a rate_limiter of its own, and one machine.
    let [here, there] = [(); 2].map(|()| Arc::new(RateLimiter::new(machine.clone())));
    fake.answer(Answer::status(429).header("retry-after", "1"));
    let since = Instant::now();
    let refused = tokio::spawn(run(model(fake.url(), here.clone(), 8), prompt("refused")));
    fake.wait_for_requests(1).await;
    while machine.0.lock().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let others: Vec<_> = [here.clone(), here, there.clone(), there]
        .map(|rate_limiter| tokio::spawn(run(model(fake.url(), rate_limiter, 8), prompt("other"))))
        .into_iter()
        .collect();
    for other in others {
        let (waits, ended) = other.await.unwrap();
        assert!(ended && waits.iter().any(|it| it.contains("limits the rate")), "{waits:?}");
        assert!(since.elapsed() >= Duration::from_secs(1), "nobody asks before the reset");
    }
    assert!(refused.await.unwrap().1);
    assert_eq!(fake.requests().len(), 6, "only one request was refused");
}
