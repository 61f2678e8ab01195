//! `dragoman doctor`: the report, and whether the default model answers.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use config::{Environment, Inputs};
use domain::model::{Models, PromptEntry};
use domain::{Failure, ModelEvent, Part, Prompt, visible_json, visible_text};
use futures_util::StreamExt;
use providers::ProviderDeps;

use crate::agents;
use crate::doctor::{self, CheckState, DoctorContext, Report};
use crate::lifetime;
use crate::models::AllModels;
use crate::workspaces;

/// The default model must begin to answer within this; an embedded one reads its file first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn run(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let inputs = Inputs { workspace_roots: crate::working_folder::current_folder(), ..Inputs::default() };
    let resolved = config::resolve(&environment, &inputs);
    let mut answers = false;
    let ran = lifetime::run(async {
        let deps = ProviderDeps::new(&environment);
        let mut configured = providers::configured(&resolved, &deps);
        let problems = std::mem::take(&mut configured.problems).iter().map(ToString::to_string).collect();
        let agents = agents::to_list(&environment, &resolved);
        let models = AllModels::new(configured, &environment).with_agents(agents);
        workspaces::discover_where_needed(&models).await;
        let stored_keys = deps.credentials.providers();
        let context = DoctorContext {
            environment: &environment,
            resolved: &resolved,
            models: &models,
            stored_keys,
            problems,
            agent: models.agent_notice(),
        };
        let examined = async {
            let (mut report, answer) = tokio::join!(doctor::examine(&context), ask(&models));
            answers = answer.is_ok();
            add_answer(&mut report, answer);
            report
        };
        let Some(report) = lifetime::until_signal(examined).await else { return Ok(()) };
        let text = if json { format!("{:#}", report.json()) } else { report.text() };
        let text = if json { visible_json(&text) } else { visible_text(&text) };
        crate::output::print_line(&resolved.redactor.redact(&text))
    });
    if answers { ran } else { ExitCode::FAILURE }
}

/// One word of the default model: the only proof that it can answer.
async fn ask(models: &AllModels) -> Result<Duration, Failure> {
    let Some(name) = models.default_model() else {
        return Err(Failure::auth("There is no model to ask."));
    };
    let model = models.find(&name)?;
    let question = "Answer with the single word: ok".to_owned();
    let prompt = Prompt {
        entries: vec![PromptEntry::User { parts: vec![Part::text(question)] }],
        max_output: Some(16),
        ..Prompt::default()
    };
    let since = Instant::now();
    let first = async {
        let mut stream = model.stream(prompt);
        while let Some(event) = stream.next().await {
            match event? {
                ModelEvent::BlockDelta { .. } | ModelEvent::Ended { .. } => return Ok(since.elapsed()),
                ModelEvent::Waiting { .. }
                | ModelEvent::Warning { .. }
                | ModelEvent::ImagesRefused
                | ModelEvent::BlockStarted { .. }
                | ModelEvent::BlockEnded { .. }
                | ModelEvent::Usage(_) => {}
            }
        }
        Err(Failure::provider(format!("{name} gave no answer.")))
    };
    let slow = || {
        Err(Failure::provider(format!("{name} did not answer within {} seconds.", ANSWER_TIMEOUT.as_secs())))
    };
    tokio::time::timeout(ANSWER_TIMEOUT, first).await.unwrap_or_else(|_| slow())
}

fn add_answer(report: &mut Report, answer: Result<Duration, Failure>) {
    match answer {
        Ok(time) => {
            let text = format!("It begins to answer after {} ms.", time.as_millis());
            report.add("answer of the default model", CheckState::Good, text, None);
        }
        Err(failure) => {
            let fix = failure.hint.or_else(|| Some("The entries above say what to set.".to_owned()));
            report.add("answer of the default model", CheckState::Broken, failure.message, fix);
        }
    }
}
