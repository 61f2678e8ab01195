//! Traces and metrics, from the real program to a real collector over HTTP.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::fake_model::Usage;
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::client::{Home, fake_provider};
use crate::run::{Ran, finish};

const JSON: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");

/// The heads and bodies of requests.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that keeps every request.
struct Collector {
    url: String,
    requests: Requests,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Requests::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, kept.clone()));
            }
        });
        Self { url, requests }
    }

    fn raw(&self) -> Vec<(String, Vec<u8>)> {
        self.requests.lock().expect("requests").clone()
    }

    /// The requests of a collector that was sent JSON.
    fn requests(&self) -> Vec<(String, Value)> {
        let parse =
            |(head, body): (String, Vec<u8>)| (head, serde_json::from_slice(&body).expect("a body of JSON"));
        self.raw().into_iter().map(parse).collect()
    }
}

/// The spans of all requests.
fn spans(requests: &[(String, Value)]) -> Vec<Value> {
    all(requests, "/v1/traces", "/resourceSpans/0/scopeSpans/0/spans")
}

fn metrics(requests: &[(String, Value)]) -> Vec<Value> {
    all(requests, "/v1/metrics", "/resourceMetrics/0/scopeMetrics/0/metrics")
}

/// The entries of all requests to a path.
fn all(requests: &[(String, Value)], path: &str, pointer: &str) -> Vec<Value> {
    let of_path = requests.iter().filter(|(head, _)| head.starts_with(&format!("POST {path} ")));
    of_path
        .flat_map(|(_, body)| body.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default())
        .collect()
}

async fn serve(mut socket: tokio::net::TcpStream, kept: Requests) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let end = bytes.windows(4).position(|it| it == b"\r\n\r\n");
        let head = end.map(|end| String::from_utf8_lossy(&bytes[..end]).into_owned()).unwrap_or_default();
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let body = end.map(|end| end + 4..end + 4 + length.unwrap_or(0_usize));
        if let Some(body) = body.and_then(|range| bytes.get(range)) {
            kept.lock().expect("requests").push((head, body.to_vec()));
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
            bytes.clear();
            continue;
        }
        match socket.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            Ok(0) | Err(_) => return,
        }
    }
}

/// One prompt whose model reads a file; the words `SECRETWORD` are in every text of it.
async fn run(config: Value, variables: &[(&str, &str)]) -> Ran {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut settings = fake_provider(fake.url(), "openai-chat");
    settings["chat"] = json!({"title": false});
    settings["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 1_000_000, "output": 0}});
    for (key, value) in config.as_object().expect("an object") {
        settings[key] = value.clone();
    }
    home.write("work/SECRETWORD.txt", "text of SECRETWORD\n");
    let call = Answer::default().call("c1", "eca__read_file", json!({"path": "SECRETWORD.txt"}));
    fake.answer(call.usage(Usage { input: 100, output: 10, ..Usage::default() }));
    fake.answer(Answer::text("answer of SECRETWORD").usage(Usage {
        input: 200,
        output: 20,
        ..Usage::default()
    }));
    let mut command: Command = home.command(&["run", "--retries", "0", "prompt of SECRETWORD"]).into();
    command.env("DRAGOMAN_CONFIG", settings.to_string()).envs(variables.iter().copied());
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    finish(command).await
}

fn value<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().into_iter().flatten();
    attributes.filter(|it| it["key"] == key).map(|it| &it["value"]).next().unwrap_or(&Value::Null)
}

#[tokio::test]
async fn traces_and_metrics_reach_a_collector_without_any_text() {
    let collector = Collector::start().await;
    let variables = [
        JSON,
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=collector%20key-123"),
        ("OTEL_SERVICE_NAME", "the-laptop"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=home"),
    ];
    let ran = run(json!({}), &variables).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "answer of SECRETWORD\n"), "{}", ran.err);
    let requests = collector.requests();
    for (head, _) in &requests {
        assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
        assert!(head.contains("x-api-key: collector key-123"), "{head}");
    }
    check(&requests);
}

/// The usual form is the binary one. The official package for Python reads it, where it can be installed.
#[tokio::test]
async fn the_official_package_reads_the_binary_form() {
    let collector = Collector::start().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_SERVICE_NAME", "the-laptop"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=home"),
    ];
    let ran = run(json!({}), &variables).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let raw = collector.raw();
    assert!(raw.len() >= 2, "{raw:?}");
    for (head, body) in &raw {
        assert!(head.to_lowercase().contains("content-type: application/x-protobuf"), "{head}");
        assert!(!body.windows(10).any(|it| it == b"SECRETWORD"), "no text");
    }
    let Some(python) = python_package().await else { return };
    let mut requests = Vec::new();
    for (head, body) in raw {
        let file = Home::new();
        let path = file.path().join("body");
        std::fs::write(&path, body).expect("a file");
        let message = if head.contains("/v1/traces") { "trace" } else { "metrics" };
        let mut read = Command::new(&python);
        let read = read.arg(DECODE).arg(message).arg(&path).output().await.expect("it runs");
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        requests.push((head, serde_json::from_slice(&read.stdout).expect("JSON")));
    }
    check(&requests);
}

const DECODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp/decode.py");
const PACKAGE: &str = "opentelemetry-proto==1.45.2";

/// A Python that has the package, below the target folder.
async fn python_package() -> Option<std::path::PathBuf> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("otlp-python");
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    if std::fs::read_to_string(&done).ok().as_deref() != Some(PACKAGE) {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&folder);
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", PACKAGE]);
        for mut step in [venv, install] {
            step.kill_on_drop(true).stdin(std::process::Stdio::null());
            let ended = tokio::time::timeout(std::time::Duration::from_secs(300), step.output()).await;
            if !ended.is_ok_and(|it| it.is_ok_and(|it| it.status.success())) {
                testkit::skip(format!("{PACKAGE} cannot be installed here"));
                return None;
            }
        }
        std::fs::write(&done, PACKAGE).expect("a mark");
    }
    Some(python)
}

