//! The first answer with twenty MCP servers that never answer, compared with none. The servers were started before, so that
//! nobody waits for them; the first process of a machine waits two seconds, once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::FakeModel;

use super::program::{self, Home, Server, dragoman};
use super::table::Table;
use super::{is_finished, median};

const SERVERS: usize = 20;
const SAMPLES: usize = 15;

pub(crate) fn row(table: &mut Table, fake: &FakeModel) {
    let none = program::config(fake);
    let mut broken = none.clone();
    broken["mcpServers"] = (0..SERVERS).map(server).collect::<serde_json::Map<_, _>>().into();
    let (with_none, with_broken) = (first_chunk(fake, &none), first_chunk(fake, &broken));
    let what = "first prompt → first chunk, 20 broken MCP servers and none, median";
    table.pair(what, "ms", with_broken, with_none, with_none + 5.0);
}

/// Half of them start and say nothing, the others are addresses where nothing listens.
fn server(number: usize) -> (String, Value) {
    let entry = match number % 2 {
        0 => json!({"command": "/bin/sleep", "args": ["1000"]}),
        _ => json!({"url": format!("http://127.0.0.1:9/{number}")}),
    };
    (format!("s{number}"), entry)
}

fn first_chunk(fake: &FakeModel, config: &Value) -> f64 {
    let home = Home::new();
    let mut samples = Vec::new();
    for number in 0..=SAMPLES {
        let mut server = Server::start_with(&dragoman(), &home, fake, config);
        server.initialize(&home);
        std::thread::sleep(Duration::from_millis(30));
        let since = Instant::now();
        server.prompt(&format!("c{number}"), "hello");
        server.until(|it| it["params"]["role"] == "assistant");
        if number > 0 {
            samples.push(since.elapsed().as_secs_f64() * 1000.0);
        }
        server.until(is_finished);
    }
    median(samples)
}
