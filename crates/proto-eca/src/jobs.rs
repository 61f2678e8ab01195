//! Commands that run in the background: `jobs/list`, `jobs/kill`, `jobs/readOutput`, `jobs/updated`.
//!
//! Must not know what a job runs.

use std::time::Duration;

use domain::job::{Job, JobStatus};
use domain::{Command, Failure};

use crate::reply::Reply;
use crate::server::Server;
use crate::wire::Empty;
use crate::wire::jobs::{JobList, JobOutputResult, JobParams, JobSummary, KillResult, OutputLine};
use crate::wire::requests::{JobsKill, JobsList, JobsReadOutput};

pub(crate) async fn list(server: &mut Server, _params: Empty, reply: Reply<JobsList>) {
    let done = |server: &mut Server, jobs: Result<Vec<Job>, Failure>| {
        let jobs = jobs.map(|jobs| job_list(server, jobs));
        server.respond(reply, jobs);
    };
    server.engine.call(|reply| Command::Jobs { reply }, done).await;
}

pub(crate) async fn kill(server: &mut Server, params: JobParams, reply: Reply<JobsKill>) {
    let Some(id) = params.job_id else { return reply.missing("jobId") };
    let done = |server: &mut Server, killed: Result<bool, Failure>| {
        // A job that is gone was not killed.
        server.respond(reply, Ok(KillResult { killed: killed.unwrap_or(false) }));
    };
    server.engine.call(|reply| Command::StopJob { id, reply }, done).await;
}

pub(crate) async fn read_output(server: &mut Server, params: JobParams, reply: Reply<JobsReadOutput>) {
    let Some(id) = params.job_id else { return reply.missing("jobId") };
    let done = |server: &mut Server, output: Result<domain::job::JobOutput, Failure>| {
        let line = |text| OutputLine { text, stream: "stdout" };
        // A job that is gone has no output.
        let output = output.map_or_else(
            |_| JobOutputResult { lines: Vec::new(), status: None, exit_code: None },
            |output| JobOutputResult {
                lines: output.lines.into_iter().map(line).collect(),
                status: Some(status(output.status)),
                exit_code: output.exit_code,
            },
        );
        server.respond(reply, Ok(output));
    };
    server.engine.call(|reply| Command::JobOutput { id, reply }, done).await;
}

/// Sends the list anew.
pub(crate) fn update(server: &mut Server) {
    let Some(commands) = server.engine.commands() else { return };
    server.engine.later(
        async move { commands.call(|reply| Command::Jobs { reply }).await },
        |server, jobs| {
            let list = job_list(server, jobs.unwrap_or_default());
            server.notify(&list);
        },
    );
}

fn job_list(server: &Server, jobs: Vec<Job>) -> JobList {
    JobList { jobs: jobs.into_iter().map(|job| summary(server, job)).collect() }
}

fn summary(server: &Server, job: Job) -> JobSummary {
    let started =
        i64::try_from(job.started_at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    JobSummary {
        id: job.id,
        kind: "shell",
        status: status(job.status),
        label: job.command,
        summary: Some(job.label).filter(|label| !label.is_empty()),
        started_at: started.map(|at| at.to_string()).unwrap_or_default(),
        elapsed: elapsed(job.elapsed),
        exit_code: job.exit_code,
        chat_id: server.chat_key(&job.session),
        chat_label: job.chat_title.unwrap_or_else(|| job.session.to_string()),
    }
}

fn status(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Running => "running",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Killed => "killed",
    }
}

fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let shown = [0, 59, 60, 323, 3_600, 7_384].map(|seconds| elapsed(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0s", "59s", "1m0s", "5m23s", "1h0m", "2h3m"]);
    }
}
