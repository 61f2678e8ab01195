//! Language servers as real processes: a small scripted one, and those of npm where they are installed.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::host::{LanguageAnswer, LanguageServices, Position};
use domain::{Failure, HostCall, HostReply};
use language_servers::{ConfiguredServer, LanguageServers, Options};

const DEADLINE: Duration = Duration::from_secs(60);

struct Bench {
    _folder: tempfile::TempDir,
    root: PathBuf,
    log: PathBuf,
    servers: LanguageServers,
}

impl Bench {
    fn new() -> Self {
        Self::with(true, Duration::from_secs(600), &[])
    }

    /// With the small server for files that end in `small`.
    fn with(is_trusted: bool, idle_time: Duration, variables: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work space");
        std::fs::create_dir(&root).unwrap();
        let log = folder.path().join("log");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/server.py");
        let mut line = format!("SMALL_SERVER_LOG='{}' ", log.display());
        line.extend(variables.iter().map(|variable| format!("{variable} ")));
        line.push_str(&format!("exec python3 '{}'", script.display()));
        let small = ConfiguredServer {
            name: "small".to_owned(),
            command: Some("/bin/sh".to_owned()),
            args: Some(vec!["-c".to_owned(), line]),
            extensions: vec!["small".to_owned()],
            disabled: false,
        };
        let options = Options { configured: vec![small], is_trusted, ..Options::default() };
        let servers = LanguageServers::with_idle_time(options, vec![root.clone()], idle_time);
        Self { _folder: folder, root, log, servers }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn ask(&self, call: HostCall) -> Result<LanguageAnswer, Failure> {
        self.servers.ask(call, std::slice::from_ref(&self.root), DEADLINE).await
    }

    /// `file:line:character message` for each diagnostic.
    async fn diagnostics(&self, path: Option<&Path>) -> Vec<String> {
        let answer = self.ask(HostCall::Diagnostics { path: path.map(Path::to_owned) }).await.unwrap();
        assert_eq!(answer.note, None);
        let HostReply::Diagnostics(all) = answer.reply else { panic!("{answer:?}") };
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        all.iter()
            .map(|one| {
                let (file, start) = (name(&one.path), one.start);
                let code = one.code.clone().unwrap_or_default();
                format!("{file}:{}:{} {} {code} {}", start.line, start.character, one.severity, one.message)
            })
            .collect()
    }

    async fn places(&self, path: &Path, line: u32, character: u32, references: bool) -> Vec<String> {
        let (path, position) = (path.to_owned(), Position { line, character });
        let call = match references {
            true => HostCall::References { path, position, include_declaration: true },
            false => HostCall::Definition { path, position },
        };
        let HostReply::Locations(all) = self.ask(call).await.unwrap().reply else { panic!() };
        let show = |place: &domain::host::SourceRange| {
            let file = place.path.strip_prefix(&self.root).unwrap().display().to_string();
            format!("{file}:{}:{}-{}", place.start.line, place.start.character, place.end.character)
        };
        all.iter().map(show).collect()
    }

    /// The processes that were started, in their order.
    fn started(&self) -> Vec<u32> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(|line| line.parse().unwrap()).collect()
    }

