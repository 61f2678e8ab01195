//! `/jobs`: the commands that run in the background of this workspace, what one has printed, its end.
//!
//! Must not know what a job runs.

use std::time::Duration;

use domain::job::{Job, JobStatus};
use domain::{Failure, visible_line};

use crate::session::Session;

/// Lines of a job's output that are shown.
const SHOWN_LINES: usize = 40;
const HINT: &str = "`/jobs job-1` shows what job-1 has printed, `/jobs stop job-1` ends it.";

pub(super) async fn answer(session: &Session, arguments: &[String]) -> Result<String, Failure> {
    match arguments {
        [] => Ok(list(session)),
        [action, id] if ["stop", "kill", "end"].contains(&action.as_str()) => stop(session, id).await,
        [id] => show(session, id),
        [..] => Err(Failure::user("`/jobs` takes the name of a job, or `stop` and a name.").hint(HINT)),
    }
}

fn list(session: &Session) -> String {
    let mut jobs: Vec<Job> = session.sources().flat_map(|source| source.jobs()).collect();
    // This chat's own first, and what runs before what has ended.
    jobs.sort_by_key(|job| (job.session != session.id, job.status != JobStatus::Running, job.started_at));
    if jobs.is_empty() {
        return "No command runs in the background.".to_owned();
    }
    let lines: Vec<String> = jobs.iter().map(|job| describe(job, session)).collect();
    format!("{}\n\n{HINT}", lines.join("\n"))
}

fn describe(job: &Job, session: &Session) -> String {
    let state = match (job.status, job.exit_code) {
        (JobStatus::Running, _) => format!("running for {}", short(job.elapsed)),
        (JobStatus::Completed, _) => "completed".to_owned(),
        (JobStatus::Killed, _) => "ended by you or the model".to_owned(),
        (JobStatus::Failed, Some(code)) => format!("failed with exit code {code}"),
        (JobStatus::Failed, None) => "failed".to_owned(),
    };
    let place = if job.session == session.id { "" } else { ", in another chat" };
    format!("- {} ({}), {state}{place}: `{}`", job.id, visible_line(&job.label), visible_line(&job.command))
}

fn show(session: &Session, id: &str) -> Result<String, Failure> {
    let output = session.sources().find_map(|source| source.job_output(id)).ok_or_else(|| unknown(id))?;
    let from = output.lines.len().saturating_sub(SHOWN_LINES);
    let lines: Vec<String> =
        output.lines[from..].iter().map(|line| visible_line(line).into_owned()).collect();
    if lines.is_empty() {
        return Ok(format!("{id} has printed nothing yet."));
    }
    // No fence inside can end it.
    Ok(format!("The last lines of {id}:\n\n~~~~~~text\n{}\n~~~~~~", lines.join("\n")))
}

async fn stop(session: &Session, id: &str) -> Result<String, Failure> {
    for source in session.sources() {
        if let Some(was_running) = source.stop_job(id).await {
            let text = if was_running { "was ended" } else { "had ended already" };
            return Ok(format!("{id} {text}."));
        }
    }
    Err(unknown(id))
}

fn unknown(id: &str) -> Failure {
    Failure::user(format!("There is no job {}.", visible_line(id))).hint("`/jobs` lists the jobs.")
}

fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
