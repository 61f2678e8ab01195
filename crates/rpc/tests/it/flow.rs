//! Limits and ends: one write per message, a slow or stalled reader, closing, broken streams, threads.

use crate::support::*;
use rpc::{
    Backlog, End, Fault, Handler, NotSent, Params, Peer, PeerOptions, RequestError, Responder, Transport,
};
use serde_json::json;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

fn small_queue() -> PeerOptions {
    PeerOptions { queue_messages: 16, queue_bytes: 64 << 10, ..PeerOptions::newline() }
}

/// Records each write call.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<Vec<u8>>>>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn scripted(out: &rpc::Outgoing) -> Scripted {
    Scripted { outgoing: out.clone(), seen: Shared::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_is_one_write_in_order() {
    let writes = Writes::default();
    let transport = Transport::blocking(std::io::empty(), writes.clone());
    let peer = Peer::start(PeerOptions::header(), transport, scripted).unwrap();
    let text = |number: usize| "x".repeat(if number.is_multiple_of(50) { 100_000 } else { number });
    for number in 0..500 {
        let text = text(number);
        while let Err(NotSent::Full) = peer.outgoing().notify("m", &(number, &text)) {
            patiently(peer.outgoing().ready()).await.unwrap();
        }
    }
    assert!(patiently(peer.close(TIMEOUT)).await);
    let written = writes.0.lock().unwrap();
    assert_eq!(written.len(), 500);
    for (number, write) in written.iter().enumerate() {
        let body = json!({"jsonrpc": "2.0", "method": "m", "params": [number, text(number)]}).to_string();
        let expected = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert!(write == expected.as_bytes(), "write {number}");
    }
}

#[tokio::test]
async fn a_slow_reader_fills_the_queue_and_gets_everything_queued() {
    let mut client = Client::with_pipe(small_queue(), 256);
    let outgoing = client.outgoing();
    let mut sent = 0;
    while outgoing.notify("event", &json!({ "number": sent })).is_ok() {
        sent += 1;
        tokio::task::yield_now().await;
    }
    assert!((16..40).contains(&sent), "queued {sent}, some of them in the pipe");
    assert!(!outgoing.has_room() && outgoing.queued() >= 16);
    let mut ready = Box::pin(outgoing.ready());
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut ready).await.is_err(), "nobody reads");

    // Our answers and requests overtake notifications; the peer is still read.
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#).await;
    let request = outgoing.request("ask", &(), TIMEOUT);
    for number in 0..sent {
        assert_eq!(client.receive().await["params"]["number"], number);
    }
    let both = [client.receive().await, client.receive().await];
    assert!(both.iter().any(|message| message["method"] == "ask"), "{both:?}");
    patiently(ready).await.unwrap();
    outgoing.notify("event", &json!({ "number": sent })).unwrap();
    assert_eq!(client.receive().await["params"]["number"], sent);
    drop(request);
}

#[tokio::test]
async fn through_a_backlog_nothing_overtakes() {
    let mut client = Client::with_pipe(small_queue(), 256);
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"hold"}"#).await;
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"hold"}"#).await;
    client.assert_alive("two held requests").await;
    let (first, second) = {
        let mut seen = client.seen.lock().unwrap();
        (seen.held.remove(0), seen.held.remove(0))
    };
    let mut backlog = Backlog::new(client.outgoing());
    patiently(backlog.flushed()).await.unwrap();
    let mut sent = 0;
    while backlog.wait_for_room().is_none() || sent < 60 {
        backlog.notify("event", &json!({ "number": sent })).unwrap();
        sent += 1;
        tokio::task::yield_now().await;
    }
    backlog.respond(first, Ok("in its turn"));
    let mut turn = Box::pin(backlog.flushed());
    backlog.notify("event", &json!({ "number": sent })).unwrap();
    backlog.respond::<()>(second, Err(Fault::cancelled()));
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut turn).await.is_err(), "nobody reads");

    let drained = async {
        loop {
            let Some(room) = backlog.wait_for_room() else { return };
            room.await.unwrap();
            backlog.drain();
        }
    };
    let read = async {
        for number in 0..sent {
            assert_eq!(client.receive().await["params"]["number"], number);
        }
        assert_eq!(client.receive().await["result"], "in its turn");
        assert_eq!(client.receive().await["params"]["number"], sent);
        assert_eq!(client.receive().await["error"]["code"], Fault::cancelled().code);
    };
    patiently(async { tokio::join!(drained, read) }).await;
    patiently(turn).await.unwrap();
}