    async fn gone(&self, process: u32) {
        let end = std::time::Instant::now() + DEADLINE;
        while Path::new(&format!("/proc/{process}")).exists() {
            assert!(std::time::Instant::now() < end, "{process} is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn diagnostics_follow_the_files_on_the_disk() {
    let bench = Bench::new();
    let file = bench.write("a.small", "fine\n an error\n");
    assert_eq!(bench.diagnostics(Some(&file)).await, ["a.small:2:1 error E1  an error"]);
    bench.write("a.small", "fine\nfine\nerror 2\n");
    assert_eq!(bench.diagnostics(Some(&file)).await, ["a.small:3:1 error E1 error 2"]);
    // A file that nobody asked about yet reaches a server that wants to know of it.
    bench.write("b.small", "error 3\n");
    assert_eq!(
        bench.diagnostics(None).await,
        ["a.small:3:1 error E1 error 2", "b.small:1:1 error E1 error 3"]
    );
    bench.write("a.small", "fine\n");
    assert_eq!(bench.diagnostics(Some(&file)).await, [""; 0]);
    assert_eq!(bench.started().len(), 1, "one server answers all calls");
    bench.servers.stop().await;
    bench.gone(bench.started()[0]).await;
}

#[tokio::test]
async fn definitions_and_references_count_characters() {
    let bench = Bench::new();
    let file = bench.write("a.small", "def länge\n\"ä𝄞\" länge\n");
    assert_eq!(bench.places(&file, 2, 7, false).await, ["a.small:1:5-10"]);
    assert_eq!(bench.places(&file, 2, 7, true).await, ["a.small:1:5-10", "a.small:2:6-11"]);
    assert_eq!(bench.places(&file, 2, 1, false).await, [""; 0]);
    bench.servers.stop().await;
}

#[tokio::test]
async fn a_server_that_fails_says_why_and_one_that_crashed_starts_again() {
    let bench = Bench::with(true, Duration::from_secs(600), &["SMALL_SERVER_FAILS=1"]);
    let file = bench.write("a.small", "def x\n");
    let failure =
        bench.ask(HostCall::Diagnostics { path: Some(file.clone()) }).await.unwrap_err().to_string();
    assert!(failure.contains("there is no toolchain"), "{failure}");

    let bench = Bench::new();
    let file = bench.write("a.small", "def x\ncrash x\n");
    let crash = HostCall::Definition { path: file.clone(), position: Position { line: 2, character: 1 } };
    let failure = bench.ask(crash).await.unwrap_err().to_string();
    assert!(failure.contains("it crashed"), "{failure}");
    bench.gone(bench.started()[0]).await;
    // The end of the process is known a moment after the end of its output.
    let end = std::time::Instant::now() + DEADLINE;
    while bench.started().len() < 2 {
        let position = Position { line: 2, character: 7 };
        let answer = bench.ask(HostCall::Definition { path: file.clone(), position }).await;
        assert!(std::time::Instant::now() < end, "{answer:?}");
    }
    assert_eq!(bench.places(&file, 2, 7, false).await, ["a.small:1:5-6"]);
    bench.servers.stop().await;
}

#[tokio::test]
async fn a_server_ends_after_a_time_without_calls_and_with_its_workspace() {
    let bench = Bench::with(true, Duration::from_millis(1), &[]);
    let file = bench.write("a.small", "def x\nx\n");
    let _ = bench.ask(HostCall::Diagnostics { path: Some(file) }).await;
    let end = std::time::Instant::now() + DEADLINE;
    while bench.started().is_empty() {
        assert!(std::time::Instant::now() < end, "it starts");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.gone(bench.started()[0]).await;

    let Bench { _folder, root, log, servers } = Bench::new();
    let file = root.join("a.small");
    std::fs::write(&file, "def x\n").unwrap();
    servers
        .ask(HostCall::Diagnostics { path: Some(file) }, std::slice::from_ref(&root), DEADLINE)
        .await
        .unwrap();
    drop(servers);
    let bench = Bench { _folder, root, log, servers: LanguageServers::new(Options::default(), Vec::new()) };
    bench.gone(bench.started()[0]).await;
}

#[tokio::test]
async fn what_cannot_be_served_is_said() {
    let bench = Bench::with(false, Duration::from_secs(600), &[]);
    let file = bench.write("a.small", "");
    let failure = bench.ask(HostCall::Diagnostics { path: Some(file) }).await.unwrap_err().to_string();
    assert!(failure.contains("dragoman trust"), "{failure}");
    assert_eq!(bench.started(), [0; 0], "nothing ran in a folder without trust");
    let other = bench.write("a.rs", "");
    let failure = bench.ask(HostCall::Diagnostics { path: Some(other) }).await.unwrap_err().to_string();
    assert!(failure.contains("No language server is installed for"), "{failure}");
    assert!(!LanguageServers::new(Options::default(), vec![bench.root.clone()]).are_useful());
}

/// A program of the search path.
#[expect(clippy::disallowed_methods, reason = "a test looks for programs as a user's shell does")]
fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// Real servers, where they are installed; the name of the test says which ones are left out.
#[tokio::test]
async fn pyright_and_typescript_answer_where_they_are_installed() {
    let rows = [
        (
            "pyright-langserver",
            "pyproject.toml",
            "a.py",
            "def half(n: int) -> int:\n    return n\n\nhalf(\"x\")\n",
            4,
        ),
        (
            "typescript-language-server",
            "tsconfig.json",
            "a.ts",
            "function half(n: number): number {\n  return n;\n}\nhalf(\"x\");\n",
            4,
        ),
    ];
    for (program, mark, name, text, line) in rows {
        if !search_path().iter().any(|folder| folder.join(program).is_file()) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join(mark), if mark.ends_with("json") { "{}" } else { "" }).unwrap();
        let file = root.join(name);
        std::fs::write(&file, text).unwrap();
        let options = Options { search_path: search_path(), is_trusted: true, ..Options::default() };
        let servers = LanguageServers::new(options, vec![root.clone()]);
        assert!(servers.are_useful(), "{program}");
        let ask = async |call| servers.ask(call, std::slice::from_ref(&root), DEADLINE).await.unwrap().reply;
        let first = HostCall::Diagnostics { path: Some(file.clone()) };
        let first = servers.ask(first, std::slice::from_ref(&root), DEADLINE).await;
        if first.as_ref().is_err_and(|failure| failure.to_string().contains("valid TypeScript installation"))
        {
            // The server is installed without the compiler that it needs.
            continue;
        }
        let HostReply::Diagnostics(all) = first.unwrap().reply else { panic!("{program}") };
        assert!(
            all.iter().any(|one| one.severity == "error" && one.start.line == line),
            "{program}: {all:?}"
        );
        let position = Position { line, character: 2 };
        let HostReply::Locations(places) = ask(HostCall::Definition { path: file.clone(), position }).await
        else {
            panic!("{program}")
        };
        assert_eq!(places.first().map(|place| place.start.line), Some(1), "{program}");
        let call = HostCall::References { path: file, position, include_declaration: true };
        let HostReply::Locations(places) = ask(call).await else { panic!("{program}") };
        assert_eq!(places.len(), 2, "{program}: {places:?}");
        servers.stop().await;
    }
}
