//! What generating an interface costs; see [`testkit::InstructionGuard`].

use std::path::Path;

use apiui::plan::{Options, plan};
use apiui::print::print;
use apiui::read::read_bytes;
use testkit::{InstructionGuard, measured_scenario};

const SPECIFICATION: &[u8] = include_bytes!("../specs/bookshop.yaml");

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn generate() {
    measured_scenario(&mut || {
        let reading = read_bytes(SPECIFICATION, None, None).unwrap();
        let planned = plan(&reading.spec, &Options::default());
        let bytes: usize = print(&planned).map(|chunk| chunk.len()).sum();
        assert!(bytes > 0);
    });
}

#[test]
fn generating_costs_what_the_baseline_says() {
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/instructions.txt");
    InstructionGuard { module: "instructions", scenarios: &["generate"], baseline }.check();
}
