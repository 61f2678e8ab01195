//! One answer of the turn's model for a running tool, such as that of an MCP server which the user allowed to ask for it.
//!
//! Must not know servers. Invariants: the caps of the turn, the chat and the day are checked before the call, and what it cost
//! is the chat's; it ends by its deadline or a stop.

use std::sync::Arc;
use std::time::Duration;

use domain::command::TurnLimits;
use domain::model::{BlockKind, ModelEvent, Prompt, PromptEntry, StopReason, Tokens};
use domain::spending::Gate;
use domain::tool::{Sample, Sampled};
use domain::{CancellationToken, Failure, FailureKind, Model, Part};
use futures_util::StreamExt;

use crate::paid_call;
use crate::session::Session;
use crate::spending;
use crate::turn::Turn;

const DEADLINE: Duration = Duration::from_secs(300);

/// The model of a turn with the turn's limits.
pub(crate) struct Sampler {
    model: Arc<dyn Model>,
    limits: TurnLimits,
    cost_before: f64,
}

impl Sampler {
    pub(crate) fn of(turn: &Turn) -> Self {
        Self { model: turn.model.clone(), limits: turn.limits.clone(), cost_before: turn.cost_before }
    }

    pub(super) async fn sample(
        &self,
        session: &Session,
        sample: Sample,
        cancel: &CancellationToken,
    ) -> Result<Sampled, Failure> {
        spending::check_caps(session, &self.limits, self.cost_before).await?;
        let late = || {
            let text = format!("The model gave no whole answer within {} s.", DEADLINE.as_secs());
            Failure::new(FailureKind::Provider, text)
        };
        let mut tokens = None;
        let gate = spending::gate(session);
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::user("The turn was stopped.")),
            answered = self.answer(sample, &gate, &mut tokens) => answered,
            () = tokio::time::sleep(DEADLINE) => Err(late()),
        };
        let info = self.model.info();
        if let Some(tokens) = tokens {
            let cost = info.price.map(|price| price.of(&tokens));
            spending::record_call_for_tool(session, &info.id, tokens, cost);
        }
        let (text, is_cut) = answered?;
        Ok(Sampled { text, model: info.id, is_cut })
    }

    async fn answer(
        &self,
        sample: Sample,
        gate: &Gate,
        tokens: &mut Option<Tokens>,
    ) -> Result<(String, bool), Failure> {
        let Sample { system, messages, max_tokens } = sample;
        let entries = messages.into_iter().map(|(is_user, parts)| match is_user {
            true => PromptEntry::User { parts },
            false => PromptEntry::Agent { text: texts_of(&parts), provider: None },
        });
        let system = if system.is_empty() { Vec::new() } else { vec![system.into()] };
        let prompt =
            Prompt { system, entries: entries.collect(), max_output: max_tokens, ..Prompt::default() };
        let call = paid_call::reserve(gate, &self.model.info(), &prompt).await?;
        let mut stream = call.stream(self.model.stream(prompt));
        let (mut text, mut texts, mut is_cut) = (String::new(), Vec::new(), false);
        while let Some(event) = stream.next().await {
            match event? {
                ModelEvent::BlockStarted { block, kind: BlockKind::Text } => texts.push(block),
                ModelEvent::BlockDelta { block, text: delta } if texts.contains(&block) => {
                    text.push_str(&delta)
                }
                ModelEvent::Usage(used) => *tokens = Some(used),
                ModelEvent::Ended { reason: StopReason::Refused { reason: why } } => {
                    return Err(Failure::provider(why));
                }
                ModelEvent::Ended { reason } => {
                    is_cut = matches!(reason, StopReason::MaxTokens | StopReason::Cut { .. });
                }
                ModelEvent::Waiting { .. }
                | ModelEvent::Warning { .. }
                | ModelEvent::ImagesRefused
                | ModelEvent::BlockStarted { .. }
                | ModelEvent::BlockDelta { .. }
                | ModelEvent::BlockEnded { .. } => {}
            }
        }
        Ok((text, is_cut))
    }
}

fn texts_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
