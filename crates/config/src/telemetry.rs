//! `otlp`: where traces and metrics go, by the names that OpenTelemetry itself has for its settings. The standard
//! variables fill what no file has (`variables`).
//!
//! Invariant: without an address there is no export; a project and a plugin cannot give one (`resolve`).

use std::time::Duration;

use domain::Level;

use crate::cursor::Cursor;
use crate::lazy_text::SecretSource;

pub(crate) const ENDPOINT: &str = "otel.exporter.otlp.endpoint";
pub(crate) const TRACES_ENDPOINT: &str = "otel.exporter.otlp.traces.endpoint";
pub(crate) const METRICS_ENDPOINT: &str = "otel.exporter.otlp.metrics.endpoint";
pub(crate) const HEADERS: &str = "otel.exporter.otlp.headers";
pub(crate) const TRACES_HEADERS: &str = "otel.exporter.otlp.traces.headers";
pub(crate) const METRICS_HEADERS: &str = "otel.exporter.otlp.metrics.headers";
pub(crate) const PROTOCOL: &str = "otel.exporter.otlp.protocol";
pub(crate) const TRACES_PROTOCOL: &str = "otel.exporter.otlp.traces.protocol";
pub(crate) const METRICS_PROTOCOL: &str = "otel.exporter.otlp.metrics.protocol";
pub(crate) const TIMEOUT: &str = "otel.exporter.otlp.timeout";
pub(crate) const TRACES_EXPORTER: &str = "otel.traces.exporter";
pub(crate) const METRICS_EXPORTER: &str = "otel.metrics.exporter";
pub(crate) const SERVICE_NAME: &str = "otel.service.name";
pub(crate) const RESOURCE: &str = "otel.resource.attributes";
pub(crate) const DISABLED: &str = "otel.sdk.disabled";
/// Not one of OpenTelemetry's.
const CONTENT: &str = "content";

const KNOWN: [&str; 16] = [
    ENDPOINT,
    TRACES_ENDPOINT,
    METRICS_ENDPOINT,
    HEADERS,
    TRACES_HEADERS,
    METRICS_HEADERS,
    PROTOCOL,
    TRACES_PROTOCOL,
    METRICS_PROTOCOL,
    TIMEOUT,
    TRACES_EXPORTER,
    METRICS_EXPORTER,
    SERVICE_NAME,
    RESOURCE,
    DISABLED,
    CONTENT,
];
const DEFAULT_TIMEOUT: u64 = 10_000;
const MAX_TIMEOUT: u64 = 60_000;

#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    pub traces: Option<TelemetryTarget>,
    pub metrics: Option<TelemetryTarget>,
    pub service_name: String,
    /// Further attributes of the service.
    pub resource: Vec<(String, String)>,
    /// What one request may take.
    pub timeout: Duration,
    /// Whether prompts, paths, arguments and results go along.
    pub content: bool,
}

/// Where one kind of signal goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryTarget {
    pub url: String,
    /// Each a list `name=value,name=value`; later ones win.
    pub headers: Vec<SecretSource>,
    pub encoding: TelemetryEncoding,
}

/// The form of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryEncoding {
    Json,
    /// What OpenTelemetry has as its default.
    Protobuf,
}

impl TelemetrySettings {
    /// `None`: nothing is exported.
    pub(crate) fn read(otlp: &Cursor) -> Option<Self> {
        otlp.node()?;
        for entry in otlp.entries().iter().filter(|entry| !KNOWN.contains(&entry.name())) {
            entry.report(Level::Warning, "is not supported; it is ignored.");
        }
        if is_true(&otlp.get(DISABLED)) {
            return None;
        }
        let general = otlp.get(ENDPOINT).text();
        let target = |endpoint, headers, protocol, exporter, path: &str| {
            let own = otlp.get(endpoint).text();
            let url =
                own.or_else(|| general.as_ref().map(|base| format!("{}/{path}", base.trim_end_matches('/'))));
            let url = url.filter(|_| otlp.get(exporter).text().as_deref() != Some("none"))?;
            let own_protocol = otlp.get(protocol);
            let encoding = match own_protocol.text() {
                Some(_) => TelemetryEncoding::read(&own_protocol),
                None => TelemetryEncoding::read(&otlp.get(PROTOCOL)),
            };
            let is_address = url.starts_with("http://") || url.starts_with("https://");
            if !is_address {
                otlp.report(Level::Error, "must name an http or https address. Nothing is exported.");
            }
            let headers: Vec<SecretSource> =
                [HEADERS, headers].into_iter().filter_map(|key| otlp.get(key).secret()).collect();
            for (_, value) in headers.iter().filter_map(SecretSource::known).flat_map(|it| pairs(it.expose()))
            {
                otlp.scope().redactor.add_secret(&value);
            }
            encoding.filter(|_| is_address).map(|encoding| TelemetryTarget { url, headers, encoding })
        };
        let traces = target(TRACES_ENDPOINT, TRACES_HEADERS, TRACES_PROTOCOL, TRACES_EXPORTER, "v1/traces");
        let metrics =
            target(METRICS_ENDPOINT, METRICS_HEADERS, METRICS_PROTOCOL, METRICS_EXPORTER, "v1/metrics");
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        let millis = otlp.get(TIMEOUT).text().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_TIMEOUT);
        Some(Self {
            traces,
            metrics,
            service_name: otlp.get(SERVICE_NAME).text().unwrap_or_else(|| "dragoman".to_owned()),
            resource: pairs(&otlp.get(RESOURCE).text().unwrap_or_default()),
            timeout: Duration::from_millis(millis.clamp(1, MAX_TIMEOUT)),
            content: otlp.get(CONTENT).flag().unwrap_or(false),
        })
    }
}

/// A switch of OpenTelemetry: a text, or a word of JSON.
fn is_true(cursor: &Cursor) -> bool {
    match cursor.value() {
        Some(serde_json::Value::Bool(on)) => on,
        Some(_) => cursor.text().is_some_and(|text| text.eq_ignore_ascii_case("true")),
        None => false,
    }
}

impl TelemetryEncoding {
    /// `None`: a protocol that is not spoken.
    fn read(protocol: &Cursor) -> Option<Self> {
        match protocol.text().as_deref() {
            Some("http/json") => Some(Self::Json),
            Some("http/protobuf") | None => Some(Self::Protobuf),
            Some(_) => {
                protocol.report(
                    Level::Warning,
                    "must be http/protobuf or http/json; nothing is exported by another one.",
                );
                None
            }
        }
    }
}

/// `name=value,name=value`, as the standard variables have it.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned())).filter(|(name, _)| !name.is_empty())
    };
    text.split(',').filter_map(pair).collect()
}
