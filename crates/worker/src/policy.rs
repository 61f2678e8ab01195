//! What a task may do: the worker's own settings, which a task can only tighten.
//!
//! Invariant: no member of a task makes anything larger than the worker's settings have it.

use config::WorkerSettings;
use domain::Failure;
use serde::{Deserialize, Serialize};

/// The words of `--approve`.
pub const APPROVE_WORDS: [&str; 6] = ["none", "read", "edit", "network", "sandboxed", "all"];

/// What a submitter asks for.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub submodules: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lfs: bool,
}

impl Limits {
    /// What anybody with the database may have written.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// The settings of a worker that cannot be honored are named at its start.
pub(crate) fn check(settings: &WorkerSettings) -> Result<(), Failure> {
    if settings.repositories.is_empty() {
        return Err(Failure::config(
            "`worker.repositories` names no repository, so this worker would take no task.",
        )
        .hint("Name folders or addresses of git in your own config.json; see `dragoman docs scale`."));
    }
    match settings.approve.iter().find(|word| !APPROVE_WORDS.contains(&word.as_str())) {
        None => Ok(()),
        Some(word) => Err(Failure::config(format!("`worker.approve` has the unknown word `{word}`."))
            .hint("Use none, read, edit, network, sandboxed or all.")),
    }
}

/// The arguments of `dragoman run` for a task whose chat has cost so much already, and which may take so many seconds more. An
/// error says why it must not run.
pub(crate) fn arguments(
    settings: &WorkerSettings,
    limits: &Limits,
    spent: f64,
    seconds: f64,
) -> Result<Vec<String>, String> {
    let mut arguments = vec!["--timeout".to_owned(), seconds.to_string()];
    if let Some(cost) = smaller(settings.max_cost, limits.max_cost) {
        let left = cost - spent;
        if left <= 0.0 {
            return Err(format!("The task may cost ${cost:.2}, and that is spent."));
        }
        arguments.extend(["--max-cost".to_owned(), left.to_string()]);
    }
    let steps = [settings.max_steps, limits.max_steps].into_iter().flatten().min();
    if let Some(steps) = steps {
        arguments.extend(["--max-steps".to_owned(), steps.to_string()]);
    }
    for word in approved(&settings.approve, limits.approve.as_deref()) {
        arguments.extend(["--approve".to_owned(), word.to_owned()]);
    }
    for rule in &limits.deny {
        arguments.push(format!("--deny={rule}"));
    }
    Ok(arguments)
}

/// Seconds that one worker may take.
pub(crate) fn timeout(settings: &WorkerSettings, limits: &Limits) -> f64 {
    let own = settings.timeout_seconds as f64;
    limits.timeout_seconds.filter(|seconds| *seconds > 0.0).map_or(own, |asked| asked.min(own))
}

fn smaller(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What both approve.
fn approved(worker: &[String], task: Option<&[String]>) -> Vec<&'static str> {
    let approves = |words: &[String], word: &str| {
        words.iter().any(|known| known == word || known == "all" || (known == "edit" && word == "read"))
    };
    let by_both = |word: &&str| approves(worker, word) && task.is_none_or(|task| approves(task, word));
    ["read", "edit", "network", "sandboxed", "all"].into_iter().filter(by_both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> WorkerSettings {
        WorkerSettings {
            repositories: vec!["/srv".to_owned()],
            push: Vec::new(),
            approve: vec!["edit".to_owned()],
            max_cost: Some(2.0),
            max_steps: Some(10),
            timeout_seconds: 60,
            max_attempts: 5,
            submodules: false,
            large_files: false,
            retention_days: None,
        }
    }

    #[test]
    fn a_task_only_tightens() {
        let limits = Limits::parse;
        let cases = [
            ("{}", "--timeout 60 --max-cost 2 --max-steps 10 --approve read --approve edit"),
            (
                r#"{"maxCost": 50, "maxSteps": 5000, "timeoutSeconds": 1e9, "approve": ["all"]}"#,
                "--timeout 60 --max-cost 2 --max-steps 10 --approve read --approve edit",
            ),
            (
                r#"{"maxCost": 0.5, "maxSteps": 3, "timeoutSeconds": 7.5, "approve": ["read", "network"], "deny": ["shell_command"]}"#,
                "--timeout 7.5 --max-cost 0.5 --max-steps 3 --approve read --deny=shell_command",
            ),
            (
                r#"{"approve": ["none"], "timeoutSeconds": -1, "unknown": 1}"#,
                "--timeout 60 --max-cost 2 --max-steps 10",
            ),
        ];
        for (text, expected) in cases {
            let (settings, limits) = (settings(), limits(text));
            let arguments = arguments(&settings, &limits, 0.0, timeout(&settings, &limits));
            assert_eq!(arguments.map(|arguments| arguments.join(" ")), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_lost_workers_spent_counts() {
        let left = arguments(&settings(), &Limits::default(), 1.5, 60.0);
        assert!(left.is_ok_and(|arguments| arguments.join(" ").contains("--max-cost 0.5 ")));
        assert!(arguments(&settings(), &Limits::default(), 2.0, 60.0).is_err());
    }
}
