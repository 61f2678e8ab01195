//! One model call without tools, session or journal item: titles, compaction, and everything of the Copilot contract.
//!
//! Invariant: it ends by its deadline, whatever the model does.

use config::Settings;
use domain::command::{Completed, Completion};
use domain::item::Part;
use domain::model::{BlockKind, ModelEvent, Models, Prompt, PromptEntry, StopReason, Tokens};
use domain::{Failure, FailureKind};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::turn::instructions;

/// The model and the instructions that the settings have for a purpose, where the caller named none.
pub(crate) fn apply_settings(settings: &Settings, completion: &mut Completion) {
    let (model, text) = match completion.purpose.as_str() {
        "completion" => (&settings.completion_model, &settings.prompts.completion),
        "rewrite" => (&settings.rewrite_model, &settings.prompts.rewrite),
        _ => return,
    };
    if completion.model.is_none() {
        completion.model = model.clone();
    }
    if let Some(text) = instructions::own_text(text.as_ref()) {
        completion.system = text;
    }
}

pub(crate) async fn run(
    models: &dyn Models,
    completion: Completion,
    deltas: Option<mpsc::Sender<String>>,
) -> Result<Completed, Failure> {
    let deadline = completion.deadline;
    let call = stream(models, completion, deltas);
    match tokio::time::timeout(deadline, call).await {
        Ok(completed) => completed,
        Err(_) => Err(Failure::new(
            FailureKind::Provider,
            format!("The model gave no whole answer within {} s.", deadline.as_secs()),
        )),
    }
}

async fn stream(
    models: &dyn Models,
    completion: Completion,
    deltas: Option<mpsc::Sender<String>>,
) -> Result<Completed, Failure> {
    let name = completion.model.or_else(|| models.default_model()).ok_or_else(|| {
        Failure::auth("No model is configured.").hint("Add a provider to the configuration.")
    })?;
    if completion.no_local && name.starts_with("local/") {
        return Err(Failure::auth("Only the embedded model is there, and it is too small for this.")
            .hint("Add a provider to the configuration."));
    }
    let model = models.find(&name)?;
    let entries = completion.messages.into_iter().enumerate().map(|(at, text)| match at % 2 {
        0 => PromptEntry::User { parts: vec![Part::text(text)] },
        _ => PromptEntry::Agent { text, provider: None },
    });
    let prompt = Prompt {
        system: vec![completion.system.into()],
        entries: entries.collect(),
        output_schema: completion.output_schema,
        ..Prompt::default()
    };
    let mut stream = model.stream(prompt);
    let (mut text, mut tokens, mut texts) = (String::new(), Tokens::default(), Vec::new());
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::BlockStarted { block, kind: BlockKind::Text } => texts.push(block),
            ModelEvent::BlockDelta { block, text: delta } if texts.contains(&block) => {
                text.push_str(&delta);
                if let Some(deltas) = &deltas {
                    let _ = deltas.send(delta).await;
                }
            }
            ModelEvent::Usage(used) => tokens = used,
            ModelEvent::Ended {
                reason: StopReason::Refused { reason: why } | StopReason::Cut { message: why },
            } => return Err(Failure::provider(why)),
            ModelEvent::Ended { .. } => break,
            ModelEvent::Waiting { .. } | ModelEvent::Warning { .. } | ModelEvent::ImagesRefused => {}
            ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockDelta { .. }
            | ModelEvent::BlockEnded { .. } => {}
        }
    }
    let info = model.info();
    let cost = info.price.map(|price| price.of(&tokens));
    Ok(Completed { text, model: info.id, tokens, cost })
}
