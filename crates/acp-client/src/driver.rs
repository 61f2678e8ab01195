//! The task that serves one agent process: reads what it sends, sends it prompts, stops it, ends it.
//!
//! Invariants: one prompt runs at a time; every update that came before the answer to a prompt is passed on before the end
//! of the prompt; while nobody takes events, the agent is not read; where the agent breaks a bound, its process ends.

use std::sync::Arc;
use std::time::Duration;

use domain::Failure;
use domain::agent::{AgentEvent, AgentRequest, AgentToolCall};
use domain::item::Part;
use process::sandbox::Sandbox;
use rpc::{Fault, Inbound, Outgoing, Peer, RequestError};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::bridge::Bridge;
use crate::child::AgentChild;
use crate::offers::{OfferBook, OffersObserver};
use crate::options::{Limits, SettingsLook};
use crate::requests::{Events, RequestScope};
use crate::terminals::Terminals;
use crate::updates;
use crate::wire::{AUTH_REQUIRED, PromptResult, UpdateParams, method};

/// The longest time of one prompt.
const LONGEST_PROMPT: Duration = Duration::from_secs(24 * 3600);

/// A prompt for the agent.
pub(crate) struct PromptCommand {
    pub(crate) session: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) events: Events,
}

/// What others see of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DriverState {
    Idle,
    Working,
    Ended,
}

pub(crate) struct Driver {
    pub(crate) name: String,
    pub(crate) peer: Peer,
    pub(crate) inbox: mpsc::Receiver<Inbound>,
    pub(crate) commands: mpsc::Receiver<PromptCommand>,
    pub(crate) state: Arc<watch::Sender<DriverState>>,
    pub(crate) child: AgentChild,
    pub(crate) limits: Limits,
    pub(crate) takes_images: bool,
    pub(crate) terminals: Terminals,
    pub(crate) settings_watch: Option<SettingsLook>,
    /// It must outlive the child.
    pub(crate) _sandbox: Option<Arc<Sandbox>>,
    /// Held once more by each request of the agent that waits for our answer.
    pub(crate) open_requests: Arc<()>,
    pub(crate) offers: OfferBook,
    pub(crate) on_offers: Option<OffersObserver>,
    /// When the agent last sent an update outside of a prompt.
    pub(crate) heard: watch::Sender<std::time::Instant>,
    /// Calls of our tools that the agent makes through its bridge.
    pub(crate) tool_calls: mpsc::Receiver<AgentToolCall>,
    /// The other end stays open, and so does the port.
    pub(crate) _bridge: (mpsc::Sender<AgentToolCall>, Option<Arc<Bridge>>),
}

/// Why a prompt cannot go on, and the process with it.
enum Broken {
    Gone,
    Silent,
    DoesNotStop,
    Floods(&'static str),
}

/// What was counted in a prompt.
#[derive(Default)]
struct Counts {
    text: usize,
    calls: usize,
    is_told_of_others: bool,
}

impl Driver {
    /// Serves until the agent is gone, nobody holds it, or it was idle for too long.
    pub(crate) async fn run(mut self) {
        let outgoing = self.peer.outgoing();
        loop {
            tokio::select! {
                biased;
                inbound = self.inbox.recv() => match inbound {
                    Some(inbound) => self.handle_outside(inbound),
                    None => break,
                },
                // Dropping a call refuses it.
                _ = self.tool_calls.recv() => {}
                command = self.commands.recv() => match command {
                    // A stop came before the prompt left.
                    Some(command) if command.events.is_closed() => {}
                    Some(command) => {
                        self.state.send_replace(DriverState::Working);
                        if self.run_prompt(&outgoing, command).await.is_err() {
                            break;
                        }
                        self.state.send_replace(DriverState::Idle);
                    }
                    None => break,
                },
                () = tokio::time::sleep(self.limits.idle) => break,
            }
        }
        self.terminals.release_all();
        self.child.stop().await;
        for text in self.look_at_settings().await {
            tracing::warn!(agent = self.name, "{text}");
        }
        self.state.send_replace(DriverState::Ended);
    }

    /// Takes back settings that the agent has left; a sentence about each.
    async fn look_at_settings(&self) -> Vec<String> {
        let Some(look) = self.settings_watch.clone() else { return Vec::new() };
        tokio::task::spawn_blocking(move || look()).await.unwrap_or_default()
    }

