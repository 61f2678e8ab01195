//! Certificates from files, a stored token, the certificate authority of the settings, and plain HTTP on the same machine.

use std::path::Path;
use std::process::Stdio;

use rpc::Framing;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::{Editor, WAIT, World, command, launch};

async fn openssl(folder: &Path, arguments: &str) {
    let mut openssl = Command::new("openssl");
    openssl.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null());
    let output =
        tokio::time::timeout(WAIT, openssl.output()).await.expect("in time").expect("openssl is there");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and certificates of it for 127.0.0.1: one that is good and one that has expired.
async fn make_files(folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(folder, &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=ca")).await;
    openssl(folder, &format!("req -new {key} -keyout key.pem -out request.pem -subj /CN=server")).await;
    openssl(folder, &format!("req -new {key} -keyout other.pem -out unused.pem -subj /CN=other")).await;
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("a file");
    for (name, days) in [("cert", 2), ("expired", -1)] {
        let sign = format!(
            "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile names -out {name}.pem"
        );
        openssl(folder, &sign).await;
    }
    std::fs::write(folder.join("text.pem"), "no PEM\n").expect("a file");
}

/// What a server says that does not start with these files.
async fn refusal(world: &World, cert: &Path, key: &Path) -> String {
    let mut server = command(world.home.path(), &["serve", "--listen", "127.0.0.1:0", "--workspace"]);
    server.arg(world.work()).arg("--cert").arg(cert).arg("--key").arg(key);
    let output = tokio::time::timeout(WAIT, server.output()).await.expect("in time").expect("it starts");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_files_a_stored_token_and_an_authority() {
    let Some(world) = World::start().await else { return };
    let folder = world.home.path().join("tls");
    make_files(&folder).await;
    let file = |name: &str| folder.join(name);
    for (cert, key, told, next) in [
        ("cert.pem", "other.pem", "do not belong together", "belong together"),
        ("text.pem", "key.pem", "no certificate in the file", "--cert and --key"),
        ("cert.pem", "text.pem", "The key is not in PEM", "--cert and --key"),
        ("none.pem", "key.pem", "none.pem cannot be read", "--cert and --key"),
        ("expired.pem", "key.pem", "has expired on", "Renew it"),
    ] {
        let said = refusal(&world, &file(cert), &file(key)).await;
        assert!(said.contains(told) && said.contains(next), "{cert} {key}: {said}");
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }
    let mut arguments = world.arguments.clone();
    for (flag, name) in [("--cert", "cert.pem"), ("--key", "key.pem")] {
        arguments.extend([flag.to_owned(), file(name).display().to_string()]);
    }
    let (_server, told) = launch(world.home.path(), &arguments, &world.config, 0).await.expect("it starts");
    let url = format!("https://127.0.0.1:{}", told["port"]);
    // The token is stored once, from standard input.
    let mut login = command(world.home.path(), &["login", &url]);
    let mut login = login.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let line = format!("{}\n", world.token);
    login.stdin.take().expect("stdin").write_all(line.as_bytes()).await.expect("it is read");
    let output =
        tokio::time::timeout(WAIT, login.wait_with_output()).await.expect("in time").expect("a status");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !said.contains(&world.token), "{said}");
    for (authority, wanted) in
        [(Some("ca.pem"), None), (None, Some("certificate")), (Some("none.pem"), Some("caCertFile"))]
    {
        let mut relay = command(world.home.path(), &["acp", "--connect", &url]);
        if let Some(name) = authority {
            let config = json!({"network": {"caCertFile": file(name)}});
            relay.env("DRAGOMAN_CONFIG", config.to_string());
        }
        if authority == Some("none.pem") {
            let output = relay.stdin(Stdio::null()).output().await.expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                !output.status.success() && said.contains("caCertFile") && said.contains("--fingerprint"),
                "{said}"
            );
            continue;
        }
        let mut editor = Editor::start(relay, Framing::Newline);
        let (_, response) = editor.response("initialize", json!({"protocolVersion": 1})).await;
        match wanted {
            None => {
                assert_eq!(response["result"]["protocolVersion"], 1, "{response}");
                editor.end().await;
            }
            Some(word) => assert!(response["error"]["message"].to_string().contains(word), "{response}"),
        }
    }
    world.run(&["logout", &url]).await;
}

/// Without `--listen` the same machine is reached by HTTP, with a token as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_of_the_same_machine_needs_no_certificate() {
    let Some(world) = World::start().await else { return };
    let mut server = command(world.home.path(), &["serve", "--no-open", "--json", "-C"]);
    server.arg(world.work()).env("DRAGOMAN_CONFIG", world.config.to_string());
    let mut server = server.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(server.stdout.take().expect("stdout"));
    tokio::time::timeout(WAIT, stdout.read_line(&mut line)).await.expect("in time").expect("a line");
    let told: Value = serde_json::from_str(&line).expect("JSON");
    let url = format!("http://127.0.0.1:{}", told["port"]);
    for token in [world.token.as_str(), "dragoman_wrong"] {
        let mut relay = command(world.home.path(), &["acp", "--connect", &url]);
        relay.env("DRAGOMAN_TOKEN", token);
        let mut editor = Editor::start(relay, Framing::Newline);
        let (_, response) = editor.response("initialize", json!({"protocolVersion": 1})).await;
        if token == world.token {
            let new = json!({"cwd": world.work(), "mcpServers": []});
            let session = editor.request("session/new", new).await["sessionId"].clone();
            let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Count 1"}]});
            let (_, response) = editor.response("session/prompt", prompt).await;
            assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
            editor.end().await;
        } else {
            assert!(response["error"]["message"].to_string().contains("token is not valid"), "{response}");
        }
    }
}
