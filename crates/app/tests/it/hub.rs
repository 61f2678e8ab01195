//! `dragoman models pull` against a server that answers as the model hub and the package index do: facts, a redirect, ranges,
//! pages of packages.

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

const CODER: &str = "qwen2.5-coder-1.5b";
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
    /// Packages of the index: the file of each, by its name.
    packages: Vec<(String, Vec<u8>)>,
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
        Self::serve(content, stated, cut, pause, Vec::new()).await
    }

    async fn serve(
        content: Vec<u8>,
        stated: &[u8],
        cut: usize,
        pause: Option<(usize, Arc<Notify>)>,
        packages: Vec<(String, Vec<u8>)>,
    ) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let digest = sha256(stated);
        let hub = Arc::new(Self {
            url,
            requests: Mutex::default(),
            content,
            stated_sha256: digest,
            cut: AtomicUsize::new(cut),
            pause,
            packages,
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
        } else if let Some(package) = path.strip_prefix("/simple/") {
            let file = wheel_name(package.trim_end_matches('/'));
            let body = format!("<a href=\"../../files/{file}#sha256=0\">{file}</a>").into_bytes();
            (format!("HTTP/1.1 200 OK\r\ncontent-length: {}", body.len()), body.clone(), body.len())
        } else {
            let wheel = path.strip_prefix("/files/").and_then(|name| {
                self.packages.iter().find(|(wheel, _)| wheel == name).map(|(_, bytes)| bytes)
            });
            let content = wheel.unwrap_or(&self.content);
            let body = content.get(from..).unwrap_or_default().to_vec();
            let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
            // Of several packages it is always the second that is cut.
            let may_cut = self.packages.is_empty() || path.ends_with(&self.packages[1].0);
            let cut = may_cut
                && self
                    .cut
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok();
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

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn wheel_name(package: &str) -> String {
    format!("{}-0.2.0-py3-none-any.whl", package.replace('-', "_"))
}

/// An archive with one member, not compressed.
fn archive(member: &str, content: &[u8]) -> Vec<u8> {
    let size = (content.len() as u32).to_le_bytes();
    let length = (member.len() as u16).to_le_bytes();
    let mut bytes =
        [b"PK\x03\x04".as_slice(), &[0; 14], &size, &size, &length, &[0; 2], member.as_bytes()].concat();
    bytes.extend(content);
    let offset = (bytes.len() as u32).to_le_bytes();
    let entry =
        [b"PK\x01\x02".as_slice(), &[0; 16], &size, &size, &length, &[0; 16], member.as_bytes()].concat();
    bytes.extend(&entry);
    let entry_length = (entry.len() as u32).to_le_bytes();
    bytes
        .extend([b"PK\x05\x06".as_slice(), &[0; 4], &[1, 0, 1, 0], &entry_length, &offset, &[0; 2]].concat());
    bytes
}

/// A list with one model whose file is `content`, in three packages where `packaged` says so.
fn list(home: &Home, content: &[u8], packaged: bool) -> String {
    let cuts = [0, content.len() / 3, content.len() / 3 * 2, content.len()];
    let part = |number: usize| {
        let bytes = &content[cuts[number]..cuts[number + 1]];
        json!({
            "package": format!("toy-part{number}"), "wheel": wheel_name(&format!("toy-part{number}")),
            "member": "toy/data/part.bin", "bytes": bytes.len(), "sha256": sha256(bytes),
        })
    };
    let parts: Vec<Value> = if packaged { (0..3).map(part).collect() } else { Vec::new() };
    let model = json!({
        "id": CODER, "title": "Toy", "use": "small edits", "memory": 2, "license": "Apache-2.0",
        "bytes": content.len(), "sha256": sha256(content),
        "hub": {"repository": REPOSITORY, "file": FILE}, "registry": parts,
    });
    home.write("models.json", &json!({"models": [model]}).to_string()).display().to_string()
}

/// The packages of that list.
fn packages(content: &[u8]) -> Vec<(String, Vec<u8>)> {
    let cuts = [0, content.len() / 3, content.len() / 3 * 2, content.len()];
    let package = |number: usize| {
        let bytes = archive("toy/data/part.bin", &content[cuts[number]..cuts[number + 1]]);
        (wheel_name(&format!("toy-part{number}")), bytes)
    };
    (0..3).map(package).collect()
}

/// `endpoint` is that of both places.
async fn pull(home: &Home, endpoint: &str, models: &Path, list: &str, name: &[&str]) -> (Output, String) {
    let mut command: tokio::process::Command = home.command(&[&["models", "pull"], name].concat()).into();
    command.env("HF_ENDPOINT", endpoint).env("DRAGOMAN_MODELS", models).env("DRAGOMAN_MODEL_LIST", list);
    command
        .env("PIP_INDEX_URL", format!("{endpoint}/simple"))
        .env_remove("UV_DEFAULT_INDEX")
        .env_remove("UV_INDEX_URL");
    let output = command.output().await.expect("the program runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output, String::from_utf8_lossy(&text).into_owned())
}

fn toy() -> Vec<u8> {
    Toy { architecture: "qwen2", ..Toy::default() }.file().bytes()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().display().to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_choice_is_listed_fetched_resumed_and_checked() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let hub = Hub::start(toy(), &toy(), 1).await;
    let list = list(&home, &toy(), false);
    let (output, text) = pull(&home, &hub.url, models.path(), &list, &[]).await;
    assert!(output.status.success(), "{text}");
    let shown = [CODER, "2 GB of memory", "Apache-2.0", "recommended", "smollm2", "arithmetic"];
    assert!(shown.iter().all(|words| text.contains(words)), "{text}");
    assert!(hub.requests().is_empty(), "the list needs no network: {:?}", hub.requests());

    let (output, text) = pull(&home, &hub.url, models.path(), &list, &[CODER]).await;
    assert_eq!(output.status.code(), Some(1), "the first download is cut: {text}");
    assert!(text.contains("interrupted") && text.contains("again"), "{text}");
    let part = models.path().join(".qwen2.5-coder-1.5b.part");
    let half = std::fs::metadata(&part).unwrap().len();
    assert!(half > 0 && half < toy().len() as u64);

    let (output, text) = pull(&home, &hub.url, models.path(), &list, &[CODER]).await;
    assert!(output.status.success() && text.contains("is installed"), "{text}");
    assert_eq!(
        hub.requests().last().unwrap(),
        &format!("/cdn/blob?signed=1 {half}"),
        "only the rest is fetched"
    );
    assert_eq!(std::fs::read(models.path().join("qwen2.5-coder-1.5b.gguf")).unwrap(), toy());
    assert!(!part.exists());
    let before = hub.requests().len();
    let (output, text) = pull(&home, &hub.url, models.path(), &list, &[CODER]).await;
    assert!(output.status.success() && text.contains("already installed"), "{text}");
    assert_eq!(hub.requests().len(), before, "nothing is asked for");
    let (_, text) = pull(&home, &hub.url, models.path(), &list, &[]).await;
    assert!(text.contains("(installed)"), "{text}");
}

#[tokio::test]
async fn a_wrong_file_is_refused_and_an_absent_hub_is_named() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let hub = Hub::start(toy(), b"something else", 0).await;
    let file = format!("hf:{REPOSITORY}/{FILE}");
    let (output, text) = pull(&home, &hub.url, models.path(), "", &[&file]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not what was expected"), "{text}");
    assert!(files(models.path()).is_empty(), "nothing is left");
    let other = list(&home, b"another file of the same name", false);
    let (output, text) = pull(&home, &hub.url, models.path(), &other, &[CODER]).await;
    assert_eq!(output.status.code(), Some(1), "the hash of the list counts: {text}");
    assert!(!models.path().join(format!("{CODER}.gguf")).exists(), "{:?}", files(models.path()));

    let nowhere = "http://127.0.0.1:9";
    let (output, text) = pull(&home, nowhere, models.path(), "", &[CODER]).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    let told = ["The model hub cannot be used", "The index of Python packages cannot be used", "Ollama"];
    assert!(told.iter().all(|words| text.contains(words)), "{text}");
    let (output, text) = pull(&home, nowhere, models.path(), "", &[]).await;
    assert!(output.status.success(), "the list needs no network: {text}");
    let known = ["qwen2.5-coder-0.5b", CODER, "qwen2.5-coder-3b", "qwen3-4b", "qwen2.5-coder-7b", "1.1 GB"];
    assert!(known.iter().all(|words| text.contains(words)), "{text}");
}

/// The parts come from packages; the hub is away, so the index is the one that answers.
#[tokio::test]
async fn a_model_comes_in_parts_from_the_package_index() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let index = Hub::serve(Vec::new(), b"", 2, None, packages(&toy())).await;
    let list = list(&home, &toy(), true);
    let source = ["--model-source", "registry", CODER];
    let (output, text) = pull(&home, &index.url, models.path(), &list, &source).await;
    assert_eq!(output.status.code(), Some(1), "the second part is cut twice: {text}");
    assert!(text.contains("interrupted") && text.contains("again"), "{text}");
    assert!(!models.path().join(format!("{CODER}.gguf")).exists());
    let parts = models.path().join(format!(".{CODER}.parts"));
    let so_far = std::fs::read(&parts).unwrap();
    let third = toy().len() / 3;
    let is_there = [so_far[..third] == toy()[..third], so_far[third * 2..] == toy()[third * 2..]];

    let before = index.requests().len();
    let (output, text) = pull(&home, &index.url, models.path(), &list, &source).await;
    assert!(output.status.success() && text.contains("from the package index"), "{text}");
    assert_eq!(std::fs::read(models.path().join(format!("{CODER}.gguf"))).unwrap(), toy());
    assert_eq!(files(models.path()), [format!("{CODER}.gguf")], "nothing else is left");
    let asked = index.requests().split_off(before);
    for (number, is_there) in [(0, is_there[0]), (2, is_there[1])] {
        let wheel = format!("/files/{} ", wheel_name(&format!("toy-part{number}")));
        let again = asked.iter().any(|request| request.starts_with(&wheel));
        assert!(!(is_there && again), "part {number} was there: {asked:?}");
    }
    let rest = format!("/files/{} ", wheel_name("toy-part1"));
    let from = asked.iter().find_map(|request| request.strip_prefix(&rest)).expect("the cut part");
    assert_ne!(from, "0", "it goes on where it was cut: {asked:?}");
}

#[tokio::test]
async fn the_place_that_answers_is_taken() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let index = Hub::serve(Vec::new(), b"", 0, None, packages(&toy())).await;
    let list = list(&home, &toy(), true);
    let mut command: tokio::process::Command = home.command(&["models", "pull", CODER]).into();
    command.env("HF_ENDPOINT", "http://127.0.0.1:9").env("DRAGOMAN_MODELS", models.path());
    command.env("PIP_INDEX_URL", format!("{}/simple", index.url)).env("DRAGOMAN_MODEL_LIST", &list);
    let output = command.env_remove("UV_DEFAULT_INDEX").env_remove("UV_INDEX_URL").output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("from the package index"), "{text}");
    let removed = home
        .command(&["models", "remove", &format!("local/{CODER}")])
        .env("DRAGOMAN_MODELS", models.path())
        .output()
        .unwrap();
    assert!(removed.status.success() && files(models.path()).is_empty(), "{:?}", files(models.path()));
    let again =
        home.command(&["models", "remove", CODER]).env("DRAGOMAN_MODELS", models.path()).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
}

