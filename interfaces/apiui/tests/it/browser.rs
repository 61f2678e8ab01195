//! Generated pages in a real browser, against mocks of their APIs, used by clicking (`tests/browser`).
//!
//! Needs what `make` fetches and builds under `target/web`, and Chromium. Without them the test says so and passes,
//! unless DRAGOMAN_BROWSER is set (as `make test` does): then they are required.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use apiui::check::{PageOptions, html_page};
use apiui::plan::{Options, Plan, ServerChoice, plan};
use apiui::print::print_whole;
use serde::Deserialize;

use crate::check::own_specifications;
use crate::shared::read_file;

/// What the driver tells of one page.
#[derive(Debug, Deserialize)]
struct PageReport {
    flows: BTreeMap<String, String>,
    problems: Vec<String>,
}

fn web() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("DRAGOMAN_WEB").map_or_else(|| repository.join("target/web"), PathBuf::from)
}

fn browser() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from)
}

/// Those of the shared folder that are used too where it is present, with the full counts.
const SHARED: [&str; 6] = [
    "openapi3/petstore.yaml",
    "openapi3/spotify.yaml",
    "openapi31/redocly-museum.yaml",
    "swagger2/oai-uber.json",
    "graphql/netflix-dgs-shows.graphqls",
    "graphql/swapi.graphql",
];

fn specifications() -> Vec<PathBuf> {
    let mut all = own_specifications();
    let is_full = scale() >= 10;
    if let Some(shared) = crate::shared::folder().filter(|_| is_full) {
        all.extend(SHARED.map(|name| shared.join(name)));
    }
    all
}

/// One folder per specification: its page, and what the mock is made from. The API has the page's own origin.
fn write_jobs(jobs: &Path, bundle: &str) -> usize {
    let _ = std::fs::remove_dir_all(jobs);
    let mut count = 0;
    for path in specifications() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        count += usize::from(write_job(&jobs.join(&name), &path, &name, bundle));
    }
    count
}

/// Writes the page of one specification and what its mock needs; false where it has no operations.
fn write_job(folder: &Path, path: &Path, name: &str, bundle: &str) -> bool {
    let spec = read_file(path).unwrap().spec;
    if spec.operation_count() == 0 {
        return false;
    }
    let mut plan = plan(&spec, &Options::default());
    let server = ServerChoice { url: format!("/mock/{name}"), ..ServerChoice::default() };
    plan.servers = vec![server; plan.servers.len().max(1)];
    let options = PageOptions { title: plan.title.clone(), ..PageOptions::default() };
    let page = html_page(&print_whole(&plan), bundle, &options);
    let page = page.unwrap_or_else(|refusals| panic!("{name}: {}", refusals[0]));
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("page.html"), page).unwrap();
    std::fs::write(folder.join("spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
    std::fs::write(folder.join("plan.json"), serde_json::to_vec::<Plan>(&plan).unwrap()).unwrap();
    true
}

/// React's bundle, if it and the browser are present; without them a test that is not required is left out.
fn bundle() -> Option<String> {
    let (web, browser) = (web(), browser());
    let bundle = std::fs::read_to_string(web.join("react-bundle.js")).ok().filter(|_| browser.exists());
    if bundle.is_none() {
        let missing = format!("{} or {} is missing; run `make`", web.display(), browser.display());
        assert!(std::env::var_os("DRAGOMAN_BROWSER").is_none(), "{missing}");
        testkit::skip(missing);
    }
    bundle
}

fn scale() -> usize {
    std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[derive(Debug, Deserialize)]
struct Edited {
    forms: usize,
    problems: Vec<String>,
}

#[test]
fn edits_send_back_exactly_what_was_not_touched() {
    let Some(bundle) = bundle() else { return };
    let job = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lossless");
    let _ = std::fs::remove_dir_all(&job);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs/ledger.yaml");
    write_job(&job, &path, "ledger", &bundle);
    let count = 50 * scale();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/lossless.mjs");
    let mut command = Command::new("node");
    command.arg(driver).arg(&job).arg(web()).arg(count.to_string()).env("CHROMIUM", browser());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let edited: Edited = serde_json::from_slice(&std::fs::read(job.join("lossless.json")).unwrap()).unwrap();
    assert!(edited.problems.is_empty(), "{}\npictures: {}", edited.problems.join("\n"), job.display());
    assert_eq!(edited.forms, count);
}

#[test]
fn pages_work_in_a_browser() {
    let Some(bundle) = bundle() else { return };
    let (web, browser) = (web(), browser());
    let jobs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let count = write_jobs(&jobs, &bundle);
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/run.mjs");
    let output =
        Command::new("node").arg(driver).arg(&jobs).arg(&web).env("CHROMIUM", &browser).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = std::fs::read(jobs.join("results.json")).unwrap();
    let told: BTreeMap<String, PageReport> = serde_json::from_slice(&told).unwrap();
    assert_eq!(told.len(), count, "every page was used");
    assert_shown(&told, &jobs);
}

fn assert_shown(told: &BTreeMap<String, PageReport>, jobs: &Path) {
    let mut wrong = Vec::new();
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, told) in told {
        let picture = std::fs::read(jobs.join(name).join("page.png")).unwrap_or_default();
        assert!(picture.starts_with(b"\x89PNG"), "{name} has no picture");
        wrong.extend(told.problems.iter().map(|problem| format!("{name}: {problem}")));
        for (flow, outcome) in &told.flows {
            match outcome.as_str() {
                "done" | "shown" => *done.entry(flow).or_default() += 1,
                "not here" => {}
                other => wrong.push(format!("{name}, {flow}: {other}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}\npictures: {}", wrong.join("\n"), jobs.display());
    // The specifications together show everything.
    for (flow, least) in [
        ("operations", 16),
        ("list", 13),
        ("filter", 13),
        ("sort", 10),
        ("paging", 13),
        ("detail", 10),
        ("needs", 1),
        ("create", 10),
        ("references", 2),
        ("forms", 1),
        ("refusal", 5),
        ("change", 3),
        ("bulk", 2),
        ("keys", 16),
        ("asks", 5),
        ("nothing", 13),
        ("validation", 5),
        ("call", 10),
        ("answers", 13),
        ("chart", 2),
        ("failure", 13),
        ("theme", 16),
        ("routes", 10),
        ("rightToLeft", 13),
        ("access", 2),
        ("signIn", 16),
        ("policy", 16),
    ] {
        let count = done.get(flow).copied().unwrap_or_default();
        assert!(count >= least, "{flow} was shown by {count} pages, wanted {least}: {told:#?}");
    }
}
