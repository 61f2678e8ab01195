//! A host of the Copilot CLI contract for tests: it starts the real binary and keeps every line of its stdout.

use std::ops::{Deref, DerefMut};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use testkit::Lines;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

pub(crate) use super::copilot_talk::two_tables;
use super::copilot_talk::{Talk, check_message};
use crate::client::Home;

pub(crate) struct Host {
    pub child: Child,
    talk: Talk,
    logs: JoinHandle<String>,
}

impl Deref for Host {
    type Target = Talk;

    fn deref(&self) -> &Talk {
        &self.talk
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Talk {
        &mut self.talk
    }
}

impl Host {
    pub(crate) fn start(home: &Home, config: &Value) -> Self {
        Self::start_with(home, config, &[])
    }

    pub(crate) fn start_with(home: &Home, config: &Value, arguments: &[&str]) -> Self {
        let mut command: Command = home.command(&["copilot"]).into();
        command.args(arguments).env("DRAGOMAN_CONFIG", config.to_string());
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.kill_on_drop(true).spawn().expect("the program starts");
        let mut stderr = child.stderr.take().expect("stderr");
        let logs = tokio::spawn(async move {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text).await;
            text
        });
        let (stdout, stdin) = (child.stdout.take().expect("stdout"), child.stdin.take().expect("stdin"));
        let talk = Talk::new(Lines::new(stdout, stdin, true, check_message));
        Self { child, talk, logs }
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.lines.send_bytes(bytes).await;
    }

    pub(crate) async fn exit(&mut self) {
        self.send_bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}\n").await;
    }

    pub(crate) async fn close_stdin(&mut self) {
        self.lines.hang_up().await;
    }

    /// Waits for the end: the exit code and what was logged.
    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
        let status = status.expect("it ends").expect("a status");
        (status.code(), self.logs.await.expect("the logs"))
    }
}

/// One of the specifications of `apiui`, as its text.
pub(crate) fn specification(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interfaces/apiui/tests/specs");
    std::fs::read_to_string(folder.join(name)).expect("a specification")
}
