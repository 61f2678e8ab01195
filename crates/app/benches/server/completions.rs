//! Inline completions, next edits and rewrites: from the model's first token to the text in the editor.

use serde_json::{Value, json};
use testkit::FakeModel;

use crate::program::{Home, Server, dragoman};
use crate::table::Table;
use crate::{STAMP, at};

const ROUNDS: usize = 100;
const TARGET_MILLIS: f64 = 10.0;

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    let home = Home::new();
    let mut server = Server::start(&dragoman(), &home, fake);
    server.initialize(&home);
    let position = json!({"line": 1, "character": 1});
    let document = json!({"docText": STAMP, "docVersion": 1, "position": position});
    let selection = json!({"id": "r", "text": "fn a() {}", "prompt": STAMP});
    let text_of = |message: &Value| {
        let item = &message["result"]["items"][0]["text"];
        let piece = &message["params"]["content"]["text"];
        item.as_str().or(piece.as_str()).map(str::to_owned)
    };
    for (what, method, params) in
        [("completion", "completion/inline", document), ("rewrite", "rewrite/prompt", selection)]
    {
        let mut late = Vec::new();
        for _ in 0..ROUNDS {
            server.ask(method, params.clone());
            let (read, stamp) = loop {
                let (read, message) = server.next();
                let stamps = text_of(&message);
                let stamp = stamps
                    .iter()
                    .flat_map(|text| text.split(['<', '>']))
                    .find_map(|it| it.parse::<u64>().ok());
                if let Some(stamp) = stamp {
                    break (read, stamp);
                }
            };
            late.push((read - stamp) as f64 / 1e6);
            if method == "rewrite/prompt" {
                server.until(|message| message["params"]["content"]["type"] == "finished");
            }
        }
        late.sort_by(f64::total_cmp);
        for (part, name) in [(0.50, "p50"), (0.99, "p99")] {
            let what = format!("{what}: model's first token → editor's text, {name}");
            table.row(&what, "ms", at(&late, part), TARGET_MILLIS);
        }
    }
}
