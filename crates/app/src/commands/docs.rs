//! `dragoman docs`: the documentation of this version in the terminal, from the program itself.
//!
//! Owns the embedded pages (`build.rs` packs them) and how a page is found. Invariant: a page is text of this repository; the
//! program reads no file for it.

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use config::Environment;
use domain::{Failure, visible_line};
use serde_json::{Value, json};

use super::{failed, print_bytes};
use crate::{lifetime, output};

pub(crate) const HELP: &str = "On a terminal a page opens in $PAGER, or less; elsewhere it is printed.

Example:
  dragoman docs                  the list of pages
  dragoman docs approvals        one page
  dragoman docs sandbox | grep -n network";

/// Names and texts, each followed by a zero byte, deflated. Empty where the build found no pages.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/docs.deflate"));
include!(concat!(env!("OUT_DIR"), "/docs_names.rs"));
/// The program can write this page itself.
const CONFIGURATION: &str = "configuration";
/// Pages that an unknown name is answered with.
const MOST_SUGGESTIONS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct DocsArguments {
    /// The page; without it: list the pages.
    #[arg(value_parser = PageParser, hide_possible_values = true)]
    page: Option<String>,
    /// For scripts.
    #[arg(long)]
    json: bool,
}

struct Page {
    name: String,
    text: String,
}

impl Page {
    fn title(&self) -> &str {
        self.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(&self.name)
    }
}

pub(crate) fn run(arguments: &DocsArguments) -> ExitCode {
    let pages = pages();
    if pages.is_empty() {
        return failed(&Failure::config("This dragoman was built without its documentation.").hint(
            "The pages are in the folder docs of its source; `make build` there builds a program with them.",
        ));
    }
    let Some(name) = &arguments.page else { return list(&pages, arguments.json) };
    let Some(page) = find(&pages, name) else {
        failed(&unknown(&pages, name));
        return ExitCode::from(2);
    };
    if arguments.json {
        let value = json!({"name": page.name, "title": page.title(), "text": page.text});
        return print_bytes(format!("{value:#}\n").as_bytes());
    }
    if output::is_terminal() && is_paged(&page.text) {
        return ExitCode::SUCCESS;
    }
    print_bytes(page.text.as_bytes())
}

/// All pages, by name.
fn pages() -> Vec<Page> {
    let mut text = String::new();
    if flate2::read::DeflateDecoder::new(PACKED).read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    let mut parts = text.split('\0');
    let mut pages = Vec::new();
    while let (Some(name), Some(text)) = (parts.next(), parts.next()) {
        pages.push(Page { name: name.to_owned(), text: text.to_owned() });
    }
    if !pages.is_empty() {
        pages.push(Page { name: CONFIGURATION.to_owned(), text: config::configuration_page() });
    }
    pages.sort_by(|a, b| (a.name.contains('/'), &a.name).cmp(&(b.name.contains('/'), &b.name)));
    pages
}

fn list(pages: &[Page], as_json: bool) -> ExitCode {
    if as_json {
        let values: Vec<Value> =
            pages.iter().map(|page| json!({"name": page.name, "title": page.title()})).collect();
        return print_bytes(format!("{:#}\n", json!({"pages": values})).as_bytes());
    }
    let lines: String = pages.iter().map(|page| format!("{:<26} {}\n", page.name, page.title())).collect();
    print_bytes(format!("{lines}\n`dragoman docs PAGE` shows one.\n").as_bytes())
}

/// The page of a name as users write it: `approvals`, its file, or `acp` for `protocols/acp`.
fn find<'p>(pages: &'p [Page], name: &str) -> Option<&'p Page> {
    let name = plain_name(name);
    let named = |page: &&Page| page.name.to_lowercase() == name;
    let last = |page: &&Page| page.name.rsplit('/').next() == Some(name.as_str());
    pages.iter().find(named).or_else(|| pages.iter().find(last))
}

fn plain_name(name: &str) -> String {
    let name = name.to_lowercase();
    let name = name.split('#').next().unwrap_or_default().trim_start_matches("./");
    let name = name.strip_prefix("docs/").unwrap_or(name);
    name.strip_suffix(".md").unwrap_or(name).to_owned()
}

