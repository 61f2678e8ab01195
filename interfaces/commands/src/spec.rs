//! `dragoman spec check`: reports the problems of an API specification, like a linter. Also reads specifications for other commands.
//!
//! Invariants: a specification reaches only files in its own folder, and the network only if asked; a reference reaches
//! neither this machine nor a private network, unless the specification itself came from that server.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use apiui::problem::{Problem, ProblemLocation, Severity};
use apiui::read::{LIMIT_BYTES, Reading, Unusable, read_bytes};
use domain::{CancellationToken, Failure, visible_json, visible_line};
use platform::project_files;
use serde_json::json;
use tools::web::fetch::Fetcher;

use crate::assistant::Assistant;

/// How long a fetch may take.
const FETCH: Duration = Duration::from_secs(60);

/// Prints the report. `false`: nothing can be generated from the specification.
pub fn check(
    assistant: &dyn Assistant,
    place: &str,
    fetch_refs: bool,
    as_json: bool,
) -> Result<bool, Failure> {
    let bytes = bytes_of(place)?;
    let read = read(&bytes, place, fetch_refs);
    let problems: &[Problem] = match &read {
        Ok(reading) => &reading.warnings,
        Err(unusable) => &unusable.problems,
    };
    let assumptions: &[String] = read.as_ref().map_or(&[], |reading| &reading.spec.assumptions);
    let mut lines = Vec::new();
    if as_json {
        let report = json!({"usable": read.is_ok(), "problems": problems, "assumptions": assumptions});
        lines.push(visible_json(&format!("{report:#}")).into_owned());
    } else {
        lines.extend(problems.iter().map(|problem| line(place, problem)));
        let note = |text: &String| visible_line(&format!("{place}: note: {text}")).into_owned();
        lines.extend(assumptions.iter().map(note));
        if let Ok(reading) = &read {
            let count = reading.spec.operation_count();
            let place = visible_line(place);
            lines.push(format!("{place}: usable, {count} operation{}.", if count == 1 { "" } else { "s" }));
        }
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assistant.print(&text)?;
    Ok(read.is_ok())
}

/// `file:line:column: error: …`, or with a JSON pointer in place of line and column.
pub(crate) fn line(place: &str, problem: &Problem) -> String {
    let severity = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let at = match &problem.place {
        ProblemLocation::Document => place.to_owned(),
        ProblemLocation::Position { line, column } => format!("{place}:{line}:{column}"),
        ProblemLocation::Pointer { pointer, file } => {
            format!("{}#{pointer}", file.as_deref().unwrap_or(place))
        }
    };
    visible_line(&format!("{at}: {severity}: {} {}", problem.message, problem.advice)).into_owned()
}

/// Reads a file, an address, or stdin (`-`). Longer input is cut just above the limit, so that the reader rejects it.
pub fn bytes_of(place: &str) -> Result<Vec<u8>, Failure> {
    if place == "-" {
        return limited(std::io::stdin().lock(), "stdin").map_err(Failure::user);
    }
    if is_address(place) {
        return fetched(place).map_err(Failure::user);
    }
    file(place)
        .map_err(|message| Failure::user(message).hint("Give a file, an http(s) address, or - for stdin."))
}

pub(crate) fn read(bytes: &[u8], place: &str, fetch_refs: bool) -> Result<Reading, Unusable> {
    let mut load = |location: &str| match is_address(location) {
        false if is_address(place) => Err(format!("{location} is not on the server of the specification.")),
        false => file_beside(place, location),
        true if fetch_refs => fetched_reference(place, location),
        true => Err(format!("{location} is on the network. Add --fetch-refs to fetch it.")),
    };
    let location = (place != "-").then_some(place);
    read_bytes(bytes, location, Some(&mut load))
}

pub fn is_address(place: &str) -> bool {
    let lower = place.get(..8).unwrap_or(place).to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

fn file(place: &str) -> Result<Vec<u8>, String> {
    let read_error = |error: std::io::Error| format!("{place} cannot be read: {error}.");
    // A device or a pipe might never end.
    if !std::fs::metadata(Path::new(place)).map_err(read_error)?.is_file() {
        return Err(format!("{place} is not a file."));
    }
    limited(std::fs::File::open(place).map_err(read_error)?, place)
}

/// A file that the specification names: in its folder or below, also when links are followed.
fn file_beside(place: &str, location: &str) -> Result<Vec<u8>, String> {
    let read = || {
        let place = if place == "-" { Path::new("./-") } else { Path::new(place) };
        let folder = std::path::absolute(place)?.parent().map(Path::to_owned).unwrap_or_default();
        project_files::read_beneath(&folder, &std::path::absolute(location)?, LIMIT_BYTES as u64)
    };
    read().map_err(|error| format!("{location} cannot be read: {error}."))
}

fn limited(input: impl Read, place: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = input.take(LIMIT_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| format!("{place} cannot be read: {error}."))
}

/// The user named the address, so it may be in a private network; where it redirects to may not.
fn fetched(address: &str) -> Result<Vec<u8>, String> {
    fetch(address, &Fetcher::at(address, LIMIT_BYTES + 1, FETCH))
}

/// The specification named the address.
fn fetched_reference(place: &str, address: &str) -> Result<Vec<u8>, String> {
    let origin = |text: &str| reqwest::Url::parse(text).ok().map(|url| url.origin());
    let is_same = is_address(place) && origin(place).is_some() && origin(place) == origin(address);
    let host = reqwest::Url::parse(place).ok().and_then(|url| url.host_str().map(str::to_owned));
    let hosts = host.filter(|_| is_same).into_iter().collect();
    fetch(address, &Fetcher::new(hosts, LIMIT_BYTES + 1, FETCH))
}

fn fetch(address: &str, fetcher: &Fetcher) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("No runtime: {error}."))?;
    let fetched = runtime.block_on(fetcher.fetch(address, &CancellationToken::new()))?;
    Ok(fetched.bytes)
}
