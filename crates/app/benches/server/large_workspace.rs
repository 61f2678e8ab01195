//! What a written file and a changing command cost in a workspace of 50,000 files; the floor is the same call among 50, in
//! turn with it. Without the sandbox, so that the scans and the index are what is left.

use std::path::Path;

use serde_json::json;
use testkit::FakeModel;

use super::commands::{call, make};
use super::median;
use super::program::{Home, Server, config, dragoman};
use super::table::Table;

const FILES: usize = 50_000;
const FEW_FILES: usize = 50;
const CALLS: usize = 40;

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    let [large, small] = [FILES, FEW_FILES].map(|files| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a workspace");
        make(folder.path(), files);
        folder
    });
    let (home, small_home) = (Home::new(), Home::new());
    let mut server = start(fake, &home, large.path());
    let mut floor = start(fake, &small_home, small.path());
    let first = call(&mut server, "write", 0);
    let few = call(&mut floor, "write", 0);
    table.pair(&format!("the first changing command, {FILES} files"), "ms", first, few, few + 1_500.0);
    // By the first call of each pair, all file times are old enough to be believed.
    for (part, name, what, allowed) in
        [(1, "write-file", "write_file", 5.0), (2, "write", "a later changing command", 130.0)]
    {
        let (mut many, mut few) = (Vec::new(), Vec::new());
        for number in part * CALLS..(part + 1) * CALLS {
            many.push(call(&mut server, name, number));
            few.push(call(&mut floor, name, number));
        }
        let (many, few) = (median(many), median(few));
        table.pair(&format!("{what}, {FILES} files, median"), "ms", many, few, few + allowed);
    }
}

fn start(fake: &FakeModel, home: &Home, workspace: &Path) -> Server {
    let mut settings = config(fake);
    settings["sandbox"] = json!("off");
    settings["toolCall"] = json!({"approval": {"byDefault": "allow"}});
    let mut server = Server::start_with(&dragoman(), home, fake, &settings);
    server.initialize_in(workspace);
    server
}
