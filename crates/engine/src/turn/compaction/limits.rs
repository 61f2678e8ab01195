//! How long a summary may take, and how much of a chat goes into one request for it.

use std::time::Duration;

use crate::turn::Turn;

/// The time for the summary of one part.
pub(super) const MODEL_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of a part where the window of the model is not known. A part that is refused as too long is halved.
const USUAL_PART: usize = 400_000;
pub(super) const LEAST_PART: usize = 4_000;

/// The tokens that the model can read at a time.
pub(super) fn window(turn: &Turn) -> Option<u64> {
    let of_chat = turn.session.state().usage().context_limit;
    let of_model = turn.model.info().context_limit;
    [of_chat, of_model].into_iter().flatten().filter(|limit| *limit > 0).min()
}

/// Bytes of a part: about six tenths of the window, so that the summary of the parts before and the answer have room.
pub(super) fn part_size(window: Option<u64>) -> usize {
    let bytes = window
        .map_or(USUAL_PART, |tokens| usize::try_from(tokens.saturating_mul(12) / 5).unwrap_or(usize::MAX));
    bytes.clamp(LEAST_PART, USUAL_PART)
}
