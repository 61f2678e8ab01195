//! One call to a model that somebody pays for: the right to it, and what it used, whatever becomes of it.
//!
//! Must not know accounts. Invariant: a call is settled once: by what its provider reports, or by an estimate where a stop or a
//! failure came before the report.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use domain::Failure;
use domain::model::{ModelEvent, ModelInfo, ModelStream, Price, Prompt, Tokens};
use domain::spending::{Gate, Reservation};
use futures_util::Stream;
use session::account::KnownLengths;

use crate::context_use;

/// The longest answer of a model of which it is not known, in tokens.
const USUAL_OUTPUT: u64 = 32_000;
/// The usual length of a token, for calls whose provider reported nothing.
const BYTES_OF_TOKEN: u64 = 4;

/// The right to one call; without a call it is given back.
#[derive(Default)]
pub(crate) struct PaidCall(Option<Meter>);

struct Meter {
    reservation: Reservation,
    price: Option<Price>,
    /// Bytes that the call sends, and those of the answer so far.
    sent: u64,
    received: u64,
    reported: Option<Tokens>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    /// The provider may have begun to read.
    Sent,
    /// The provider takes no request, or gave no answer.
    Refused,
    Answering,
    Ended,
}

/// Waits for the right to one call.
pub(crate) async fn reserve(gate: &Gate, info: &ModelInfo, prompt: &Prompt) -> Result<PaidCall, Failure> {
    if gate.is_default() {
        return Ok(PaidCall::default());
    }
    let sent = length(prompt);
    let most = info.price.map(|price| price.of(&most_tokens(info, prompt, sent)));
    let (reservation, price) = (gate.reserve(most).await?, info.price);
    let progress = Progress::Sent;
    Ok(PaidCall(Some(Meter { reservation, price, sent, received: 0, reported: None, progress })))
}

impl PaidCall {
    /// The answer of the call. It is settled when it is dropped.
    pub(crate) fn stream(self, answer: ModelStream) -> ModelStream {
        match self.0 {
            Some(meter) => Box::pin(MeteredAnswer { answer, meter }),
            None => answer,
        }
    }
}

struct MeteredAnswer {
    answer: ModelStream,
    meter: Meter,
}

impl Stream for MeteredAnswer {
    type Item = Result<ModelEvent, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.answer.as_mut().poll_next(context));
        self.meter.note(event.as_ref());
        Poll::Ready(event)
    }
}

impl Drop for MeteredAnswer {
    fn drop(&mut self) {
        let Meter { reservation, price, .. } = &mut self.meter;
        let (reservation, price) = (std::mem::take(reservation), *price);
        reservation.settle(price.map(|price| price.of(&self.meter.tokens())));
    }
}

impl Meter {
    fn note(&mut self, event: Option<&Result<ModelEvent, Failure>>) {
        match event {
            Some(Ok(ModelEvent::Usage(tokens))) => self.reported = Some(*tokens),
            Some(Ok(ModelEvent::BlockDelta { text, .. })) => {
                self.received += text.len() as u64;
                self.progress = Progress::Answering;
            }
            Some(Ok(ModelEvent::BlockStarted { .. } | ModelEvent::BlockEnded { .. })) => {
                self.progress = Progress::Answering;
            }
            Some(Ok(ModelEvent::Ended { .. })) => self.progress = Progress::Ended,
            Some(Ok(ModelEvent::Waiting { .. })) | Some(Err(_)) if self.progress == Progress::Sent => {
                self.progress = Progress::Refused;
            }
            Some(Ok(ModelEvent::Waiting { .. } | ModelEvent::Warning { .. } | ModelEvent::ImagesRefused))
            | Some(Err(_))
            | None => {}
        }
    }

