//! What a command printed and left behind, for the model. Starts nothing.

use std::path::PathBuf;
use std::time::Duration;

use domain::Part;
use domain::job::GOES_ON;
use domain::tool::ToolResult;
use platform::project_files;
use process::End;

use crate::jobs::{EndedCommand, Left};

/// Takes back what a command made that nobody approved and that other programs would run; names it for the model. While a
/// job ran, its user may have made the same file, so it is put aside then.
pub(super) fn take_back(missing: &[PathBuf], is_job: bool) -> Option<String> {
    let mut taken = Vec::new();
    for path in missing.iter().filter(|path| path.symlink_metadata().is_ok()) {
        if is_job {
            taken.extend(project_files::put_aside(path).ok().map(|aside| aside.display().to_string()));
        } else if project_files::remove_entry(path).is_ok() {
            taken.push(path.display().to_string());
        }
    }
    (!taken.is_empty()).then(|| project_files::taken_back_sentence(&taken, is_job))
}

/// The result of a call whose command has left it.
pub(super) fn describe_result(left: &Left, output: &str, time: Duration) -> ToolResult {
    let output = output.trim_end();
    let output = if output.is_empty() { "(no output)" } else { output };
    let (error, notice) = match left {
        Left::Ended(EndedCommand { end: End::Exited(0), .. }) => (false, None),
        Left::Ended(EndedCommand { end: End::Exited(code), .. }) => {
            (true, Some(format!("[exit code {code}]")))
        }
        Left::Ended(EndedCommand { end: End::Signalled(signal), .. }) => {
            (true, Some(format!("[ended by signal {signal}]")))
        }
        Left::Ended(_) | Left::Stopped => (true, Some("[stopped by the user]".to_owned())),
        Left::GoesOn { id, is_quiet } => (false, Some(describe_job(id, *is_quiet, time))),
        Left::EndedAtLimit(running) => {
            let why = running.map_or(String::new(), |running| {
                format!(", because {running} jobs run already: end one with background_job")
            });
            (true, Some(format!("[ended after {} ms{why}]", time.as_millis())))
        }
    };
    let mut text = output.to_owned();
    if let Some(notice) = notice {
        text = format!("{text}\n{notice}");
    }
    let mut result = ToolResult { error, ..ToolResult::text(text) };
    if let Left::Ended(ended) = left {
        result.parts.extend(ended.notes.iter().cloned().map(Part::text));
    }
    result
}

/// How the model goes on with a command that has become a job.
fn describe_job(id: &str, is_quiet: bool, time: Duration) -> String {
    let call = |action: &str, rest: &str| format!("{{\"action\": \"{action}\", \"job_id\": \"{id}\"{rest}}}");
    let read = call("read_output", "");
    if is_quiet {
        let write = call("write", ", \"input\": \"y\"");
        return format!(
            "[silent, perhaps waiting for input; {GOES_ON}{id}. Call background_job with {write} to type a line, {read} \
             to read on, {} to end it]",
            call("kill", "")
        );
    }
    let wait = call("wait", ", \"timeout\": 600000");
    format!(
        "[still running after {} s; {GOES_ON}{id}. Call background_job with {wait} to wait for its end, {read} to read \
         on, {} to end it]",
        time.as_secs().max(1),
        call("kill", "")
    )
}
