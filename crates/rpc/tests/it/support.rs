//! A raw client, so that tests see bytes and not our own encoder; a handler that does what the method says.

use rpc::framing::{Decoder, Frame};
use rpc::{Fault, Framing, Handler, Outgoing, Params, Peer, PeerOptions, Responder, Transport};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

/// 1 by default, 10 for the full figures.
pub(crate) fn scale() -> usize {
    std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1)
}

/// No test waits longer than this for anything.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("it hangs")
}

/// What the handler saw, in order, and the responders it keeps.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) messages: Vec<String>,
    pub(crate) held: Vec<Responder>,
}

pub(crate) type Shared = Arc<Mutex<Seen>>;

pub(crate) struct Scripted {
    pub(crate) outgoing: Outgoing,
    pub(crate) seen: Shared,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    chat_id: String,
}

#[derive(Deserialize)]
struct Optional {
    limit: Option<u32>,
}

impl Handler for Scripted {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        self.seen.lock().unwrap().messages.push(format!("{method}#{}", responder.id()));
        match method {
            "echo" => responder.succeed(&params.raw()),
            "nothing" => responder.succeed(&()),
            "later" => drop(tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                responder.succeed("late");
            })),
            "typed" => responder.respond(params.decode::<Typed>().map(|typed| typed.chat_id)),
            "optional" => responder.respond(params.decode::<Optional>().map(|optional| optional.limit)),
            "hold" => self.seen.lock().unwrap().held.push(responder),
            "until-cancelled" => drop(tokio::spawn(async move {
                responder.cancelled().await;
                responder.fail(Fault::cancelled());
            })),
            "drop" => drop(responder),
            "panic" => panic!("on purpose"),
            "unserializable" => responder.succeed(&BTreeMap::from([((1, 2), 3)])),
            "answer-then-events" => {
                responder.succeed("answer");
                for number in 0..3 {
                    self.outgoing.notify("event", &json!({ "number": number })).unwrap();
                }
            }
            "large" => responder.succeed(&"x".repeat(params.decode::<(usize,)>().unwrap().0)),
            _ => responder.method_not_found(method),
        }
    }

    fn on_notification(&mut self, method: &str, params: Params<'_>) {
        let params = params.raw().map_or(String::new(), |raw| raw.get().to_owned());
        self.seen.lock().unwrap().messages.push(format!("{method} {params}").trim().to_owned());
        assert_ne!(method, "panic", "on purpose");
    }
}

/// The other end of a peer under test.
pub(crate) struct Client {
    pub(crate) peer: Option<Peer>,
    pub(crate) seen: Shared,
    pub(crate) framing: Framing,
    pub(crate) output: WriteHalf<DuplexStream>,
    input: ReadHalf<DuplexStream>,
    decoder: Decoder,
}

impl Client {
    pub(crate) fn start(settings: PeerOptions) -> Client {
        Client::with_pipe(settings, 64 << 10)
    }

    pub(crate) fn with_pipe(settings: PeerOptions, pipe: usize) -> Client {
        let (ours, theirs) = tokio::io::duplex(pipe);
        let (input, output) = tokio::io::split(theirs);
        let framing = settings.framing;
        let seen = Shared::default();
        let handler = seen.clone();
        let peer = Peer::start(settings, Transport::stream(input, output), |outgoing| Scripted {
            outgoing: outgoing.clone(),
            seen: handler,
        });
        let (input, output) = tokio::io::split(ours);
        let decoder = Decoder::new(framing, usize::MAX);
        Client { peer: Some(peer.unwrap()), seen, framing, output, input, decoder }
    }

    pub(crate) fn outgoing(&self) -> Outgoing {
        self.peer.as_ref().unwrap().outgoing()
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        patiently(self.output.write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn send(&mut self, body: &str) {
        self.send_bytes(&frame(self.framing, body.as_bytes())).await;
    }

    /// The next message, or `None` at the end of the stream.
    pub(crate) async fn try_receive(&mut self) -> Option<Value> {
        let body = next(&mut self.input, &mut self.decoder).await?;
        Some(serde_json::from_str(&body).expect("the peer wrote broken JSON"))
    }

    /// Sends all of it, and its end if `shut`, reading answers meanwhile until one `is_last` or `end` resolves.
    pub(crate) async fn exchange<E>(
        &mut self,
        stream: &[u8],
        shut: bool,
        is_last: impl Fn(&str) -> bool,
        end: impl Future<Output = E>,
    ) -> Option<E> {
        let Client { output, input, decoder, .. } = self;
        let write = async {
            output.write_all(stream).await.unwrap();
            if shut {
                output.shutdown().await.unwrap();
            }
            end.await
        };
        let read = async { while !is_last(&next(input, decoder).await.expect("the stream ended")) {} };
        patiently(async {
            tokio::select! {
                end = write => Some(end),
                () = read => None,
            }
        })
        .await
    }

    pub(crate) async fn receive(&mut self) -> Value {
        self.try_receive().await.expect("the stream ended")
    }

    /// Exactly the next bytes.
    pub(crate) async fn receive_bytes(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        patiently(self.input.read_exact(&mut bytes)).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) async fn answer_to(&mut self, body: &str) -> Value {
        self.send(body).await;
        self.receive().await
    }

    /// Shows that the connection goes on, and that nothing else was answered before.
    pub(crate) async fn assert_alive(&mut self, context: &str) {
        let answer = self.answer_to(r#"{"jsonrpc":"2.0","id":"alive","method":"nothing"}"#).await;
        assert_eq!(
            (&answer["id"], answer.get("result")),
            (&json!("alive"), Some(&Value::Null)),
            "after {context}"
        );
    }
}

async fn next(input: &mut ReadHalf<DuplexStream>, decoder: &mut Decoder) -> Option<String> {
    loop {
        if let Some(frame) = decoder.next_frame() {
            let Frame::Message(body) = frame else { panic!("the peer wrote a broken frame: {frame:?}") };
            serde_json::from_slice::<IgnoredAny>(body).expect("the peer wrote broken JSON");
            return Some(String::from_utf8(body.to_vec()).unwrap());
        }
        match patiently(input.read(decoder.space())).await.unwrap() {
            0 => return None,
            count => decoder.filled(count),
        }
    }
}

pub(crate) fn frame(framing: Framing, body: &[u8]) -> Vec<u8> {
    match framing {
        Framing::Header => [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat(),
        Framing::Newline => [body, b"\n"].concat(),
    }
}

pub(crate) fn threads() -> PeerOptions {
    PeerOptions { version_member: false, ..PeerOptions::newline() }
}