/// What a collector must have got of [`run`].
fn check(requests: &[(String, Value)]) {
    for (_, body) in requests {
        let resource =
            body.pointer("/resourceSpans/0/resource").or(body.pointer("/resourceMetrics/0/resource"));
        let resource = resource.expect("a resource");
        assert_eq!(value(resource, "service.name")["stringValue"], "the-laptop");
        assert_eq!(value(resource, "deployment.environment.name")["stringValue"], "home");
        let text = body.to_string();
        assert!(!text.contains("SECRETWORD") && !text.contains("/work"), "no text and no path: {text}");
    }
    let spans = spans(requests);
    let named = |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let (turns, chats, tools) = (named("turn"), named("chat m1"), named("execute_tool eca__read_file"));
    assert_eq!((turns.len(), chats.len(), tools.len()), (1, 2, 1), "{spans:#?}");
    for span in chats.iter().chain(&tools) {
        assert_eq!(span["traceId"], turns[0]["traceId"]);
        assert_eq!(span["parentSpanId"], turns[0]["spanId"]);
        let time = |key: &str| span[key].as_str().and_then(|it| it.parse::<u64>().ok()).expect("a time");
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert_eq!(turns[0]["traceId"].as_str().map(str::len), Some(32));
    assert_eq!(turns[0]["spanId"].as_str().map(str::len), Some(16));
    assert_eq!(chats[0]["kind"], 3);
    assert_eq!(value(chats[0], "gen_ai.usage.input_tokens")["intValue"], "100");
    assert_eq!(value(chats[1], "dragoman.cost_usd")["doubleValue"], 200.0);
    assert_eq!(value(chats[0], "dragoman.outcome")["stringValue"], "tool_calls");
    assert_eq!(value(tools[0], "dragoman.outcome")["stringValue"], "done");
    let metrics = metrics(requests);
    let metric = |name: &str| metrics.iter().rfind(|it| it["name"] == name).cloned().unwrap_or_default();
    let (cost, turns) = (metric("dragoman.cost"), metric("dragoman.turns"));
    assert_eq!(cost["sum"]["dataPoints"][0]["asDouble"], 300.0, "{metrics:#?}");
    assert_eq!((&cost["unit"], &cost["sum"]["aggregationTemporality"]), (&json!("USD"), &json!(2)));
    assert_eq!(
        (&turns["sum"]["dataPoints"][0]["asDouble"], &turns["sum"]["isMonotonic"]),
        (&json!(1.0), &json!(true))
    );
    let duration = metric("gen_ai.client.operation.duration");
    let point = &duration["histogram"]["dataPoints"][0];
    assert_eq!(point["count"], "2");
    let numbers = |key: &str| point[key].as_array().map_or(0, Vec::len);
    assert_eq!(numbers("bucketCounts"), numbers("explicitBounds") + 1, "{point}");
}

#[tokio::test]
async fn texts_go_along_only_where_a_second_setting_says_so() {
    let collector = Collector::start().await;
    let otlp = json!({"otlp": {"otel.exporter.otlp.endpoint": collector.url, "otel.exporter.otlp.protocol": "http/json", "otel.metrics.exporter": "none", "content": true}});
    let ran = run(otlp, &[]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let requests = collector.requests();
    let spans = spans(&requests);
    let turn = spans.iter().find(|span| span["name"] == "turn").expect("a turn");
    assert_eq!(value(turn, "dragoman.prompt")["stringValue"], "prompt of SECRETWORD");
    assert_eq!(value(turn, "dragoman.answer")["stringValue"], "answer of SECRETWORD");
    let tool = spans.iter().find(|span| span["name"] == "execute_tool eca__read_file").expect("a call");
    let result = value(tool, "gen_ai.tool.call.result")["stringValue"].as_str().unwrap_or_default();
    assert!(result.contains("text of SECRETWORD"), "{tool}");
    assert!(metrics(&requests).is_empty(), "left out");
    let all: String = requests.iter().map(|(head, body)| format!("{head}{body}")).collect();
    assert!(!all.contains("sk-secret-of-the-test"), "no key of a provider");
}

/// Off without an address, by the standard switch, and for addresses of a project, trusted or not.
#[tokio::test]
async fn nothing_leaves_unless_the_user_says_so() {
    let collector = Collector::start().await;
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str());
    let cases: [&[(&str, &str)]; 4] = [
        &[("OTEL_SERVICE_NAME", "the-laptop")],
        &[endpoint, ("OTEL_SDK_DISABLED", "true")],
        &[endpoint, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")],
        &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
    ];
    for variables in cases {
        let ran = run(json!({}), variables).await;
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let project = json!({"otlp": {"otel.exporter.otlp.endpoint": collector.url}});
    home.write("work/.dragoman/config.json", &project.to_string());
    fake.answer(Answer::text("hello"));
    let mut command: Command = home.command(&["run", "hi"]).into();
    command
        .env("DRAGOMAN_TRUST", "1")
        .env("DRAGOMAN_CONFIG", fake_provider(fake.url(), "openai-chat").to_string());
    assert_eq!(finish(command).await.code, Some(0));
    assert!(collector.raw().is_empty(), "{:?}", collector.raw());
}

/// A collector that takes connections and never answers neither keeps the program nor its answer: this ends by itself.
#[tokio::test]
async fn a_collector_that_hangs_holds_nothing_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let silent = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            held.push(socket);
        }
    });
    let ran = run(json!({}), &[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "answer of SECRETWORD\n"), "{}", ran.err);
    silent.abort();
}
