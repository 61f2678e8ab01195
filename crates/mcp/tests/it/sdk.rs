//! Servers made with the official Python and Rust SDKs, over pipes and HTTP. (`reference` is made with the TypeScript SDK.)

use super::*;
use process::Spawn;

/// The version that the tests were written with.
const PACKAGE: &str = "mcp==2.3.0";
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);
/// Some hundred crates on a busy machine.
const BUILD_TIMEOUT: Duration = Duration::from_secs(1800);

/// The Python of an environment with the SDK, below the target folder; `None` where it cannot be installed.
async fn installed() -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-python");
    let done = folder.join("installed");
    let python = folder.join("bin/python").display().to_string();
    if fs::read_to_string(&done).ok().as_deref() != Some(PACKAGE) {
        let place = folder.display().to_string();
        let steps: [(&str, &[&str]); 2] = [
            ("python3", &["-m", "venv", "--clear", &place]),
            (&python, &["-m", "pip", "install", "--quiet", PACKAGE]),
        ];
        for (program, arguments) in steps {
            let run = Spawn::new(program).args(arguments).deadline(INSTALL_TIMEOUT);
            let ran = run.run(&CancellationToken::new()).await;
            if !ran.is_ok_and(|it| it.end == process::End::Exited(0)) {
                testkit::skip(format!("{PACKAGE} cannot be installed here"));
                return None;
            }
        }
        fs::write(&done, PACKAGE).unwrap();
    }
    Some(python)
}

/// The program of the fixture crate `sdk_rust`, built below the target folder; `None` where it cannot be.
async fn built() -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-rust");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/sdk_rust");
    fs::create_dir_all(&folder).unwrap();
    for (from, to) in [("package.toml", "Cargo.toml"), ("main.rs", "main.rs")] {
        fs::copy(ours.join(from), folder.join(to)).unwrap();
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let place = folder.join("target").display().to_string();
    let build = Spawn::new(cargo)
        .args(["build", "--quiet", "--target-dir", &place])
        .directory(&folder)
        .deadline(BUILD_TIMEOUT)
        .run(&CancellationToken::new())
        .await;
    if build.is_ok_and(|it| it.end == process::End::Exited(0)) {
        return Some(folder.join("target/debug/sdk-rust").display().to_string());
    }
    testkit::skip("the server of the Rust SDK cannot be built here");
    None
}

#[tokio::test]
async fn a_server_of_the_python_sdk_works_over_pipes_and_http() {
    let Some(python) = installed().await else { return };
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/sdk_python.py").display().to_string();
    works(python, vec![script]).await;
}

#[tokio::test]
async fn a_server_of_the_rust_sdk_works_over_pipes_and_http() {
    if !testkit::is_full_run() {
        return;
    }
    let Some(program) = built().await else { return };
    works(program, Vec::new()).await;
}

/// Checks the server of this command, which gets a port as its last argument where it is to speak HTTP.
async fn works(command: String, args: Vec<String>) {
    let bench = Bench::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut web = Spawn::new(&command).args(&args).arg(port.to_string()).start().await.unwrap();
    let (mut output, mut errors) = (web.take_stdout().unwrap(), web.take_stderr().unwrap());
    tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
    tokio::spawn(async move { tokio::io::copy(&mut errors, &mut tokio::io::sink()).await });
    let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(within(LONG, listens).await, "the server listens");

    let stdio = ServerTransport::Stdio { command, args, env: Vec::new() };
    let http = ServerTransport::Http { url: format!("http://127.0.0.1:{port}/mcp"), headers: Vec::new() };
    let specs = [("pipes", stdio), ("web", http)]
        .map(|(name, transport)| ServerConfig::fixed(&ServerSpec { name: name.into(), transport }));
    let servers = Supervisor::new(specs.to_vec(), bench.options());
    servers.start();
    for name in ["pipes", "web"] {
        check(&servers, name).await;
    }
    servers.shutdown().await;
    web.stop().await;
}

async fn check(servers: &Supervisor, name: &str) {
    let running = reaches(servers, name, ServerStatus::Running).await;
    assert_eq!(running.error, None);
    assert_eq!(servers.revision(name).as_deref(), Some("2026-07-28"), "{name}: the newest era is found");
    let sum = call(servers, &format!("{name}__add"), json!({"a": 2, "b": 40})).await;
    assert!(!sum.error && said(&sum.parts).contains("42") && sum.details.is_some(), "{name}: {sum:?}");
    let port = Port::new(None);
    let worked = call_with(servers, &format!("{name}__work"), json!({}), port.clone()).await;
    assert_eq!(said(&worked.parts), "done", "{name}");
    assert!(port.output.lock().unwrap().contains("half (1/2)"), "{name}: {:?}", port.output);
    let wrong = call(servers, &format!("{name}__add"), json!({"a": "two"})).await;
    assert!(wrong.error, "{name}: {wrong:?}");
    let greeting = servers.prompt(&format!("{name}:greet"), json!({"who": "Ada"})).await.unwrap();
    assert_eq!(said(&greeting), "Say hello to Ada.", "{name}");
    let read = call(servers, &format!("{name}__read_mcp_resource"), json!({"uri": "note://7"})).await;
    assert!(said(&read.parts).contains("the text of note 7"), "{name}: {read:?}");
    let found = servers.templated_resources("note://4").await;
    let uris: Vec<&str> = found.iter().filter(|it| it.server == name).map(|it| it.uri.as_str()).collect();
    assert_eq!(uris, ["note://4", "note://40", "note://41"], "{name}");
}
