//! One model call without tools, session or journal item: titles, compaction, and everything of the Copilot contract.
//!
//! Invariant: it ends by its deadline, whatever the model does.

use config::Settings;
use domain::command::{Completed, Completion};
use domain::item::Part;
use domain::model::{BlockKind, ModelEvent, ModelStream, Models, Prompt, PromptEntry, StopReason, Tokens};
use domain::tool::WebAnswer;
use domain::{Failure, FailureKind};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::spending;
use crate::turn::instructions;

/// Pages that an answer is said to cite.
const MOST_PAGES: usize = 20;

/// The model and the instructions that the settings have for a purpose, where the caller named none.
pub(crate) fn apply_settings(settings: &Settings, completion: &mut Completion) {
    let (model, text) = match completion.purpose.as_str() {
        "completion" => (settings.completion_model.as_ref(), &settings.prompts.completion),
        "nextEdit" => {
            let model = settings.next_edit_model.as_ref().or(settings.completion_model.as_ref());
            (model, &settings.prompts.next_edit)
        }
        "rewrite" => (settings.rewrite_model.as_ref(), &settings.prompts.rewrite),
        _ => return,
    };
    if completion.model.is_none() {
        completion.model = model.cloned();
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
    let info = model.info();
    let reservation = spending::reserve(&completion.gate, &info, &prompt).await?;
    let Collected { answer, tokens, end } = collect(model.stream(prompt), deltas).await;
    let cost = info.price.map(|price| price.of(&tokens));
    reservation.settle(cost);
    end?;
    Ok(Completed { text: answer.text, model: info.id, tokens, cost })
}

/// An answer as far as it came, and how it ended.
pub(crate) struct Collected {
    pub(crate) answer: WebAnswer,
    pub(crate) tokens: Tokens,
    pub(crate) end: Result<(), Failure>,
}

/// Reads an answer to its end: the text and the pages that it cites.
pub(crate) async fn collect(mut stream: ModelStream, deltas: Option<mpsc::Sender<String>>) -> Collected {
    let (mut answer, mut tokens, mut texts) = (WebAnswer::default(), Tokens::default(), Vec::new());
    let mut end = Ok(());
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::BlockStarted { block, kind: BlockKind::Text }) => texts.push(block),
            Ok(ModelEvent::BlockStarted { kind: BlockKind::Citation { title, url }, .. }) => {
                // A page that several sentences cite is named once.
                if answer.pages.len() < MOST_PAGES && !answer.pages.iter().any(|(_, known)| *known == url) {
                    answer.pages.push((title, url));
                }
            }
            Ok(ModelEvent::BlockDelta { block, text }) if texts.contains(&block) => {
                answer.text.push_str(&text);
                if let Some(deltas) = &deltas {
                    let _ = deltas.send(text).await;
                }
            }
            Ok(ModelEvent::Usage(used)) => tokens = used,
            Ok(ModelEvent::Ended { reason }) => {
                if let StopReason::Refused { reason: why } | StopReason::Cut { message: why } = reason {
                    end = Err(Failure::provider(why));
                }
                break;
            }
            Ok(ModelEvent::Waiting { .. } | ModelEvent::Warning { .. } | ModelEvent::ImagesRefused) => {}
            Ok(
                ModelEvent::BlockStarted { .. }
                | ModelEvent::BlockDelta { .. }
                | ModelEvent::BlockEnded { .. },
            ) => {}
            Err(failure) => {
                end = Err(failure);
                break;
            }
        }
    }
    Collected { answer, tokens, end }
}