/// Packages of others are not believed: neither one whose part differs, nor parts that make another file.
#[tokio::test]
async fn packages_that_differ_are_refused() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let mut wrong = packages(&toy());
    wrong[1].1 = archive("toy/data/part.bin", &vec![7; toy().len() / 3]);
    let index = Hub::serve(Vec::new(), b"", 0, None, wrong).await;
    let source = ["--model-source", "registry", CODER];
    let named = list(&home, &toy(), true);
    let (output, text) = pull(&home, &index.url, models.path(), &named, &source).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("toy-part1 is not what was expected") && text.contains("--model-source hub"),
        "{text}"
    );
    assert!(!models.path().join(format!("{CODER}.gguf")).exists());

    let index = Hub::serve(Vec::new(), b"", 0, None, packages(&toy())).await;
    let text = std::fs::read_to_string(list(&home, &toy(), true)).unwrap();
    let other = text.replace(&sha256(&toy()), &sha256(b"another file"));
    let other = home.write("other.json", &other).display().to_string();
    let (output, text) = pull(&home, &index.url, models.path(), &other, &source).await;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not what was expected") && text.contains("nothing was installed"), "{text}");
    assert!(files(models.path()).iter().all(|name| !name.ends_with(".gguf")), "{:?}", files(models.path()));
    let unsafe_list = text_with_path(&home);
    let (output, text) = pull(&home, &index.url, models.path(), &unsafe_list, &[CODER]).await;
    assert!(output.status.code() == Some(1) && text.contains("is wrong"), "{text}");
}

