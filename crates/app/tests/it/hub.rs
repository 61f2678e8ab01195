//! `dragoman models pull` against a server that answers as the model hub does: facts, a redirect, ranges.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::client::Home;
use crate::screen::watch;
use crate::tmux::{Screen, Start};
use synthetic::Toy;

#[allow(dead_code, clippy::unwrap_used, reason = "the file belongs to other tests, which use all of it")]
#[path = "../../../local-model/tests/it/synthetic.rs"]
mod synthetic;

const REPOSITORY: &str = "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF";
const FILE: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";

struct Hub {
    url: String,
    /// The requests so far, as `path range`.
    requests: Mutex<Vec<String>>,
    content: Vec<u8>,
    stated_sha256: String,
    /// Downloads that end after half of the rest.
    cut: AtomicUsize,
    /// A download sends this many bytes and waits until the rest is let through.
    pause: Option<(usize, Arc<Notify>)>,
}

impl Hub {
    async fn start(content: Vec<u8>, stated: &[u8], cut: usize) -> Arc<Self> {
        Self::start_with(content, stated, cut, None).await
    }

    async fn start_with(
        content: Vec<u8>,
        stated: &[u8],
        cut: usize,
        pause: Option<(usize, Arc<Notify>)>,
    ) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let digest: String = Sha256::digest(stated).iter().map(|byte| format!("{byte:02x}")).collect();
        let hub = Arc::new(Self {
            url,
            requests: Mutex::default(),
            content,
            stated_sha256: digest,
            cut: AtomicUsize::new(cut),
            pause,
        });
        let served = hub.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let hub = served.clone();
                tokio::spawn(async move { hub.answer(stream).await });
            }
        });
        hub
    }

    async fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).ok()?;
        let path = head.split(' ').nth(1)?.to_owned();
        let range = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
        let from: usize =
            range.as_deref().and_then(|range| range.trim_end_matches('-').parse().ok()).unwrap_or(0);
        self.record(format!("{path} {from}"));
        let (head, body, sent) = if path.starts_with("/api/models/") {
            let body = self.facts(&path).to_string().into_bytes();
            (format!("HTTP/1.1 200 OK\r\ncontent-length: {}", body.len()), body.clone(), body.len())
        } else if path.contains("/resolve/main/") {
            (
                "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /cdn/blob?signed=1".to_owned(),
                Vec::new(),
                0,
            )
        } else {
            let body = self.content[from..].to_vec();
            let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
            let cut =
                self.cut.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            let sent = if cut { body.len() / 2 } else { body.len() };
            (format!("HTTP/1.1 {status}\r\ncontent-length: {}", body.len()), body, sent)
        };
        stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).await.ok()?;
        let mut begun = 0;
        if let Some((bytes, gate)) = self.pause.as_ref().filter(|_| path.starts_with("/cdn/")) {
            begun = (*bytes).min(sent);
            stream.write_all(&body[..begun]).await.ok()?;
            gate.notified().await;
        }
        stream.write_all(&body[begun..sent]).await.ok()?;
        stream.shutdown().await.ok()
    }

    fn facts(&self, path: &str) -> Value {
        let file =
            json!({"rfilename": FILE, "lfs": {"sha256": self.stated_sha256, "size": self.content.len()}});
        let other = json!({"rfilename": "README.md", "size": 10});
        let files = if path.contains("1.5B") { json!([other, file]) } else { json!([other]) };
        json!({"siblings": files, "cardData": {"license": "apache-2.0"}})
    }

    fn record(&self, request: String) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pull(home: &Home, endpoint: &str, models: &Path, name: &[&str]) -> (Output, String) {
    let mut command: tokio::process::Command = home.command(&[&["models", "pull"], name].concat()).into();
    command.env("HF_ENDPOINT", endpoint).env("DRAGOMAN_MODELS", models);
    let output = command.output().await.expect("the program runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output, String::from_utf8_lossy(&text).into_owned())
}

fn toy() -> Vec<u8> {
    Toy { architecture: "qwen2", ..Toy::default() }.file().bytes()
}

#[tokio::test]
async fn a_choice_is_listed_fetched_resumed_and_checked() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let hub = Hub::start(toy(), &toy(), 1).await;
    let (output, text) = pull(&home, &hub.url, models.path(), &[]).await;
    assert!(output.status.success(), "{text}");
    let shown =
        ["qwen2.5-coder-1.5b", "2 GB of memory", "apache-2.0", "recommended", "smollm2", "arithmetic"];
    assert!(shown.iter().all(|words| text.contains(words)), "{text}");

    let (output, text) = pull(&home, &hub.url, models.path(), &["qwen2.5-coder-1.5b"]).await;
    assert_eq!(output.status.code(), Some(1), "the first download is cut: {text}");
    assert!(text.contains("interrupted") && text.contains("again"), "{text}");
    let part = models.path().join(".qwen2.5-coder-1.5b.part");
    let half = std::fs::metadata(&part).unwrap().len();
    assert!(half > 0 && half < toy().len() as u64);

    let (output, text) = pull(&home, &hub.url, models.path(), &["qwen2.5-coder-1.5b"]).await;
    assert!(output.status.success() && text.contains("is installed"), "{text}");
    assert_eq!(
        hub.requests().last().unwrap(),
        &format!("/cdn/blob?signed=1 {half}"),
        "only the rest is fetched"
    );
    assert_eq!(std::fs::read(models.path().join("qwen2.5-coder-1.5b.gguf")).unwrap(), toy());
    assert!(!part.exists());
    let before = hub.requests().len();
    let (output, text) = pull(&home, &hub.url, models.path(), &["qwen2.5-coder-1.5b"]).await;
    assert!(output.status.success() && text.contains("already installed"), "{text}");
    assert_eq!(hub.requests().len(), before + 1, "only the facts are asked for");
}

