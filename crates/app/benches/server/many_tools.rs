//! What many tools of MCP servers cost: the bytes of the requests of a chat, and the share of them that repeats the
//! request before, which a provider's cache holds.

use serde_json::json;
use testkit::FakeModel;

use super::is_finished;
use super::program::{self, Home, Server, dragoman};
use super::table::Table;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");
const TOOLS_OF_SERVER: usize = 50;
const PROMPTS: usize = 10;

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    for (tools, context) in [(0, None), (50, None), (300, None), (300, Some(1_000_000))] {
        let home = Home::new();
        let mut config = program::config(fake);
        if let Some(context) = context {
            config["providers"]["fake"]["models"]["m1"] = json!({"limit": {"context": context}});
        }
        let window = context.map_or(String::new(), |context: u64| format!(", a window of {context}"));
        let names: Vec<String> = (0..tools / TOOLS_OF_SERVER).map(|number| format!("s{number}")).collect();
        for name in &names {
            let arguments =
                json!([SCRIPT, format!("many-{TOOLS_OF_SERVER}"), "--log", home.path().join(name)]);
            // The environment of the benchmark has no path to look in.
            config["mcpServers"][name] = json!({"command": "/usr/bin/python3", "args": arguments});
        }
        let mut server = Server::start_with(&dragoman(), &home, fake, &config);
        server.initialize(&home);
        let mut waiting = names;
        while !waiting.is_empty() {
            let server = server.next().1["params"].clone();
            waiting.retain(|name| server["name"] != **name || server["status"] != "running");
        }
        fake.forget_requests();
        for _ in 0..PROMPTS {
            server.prompt("c", "hello");
            server.until(is_finished);
        }
        let bodies: Vec<String> = fake.requests().iter().map(|it| it.body.to_string()).collect();
        // 50 tools are all offered.
        let target = if tools == 50 { f64::INFINITY } else { 10_000.0 };
        let first = bodies.first().map_or(f64::NAN, |body| body.len() as f64);
        table.row(&format!("first request, {tools} tools of MCP servers{window}"), "B", first, target);
        let what = format!("bytes cached in requests 2 to {PROMPTS}, {tools} tools{window}");
        table.row(&what, "%", cached_percent(&bodies), f64::INFINITY);
    }
}

/// How much of each request but the first is the same as in the request before it: tools and system prompt, then the
/// messages up to the end of that request.
fn cached_percent(bodies: &[String]) -> f64 {
    let (mut all, mut cached) = (0, 0);
    for pair in bodies.windows(2) {
        let of = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap_or_default();
        let (before, now) = (of(&pair[0]), of(&pair[1]));
        all += pair[1].len();
        if now["tools"] != before["tools"] {
            continue;
        }
        let (earlier, later) = (before["messages"].to_string(), now["messages"].to_string());
        let same = earlier.bytes().zip(later.bytes()).take_while(|(one, other)| one == other).count();
        cached += now["tools"].to_string().len() + same;
    }
    cached as f64 * 100.0 / all as f64
}
