//! `dragoman store check` and `dragoman store repair`: finds damage of the stored chats, and saves what can be read.
//!
//! Must not know how a store keeps its facts. Invariants: a check changes nothing; a repair of a store without damage changes
//! nothing; every chat is looked at, whatever is wrong with another one.

use std::io::IsTerminal;
use std::process::ExitCode;

use config::Environment;
use domain::store::{ListFilter, SessionSummary};
use domain::{Failure, Store};
use serde_json::{Value, json};
use store::Repaired;
use terminal::text::clean_line;

use crate::{lifetime, output, stores};

/// Facts and chats that are read at a time.
const PAGE: usize = 512;

/// What a check found.
#[derive(Default)]
struct Report {
    chats: u64,
    facts: u64,
    problems: Vec<Problem>,
}

/// Damage of a chat, or of the store where none is named.
struct Problem {
    chat: Option<SessionSummary>,
    text: String,
}

impl Report {
    fn add(&mut self, chat: Option<SessionSummary>, text: String) {
        self.problems.push(Problem { chat, text });
    }
}

pub(super) fn check(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    lifetime::run(async {
        let report = examine(&environment, json).await?;
        print(&if json { report_json(&report) } else { report_text(&report) })?;
        if report.problems.is_empty() {
            return Ok(());
        }
        Err(Failure::user("The store is damaged.")
            .hint("`dragoman store repair` saves what can be read and keeps a copy of the damaged file."))
    })
}

pub(super) fn repair(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    lifetime::run(async {
        if stores::open_database(&environment)?.is_some() {
            return Err(Failure::user("The chats are in a PostgreSQL database, which has its own means of repair.").hint(
                "Restore it from a backup. `dragoman store check` names the damaged chats, and `dragoman chats delete ID` removes one.",
            ));
        }
        let directory = environment.data_dir();
        if !directory.join("chats.sqlite").exists() {
            return print_unchanged(json);
        }
        // It copies the file before anything opens it.
        let repair = store::Repair::begin(&directory)?;
        if !repair.is_unfinished() {
            let examined = examine(&environment, json).await;
            stores::close_all();
            if examined.as_ref().map_or(true, |report| report.problems.is_empty()) {
                repair.cancel();
                return examined.and_then(|_| print_unchanged(json));
            }
        }
        let mut progress = Progress::new("Repairing", json);
        let repaired = repair.run(&mut |done, total| progress.show(done, total));
        progress.clear();
        let repaired = repaired?;
        print(&if json { repaired_json(&repaired) } else { repaired_text(&repaired) })
    })
}

fn print_unchanged(json: bool) -> Result<(), Failure> {
    print(&match json {
        true => format!("{}\n", json!({"repaired": false})),
        false => "The store has no damage. Nothing was changed.\n".to_owned(),
    })
}

/// Looks at the file, where the chats are in one, and at every chat.
async fn examine(environment: &Environment, quiet: bool) -> Result<Report, Failure> {
    let mut report = Report::default();
    let database = stores::open_database(environment)?;
    let is_file = database.is_none();
    if is_file {
        let Some(problems) = store::check_file(&environment.data_dir())? else { return Ok(report) };
        problems.into_iter().for_each(|problem| report.add(None, problem));
    }
    let store = database.map_or_else(|| stores::open_file(environment), Ok)?;
    let chats = match list(store.as_ref()).await {
        Ok(chats) => chats,
        Err(failure) => {
            report.add(None, format!("The list of chats cannot be read: {}", failure.message));
            Vec::new()
        }
    };
    let mut progress = Progress::new("Checking", quiet);
    let total = chats.len() as u64;
    for (done, chat) in (1..).zip(chats) {
        report.chats += 1;
        match read(store.as_ref(), &chat).await {
            Ok(facts) => report.facts += facts,
            // An unreachable database says nothing about the chat.
            Err(failure) if failure.retry_after.is_some() => return Err(failure),
            Err(failure) => report.add(Some(chat), failure.message),
        }
        progress.show(done, total);
    }
    progress.clear();
    Ok(report)
}