#[tokio::test]
async fn a_wrong_file_is_refused_and_an_absent_hub_is_named() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let hub = Hub::start(toy(), b"something else", 0).await;
    let file = format!("hf:{REPOSITORY}/{FILE}");
    let (output, text) = pull(&home, &hub.url, models.path(), &[&file]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not what was expected"), "{text}");
    assert_eq!(std::fs::read_dir(models.path()).unwrap().count(), 0, "nothing is left");

    let nowhere = "http://127.0.0.1:9";
    let (output, text) = pull(&home, nowhere, models.path(), &["qwen2.5-coder-1.5b"]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("The model hub cannot be used") && text.contains("Ollama"), "{text}");
    let (output, text) = pull(&home, nowhere, models.path(), &[]).await;
    assert!(output.status.success(), "the list needs no network: {text}");
    assert!(text.contains("qwen3-4b") && text.contains("Sizes and licenses are missing"), "{text}");
}

/// The bar shows what has come, also while nothing comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bar_of_a_download_moves() {
    let (home, models, gate) = (Home::new(), tempfile::tempdir().unwrap(), Arc::new(Notify::new()));
    let content = vec![0; 6_000_000];
    let hub = Hub::start_with(content.clone(), &content, 0, Some((3_000_000, gate.clone()))).await;
    watch(move || {
        let folder = models.path().display().to_string();
        let screen = Screen::start(
            &home,
            &json!({}),
            &Start {
                command: "models",
                arguments: &["pull", "qwen2.5-coder-1.5b"],
                environment: &[("HF_ENDPOINT", &hub.url), ("DRAGOMAN_MODELS", &folder)],
                ..Start::default()
            },
        );
        let shown = screen.until("3 of 6 MB");
        assert!(shown.contains("[###############               ]"), "{shown}");
        gate.notify_one();
        // These bytes are no model.
        let shown = screen.until_left(1);
        assert!(!shown.contains("of 6 MB"), "the bar is gone: {shown}");
    })
    .await
    .expect("the screen");
}