    async fn report_settings(&self, command: &PromptCommand) {
        for text in self.look_at_settings().await {
            let _ = command.events.send(Ok(AgentEvent::Notice { text })).await;
        }
    }

    /// An error ends the agent.
    async fn run_prompt(&mut self, outgoing: &Outgoing, command: PromptCommand) -> Result<(), ()> {
        self.report_settings(&command).await;
        let ended = self.serve_prompt(outgoing, &command).await;
        self.terminals.release_all();
        self.report_settings(&command).await;
        let end = match ended {
            Ok(end) => end,
            Err(broken) => {
                let failure = self.explain(broken).await;
                let _ = command.events.send(Err(failure)).await;
                return Err(());
            }
        };
        let event = match end {
            Ok(result) => Ok(updates::end(result)),
            Err(error) => Err(refused(&self.name, &error)),
        };
        let _ = command.events.send(event).await;
        Ok(())
    }

    async fn serve_prompt(
        &mut self,
        outgoing: &Outgoing,
        command: &PromptCommand,
    ) -> Result<Result<PromptResult, RequestError>, Broken> {
        let params = json!({"sessionId": command.session, "prompt": self.blocks(&command.parts)});
        let request = outgoing.request(method::SESSION_PROMPT, &params, LONGEST_PROMPT);
        let mut answer = std::pin::pin!(request.decode::<PromptResult>());
        let mut counts = Counts::default();
        let mut silent_at = Instant::now() + self.limits.silence;
        let mut stop_by = None;
        loop {
            tokio::select! {
                biased;
                () = command.events.closed(), if stop_by.is_none() => {
                    let _ = outgoing.notify(method::SESSION_CANCEL, &json!({"sessionId": command.session}));
                    self.terminals.release_all();
                    stop_by = Some(Instant::now() + self.limits.stop);
                }
                inbound = self.inbox.recv() => {
                    let Some(inbound) = inbound else { return Err(Broken::Gone) };
                    silent_at = Instant::now() + self.limits.silence;
                    self.pass_on(inbound, command, &mut counts).await?;
                }
                Some(call) = self.tool_calls.recv() => {
                    silent_at = Instant::now() + self.limits.silence;
                    self.pass_on_tool_call(call, command).await;
                }
                answered = &mut answer => {
                    while let Ok(inbound) = self.inbox.try_recv() {
                        self.pass_on(inbound, command, &mut counts).await?;
                    }
                    return match answered {
                        Err(RequestError::Closed) => Err(Broken::Gone),
                        other @ (Ok(_) | Err(_)) => Ok(other),
                    };
                }
                // An agent that waits for our answer is silent by right.
                () = tokio::time::sleep_until(silent_at) => match Arc::strong_count(&self.open_requests) {
                    1 => return Err(Broken::Silent),
                    _ => silent_at = Instant::now() + self.limits.silence,
                },
                () = tokio::time::sleep_until(stop_by.unwrap_or(silent_at)), if stop_by.is_some() => {
                    return Err(Broken::DoesNotStop);
                }
            }
        }
    }

    async fn pass_on(
        &self,
        mut inbound: Inbound,
        command: &PromptCommand,
        counts: &mut Counts,
    ) -> Result<(), Broken> {
        if let Some(responder) = inbound.responder.take() {
            if command.events.is_closed() {
                responder.fail(Fault::cancelled());
                return Ok(());
            }
            let scope = RequestScope {
                session: &command.session,
                events: &command.events,
                terminals: &self.terminals,
                most_terminals: self.limits.terminals,
                open: &self.open_requests,
            };
            scope.handle(&inbound, responder).await;
            return Ok(());
        }
        if inbound.method != method::SESSION_UPDATE {
            return Ok(());
        }
        let text = inbound.params.as_ref().map_or("{}", |params| params.get());
        let Ok(params) = serde_json::from_str::<UpdateParams>(text) else { return Ok(()) };
        self.note_offers(&params);
        let event = if params.session_id == command.session {
            updates::event(&params.update, &|id| self.terminals.text(id))
        } else if std::mem::replace(&mut counts.is_told_of_others, true) {
            None
        } else {
            let text = format!("{} sent updates of another session; they are left out.", self.name);
            Some(AgentEvent::Notice { text })
        };
        if let Some(event) = event {
            counts.add(&event, &self.limits)?;
            // A receiver that is gone means a stop, which the loop sees.
            let _ = command.events.send(Ok(event)).await;
        }
        Ok(())
    }

