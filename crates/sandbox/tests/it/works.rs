//! Ordinary work goes on inside: git, cargo, npm, pip, pytest and an MCP server, as they are installed here. A program
//! that is not installed is skipped, and says so.

use std::fs;
use std::path::Path;
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
        eprintln!("skipped: {program} does not work here");
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
async fn npm_installs_an_mcp_server_that_answers() {
    let world = at_home();
    if !has("npm").await || !world.is_whole().await {
        return;
    }
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/reference");
    for file in ["package.json", "package-lock.json"] {
        fs::copy(files.join(file), world.workspace.join(file)).unwrap();
    }
    work(&world, "npm ci --ignore-scripts --no-audit --no-fund --prefer-offline").await;
    let program = "exec node node_modules/@modelcontextprotocol/server-everything/dist/index.js stdio";
    let mut server = world.spawn(program).piped_input().start().await.unwrap();
    let mut input = server.take_stdin().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    input.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(server.take_stdout().unwrap()).lines();
    let answer = loop {
        let line = lines.next_line().await.unwrap().expect("the server ended");
        if line.starts_with('{') && line.contains("\"id\":1") {
            break line;
        }
    };
    assert!(answer.contains("serverInfo"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn pip_installs_and_pytest_runs() {
    let world = at_home();
    if !has("python3").await || !world.is_whole().await {
        return;
    }
    fs::write(world.workspace.join("test_sum.py"), "def test_sum():\n    assert 1 + 1 == 2\n").unwrap();
    work(&world, "python3 -m venv .venv && .venv/bin/pip install -q pytest").await;
    let text = work(&world, ".venv/bin/pytest -q -p no:cacheprovider").await;
    assert!(text.contains("1 passed"), "{text}");
}
