//! The frozen list of requests: each is done as it was asked, asked back, or refused with a reason; none is done wrongly.
//!
//! `tests/requests/requests.txt` has one request a line: the outcome, the request, and what the reader is told. Several wishes
//! one after the other are joined by ` => `. The texts name the field, the values and the view, so a wrong change would show.

use apiui::check::check as check_code;
use apiui::customize::{Outcome, Turn, wish};
use apiui::plan::{Options, Plan, plan};
use apiui::print::{plan_of, print_whole};

const REQUESTS: &str = include_str!("../requests/requests.txt");
const LEAST: usize = 300;

fn desk() -> Plan {
    let text = include_bytes!("../requests/desk.yaml");
    let reading = apiui::read::read_bytes(text, Some("desk.yaml"), None).expect("a specification");
    plan(&reading.spec, &Options::default())
}

/// The outcome of a request in one line, and the plan after it.
fn outcome(desk: &Plan, request: &str) -> (&'static str, String, Plan) {
    let mut plan = desk.clone();
    let mut last = ("refused", String::new());
    for one in request.split(" => ") {
        last = match wish(&plan, one, &[]) {
            Outcome::Edited { plan: changed, description, .. } => {
                plan = *changed;
                ("done", description)
            }
            Outcome::Clarify { question, options } => {
                ("asked", format!("{question} [{}]", options.join("; ")))
            }
            Outcome::Refused(refusal) => ("refused", refusal.message),
        };
    }
    (last.0, last.1, plan)
}

#[test]
fn a_frozen_list_of_requests_has_no_wrong_outcome() {
    let desk = desk();
    let is_full =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1) >= 10;
    let (mut counts, mut wrong) = (std::collections::BTreeMap::new(), Vec::new());
    let lines = REQUESTS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for (number, line) in lines.enumerate() {
        let mut parts = line.splitn(3, '\t');
        let (expected, request, told) =
            (parts.next().unwrap(), parts.next().expect("a request"), parts.next().expect("what is told"));
        let (kind, text, changed) = outcome(&desk, request);
        *counts.entry(kind).or_insert(0_usize) += 1;
        if (kind, text.as_str()) != (expected, told) {
            wrong.push(format!("“{request}”\n  expected {expected}: {told}\n  got      {kind}: {text}"));
        }
        changed.validate().expect("a valid plan");
        if kind == "done" && (is_full || number % 20 == 0) {
            let code = print_whole(&changed);
            assert_eq!(plan_of(&code).as_ref(), Ok(&changed), "“{request}”: the plan survives");
            assert!(check_code(&code).is_ok(), "“{request}”: the code passes the check");
        }
    }
    let all: usize = counts.values().sum();
    println!("{all} requests: {counts:?}, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} of {all} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all >= LEAST, "{all} requests");
}

#[test]
#[ignore = "prints the outcomes of the requests in a file, for a person to judge"]
fn print_outcomes() {
    let path = std::env::var("REQUESTS").expect("REQUESTS names a file with a request a line");
    let desk = desk();
    for line in std::fs::read_to_string(path).expect("the file").lines().filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            println!("{line}");
        } else {
            let (kind, text, _) = outcome(&desk, line);
            println!("{kind}\t{line}\t{text}");
        }
    }
}

#[test]
fn an_answer_completes_a_request() {
    let desk = desk();
    for (request, answer, told) in [
        ("format credit limit as currency", "Euro", "as an amount in EUR"),
        ("format discount as percent", "0.12 is 12 %", "0.12 is 12 %"),
        ("format discount as percent", "12 is 12 %", "(12 is 12 %)"),
        ("show only unpaid orders", "open", "whose Status is open"),
    ] {
        let Outcome::Clarify { question, .. } = wish(&desk, request, &[]) else {
            panic!("“{request}” is asked back: {:?}", wish(&desk, request, &[]));
        };
        let turn = |role: &str, content: &str| Turn { role: role.to_owned(), content: content.to_owned() };
        let history = [turn("user", request), turn("assistant", &question)];
        match wish(&desk, answer, &history) {
            Outcome::Edited { description, .. } => assert!(description.contains(told), "{description}"),
            other => panic!("“{answer}” to “{question}” gave {other:?}"),
        }
    }
}

#[test]
fn undo_brings_back_each_state_in_turn() {
    let desk = desk();
    let mut states = vec![desk.clone()];
    for request in
        ["show only open orders", "format total as euro", "use the dark theme", "hide the note column"]
    {
        let before = states.last().expect("a state");
        let Outcome::Edited { plan, .. } = wish(before, request, &[]) else { panic!("“{request}”") };
        states.push(*plan);
    }
    let mut now = states.pop().expect("the last state");
    while let Some(before) = states.pop() {
        let Outcome::Edited { plan, .. } = wish(&now, "undo", &[]) else { panic!("undo") };
        assert_eq!(*plan, before, "the state before the change");
        now = *plan;
    }
    assert!(matches!(wish(&now, "undo", &[]), Outcome::Refused(_)), "nothing is left to undo");
}

#[test]
fn a_filter_goes_to_the_api_where_it_takes_the_value() {
    let desk = desk();
    let filters = |request: &str| {
        let Outcome::Edited { plan, .. } = wish(&desk, request, &[]) else { panic!("“{request}”") };
        let conditions =
            plan.resources.iter().filter_map(|one| one.list.clone()).flat_map(|list| list.conditions);
        conditions.map(|one| (one.field, one.parameter)).collect::<Vec<_>>()
    };
    let of = |field: &str, parameter: &str| vec![(field.to_owned(), parameter.to_owned())];
    assert_eq!(filters("show only open orders"), of("status", "status"));
    assert_eq!(filters("show only express orders"), of("express", "express"));
    assert_eq!(filters("show only books in products"), of("category", "category"));
    // The parameter takes one value only, and knows no "not".
    assert_eq!(filters("show only open and paid orders"), of("status", ""));
    assert_eq!(filters("hide cancelled orders"), of("status", ""));
    assert_eq!(filters("show only urgent tickets"), of("priority", ""));
}

#[test]
fn the_page_shows_and_sends_what_was_asked_for() {
    let mut plan = desk();
    for request in [
        "show only open orders",
        "show only orders over 100",
        "add a tab called Late for overdue orders",
        "format total as euro",
        "show created at as relative time",
        "combine first name and last name into Full name",
        "add a column \"Stock value\" = price * stock",
        "color cancelled orders red",
        "show the customer name instead of the id",
        "add a button \"Ship\" that sets status to shipped",
    ] {
        match wish(&plan, request, &[]) {
            Outcome::Edited { plan: changed, .. } => plan = *changed,
            other => panic!("“{request}” gave {other:?}"),
        }
    }
    let job = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("showing");
    std::fs::create_dir_all(&job).unwrap();
    let page = apiui::check::html_page(&print_whole(&plan), "", &apiui::check::PageOptions::default());
    let page = page.unwrap_or_else(|refusals| panic!("{}", refusals[0]));
    let (_, script) = page.rsplit_once("<script type=\"module\">").unwrap();
    std::fs::write(job.join("script.js"), script.split("</script>").next().unwrap()).unwrap();
    let driver = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/showing.mjs");
    match std::process::Command::new("node").arg(driver).arg(&job).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            assert!(std::env::var_os("DRAGOMAN_BROWSER").is_none(), "node is needed: {error}");
            testkit::skip("node is missing");
        }
    }
}
