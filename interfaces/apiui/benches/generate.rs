//! How long each stage takes, for 10 to 10,000 operations: read, plan, the first chunk, all of the code.
//!
//! `cargo bench -p apiui --bench generate`. Times are the best of several runs; cost per operation should not grow.
//! Promised for 1,000 operations: the first chunk within 300 ms; for 10,000: all within 2 s, 150 MB at most.
#![allow(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop")]

use apiui::plan::{Options, plan};
use apiui::print::print;
use apiui::read::read_bytes;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

const RUNS: usize = 5;

fn main() {
    println!(
        "{:>10} {:>9} {:>10} {:>10} {:>12} {:>10} {:>10} {:>12} {:>10} {:>14}",
        "operations",
        "spec KB",
        "read",
        "plan",
        "first chunk",
        "print",
        "all",
        "µs/operation",
        "code KB",
        "peak so far"
    );
    for operations in [10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] {
        let text = specification(operations).to_string();
        let best = (0..RUNS).map(|_| measure(text.as_bytes())).min_by_key(|times| times.all).unwrap();
        println!(
            "{operations:>10} {:>9} {:>10} {:>10} {:>12} {:>10} {:>10} {:>12.1} {:>10} {:>14}",
            text.len() / 1024,
            shown(best.read),
            shown(best.plan),
            shown(best.first),
            shown(best.all - best.read - best.plan),
            shown(best.all),
            best.all.as_secs_f64() * 1e6 / operations as f64,
            best.bytes / 1024,
            // Sizes grow from row to row, so this is the row's own.
            peak_memory().unwrap_or_default()
        );
    }
}

struct Times {
    read: Duration,
    plan: Duration,
    /// From the beginning to the first chunk.
    first: Duration,
    /// From the beginning to the last.
    all: Duration,
    bytes: usize,
}

fn measure(text: &[u8]) -> Times {
    let start = Instant::now();
    let reading = read_bytes(text, None, None).unwrap();
    let read = start.elapsed();
    let planned = plan(&reading.spec, &Options::default());
    let plan = start.elapsed() - read;
    let mut chunks = print(&planned);
    let mut bytes = chunks.next().map_or(0, |chunk| chunk.len());
    let first = start.elapsed();
    bytes += chunks.map(|chunk| chunk.len()).sum::<usize>();
    Times { read, plan, first, all: start.elapsed(), bytes }
}

fn shown(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Resources with five operations each, of an ordinary size.
fn specification(operations: usize) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for number in 0..operations / 5 {
        let (plural, model) = (format!("/things{number}"), format!("Thing{number}"));
        let reference = json!({"$ref": format!("#/components/schemas/{model}")});
        let content = json!({"application/json": {"schema": reference}});
        let list = json!({"application/json": {"schema": {"type": "object", "properties": {"data": {"type": "array", "items": reference}, "total": {"type": "integer"}}}}});
        let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
        paths.insert(plural.clone(), json!({
            "get": {"tags": [format!("group {}", number / 10)], "summary": "List things", "description": "Lists things, page by page. ".repeat(4), "parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}, {"name": "limit", "in": "query", "schema": {"type": "integer"}}, {"name": "status", "in": "query", "schema": {"type": "string", "enum": ["on", "off"]}}], "responses": {"200": {"description": "ok", "content": list}}},
            "post": {"tags": ["group"], "summary": "Add a thing", "requestBody": {"content": content}, "responses": {"201": {"description": "ok", "content": content}}},
        }));
        paths.insert(format!("{plural}/{{id}}"), json!({
            "parameters": [id],
            "get": {"summary": "One thing", "responses": {"200": {"description": "ok", "content": content}}},
            "put": {"summary": "Change a thing", "requestBody": {"content": content}, "responses": {"200": {"description": "ok", "content": content}}},
            "delete": {"summary": "Remove a thing", "responses": {"204": {"description": "gone"}}},
        }));
        let mut properties = Map::new();
        for field in 0..12 {
            properties.insert(format!("field{field}"), json!({"type": "string", "maxLength": 100, "description": "A field with a description of an ordinary length."}));
        }
        properties.insert("id".to_owned(), json!({"type": "string", "readOnly": true}));
        properties.insert(
            "parent".to_owned(),
            json!({"$ref": format!("#/components/schemas/Thing{}", number / 2)}),
        );
        schemas.insert(model, json!({"type": "object", "required": ["field0"], "properties": properties}));
    }
    json!({"openapi": "3.0.3", "info": {"title": "Things", "version": "1"}, "paths": paths, "components": {"schemas": schemas}})
}

/// As Linux tells it; nothing elsewhere.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|value| value.trim().to_owned())
}