    /// The agent waits for the result by right.
    async fn pass_on_tool_call(&self, call: AgentToolCall, command: &PromptCommand) {
        let AgentToolCall { server, name, input, cancel, reply } = call;
        let (passed, answer) = oneshot::channel();
        let open = self.open_requests.clone();
        tokio::spawn(async move {
            let _open = open;
            if let Ok(answer) = answer.await {
                let _ = reply.send(answer);
            }
        });
        let call = AgentToolCall { server, name, input, cancel, reply: passed };
        let _ = command.events.send(Ok(AgentEvent::Request(AgentRequest::Tool(call)))).await;
    }

    /// A message while no prompt runs: a request gets an error, an update may change what is offered.
    fn handle_outside(&self, inbound: Inbound) {
        if let Some(responder) = inbound.responder {
            return responder.fail(Fault::internal("No prompt is being worked on."));
        }
        let text = inbound.params.as_ref().map_or("{}", |params| params.get());
        if inbound.method == method::SESSION_UPDATE
            && let Ok(params) = serde_json::from_str::<UpdateParams>(text)
        {
            self.heard.send_replace(std::time::Instant::now());
            self.note_offers(&params);
        }
    }

    fn note_offers(&self, params: &UpdateParams) {
        if self.offers.update(&params.session_id, &params.update)
            && let Some(on_offers) = &self.on_offers
        {
            on_offers();
        }
    }

    fn blocks(&self, parts: &[Part]) -> Vec<Value> {
        let block = |part: &Part| match part {
            Part::Text { text } => json!({"type": "text", "text": text}),
            Part::Image { mime, data } if self.takes_images => {
                json!({"type": "image", "mimeType": mime, "data": data})
            }
            Part::Image { .. } => json!({"type": "text", "text": "(An image that you cannot be shown.)"}),
        };
        parts.iter().map(block).collect()
    }

    async fn explain(&self, broken: Broken) -> Failure {
        let name = &self.name;
        let what = match broken {
            Broken::Gone => format!("The agent {name} ended in the middle of its work."),
            Broken::Silent => {
                let minutes = self.limits.silence.as_secs_f64() / 60.0;
                format!("The agent {name} said nothing for {minutes:.0} minutes, so it was ended.")
            }
            Broken::DoesNotStop => format!("The agent {name} did not stop, so it was ended."),
            Broken::Floods(what) => format!("The agent {name} sent {what}, so it was ended."),
        };
        let why = self.child.explain_end().await;
        Failure::provider(format!("{what} {why}").trim_end().to_owned())
            .hint("What it did so far is kept. Send the prompt again, or ask it to go on.")
    }
}

impl Counts {
    fn add(&mut self, event: &AgentEvent, limits: &Limits) -> Result<(), Broken> {
        match event {
            AgentEvent::Text { text } | AgentEvent::Thought { text } => self.text += text.len(),
            AgentEvent::Call(_) | AgentEvent::Plan { .. } | AgentEvent::Notice { .. } => self.calls += 1,
            AgentEvent::Usage(_) | AgentEvent::Request(_) | AgentEvent::Ended { .. } => {}
        }
        if self.text > limits.text {
            return Err(Broken::Floods("more text than one answer may have"));
        }
        // A call has some ten updates.
        if self.calls > limits.calls.saturating_mul(10) {
            return Err(Broken::Floods("more tool calls than one answer may have"));
        }
        Ok(())
    }
}

/// The failure for a request that the agent did not answer as it should.
pub(crate) fn refused(name: &str, error: &RequestError) -> Failure {
    match error {
        RequestError::Fault(fault) if fault.code == AUTH_REQUIRED => login_needed(name),
        RequestError::Fault(fault) => {
            let details = fault.data.as_ref().map(|data| format!(" {}", data.get())).unwrap_or_default();
            let text: String = format!("{}{details}", fault.message).chars().take(1_000).collect();
            Failure::provider(format!(
                "The agent {name} answered with an error: {}",
                domain::visible_line(&text)
            ))
        }
        other @ (RequestError::Deadline
        | RequestError::Closed
        | RequestError::Full
        | RequestError::TooLarge
        | RequestError::Unserializable(_)
        | RequestError::Unexpected(_)) => {
            Failure::provider(format!("The agent {name} gave no answer: {other}."))
        }
    }
}

pub(crate) fn login_needed(name: &str) -> Failure {
    Failure::auth(format!("The agent {name} needs a login."))
        .hint(format!("Run `dragoman acp-agents login {name}` in a terminal."))
}
