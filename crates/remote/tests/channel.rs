//! Messages over connections that are lost anywhere, and an end that does not keep up.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use futures_util::StreamExt as _;
use remote::{Channel, Limits, RunEnd, Side, Stream};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

struct End {
    channel: Channel,
    send: mpsc::Sender<String>,
    receive: mpsc::Receiver<String>,
}

fn end(side: Side, limits: Limits, resumes: bool) -> End {
    let (came, receive) = mpsc::channel(4);
    let (send, leaving) = mpsc::channel(4);
    End { channel: Channel::new(side, limits, resumes, came, leaving), send, receive }
}

/// Bytes in both directions until so many have gone from the client to the server.
async fn carry(client: tokio::io::DuplexStream, server: tokio::io::DuplexStream, budget: usize) {
    let (mut client_in, mut client_out) = tokio::io::split(client);
    let (mut server_in, mut server_out) = tokio::io::split(server);
    let down = tokio::io::copy(&mut server_in, &mut client_out);
    let up = async {
        let mut limited = (&mut client_in).take(budget as u64);
        let _ = tokio::io::copy(&mut limited, &mut server_out).await;
    };
    tokio::select! {
        _ = down => {}
        () = up => {}
    }
}

/// 300 connections that end anywhere: both ends get every message of the other once and in order.
#[tokio::test(start_paused = true)]
async fn messages_survive_every_cut() {
    let limits = Limits { kept_messages: 40, kept_bytes: 2000, ..Limits::default() };
    let mut client = end(Side::Client, limits, true);
    let mut server = end(Side::Server, limits, true);
    let (mut tasks, most) = (Vec::new(), 5000);
    for (send, name) in [(client.send, "client"), (server.send, "server")] {
        tokio::spawn(async move {
            for number in 0..most {
                let text = format!("{name} {number} {}", "ü".repeat(number % 50));
                if send.send(text).await.is_err() {
                    return;
                }
            }
            // The conversation goes on until both have all of it.
            std::future::pending::<()>().await;
        });
    }
    for (mut receive, name) in [(client.receive, "server"), (server.receive, "client")] {
        tasks.push(tokio::spawn(async move {
            for number in 0..most {
                let text = receive.recv().await.unwrap();
                assert_eq!(text, format!("{name} {number} {}", "ü".repeat(number % 50)));
            }
            receive
        }));
    }
    let mut random: usize = 0x2545_f491;
    for cut in 0.. {
        random ^= random << 13;
        random ^= (random >> 17) & 0x7fff;
        random ^= random << 5;
        let budget = if cut < 300 { random % 1000 } else { usize::MAX };
        let (near, client_stream) = tokio::io::duplex(256);
        let (far, server_stream) = tokio::io::duplex(256);
        let (to_client, to_server) = (server.channel.received(), client.channel.received());
        let ((), first, second) = tokio::join!(
            async {
                tokio::select! {
                    () = carry(near, far, budget) => {}
                    () = tokio::time::sleep(Duration::from_secs(3600)) => {}
                }
            },
            client.channel.run(Box::new(client_stream), Vec::new(), to_client),
            server.channel.run(Box::new(server_stream), Vec::new(), to_server),
        );
        assert_eq!((first, second), (RunEnd::Cut, RunEnd::Cut), "connection {cut}");
        if tasks.iter().all(tokio::task::JoinHandle::is_finished) {
            assert!(cut >= 300);
            break;
        }
        assert!(cut < 600, "it does not come to an end");
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// A client that takes nothing is left after a while; its own side is not read meanwhile.
#[tokio::test(start_paused = true)]
async fn an_end_that_does_not_catch_up_is_left() {
    let limits = Limits { kept_messages: 8, ..Limits::default() };
    let mut server = end(Side::Server, limits, true);
    let (stream, other) = tokio::io::duplex(1 << 20);
    // It answers pings, and says nothing about what it has received.
    let pinging = tokio::spawn(async move {
        let stream: Box<dyn Stream> = Box::new(other);
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
        let mut count = 0;
        while let Some(Ok(message)) = socket.next().await {
            count += usize::from(message.is_text());
        }
        count
    });
    let sending = tokio::spawn(async move {
        for number in 0..100 {
            if server.send.send(number.to_string()).await.is_err() {
                return;
            }
        }
    });
    assert_eq!(server.channel.run(Box::new(stream), Vec::new(), 0).await, RunEnd::Cut);
    assert_eq!(pinging.await.unwrap(), 8);
    assert!(!sending.is_finished(), "the rest waits with its own side");
}

#[tokio::test]
async fn counts_that_cannot_be_are_refused() {
    let mut server = end(Side::Server, Limits::default(), true);
    let (stream, _other) = tokio::io::duplex(1 << 10);
    assert_eq!(server.channel.run(Box::new(stream), Vec::new(), 1).await, RunEnd::Broken);
}