fn unknown(pages: &[Page], name: &str) -> Failure {
    let wanted = plain_name(name);
    let names = || pages.iter().map(|page| page.name.as_str());
    let has_part = |name: &&str| !wanted.is_empty() && name.contains(&wanted);
    let mut near: Vec<&str> = config::nearest(&wanted, names()).into_iter().collect();
    near.extend(names().filter(has_part));
    // A word that is the name of nothing may be what a page is about.
    let count = |page: &Page| page.text.to_lowercase().matches(&wanted).count();
    let mut about: Vec<(usize, &str)> = match wanted.len() > 2 {
        true => pages
            .iter()
            .map(|page| (count(page), page.name.as_str()))
            .filter(|(count, _)| *count > 0)
            .collect(),
        false => Vec::new(),
    };
    about.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    near.extend(about.into_iter().map(|(_, name)| name));
    let mut unique: Vec<&str> = Vec::new();
    for name in near {
        if !unique.contains(&name) && unique.len() < MOST_SUGGESTIONS {
            unique.push(name);
        }
    }
    let failure = Failure::user(format!("There is no page `{}`.", visible_line(name)));
    match unique.is_empty() {
        true => failure.hint("`dragoman docs` lists the pages."),
        false => failure.hint(format!("Look at: {}. `dragoman docs` lists all pages.", unique.join(", "))),
    }
}

/// Shows the text in the user's pager. Returns false if no pager could be started.
fn is_paged(text: &str) -> bool {
    let environment = Environment::from_process();
    let pager = environment.var("PAGER").map(str::trim).filter(|pager| !pager.is_empty());
    let line = format!("{} \"$1\"", pager.unwrap_or("less -FRX"));
    let mut is_shown = false;
    let ran = lifetime::run(async {
        let Ok(mut file) = tempfile::Builder::new().prefix("dragoman-").suffix(".md").tempfile() else {
            return Ok(());
        };
        if file.write_all(text.as_bytes()).and_then(|()| file.flush()).is_err() {
            return Ok(());
        }
        let path = file.path().as_os_str().to_owned();
        let exit = process::foreground("sh", ["-c".into(), line.into(), "sh".into(), path]).await;
        is_shown = exit.is_ok_and(|exit| exit.success());
        Ok(())
    });
    ran == ExitCode::SUCCESS && is_shown
}

/// Takes any text, so that the command can answer with the nearest pages; shells complete the names.
#[derive(Clone)]
struct PageParser;

impl TypedValueParser for PageParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(NAMES.iter().map(|name| PossibleValue::new(*name))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_the_names_that_users_write() {
        let pages = pages();
        for (written, name) in [
            ("approvals", "approvals"),
            ("docs/approvals.md", "approvals"),
            ("APPROVALS.md#rules", "approvals"),
            ("readme", "README"),
            ("acp", "protocols/acp"),
            ("serve", "serve"),
            ("protocols/serve", "protocols/serve"),
            ("configuration", "configuration"),
            ("claude-code", "coming-from/claude-code"),
        ] {
            assert_eq!(find(&pages, written).map(|page| page.name.as_str()), Some(name), "{written}");
        }
        for (written, suggestion) in
            [("aprovals", "approvals"), ("window", "many-windows"), ("landlock", "sandbox")]
        {
            assert!(find(&pages, written).is_none(), "{written}");
            assert!(unknown(&pages, written).to_string().contains(suggestion), "{written}");
        }
        assert!(unknown(&pages, "qqqq").to_string().contains("`dragoman docs` lists"));
    }

    /// Each page of the repository, and each page that a text of the program names.
    #[test]
    fn every_page_is_there() {
        let pages = pages();
        let listed: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert!(listed.iter().all(|name| NAMES.contains(name)) && listed.len() == NAMES.len(), "{listed:?}");
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for folder in ["docs", "docs/protocols", "docs/coming-from"] {
            for entry in std::fs::read_dir(format!("{root}/{folder}")).unwrap().flatten() {
                let path = entry.path();
                if path.extension().is_none_or(|extension| extension != "md") {
                    continue;
                }
                let name = path.strip_prefix(root).unwrap().display().to_string();
                let page = find(&pages, &name).unwrap_or_else(|| panic!("{name} is not embedded"));
                assert!(page.text == std::fs::read_to_string(&path).unwrap(), "{name} differs");
                assert_ne!(page.title(), page.name, "{name} has no title");
            }
        }
        for (file, name) in named_in_texts(std::path::Path::new(&format!("{root}/crates"))) {
            assert!(find(&pages, &name).is_some(), "{file}: `dragoman docs {name}` is not a page");
        }
    }

    /// The words after `dragoman docs` in backticks, with the file that has them.
    fn named_in_texts(folder: &std::path::Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(named_in_texts(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let names = text.split("`dragoman docs ").skip(1);
                let names = names.filter_map(|rest| rest.split('`').next());
                let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || "-/".contains(c));
                found.extend(names.filter(is_name).map(|name| (path.display().to_string(), name.to_owned())));
            }
        }
        found
    }
}
