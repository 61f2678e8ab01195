//! How many small notifications pass through an operating-system pipe per second, and the CPU time of the sending side.
//! `cargo run --release -p rpc --example throughput [count]`

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::print_stdout, reason = "it prints a measurement")]

use rpc::{Handler, NotSent, Outgoing, Params, Peer, PeerOptions, Responder, Transport};
use serde::Serialize;
use std::io::Read;
use std::time::{Duration, Instant};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContentReceived<'a> {
    chat_id: &'a str,
    role: &'a str,
    content: Content<'a>,
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'a str,
    text: &'a str,
}

struct Deaf;

impl Handler for Deaf {
    fn on_request(&mut self, method: &str, _params: Params<'_>, responder: Responder) {
        responder.method_not_found(method);
    }
    fn on_notification(&mut self, _method: &str, _params: Params<'_>) {}
}

/// CPU seconds of the process, ended threads included (Linux counts them in hundredths).
fn process_cpu() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2);
    Some(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// CPU seconds of this thread.
fn thread_cpu() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(stat.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

async fn send(outgoing: &Outgoing, count: usize) -> Result<usize, NotSent> {
    let content = Content { r#type: "text", text: "a few words of it " };
    let params =
        ContentReceived { chat_id: "0191a7f2-5b7e-7c3a-9d1e-2f4b6a8c0d1e", role: "assistant", content };
    let mut waits = 0;
    for _ in 0..count {
        while let Err(refused) = outgoing.notify("chat/contentReceived", &params) {
            match refused {
                NotSent::Full => outgoing.ready().await?,
                other => return Err(other),
            }
            waits += 1;
        }
    }
    Ok(waits)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let (mut client, output) = std::io::pipe()?;
    let reader = std::thread::Builder::new().name("client".into()).spawn(move || {
        let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
        while let Ok(read @ 1..) = client.read(&mut buffer) {
            bytes += read;
        }
        (bytes, thread_cpu())
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = Instant::now();
    let waits = runtime.block_on(async {
        let peer =
            Peer::start(PeerOptions::header(), Transport::blocking(std::io::empty(), output), |_| Deaf)?;
        let waits = send(&peer.outgoing(), count).await?;
        peer.close(Duration::from_secs(60)).await;
        Ok::<_, Box<dyn std::error::Error>>(waits)
    })?;
    let elapsed = start.elapsed();
    let (bytes, client_cpu) = reader.join().map_err(|_| "the client failed")?;
    let cpu = process_cpu().unwrap_or_default() - client_cpu.unwrap_or_default();
    println!(
        "{count} notifications of {} bytes: {:.0}/s, {:.2} µs CPU each, {waits} waits for room",
        bytes / count,
        count as f64 / elapsed.as_secs_f64(),
        cpu * 1e6 / count as f64,
    );
    Ok(())
}
