//! A client of a protocol of lines: the real binary in a sealed home, one JSON object a line, each one checked: those of
//! ACP against the official schema, those of the thread protocol against the shape its document gives.

use std::ops::{Deref, DerefMut};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Lines;
use tokio::process::{Child, Command};

use crate::client::Home;

pub(crate) struct LineClient {
    pub child: Child,
    lines: Lines,
}

impl Deref for LineClient {
    type Target = Lines;

    fn deref(&self) -> &Lines {
        &self.lines
    }
}

impl DerefMut for LineClient {
    fn deref_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }
}

impl LineClient {
    pub(crate) fn spawn(home: &Home, config: &Value, arguments: &[&str]) -> Self {
        let mut command: Command = home.command(arguments).into();
        command.env("DRAGOMAN_CONFIG", config.to_string());
        Self::start(command, arguments[0])
    }

    /// The same with a command of the test's own; `protocol`: the command of the program.
    pub(crate) fn start(mut command: Command, protocol: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let (stdout, stdin) = (child.stdout.take().expect("stdout"), child.stdin.take().expect("stdin"));
        let lines = match protocol {
            "threads" => Lines::new(stdout, stdin, false, crate::threads_shape::check_message),
            _ => Lines::new(stdout, stdin, true, crate::schema::check_message),
        };
        Self { child, lines }
    }

    /// An ACP connection with a session in it, and the session's id.
    pub(crate) async fn acp(home: &Home, config: &Value, capabilities: Value) -> (Self, Value) {
        let mut client = Self::spawn(home, config, &["acp"]);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        client.request("initialize", params).await;
        let new = json!({"cwd": home.workspace(), "mcpServers": []});
        let session = client.request("session/new", new).await["sessionId"].clone();
        (client, session)
    }

    /// The client dies: both pipes break.
    pub(crate) fn die(self) -> Child {
        self.child
    }

    /// Closes the pipe and waits for the process.
    pub(crate) async fn end(mut self) -> std::process::ExitStatus {
        self.hang_up().await;
        while self.receive().await.is_some() {}
        let waited = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
        waited.expect("the server ends").expect("a status")
    }
}
