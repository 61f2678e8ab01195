//! A client of the protocol: one JSON object a line, integer ids, no `jsonrpc`.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use domain::command::Catalog;
use domain::host::Grants;
use proto_threads::{Driver, ServeOptions};
use serde_json::Value;
use testkit::{FakeEngine, Lines};
use tokio::task::JoinHandle;

/// Long enough that no test waits for it unless it means to.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

pub(crate) struct Client {
    lines: Lines,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

impl Deref for Client {
    type Target = Lines;

    fn deref(&self) -> &Lines {
        &self.lines
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }
}

impl Client {
    pub(crate) fn start(driver: Option<Driver>, quiet: Duration) -> (Self, FakeEngine) {
        let engine = FakeEngine::start(Catalog::default());
        let options = ServeOptions { driver, workspace: "/w".into(), grants: Grants::READ, quiet };
        let (lines, input, output) = Lines::piped(1 << 16, false, crate::shape::check_message);
        let transport = rpc::Transport::stream(input, output);
        let serving = tokio::spawn(proto_threads::serve(engine.engine(), transport, options));
        (Self { lines, serving }, engine)
    }

    /// The code of the error that a call must get.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> i64 {
        self.lines.refused(method, params).await.0
    }

    /// The text of the chunks that came so far, and forgets them.
    pub(crate) fn chunks(&mut self) -> String {
        let is_chunk = |it: &Value| it["method"] == "streamMessageChunk";
        let text = self
            .held
            .iter()
            .filter(|it| is_chunk(it))
            .map(|it| it["params"]["chunk"]["chunk"].as_str().unwrap())
            .collect();
        self.held.retain(|it| !is_chunk(it));
        text
    }
}