/// A list whose model would be written elsewhere.
fn text_with_path(home: &Home) -> String {
    let text = std::fs::read_to_string(list(home, &toy(), true)).expect("the list");
    home.write("unsafe.json", &text.replace(CODER, "../coder")).display().to_string()
}

/// The bar shows what has come, also while nothing comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bar_of_a_download_moves() {
    let (home, models, gate) = (Home::new(), tempfile::tempdir().unwrap(), Arc::new(Notify::new()));
    let content = vec![0; 6_000_000];
    let hub = Hub::start_with(content.clone(), &content, 0, Some((3_000_000, gate.clone()))).await;
    watch(move || {
        let folder = models.path().display().to_string();
        let list = list(&home, &content, false);
        let screen = Screen::start(
            &home,
            &json!({}),
            &Start {
                command: "models",
                arguments: &["pull", CODER],
                environment: &[
                    ("HF_ENDPOINT", &hub.url),
                    ("DRAGOMAN_MODELS", &folder),
                    ("DRAGOMAN_MODEL_LIST", &list),
                ],
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

/// Without a key, a server or an agent, the chat asks once and fetches what is chosen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_without_a_model_offers_the_coder() {
    let (home, models) = (Home::new(), tempfile::tempdir().unwrap());
    let hub = Hub::start(toy(), &toy(), 0).await;
    watch(move || {
        let folder = models.path().display().to_string();
        let list = list(&home, &toy(), false);
        let environment = [
            ("HF_ENDPOINT", hub.url.as_str()),
            ("DRAGOMAN_MODELS", &folder),
            ("DRAGOMAN_MODEL_LIST", &list),
            ("PATH", "/usr/bin:/bin"),
        ];
        let start = || Start { environment: &environment, columns: 110, ..Start::default() };
        let no_title = json!({"chat": {"title": false}});
        let screen = Screen::start(&home, &no_title, &start());
        let asked = screen.until("[n]o:");
        let told = ["Apache-2.0", "2 GB", "SmolLM2", "Ollama", "offline"];
        assert!(told.iter().all(|words| asked.contains(words)), "{asked}");
        assert!(hub.requests().is_empty(), "nothing is fetched before the answer");
        screen.text("n");
        screen.keys(&["Enter"]);
        screen.until("Ask something");
        drop(screen);
        let screen = Screen::start(&home, &no_title, &start());
        let shown = screen.until("Ask something");
        assert!(!shown.contains("[n]o:"), "a no is not asked again: {shown}");
        drop(screen);
        std::fs::remove_file(models.path().join(".coder-declined")).expect("the answer is kept");
        let screen = Screen::start(&home, &no_title, &start());
        screen.until("[n]o:");
        screen.keys(&["Enter"]);
        screen.until("Ask something");
        assert!(models.path().join(format!("{CODER}.gguf")).exists());
    })
    .await
    .expect("the screen");
}
