//! `dragoman generate`: makes a Vite project, one JSX module or one page of a specification. A model is asked only for wishes that
//! are not understood without one, and for `--improve`.
//!
//! Invariant: existing files are never overwritten without `--overwrite`, but for the generated part of a project that was
//! made here.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use apiui::check::{PageOptions, html_page};
use apiui::plan::{FixedHeader, Options, Plan, is_address, plan};
use apiui::print::print_whole;
use domain::{Failure, visible_line, visible_text};
use serde_json::json;

use crate::assistant::Assistant;
use crate::generated_project::{KeptOptions, Project};
use crate::options::{GenerateOptions, write_failure};
use crate::{spec, wishes};

/// React's production build, if `make` included it.
#[cfg(react_bundle)]
pub const REACT: Option<&str> = Some(include_str!(env!("DRAGOMAN_REACT_BUNDLE")));
#[cfg(not(react_bundle))]
pub const REACT: Option<&str> = None;

/// Larger documents show their progress.
const LARGE: usize = 1 << 20;

/// Writes the interface and tells what was made.
pub fn generate(assistant: &dyn Assistant, arguments: &GenerateOptions) -> Result<(), Failure> {
    let react = if arguments.html { Some(REACT.ok_or_else(no_react)?) } else { None };
    let bytes = spec::bytes_of(&arguments.spec)?;
    let progress = Progress { assistant, shown: bytes.len() >= LARGE && std::io::stderr().is_terminal() };
    progress.show(0, "reading");
    let mut reading = spec::read(&bytes, &arguments.spec, arguments.fetch_refs).map_err(|unusable| {
        let lines = unusable.problems.iter().take(20).map(|problem| spec::line(&arguments.spec, problem));
        Failure::user(lines.collect::<Vec<_>>().join("\n"))
    })?;
    progress.show(2, "planning");
    let is_project = react.is_none() && !arguments.single_file;
    let mut project = is_project.then(|| project_at(arguments, &reading.spec.metadata.title)).transpose()?;
    let given = KeptOptions::of(arguments);
    let kept = project.as_mut().map_or(given.clone(), |project| project.merge_options(given));
    let mut plan = plan(&reading.spec, &plan_options(kept)?);
    let lost = project.as_ref().map(|project| wishes::apply_again(&mut plan, project));
    let edits = wishes::apply_new(assistant, &mut plan, &arguments.ask, arguments.improve)?;
    let mut new_wishes = arguments.ask.clone();
    new_wishes.extend(arguments.improve.then(|| wishes::IMPROVE.to_owned()));
    progress.show(3, "printing");
    // The heap of a large specification is in pieces, which the texts below would not fit into.
    let trim = if bytes.len() >= LARGE { platform::memory::trim } else { || {} };
    drop(bytes);
    trim();
    let output = Output { assistant, place: arguments.output.as_deref(), overwrites: arguments.overwrite };
    let written = match (project, react) {
        (Some(project), _) => {
            let files = apiui::project::files(&reading.spec, &plan);
            progress.show(4, "writing");
            project.write(files, &slug(&plan.title), &new_wishes, edits)
        }
        (None, react) => {
            drop(std::mem::take(&mut reading.spec));
            trim();
            match react {
                Some(react) => page(&plan, &print_whole(&plan), react, output),
                None => one_file(&print_whole(&plan), "App.jsx", output),
            }
        }
    };
    progress.end();
    let written = written?;
    for warning in &reading.warnings {
        assistant.note(&spec::line(&arguments.spec, warning));
    }
    tell(assistant, &plan, lost.iter().flatten(), &written);
    Ok(())
}

/// Says which wishes were lost, what was assumed, and what was made.
fn tell<'l>(assistant: &dyn Assistant, plan: &Plan, lost: impl Iterator<Item = &'l String>, written: &str) {
    for lost in lost {
        assistant.note(&format!("warning: {}", visible_line(lost)));
    }
    for assumption in &plan.assumptions {
        assistant.note(&format!("note: {}", visible_line(assumption)));
    }
    assistant.note(&format!("{}{}", visible_text(&apiui::describe(plan)), visible_text(written)));
}

fn plan_options(kept: KeptOptions) -> Result<Options, Failure> {
    let words = json!({
        "layout": kept.layout, "includeAuth": !kept.no_auth, "pagination": !kept.no_pagination,
    });
    let mut options = Options::from_host(kept.theme.as_deref(), Some(&words));
    options.server = kept.server.as_deref().map(server_address).transpose()?;
    options.title = kept.title;
    options.headers = kept.header.iter().map(|text| header(text)).collect::<Result<_, _>>()?;
    Ok(options)
}

