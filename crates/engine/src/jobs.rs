//! Commands about jobs in the background: the list, the output of one, its end.
//!
//! Must not know what a job runs. Invariant: each runs in a task of its own, so that the router never waits for one.

use std::sync::Arc;

use domain::tool::ToolSource;
use domain::{Command, Failure};
use session::refusal::refuse;

use crate::session::LiveSessions;

#[allow(clippy::wildcard_enum_match_arm, reason = "the router sends no other command here")]
pub(crate) async fn answer(sources: Vec<Arc<dyn ToolSource>>, live: LiveSessions, command: Command) {
    match command {
        Command::Jobs { reply } => {
            let mut jobs: Vec<_> = sources.iter().flat_map(|source| source.jobs()).collect();
            for job in &mut jobs {
                job.chat_title = live.title(&job.session);
            }
            let _ = reply.send(Ok(jobs));
        }
        Command::StopJob { id, reply } => {
            for source in &sources {
                if let Some(was_running) = source.stop_job(&id).await {
                    let _ = reply.send(Ok(was_running));
                    return;
                }
            }
            let _ = reply.send(Err(unknown(&id)));
        }
        Command::JobOutput { id, reply } => {
            let output = sources.iter().find_map(|source| source.job_output(&id));
            let _ = reply.send(output.ok_or_else(|| unknown(&id)));
        }
        other => refuse(other, Failure::internal("The engine does not take this command.")),
    }
}

fn unknown(id: &str) -> Failure {
    Failure::user(format!("There is no job {id}.")).hint("List the jobs to see which there are.")
}
