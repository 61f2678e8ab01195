//! Sends what the recorder has: at most every few seconds while something happens, and not at all while nothing does.
//!
//! Invariants: one request at a time, each with a deadline; a collector that fails costs spans and never memory or a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::{TelemetryEncoding, TelemetrySettings, TelemetryTarget};
use domain::Failure;
use llm::Network;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::encode::{Kind, attribute, envelope};
use super::metrics::Sum;
use super::protobuf;
use super::recorder::{Recorder, Signal};

const INTERVAL: Duration = Duration::from_secs(5);
/// Spans of one request.
const BATCH: usize = 512;

pub(super) struct Exporter {
    settings: TelemetrySettings,
    network: Network,
    recorder: Recorder,
    resource: Vec<Value>,
    dropped: Arc<AtomicU64>,
    started: u64,
    /// The last request failed, which the log says once.
    is_failing: bool,
}

type Flush = oneshot::Sender<()>;

impl Exporter {
    pub(super) fn new(
        settings: TelemetrySettings,
        network: Network,
        recorder: Recorder,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        let own = [
            ("service.name", settings.service_name.as_str()),
            ("service.version", env!("CARGO_PKG_VERSION")),
        ];
        let more = settings.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let more = more.filter(|(key, _)| own.iter().all(|(known, _)| known != key));
        let resource = own.iter().copied().chain(more).map(|(key, value)| attribute(key, value)).collect();
        Self { settings, network, recorder, resource, dropped, started: now(), is_failing: false }
    }

    pub(super) async fn run(
        mut self,
        mut signals: mpsc::Receiver<Signal>,
        mut flushes: mpsc::Receiver<Flush>,
    ) {
        loop {
            let flush = tokio::select! {
                flush = flushes.recv() => flush,
                signal = signals.recv() => {
                    let Some(signal) = signal else { return };
                    self.recorder.take(signal);
                    self.collect(&mut signals, &mut flushes).await
                }
            };
            while let Ok(signal) = signals.try_recv() {
                self.recorder.take(signal);
            }
            self.recorder.settle(flush.is_some());
            self.send().await;
            if let Some(flush) = flush {
                let _ = flush.send(());
            }
        }
    }

    /// Takes signals until there is enough for a request.
    async fn collect(
        &mut self,
        signals: &mut mpsc::Receiver<Signal>,
        flushes: &mut mpsc::Receiver<Flush>,
    ) -> Option<Flush> {
        let until = Instant::now() + INTERVAL;
        while self.recorder.spans.len() < BATCH {
            tokio::select! {
                flush = flushes.recv() => return flush,
                () = tokio::time::sleep_until(until) => return None,
                signal = signals.recv() => self.recorder.take(signal?),
            }
        }
        None
    }

    async fn send(&mut self) {
        let spans = std::mem::take(&mut self.recorder.spans);
        if let Some(target) = self.settings.traces.clone() {
            for batch in spans.chunks(BATCH) {
                self.post(&target, Kind::Traces, batch.to_vec()).await;
            }
        }
        if let Some(target) = self.settings.metrics.clone() {
            let dropped = self.dropped.load(Ordering::Relaxed) + self.recorder.dropped_spans;
            if dropped > 0 {
                self.recorder.metrics.set(Sum::Dropped, dropped as f64);
            }
            let metrics = self.recorder.metrics.encode(self.started, now());
            if !metrics.is_empty() {
                self.post(&target, Kind::Metrics, metrics).await;
            }
        }
    }

    async fn post(&mut self, target: &TelemetryTarget, kind: Kind, entries: Vec<Value>) {
        let body = envelope(kind, &self.resource, entries);
        let body = match target.encoding {
            TelemetryEncoding::Json => ("application/json", body.to_string().into_bytes()),
            TelemetryEncoding::Protobuf => ("application/x-protobuf", protobuf::encode(kind, &body)),
        };
        let sent = tokio::time::timeout(self.settings.timeout, self.try_post(target, body)).await;
        let problem = match sent {
            Ok(Ok(())) => None,
            Ok(Err(problem)) => Some(problem),
            Err(_) => Some("it did not answer in time".to_owned()),
        };
        if let Some(problem) = problem.as_ref().filter(|_| !self.is_failing) {
            tracing::warn!(problem, "the telemetry collector failed; what it misses is not sent again");
        }
        self.is_failing = problem.is_some();
    }

    async fn try_post(
        &self,
        target: &TelemetryTarget,
        (content_type, body): (&str, Vec<u8>),
    ) -> Result<(), String> {
        let failed = |failure: Failure| failure.to_string();
        let client = self.network.client(&target.url).await.map_err(failed)?;
        let mut request = client.post(&target.url).header(CONTENT_TYPE, content_type).body(body);
        for source in &target.headers {
            let secret = source.get().await.map_err(failed)?;
            for (name, value) in config::telemetry_pairs(secret.expose()) {
                let value = percent_encoding::percent_decode_str(&value).decode_utf8_lossy().into_owned();
                let header = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value).ok());
                let (name, mut value) = header.ok_or("a header of `otlp` is not valid")?;
                value.set_sensitive(true);
                request = request.header(name, value);
            }
        }
        // The text of such an error may hold a key in the address.
        let response = request.send().await.map_err(|_| "it cannot be reached".to_owned())?;
        if response.status().is_success() { Ok(()) } else { Err(format!("it answers {}", response.status())) }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
