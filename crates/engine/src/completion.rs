//! One model call without tools, session or journal item: titles, compaction, and everything of the Copilot contract.
//!
//! Invariant: it ends by its deadline, whatever the model does.

use config::Settings;
use domain::command::{Completed, Completion};
use domain::item::Part;
use domain::middle::Middle;
use domain::model::{
    BlockKind, Model, ModelEvent, ModelInfo, ModelStream, Models, Price, Prompt, PromptEntry, StopReason,
    Tokens,
};
use domain::spending::Gate;
use domain::tool::WebAnswer;
use domain::{Failure, FailureKind};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::own_text::own_text;
use crate::paid_call;
use crate::session::Session;
use crate::spending;

/// Pages that an answer is said to cite.
const MOST_PAGES: usize = 20;
/// Tokens of a text that fills a middle.
const MOST_FILLED_TOKENS: u64 = 256;

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
    if let Some(text) = own_text(text.as_ref()) {
        completion.system = text;
        // Instructions of the user reach a model only in a chat.
        completion.middle = None;
    }
}

/// What a call has used as far as its provider reported it; known also where the call fails or is dropped.
#[derive(Default)]
pub(crate) struct Used {
    model: String,
    pub(crate) tokens: Tokens,
    price: Option<Price>,
}

impl Used {
    pub(crate) fn of(info: &ModelInfo) -> Self {
        Self { model: info.id.clone(), tokens: Tokens::default(), price: info.price }
    }

    /// US dollars.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.price.map(|price| price.of(&self.tokens))
    }

    /// Several calls for one purpose count as one.
    pub(crate) fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        (self.model, self.price) = (other.model, other.price);
    }

    /// Adds it to what a chat used; a call that failed only where its provider reported something.
    pub(crate) fn record(&self, session: &Session, purpose: &str, is_whole: bool) {
        if is_whole || self.tokens != Tokens::default() {
            spending::record_side_call(session, purpose, &self.model, self.tokens, self.cost());
        }
    }
}

pub(crate) async fn run(
    models: &dyn Models,
    completion: Completion,
    deltas: Option<mpsc::Sender<String>>,
    used: &mut Used,
) -> Result<Completed, Failure> {
    let deadline = completion.deadline;
    let call = stream(models, completion, deltas, used);
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
    used: &mut Used,
) -> Result<Completed, Failure> {
    let name = completion.model.or_else(|| models.default_model()).ok_or_else(|| {
        Failure::auth("No model is configured.").hint("Add a provider to the configuration.")
    })?;
    if completion.no_local && name.starts_with("local/") {
        return Err(Failure::auth("Only the embedded model is there, and it is too small for this.")
            .hint("Add a provider to the configuration."));
    }
    let model = models.find(&name)?;
    if let Some(middle) = completion.middle.filter(|_| model.info().fills_middle) {
        match fill(model.as_ref(), &completion.gate, middle, used).await {
            // A server that turns out to know no such requests is asked by a chat, now and later.
            Err(_) if !model.info().fills_middle => {}
            completed => return completed,
        }
    }
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
    let call = paid_call::reserve(&completion.gate, &info, &prompt).await?;
    *used = Used::of(&info);
    let answer = collect(call.stream(model.stream(prompt)), deltas, used).await?;
    Ok(Completed { text: answer.text, model: info.id, tokens: used.tokens, cost: used.cost() })
}

/// Asks for the text between two others, and ends the call where that text ends.
async fn fill(model: &dyn Model, gate: &Gate, middle: Middle, used: &mut Used) -> Result<Completed, Failure> {
    let info = model.info();
    // The text stands here too, for the estimate of the price.
    let text = Part::text(format!("{}{}", middle.before, middle.after));
    let prompt = Prompt {
        entries: vec![PromptEntry::User { parts: vec![text] }],
        max_output: Some(MOST_FILLED_TOKENS),
        middle: Some(middle.clone()),
        ..Prompt::default()
    };
    let call = paid_call::reserve(gate, &info, &prompt).await?;
    *used = Used::of(&info);
    let is_complete = |text: &str| middle.end(text).is_some();
    let answer = collect_until(call.stream(model.stream(prompt)), None, used, is_complete).await?;
    let text = middle.cut(&answer.text).to_owned();
    Ok(Completed { text, model: info.id, tokens: used.tokens, cost: used.cost() })
}

/// Reads an answer to its end: the text and the pages that it cites.
pub(crate) async fn collect(
    stream: ModelStream,
    deltas: Option<mpsc::Sender<String>>,
    used: &mut Used,
) -> Result<WebAnswer, Failure> {
    collect_until(stream, deltas, used, |_| false).await
}

/// The same, at most until the text is complete.
async fn collect_until(
    mut stream: ModelStream,
    deltas: Option<mpsc::Sender<String>>,
    used: &mut Used,
    is_complete: impl Fn(&str) -> bool,
) -> Result<WebAnswer, Failure> {
    let (mut answer, mut texts) = (WebAnswer::default(), Vec::new());
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
                if is_complete(&answer.text) {
                    break;
                }
            }
            Ok(ModelEvent::Usage(tokens)) => used.tokens = tokens,
            Ok(ModelEvent::Ended { reason }) => {
                if let StopReason::Refused { reason: why } | StopReason::Cut { message: why } = reason {
                    return Err(Failure::provider(why));
                }
                break;
            }
            Ok(ModelEvent::Waiting { .. } | ModelEvent::Warning { .. } | ModelEvent::ImagesRefused) => {}
            Ok(
                ModelEvent::BlockStarted { .. }
                | ModelEvent::BlockDelta { .. }
                | ModelEvent::BlockEnded { .. },
            ) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(answer)
}