async fn list(store: &dyn Store) -> Result<Vec<SessionSummary>, Failure> {
    let mut chats: Vec<SessionSummary> = Vec::new();
    let mut known = std::collections::HashSet::new();
    loop {
        let after = chats.last().map(SessionSummary::position);
        let mut page = store.list(ListFilter { limit: Some(PAGE), after, ..ListFilter::default() }).await?;
        // A damaged index can name a chat again and again.
        page.retain(|chat| known.insert(chat.id.clone()));
        if page.is_empty() {
            return Ok(chats);
        }
        chats.extend(page);
    }
}

/// Reads all facts of a chat; every reader checks them. Returns how many there are.
async fn read(store: &dyn Store, chat: &SessionSummary) -> Result<u64, Failure> {
    let mut newest = 0;
    while let Some(last) = store.read(&chat.id, newest, PAGE).await?.last() {
        newest = last.number;
    }
    Ok(newest)
}

fn report_text(report: &Report) -> String {
    let Report { chats, facts, problems } = report;
    let mut text = format!("{chats} chats with {facts} facts were checked.\n");
    for Problem { text: problem, .. } in problems {
        text.push_str(&format!("{}\n", clean_line(problem)));
    }
    if problems.is_empty() {
        text.push_str("The store has no damage.\n");
    }
    text
}

fn report_json(report: &Report) -> String {
    let problem = |problem: &Problem| -> Value {
        let chat = problem.chat.as_ref();
        json!({"chat": chat.map(|chat| chat.id.as_str()), "title": chat.and_then(|chat| chat.title.as_deref()),
            "problem": problem.text})
    };
    let problems: Vec<Value> = report.problems.iter().map(problem).collect();
    format!("{}\n", json!({"chats": report.chats, "facts": report.facts, "problems": problems}))
}

fn repaired_text(repaired: &Repaired) -> String {
    let Repaired { chats, facts, damaged, copy, aside } = repaired;
    let mut text = match copy {
        Some(_) => format!("{chats} chats with {facts} facts were saved.\n"),
        None => "The repair that an earlier run had begun is finished.\n".to_owned(),
    };
    for chat in damaged {
        let title = chat.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
        let line = format!("{}{title}: {} facts saved, {} lost", chat.id, chat.saved, chat.lost);
        text.push_str(&format!("{}\n", clean_line(&line)));
    }
    if let Some(aside) = aside {
        let aside = clean_line(&aside.display().to_string());
        text.push_str(&format!(
            "An earlier repair was interrupted, and the store was used since. What it had saved is kept as {aside}.\n"
        ));
    }
    if let Some(copy) = copy {
        let copy = clean_line(&copy.display().to_string());
        text.push_str(&format!(
            "The damaged file is kept as {copy}. It may hold text of deleted chats: remove it when you no longer need it.\n"
        ));
    }
    text
}

fn repaired_json(repaired: &Repaired) -> String {
    let damaged = repaired.damaged.iter();
    let damaged: Vec<Value> = damaged
        .map(|chat| json!({"id": chat.id, "title": chat.title, "saved": chat.saved, "lost": chat.lost}))
        .collect();
    let copy = repaired.copy.as_ref().map(|copy| copy.display().to_string());
    let aside = repaired.aside.as_ref().map(|aside| aside.display().to_string());
    let object = json!({"repaired": true, "chats": repaired.chats, "facts": repaired.facts, "damaged": damaged,
        "copy": copy, "aside": aside});
    format!("{object}\n")
}

fn print(text: &str) -> Result<(), Failure> {
    output::print(domain::visible_text(text).as_bytes())
}

/// One line on a terminal that counts the chats.
struct Progress {
    verb: &'static str,
    is_shown: bool,
}

impl Progress {
    fn new(verb: &'static str, quiet: bool) -> Self {
        Self { verb, is_shown: !quiet && std::io::stderr().is_terminal() }
    }

    fn show(&mut self, done: u64, total: u64) {
        if self.is_shown && (done == total || done.is_multiple_of(16)) {
            output::note_part(&format!("\r{} chat {done} of {total}", self.verb));
        }
    }

    fn clear(&self) {
        if self.is_shown {
            output::note_part("\r\u{1b}[K");
        }
    }
}
