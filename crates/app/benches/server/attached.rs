//! What a window of another process adds to the time between the model's write and the editor's read.

use serde_json::json;
use testkit::FakeModel;

use crate::program::{Home, Server, dragoman};
use crate::table::Table;
use crate::{at, is_finished};

const CHUNKS: usize = 5000;

/// Both windows read the same chunks of one turn; the second is attached to the process of the first.
pub(crate) fn row(table: &mut Table, fake: &FakeModel) {
    let home = Home::new();
    let mut direct = Server::start(&dragoman(), &home, fake);
    direct.initialize(&home);
    direct.prompt("c", "hello");
    direct.until(is_finished);
    let mut attached = Server::start(&dragoman(), &home, fake);
    attached.initialize(&home);
    let id = attached.ask("chat/open", json!({"chatId": "c"}));
    attached.until(|it| it["id"] == json!(id));
    direct.prompt("c", &format!("pace {CHUNKS}"));
    let [direct, attached] = [direct, attached].map(|mut server| {
        let mut late: Vec<f64> = Vec::new();
        loop {
            let (at, message) = server.next();
            if is_finished(&message) {
                break;
            }
            let text = message["params"]["content"]["text"].as_str().unwrap_or_default();
            let stamps = text.split(['<', '>']).filter_map(|it| it.parse::<u64>().ok());
            late.extend(stamps.map(|stamp| (at - stamp) as f64 / 1e6));
        }
        assert_eq!(late.len(), CHUNKS, "every chunk arrives");
        late.sort_by(f64::total_cmp);
        late
    });
    for (part, allowed, name) in [(0.50, 0.3, "p50"), (0.99, 2.0, "p99")] {
        let [attached, direct] = [&attached, &direct].map(|it| at(it, part));
        let what = format!("model's write → an attached window's read, {name}, beside the direct one");
        table.pair(&what, "ms", attached, direct, direct + allowed);
    }
}
