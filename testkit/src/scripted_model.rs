//! Models without HTTP: a test says what each call answers, and sees what each call was sent.
//!
//! Invariant: calls take the scripted answers in order; a call without one answers `ok`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::model::{BlockKind, ModelInfo, Models, Price, StopReason, Tokens};
use domain::{Failure, Model, ModelEvent, ModelStream, Prompt};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;

use crate::fake_model::TITLE_REQUEST;

/// What one call does, step by step.
#[derive(Clone, Debug)]
pub enum ModelStep {
    Event(ModelEvent),
    Wait(Duration),
    /// Nothing further comes.
    Hang,
    Fail(Failure),
    Panic,
}

/// The answer to one call.
#[derive(Clone, Debug, Default)]
pub struct ScriptedAnswer {
    steps: Vec<ModelStep>,
    blocks: u32,
    reason: Option<StopReason>,
}

impl ScriptedAnswer {
    pub fn text(text: &str) -> Self {
        Self::default().and_text(text)
    }

    pub fn call(name: &str, input: Value) -> Self {
        Self::default().and_call(name, input)
    }

    pub fn fails(failure: Failure) -> Self {
        Self::default().then(ModelStep::Fail(failure))
    }

    /// In three pieces, so that a cut falls into the middle.
    pub fn and_text(mut self, text: &str) -> Self {
        let block = self.start(BlockKind::Text);
        let pieces: Vec<char> = text.chars().collect();
        for piece in pieces.chunks(pieces.len().div_ceil(3).max(1)) {
            let delta = ModelEvent::BlockDelta { block, text: piece.iter().collect() };
            self.steps.push(ModelStep::Event(delta));
        }
        self.end(block)
    }

    pub fn and_call(mut self, name: &str, input: Value) -> Self {
        let call_id = format!("call-{}", self.blocks);
        let block = self.start(BlockKind::ToolCall { call_id, name: name.to_owned() });
        let delta = ModelEvent::BlockDelta { block, text: input.to_string() };
        self.steps.push(ModelStep::Event(delta));
        self.end(block)
    }

    pub fn and_usage(self, tokens: Tokens) -> Self {
        self.then(ModelStep::Event(ModelEvent::Usage(tokens)))
    }

    pub fn then(mut self, step: ModelStep) -> Self {
        self.steps.push(step);
        self
    }

    pub fn ending(mut self, reason: StopReason) -> Self {
        self.reason = Some(reason);
        self
    }

    fn start(&mut self, kind: BlockKind) -> u32 {
        self.blocks += 1;
        self.steps.push(ModelStep::Event(ModelEvent::BlockStarted { block: self.blocks, kind }));
        self.blocks
    }

    fn end(mut self, block: u32) -> Self {
        self.steps.push(ModelStep::Event(ModelEvent::BlockEnded { block, provider: None }));
        self
    }

    fn stream(self) -> ModelStream {
        let reason = self.reason.unwrap_or(StopReason::Done);
        let end = ModelStep::Event(ModelEvent::Ended { reason });
        let steps = stream::iter(self.steps.into_iter().chain([end]));
        Box::pin(steps.filter_map(|step| async {
            match step {
                ModelStep::Event(event) => Some(Ok(event)),
                ModelStep::Fail(failure) => Some(Err(failure)),
                ModelStep::Hang => std::future::pending().await,
                ModelStep::Panic => panic!("the script says so"),
                ModelStep::Wait(time) => {
                    tokio::time::sleep(time).await;
                    None
                }
            }
        }))
    }
}

/// Every model of a test; `test/one` is the default one.
#[derive(Clone)]
pub struct ScriptedModels {
    state: Arc<Mutex<Script>>,
}

struct Script {
    answers: VecDeque<ScriptedAnswer>,
    prompts: Vec<(String, Prompt)>,
    info: ModelInfo,
    small: Option<(String, ScriptedAnswer)>,
    title: Option<String>,
    by_prompt: Option<AnswerByPrompt>,
}

type AnswerByPrompt = Arc<dyn Fn(&Prompt) -> ScriptedAnswer + Send + Sync>;

impl Default for ScriptedModels {
    fn default() -> Self {
        let price = Price { input: 1.0, output: 1.0, cache_read: None, cache_write: None };
        let info = ModelInfo { tools: true, price: Some(price), ..ModelInfo::default() };
        let script = Script {
            answers: VecDeque::new(),
            prompts: Vec::new(),
            info,
            small: None,
            title: None,
            by_prompt: None,
        };
        Self { state: Arc::new(Mutex::new(script)) }
    }
}

impl ScriptedModels {
    /// What the next call without a script before it answers.
    pub fn answer(&self, answer: ScriptedAnswer) {
        self.lock().answers.push_back(answer);
    }

    /// What every call without a script before it answers, by what it is sent.
    pub fn answer_by(&self, answer: impl Fn(&Prompt) -> ScriptedAnswer + Send + Sync + 'static) {
        self.lock().by_prompt = Some(Arc::new(answer));
    }

    pub fn forget_answers(&self) {
        self.lock().answers.clear();
    }

    /// The model and the prompt of every call so far.
    pub fn prompts(&self) -> Vec<(String, Prompt)> {
        self.lock().prompts.clone()
    }

    /// Changes what is known of every model.
    pub fn set_info(&self, change: impl FnOnce(&mut ModelInfo)) {
        change(&mut self.lock().info);
    }

    /// A cheaper model for titles and the like, which always answers the same.
    pub fn set_small_model(&self, name: &str, answer: ScriptedAnswer) {
        self.lock().small = Some((name.to_owned(), answer));
    }

    /// What every request for a title is answered, by whichever model.
    pub fn answer_titles(&self, title: &str) {
        self.lock().title = Some(title.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Models for ScriptedModels {
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        if !name.starts_with("test/") {
            return Err(Failure::config(format!("There is no model {name}.")));
        }
        Ok(Arc::new(ScriptedModel { id: name.to_owned(), models: self.clone() }))
    }

    fn list(&self) -> Vec<ModelInfo> {
        vec![ModelInfo { id: "test/one".into(), ..self.lock().info.clone() }]
    }

    fn default_model(&self) -> Option<String> {
        Some("test/one".into())
    }

    fn small_model(&self, _main: &str) -> Option<String> {
        self.lock().small.as_ref().map(|(name, _)| name.clone())
    }
}

fn asks_for_title(prompt: &Prompt) -> bool {
    let in_chat = prompt.entries.last().is_some_and(|entry| format!("{entry:?}").contains(TITLE_REQUEST));
    in_chat || prompt.system.iter().any(|text| text.contains(TITLE_REQUEST))
}

struct ScriptedModel {
    id: String,
    models: ScriptedModels,
}

impl Model for ScriptedModel {
    fn stream(&self, prompt: Prompt) -> ModelStream {
        let mut script = self.models.lock();
        script.prompts.push((self.id.clone(), prompt.clone()));
        if let Some(title) = script.title.clone().filter(|_| asks_for_title(&prompt)) {
            return ScriptedAnswer::text(&title).stream();
        }
        let small =
            script.small.as_ref().filter(|(name, _)| *name == self.id).map(|(_, answer)| answer.clone());
        let by_prompt = script.by_prompt.clone().map(|answer| answer(&prompt));
        let scripted = small.or_else(|| script.answers.pop_front()).or(by_prompt);
        let answer = scripted.unwrap_or_else(|| ScriptedAnswer::text("ok"));
        drop(script);
        answer.stream()
    }

    fn info(&self) -> ModelInfo {
        ModelInfo { id: self.id.clone(), ..self.models.lock().info.clone() }
    }
}