    /// What the call used: as reported where it is over, else at least what its bytes come to.
    fn tokens(&self) -> Tokens {
        let estimate = Tokens {
            input: self.sent.div_ceil(BYTES_OF_TOKEN),
            output: self.received.div_ceil(BYTES_OF_TOKEN),
            ..Tokens::default()
        };
        match (self.reported, self.progress) {
            (Some(reported), Progress::Ended) => reported,
            (Some(reported), _) => Tokens { output: reported.output.max(estimate.output), ..reported },
            (None, Progress::Refused) => Tokens::default(),
            (None, Progress::Sent | Progress::Answering | Progress::Ended) => estimate,
        }
    }
}

/// The length of what a call sends, in bytes.
fn length(prompt: &Prompt) -> u64 {
    let definitions = prompt
        .tools
        .iter()
        .map(|tool| (tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()) as u64);
    context_use::lengths(prompt, definitions.sum(), &mut KnownLengths::default()).total()
}

/// What a call can use at most: no token is shorter than a byte, and the provider's own searches fill the rest.
fn most_tokens(info: &ModelInfo, prompt: &Prompt, sent: u64) -> Tokens {
    let limit = info.context_limit.unwrap_or(u64::MAX);
    let input = if prompt.web_search { info.context_limit.unwrap_or(sent) } else { sent.min(limit) };
    let output = prompt.max_output.or(info.output_limit).unwrap_or(USUAL_OUTPUT);
    let is_written =
        info.price.is_some_and(|price| price.cache_write.is_some_and(|write| write > price.input));
    let (input, cache_write) = if is_written { (0, input) } else { (input, 0) };
    Tokens { input, output, cache_write, ..Tokens::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use domain::BoxFuture;
    use domain::item::Part;
    use domain::model::{BlockKind, PromptEntry, StopReason};
    use domain::spending::Payer;
    use futures_util::StreamExt;

    use super::*;

    #[derive(Default)]
    struct Paid(Arc<Mutex<Vec<f64>>>);

    impl Payer for Paid {
        fn reserve(&self, _most: Option<f64>) -> BoxFuture<'_, Result<Reservation, Failure>> {
            let paid = self.0.clone();
            Box::pin(async move { Ok(Reservation::new(move |cost| paid.lock().unwrap().push(cost))) })
        }
    }

    #[tokio::test]
    async fn a_call_is_paid_whatever_becomes_of_it() {
        let started = || Ok(ModelEvent::BlockStarted { block: 0, kind: BlockKind::Text });
        let text = || Ok(ModelEvent::BlockDelta { block: 0, text: "x".repeat(400) });
        let usage = |output| Ok(ModelEvent::Usage(Tokens { input: 1_000, output, ..Tokens::default() }));
        let ended = || Ok(ModelEvent::Ended { reason: StopReason::Done });
        let waiting = || Ok(ModelEvent::Waiting { text: String::new() });
        let failed = || Err(Failure::provider("x"));
        // A token costs a dollar; the prompt has 2000 bytes.
        for (events, cost) in [
            (vec![started(), text(), usage(7), ended()], 1_007.0),
            (vec![started(), text(), ended()], 600.0),
            (vec![started(), text()], 600.0),
            (vec![started(), text(), failed()], 600.0),
            (vec![usage(1), started(), text()], 1_100.0),
            (vec![usage(1), failed()], 1_001.0),
            (vec![], 500.0),
            (vec![failed()], 0.0),
            (vec![waiting()], 0.0),
            (vec![waiting(), started(), text()], 600.0),
        ] {
            let paid = Paid::default();
            let sums = paid.0.clone();
            let price = Price { input: 1e6, output: 1e6, cache_read: None, cache_write: None };
            let info = ModelInfo { price: Some(price), ..ModelInfo::default() };
            let entries = vec![PromptEntry::User { parts: vec![Part::text("y".repeat(2_000))] }];
            let prompt = Prompt { entries, ..Prompt::default() };
            let call = reserve(&Gate::new(Arc::new(paid)), &info, &prompt).await.unwrap();
            let described = format!("{events:?}");
            let mut answer = call.stream(Box::pin(futures_util::stream::iter(events)));
            while answer.next().await.is_some() {}
            drop(answer);
            assert_eq!(*sums.lock().unwrap(), [cost], "{described}");
        }
    }
}
