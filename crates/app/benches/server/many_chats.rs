//! Many chats at once: as fast as they can, and 200 and 1,000 of them with ten chunks a second each.

use std::collections::HashSet;
use std::time::Instant;

use testkit::FakeModel;

use crate::chart::Chart;
use crate::program::{Home, Server, dragoman};
use crate::table::Table;
use crate::{is_finished, latencies};

/// Chunks of each chat.
const CHUNKS: usize = 60;

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    at_full_speed(table, fake);
    let mut late = Chart::new("chats-latency", "chunk latency, p99, by chats at once", "ms");
    let mut memory = Chart::new("chats-memory", "peak memory by chats at once", "MiB");
    for (chats, wanted_latency, wanted_memory) in [(200, 5.0, 60.0), (1_000, 20.0, 150.0)] {
        let (latency, peak) = calm(fake, chats);
        table.row(&format!("{chats} chats at once, chunk latency p99"), "ms", latency, wanted_latency);
        table.row(&format!("{chats} calm chats at once, peak memory"), "MiB", peak, wanted_memory);
        late.point(chats, latency, wanted_latency);
        memory.point(chats, peak, wanted_memory);
    }
    late.write();
    memory.write();
}

fn at_full_speed(table: &mut Table, fake: &FakeModel) {
    let home = Home::new();
    let mut server = Server::start(&dragoman(), &home, fake);
    server.initialize(&home);
    let since = Instant::now();
    for chat in 0..200 {
        server.prompt(&format!("chat-{chat}"), "pace 200");
    }
    let mut finished = 0;
    while finished < 200 {
        finished += usize::from(is_finished(&server.next().1));
    }
    table.row("200 chats of 200 chunks at once, wall", "s", since.elapsed().as_secs_f64(), f64::INFINITY);
    table.row("200 chats at once, peak memory", "MiB", server.peak(), 100.0);
}

/// The latency that one chunk in a hundred exceeds once every chat has begun, and the peak memory.
fn calm(fake: &FakeModel, chats: usize) -> (f64, f64) {
    let home = Home::new();
    let mut server = Server::start(&dragoman(), &home, fake);
    server.initialize(&home);
    for chat in 0..chats {
        server.prompt(&format!("chat-{chat}"), &format!("calm {CHUNKS}"));
    }
    let (mut finished, mut arrived, mut late) = (0, 0, Vec::new());
    let mut begun = HashSet::new();
    while finished < chats {
        let (at, message) = server.next();
        finished += usize::from(is_finished(&message));
        let latencies = latencies(at, &message);
        arrived += latencies.len();
        if begun.len() == chats {
            late.extend(latencies);
        } else if !latencies.is_empty() {
            begun.insert(message["params"]["chatId"].to_string());
        }
    }
    assert_eq!(arrived, chats * CHUNKS, "every chunk arrives");
    late.sort_by(f64::total_cmp);
    (crate::at(&late, 0.99), server.peak())
}
