//! Jobs in the background, as clients list them.

use serde::{Deserialize, Serialize};

use super::ChatKey;
use super::notifications::Notification;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JobParams {
    pub job_id: Option<String>,
}

/// The result of `jobs/list`, and what `jobs/updated` carries.
#[derive(Debug, Serialize)]
pub(crate) struct JobList {
    pub jobs: Vec<JobSummary>,
}

impl Notification for JobList {
    const NAME: &'static str = "jobs/updated";
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobSummary {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub status: &'static str,
    /// The command.
    pub label: String,
    /// What it is for.
    pub summary: Option<String>,
    pub started_at: String,
    pub elapsed: String,
    pub exit_code: Option<i32>,
    pub chat_id: ChatKey,
    pub chat_label: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct KillResult {
    pub killed: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobOutputResult {
    pub lines: Vec<OutputLine>,
    /// Null for a job that is not there.
    pub status: Option<&'static str>,
    pub exit_code: Option<i32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct OutputLine {
    pub text: String,
    /// Both streams are one, in the order they were written.
    pub stream: &'static str,
}