fn server_address(text: &str) -> Result<String, Failure> {
    let url = text.trim().trim_end_matches('/');
    // A path to the root of the page's own server has nothing before its slash.
    let is_root = text.trim() == "/";
    if is_root || !url.is_empty() && is_address(url) {
        return Ok(url.to_owned());
    }
    Err(Failure::user(format!("“{}” is not an address that a page can call.", visible_line(text)))
        .hint("Write --server https://api.example.com/v1, or a path such as /api on the page's own server."))
}

fn header(text: &str) -> Result<FixedHeader, Failure> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
    };
    match text.split_once(':') {
        Some((name, value)) if is_name(name.trim()) && !value.contains(char::is_control) => {
            Ok(FixedHeader { name: name.trim().to_owned(), text: value.trim().to_owned() })
        }
        _ => Err(Failure::user(format!("“{}” is not a header.", visible_line(text)))
            .hint("Write --header \"X-Tenant: 7\".")),
    }
}

fn no_react() -> Failure {
    Failure::config("This dragoman was built without React's bundle, which --html puts into the page.").hint(
        "Build it with `make` (it fetches React by the lock file; node and npm are needed), or leave --html out for a \
         Vite project.",
    )
}

fn page(plan: &Plan, code: &str, react: &str, output: Output) -> Result<String, Failure> {
    let flows = plan.schemes.iter().flat_map(|scheme| &scheme.flows);
    let options = PageOptions {
        title: plan.title.clone(),
        language: "en".to_owned(),
        token_urls: flows.map(|flow| flow.token_url.clone()).collect(),
    };
    let page = html_page(code, react, &options).map_err(|refusals| {
        let first = refusals.first().map(ToString::to_string).unwrap_or_default();
        Failure::internal(format!("The generated code did not pass our own check: {first}"))
            .hint("Please report the specification.")
    })?;
    one_file(&page, "index.html", output)
}

/// Where a single file goes.
#[derive(Clone, Copy)]
struct Output<'a> {
    assistant: &'a dyn Assistant,
    place: Option<&'a Path>,
    overwrites: bool,
}

/// Writes to stdout, to a file or into a folder.
fn one_file(text: &str, name: &str, output: Output) -> Result<String, Failure> {
    let (assistant, overwrites) = (output.assistant, output.overwrites);
    let Some(output) = output.place else {
        return assistant.print(text).map(|()| String::new());
    };
    let is_file = output.extension().is_some() && !output.is_dir();
    let path = if is_file { output.to_owned() } else { output.join(name) };
    write(&path, text, overwrites)?;
    Ok(format!(" It is in {}.", path.display()))
}

/// The project's folder: the one that is named, or one with the API's title.
fn project_at(arguments: &GenerateOptions, title: &str) -> Result<Project, Failure> {
    let title = arguments.title.as_deref().unwrap_or(title);
    let folder = arguments.output.clone().unwrap_or_else(|| PathBuf::from(slug(title)));
    Project::open(folder, arguments.overwrite)
}

/// A folder's and package's name.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let joined: String = words.collect::<Vec<_>>().join("-").to_ascii_lowercase().chars().take(40).collect();
    format!("{}-ui", if joined.is_empty() { "api" } else { joined.trim_end_matches('-') })
}

fn write(path: &Path, text: &str, overwrites: bool) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| write_failure(folder, &error))?;
    }
    if overwrites {
        return replace(path, text).map_err(|error| write_failure(path, &error));
    }
    let refused = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Failure::user(format!("{} is there already.", path.display()))
                .hint("Choose another place with -o, or add --overwrite to replace it.");
        }
        write_failure(path, &error)
    };
    let mut file = std::fs::File::create_new(path).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(|error| write_failure(path, &error))
}

/// Writes a temporary file and renames it, so the old file stays until the new one is complete. A link is replaced, not followed.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let written = std::fs::File::create_new(&fresh).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| platform::replace_file(&fresh, path));
    if replaced.is_err() {
        // It may not be there; what failed is reported.
        let _ = std::fs::remove_file(&fresh);
    }
    replaced
}

/// A bar of four steps on a terminal.
struct Progress<'a> {
    assistant: &'a dyn Assistant,
    shown: bool,
}

impl Progress<'_> {
    fn show(&self, step: usize, name: &str) {
        if self.shown {
            self.assistant.note_part(&format!("\r[{:<20}] {name:<10}", "#".repeat(step * 5)));
        }
    }

    fn end(&self) {
        if self.shown {
            self.assistant.note_part(&format!("\r{:40}\r", ""));
        }
    }
}