#[tokio::test]
async fn bytes_count_as_well_as_messages() {
    let client = Client::with_pipe(small_queue(), 256);
    let outgoing = client.outgoing();
    let text = "x".repeat(20_000);
    let sent = (0..16).take_while(|_| outgoing.notify("event", &text).is_ok()).count();
    assert_eq!(sent, 4, "64 KiB and the message that crosses it");
    // Requests go on to twice the limit, then they are refused as well.
    let requests: Vec<_> =
        (0..16).map(|_| outgoing.request("ask", &text, Duration::from_millis(20))).collect();
    let mut full = 0;
    for request in requests {
        full += usize::from(matches!(patiently(request).await, Err(RequestError::Full)));
    }
    assert_eq!(full, 13);
}

#[tokio::test]
async fn a_peer_that_sends_without_reading_is_not_read() {
    let mut client = Client::with_pipe(small_queue(), 1024);
    let outgoing = client.outgoing();
    let request = format!("{}\n", r#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#);
    let mut sent = 0;
    let flood = async {
        loop {
            tokio::io::AsyncWriteExt::write_all(&mut client.output, request.as_bytes()).await.unwrap();
            sent += 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(100), flood).await.is_err());
    assert!(outgoing.queued() <= 2 * 16, "{} answers wait", outgoing.queued());
    assert!(sent < 200, "{sent} requests were taken");
    // Once it reads it is served again, and nothing was lost.
    for _ in 0..sent {
        assert_eq!(client.receive().await["id"], 1);
    }
}

#[tokio::test]
async fn a_peer_that_never_reads_is_given_up() {
    let settings = PeerOptions { stall_limit: Duration::from_millis(50), ..small_queue() };
    let mut client = Client::with_pipe(settings, 1024);
    let ended = client.peer.as_ref().unwrap().ended();
    let flood = async {
        let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\"}\n";
        while tokio::io::AsyncWriteExt::write_all(&mut client.output, request).await.is_ok() {}
    };
    let (end, ()) = patiently(async { tokio::join!(ended, flood) }).await;
    assert_eq!(end, End::Stalled);
}

/// Takes messages only while it is open.
struct Gate {
    open: Arc<AtomicBool>,
    taken: Arc<AtomicUsize>,
}

impl Handler for Gate {
    fn on_request(&mut self, method: &str, _params: Params<'_>, responder: Responder) {
        responder.method_not_found(method);
    }
    fn on_notification(&mut self, _method: &str, _params: Params<'_>) {
        self.taken.fetch_add(1, Ordering::SeqCst);
    }
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.open.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[tokio::test]
async fn a_handler_that_is_not_ready_stops_the_reader() {
    let (open, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (mut ours, theirs) = tokio::io::duplex(256);
    let (input, output) = tokio::io::split(theirs);
    let gate = Gate { open: open.clone(), taken: taken.clone() };
    let peer = Peer::start(threads(), Transport::stream(input, output), |_| gate).unwrap();
    let lines = "{\"method\":\"note\"}\n".repeat(5000);
    let mut flood = Box::pin(tokio::io::AsyncWriteExt::write_all(&mut ours, lines.as_bytes()));
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut flood).await.is_err());
    assert_eq!(taken.load(Ordering::SeqCst), 0);
    open.store(true, Ordering::SeqCst);
    patiently(flood).await.unwrap();
    drop(ours);
    assert_eq!(patiently(peer.ended()).await, End::Input);
    assert_eq!(taken.load(Ordering::SeqCst), 5000);
}

#[tokio::test]
async fn closing_writes_what_is_queued_within_its_deadline() {
    let mut client = Client::with_pipe(PeerOptions::newline(), 64);
    let outgoing = client.outgoing();
    (0..100).for_each(|number| outgoing.notify("event", &[number]).unwrap());
    let closing = tokio::spawn(client.peer.take().unwrap().close(TIMEOUT));
    tokio::task::yield_now().await;
    for number in 0..100 {
        assert_eq!(client.receive().await["params"][0], number);
    }
    assert_eq!(client.try_receive().await, None);
    assert!(patiently(closing).await.unwrap());
    assert!(matches!(outgoing.notify("event", &[0]), Err(NotSent::Closed)));

    let mut client = Client::with_pipe(PeerOptions::newline(), 64);
    (0..100).for_each(|number| client.outgoing().notify("event", &[number]).unwrap());
    let peer = client.peer.take().unwrap();
    assert!(!patiently(peer.close(Duration::from_millis(30))).await, "nobody reads");
}

#[tokio::test]
async fn a_broken_output_ends_the_connection() {
    let (input, keep) = tokio::io::duplex(64);
    let (output, gone) = tokio::io::duplex(64);
    drop(gone);
    let peer = Peer::start(PeerOptions::newline(), Transport::stream(input, output), scripted).unwrap();
    let request = peer.outgoing().request("ask", &(), TIMEOUT);
    assert_eq!(patiently(peer.ended()).await, End::Broken(std::io::ErrorKind::BrokenPipe));
    assert!(matches!(patiently(request).await, Err(RequestError::Closed)));
    assert!(!patiently(peer.close(TIMEOUT)).await);
    drop(keep);
}

#[test]
fn starting_without_a_runtime_is_an_error() {
    assert!(
        Peer::start(PeerOptions::newline(), Transport::blocking(std::io::empty(), std::io::sink()), scripted)
            .is_err()
    );
}

/// Real pipes, threads of their own, either flavor of the runtime.
#[test]
fn blocking_pipes_are_served_by_threads() {
    for workers in [0, 2] {
        let mut builder = match workers {
            0 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = builder.enable_all().build().unwrap();
        let (their_input, mut to_peer) = std::io::pipe().unwrap();
        let (mut from_peer, their_output) = std::io::pipe().unwrap();
        let client = std::thread::spawn(move || {
            for number in 0..3000 {
                let body =
                    format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"echo","params":[{number}]}}"#);
                to_peer.write_all(&frame(rpc::Framing::Newline, body.as_bytes())).unwrap();
            }
            to_peer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"later\"}\n").unwrap();
        });
        let reader = std::thread::spawn(move || {
            let mut all = String::new();
            from_peer.read_to_string(&mut all).unwrap();
            all
        });
        runtime.block_on(async {
            let transport = Transport::blocking(their_input, their_output);
            let peer = Peer::start(PeerOptions::newline(), transport, scripted).unwrap();
            assert_eq!(patiently(peer.ended()).await, End::Input);
            patiently(peer.answered()).await;
            assert!(patiently(peer.close(TIMEOUT)).await);
        });
        client.join().unwrap();
        let all = reader.join().unwrap();
        let answers: Vec<serde_json::Value> =
            all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 3001);
        for (number, answer) in answers[..3000].iter().enumerate() {
            assert_eq!((&answer["id"], &answer["result"]), (&json!(number), &json!([number])));
        }
        assert_eq!(answers[3000]["result"], "late");
    }
}

/// Not a test of its own: what the next one runs as a child, with the pipes as its standard input and output.
#[test]
#[ignore = "run by standard_input_and_output_are_served"]
fn stdio_child() {
    if std::env::var_os("RPC_STDIO_CHILD").is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let end = runtime.block_on(async {
        let peer = Peer::start(PeerOptions::newline(), rpc::stdio().unwrap(), scripted).unwrap();
        let end = peer.ended().await;
        peer.close(TIMEOUT).await;
        end
    });
    // At once, so that the test harness adds nothing to the output.
    std::process::exit(if end == End::Input { 7 } else { 1 });
}

#[test]
fn standard_input_and_output_are_served() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "flow::stdio_child", "--ignored", "--nocapture"])
        .env("RPC_STDIO_CHILD", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut answer = || lines.find(|line| line.contains("jsonrpc"));
    for number in 0..100 {
        writeln!(input, r#"{{"jsonrpc":"2.0","id":{number},"method":"nothing"}}"#).unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":null}}"#);
        assert!(answer().is_some_and(|line| line.ends_with(&expected)));
    }
    drop(input);
    assert_eq!(answer(), None);
    assert_eq!(child.wait().unwrap().code(), Some(7), "the end of the input was told");
}
