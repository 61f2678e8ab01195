//! Start and first `@` result in a repository of a million files, compared with one of a thousand.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use testkit::FakeModel;

use super::median;
use super::program::{Home, Server, dragoman};
use super::table::Table;

const SMALL: usize = 1_000;
const LARGE: usize = 1_000_000;
const FILES_PER_FOLDER: usize = 250;
const SAMPLES: usize = 9;

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    let (small_start, small_result) = measure(fake, SMALL);
    let (large_start, large_result) = measure(fake, LARGE);
    let what = "spawn → initialize, a million files and a thousand, median";
    table.pair(what, "ms", large_start, small_start, small_start + 5.0);
    let what = "first @ result, a million files and a thousand, median";
    table.pair(what, "ms", large_result, small_result, small_result + 5.0);
}

/// Each sample is a new process: nothing is known of the tree but what the kernel has in memory.
fn measure(fake: &FakeModel, files: usize) -> (f64, f64) {
    let home = Home::new();
    make(home.path(), files);
    let (mut starts, mut results) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let since = Instant::now();
        let mut server = Server::start(&dragoman(), &home, fake);
        server.initialize(&home);
        starts.push(since.elapsed().as_secs_f64() * 1000.0);
        let since = Instant::now();
        let id = server.ask("chat/queryContext", json!({"query": "module_0", "contexts": []}));
        server.until(|it| it["id"] == json!(id));
        results.push(since.elapsed().as_secs_f64() * 1000.0);
    }
    (median(starts), median(results))
}

/// Folders in folders, twenty modules at the top.
fn make(root: &Path, files: usize) {
    for number in 0..files.div_ceil(FILES_PER_FOLDER) {
        let folder =
            root.join(format!("module_{}/part_{}/component_{number}", number % 20, number / 20 % 50));
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in 0..FILES_PER_FOLDER {
            std::fs::write(folder.join(format!("file_{file}.rs")), b"").expect("a file");
        }
    }
}
