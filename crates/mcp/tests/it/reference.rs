//! The official reference server (`@modelcontextprotocol/server-everything`), installed from npm by our lock file.

use super::*;
use process::Spawn;
use tokio::io::AsyncReadExt;

/// Where it is installed, below the target folder; `None` where there is no npm.
async fn installed() -> Option<PathBuf> {
    let stop = CancellationToken::new();
    if Spawn::new("npm").arg("--version").run(&stop).await.is_err() {
        testkit::skip("there is no npm on this machine");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-reference");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/reference");
    let lock = fs::read_to_string(ours.join("package-lock.json")).unwrap();
    let done = folder.join("installed");
    if fs::read_to_string(&done).ok().as_ref() != Some(&lock) {
        fs::create_dir_all(&folder).unwrap();
        for file in ["package.json", "package-lock.json"] {
            fs::copy(ours.join(file), folder.join(file)).unwrap();
        }
        let install = Spawn::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"])
            .directory(&folder)
            .deadline(Duration::from_secs(300))
            .run(&stop)
            .await
            .unwrap();
        assert_eq!(install.end, process::End::Exited(0), "{install:?}");
        fs::write(&done, lock).unwrap();
    }
    Some(folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js"))
}

#[tokio::test]
async fn the_reference_server_works_over_pipes_and_http() {
    let Some(program) = installed().await else { return };
    let program = program.display().to_string();
    let bench = Bench::new();
    let stdio = ServerTransport::Stdio {
        command: "node".into(),
        args: vec![program.clone(), "stdio".into()],
        env: Vec::new(),
    };
    let port = free_port();
    let mut web = Spawn::new("node")
        .args([&program, "streamableHttp"])
        .env("PORT", port.to_string())
        .start()
        .await
        .unwrap();
    let mut errors = web.take_stderr().unwrap();
    let mut heard = String::new();
    while !heard.contains("listening") {
        let mut piece = [0; 1024];
        let count = tokio::time::timeout(LONG, errors.read(&mut piece)).await.unwrap().unwrap();
        assert!(count > 0, "the server ended: {heard}");
        heard.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    // Its streams must be read, or it stops on them.
    let mut output = web.take_stdout().unwrap();
    tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
    tokio::spawn(async move { tokio::io::copy(&mut errors, &mut tokio::io::sink()).await });
    let http = ServerTransport::Http { url: format!("http://127.0.0.1:{port}/mcp"), headers: Vec::new() };
    let specs = [("pipes", stdio), ("web", http)]
        .map(|(name, transport)| ServerSpec { name: name.into(), transport });
    let servers = mcp::session_servers(&specs, bench.options());
    for name in ["pipes", "web"] {
        check(servers.as_ref(), name).await;
    }
    servers.shutdown().await;
    web.stop().await;
}

async fn check(servers: &dyn ToolSource, name: &str) {
    let running = reaches(servers, name, ServerStatus::Running).await;
    assert_eq!(running.error, None);
    let call = async |tool: &str, input: Value| {
        let result = super::call(servers, &format!("{name}__{tool}"), input).await;
        assert!(!result.error, "{tool}: {result:?}");
        (said(&result.parts), result.details)
    };
    assert!(call("echo", json!({"message": "hello"})).await.0.contains("hello"));
    assert!(call("get-sum", json!({"a": 2, "b": 40})).await.0.contains("42"));
    assert!(call("get-tiny-image", json!({})).await.0.contains("<image/png>"));
    let (text, details) = call("get-structured-content", json!({"location": "Chicago"})).await;
    assert!(text.contains("drizzle") && details.is_some(), "{text} {details:?}");
    let wrong = super::call(servers, &format!("{name}__get-sum"), json!({"a": "two"})).await;
    assert!(wrong.error, "{wrong:?}");

    let port = Port::new(None);
    let input = json!({"duration": 0.6, "steps": 3});
    call_with(servers, &format!("{name}__trigger-long-running-operation"), input, port.clone()).await;
    assert!(port.output.lock().unwrap().contains("1/3"), "{:?}", port.output);
    // It is offered once the server knows that we can show forms: by a changed list.
    let ask = format!("{name}__trigger-elicitation-request");
    assert!(within(LONG, || servers.tools().iter().any(|tool| tool.spec().offered_name() == ask)).await);
    let port = Port::new(Some(Answer::Deny { remember: false, reason: None }));
    let result = call_with(servers, &ask, json!({}), port.clone()).await;
    assert_eq!(port.asked.lock().unwrap().len(), 1);
    assert!(said(&result.parts).contains("decline"), "{result:?}");

    let prompts = servers.prompts();
    let simple = prompts.iter().find(|prompt| prompt.name == format!("{name}:simple-prompt"));
    assert!(simple.is_some(), "{prompts:?}");
    assert!(!servers.prompt(&format!("{name}:simple-prompt"), json!({})).await.unwrap().is_empty());
    let resource = servers.resources().into_iter().find(|resource| resource.server == name).unwrap();
    assert!(!servers.resource(name, &resource.uri).await.unwrap().is_empty());
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
