//! One connection of the thread protocol: messages in, commands to the engine, events out. One task, so that order is
//! what it looks like.
//!
//! Invariants: commands leave in the order of the messages; a response leaves before the events its command causes;
//! the response that ends a turn leaves after the last chunk of it; a client that does not read stops nothing but its
//! own output.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::command::WorkspaceSpec;
use domain::event::{CatalogKind, EventBody};
use domain::link::Engine;
use domain::tool::ToolServer;
use domain::{Abilities, Command, Event, FrontendEvent, FrontendLink, SessionId};
use rpc::{End, Inbound, PeerOptions, Transport};
use tokio::sync::mpsc;

use crate::reads::Reads;
use crate::server::{Chunks, Driver, NOTICE_ITEM, ServeOptions, Server, Thread};
use crate::to_wire::Effect;
use crate::{agent_drives, editor_drives, files};

/// How long the engine may take for its last replies.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the last messages may take to be written: only a client that does not read takes so long.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// A client that is silent for this long is asked for its threads, which decides the driver.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until the input ends.
pub async fn serve(engine: Engine, transport: Transport, options: ServeOptions) -> std::io::Result<()> {
    let settings = PeerOptions { version_member: false, ..PeerOptions::newline() };
    let (peer, inbox) = rpc::inbox(settings, transport)?;
    let abilities = Abilities {
        client: "threads".to_owned(),
        read_text: true,
        read_lines: true,
        read_bytes: true,
        stat: true,
        glob: true,
        grants: options.grants,
        ..Abilities::default()
    };
    let mut engine = FrontendLink::new(engine);
    let mut server = Server {
        outgoing: peer.outgoing(),
        commands: engine.attach(abilities).await.map_err(std::io::Error::other)?,
        engine,
        driver: options.driver,
        options,
        threads: HashMap::new(),
        client_threads: HashMap::new(),
        chunks: Chunks::Unknown,
        refused: HashSet::new(),
        reads: Reads::default(),
        reported_problems: HashSet::new(),
        unshown_problems: Vec::new(),
    };
    server.begin().await;
    server.run(inbox, peer.ended()).await;
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, server.finish_pending()).await;
    drop(server);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, peer.answered()).await;
    peer.close(FLUSH_TIMEOUT).await;
    Ok(())
}

impl Server {
    async fn begin(&mut self) {
        let workspace = WorkspaceSpec { roots: vec![self.options.workspace.clone()], options: None };
        self.engine
            .call(
                |reply| Command::Enter { workspace, reply },
                |server, entered| {
                    for notice in entered.map(|catalog| catalog.notices).unwrap_or_default() {
                        tracing::warn!("{}", notice.text);
                    }
                    // One may have failed before anybody listened.
                    server.report_servers();
                },
            )
            .await;
        match self.driver {
            Some(Driver::Agent) => agent_drives::request_threads(self),
            Some(Driver::Editor) => {}
            None => self.engine.later(tokio::time::sleep(SILENCE_TIMEOUT), |server, ()| {
                if server.driver.is_none() {
                    agent_drives::request_threads(server);
                }
            }),
        }
    }

    async fn run(&mut self, mut inbox: mpsc::Receiver<Inbound>, ended: impl Future<Output = End>) {
        let mut ended = std::pin::pin!(ended);
        loop {
            let full = (!self.outgoing.has_room()).then(|| self.outgoing.ready());
            match self.engine.next(&mut inbox, full, &mut ended).await {
                FrontendEvent::Reply(then) => then(self),
                FrontendEvent::Message(message) => crate::dispatch::handle_message(self, message).await,
                FrontendEvent::Host(request) => files::handle_host_request(self, request),
                FrontendEvent::Event(event) => self.show(&event),
                FrontendEvent::Room => {}
                FrontendEvent::End => break,
            }
        }
    }

    /// A client that closed its side may still wait for pending replies.
    async fn finish_pending(&mut self) {
        self.engine.post(Command::Detach).await;
        self.threads.clear();
        while self.outgoing.queued() > 0 || !self.engine.pending.is_empty() {
            match tokio::time::timeout(CLOSE_TIMEOUT / 4, self.engine.pending.next()).await {
                Ok(Some(then)) => then(self),
                // The rest waits for the client, which is gone.
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Shows what happens in a chat after fact `after`, unless it is shown already.
    pub(crate) fn follow(&mut self, session: &SessionId, after: u64) {
        if !self.threads.contains_key(session) {
            self.threads.insert(session.clone(), Thread::default());
            self.engine.follow(session.clone(), after);
        }
    }

    /// Names servers that failed or require a login, once each: in the log, and before the next words of an answer.
    fn report_servers(&mut self) {
        let commands = self.commands.clone();
        self.engine.later(
            async move { commands.call(|reply| Command::Servers { session: None, reply }).await },
            |server, servers| {
                for problem in servers.iter().flatten().filter_map(ToolServer::problem) {
                    if server.reported_problems.insert(problem.clone()) {
                        tracing::warn!("{problem}");
                        server.unshown_problems.push(problem);
                    }
                }
                server.show_problems(None);
            },
        );
    }

    /// Shows the problems that wait before the answer that is about to begin, or after the one that ends.
    pub(crate) fn show_problems(&mut self, ends: Option<&SessionId>) {
        if self.unshown_problems.is_empty() {
            return;
        }
        let text = self.unshown_problems.join("\n\n");
        if let Some(session) = editor_drives::thread_for_notice(self, ends) {
            editor_drives::stream(self, &session, NOTICE_ITEM, text);
        } else if !agent_drives::add_to_answer(self, &text) {
            return;
        }
        self.unshown_problems.clear();
    }

    fn show(&mut self, event: &Event) {
        if matches!(event.body, EventBody::Catalog(CatalogKind::ToolServers)) {
            self.report_servers();
        }
        let Some(session) = &event.session else { return };
        let outs = self.threads.get_mut(session).map(|thread| thread.projection.project(event));
        for out in outs.unwrap_or_default() {
            match out {
                Effect::Text { turn, item, text } => {
                    if !agent_drives::collect_answer(self, session, turn, item, &text) {
                        editor_drives::stream(self, session, item, text);
                    }
                }
                Effect::Ended(turn, outcome) => {
                    self.show_problems(Some(session));
                    editor_drives::ended(self, session, turn, outcome.clone());
                    agent_drives::ended(self, session, turn, outcome);
                }
                Effect::Lost(failure) => {
                    editor_drives::lost(self, session, &failure);
                    agent_drives::lost(self, session, failure);
                }
            }
        }
    }
}
